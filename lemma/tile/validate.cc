#include "lemma/tile/validate.h"

#include "lemma/tile/validator.h"

namespace lemma::tile {

std::string place_text(const std::string& kernel, const std::vector<int>& path, const char* word) {
  std::string out = "kernel " + kernel;
  if (path.empty()) return out;
  out += ", statement ";
  for (size_t i = 0; i < path.size(); ++i) out += (i ? "." : "") + std::to_string(path[i]);
  return out + " (" + word + ")";
}

base::Result<void> validate(const Program& program) { return Validator(program).run(); }

}  // namespace lemma::tile
