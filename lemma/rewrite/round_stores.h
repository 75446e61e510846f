// States the rounding of a stored type where other nodes read the value.
//
//     c[i<n] : i8 = e[i]                    =>     c[i<n] : i8 = round_to[i8](e[i])
//     c[i<n] : f16 = sum(j<m) x[i, j]       =>     c.wide[i<n] = sum(j<m) x[i, j]
//                                                  c[i<n] : f16 = round_to[f16](c.wide[i])
//
// A value is what its type holds, also while it stays in registers or moves into its readers: integers wrap, floats are
// rounded. Wherever the value lives afterwards, wide or narrow, its readers see the same. What only leaves as an output
// of its own type is rounded by its store. Scatters round in their buffer.
//
// Claim: exact.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph round_stores(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
