// Two walks: forwards, decide for each read whether its map is spliced, with the cost of the spliced bodies known so far;
// then build the nodes that are still read. Both are linear in the graph and the emitted bodies.
#include "lemma/rewrite/fuse_maps.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/expand.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using tensor::Role;
using view::AtomKind;
using view::Form;

constexpr char kPass[] = "fuse_maps";

// The indices over which each body element is evaluated: all of a map's; of a reduction the index sets of the
// components that its operand is lifted into, and the reduced ones. (A rescaled sum takes a score's exponential once,
// over the max's indices, whatever the other sums have of their own.)
std::vector<IndexSet> evaluated_over(const Comprehension& node) {
  if (is_map(node)) return std::vector<IndexSet>(node.body.size(), with_role(node, Role::Point));
  const IndexSet folded = with_role(node, Role::Reduce) | with_role(node, Role::Scan);
  std::vector<IndexSet> out(node.body.size(), folded);
  for (size_t c = 0; c < node.monoid->lift.size(); ++c) {
    IndexSet over = 0;
    for (int i : node.components[c]) {
      if (node.indices[size_t(i)].role == Role::Point) over |= one(i);
    }
    if (node.monoid->structure == monoid::Structure::RescaledSum) {
      out[c] |= over;
      continue;
    }
    for (Expr e : scalar::reachable({&node.monoid->lift[c], 1})) {
      if (e.is(Op::Arg) && size_t(e.payload()) < out.size()) out[size_t(e.payload())] |= over;
    }
  }
  return out;
}

// Per read, the indices its value is used over.
std::vector<IndexSet> read_over(const Comprehension& node) {
  std::vector<IndexSet> out(node.reads.size(), 0);
  const std::vector<IndexSet> over = evaluated_over(node);
  for (size_t b = 0; b < node.body.size(); ++b) {
    for (Expr e : scalar::reachable({&node.body[b], 1})) {
      if (e.is(Op::Arg) || e.is(Op::Present)) out[size_t(e.payload())] |= over[b];
    }
  }
  return out;
}

class Plan {
 public:
  Plan(const Graph& graph, const FuseOptions& options, const Context& context)
      : graph_(graph), options_(options), context_(context), uses_(tensor::use_counts(graph)), sizes_(graph.nodes.size()),
        splice_(graph.nodes.size()) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (const auto* node = std::get_if<Comprehension>(&graph.nodes[n])) visit(n, *node);
    }
  }

  bool splices(const Comprehension& owner, int read) const {
    return splice_[ids_.at(&owner)][size_t(read)];
  }
  bool any(size_t node) const {
    return std::find(splice_[node].begin(), splice_[node].end(), true) != splice_[node].end();
  }

 private:
  // What a node's body holds once its reads are spliced.
  struct Spliced {
    int64_t operations = 0;
    int64_t cost = 0;
    int reads = 0;
    int full_reads = 0;  // of values with as many dimensions in use as the map itself has points
  };

  void visit(size_t n, const Comprehension& node) {
    ids_.emplace(&node, n);
    splice_[n].assign(node.reads.size(), false);
    if (!small(node)) return;
    std::vector<Expr> roots = node.body;
    roots.insert(roots.end(), node.initial.begin(), node.initial.end());
    Spliced size{operations_in(roots), cost_of(roots), int(node.reads.size()), 0};
    const std::vector<ReadUse> use = read_use(node);
    const std::vector<IndexSet> indices = read_indices(node), over = read_over(node);
    const int points = std::popcount(with_role(node, Role::Point));
    for (size_t r = 0; r < node.reads.size(); ++r) {
      const Comprehension* map = use[r].value ? map_behind(graph_, node.reads[r]) : nullptr;
      if (map && choose(node, int(r), *map, use[r], indices[r], over[r], size)) {
        splice_[n][r] = true;
        const Spliced& inner = sizes_[size_t(node.reads[r].source.node.index)];
        size.operations += inner.operations;
        size.cost += inner.cost;
        size.reads += inner.reads - 1;
        size.full_reads += inner.full_reads;
      } else if (std::popcount(indices[r]) >= points) {
        ++size.full_reads;
      }
    }
    sizes_[n] = size;
  }

  bool choose(const Comprehension& node, int r, const Comprehension& map, ReadUse use, IndexSet indices, IndexSet over,
              const Spliced& size) {
    const Read& read = node.reads[size_t(r)];
    const Spliced& inner = sizes_[size_t(read.source.node.index)];
    const auto no = [&](std::string why) {
      context_.declined(kPass, node.name, map.name + " stays materialised: " + std::move(why));
      return false;
    };
    if (use.key) return no("its values are coordinates or part of a condition");
    if (size.operations + inner.operations > options_.max_operations) {
      return no("the body would hold more than " + std::to_string(options_.max_operations) + " operations");
    }
    if (size.reads + inner.reads - 1 > options_.max_reads) {
      return no("the body would hold more than " + std::to_string(options_.max_reads) + " reads");
    }
    if (uses_[size_t(read.source.node.index)] == 1 && visits_once(read, indices, over)) return true;
    if (inner.cost > options_.max_repeat) {
      return no("computing it again for every reader costs " + std::to_string(inner.cost) + " additions an element");
    }
    if (inner.full_reads > 1) return no("its readers would read " + std::to_string(inner.full_reads) + " values instead of one");
    return true;
  }

  // Whether the read meets no element of its source twice, as far as the shape of its coordinates tells.
  bool visits_once(const Read& read, IndexSet indices, IndexSet over) const {
    if ((over & ~indices) != 0) return false;
    int varying = 0;
    for (const Form& c : read.coords) varying += c.is_constant() || c.uses(AtomKind::Data) ? 0 : 1;
    for (const Form& c : read.coords) {
      if (c.uses(AtomKind::Data)) return false;
    }
    return varying >= std::popcount(over);
  }

  const Graph& graph_;
  const FuseOptions& options_;
  const Context& context_;
  std::vector<int> uses_;
  std::vector<Spliced> sizes_;
  std::vector<std::vector<bool>> splice_;
  std::unordered_map<const Comprehension*, size_t> ids_;
};

}  // namespace

Graph fuse_maps(const Graph& graph, const FuseOptions& options, const Context& context) {
  const Plan plan(graph, options, context);
  Graph out = graph;
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const tensor::GraphOutput& o : graph.outputs) needed[size_t(o.value.node.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!needed[n]) continue;
    if (const auto* node = std::get_if<Comprehension>(&graph.nodes[n]); node && plan.any(n)) {
      auto spliced = expand(graph, *node, [&](const Comprehension& owner, int r) { return plan.splices(owner, r); });
      if (spliced) {
        context.applied(kPass, node->name, "its maps are computed where they are read");
        out.nodes[n] = std::move(*spliced);
      }
    }
    for (tensor::Value v : tensor::sources(out.nodes[n])) needed[size_t(v.node.index)] = true;
  }
  return tensor::rebuild(out, {});
}

}  // namespace lemma::rewrite
