#include "lemma/rewrite/solve_equalities.h"

#include <algorithm>
#include <optional>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/hoist_invariants.h"
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
using view::Formula;

constexpr char kPass[] = "solve_equalities";

// index = value, where `divides` holds (it follows from the domain once the value is put in).
struct Solution {
  int index = -1;
  Form value;
};

std::optional<Solution> solve(const Comprehension& node, const std::vector<IndexSet>& reads) {
  if (node.domain.cases().size() != 1) return std::nullopt;
  const std::vector<int> reduced = node.with_role(Role::Reduce);
  // An index with coefficient 1 or -1 first: its solution has no residue.
  for (const bool unit : {true, false}) {
    for (const view::Constraint& c : node.domain.cases()[0]) {
      if (c.relation != view::Relation::Zero) continue;
      for (int j : reduced) {
        const auto split = c.form.split(j);
        if (!split) continue;
        const auto a = split->coefficient.constant();
        if (!a || *a == 0 || (*a == 1 || *a == -1) != unit) continue;
        if (has(indices_of(split->rest, reads), j)) continue;  // a key that itself depends on the index
        const Form numerator = *a > 0 ? -split->rest : split->rest;
        return Solution{j, Form::floor_div(numerator, Form(*a > 0 ? *a : -*a))};
      }
    }
  }
  return std::nullopt;
}

// Moves the reads that `form` uses, and their keys, to the front; they do not depend on what comes after.
void move_keys_first(Comprehension& node, Form& form) {
  std::vector<bool> key(node.reads.size(), false);
  for (int r : form.ids(AtomKind::Data)) key[size_t(r)] = true;
  for (size_t r = node.reads.size(); r-- > 0;) {
    if (!key[r]) continue;
    for (int k : node.reads[r].guard.ids(AtomKind::Data)) key[size_t(k)] = true;
    for (const Form& c : node.reads[r].coords) {
      for (int k : c.ids(AtomKind::Data)) key[size_t(k)] = true;
    }
  }
  std::vector<int> order, to(node.reads.size());
  for (const bool first : {true, false}) {
    for (size_t r = 0; r < key.size(); ++r) {
      if (key[r] == first) order.push_back(int(r));
    }
  }
  std::vector<Read> reads;
  for (size_t n = 0; n < order.size(); ++n) {
    to[size_t(order[n])] = int(n);
    reads.push_back(node.reads[size_t(order[n])]);
  }
  const auto renumber = [&](int r) { return to[size_t(r)]; };
  for (Read& r : reads) {
    r.guard = r.guard.map_data(renumber);
    for (Form& c : r.coords) c = c.map_data(renumber);
  }
  node.reads = std::move(reads);
  node.domain = node.domain.map_data(renumber);
  form = form.map_data(renumber);
  node.body = replace_leaves(node.body, node.body[0].arena(), [&](Expr e) -> Expr {
    if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), renumber(int(e.payload())));
    if (e.is(Op::Present)) return scalar::present(e.arena(), renumber(int(e.payload())));
    return {};
  });
}

void substitute(const Graph& graph, Comprehension& node, Solution solution) {
  move_keys_first(node, solution.value);
  const Form extent = node.indices[size_t(solution.index)].extent;
  const auto by = [&](int i) { return i == solution.index ? solution.value : Form::index(i); };
  node.domain = node.domain.map_indices(by) && Formula::within(solution.value, extent);
  for (Read& r : node.reads) {
    r.guard = r.guard.map_indices(by);
    for (Form& c : r.coords) c = c.map_indices(by);
  }
  const Expr value = expr_of(solution.value, graph, node);
  node.body = replace_leaves(node.body, *graph.arena, [&](Expr e) {
    return e.is(Op::Index) && e.payload() == solution.index ? value : Expr();
  });
  IndexSet keep = 0;
  for (size_t i = 0; i < node.indices.size(); ++i) keep |= int(i) == solution.index ? 0 : one(int(i));
  drop_indices(node, keep);
}

// A reduction over at most one element as a map: the element where the domain holds, else the identity.
std::optional<Comprehension> as_map(const Graph& graph, const Comprehension& given) {
  if (!fold_of(*given.monoid)) return std::nullopt;
  Comprehension node = given;
  Form keys;
  for (int r : node.domain.ids(AtomKind::Data)) keys = keys + Form::data(r);
  move_keys_first(node, keys);
  Comprehension out = node;
  for (size_t r = 0; r < node.reads.size(); ++r) {
    bool decides = node.domain.uses(AtomKind::Data, int(r));
    for (const Read& other : node.reads) {
      for (int k : other.guard.ids(AtomKind::Data)) decides = decides || k == int(r);
      for (const Form& c : other.coords) decides = decides || c.uses(AtomKind::Data, int(r));
    }
    if (!decides) {
      out.reads[r].guard = out.reads[r].guard && node.domain;
    } else if (!total_read(graph, node, r)) {
      return std::nullopt;
    }
  }
  const Expr identity = scalar::import(node.monoid->identity[0], *graph.arena);
  out.body = {scalar::select(expr_of(node.domain, graph, node), node.body[0], identity)};
  out.domain = Formula::always();
  out.monoid = nullptr;
  out.components.clear();
  for (tensor::Output& o : out.outputs) o.result = 0;
  return out;
}

}  // namespace

Graph solve_equalities(const Graph& graph, const Context& context) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor, tensor::Node& old) -> tensor::Replaced {
    auto* node = std::get_if<Comprehension>(&old);
    if (!node || !is_reduction(*node) || !small(*node) || node->domain.is_always()) return {};
    Comprehension changed = *node;
    bool any = false;
    while (const auto solution = solve(changed, read_indices(changed))) {
      Comprehension next = changed;
      substitute(build.graph(), next, *solution);
      if (!with_role(next, Role::Reduce)) {
        auto map = as_map(build.graph(), next);
        if (!map) {
          context.declined(kPass, node->name, "it would reduce over one element that cannot be read everywhere");
          break;
        }
        next = std::move(*map);
      }
      changed = std::move(next);
      any = true;
      if (is_map(changed)) break;
    }
    if (!any) return {};
    context.applied(kPass, node->name, "an equality fixes a reduced index");
    *node = std::move(changed);
    return {};
  });
}

}  // namespace lemma::rewrite
