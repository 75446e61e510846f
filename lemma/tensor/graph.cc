#include "lemma/tensor/graph.h"

#include "lemma/base/check.h"
#include "lemma/base/match.h"

namespace lemma::tensor {

using base::match;

std::vector<int> Comprehension::with_role(Role role) const {
  std::vector<int> out;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].role == role) out.push_back(int(i));
  }
  return out;
}

const std::string& name(const Graph& graph, Value value) {
  return match(
      graph.node(value.node), [](const Input& n) -> const std::string& { return n.name; },
      [&](const Comprehension& n) -> const std::string& { return n.outputs[size_t(value.output)].name; },
      [](const Scatter& n) -> const std::string& { return n.name; });
}

std::vector<view::Form> extents(const Graph& graph, Value value) {
  return match(
      graph.node(value.node), [](const Input& n) { return n.extents; },
      [&](const Comprehension& n) {
        std::vector<view::Form> out;
        for (int d : n.outputs[size_t(value.output)].dims) out.push_back(n.indices[size_t(d)].extent);
        return out;
      },
      [](const Scatter& n) { return n.extents; });
}

scalar::DType type(const Graph& graph, Value value) {
  return match(
      graph.node(value.node), [](const Input& n) { return n.type; },
      [&](const Comprehension& n) { return n.outputs[size_t(value.output)].type; },
      [](const Scatter& n) { return n.type; });
}

scalar::Kind kind(const Graph& graph, Value value) { return scalar::kind_of(type(graph, value)); }

view::Formula domain_of(const Graph& graph, Value value) {
  const auto* node = std::get_if<Comprehension>(&graph.node(value.node));
  if (!node || node->monoid) return {};
  const std::vector<int>& dims = node->outputs[size_t(value.output)].dims;
  return node->domain.map_indices([&](int id) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == id) return view::Form::index(int(d));
    }
    LEMMA_CHECK(false, "a map's domain uses an index that its output lacks");
    return view::Form();
  });
}

int output_count(const Node& node) {
  const auto* c = std::get_if<Comprehension>(&node);
  return c ? int(c->outputs.size()) : 1;
}

std::vector<Value> sources(const Node& node) {
  std::vector<Value> out;
  match(
      node, [](const Input&) {},
      [&](const Comprehension& n) {
        for (const Read& r : n.reads) out.push_back(r.source);
      },
      [&](const Scatter& n) {
        for (const Read& r : n.reads) out.push_back(r.source);
        if (n.base) out.push_back(*n.base);
      });
  return out;
}

std::vector<int> use_counts(const Graph& graph) {
  std::vector<int> out(graph.nodes.size(), 0);
  for (const Node& n : graph.nodes) {
    for (Value v : sources(n)) ++out[size_t(v.node.index)];
  }
  for (const GraphOutput& o : graph.outputs) ++out[size_t(o.value.node.index)];
  return out;
}

}  // namespace lemma::tensor
