#include "lemma/schedule/contraction.h"

#include <algorithm>

namespace lemma::schedule {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Role;
using view::AtomKind;
using view::Form;
using view::Formula;

using Set = uint64_t;
Set one(int i) { return Set(1) << i; }
bool has(Set set, int i) { return (set >> i) & 1; }

Set role_set(const Comprehension& node, Role role) {
  Set out = 0;
  for (int i : node.with_role(role)) out |= one(i);
  return out;
}

template <class FormOrFormula>
Set indices_of(const FormOrFormula& f, const std::vector<Set>& reads) {
  Set out = 0;
  for (int i : f.ids(AtomKind::Index)) out |= one(i);
  for (int r : f.ids(AtomKind::Data)) out |= reads[size_t(r)];
  return out;
}

std::vector<Set> read_sets(const Comprehension& node) {
  std::vector<Set> out;
  for (const tensor::Read& r : node.reads) {
    Set set = indices_of(r.guard, out);
    for (const Form& c : r.coords) set |= indices_of(c, out);
    out.push_back(set);
  }
  return out;
}

Set indices_of(Expr expr, const std::vector<Set>& reads) {
  Set out = 0;
  for (Expr e : scalar::reachable({&expr, 1})) {
    if (e.is(Op::Index)) out |= one(int(e.payload()));
    if (e.is(Op::Arg) || e.is(Op::Present)) out |= reads[size_t(e.payload())];
  }
  return out;
}

bool is_number(Expr e, double v) {
  if (!e.is_const()) return false;
  return scalar::is_float(e.kind()) ? e.as_float() == v : double(e.as_int()) == v;
}

// The body's factors. A select with a 0 branch is a gate around what it guards: it becomes one factor with the factors
// under it that share its indices, `select(gate, those, 0)`, and leaves the others alone.
struct Factor {
  Expr expr;
  Set set;
  bool over = false;
  bool gate = false;
};

std::vector<Factor> factors_of(Expr body, const std::vector<Set>& reads) {
  std::vector<Factor> out;
  std::vector<std::pair<Expr, bool>> stack{{body, false}};
  while (!stack.empty()) {
    const auto [e, over] = stack.back();
    stack.pop_back();
    if (is_number(e, 1)) continue;
    if (e.is(Op::Mul)) {
      stack.push_back({e.arg(1), over});
      stack.push_back({e.arg(0), over});
    } else if (e.is(Op::Div)) {
      stack.push_back({e.arg(1), !over});
      stack.push_back({e.arg(0), over});
    } else if (e.is(Op::Neg)) {
      const Expr minus = scalar::is_float(e.kind()) ? scalar::constant(e.arena(), e.kind(), -1)
                                                    : scalar::constant_int(e.arena(), e.kind(), -1);
      out.push_back({minus, 0, false, false});
      stack.push_back({e.arg(0), over});
    } else if (e.is(Op::Select) && !over && (is_number(e.arg(2), 0) || is_number(e.arg(1), 0))) {
      const bool holds = is_number(e.arg(2), 0);
      const Expr inner = holds ? e.arg(1) : e.arg(2);
      const Set gate = indices_of(e.arg(0), reads), all = indices_of(inner, reads);
      const bool product = inner.is(Op::Mul) || inner.is(Op::Div);
      if (product && (all & ~gate) != 0) {
        out.push_back({holds ? e.arg(0) : scalar::unary(Op::Not, e.arg(0)), gate, false, true});
        stack.push_back({inner, over});
      } else {
        out.push_back({e, gate | all, over, false});
      }
    } else {
      out.push_back({e, indices_of(e, reads), over, false});
    }
  }
  return out;
}

// Collects one side (or the scale): products of times and over, gates around them.
class Side {
 public:
  void add(const Factor& f) {
    set_ |= f.set;
    if (f.gate) gate_ = gate_.valid() ? scalar::binary(Op::And, gate_, f.expr) : f.expr;
    else if (f.over) over_ = over_.valid() ? over_ * f.expr : f.expr;
    else times_ = times_.valid() ? times_ * f.expr : f.expr;
  }
  Set set() const { return set_; }
  void widen(Set set) { set_ |= set; }
  bool empty() const { return !times_.valid() && !over_.valid() && !gate_.valid(); }
  Expr expr(scalar::Arena& arena, scalar::Kind kind) const {
    const auto number = [&](int v) {
      return scalar::is_float(kind) ? scalar::constant(arena, kind, v) : scalar::constant_int(arena, kind, v);
    };
    Expr out = times_.valid() ? times_ : number(1);
    if (over_.valid()) out = out / over_;
    return gate_.valid() ? scalar::select(gate_, out, number(0)) : out;
  }

 private:
  Expr times_, over_, gate_;
  Set set_ = 0;
};

std::vector<int> list(Set set) {
  std::vector<int> out;
  for (int i = 0; i < 64; ++i) {
    if (has(set, i)) out.push_back(i);
  }
  return out;
}

// The reads that an operand's expression and condition use, keys included.
std::vector<int> reads_of(const Comprehension& node, Expr expr, const Formula& condition) {
  std::vector<bool> used(node.reads.size(), false);
  for (Expr e : scalar::reachable({&expr, 1})) {
    if (e.is(Op::Arg) || e.is(Op::Present)) used[size_t(e.payload())] = true;
  }
  for (int r : condition.ids(AtomKind::Data)) used[size_t(r)] = true;
  for (size_t r = node.reads.size(); r-- > 0;) {
    if (!used[r]) continue;
    for (int k : node.reads[r].guard.ids(AtomKind::Data)) used[size_t(k)] = true;
    for (const Form& c : node.reads[r].coords) {
      for (int k : c.ids(AtomKind::Data)) used[size_t(k)] = true;
    }
  }
  std::vector<int> out;
  for (size_t r = 0; r < used.size(); ++r) {
    if (used[r]) out.push_back(int(r));
  }
  return out;
}

// A domain of one case taken apart by side; one of several cases that fits no side couples.
void divide_domain(const Comprehension& node, const std::vector<Set>& reads, Set left, Set right, Contraction& out) {
  const auto& cases = node.domain.cases();
  if (cases.size() != 1) {
    const Set set = indices_of(node.domain, reads);
    if ((set & ~left) == 0) out.left.condition = node.domain;
    else if ((set & ~right) == 0) out.right.condition = node.domain;
    else out.coupling = node.domain;
    return;
  }
  for (const view::Constraint& c : cases[0]) {
    const Formula f = c.relation == view::Relation::Zero ? Formula::zero(c.form) : Formula::non_negative(c.form);
    const Set set = indices_of(c.form, reads);
    if ((set & ~left) == 0) out.left.condition = out.left.condition && f;
    else if ((set & ~right) == 0) out.right.condition = out.right.condition && f;
    else out.coupling = out.coupling && f;
  }
}

// Two disjoint groups of factors such that each has points the other lacks: connected components of "shares a row or a
// column point", found by growing the left side from the first factor that has a point not every factor has.
bool divide_factors(const std::vector<Factor>& factors, Set points, Set folded, Set seed, Side& left, Side& right,
                    Side& scale) {
  std::vector<const Factor*> varying;
  for (const Factor& f : factors) {
    if ((f.set & folded) == 0 && (f.set & points) == 0) scale.add(f);
    else varying.push_back(&f);
  }
  // Points that every varying factor (and the seed) depends on are batch and do not connect.
  Set common = seed ? seed & points : points;
  for (const Factor* f : varying) {
    if (f->set & folded) common &= f->set;
  }
  if (varying.empty()) return false;
  Set own = seed & points & ~common;
  if (!seed) {
    for (const Factor* f : varying) {
      if ((f->set & folded) && (f->set & points & ~common)) {
        own = f->set & points & ~common;
        break;
      }
    }
  }
  bool grew = true;
  while (grew) {
    grew = false;
    for (const Factor* f : varying) {
      const Set mine = f->set & points & ~common;
      if ((mine & own) && (mine & ~own)) {
        own |= mine;
        grew = true;
      }
    }
  }
  for (const Factor* f : varying) {
    if ((f->set & folded) == 0 && (f->set & points & ~common) == 0) scale.add(*f);  // per batch
    else if (f->set & own) left.add(*f);
    else if (f->set & points & ~common) right.add(*f);
  }
  // Factors without a point of their own go where the other side would be empty, else to the left.
  for (const Factor* f : varying) {
    if ((f->set & folded) == 0 || (f->set & points & ~common)) continue;
    const bool left_lacks = left.empty() && !seed;
    if (left_lacks || !right.empty()) left.add(*f);
    else right.add(*f);
  }
  return (!left.empty() || seed) && !right.empty();
}

Recognised recognise(const Comprehension& node, Expr body, const std::vector<int>& weight) {
  if (node.indices.size() > 64) return {{}, "it has more than 64 indices"};
  const std::vector<Set> reads = read_sets(node);
  const Set points = role_set(node, Role::Point), folded = role_set(node, Role::Reduce);
  if (!folded) return {{}, "it reduces over nothing"};
  Set seed = 0;
  for (int i : weight) seed |= one(i);
  const std::vector<Factor> factors = factors_of(body, reads);
  Side left, right, scale;
  if (!divide_factors(factors, points, folded, seed, left, right, scale)) {
    return {{}, "its body is not a product of two factors that depend on the reduced indices"};
  }
  left.widen(seed);
  Contraction out;
  const Set rows = left.set() & ~right.set() & points, columns = right.set() & ~left.set() & points;
  if (!rows && !columns) return {{}, "both factors depend on the same points"};
  if (!(left.set() & right.set() & folded)) return {{}, "its factors share no reduced index"};
  out.rows = list(rows);
  out.columns = list(columns);
  out.batch = list(points & ~rows & ~columns);
  out.depth = list(left.set() & right.set() & folded);
  out.left_depth = list(left.set() & ~right.set() & folded);
  out.right_depth = list(right.set() & ~left.set() & folded);
  if (folded & ~left.set() & ~right.set()) return {{}, "a reduced index stands in neither factor"};
  scalar::Arena& arena = body.arena();
  out.left.expr = left.expr(arena, body.kind());
  out.right.expr = right.expr(arena, body.kind());
  if (!scale.empty()) out.scale = scale.expr(arena, body.kind());
  const Set batch = points & ~rows & ~columns;
  divide_domain(node, reads, left.set() | batch, right.set() | batch, out);
  out.left.reads = reads_of(node, out.left.expr, out.left.condition);
  out.right.reads = reads_of(node, out.right.expr, out.right.condition);
  return {std::move(out), {}};
}

bool is_sum(const monoid::Monoid& m) {
  return m.structure == monoid::Structure::Elementwise && m.components.size() == 1 && m.components[0].axes.empty() &&
         m.combine[0].body.is(Op::Add) && m.lift[0].is(Op::Arg) && m.finish[0].is(Op::Arg);
}

}  // namespace

Recognised recognise_contraction(const tensor::Graph&, const Comprehension& node) {
  if (!node.monoid || node.scan || !is_sum(*node.monoid)) return {{}, "it is no sum"};
  return recognise(node, node.body[0], {});
}

Recognised recognise_weighted(const tensor::Graph&, const Comprehension& node, size_t which,
                              const std::vector<int>& weight_indices) {
  return recognise(node, node.body[which], weight_indices);
}

}  // namespace lemma::schedule
