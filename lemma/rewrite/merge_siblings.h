// Reductions over one space and domain that read a value in common become one, under the product of their monoids; maps
// likewise become one map with several outputs.
//
//     a = [i<n | sum j<m] x[i, j]                 =>    (a, b) = [i<n | sum, max j<m] (x[i, j], x[i, j])
//     b = [i<n | max j<m] x[i, j]
//
// Conditions: the same indices in the same order, equal domains, a value both read, everything the second reads computed
// before the first (so no path leads from one to the other), monoids whose combine is elementwise. Sums of products of
// two values with points of their own stay apart: as contractions they have better forms.
//
// Claim: exact.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct MergeOptions {
  bool maps = false;       // also maps; reductions always
  size_t max_results = 8;  // of one merged node
};

tensor::Graph merge_siblings(const tensor::Graph& graph, const MergeOptions& options, const Context& context);

// Whether a sum multiplies a value over some of the points by one over others (a product of matrices, in general).
bool is_contraction_like(const tensor::Comprehension& node);

}  // namespace lemma::rewrite
