// A reduction becomes partial reductions over blocks of one index and a reduction over the blocks.
//
//     y = [i<n | sum j<m] x[i, j]      =>      p = [i<n, b<8 | sum r<ceildiv(m, 8) : b*ceildiv(m, 8) + r < m]
//                                                  x[i, b*ceildiv(m, 8) + r]
//                                              y = [i<n | sum b<8] p[i, b]
//
// Blocks are contiguous, which keeps the order of the elements where the split index is the outermost of the reduced
// ones, or strided (j = r*count + b), which needs a commutative monoid. The partials are states; what finishes a state
// runs once, after the blocks are combined. A partial over nothing is the identity.
//
// Claim: exact for monoids whose combine rounds nothing (max, min, any, all, the best elements, integers), else real.
#pragma once

#include <optional>
#include <string>

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct SplitOptions {
  std::string node;                 // which reduction, by name; empty: every one
  std::string index;                // which reduced index, by name; empty: the first
  std::optional<int64_t> count;     // how many blocks ...
  std::optional<int64_t> size;      // ... or how many elements a block
  bool strided = false;
};

tensor::Graph split_reduction(const tensor::Graph& graph, const SplitOptions& options, const Context& context);

}  // namespace lemma::rewrite
