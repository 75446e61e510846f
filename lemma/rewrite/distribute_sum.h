// A sum of terms splits where that saves work: where a term does not depend on the summed indices, or its sum is known.
//
//     y = [i<n | sum j<m] (x[i, j] + c[i])        =>     t = [i<n | sum j<m] x[i, j]
//                                                        y = [i<n] t[i] + select(m == 0, 0, m*c[i])
//     y = [i<n | sum j<m] (a[i, j] + b[i, j])     =>     y = [i<n] s[i] + t[i]       where s, t are the terms' sums
//     s = [i<n | sum j<m] a[i, j]                        and stand in the graph already
//
// Conditions: no domain for a term that leaves (its count is then a product of extents).
//
// Claim: real for terms proved finite and for integers, else finite (inf - inf may come or go).
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph distribute_sum(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
