// Which contractions may be recomputed inside the tiles of a reader instead of being written and read.
//
//     s = [i<n, j<m | sum c<k] q[i, c]*k[j, c]
//     (m, l, a) = [i<n, e<d | rescaled_sum j<m] (s[i, j], 1, v[j, e])        s is needed tile by tile of i and j
//
// This is an analysis: the graph says which pairs are possible and what each costs; a schedule decides.
#pragma once

#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct NestCandidate {
  tensor::Tensor contraction;
  tensor::Tensor reader;
  int read = 0;                    // the read of the contraction by the reader
  std::vector<int> index;          // per point of the contraction (by output dimension), the reader's index
  bool streams = false;            // one of those is reduced by the reader, so that the contraction is never held whole
  bool only_reader = false;        // nothing else reads the contraction
  std::vector<int> repeated;       // points of the reader the contraction does not depend on: it is recomputed for each
                                   // tile of these unless the tile spans them
};

std::vector<NestCandidate> nest_contractions(const tensor::Graph& graph);

}  // namespace lemma::rewrite
