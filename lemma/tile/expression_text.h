// The text of scalar expressions inside a tile program. An expression is a graph and text is a tree, so what is used
// more than once, and what would nest too deep, gets a name of its own: a `def` line, which the parser replaces again.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lemma/scalar/expr.h"

namespace lemma::tile {

struct LeafNames {
  std::function<std::string(int)> arg;       // a read (or a state) by number
  std::function<std::string(int)> present;   // the whole text
  std::function<std::string(int)> index;
  std::function<std::string(int)> size;
  std::function<std::string()> definition;   // a fresh name for a def
};

struct ExpressionText {
  struct Definition {
    std::string name, text;
  };
  std::vector<Definition> definitions;       // operands before users
  std::vector<std::string> roots;
};

// Reads appear in the text in the order in which `order` (if given) is told of them.
ExpressionText expression_text(std::span<const scalar::Expr> roots, const LeafNames& names,
                               const std::function<void(int read)>& order = {});

std::string constant_text(scalar::Expr constant);

}  // namespace lemma::tile
