// What must hold of each statement.
#include "lemma/tile/validator.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;

Result<void> Validator::statement(const Let& s, int) {
  LEMMA_TRY_VOID(reads(s.reads));
  LEMMA_TRY_VOID(check(s.value, Kind::I64, with_reads(s.reads), "value"));
  return bind(s.var);
}

Result<void> Validator::statement(const Alloc& s, int) {
  if (s.buffer < 0 || size_t(s.buffer) >= program_.buffers.size()) return fail("it names buffer " + std::to_string(s.buffer) + ", which the program does not have");
  const Buffer& b = program_.buffers[size_t(s.buffer)];
  if (!is_local(b.space)) return fail("it allocates " + quote(b.name) + ", which is global");
  if (alive_[size_t(s.buffer)]) return fail("it allocates " + quote(b.name) + " while it is alive");
  alive_[size_t(s.buffer)] = true;
  return {};
}

Result<void> Validator::statement(const Copy& s, int) {
  LEMMA_TRY_VOID(extents(s.box));
  LEMMA_TRY_VOID(bind(s.box));
  LEMMA_TRY_VOID(access(s.from, block_scope(), "source"));
  LEMMA_TRY_VOID(access(s.to, block_scope(), "target"));
  LEMMA_TRY_VOID(writable(s.to));
  release(s.box);
  LEMMA_TRY_VOID(check(s.fill, scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type), sizes_only(), "fill"));
  if (!s.fill.is_const()) return fail("its fill is not a constant");
  return {};
}

Result<void> Validator::statement(const Combine& s, int) {
  LEMMA_TRY_VOID(extents(s.box));
  LEMMA_TRY_VOID(bind(s.box));
  LEMMA_TRY_VOID(access(s.from, block_scope(), "source"));
  LEMMA_TRY_VOID(access(s.to, block_scope(), "target"));
  LEMMA_TRY_VOID(writable(s.to));
  release(s.box);
  if (s.from.buffer == s.to.buffer) return fail("it combines a buffer into itself");
  LEMMA_TRY_VOID(combines(s.op, scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type), "it"));
  if (!s.ordered) return {};
  const auto v = s.ordered->as_index();
  const auto loop = std::find_if(kernel_->grid.begin(), kernel_->grid.end(), [&](const GridLoop& g) { return v && g.var == *v; });
  if (loop != kernel_->grid.end() && loop->descending) return fail("it is ordered by " + variable(*v) + ", which the grid runs through from the last", "leave `descending` out, or the order");
  if (loop == kernel_->grid.end()) return fail("it is ordered by something that is no variable of the grid", "name one of the grid's variables, or leave the order out");
  return {};
}

Result<void> Validator::statement(const Print& s, int) {
  LEMMA_TRY_VOID(reads(s.reads));
  size_t places = 0;
  for (size_t i = s.text.find("{}"); i != std::string::npos; i = s.text.find("{}", i + 2)) ++places;
  if (places != s.values.size()) return fail("its text has " + std::to_string(places) + " places {} and it has " + std::to_string(s.values.size()) + " values", "write {} where each value belongs");
  for (Expr e : s.values) {
    if (!e.valid()) return fail("one of its values is missing");
    LEMMA_TRY_VOID(check(e, e.kind(), with_reads(s.reads), "value"));
  }
  return {};
}

Result<void> Validator::statement(const Extern& s, int) {
  if (s.dialect != "c") return fail("its text is of the dialect " + quote(s.dialect) + ", expected c", "write it in C, or as statements");
  for (const auto* list : {&s.reads, &s.writes}) {
    for (int b : *list) {
      if (b < 0 || size_t(b) >= program_.buffers.size()) return fail("it names buffer " + std::to_string(b) + ", which the program does not have");
      if (is_local(program_.buffers[size_t(b)].space) && !alive_[size_t(b)]) return fail("it names " + quote(program_.buffers[size_t(b)].name) + " where it is not allocated", "allocate it earlier in this block or an enclosing one");
    }
  }
  for (int b : s.writes) LEMMA_TRY_VOID(writable({b, {}, {}}));
  for (Expr e : s.values) LEMMA_TRY_VOID(check(e, Kind::I64, block_scope(), "value"));
  return {};
}

Result<void> Validator::statement(const Phase&, int depth) {
  if (depth > 0) return fail("a phase stands inside a loop or a branch", "move it to the kernel's own block, or make two kernels");
  std::fill(alive_.begin(), alive_.end(), 0);
  return {};
}

Result<void> Validator::statement(const Wait& s, int) {
  if (s.pending < 0) return fail("it waits until " + std::to_string(s.pending) + " groups are under way", "0 waits for all of them");
  return {};
}

Result<void> Validator::statement(const Map& s, int) {
  LEMMA_TRY_VOID(extents(s.points));
  LEMMA_TRY_VOID(bind(s.points));
  LEMMA_TRY_VOID(reads(s.reads));
  const Scope scope = with_reads(s.reads);
  LEMMA_TRY_VOID(check(s.where, scope, "domain"));
  for (size_t i = 0; i < s.stores.size(); ++i) LEMMA_TRY_VOID(store(s.stores[i], scope, scope, "store " + std::to_string(i)));
  release(s.points);
  return {};
}

// The monoid, its operands and its states, in Reduce and Scan. `folded`: variables that states may not use.
template <class S>
Result<void> Validator::fold(const S& s, const std::vector<Range>& folded) {
  if (!s.monoid) return fail("it has no monoid");
  const monoid::Monoid& m = *s.monoid;
  const Scope scope = with_reads(s.reads);
  LEMMA_TRY_VOID(reads(s.reads));
  LEMMA_TRY_VOID(check(s.where, scope, "domain"));
  if (s.body.size() != m.operands.size()) return fail("it has " + std::to_string(s.body.size()) + " operands, " + m.name + " takes " + std::to_string(m.operands.size()));
  for (size_t i = 0; i < s.body.size(); ++i) LEMMA_TRY_VOID(check(s.body[i], m.operands[i], scope, "operand " + std::to_string(i)));
  if (s.states.size() != m.components.size()) return fail("it has " + std::to_string(s.states.size()) + " states, " + m.name + " has " + std::to_string(m.components.size()) + " components");
  for (size_t c = 0; c < s.states.size(); ++c) LEMMA_TRY_VOID(state(s, c, folded));
  return {};
}

template <class S>
Result<void> Validator::state(const S& s, size_t c, const std::vector<Range>& folded) const {
  const std::string what = "state " + std::to_string(c);
  const Access& a = s.states[c];
  LEMMA_TRY_VOID(access(a, block_scope(), what));
  LEMMA_TRY_VOID(writable(a));
  if (!a.guard.is_always()) return fail("its " + what + " is guarded");
  const monoid::Component& component = s.monoid->components[c];
  const Kind kind = scalar::kind_of(program_.buffers[size_t(a.buffer)].type);
  if (kind != component.kind) return fail("its " + what + " is stored as " + std::string(scalar::name(kind)) + ", the component is " + std::string(scalar::name(component.kind)));
  if (component.axes.size() > s.axes.size()) return fail("its " + what + " has " + std::to_string(component.axes.size()) + " axes, the statement has " + std::to_string(s.axes.size()));
  auto uses = [&](Var v) {
    for (const view::Form& f : a.coords) {
      if (f.uses(view::AtomKind::Index, v)) return true;
    }
    return false;
  };
  for (const Range& r : folded) {
    if (uses(r.var)) return fail("its " + what + " depends on " + variable(r.var) + ", over which it is folded");
  }
  for (size_t i = 0; i < s.axes.size(); ++i) {
    if (i >= component.axes.size() && uses(s.axes[i].var)) return fail("its " + what + " uses the axis " + variable(s.axes[i].var) + ", which the component does not have");
  }
  for (const Range& r : s.points) {
    if (!uses(r.var)) LEMMA_TRY_VOID(independent(s, c, r));
  }
  return {};
}

// A component that leaves out a point variable is folded once, so nothing that feeds it may depend on the variable.
template <class S>
Result<void> Validator::independent(const S& s, size_t c, const Range& left_out) const {
  if (left_out.extent == view::Form(1)) return {};
  std::vector<char> read_uses(s.reads.size());
  auto form_uses = [&](const view::Form& f) {
    if (f.uses(view::AtomKind::Index, left_out.var)) return true;
    for (int d : f.ids(view::AtomKind::Data)) {
      if (read_uses[size_t(d)]) return true;
    }
    return false;
  };
  auto formula_uses = [&](const view::Formula& f) {
    for (const view::Conjunction& k : f.cases()) {
      for (const view::Constraint& x : k) {
        if (form_uses(x.form)) return true;
      }
    }
    return false;
  };
  for (size_t r = 0; r < s.reads.size(); ++r) {
    bool uses = formula_uses(s.reads[r].guard);
    for (const view::Form& f : s.reads[r].coords) uses = uses || form_uses(f);
    read_uses[r] = uses;
  }
  const std::string message = " depends on " + variable(left_out.var) + ", which state " + std::to_string(c) + " leaves out";
  if (formula_uses(s.where)) return fail("its domain" + message);
  const Expr lift = s.monoid->lift[c];
  for (Expr l : scalar::reachable({&lift, 1})) {
    if (!l.is(Op::Arg)) continue;
    const Expr operand = s.body[size_t(l.payload())];
    for (Expr e : scalar::reachable({&operand, 1})) {
      const bool uses = (e.is(Op::Index) && e.payload() == left_out.var) ||
                        ((e.is(Op::Arg) || e.is(Op::Present)) && read_uses[size_t(e.payload())]);
      if (uses) return fail("its operand " + std::to_string(l.payload()) + message);
    }
  }
  return {};
}

Result<void> Validator::statement(const Reduce& s, int) {
  for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) LEMMA_TRY_VOID(extents(*ranges));
  for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) LEMMA_TRY_VOID(bind(*ranges));
  LEMMA_TRY_VOID(fold(s, s.reduces));
  for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) release(*ranges);
  return {};
}

Result<void> Validator::statement(const Scan& s, int) {
  const std::vector<Range> along{s.along};
  for (const auto* ranges : {&s.points, &s.axes, &along}) LEMMA_TRY_VOID(extents(*ranges));
  for (const auto* ranges : {&s.points, &s.axes, &along}) LEMMA_TRY_VOID(bind(*ranges));
  LEMMA_TRY_VOID(fold(s, along));
  std::vector<Kind> kinds;
  for (const monoid::Component& c : s.monoid->components) kinds.push_back(c.kind);
  Scope scope = block_scope();
  scope.args = &kinds;
  for (size_t i = 0; i < s.stores.size(); ++i) {
    if (s.stores[i].combine) return fail("store " + std::to_string(i) + " of a scan combines");
    LEMMA_TRY_VOID(store(s.stores[i], scope, block_scope(), "store " + std::to_string(i)));
  }
  for (const auto* ranges : {&s.points, &s.axes, &along}) release(*ranges);
  return {};
}

Result<void> Validator::statement(const Gemm& s, int) {
  std::vector<Range> ranges{s.m, s.n, s.k};
  ranges.insert(ranges.end(), s.taps.begin(), s.taps.end());
  LEMMA_TRY_VOID(extents(ranges));
  LEMMA_TRY_VOID(bind(ranges));
  struct Operand { const Access* access; const char* what; Var without; };
  for (const Operand& o : {Operand{&s.a, "left operand", s.n.var}, Operand{&s.b, "right operand", s.m.var}, Operand{&s.acc, "accumulator", s.k.var}}) {
    LEMMA_TRY_VOID(access(*o.access, block_scope(), o.what));
    if (!o.access->guard.is_always()) return fail("its " + std::string(o.what) + " is guarded", "copy it into a tile with a fill first");
    for (const view::Form& f : o.access->coords) {
      if (f.uses(view::AtomKind::Index, o.without)) return fail("its " + std::string(o.what) + " depends on " + variable(o.without));
    }
  }
  LEMMA_TRY_VOID(writable(s.acc));
  if (scalar::kind_of(program_.buffers[size_t(s.acc.buffer)].type) == Kind::Bool) return fail("it accumulates into bools");
  release(ranges);
  return {};
}

Result<void> Validator::statement(const For& s, int depth) {
  LEMMA_TRY_VOID(check(s.begin, Kind::I64, block_scope(), "begin"));
  LEMMA_TRY_VOID(check(s.end, Kind::I64, block_scope(), "end"));
  if (s.step < 1) return fail("its step is " + std::to_string(s.step) + ", at least 1 is needed");
  if (s.depth < 1 || (s.depth > 1 && s.kind != LoopKind::Pipelined)) return fail("it has " + std::to_string(s.depth) + " turns under way, and a number of at least 1 belongs to a pipelined loop", "write pipelined 2, or leave it out");
  LEMMA_TRY_VOID(bind(s.var));
  LEMMA_TRY_VOID(extents(s.points));
  LEMMA_TRY_VOID(bind(s.points));
  LEMMA_TRY_VOID(check(s.where, block_scope(), "domain"));
  release(s.points);
  LEMMA_TRY_VOID(block(s.body, depth + 1));
  visible_[size_t(s.var)] = false;
  return {};
}

Result<void> Validator::statement(const If& s, int depth) {
  LEMMA_TRY_VOID(reads(s.reads));
  LEMMA_TRY_VOID(check(s.condition, with_reads(s.reads), "condition"));
  LEMMA_TRY_VOID(block(s.then, depth + 1));
  return block(s.otherwise, depth + 1);
}

Result<void> Validator::statement(const Assert& s, int) {
  LEMMA_TRY_VOID(reads(s.reads));
  return check(s.condition, with_reads(s.reads), "condition");
}

}  // namespace lemma::tile
