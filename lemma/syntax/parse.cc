// The expression parser: precedence climbing with a bound on nesting.
#include "lemma/syntax/parse.h"

#include <algorithm>

namespace lemma::syntax {
namespace {

// One row per level, loosest first; `not` sits between `and` and the comparisons.
struct Level {
  const char* operators[8];
  bool words;
};
constexpr Level levels[] = {
    {{"or"}, true},
    {{"and"}, true},
    {{"not"}, true},
    {{"<=", ">=", "==", "!=", "<", ">"}, false},
    {{"|"}, false},
    {{"^"}, false},
    {{"&"}, false},
    {{"<<", ">>"}, false},
    {{"+", "-"}, false},
    {{"*", "/", "//", "%"}, false},
};
constexpr int compare_level = 3;
constexpr int product_level = 9;

bool at_operator(const Token& token, const Level& level) {
  for (const char* op : level.operators) {
    if (op && (level.words ? token.word(op) : token.symbol(op))) return true;
  }
  return false;
}

}  // namespace

bool Parser::take(std::string_view symbol) {
  if (!peek().symbol(symbol)) return false;
  next();
  return true;
}

bool Parser::take_word(std::string_view word) {
  if (!peek().word(word)) return false;
  next();
  return true;
}

base::Diagnostic Parser::found(const std::string& expected, std::string suggestion) const {
  return source_.error(peek().place, "found " + describe(peek()) + ", expected " + expected, std::move(suggestion));
}

base::Result<void> Parser::expect(std::string_view symbol, const std::string& where) {
  if (take(symbol)) return {};
  return found("`" + std::string(symbol) + "` " + where);
}

base::Result<Token> Parser::expect_name(const std::string& what) {
  if (peek().kind != TokenKind::Name) return found(what);
  return next();
}

void Parser::skip_separators() {
  while (peek().kind == TokenKind::Separator) next();
}

base::Result<NodeId> Parser::expression() {
  if (depth_ == 0) chained_else_ = 0;
  return binary(0);
}

base::Result<NodeId> Parser::sum() { return binary(product_level - 1); }

base::Result<void> Parser::deeper() {
  if (++depth_ <= max_depth) return {};
  return source_.error(peek().place, "expressions nest too deeply here",
                       "name a part of it in an equation of its own");
}

base::Result<NodeId> Parser::binary(int level) {
  LEMMA_TRY_VOID(deeper());
  LEMMA_TRY(NodeId left, unary());
  while (true) {
    int at = product_level;
    while (at >= level && !at_operator(peek(), levels[at])) --at;
    if (at < level) break;
    Node n;
    n.kind = at == compare_level ? NodeKind::Compare : NodeKind::Chain;
    n.place = peek().place;
    n.items.push_back(left);
    while (at_operator(peek(), levels[at])) {
      n.operators.push_back(peek().text);
      n.operator_places.push_back(peek().place);
      next();
      LEMMA_TRY(const NodeId operand, binary(at + 1));
      n.items.push_back(operand);
    }
    left = tree_.add(std::move(n));
  }
  --depth_;
  return left;
}

base::Result<NodeId> Parser::prefixed(NodeKind kind, int operand_level) {
  const Place place = next().place;
  LEMMA_TRY_VOID(deeper());
  base::Result<NodeId> operand = operand_level < 0 ? unary() : binary(operand_level);
  if (!operand.ok()) return operand;
  --depth_;
  Node n;
  n.kind = kind;
  n.place = place;
  n.items = {*operand};
  return tree_.add(std::move(n));
}

base::Result<NodeId> Parser::unary() {
  const Token& token = peek();
  if (token.symbol("-")) return prefixed(NodeKind::Negate, -1);
  if (token.symbol("~")) return prefixed(NodeKind::Flip, -1);
  if (token.word("not") && !peek(1).symbol("[")) return prefixed(NodeKind::Not, compare_level);
  LEMMA_TRY(const NodeId node, primary());
  return guarded(node);
}

// `else`, as often as it stands there: a else b else c is the first of them that exists.
base::Result<NodeId> Parser::guarded(NodeId node) {
  while (peek().word("else") && !at_end_word()) {
    const Place place = next().place;
    base::Result<NodeId> fallback = NodeId(-1);
    if (peek().symbol("-")) {
      const Place minus = next().place;
      LEMMA_TRY(const NodeId operand, primary());
      Node n;
      n.kind = NodeKind::Negate;
      n.place = minus;
      n.items = {operand};
      fallback = tree_.add(std::move(n));
    } else {
      fallback = primary();
    }
    if (!fallback.ok()) return fallback;
    if (++chained_else_ > 64) return source_.error(place, "more than 64 `else` in one expression");
    Node n;
    n.kind = NodeKind::Else;
    n.place = place;
    n.items = {node, *fallback};
    node = tree_.add(std::move(n));
  }
  return node;
}

bool Parser::at_end_word() const {
  return peek().kind == TokenKind::Name && !peek().quoted && std::find(ends.begin(), ends.end(), peek().text) != ends.end();
}

bool Parser::begins_operand(const Token& token) const {
  switch (token.kind) {
    case TokenKind::Integer:
    case TokenKind::Real: return true;
    case TokenKind::Name:
      if (token.word("where")) return peek(1).symbol("(");
      return !(token.word("and") || token.word("or") || token.word("else") || token.word("onto"));
    case TokenKind::Symbol: return token.text == "(";
    case TokenKind::Separator:
    case TokenKind::End: return false;
  }
  return false;
}

// What other languages write where an expression begins.
std::string Parser::spelled_otherwise() const {
  if (at_ == 0) return "";
  const Token &before = tokens_[at_ - 1], &token = peek();
  if (token.symbol("*") && before.symbol("*")) return "powers are written pow(a, b)";
  if (before.symbol(":") && (token.symbol("]") || token.symbol(","))) return "every dimension has an index of its own, as in x[i, j]";
  return "";
}

base::Result<NodeId> Parser::primary() {
  LEMMA_TRY_VOID(deeper());
  const Token token = peek();
  base::Result<NodeId> out = NodeId(-1);
  if (token.kind == TokenKind::Integer || token.kind == TokenKind::Real) {
    next();
    Node n;
    n.kind = NodeKind::Number;
    n.place = token.place;
    n.text = token.text;
    n.integer_literal = token.kind == TokenKind::Integer;
    n.oversized = token.oversized;
    n.integer = token.integer;
    n.real = token.real;
    out = tree_.add(std::move(n));
  } else if (token.symbol("(")) {
    next();
    LEMMA_TRY(Items items, list(")", token));
    if (items.condition >= 0) return source_.error(tree_[items.condition].place, "a condition stands after a fold's index, as in sum(j : j <= i) e");
    for (const std::string& label : items.labels) {
      if (!label.empty()) return source_.error(token.place, "found `" + label + " =` in a parenthesis, expected an expression");
    }
    if (items.items.size() == 1) {
      tree_.nodes[size_t(items.items[0])].parenthesised = true;
      out = items.items[0];
    } else if (items.items.empty()) {
      return source_.error(token.place, "found `()`, expected an expression in the parenthesis");
    } else {
      Node n;
      n.kind = NodeKind::Tuple;
      n.place = token.place;
      n.items = std::move(items.items);
      out = tree_.add(std::move(n));
    }
  } else if (token.kind == TokenKind::Name && !token.word("else") && !token.word("and") && !token.word("or")) {
    out = token.word("scan") && peek(1).kind == TokenKind::Name ? scanned() : named();
  } else {
    return found("an expression", spelled_otherwise());
  }
  if (!out.ok()) return out.error();
  --depth_;
  return out;
}

base::Result<NodeId> Parser::scanned() {
  const Place place = next().place;
  LEMMA_TRY(const NodeId node, named());
  Node& n = tree_.nodes[size_t(node)];
  if (n.kind != NodeKind::Call || n.body < 0) {
    return source_.error(place, "`scan` stands before a fold, as in scan sum(t) e", "write scan sum(t) e");
  }
  n.scan = true;
  return node;
}

base::Result<NodeId> Parser::named() {
  const Token name = next();
  Node n;
  n.place = name.place;
  n.text = name.text;
  n.quoted = name.quoted;
  if (peek().symbol("[")) {
    const Token open = next();
    LEMMA_TRY(Items items, list("]", open));
    for (const std::string& label : items.labels) {
      if (!label.empty()) return source_.error(open.place, "found `" + label + " =` in brackets, expected an index");
    }
    if (!peek().symbol("(")) {
      // A read. Its base is a node of its own, so that a reader of the tree sees names in one place only.
      Node base = n;
      base.kind = NodeKind::Name;
      n.kind = NodeKind::Read;
      n.items.push_back(tree_.add(std::move(base)));
      n.items.insert(n.items.end(), items.items.begin(), items.items.end());
      n.condition = items.condition;
      n.maybe = take("?");
      return tree_.add(std::move(n));
    }
    if (items.condition >= 0) return source_.error(tree_[items.condition].place, "a condition stands in the parentheses after the parameters");
    n.params = std::move(items.items);
  }
  if (!peek().symbol("(")) {
    n.kind = NodeKind::Name;
    return tree_.add(std::move(n));
  }
  n.kind = NodeKind::Call;
  n.called = true;
  const Token open = next();
  LEMMA_TRY(Items items, list(")", open));
  n.items = std::move(items.items);
  n.labels = std::move(items.labels);
  n.condition = items.condition;
  if (begins_operand(peek()) && !at_end_word()) {
    // The body of a fold: a product.
    LEMMA_TRY(n.body, binary(product_level));
  }
  return tree_.add(std::move(n));
}

base::Result<Parser::Items> Parser::list(std::string_view close, const Token& open) {
  Items out;
  const auto unclosed = [&]() {
    base::Diagnostic d = found("`,` or `" + std::string(close) + "`");
    d.notes.push_back({source_.span(open.place), "the bracket opened here"});
    return d;
  };
  if (take(close)) return out;
  while (true) {
    if (peek().symbol(":")) break;
    std::string label;
    if (peek().kind == TokenKind::Name && peek(1).symbol("=")) {
      label = next().text;
      next();
    }
    if (peek().kind == TokenKind::End) return unclosed();
    LEMMA_TRY(const NodeId item, expression());
    out.items.push_back(item);
    out.labels.push_back(std::move(label));
    if (take(",")) {
      if (take(close)) return out;  // a trailing comma
      continue;
    }
    if (peek().symbol(":") || peek().symbol(close)) break;
    return unclosed();
  }
  if (take(":")) {
    LEMMA_TRY(out.condition, expression());
  }
  // Labelled options may follow the condition: scan sum(t : t < n, reverse).
  while (take(",")) {
    std::string label;
    if (peek().kind == TokenKind::Name && peek(1).symbol("=")) {
      label = next().text;
      next();
    }
    LEMMA_TRY(const NodeId item, expression());
    out.items.push_back(item);
    out.labels.push_back(std::move(label));
  }
  if (!take(close)) return unclosed();
  return out;
}

}  // namespace lemma::syntax
