// How much work a program is, counted on the graph as it is written: what rates (GFLOP/s, GB/s) are divided by. Each
// operation of a body on floats or integers counts once per point of its domain, each combine of a reduction once per
// term and component; index arithmetic, casts and selects count nothing. A point counts where the node's domain holds and
// some reader's domain asks for it, by the share of sampled points; a condition on data counts as held. Bytes are the least there can be: every input read once, every
// output written once.
#pragma once

#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::driver {

struct Work {
  double operations = 0;
  double bytes = 0;
};

Work count_work(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes);

}  // namespace lemma::driver
