#include "lemma/rewrite/round_stores.h"

#include <set>

#include "lemma/rewrite/expand.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Value;
using view::Form;

// Values that nodes on which an output hangs, or outputs of another type, read.
std::set<Value> read_values(const Graph& graph) {
  std::set<Value> out;
  std::vector<char> live(graph.nodes.size());
  for (const tensor::GraphOutput& o : graph.outputs) live[size_t(o.value.node.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (Value v : tensor::sources(graph.nodes[n])) {
      live[size_t(v.node.index)] = true;
      out.insert(v);
    }
  }
  for (const tensor::GraphOutput& o : graph.outputs) {
    if (o.type != tensor::type(graph, o.value)) out.insert(o.value);
  }
  return out;
}

// The same element, rounded, as a map over a value's dimensions.
Comprehension rounding_map(const Comprehension& node, const tensor::Output& output, Value wide, scalar::Arena& arena) {
  Comprehension map;
  map.name = output.name;
  map.span = node.span;
  tensor::Read read;
  read.source = wide;
  tensor::Output out{output.name, output.type, 0, {}, false};
  for (size_t d = 0; d < output.dims.size(); ++d) {
    const tensor::IndexInfo& index = node.indices[size_t(output.dims[d])];
    map.indices.push_back({index.name, index.extent, tensor::Role::Point});
    read.coords.push_back(Form::index(int(d)));
    out.dims.push_back(int(d));
  }
  map.reads.push_back(std::move(read));
  map.body.push_back(round_stored(scalar::arg(arena, scalar::kind_of(output.type), 0), output.type));
  map.outputs.push_back(std::move(out));
  return map;
}

}  // namespace

Graph round_stores(const Graph& graph, const Context&) {
  const std::set<Value> read = read_values(graph);
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor old, tensor::Node& node) -> tensor::Replaced {
    auto* c = std::get_if<Comprehension>(&node);
    if (!c) return std::nullopt;
    std::vector<int> narrow;
    for (size_t o = 0; o < c->outputs.size(); ++o) {
      if (read.count({old, int(o)}) && stored_narrow(graph, {old, int(o)})) narrow.push_back(int(o));
    }
    if (narrow.empty()) return std::nullopt;
    if (!c->monoid) {
      for (int o : narrow) {
        tensor::Output& output = c->outputs[size_t(o)];
        const Expr value = c->body[size_t(output.result)];
        const Expr rounded = round_stored(value, output.type);
        if (rounded == value) continue;
        output.result = int(c->body.size());
        c->body.push_back(rounded);
      }
      return std::nullopt;
    }
    const Comprehension before = *c;
    for (int o : narrow) {
      tensor::Output& output = c->outputs[size_t(o)];
      if (c->name == output.name) c->name += ".wide";
      output.name += ".wide";
      output.type = scalar::dtype_of(scalar::kind_of(output.type));
    }
    const tensor::Tensor wide = build.add(*c);
    std::vector<Value> values;
    for (size_t o = 0; o < before.outputs.size(); ++o) values.push_back({wide, int(o)});
    for (int o : narrow) {
      values[size_t(o)] = {build.add(rounding_map(before, before.outputs[size_t(o)], {wide, o}, *build.graph().arena)), 0};
    }
    return values;
  });
}

}  // namespace lemma::rewrite
