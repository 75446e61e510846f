// A sum of squared differences of two values over different points becomes a product of matrices and two short sums.
//
//     d = [i<n, j<m | sum c<k] (a[i, c] - b[j, c])^2     =>     p = [i<n, j<m | sum c<k] a[i, c]*b[j, c]
//                                                               x = [i<n | sum c<k] a[i, c]^2
//                                                               y = [j<m | sum c<k] b[j, c]^2
//                                                               d = [i<n, j<m] max(x[i] + y[j] - 2*p[i, j], 0)
//
// Conditions: no domain; each side has a point of its own that the other lacks. The max with 0 keeps rounding from making
// a square negative; over the reals it changes nothing.
//
// Claim: finite (the difference of two equal infinities is nan either way, an infinite distance may become nan). Exact
// for integers, which need no max.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph expand_square(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
