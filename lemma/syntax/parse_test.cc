#include "lemma/syntax/parse.h"

#include <gtest/gtest.h>

namespace lemma::syntax {
namespace {

std::string show(const Tree& tree, NodeId id) {
  const Node& n = tree[id];
  const auto join = [&](const std::string& with) {
    std::string out;
    for (size_t i = 0; i < n.items.size(); ++i) {
      out += (i == 0 ? "" : n.operators.empty() ? with : " " + n.operators[i - 1] + " ") + show(tree, n.items[i]);
    }
    return out;
  };
  switch (n.kind) {
    case NodeKind::Number:
    case NodeKind::Name: return n.text;
    case NodeKind::Read: {
      std::string out = n.text + "[";
      for (size_t i = 1; i < n.items.size(); ++i) out += (i == 1 ? "" : ", ") + show(tree, n.items[i]);
      if (n.condition >= 0) out += " : " + show(tree, n.condition);
      return out + "]" + (n.maybe ? "?" : "");
    }
    case NodeKind::Call: {
      std::string out = (n.scan ? "scan " : "") + n.text;
      for (size_t i = 0; i < n.params.size(); ++i) out += (i == 0 ? "[" : ", ") + show(tree, n.params[i]) + (i + 1 == n.params.size() ? "]" : "");
      out += "(" + join(", ");
      if (n.condition >= 0) out += " : " + show(tree, n.condition);
      out += ")";
      return n.body >= 0 ? "{" + out + " " + show(tree, n.body) + "}" : out;
    }
    case NodeKind::Chain:
    case NodeKind::Compare: return "(" + join("") + ")";
    case NodeKind::Negate: return "(-" + show(tree, n.items[0]) + ")";
    case NodeKind::Not: return "(not " + show(tree, n.items[0]) + ")";
    case NodeKind::Flip: return "(~" + show(tree, n.items[0]) + ")";
    case NodeKind::Else: return "(" + show(tree, n.items[0]) + " else " + show(tree, n.items[1]) + ")";
    case NodeKind::Tuple: return "<" + join(", ") + ">";
  }
  return "";
}

std::string parsed(const std::string& text) {
  const Source source(text, "t");
  const auto tokens = tokenize(source);
  if (!tokens.ok()) return tokens.error().message;
  Tree tree;
  Parser parser(source, *tokens, tree);
  const auto root = parser.expression();
  if (!root.ok()) return std::to_string(root.error().span.column) + ": " + root.error().message;
  if (parser.peek().kind != TokenKind::Separator) return "rest: " + parser.peek().text;
  return show(tree, *root);
}

TEST(Expressions, precedence) {
  EXPECT_EQ(parsed("a + b*c - d"), "(a + (b * c) - d)");
  EXPECT_EQ(parsed("a or b and not c < d"), "(a or (b and (not (c < d))))");
  EXPECT_EQ(parsed("a & 1 == b | 2"), "((a & 1) == (b | 2))");
  EXPECT_EQ(parsed("a << 1 + 2"), "(a << (1 + 2))");
  EXPECT_EQ(parsed("-a*b"), "((-a) * b)");
  EXPECT_EQ(parsed("a - -b"), "(a - (-b))");
  EXPECT_EQ(parsed("a < b <= c"), "(a < b <= c)");
}

TEST(Expressions, else_binds_to_what_stands_on_its_left) {
  EXPECT_EQ(parsed("a + x[i] else 0 * b"), "(a + ((x[i] else 0) * b))");
  EXPECT_EQ(parsed("(a + b) else -1"), "((a + b) else (-1))");
  EXPECT_EQ(parsed("x[i]? else y[i] else 0"), "((x[i]? else y[i]) else 0)");
  EXPECT_EQ(parsed("sum(j) x[j - 1] else 0 + 1"), "({sum(j) (x[(j - 1)] else 0)} + 1)");
}

TEST(Expressions, folds_run_through_products) {
  EXPECT_EQ(parsed("sum(d) q[i, d] * k[j, d] / 2 + 1"), "({sum(d) (q[i, d] * k[j, d] / 2)} + 1)");
  EXPECT_EQ(parsed("a * sum(j) b * c"), "(a * {sum(j) (b * c)})");
  EXPECT_EQ(parsed("sum(j : j <= i) x[j] < 2"), "({sum(j : (j <= i)) x[j]} < 2)");
  EXPECT_EQ(parsed("topk[2](e) s[t, e]"), "{topk[2](e) s[t, e]}");
  EXPECT_EQ(parsed("scan sum(t, exclusive) x[t]"), "{scan sum(t, exclusive) x[t]}");
  EXPECT_EQ(parsed("affine(t) (a, b)"), "{affine(t) <a, b>}");
  EXPECT_EQ(parsed("max(a, b) - c"), "(max(a, b) - c)");
  EXPECT_EQ(parsed("sum(i) max(j) x[i, j]"), "{sum(i) {max(j) x[i, j]}}");
  EXPECT_EQ(parsed("sum(i) where(a, b, c)"), "{sum(i) where(a, b, c)}");
  EXPECT_EQ(parsed("x[i - 1 : i >= 1]"), "x[(i - 1) : (i >= 1)]");
}

TEST(Expressions, say_what_is_wrong) {
  EXPECT_EQ(parsed("(a + b"), "7: found the end of the line, expected `,` or `)`");
  EXPECT_EQ(parsed("a + "), "5: found the end of the line, expected an expression");
  EXPECT_EQ(parsed("f(a b)"), "5: found `b`, expected `,` or `)`");
  EXPECT_EQ(parsed("()"), "1: found `()`, expected an expression in the parenthesis");
}

TEST(Expressions, nest_within_bounds) {
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "(";
  EXPECT_NE(parsed(deep + "a").find("nest too deeply"), std::string::npos);
  std::string fine = "a";
  for (int i = 0; i < 60; ++i) fine = "(" + fine + ")";
  EXPECT_EQ(parsed(fine), "a");
  std::string flat = "a";
  for (int i = 0; i < 30000; ++i) flat += " + a";
  EXPECT_EQ(parsed(flat).size(), flat.size() + 2);
}

}  // namespace
}  // namespace lemma::syntax
