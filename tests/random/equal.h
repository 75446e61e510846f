// Test library: evaluates two graphs with the oracle on the same random inputs and says where they differ.
#pragma once

#include <cstdint>
#include <string>

#include "lemma/tensor/eval.h"
#include "lemma/tensor/graph.h"

namespace lemma::random_graphs {

struct Inputs {
  uint64_t seed = 1;
  double special = 0;       // share of float elements that are -inf (and, with `nonfinite`, +inf and nan)
  bool nonfinite = false;
  double low = -2, high = 2;
};

// A random array for an input whose extents are constants. Integers lie in the stated range, else in [-2, 6).
tensor::Array random_array(const tensor::Input& input, const Inputs& how, uint64_t salt);

// Empty if every output of `b` equals the same output of `a`, else what differs: output, element, both values. Equal is
// up to `tolerance`, relative to the larger magnitude and 1; nan equals nan only. Sizes that are unbound get `size`.
std::string difference(const tensor::Graph& a, const tensor::Graph& b, const Inputs& how, double tolerance = 1e-7,
                       int64_t size = 5);

// The graph with a derived node replaced by the definition it records; the graph itself if the node has none.
tensor::Graph with_definition(const tensor::Graph& graph, tensor::Tensor node);

}  // namespace lemma::random_graphs
