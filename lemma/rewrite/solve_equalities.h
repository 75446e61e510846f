// An equality in a reduction's domain that fixes a reduced index removes the index.
//
//     y = [p<n | sum i<m, r<3 : 2*i + r == p] x[i]*w[r]      =>     y = [p<n | sum r<3 : (p - r) % 2 == 0 and
//                                                                       0 <= (p - r) // 2 < m] x[(p - r) // 2]*w[r]
//     y = [t<n | sum j<m : j == key[t]] x[j]                 =>     y = [t<n] select(0 <= key[t] < m, x[key[t]], 0)
//
// By exact division: a*i + rest == 0 has the one solution -rest / a where a divides rest, and none elsewhere. A reduction
// left without reduced indices becomes a map, where what its domain reads may be read everywhere.
//
// Claim: exact.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph solve_equalities(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
