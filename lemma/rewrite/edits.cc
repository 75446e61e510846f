#include "lemma/rewrite/edits.h"

#include <unordered_set>

#include "lemma/base/check.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {

using tensor::Comprehension;
using tensor::Graph;
using tensor::Node;
using tensor::Tensor;
using tensor::Value;

namespace {

template <class F>
void map_sources(Node& node, const F& f) {
  if (auto* c = std::get_if<Comprehension>(&node)) {
    for (tensor::Read& r : c->reads) r.source = f(r.source);
    for (Value& v : c->definition_inputs) v = f(v);
  } else if (auto* s = std::get_if<tensor::Scatter>(&node)) {
    for (tensor::Read& r : s->reads) r.source = f(r.source);
    if (s->base) s->base = f(*s->base);
  }
}

std::vector<Value> needs(const Node& node) {
  std::vector<Value> out = tensor::sources(node);
  if (const auto* c = std::get_if<Comprehension>(&node)) {
    out.insert(out.end(), c->definition_inputs.begin(), c->definition_inputs.end());
  }
  return out;
}

// Operands before users, otherwise in the old order.
std::vector<size_t> dependency_order(const Graph& graph) {
  enum : char { New, Open, Done };
  std::vector<char> state(graph.nodes.size(), New);
  std::vector<size_t> order, stack;
  for (size_t root = 0; root < graph.nodes.size(); ++root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const size_t n = stack.back();
      if (state[n] == New) {
        state[n] = Open;
        const std::vector<Value> sources = needs(graph.nodes[n]);
        for (size_t s = sources.size(); s-- > 0;) {
          const size_t source = size_t(sources[s].node.index);
          LEMMA_CHECK(state[source] != Open, "a rewrite made a cycle");
          if (state[source] == New) stack.push_back(source);
        }
      } else {
        stack.pop_back();
        if (state[n] == Open) {
          state[n] = Done;
          order.push_back(n);
        }
      }
    }
  }
  return order;
}

}  // namespace

Graph settle(Edits edits) {
  Graph& graph = edits.graph;
  const auto resolve = [&](Value v) {
    for (auto it = edits.redirect.find(v); it != edits.redirect.end(); it = edits.redirect.find(v)) v = it->second;
    return v;
  };
  for (Node& n : graph.nodes) map_sources(n, resolve);
  for (tensor::GraphOutput& o : graph.outputs) o.value = resolve(o.value);

  const std::vector<size_t> order = dependency_order(graph);
  std::vector<Tensor> moved(graph.nodes.size());
  const auto move = [&](Value v) { return Value{moved[size_t(v.node.index)], v.output}; };
  Graph sorted;
  sorted.name = graph.name;
  sorted.arena = graph.arena;
  sorted.sizes = graph.sizes;
  for (size_t n : order) {
    map_sources(graph.nodes[n], move);
    moved[n] = sorted.add(std::move(graph.nodes[n]));
  }
  for (tensor::GraphOutput o : graph.outputs) {
    o.value = move(o.value);
    if (o.updates) o.updates = moved[size_t(o.updates->index)];
    sorted.outputs.push_back(std::move(o));
  }
  return tensor::rebuild(sorted, {});
}

std::vector<std::vector<int>> users_of(const Graph& graph) {
  std::vector<std::vector<int>> out(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (Value v : tensor::sources(graph.nodes[n])) {
      std::vector<int>& users = out[size_t(v.node.index)];
      if (users.empty() || users.back() != int(n)) users.push_back(int(n));
    }
  }
  return out;
}

bool depends_on(const Graph& graph, Value value, Tensor on) {
  std::unordered_set<int> seen;
  std::vector<int> work{value.node.index};
  while (!work.empty()) {
    const int n = work.back();
    work.pop_back();
    if (n == on.index) return true;
    if (n < on.index || !seen.insert(n).second) continue;
    for (Value v : tensor::sources(graph.nodes[size_t(n)])) work.push_back(v.node.index);
  }
  return false;
}

}  // namespace lemma::rewrite
