#include "lemma/schedule/contraction.h"

#include <algorithm>
#include <set>

namespace lemma::schedule {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Role;
using view::AtomKind;

void add_read(const Comprehension& node, int read, std::set<int>& indices, std::set<int>& reads);

template <class Thing>
void add_atoms(const Comprehension& node, const Thing& thing, std::set<int>& indices, std::set<int>& reads) {
  for (int i : thing.ids(AtomKind::Index)) indices.insert(i);
  for (int r : thing.ids(AtomKind::Data)) add_read(node, r, indices, reads);
}

// Data atoms name earlier reads only, so this nests no deeper than gathers do.
void add_read(const Comprehension& node, int read, std::set<int>& indices, std::set<int>& reads) {
  if (!reads.insert(read).second) return;
  const tensor::Read& r = node.reads[size_t(read)];
  for (const view::Form& c : r.coords) add_atoms(node, c, indices, reads);
  add_atoms(node, r.guard, indices, reads);
}

std::set<int> uses(const Comprehension& node, Expr expr) {
  std::set<int> indices, reads;
  for (Expr e : scalar::reachable({&expr, 1})) {
    if (e.is(Op::Index)) indices.insert(int(e.payload()));
    if (e.is(Op::Arg) || e.is(Op::Present)) add_read(node, int(e.payload()), indices, reads);
  }
  return indices;
}

// The factors of a product, through negation and division by what follows `/`.
std::vector<Expr> factors(Expr body) {
  std::vector<Expr> out, work{body};
  while (!work.empty()) {
    Expr e = work.back();
    work.pop_back();
    if (e.is(Op::Mul)) {
      work.push_back(e.arg(1));
      work.push_back(e.arg(0));
    } else if (e.is(Op::Neg) && is_float(e.kind())) {
      work.push_back(e.arg(0));
      out.push_back(scalar::constant(e.arena(), e.kind(), -1));
    } else if (e.is(Op::Div)) {
      work.push_back(e.arg(0));
      out.push_back(scalar::unary(Op::Recip, e.arg(1)));
    } else {
      out.push_back(e);
    }
  }
  return out;
}

bool is_plain_sum(const monoid::Monoid& m) {
  if (m.structure != monoid::Structure::Elementwise || m.components.size() != 1) return false;
  if (m.components[0].kind == scalar::Kind::Bool || m.operands.size() != 1) return false;
  scalar::Arena arena;
  const Expr combined = monoid::elementwise_combine(m, 0, arena);
  const scalar::Kind kind = m.components[0].kind;
  const Expr x = scalar::arg(arena, kind, 0), y = scalar::arg(arena, kind, 1);
  if (!(combined == x + y) && !(combined == y + x)) return false;
  return m.lift[0].is(Op::Arg) && m.finish.size() == 1 && m.finish[0].is(Op::Arg);
}

Expr product(const std::vector<Expr>& list) {
  Expr out;
  for (Expr e : list) out = out.valid() ? out * e : e;
  return out;
}

bool contains(const std::set<int>& big, const std::set<int>& small) {
  return std::includes(big.begin(), big.end(), small.begin(), small.end());
}

// Where the constraint holds for some value of `indices`: an inequality that is affine in them is tried at its better end.
std::optional<view::Formula> projected(const Comprehension& node, const view::Constraint& constraint,
                                       const std::vector<int>& indices) {
  view::Form form = constraint.form;
  for (int i : indices) {
    const auto split = form.split(i);
    const auto coefficient = split ? split->coefficient.constant() : std::nullopt;
    if (!coefficient) return std::nullopt;
    if (*coefficient == 0) continue;
    if (constraint.relation == view::Relation::Zero) return std::nullopt;
    form = form.substitute_index(i, *coefficient > 0 ? node.indices[size_t(i)].extent - view::Form(1) : view::Form(0));
  }
  const view::Formula out =
      constraint.relation == view::Relation::Zero ? view::Formula::zero(form) : view::Formula::non_negative(form);
  // Data that varies along them is not seen by the substitution.
  for (int used : used_indices(node, out)) {
    if (std::find(indices.begin(), indices.end(), used) != indices.end()) return std::nullopt;
  }
  return out;
}

struct Side {
  std::vector<Expr> factors;
  std::set<int> points;
};

}  // namespace

std::vector<int> used_indices(const Comprehension& node, Expr expr) {
  const std::set<int> used = uses(node, expr);
  return {used.begin(), used.end()};
}

std::vector<int> used_indices(const Comprehension& node, const view::Formula& formula) {
  std::set<int> indices, reads;
  add_atoms(node, formula, indices, reads);
  return {indices.begin(), indices.end()};
}

std::optional<Contraction> match_contraction(const Comprehension& node, std::string* reason) {
  auto decline = [&](std::string why) -> std::optional<Contraction> {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  if (!node.monoid || node.scan || !is_plain_sum(*node.monoid)) return decline("it is not a plain sum");
  if (node.outputs.size() != 1) return decline("it has more than one output");
  const std::vector<int> reduce_list = node.with_role(Role::Reduce);
  const std::set<int> reduces(reduce_list.begin(), reduce_list.end());
  auto has_reduce = [&](const std::set<int>& used) {
    return std::any_of(used.begin(), used.end(), [&](int i) { return reduces.count(i) > 0; });
  };

  Contraction out;
  std::vector<Expr> scale;
  std::vector<Side> sides;
  for (Expr f : factors(node.body[0])) {
    const std::set<int> used = uses(node, f);
    if (!has_reduce(used)) {
      scale.push_back(f);
      continue;
    }
    Side side;
    side.factors = {f};
    for (int i : used) {
      if (!reduces.count(i)) side.points.insert(i);
    }
    sides.push_back(std::move(side));
  }
  // A factor whose points another has as well joins it: what remains must be two.
  std::sort(sides.begin(), sides.end(),
            [](const Side& a, const Side& b) { return a.points.size() > b.points.size(); });
  std::vector<Side> kept;
  for (Side& s : sides) {
    bool joined = false;
    for (Side& k : kept) {
      if (!joined && contains(k.points, s.points) && !(kept.size() == 1 && sides.size() == 2)) {
        k.factors.insert(k.factors.end(), s.factors.begin(), s.factors.end());
        joined = true;
      }
    }
    if (!joined) kept.push_back(std::move(s));
  }
  if (kept.size() != 2) return decline("its body is not a product of two factors with points of their own");

  const std::set<int>&p = kept[0].points, &q = kept[1].points;
  for (int i : node.with_role(Role::Point)) {
    const bool in_p = p.count(i) > 0, in_q = q.count(i) > 0;
    if (in_p && !in_q) out.m.push_back(i);
    else if (in_q && !in_p) out.n.push_back(i);
    else out.batch.push_back(i);  // both, or neither (a broadcast)
  }
  // The side whose own points come last in the output is the right one: the output's last dimension is its columns.
  bool swap = out.n.empty() || (!out.m.empty() && out.m.back() > out.n.back());
  if (swap && out.m.empty()) swap = false;
  if (swap) std::swap(out.m, out.n);
  Side& left = kept[swap ? 1 : 0];
  Side& right = kept[swap ? 0 : 1];
  out.k = reduce_list;
  out.lhs = product(left.factors);
  out.rhs = product(right.factors);
  out.scale = product(scale);

  if (node.domain.cases().size() != 1) return decline("its domain is a union");
  for (const view::Constraint& c : node.domain.cases()[0]) {
    const view::Formula one =
        c.relation == view::Relation::Zero ? view::Formula::zero(c.form) : view::Formula::non_negative(c.form);
    const std::vector<int> used = used_indices(node, one);
    auto touches = [&](const std::vector<int>& list) {
      return std::any_of(used.begin(), used.end(),
                         [&](int i) { return std::find(list.begin(), list.end(), i) != list.end(); });
    };
    const bool on_m = touches(out.m), on_n = touches(out.n);
    if (on_m && on_n) return decline("its domain ties rows to columns");
    // A product multiplies every row by every column: the other side is zero where no point of this one is present,
    // since absent terms must not read it (0 * nan is nan).
    const auto other = projected(node, c, on_m ? out.m : on_n ? out.n : std::vector<int>());
    if (!other) return decline("its domain depends on more than the ends of a side's points");
    out.lhs_domain = out.lhs_domain && (on_n ? *other : one);
    out.rhs_domain = out.rhs_domain && (on_n ? one : *other);
  }
  return out;
}

}  // namespace lemma::schedule
