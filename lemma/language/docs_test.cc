// Every example of docs/language.md is a program, and prints and parses back.
#include <fstream>
#include <iterator>
#include <set>

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

std::string file_text(const std::string& name) {
  std::ifstream file(std::string(LEMMA_SOURCE_DIR) + "/" + name);
  EXPECT_TRUE(file.good()) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The names after `before` in a text: what it defines, or what it shows.
std::set<std::string> names_after(const std::string& text, const std::string& before) {
  std::set<std::string> out;
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
    size_t end = at + before.size();
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    if (end < text.size() && (text[end] == '(' || text[end] == '[')) out.insert(text.substr(at + before.size(), end - at - before.size()));
  }
  return out;
}

// Every function of the prelude stands in the section about it, and nothing else does.
TEST(Docs, the_prelude_is_listed) {
  const std::string language = file_text("docs/language.md");
  const size_t start = language.find("## The prelude\n"), end = language.find("\n## ", start + 1);
  ASSERT_NE(start, std::string::npos);
  const std::set<std::string> defined = names_after("\n" + file_text("prelude/prelude.lemma"), "\ndef ");
  EXPECT_GE(defined.size(), 30u);
  EXPECT_EQ(names_after(language.substr(start, end - start), "`"), defined);
}

}  // namespace
}  // namespace lemma::language
