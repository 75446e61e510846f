// The statement walkers: every pass over tile programs is one function handed to one of these.
//
//     edit(block, f)   each statement, its bodies already edited, becomes the statements f returns (none, one or many)
//     visit(block, f)  each statement before its bodies, in order
//     bodies(stmt)     the blocks a statement owns
//
// Blocks nest at most kMaxNesting deep (validate and the parser hold programs to it), so walks may follow the nesting.
#pragma once

#include <functional>
#include <vector>

#include "lemma/tile/program.h"

namespace lemma::tile {

inline constexpr int kMaxNesting = 64;

using Edit = std::function<Block(Stmt)>;
Block edit(Block block, const Edit& f);

std::vector<Block*> bodies(Stmt& stmt);
std::vector<const Block*> bodies(const Stmt& stmt);

void visit(const Block& block, const std::function<void(const Stmt&)>& f);

// What an owner of names replaces in a statement: its own parts only, not those of its bodies. Unset members keep.
struct Parts {
  std::function<int(int)> buffer;
  std::function<Var(Var)> bound;                       // where a variable is bound
  std::function<view::Form(const view::Form&)> form;
  std::function<view::Formula(const view::Formula&)> formula;
  std::function<scalar::Expr(scalar::Expr)> expr;      // never asked about an invalid one
  std::function<monoid::MonoidRef(const monoid::MonoidRef&)> monoid;
};
void replace_parts(Stmt& stmt, const Parts& parts);

// The variables a statement binds: of the statement itself, or (Let) from here to the end of its block.
std::vector<Var> bound_variables(const Stmt& stmt);

// What a statement is called in text and messages: "map", "gemm", ...
const char* word(const Stmt& stmt);

}  // namespace lemma::tile
