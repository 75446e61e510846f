// Test library: random graphs over all constructs and storage types, with the sizes to call them with.
//
// Maps with domains, guarded and optional reads, shifts, strides, reversals, floor and mod views, gathers by stored and
// computed keys, reductions and scans by every library monoid over affine and data-dependent domains, contractions with
// epilogues, windows with borders, weights by shifted exponentials, selections from contractions, scatters, several
// outputs, values kept in narrow types, outputs that take over an input's storage, extents 0 to 40, constant and symbolic.
//
// Two evaluations in different orders and precisions agree closely, because what is not continuous (comparisons, floors,
// the place of a best element) is only made of values that f32 holds exactly: the generator keeps track of how fine and
// how large each value is. The same options give the same graph on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::random_graphs {

struct WideOptions {
  uint64_t seed = 1;
  int steps = 3;               // constructs, some of several nodes
  int64_t most_points = 4000;  // of one node's iteration space
};

struct Sample {
  tensor::Graph graph;                     // every extent that is not a small literal is a size
  std::vector<tensor::Binding> sizes;      // all of them
  std::vector<tensor::Binding> constant;   // those that are to be constants of the program
  bool narrow = false;         // some value on the way is stored in fewer bits than f32
};

Sample generate_wide(const WideOptions& options);

}  // namespace lemma::random_graphs
