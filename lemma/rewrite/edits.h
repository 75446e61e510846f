// A rewrite that replaces several nodes at once by nodes that stand later or earlier: nodes are appended in any order,
// values are redirected, and `settle` sorts the graph again.
#pragma once

#include <map>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct Edits {
  tensor::Graph graph;                              // the old nodes, and appended ones over old or appended values
  std::map<tensor::Value, tensor::Value> redirect;  // old value -> what every reader reads instead

  explicit Edits(tensor::Graph start) : graph(std::move(start)) {}
};

// The graph with redirections done, nodes in dependency order (old order where it can be kept), equal nodes merged and
// dead ones dropped. A cycle is a bug of the rewrite.
tensor::Graph settle(Edits edits);

// Per node, the nodes that read it.
std::vector<std::vector<int>> users_of(const tensor::Graph& graph);

// Whether `value`'s producer is, or depends on, node `on`; looks only at nodes after `on`.
bool depends_on(const tensor::Graph& graph, tensor::Value value, tensor::Tensor on);

}  // namespace lemma::rewrite
