// A sum of squared differences of two values over different points becomes a product of matrices and two short sums.
//
//     d = [i<n, j<m | sum c<k] (a[i, c] - b[j, c])^2     =>     o = [c<k | sum t<1 : t < m] b[t, c]
//                                                               p = [i<n, j<m | sum c<k] (a[i, c] - o[c])*(b[j, c] - o[c])
//                                                               x = [i<n | sum c<k] (a[i, c] - o[c])^2
//                                                               y = [j<m | sum c<k] (b[j, c] - o[c])^2
//                                                               d = [i<n, j<m] max(x[i] + y[j] - 2*p[i, j], 0)
//
// Distances do not change when both sides move, so floats are measured from one row of the right side: what all rows have
// in common would else be squared and cancel, with all the digits it takes. Rows far from each other and from that one
// still lose digits: a distance is good to 2^-24 of the largest square of a distance from it. Where the row hangs on data
// or guards nothing is subtracted, and `--explain` says so. Integers need no origin.
//
// Conditions: no domain; each side has a point of its own that the other lacks. The max with 0 keeps rounding from making
// a square negative; over the reals it changes nothing.
//
// Claim: finite (a row with an infinity or nan may make any distance nan). Exact
// for integers, which need no max.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph expand_square(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
