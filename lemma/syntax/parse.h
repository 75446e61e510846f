// Surface expressions and the parser of them, shared by every text of Lemma. No names are resolved here.
//
// Precedence, loosest first: or, and, not, comparisons, |, ^, &, << >>, + -, * / // %, unary - and ~, then what binds
// to a name: reads x[i, j], x[i]?, calls f(a, b), folds sum(j : j <= i) body, and `else`, which binds to the read, call
// or parenthesis on its left. A fold's body runs through * / // % and stops at + and -, comparisons, else and `,`.
//
// Nesting is bounded (max_depth); chains of one precedence are one node, however long.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lemma/syntax/token.h"

namespace lemma::syntax {

inline constexpr int max_depth = 160;

using NodeId = int;  // in Tree::nodes; -1 for none

enum class NodeKind : uint8_t {
  Number,   // text, integer / real
  Name,     // text
  Read,     // items[0] is the base (a Name), the others coordinates; condition; maybe (the `?`)
  Call,     // text is the callee; params, items (arguments), condition, body; scan
  Chain,    // items joined by operators of one precedence, left to right
  Compare,  // items joined by comparisons, all of which hold
  Negate,   // items[0]
  Not,      // logical
  Flip,     // bitwise ~
  Else,     // items[0] else items[1]
  Tuple,    // items
};

struct Argument;

struct Node {
  NodeKind kind = NodeKind::Number;
  Place place;                       // of the whole head: a name, an operator, a number
  std::string text;
  bool quoted = false;
  bool integer_literal = false;
  bool oversized = false;
  bool maybe = false;                // a read with `?`
  bool scan = false;                 // a fold with `scan` before it
  bool parenthesised = false;
  uint64_t integer = 0;
  double real = 0;
  std::vector<NodeId> items;
  std::vector<std::string> operators;  // of Chain and Compare: between items
  std::vector<Place> operator_places;
  std::vector<NodeId> params;          // in brackets, of a Call
  std::vector<std::string> labels;     // of a Call's arguments: `initial = e`; empty text for none
  NodeId condition = -1;
  NodeId body = -1;
  bool called = false;                 // of a Call: parentheses stand there (a bare `f[3] x` has none)
};

struct Tree {
  std::vector<Node> nodes;
  NodeId add(Node node) {
    nodes.push_back(std::move(node));
    return NodeId(nodes.size()) - 1;
  }
  const Node& operator[](NodeId id) const { return nodes[size_t(id)]; }
};

// A cursor over tokens that parses expressions into a tree. Owners of statements drive it.
class Parser {
 public:
  Parser(const Source& source, const std::vector<Token>& tokens, Tree& tree)
      : source_(source), tokens_(tokens), tree_(tree) {}

  const Token& peek(size_t ahead = 0) const {
    const size_t i = at_ + ahead;
    return tokens_[i < tokens_.size() ? i : tokens_.size() - 1];
  }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take(std::string_view symbol);
  bool take_word(std::string_view word);
  base::Result<void> expect(std::string_view symbol, const std::string& where);
  base::Result<Token> expect_name(const std::string& what);
  void skip_separators();
  // Words of the statement around that end an expression where a fold's body or an `else` could follow, as in
  // `ceildiv(n, 2) pipelined 3`.
  std::span<const std::string_view> ends;
  const Source& source() const { return source_; }
  Tree& tree() { return tree_; }

  base::Result<NodeId> expression();
  base::Result<NodeId> sum();   // an expression without comparisons, logic and bit operations
  // items up to `close`, with `label = item` and a trailing `: condition`; the opening bracket has been taken.
  struct Items {
    std::vector<NodeId> items;
    std::vector<std::string> labels;
    NodeId condition = -1;
  };
  base::Result<Items> list(std::string_view close, const Token& open);

  base::Diagnostic found(const std::string& expected, std::string suggestion = {}) const;

 private:
  base::Result<NodeId> binary(int level);
  base::Result<NodeId> prefixed(NodeKind kind, int operand_level);
  base::Result<NodeId> unary();
  base::Result<NodeId> primary();
  base::Result<NodeId> named();
  base::Result<NodeId> scanned();
  base::Result<NodeId> guarded(NodeId node);
  base::Result<void> deeper();
  bool begins_operand(const Token& token) const;
  bool at_end_word() const;
  std::string spelled_otherwise() const;

  const Source& source_;
  const std::vector<Token>& tokens_;
  Tree& tree_;
  size_t at_ = 0;
  int depth_ = 0;
  int chained_else_ = 0;   // each is a level of the tree
};

}  // namespace lemma::syntax
