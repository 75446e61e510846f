// Goldens: tests/golden/<pass>/<case>.lemma holds a program, a line `----`, and the text of the graph after the pass,
// followed by what the pass said when it declined. LEMMA_BLESS=1 rewrites the second part. Either way the two graphs are
// evaluated by the oracle on random data, so that a change of meaning can be neither kept nor blessed.
//
// Comment lines at the top steer a case:
//     # claim: real          what the pass may do (exact, real, finite, loose); finite unless said
//     # special: 0.2         this share of the input elements is -inf (with claims up to real also +inf and nan)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lemma/language/language.h"
#include "lemma/rewrite/passes.h"
#include "lemma/tensor/print.h"
#include "lemma/tensor/validate.h"
#include "tests/random/equal.h"

namespace lemma {
namespace {

namespace fs = std::filesystem;

struct Case {
  fs::path path;
  std::string pass;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.path.filename().string(); }

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto& folder : fs::directory_iterator(fs::path(LEMMA_SOURCE_DIR) / "tests/golden")) {
    if (!folder.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().extension() == ".lemma") out.push_back({file.path(), folder.path().filename().string()});
    }
  }
  std::sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.path < b.path; });
  return out;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The value of `# key: value` among the first lines.
std::string setting(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("#");) {
    const std::string start = "# " + key + ": ";
    if (line.starts_with(start)) return line.substr(start.size());
  }
  return {};
}

rewrite::Claim claim_of(const std::string& text) {
  if (text == "exact") return rewrite::Claim::Exact;
  if (text == "real") return rewrite::Claim::Real;
  if (text == "loose") return rewrite::Claim::Loose;
  return rewrite::Claim::Finite;
}

tensor::Graph apply(const std::string& pass, const tensor::Graph& graph, const rewrite::Context& context) {
  return pass == "derive" ? rewrite::derive(graph, context) : rewrite::find_pass(pass)->run(graph, context);
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, HoldsAndKeepsValues) {
  const Case& c = GetParam();
  ASSERT_TRUE(c.pass == "derive" || rewrite::find_pass(c.pass)) << "no pass is called " << c.pass;
  const std::string text = read_file(c.path);
  const size_t line = text.find("\n----\n");
  const std::string input = line == std::string::npos ? text : text.substr(0, line + 1);
  const std::string expected = line == std::string::npos ? "" : text.substr(line + 6);

  auto graph = language::parse(input, c.path.filename().string());
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  std::vector<rewrite::Decision> log;
  const rewrite::Context context{claim_of(setting(input, "claim")), &log};
  const tensor::Graph after = apply(c.pass, *graph, context);
  const auto valid = tensor::validate(after);
  ASSERT_TRUE(valid.ok()) << base::render(valid.error());

  const std::string special = setting(input, "special");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    random_graphs::Inputs how{seed};
    ASSERT_EQ(random_graphs::difference(*graph, after, how), "");
    if (special.empty()) continue;
    how.special = std::strtod(special.c_str(), nullptr);
    how.nonfinite = context.allow <= rewrite::Claim::Real;
    ASSERT_EQ(random_graphs::difference(*graph, after, how), "");
  }

  std::string actual = tensor::print(after);
  for (const rewrite::Decision& d : log) {
    if (!d.applied && c.pass != "derive") actual += "# declined: " + d.subject + ": " + d.sentence + "\n";
  }
  if (std::getenv("LEMMA_BLESS")) {
    std::ofstream(c.path) << input << "----\n" << actual;
    return;
  }
  EXPECT_EQ(actual, expected);

  // What is printed is a program too, with the same meaning.
  auto again = language::parse(tensor::print(after), "printed.lemma");
  ASSERT_TRUE(again.ok()) << base::render(again.error());
  EXPECT_EQ(random_graphs::difference(after, *again, {9}), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(all_cases()), [](const auto& info) {
  std::string name = info.param.pass + "_" + info.param.path.stem().string();
  std::replace_if(name.begin(), name.end(), [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '_');
  return name;
});

}  // namespace
}  // namespace lemma
