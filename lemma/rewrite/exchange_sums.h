// A sum over weighted inner sums becomes one over the inner index, where the weighted values are summed already.
//
//     t = [i<n, j<m | sum c<k] g[i, c]*v[j, c]            =>      r = [i<n | sum c<k] g[i, c]*o[i, c]
//     r = [i<n | sum j<m : D] p[i, j]*t[i, j]
//     o = [i<n, c<k | sum j<m : D] p[i, j]*v[j, c]
//
// t then need not be computed for r. Conditions: o stands in the graph, under the same domain; the inner sum has none.
//
// Claim: finite (a weight of 0 times an infinite inner sum is nan in one order only). Over an empty domain both give 0.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph exchange_sums(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
