// docs/passes.md and docs/rules.md are written from the tables they describe: the passes with the opening comments of
// their headers, and the scalar rules. LEMMA_BLESS=1 writes the files; else they are compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "lemma/rewrite/passes.h"
#include "lemma/scalar/pattern.h"

namespace lemma {
namespace {

std::string path_of(const std::string& file) { return std::string(LEMMA_SOURCE_DIR) + "/" + file; }

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string name(scalar::Claim claim) {
  switch (claim) {
    case scalar::Claim::Exact: return "exact";
    case scalar::Claim::Real: return "real";
    case scalar::Claim::Finite: return "finite";
    case scalar::Claim::Loose: return "loose";
  }
  return "";
}

void expect_file(const std::string& file, const std::string& expected) {
  if (std::getenv("LEMMA_BLESS")) {
    std::ofstream(path_of(file)) << expected;
    return;
  }
  EXPECT_EQ(read_file(path_of(file)), expected) << file << " is out of date; tools/bless writes it anew";
}

// Stars of prose are no emphasis; between backticks nothing is.
std::string escaped(const std::string& line) {
  std::string out;
  bool code = false;
  for (char c : line) {
    if (c == '`') code = !code;
    if (!code && (c == '*' || c == '<' || c == '_')) out += '\\';
    out += c;
  }
  return out;
}

// The comment that opens a header, as Markdown: its indented lines are code.
std::string opening_comment(const std::string& header) {
  std::istringstream lines(read_file(path_of(header)));
  std::string out;
  bool code = false;
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    const std::string text = line.size() > 3 ? line.substr(3) : "";
    const bool indented = text.starts_with("    ");
    if (!code && indented) out += "```text\n";
    if (code && !indented && !text.empty()) {
      while (out.ends_with("\n\n")) out.pop_back();
      out += "```\n\n";
    }
    code = indented || (code && text.empty());
    out += (code ? (indented ? text.substr(4) : text) : escaped(text)) + "\n";
  }
  if (code) {
    while (out.ends_with("\n\n")) out.pop_back();
    out += "```\n";
  }
  return out;
}

std::string passes_page() {
  std::ostringstream out;
  out << "# Passes\n\n"
         "Every rewrite of graphs, written from its table (`lemma/rewrite/passes.cc`) and the headers of its passes by\n"
         "`tests/documents`. `lemma show PROGRAM --pass NAME` prints the graph after one of the default order, `--all` after\n"
         "each, `--explain` what each did or declined. A claim says how far a pass keeps values ([ir.md](ir.md#claims)); where a\n"
         "pass can do with less it does, case by case, and what `--strict` forbids is declined.\n\n"
         "| pass | does | weakest claim it may need | by default |\n|---|---|---|---|\n";
  for (const rewrite::Pass& pass : rewrite::passes()) {
    const std::string title(pass.name);
    const bool has_section = !read_file(path_of("lemma/rewrite/" + title + ".h")).empty();
    out << "| " << (has_section ? "[" + title + "](#" + title + ")" : title) << " | " << pass.sentence << " | "
        << name(pass.claim) << " | " << (pass.by_default ? "yes" : "no") << " |\n";
  }
  out << "\n## The default order\n\n";
  std::string order;
  rewrite::derive(tensor::Graph{}, rewrite::Context{}, [&](std::string_view pass, const tensor::Graph&, double) {
    order += std::to_string(std::count(order.begin(), order.end(), '\n') + 1) + ". " + std::string(pass) + "\n";
  });
  out << order;
  for (const rewrite::Pass& pass : rewrite::passes()) {
    const std::string comment = opening_comment("lemma/rewrite/" + std::string(pass.name) + ".h");
    if (!comment.empty()) out << "\n## " << pass.name << "\n\n" << comment;
  }
  return out.str();
}

const std::map<std::string, std::string> kConditions = {
    {"bool", "a truth value"},
    {"const", "a constant"},
    {"float", "f32 or f64"},
    {"int", "an integer"},
    {"moderate", "a float constant whose magnitude is from 2^-30 to 2^30"},
    {"number", "no truth value"},
    {"power_of_two", "a float constant that is a power of two, as is its reciprocal"},
    {"same_type", "both roundings are to one type"},
    {"signed", "a float or a signed integer"},
    {"value_kept", "the inner conversion keeps every value, or only drops bits that the outer drops, too"},
    {"whole", "an integer or a truth value"},
};

std::string rules_page(std::set<std::string>& used) {
  std::ostringstream out;
  out << "# Scalar rules\n\n"
         "The rules that `simplify_bodies` applies to what is computed at one point, written from their table\n"
         "(`lemma/scalar/rules.cc`) by `tests/documents`. `?a` stands for any expression, the same at each place. Operands of\n"
         "commuting operations match in either order. Every row is tried on random expressions and special values at its\n"
         "claim ([ir.md](ir.md#claims)) by `scalar_test`.\n\n"
         "| rule | from | to | when | claim |\n|---|---|---|---|---|\n";
  for (const scalar::Rule& rule : scalar::library_rules()) {
    const scalar::ParsedRule parsed = scalar::parse_rule(rule);
    for (const scalar::Condition& condition : parsed.conditions) used.insert(condition.predicate);
    const std::string when = rule.when;
    out << "| " << rule.name << " | `" << rule.from << "` | `" << rule.to << "` | " << (when.empty() ? "" : "`" + when + "`")
        << " | " << name(rule.claim) << " |\n";
  }
  out << "\n## Conditions\n\nA condition `a:int` is about what `?a` stands for; one without a name is about the whole.\n\n"
         "| condition | holds of |\n|---|---|\n";
  for (const auto& [condition, meaning] : kConditions) out << "| " << condition << " | " << meaning << " |\n";
  return out.str();
}

TEST(Documents, passes) { expect_file("docs/passes.md", passes_page()); }

TEST(Documents, rules) {
  std::set<std::string> used, explained;
  const std::string page = rules_page(used);
  for (const auto& [condition, meaning] : kConditions) explained.insert(condition);
  EXPECT_EQ(used, explained);
  expect_file("docs/rules.md", page);
}

// The prose between the code of a header stays prose, and the code stays code.
TEST(Documents, opening_comments_become_markdown) {
  const std::string text = opening_comment("lemma/rewrite/simplify_bodies.h");
  EXPECT_NE(text.find("```text\ny = [i<n] select(present, x[i], 0) * 1      =>      y = [i<n] x[i]\n```\n\nClaim: "),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace lemma
