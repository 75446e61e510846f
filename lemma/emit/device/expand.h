// Elementary functions and narrow formats in terms of what every dialect has: + - * /, floor, round, square root,
// comparisons, selects, integer and bit operations. The constants and methods are the C target's (docs/accuracy.md), without
// tricks that a compiler may undo, so that one accuracy statement serves all dialects.
#pragma once

#include <span>
#include <vector>

#include "lemma/scalar/expr.h"

namespace lemma::emit::device {

// Rebuilt in `into`; f64 functions stay as they are, and `native_exp` keeps exp and exp2.
std::vector<scalar::Expr> expand_functions(std::span<const scalar::Expr> roots, scalar::Arena& into, bool native_exp = false);

// A stored narrow float from its bits (U32), and back, to nearest even.
scalar::Expr decode(scalar::Expr bits, scalar::DType type);
scalar::Expr encode(scalar::Expr value, scalar::DType type);

}  // namespace lemma::emit::device
