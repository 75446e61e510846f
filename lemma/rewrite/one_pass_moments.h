// A sum and the sum of squared differences from its mean become one pass.
//
//     s = [i<n | sum j<k] x[i, j]                         =>      (_, s, v) = [i<n | welford j<k] x[i, j]
//     v = [i<n | sum j<k] (x[i, j] - s[i] / k)^2
//
// The mean is seen through the maps between the two sums. Conditions: one x over both, no domain (the count is then a
// product of extents), the mean is the sum divided by just that count.
//
// Which form is more accurate depends on how the sums are split, so this is a choice and not part of the default order.
//
// Claim: finite (an infinite element gives nan in other places).
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph one_pass_moments(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
