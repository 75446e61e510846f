// Weights that read a max and a sum per row read their logarithm instead, one value.
//
//     (m, l) = [i<n | rescaled_sum j<k] (s[i, j], 1)        =>    L = [i<n] select(l[i] == 0, inf, m[i] + log(l[i]))
//     p = [i<n, j<k] exp(s[i, j] - m[i]) / l[i]                   p = [i<n, j<k] exp(s[i, j] - L[i])
//
// So that what recomputes the weights reads one row. Guards for l == 0 and for a score of -inf hold by themselves: L is
// inf where l is 0. Larger exponents round more, so this is a choice under the error budget and off by default.
//
// Claim: finite.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph fold_normaliser(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
