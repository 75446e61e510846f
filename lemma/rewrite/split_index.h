// A dimension that every reader reads in two coupled places becomes two outputs over half of it.
//
//     h = [t<n, f<2*k | sum d<e] x[t, d]*w[f, d]       =>    (h0, h1) = [t<n, f<k | sum, sum d<e]
//     y = [t<n, f<k] g(h[t, f], h[t, f + k])                              (x[t, d]*w[f, d], x[t, d]*w[f + k, d])
//                                                            y = [t<n, f<k] g(h0[t, f], h1[t, f])
//
// Halves (f and f + k) and pairs (2*f and 2*f + 1). One kernel then holds both halves when it combines them. Conditions:
// all readers read that way; a map, or a reduction whose combine is elementwise.
//
// Claim: exact.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph split_index(const tensor::Graph& graph, const Context& context);

}  // namespace lemma::rewrite
