// A condition that puts the identity in place of a term becomes part of the domain, so that the term is never computed.
//
//     y = [i<n | sum j<n] select(j <= i, x[i, j], 0)       =>    y = [i<n | sum j<n : j <= i] x[i, j]
//     y = [i<n | sum j<n] select(j <= i, p[i, j], 0)*v[j]  =>    y = [i<n | sum j<n : j <= i] p[i, j]*v[j]
//     y = [i<n | max j<n] s[i, j] + select(c[j], 0, -inf)  =>    y = [i<n | max j<n : c[j]] s[i, j]
//
// Under sum (0), product (1), max and min (their infinities), any, all, and a rescaled sum (a score of -inf); never under
// a reduction that tells which element it took, since it may take a masked one. The condition must be one over integers:
// indices, sizes, integer and bool reads. A finite stand-in for -inf (-1e4 or less) counts only where `loose` is allowed.
//
// Claim: real where the condition covers the whole term; finite where it covers a factor or an added term of it.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph recognise_domain(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
