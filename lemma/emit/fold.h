// A monoid's step as expressions over a statement's reads, for states that are single values.
#pragma once

#include <vector>

#include "lemma/emit/body.h"
#include "lemma/monoid/monoid.h"

namespace lemma::emit {

struct Fold {
  std::vector<scalar::Kind> kinds;        // of the components
  std::vector<scalar::Expr> identity;
  std::vector<scalar::Expr> step;         // over the reads, Arg(reads + c) = state c
  std::vector<scalar::Expr> merge;        // over Arg(c) = left state c, Arg(n + c) = right state c
  size_t reads = 0;
};

// Whether no component has axes and no update an inner sum.
bool is_flat(const monoid::Monoid& monoid);
Fold make_fold(Unit& unit, const monoid::Monoid& monoid, const std::vector<scalar::Expr>& body, size_t reads);

}  // namespace lemma::emit
