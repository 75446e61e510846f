// Every example of docs/language.md is a program, and prints and parses back.
#include <fstream>

#include "lemma/language/testing.h"
#include "lemma/tensor/equal.h"
#include "lemma/tensor/print.h"

namespace lemma::language {
namespace {

TEST(Docs, examples_are_programs) {
  std::ifstream file(std::string(LEMMA_SOURCE_DIR) + "/docs/language.md");
  ASSERT_TRUE(file.good());
  std::string line, program;
  bool inside = false;
  int count = 0;
  while (std::getline(file, line)) {
    if (!inside && line == "```lemma") {
      inside = true;
      program.clear();
    } else if (inside && line == "```") {
      inside = false;
      ++count;
      const tensor::Graph graph = parsed(program);
      EXPECT_FALSE(graph.outputs.empty()) << program;
      const std::string text = tensor::print(graph);
      auto again = parse(text, "printed.lemma");
      ASSERT_TRUE(again.ok()) << base::render(again.error()) << text;
      EXPECT_EQ(tensor::difference(graph, *again), "") << text;
    } else if (inside) {
      program += line + "\n";
    }
  }
  EXPECT_GE(count, 9);
}

}  // namespace
}  // namespace lemma::language
