#include "lemma/driver/work.h"

#include "lemma/driver/execute.h"
#include "lemma/runtime/random.h"

namespace lemma::driver {
namespace {

using scalar::Op;
using view::Atom;
using view::AtomKind;
using Sizes = std::vector<tensor::Binding>;

bool counts(const scalar::Expr& e) {
  switch (e.op()) {
    case Op::Const:
    case Op::Arg:
    case Op::Present:
    case Op::Index:
    case Op::Size:
    case Op::Select:
    case Op::Cast:
    case Op::RoundTo:
    case Op::Bits:
    case Op::Not:
    case Op::And:
    case Op::Or:
      return false;
    default: return scalar::shape(e.op()) != scalar::OpShape::Compare;
  }
}

// An operation over indices, sizes and constants alone is address arithmetic or hoisted.
double count_body(const std::vector<scalar::Expr>& body) {
  double operations = 0;
  std::vector<scalar::Expr> valid;
  for (const scalar::Expr& e : body) {
    if (e.valid()) valid.push_back(e);
  }
  std::vector<bool> reads;
  const std::vector<scalar::Expr> nodes = scalar::reachable(valid);
  uint32_t most = 0;
  for (const scalar::Expr& e : nodes) most = std::max(most, e.index() + 1);
  reads.resize(most, false);
  for (const scalar::Expr& e : nodes) {
    bool any = e.is(Op::Arg);
    for (const scalar::Expr& operand : e.args()) any = any || reads[operand.index()];
    reads[e.index()] = any;
    if (any && counts(e)) operations += 1;
  }
  return operations;
}

using Index = std::vector<int64_t>;

// Whether the domain holds at a point; a condition on data counts as held.
bool holds(const view::Formula& domain, const Index& index, const Sizes& sizes) {
  if (domain.is_always() || domain.uses(AtomKind::Data)) return true;
  return domain.evaluate([&](const Atom& atom) {
    return atom.kind == AtomKind::Size ? sizes[size_t(atom.id)].value : index[size_t(atom.id)];
  });
}

Index extents_of(const std::vector<tensor::IndexInfo>& indices, const Sizes& sizes) {
  std::vector<view::Form> forms;
  for (const tensor::IndexInfo& index : indices) forms.push_back(index.extent);
  return evaluate_extents(forms, sizes);
}

// Whether anything asks for a value at a point. Only readers that read at their own indices are followed, and a few of
// them one behind another; every other value counts as asked for.
class Demand {
 public:
  Demand(const tensor::Graph& graph, const Sizes& sizes) : sizes_(sizes), nodes_(graph.nodes.size()) {
    for (const tensor::GraphOutput& output : graph.outputs) node(output.value.node).output = true;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      Node& here = nodes_[n];
      here.node = &graph.nodes[n];
      const std::vector<tensor::Read>* reads = nullptr;
      if (const auto* map = std::get_if<tensor::Comprehension>(here.node)) {
        here.extents = extents_of(map->indices, sizes);
        here.domain = &map->domain;
        reads = &map->reads;
      } else if (const auto* scatter = std::get_if<tensor::Scatter>(here.node)) {
        here.extents = extents_of(scatter->indices, sizes);
        here.domain = &scatter->domain;
        reads = &scatter->reads;
        if (scatter->base) node(scatter->base->node).output = true;  // taken over whole
      }
      for (size_t r = 0; reads && r < reads->size(); ++r) {
        node((*reads)[r].source.node).readers.push_back({int(n), &(*reads)[r]});
      }
    }
  }

  bool at(int node, const Index& index, int depth = 0) const {
    constexpr int kDepth = 4;
    const Node& here = nodes_[size_t(node)];
    if (here.output || depth == kDepth) return true;
    const auto* map = std::get_if<tensor::Comprehension>(here.node);
    if (!map) return true;
    for (const Reader& reader : here.readers) {
      if (asks(reader, *map, index, depth)) return true;
    }
    return false;
  }

 private:
  struct Reader {
    int node;
    const tensor::Read* read;
  };
  struct Node {
    const tensor::Node* node = nullptr;
    const view::Formula* domain = nullptr;
    Index extents;
    std::vector<Reader> readers;
    bool output = false;
  };
  Node& node(tensor::Tensor t) { return nodes_[size_t(t.index)]; }

  bool asks(const Reader& reader, const tensor::Comprehension& source, const Index& index, int depth) const {
    const Node& there = nodes_[size_t(reader.node)];
    const std::vector<int>& dims = source.outputs[size_t(reader.read->source.output)].dims;
    Index place(there.extents.size(), -1);
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto own = reader.read->coords[d].as_index();
      if (!own) return true;
      const int64_t at = index[size_t(dims[d])];
      if (at >= there.extents[size_t(*own)] || (place[size_t(*own)] >= 0 && place[size_t(*own)] != at)) return false;
      place[size_t(*own)] = at;
    }
    for (const view::Formula* formula : {there.domain, &reader.read->guard}) {
      for (int i : formula->ids(AtomKind::Index)) if (place[size_t(i)] < 0) return true;
      if (!holds(*formula, place, sizes_)) return false;
    }
    const auto* map = std::get_if<tensor::Comprehension>(there.node);
    for (const tensor::Output& output : map ? map->outputs : std::vector<tensor::Output>()) {
      for (int i : output.dims) if (place[size_t(i)] < 0) return true;
    }
    return at(reader.node, place, depth + 1);
  }

  const Sizes& sizes_;
  std::vector<Node> nodes_;
};

// How many points the node is evaluated at: the share of sampled ones where its domain holds and that are asked for.
double points(const std::vector<tensor::IndexInfo>& indices, const view::Formula& domain, const Sizes& sizes,
              const Demand& demand, int node) {
  const Index extents = extents_of(indices, sizes);
  double product = 1;
  for (const int64_t extent : extents) product *= double(extent);
  if (product <= 0) return 0;
  constexpr int kSamples = 4096;
  int held = 0;
  Index index(extents.size());
  for (int s = 0; s < kSamples; ++s) {
    for (size_t d = 0; d < extents.size(); ++d) index[d] = int64_t(runtime::hash(d + 1, uint64_t(s)) % uint64_t(extents[d]));
    held += holds(domain, index, sizes) && demand.at(node, index);
  }
  return product * double(held) / kSamples;
}

}  // namespace

Work count_work(const tensor::Graph& graph, const Sizes& sizes) {
  Work work;
  const auto add_bytes = [&](scalar::DType type, const std::vector<view::Form>& forms) {
    double count = 1;
    for (const int64_t extent : evaluate_extents(forms, sizes)) count *= double(extent);
    work.bytes += count * scalar::bits(type) / 8;
  };
  const Demand demand(graph, sizes);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const tensor::Node& node = graph.nodes[n];
    if (const auto* input = std::get_if<tensor::Input>(&node)) {
      add_bytes(input->type, input->extents);
    } else if (const auto* scatter = std::get_if<tensor::Scatter>(&node)) {
      work.operations += points(scatter->indices, scatter->domain, sizes, demand, int(n)) *
                         (count_body({scatter->body}) + (scatter->monoid ? 1 : 0));
    } else {
      const auto& map = std::get<tensor::Comprehension>(node);
      const double combines = map.monoid ? double(map.components.size()) : 0;
      work.operations += points(map.indices, map.domain, sizes, demand, int(n)) * (count_body(map.body) + combines);
    }
  }
  for (const tensor::GraphOutput& output : graph.outputs) {
    add_bytes(output.type, tensor::extents(graph, output.value));
  }
  return work;
}

}  // namespace lemma::driver
