// Any text as a program: a graph, or a message that says where.
#include <cstdint>
#include <string_view>

#include "lemma/base/check.h"
#include "lemma/language/language.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lemma;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = language::parse(text, "fuzz.lemma");
  if (graph.ok()) return 0;
  LEMMA_CHECK(!graph.error().message.empty(), "a refusal without a message");
  LEMMA_CHECK(!base::render(graph.error()).empty(), "a refusal that cannot be shown");
  return 0;
}
