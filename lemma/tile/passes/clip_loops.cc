#include "lemma/tile/passes/clip_loops.h"

#include <algorithm>
#include <optional>

#include "lemma/tile/edit.h"

namespace lemma::tile {
namespace {

using scalar::Expr;
using view::AtomKind;
using view::Form;

constexpr size_t kLargestBody = 64;  // statements of a loop that is split: its body is written up to three times

// A loop's values low <= k < limit; a missing side is unbounded.
struct Interval {
  std::optional<Expr> low, limit;
};

Expr expression_of(const Form& form, scalar::Arena& arena) {
  Expr sum;
  for (const view::Term& t : form.terms()) {
    if (t.factors.empty()) continue;
    Expr product;
    if (t.coefficient != 1) product = scalar::i64(arena, t.coefficient);
    for (const view::Atom& a : t.factors) {
      const Expr factor = a.kind == AtomKind::Index  ? scalar::index(arena, a.id)
                          : a.kind == AtomKind::Size ? scalar::size(arena, a.id)
                                                     : scalar::binary(scalar::Op::FloorDiv, expression_of(a.floor->numerator, arena),
                                                                      expression_of(a.floor->denominator, arena));
      product = product.valid() ? product * factor : factor;
    }
    sum = sum.valid() ? sum + product : product;
  }
  const int64_t constant = form.constant_term();
  if (!sum.valid()) return scalar::i64(arena, constant);
  if (constant == 0) return sum;
  return constant > 0 ? sum + scalar::i64(arena, constant) : sum - scalar::i64(arena, -constant);
}

// The same value written as forms are, if it is one, so that equal bounds are the same expression.
Expr tidy(Expr root) {
  std::vector<std::optional<Form>> forms(root.index() + 1);
  for (Expr e : scalar::reachable({&root, 1})) {
    if (e.kind() != scalar::Kind::I64) continue;
    auto arg = [&](size_t i) -> const std::optional<Form>& { return forms[e.arg(i).index()]; };
    std::optional<Form>& out = forms[e.index()];
    const bool both = e.args().size() == 2 && arg(0) && arg(1);
    const auto factor = both ? (arg(0)->constant() ? arg(0)->constant() : arg(1)->constant()) : std::nullopt;
    constexpr int64_t kSmall = int64_t(1) << 24;  // far from what overflows
    switch (e.op()) {
      case scalar::Op::Const: if (std::abs(e.as_int()) < kSmall) out = Form(e.as_int()); break;
      case scalar::Op::Index: out = Form::index(int(e.payload())); break;
      case scalar::Op::Size: out = Form::size(int(e.payload())); break;
      case scalar::Op::Add: if (both) out = *arg(0) + *arg(1); break;
      case scalar::Op::Sub: if (both) out = *arg(0) - *arg(1); break;
      case scalar::Op::Mul: if (factor && std::abs(*factor) < kSmall) out = *arg(0) * *arg(1); break;
      case scalar::Op::FloorDiv: if (both && !arg(0)->uses(AtomKind::Floor) && arg(1)->constant() && *arg(1)->constant() > 0) out = Form::floor_div(*arg(0), *arg(1)); break;
      default: break;
    }
    if (!out) continue;
    for (const view::Term& t : out->terms()) {
      if (std::abs(t.coefficient) >= kSmall) {
        out.reset();
        break;
      }
    }
  }
  const std::optional<Form>& form = forms[root.index()];
  return form ? expression_of(*form, root.arena()) : root;
}

// min and max of bounds, each operand once.
void list_operands(Expr e, scalar::Op op, std::vector<Expr>& out) {
  std::vector<Expr> todo{e};
  while (!todo.empty()) {
    const Expr x = todo.back();
    todo.pop_back();
    if (x.is(op)) {
      todo.push_back(x.arg(1));
      todo.push_back(x.arg(0));
    } else if (std::find(out.begin(), out.end(), x) == out.end()) {
      out.push_back(x);
    }
  }
}

Expr extreme_of(scalar::Op op, Expr a, Expr b) {
  std::vector<Expr> operands;
  list_operands(a, op, operands);
  list_operands(b, op, operands);
  Expr out = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) out = scalar::binary(op, out, operands[i]);
  return out;
}
Expr least(Expr a, Expr b) { return extreme_of(scalar::Op::Min, a, b); }
Expr most(Expr a, Expr b) { return extreme_of(scalar::Op::Max, a, b); }

// ---- what a loop's body does ----

template <class Uses>
void each_access(const Stmt& stmt, const Uses& use) {
  Stmt copy = stmt;
  Parts parts;
  parts.buffer = [&](int b) { use(b); return b; };
  replace_parts(copy, parts);
}

// Which buffers a statement mentions, its bodies included. An Alloc alone is no use.
std::vector<char> mentioned(const Stmt& stmt, size_t buffers) {
  std::vector<char> out(buffers);
  auto one = [&](const Stmt& s) {
    if (!std::holds_alternative<Alloc>(s)) each_access(s, [&](int b) { out[size_t(b)] = true; });
  };
  one(stmt);
  for (const Block* body : bodies(stmt)) visit(*body, one);
  return out;
}

bool covers(const Access& a, const std::vector<Range>& ranges, const Buffer& buffer) {
  if (!a.guard.is_always()) return false;
  std::vector<Var> seen;
  for (size_t d = 0; d < a.coords.size(); ++d) {
    const auto v = a.coords[d].as_index();
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return v && r.var == *v; });
    if (range == ranges.end() || !(range->extent == buffer.extents[d])) return false;
    if (std::find(seen.begin(), seen.end(), *v) != seen.end()) return false;
    seen.push_back(*v);
  }
  return true;
}

bool reads(const std::vector<Access>& list, int buffer) {
  return std::any_of(list.begin(), list.end(), [&](const Access& a) { return a.buffer == buffer; });
}

// Whether the statement writes every element of the buffer without having read any.
bool fills(const Stmt& stmt, int buffer, const Program& program) {
  const Buffer& b = program.buffers[size_t(buffer)];
  if (const auto* s = std::get_if<Copy>(&stmt)) return s->from.buffer != buffer && s->to.buffer == buffer && covers(s->to, s->box, b);
  if (const auto* s = std::get_if<Gemm>(&stmt)) {
    return !s->accumulate && s->a.buffer != buffer && s->b.buffer != buffer && s->acc.buffer == buffer && covers(s->acc, {s->m, s->n}, b);
  }
  if (const auto* s = std::get_if<Map>(&stmt)) {
    if (reads(s->reads, buffer)) return false;
    return std::any_of(s->stores.begin(), s->stores.end(), [&](const Store& store) {
      return store.to.buffer == buffer && !store.combine && (s->where.is_always() || store.otherwise.valid()) && covers(store.to, s->points, b);
    });
  }
  if (const auto* s = std::get_if<Reduce>(&stmt)) {
    if (s->accumulate || reads(s->reads, buffer)) return false;
    std::vector<Range> all = s->points;
    all.insert(all.end(), s->axes.begin(), s->axes.end());
    return std::any_of(s->states.begin(), s->states.end(), [&](const Access& a) { return a.buffer == buffer && covers(a, all, b); });
  }
  return false;
}

// A statement with a domain, as the analysis needs it.
struct Guarded {
  const view::Formula* where = nullptr;
  std::vector<Range> ranges;
};

Guarded guarded(const Stmt& stmt) {
  Guarded out;
  auto add = [&](const std::vector<Range>& list) { out.ranges.insert(out.ranges.end(), list.begin(), list.end()); };
  if (const auto* s = std::get_if<Map>(&stmt)) {
    out.where = &s->where;
    add(s->points);
  } else if (const auto* s = std::get_if<Reduce>(&stmt)) {
    out.where = &s->where;
    add(s->points);
    add(s->reduces);
  } else if (const auto* s = std::get_if<Scan>(&stmt)) {
    out.where = &s->where;
    add(s->points);
    out.ranges.push_back(s->along);
  }
  return out;
}

class LoopClipper {
 public:
  LoopClipper(const Program& program, const For& loop, const std::vector<char>& used_outside)
      : program_(program), arena_(*program.arena), loop_(loop), used_outside_(used_outside) {
    visit(loop.body, [&](const Stmt& s) {
      for (Var v : bound_variables(s)) inner_.push_back(v);
      ++statements_;
    });
  }

  Block run() {
    For clipped = loop_;
    clipped.begin = tidy(clipped.begin);
    clipped.end = tidy(clipped.end);
    if (const auto active = active_range()) {
      if (active->low) clipped.begin = from(clipped.begin, *active->low);
      if (active->limit) clipped.end = least(clipped.end, *active->limit);
    }
    const auto full = statements_ <= kLargestBody ? full_range() : std::nullopt;
    if (!full) return {Stmt(std::move(clipped))};
    return split(clipped, *full);
  }

 private:
  // The first value of the loop that is at least `low`.
  Expr from(Expr begin, Expr low) const {
    const Expr step = scalar::i64(arena_, loop_.step);
    if (loop_.step == 1) return most(begin, low);
    const Expr gap = scalar::max(scalar::i64(arena_, 0), low - begin);
    return begin + scalar::binary(scalar::Op::FloorDiv, gap + scalar::i64(arena_, loop_.step - 1), step) * step;
  }

  Block split(const For& clipped, const Interval& full) const {
    Block out;
    Expr begin = clipped.begin;
    if (full.low) {
      For before = clipped;
      const Expr first = from(begin, *full.low);
      before.end = least(clipped.end, first);
      out.push_back(before);
      begin = first;
    }
    For middle = clipped;
    middle.begin = begin;
    if (full.limit) middle.end = least(clipped.end, *full.limit);
    middle.body = edit(std::move(middle.body), [&](Stmt s) {
      unmask(s);
      return Block{std::move(s)};
    });
    out.push_back(middle);
    if (full.limit) {
      For after = clipped;
      after.begin = from(begin, *full.limit);
      out.push_back(after);
    }
    return out;
  }

  // ---- bounds of forms over a statement's box ----

  bool is_inner(Var v) const { return std::find(inner_.begin(), inner_.end(), v) != inner_.end(); }

  // The largest (or smallest) value over the box, as a form over the loop variable and what is outside the loop.
  std::optional<Form> extreme(const Form& form, const std::vector<Range>& ranges, bool largest) const {
    if (form.uses(AtomKind::Data)) return std::nullopt;
    Form out = form;
    for (const Range& r : ranges) {
      if (!out.uses(AtomKind::Index, r.var)) continue;
      const auto split = out.split(r.var);
      const auto coefficient = split ? split->coefficient.constant() : std::nullopt;
      if (!coefficient) return std::nullopt;
      out = split->rest;
      if ((*coefficient > 0) == largest) out = out + split->coefficient * (r.extent - Form(1));
    }
    for (int v : out.ids(AtomKind::Index)) {
      if (v != loop_.var && is_inner(v)) return std::nullopt;
    }
    return out;
  }

  // Where form >= 0 for the loop's variable; nothing where that is not known. A form without the variable has no
  // bound to give.
  std::optional<Interval> solve(const Form& form) const {
    const auto split = form.split(loop_.var);
    const auto coefficient = split ? split->coefficient.constant() : std::nullopt;
    if (!coefficient || *coefficient == 0) return std::nullopt;
    Interval out;
    if (*coefficient > 0) out.low = expression_of(Form::ceil_div(-split->rest, Form(*coefficient)), arena_);
    else out.limit = expression_of(Form::floor_div(split->rest, Form(-*coefficient)) + Form(1), arena_);
    return out;
  }

  static void meet(std::optional<Expr>& bound, const std::optional<Expr>& other, bool low) {
    if (!other) return;
    if (!bound) bound = other;
    else if (!(*bound == *other)) bound = low ? most(*bound, *other) : least(*bound, *other);
  }
  static void join(std::optional<Expr>& bound, const std::optional<Expr>& other, bool low) {
    if (!bound) return;
    if (!other) bound.reset();
    else if (!(*bound == *other)) bound = low ? least(*bound, *other) : most(*bound, *other);
  }

  // The values of the loop's variable outside which the domain is empty.
  Interval possible(const Guarded& g) const {
    std::optional<Interval> hull;
    for (const view::Conjunction& c : g.where->cases()) {
      Interval all;
      for (const view::Constraint& k : c) {
        for (const bool negated : {false, true}) {  // form == 0 is form >= 0 and -form >= 0
          if (negated && k.relation != view::Relation::Zero) continue;
          const auto largest = extreme(negated ? -k.form : k.form, g.ranges, true);
          const auto one = largest ? solve(*largest) : std::nullopt;
          if (!one) continue;
          meet(all.low, one->low, true);
          meet(all.limit, one->limit, false);
        }
      }
      if (!hull) {
        hull = all;
      } else {
        join(hull->low, all.low, true);
        join(hull->limit, all.limit, false);
      }
    }
    return hull ? *hull : Interval{};  // a domain that never holds is left to whoever wrote it
  }

  // A constraint over the loop's variable that holds at every point of the box within this interval.
  std::optional<Interval> certain(const view::Constraint& k, const std::vector<Range>& ranges) const {
    if (k.relation != view::Relation::NonNegative || !k.form.uses(AtomKind::Index, loop_.var)) return std::nullopt;
    const auto least = extreme(k.form, ranges, false);
    return least ? solve(*least) : std::nullopt;
  }

  // ---- skipping ----

  // The union of where the loop's effects can happen, or nothing if some effect always can.
  std::optional<Interval> active_range() {
    find_temporaries();
    zero_.assign(program_.buffers.size(), std::nullopt);
    effects_.reset();
    possible_ = true;
    for (const Stmt& s : loop_.body) {
      effect(s, true);
      for (const Block* body : bodies(s)) visit(*body, [&](const Stmt& inner) { effect(inner, false); });
    }
    if (!possible_ || !effects_ || (!effects_->low && !effects_->limit)) return std::nullopt;
    return effects_;
  }

  // Buffers that every iteration fills before it reads them and that nothing outside the loop uses.
  void find_temporaries() {
    const size_t count = program_.buffers.size();
    temporary_.assign(count, 0);
    std::vector<char> decided(count);
    for (const Stmt& s : loop_.body) {
      if (const auto* a = std::get_if<Alloc>(&s)) {
        temporary_[size_t(a->buffer)] = decided[size_t(a->buffer)] = true;
        continue;
      }
      const std::vector<char> here = mentioned(s, count);
      for (size_t b = 0; b < count; ++b) {
        if (!here[b] || decided[b]) continue;
        decided[b] = true;
        const Space space = program_.buffers[b].space;
        const bool local = space == Space::Shared || space == Space::Fragment || space == Space::Local;
        temporary_[b] = local && !used_outside_[b] && fills(s, int(b), program_);
      }
    }
    visit(loop_.body, [&](const Stmt& s) {
      if (const auto* a = std::get_if<Alloc>(&s)) temporary_[size_t(a->buffer)] = true;
    });
  }

  void active_under(const Interval& i) {
    if (!effects_) {
      effects_ = i;
    } else {
      join(effects_->low, i.low, true);
      join(effects_->limit, i.limit, false);
    }
  }

  bool is_temporary(const Access& a) const { return temporary_[size_t(a.buffer)] != 0; }
  void written(const Access& a) { zero_[size_t(a.buffer)].reset(); }

  static bool is_zero(Expr e) { return e.valid() && e.is_const() && (scalar::is_float(e.kind()) ? e.as_float() == 0 : e.as_int() == 0); }

  // Joins what the statement does, its bodies apart. `top`: it runs in every iteration.
  void effect(const Stmt& stmt, bool top) {
    if (std::holds_alternative<Assert>(stmt)) possible_ = false;
    if (const auto* s = std::get_if<Map>(&stmt)) {
      const Interval where = possible(guarded(stmt));
      for (const Store& store : s->stores) {
        written(store.to);
        if (!is_temporary(store.to)) {
          if (store.otherwise.valid()) possible_ = false;
          active_under(where);
        } else if (top && !store.combine && is_zero(store.otherwise) && covers(store.to, s->points, program_.buffers[size_t(store.to.buffer)])) {
          zero_[size_t(store.to.buffer)] = where;
        }
      }
    } else if (const auto* s = std::get_if<Reduce>(&stmt)) {
      const Interval where = possible(guarded(stmt));
      for (const Access& a : s->states) {
        written(a);
        if (is_temporary(a)) continue;
        if (!s->accumulate) possible_ = false;
        active_under(where);
      }
    } else if (const auto* s = std::get_if<Scan>(&stmt)) {
      for (const Store& store : s->stores) {
        written(store.to);
        if (!is_temporary(store.to)) possible_ = false;
      }
      for (const Access& a : s->states) {
        written(a);
        if (!is_temporary(a)) possible_ = false;
      }
    } else if (const auto* s = std::get_if<Copy>(&stmt)) {
      written(s->to);
      if (!is_temporary(s->to)) possible_ = false;
      const auto& source = zero_[size_t(s->from.buffer)];
      if (top && source && is_zero(s->fill) && covers(s->to, s->box, program_.buffers[size_t(s->to.buffer)])) zero_[size_t(s->to.buffer)] = source;
    } else if (const auto* s = std::get_if<Gemm>(&stmt)) {
      const auto zero = zero_[size_t(s->a.buffer)] ? zero_[size_t(s->a.buffer)] : zero_[size_t(s->b.buffer)];
      written(s->acc);
      if (is_temporary(s->acc)) return;
      if (!s->accumulate || !zero) possible_ = false;
      else active_under(*zero);
    }
  }

  // ---- masks ----

  // Where every removable constraint of the body holds everywhere, or nothing if there is none.
  std::optional<Interval> full_range() const {
    std::optional<Interval> out;
    visit(loop_.body, [&](const Stmt& s) {
      const Guarded g = guarded(s);
      if (!g.where || g.where->cases().size() != 1) return;
      for (const view::Constraint& k : g.where->cases()[0]) {
        const auto one = certain(k, g.ranges);
        if (!one) continue;
        if (!out) out.emplace();
        meet(out->low, one->low, true);
        meet(out->limit, one->limit, false);
      }
    });
    return out;
  }

  // Within the full range: removes the constraints that made it.
  void unmask(Stmt& s) const {
    const Guarded g = guarded(s);
    if (!g.where || g.where->cases().size() != 1) return;
    view::Formula left;
    for (const view::Constraint& k : g.where->cases()[0]) {
      if (certain(k, g.ranges)) continue;
      left = left && (k.relation == view::Relation::Zero ? view::Formula::zero(k.form) : view::Formula::non_negative(k.form));
    }
    if (auto* map = std::get_if<Map>(&s)) map->where = left;
    if (auto* reduce = std::get_if<Reduce>(&s)) reduce->where = left;
    if (auto* scan = std::get_if<Scan>(&s)) scan->where = left;
    // Without a mask there is no other value.
    if (auto* map = std::get_if<Map>(&s); map && left.is_always()) {
      for (Store& store : map->stores) store.otherwise = Expr();
    }
    if (auto* scan = std::get_if<Scan>(&s); scan && left.is_always()) {
      for (Store& store : scan->stores) store.otherwise = Expr();
    }
  }

  const Program& program_;
  scalar::Arena& arena_;
  const For& loop_;
  const std::vector<char>& used_outside_;
  std::vector<Var> inner_;
  size_t statements_ = 0;
  std::vector<char> temporary_;
  std::vector<std::optional<Interval>> zero_;  // under which values of the loop a buffer may hold more than zeros
  std::optional<Interval> effects_;
  bool possible_ = true;
};

// Loops inside first; `outside` marks the buffers that statements outside the block use.
Block clip(const Program& program, Block block, const std::vector<char>& outside) {
  const size_t count = program.buffers.size();
  std::vector<std::vector<char>> uses;
  for (const Stmt& s : block) uses.push_back(mentioned(s, count));
  Block out;
  for (size_t i = 0; i < block.size(); ++i) {
    std::vector<char> around = outside;
    for (size_t j = 0; j < block.size(); ++j) {
      if (j == i) continue;
      for (size_t b = 0; b < count; ++b) around[b] = char(around[b] | uses[j][b]);
    }
    for (Block* body : bodies(block[i])) {
      // Within a loop the other iterations are outside as well, but they begin by filling what a loop inside them
      // calls its own; a branch sees the other branch only.
      *body = clip(program, std::move(*body), around);
    }
    auto* loop = std::get_if<For>(&block[i]);
    if (!loop) {
      out.push_back(std::move(block[i]));
      continue;
    }
    Block by = LoopClipper(program, *loop, around).run();
    out.insert(out.end(), std::make_move_iterator(by.begin()), std::make_move_iterator(by.end()));
  }
  return out;
}

}  // namespace

Program clip_loops(Program program) {
  const std::vector<char> nothing(program.buffers.size());
  for (Kernel& k : program.kernels) k.body = clip(program, std::move(k.body), nothing);
  return program;
}

}  // namespace lemma::tile
