// The walker every graph pass is written with: old nodes go in, in order; what stands for them comes out, interned.
//
//     tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor old, tensor::Node& node) -> tensor::Replaced {
//       ... edit `node`; its reads already name values of the new graph ...
//       return {};                        // (a) the edited node stands for the old one
//     });
//
// `build.add(node)` appends a further node, before the one at hand (b). Returning values instead of {} lets them stand
// for the old node's outputs, one each, and drops `node` (c). Old nodes that no output reaches are not visited; new ones
// that no output reaches are dropped at the end. Inputs are the signature and always stay, in order. Two equal nodes
// (names, spans and definitions aside) become one. The whole is linear in the graph.
//
// Definitions do not keep what they replaced alive: where a live node's definition stands on a value that nothing else
// reads, the definition takes the producer in and stands on what that reads. A definition's sizes are the graph's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// The values that stand for the outputs of a node; nothing: the node itself does.
using Replaced = std::optional<std::vector<Value>>;

class Rebuild {
 public:
  explicit Rebuild(const Graph& old);
  ~Rebuild();
  Rebuild(const Rebuild&) = delete;
  Rebuild& operator=(const Rebuild&) = delete;

  const Graph& old() const { return old_; }
  const Graph& graph() const { return graph_; }   // the new graph so far
  // Appends a node over values of the new graph, or finds its equal there.
  Tensor add(Node node);
  // The new value that stands for an old one, of a node already visited.
  Value value(Value old) const;

 private:
  friend Graph rebuild(const Graph& graph, const std::function<Replaced(Rebuild&, Tensor, Node&)>& f);
  struct Interned;
  void visit(Tensor old, const std::function<Replaced(Rebuild&, Tensor, Node&)>& f);
  Graph finish();

  const Graph& old_;
  Graph graph_;
  std::vector<std::vector<Value>> values_;        // per old node, per output
  std::unique_ptr<Interned> interned_;
};

using Replace = std::function<Replaced(Rebuild& build, Tensor old, Node& node)>;
Graph rebuild(const Graph& graph, const Replace& f);

// Without the nodes that no output reaches; nothing else changes but the ids.
Graph remove_dead(const Graph& graph);

// Equal but for names, spans and definitions; both over one arena.
bool same(const Node& a, const Node& b);
size_t hash(const Node& node);

}  // namespace lemma::tensor
