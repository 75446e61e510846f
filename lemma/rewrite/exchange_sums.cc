#include "lemma/rewrite/exchange_sums.h"

#include <algorithm>
#include <optional>

#include "lemma/rewrite/align.h"
#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/edits.h"
#include "lemma/rewrite/hoist_invariants.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::IndexInfo;
using tensor::Read;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;

constexpr char kPass[] = "exchange_sums";

// The factors p of the outer sum, and the inner sum's taken apart: v depends on the outer sum's reduced indices, g not.
// All over `joint`: the outer sum's indices and reads, with the inner sum's index c and its reads appended.
struct Exchange {
  Comprehension joint;
  int inner_index = -1;            // the inner sum's reduced index in `joint`
  std::vector<Factor> weights;     // p
  std::vector<Factor> values;      // v
  std::vector<Factor> rest;        // g
};

bool same_factors(std::vector<Factor> a, std::vector<Factor> b) {
  const auto by_place = [](const Factor& x, const Factor& y) {
    return x.kind != y.kind ? x.kind < y.kind : x.expr.index() < y.expr.index();
  };
  std::sort(a.begin(), a.end(), by_place);
  std::sort(b.begin(), b.end(), by_place);
  return a == b;
}

std::optional<Exchange> match_exchange(const Graph& graph, const Comprehension& outer, size_t factor,
                                       const std::vector<Factor>& factors) {
  const Expr e = factors[factor].expr;
  if (factors[factor].kind != Factor::Kind::Times || !e.is(Op::Arg)) return std::nullopt;
  const Read& read = outer.reads[size_t(e.payload())];
  const auto* inner = std::get_if<Comprehension>(&graph.node(read.source.node));
  if (!inner || !folds_with(*inner, Op::Add) || !inner->domain.is_always() || !read.guard.is_always()) return std::nullopt;
  const std::vector<int> folded = inner->with_role(Role::Reduce);
  if (folded.size() != 1 || outer.with_role(Role::Reduce).empty()) return std::nullopt;

  Exchange out;
  out.joint = outer;
  // The inner index becomes a point after the others.
  std::vector<int> to;
  int at = 0;
  for (const IndexInfo& i : outer.indices) at += i.role == Role::Point ? 1 : 0;
  for (size_t i = 0; i < outer.indices.size(); ++i) to.push_back(int(i) + (int(i) >= at ? 1 : 0));
  rename_indices(out.joint, to);
  out.joint.indices.insert(out.joint.indices.begin() + at, {inner->indices[size_t(folded[0])].name,
                                                            inner->indices[size_t(folded[0])].extent, Role::Point});
  out.inner_index = at;
  std::vector<int> index(inner->indices.size(), -1);
  index[size_t(folded[0])] = at;
  const std::vector<int>& dims = inner->outputs[0].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto i = read.coords[d].as_index();
    if (!i) return std::nullopt;
    index[size_t(dims[d])] = to[size_t(*i)];
  }
  for (const Read& r : inner->reads) {
    if (!r.guard.is_always()) return std::nullopt;
    Read moved{r.source, {}, {}};
    for (const Form& c : r.coords) {
      if (c.uses(view::AtomKind::Data)) return std::nullopt;
      moved.coords.push_back(c.map_indices([&](int i) { return Form::index(index[size_t(i)]); }));
    }
    add_read(out.joint, moved);
  }
  const auto aligned = align(*inner, out.joint, index);
  if (!aligned) return std::nullopt;
  const std::vector<IndexSet> reads = read_indices(out.joint);
  const IndexSet reduced = with_role(out.joint, Role::Reduce);
  for (const Factor& f : factorise(aligned->body[0]).factors) {
    (meets(indices_of(f.expr, reads), reduced) ? out.values : out.rest).push_back(f);
  }
  if (out.values.empty() || out.rest.empty()) return std::nullopt;
  const std::vector<Factor> joint = factorise(out.joint.body[0]).factors;
  if (joint.size() != factors.size()) return std::nullopt;
  for (size_t f = 0; f < joint.size(); ++f) {
    if (f != factor) out.weights.push_back(joint[f]);
  }
  return out;
}

// o[..., c] = sum of p*v over the joint space: the node in the graph that computes it, and the index of `joint` behind
// each of its dimensions.
struct Known {
  Value value;
  std::vector<int> dims;
};
std::optional<Known> find_summed(const Graph& graph, const Exchange& x, const std::vector<std::vector<int>>& users) {
  std::vector<Factor> wanted = x.weights;
  wanted.insert(wanted.end(), x.values.begin(), x.values.end());
  Comprehension probe = x.joint;
  probe.body = {multiply(*graph.arena, x.joint.body[0].kind(), x.values)};
  tidy_reads(probe);
  if (probe.reads.empty()) return std::nullopt;
  for (int u : users[size_t(probe.reads[0].source.node.index)]) {
    const auto* node = std::get_if<Comprehension>(&graph.nodes[size_t(u)]);
    if (!node || !folds_with(*node, Op::Add) || node->indices.size() > x.joint.indices.size()) continue;
    const std::vector<int> mine = node->with_role(Role::Reduce), theirs = x.joint.with_role(Role::Reduce);
    const std::vector<int> points = node->with_role(Role::Point);
    if (mine.size() != theirs.size()) continue;
    // Points of the node are an injection into those of the joint space: tried in order, by extent and by name first.
    std::vector<int> pool = x.joint.with_role(Role::Point);
    std::vector<int> index(node->indices.size(), -1);
    bool fits = true;
    for (size_t k = 0; k < mine.size(); ++k) {
      index[size_t(mine[k])] = theirs[k];
      fits = fits && node->indices[size_t(mine[k])].extent == x.joint.indices[size_t(theirs[k])].extent;
    }
    if (!fits || points.size() > pool.size() || pool.size() > 6) continue;
    std::sort(pool.begin(), pool.end());
    do {
      bool extents = true;
      for (size_t k = 0; k < points.size(); ++k) {
        index[size_t(points[k])] = pool[k];
        extents = extents && node->indices[size_t(points[k])].extent == x.joint.indices[size_t(pool[k])].extent;
      }
      if (!extents) continue;
      const auto aligned = align(*node, x.joint, index);
      if (!aligned || aligned->domain != x.joint.domain) continue;
      if (!same_factors(factorise(aligned->body[0]).factors, wanted)) continue;
      Known out{{Tensor{u}, 0}, {}};
      for (int d : node->outputs[0].dims) out.dims.push_back(index[size_t(d)]);
      return out;
    } while (std::next_permutation(pool.begin(), pool.end()));
  }
  return std::nullopt;
}

Comprehension exchanged(const Graph& graph, const Comprehension& outer, const Exchange& x, const Known& known,
                        const view::Formula& something) {
  Comprehension out = x.joint;
  out.name = outer.name;
  out.definition = nullptr;
  out.definition_inputs.clear();
  const scalar::Kind kind = x.joint.body[0].kind();
  const int position = add_read(out, read_at(known.value, known.dims));
  std::vector<Factor> factors = x.rest;
  factors.push_back({Factor::Kind::Times, scalar::arg(*graph.arena, kind, position)});
  // Points keep their numbers in the joint space.
  if (!something.is_always()) factors.push_back({Factor::Kind::Gate, expr_of(something, graph, outer)});
  out.body = {multiply(*graph.arena, kind, factors)};
  out.domain = {};
  tidy_reads(out);
  IndexSet keep = with_role(out, Role::Point);
  out.indices[size_t(x.inner_index)].role = Role::Reduce;
  drop_indices(out, keep);
  return out;
}

}  // namespace

Graph exchange_sums(const Graph& graph, const Context& context) {
  const std::vector<std::vector<int>> users = users_of(graph);
  Edits edits(graph);
  bool any = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* outer = std::get_if<Comprehension>(&graph.nodes[n]);
    if (!outer || !folds_with(*outer, Op::Add) || outer->indices.size() >= 64) continue;
    const std::vector<Factor> factors = factorise(outer->body[0]).factors;
    for (size_t f = 0; f < factors.size() && factors.size() > 1; ++f) {
      const auto found = match_exchange(graph, *outer, f, factors);
      if (!found) continue;
      const auto known = find_summed(graph, *found, users);
      if (!known) {
        context.declined(kPass, outer->name, "the weighted values are not summed anywhere");
        continue;
      }
      if (context.allow < Claim::Finite) {
        context.declined(kPass, outer->name, "an infinite inner sum under a weight of 0 would count differently");
        break;
      }
      const auto something = proved_finite(found->rest) ? std::optional(view::Formula::always()) : not_empty(graph, *outer);
      if (!something) {
        context.declined(kPass, outer->name, "its domain may be empty where what leaves the sum is not finite");
        break;
      }
      if (known->value.node.index > int(n) && depends_on(graph, known->value, Tensor{int32_t(n)})) break;
      context.applied(kPass, outer->name, "it sums over the inner index instead, over " + tensor::name(graph, known->value));
      edits.redirect[{Tensor{int32_t(n)}, 0}] = {edits.graph.add(exchanged(graph, *outer, *found, *known, *something)), 0};
      any = true;
      break;
    }
  }
  return any ? settle(std::move(edits)) : graph;
}

}  // namespace lemma::rewrite
