#include "lemma/rewrite/merge_siblings.h"

#include <algorithm>
#include <unordered_map>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/edits.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::AtomKind;
using view::Form;

constexpr char kPass[] = "merge_siblings";

bool mergeable(const Comprehension& node, const MergeOptions& options) {
  if (!small(node) || node.scan || node.definition || node.reads.empty()) return false;
  if (is_map(node)) return options.maps;
  if (node.monoid->structure != monoid::Structure::Elementwise || !monoid::pairable(*node.monoid)) return false;
  for (const monoid::Component& c : node.monoid->components) {
    if (!c.axes.empty()) return false;
  }
  return !is_contraction_like(node);
}

bool same_space(const Comprehension& a, const Comprehension& b) {
  if (a.indices.size() != b.indices.size() || is_map(a) != is_map(b)) return false;
  for (size_t i = 0; i < a.indices.size(); ++i) {
    if (a.indices[i].role != b.indices[i].role || a.indices[i].extent != b.indices[i].extent) return false;
  }
  return true;
}

bool share_a_source(const Comprehension& a, const Comprehension& b) {
  for (const Read& r : a.reads) {
    for (const Read& s : b.reads) {
      if (r.source == s.source) return true;
    }
  }
  return false;
}

// b's part over a's reads: the positions of b's reads in `into`, appended where missing.
std::vector<int> take_reads(Comprehension& into, const Comprehension& b) {
  std::vector<int> position;
  const auto renumber = [&](int r) { return position[size_t(r)]; };
  for (const Read& r : b.reads) {
    Read moved{r.source, {}, r.guard.map_data(renumber)};
    for (const Form& c : r.coords) moved.coords.push_back(c.map_data(renumber));
    position.push_back(add_read(into, moved));
  }
  return position;
}

// Both as one node; nothing if the domains differ.
std::optional<Comprehension> merged(const Comprehension& a, const Comprehension& b) {
  Comprehension out = a;
  const std::vector<int> position = take_reads(out, b);
  const auto renumber = [&](int r) { return position[size_t(r)]; };
  if (b.domain.map_data(renumber) != a.domain) return std::nullopt;
  out.name = a.name + "_" + b.name;
  for (Expr e : b.body) {
    out.body.push_back(replace_leaves(e, e.arena(), [&](Expr leaf) -> Expr {
      if (leaf.is(Op::Arg)) return scalar::arg(leaf.arena(), leaf.kind(), renumber(int(leaf.payload())));
      if (leaf.is(Op::Present)) return scalar::present(leaf.arena(), renumber(int(leaf.payload())));
      return {};
    }));
  }
  const size_t results = a.monoid ? a.monoid->finish.size() : a.body.size();
  for (tensor::Output o : b.outputs) {
    o.result += int(results);
    out.outputs.push_back(std::move(o));
  }
  if (a.monoid) {
    out.monoid = monoid::pair(a.monoid, b.monoid);
    out.components.insert(out.components.end(), b.components.begin(), b.components.end());
  }
  return out;
}

// Nodes gathered into one, and the values each member's outputs become.
struct Cluster {
  Comprehension node;
  std::vector<Tensor> members;
};

class Siblings {
 public:
  Siblings(const Graph& graph, const MergeOptions& options, const Context& context)
      : graph_(graph), options_(options), context_(context) {}

  Graph run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto* node = std::get_if<Comprehension>(&graph_.nodes[n]);
      if (node && mergeable(*node, options_)) place(Tensor{int32_t(n)}, *node);
    }
    Edits edits(graph_);
    bool any = false;
    for (Cluster& c : clusters_) {
      if (c.members.size() < 2) continue;
      any = true;
      context_.applied(kPass, c.node.name, "one pass computes " + std::to_string(c.members.size()) + " values over one space");
      const Tensor merged = edits.graph.add(std::move(c.node));
      int output = 0;
      for (Tensor m : c.members) {
        const int count = tensor::output_count(graph_.node(m));
        for (int o = 0; o < count; ++o) edits.redirect[{m, o}] = {merged, output++};
      }
    }
    return any ? settle(std::move(edits)) : graph_;
  }

 private:
  // Joins the first cluster that fits, looking at those that read one of the node's sources.
  void place(Tensor id, const Comprehension& node) {
    for (const Read& r : node.reads) {
      std::vector<size_t>& candidates = by_source_[r.source.node.index];
      // A value read by very many reductions is compared with the latest few.
      const size_t first = candidates.size() > 16 ? candidates.size() - 16 : 0;
      for (size_t i = first; i < candidates.size(); ++i) {
        if (join(clusters_[candidates[i]], id, node)) {
          enlist(candidates[i], node);
          return;
        }
      }
    }
    clusters_.push_back({node, {id}});
    enlist(clusters_.size() - 1, node);
  }

  void enlist(size_t cluster, const Comprehension& node) {
    for (const Read& r : node.reads) {
      std::vector<size_t>& list = by_source_[r.source.node.index];
      if (std::find(list.begin(), list.end(), cluster) == list.end()) list.push_back(cluster);
    }
  }

  bool join(Cluster& cluster, Tensor id, const Comprehension& node) {
    if (!same_space(cluster.node, node) || !share_a_source(cluster.node, node)) return false;
    if (cluster.node.outputs.size() + node.outputs.size() > options_.max_results) return false;
    if (!computable_at(cluster.members[0], node)) {
      context_.declined(kPass, node.name, "not one pass with " + cluster.node.name + ": it reads what comes after it");
      return false;
    }
    auto both = merged(cluster.node, node);
    if (!both) {
      context_.declined(kPass, node.name, "not one pass with " + cluster.node.name + ": its domain is another");
      return false;
    }
    cluster.node = std::move(*both);
    cluster.members.push_back(id);
    return true;
  }

  // The merged node stands where its first member stood, which is possible if everything the node reads stands before.
  // That no path leads from a member to the node follows, and no cycle can come of several merges.
  bool computable_at(Tensor first, const Comprehension& node) const {
    for (const Read& r : node.reads) {
      if (r.source.node.index >= first.index) return false;
    }
    return true;
  }

  const Graph& graph_;
  const MergeOptions& options_;
  const Context& context_;
  std::vector<Cluster> clusters_;
  std::unordered_map<int, std::vector<size_t>> by_source_;
};

}  // namespace

bool is_contraction_like(const Comprehension& node) {
  if (!folds_with(node, Op::Add)) return false;
  const IndexSet points = with_role(node, Role::Point);
  const std::vector<IndexSet> reads = read_indices(node);
  std::vector<IndexSet> factors;
  for (const Factor& f : factorise(node.body[0]).factors) factors.push_back(indices_of(f.expr, reads));
  for (IndexSet a : factors) {
    for (IndexSet b : factors) {
      if ((a & ~b & points) && (b & ~a & points)) return true;
    }
  }
  return false;
}

Graph merge_siblings(const Graph& graph, const MergeOptions& options, const Context& context) {
  return Siblings(graph, options, context).run();
}

}  // namespace lemma::rewrite
