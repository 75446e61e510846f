// Equality of programs up to what carries no meaning: numbers and names of variables, the order of block-local
// buffers, comments, and the arenas that expressions live in.
#pragma once

#include "lemma/tile/program.h"

namespace lemma::tile {

bool equal(const Program& a, const Program& b);

// The representative of a program's class of equals: expressions in `arena`, buffers and variables numbered by first
// appearance, local names and comments gone. `monoids` collects one representative for each definition.
Program canonical(const Program& program, const scalar::ArenaRef& arena, std::vector<monoid::MonoidRef>& monoids);

}  // namespace lemma::tile
