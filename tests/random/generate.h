// Test library: random graphs from a seed, over the constructs of the graph: maps, reductions by every library monoid,
// scans, domains, guarded and gathered reads, broadcasts, transposes, windows, several outputs, symbolic sizes, and the
// texts that rewrites look for (weights by shifted exponentials, moments, distances, masks).
//
// Every graph is valid, its outputs are total, and its values stay moderate, so that two evaluations in different orders
// agree to about 1e-9. The same options give the same graph on every machine.
#pragma once

#include <cstdint>

#include "lemma/tensor/graph.h"

namespace lemma::random_graphs {

struct GenerateOptions {
  uint64_t seed = 1;
  int steps = 5;             // constructs, some of several nodes
  bool scans = true;
  bool gathers = true;
  bool integers = true;
  bool symbolic = false;     // extents are sizes
};

tensor::Graph generate(const GenerateOptions& options);

}  // namespace lemma::random_graphs
