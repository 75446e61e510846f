#include "lemma/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace lemma::base {

void bug(std::string_view message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: bug in lemma: %.*s\n", file, line, int(message.size()), message.data());
  std::abort();
}

}  // namespace lemma::base
