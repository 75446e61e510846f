// Simplifies what nodes compute at one point, by the scalar rules that the context allows, and drops the reads that
// nothing uses afterwards. A read without a guard is present.
//
//     y = [i<n] select(present, x[i], 0) * 1      =>      y = [i<n] x[i]
//
// Claim: that of the rules that fire.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph simplify_bodies(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
