#include "lemma/tile/builder.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "lemma/tile/validate.h"
#include "lemma/view/convert.h"

namespace lemma::tile {

using scalar::Expr;
using scalar::Kind;
using view::Form;

namespace {

Expr value_of(scalar::Arena& arena, const Form& form) {
  if (const auto v = form.as_index()) return scalar::index(arena, *v);
  if (const auto s = form.as_size()) return scalar::size(arena, *s);
  return view::to_expr(form, arena);
}

// The reads in the order in which the values show them, from left to right, and the values over them.
void order_reads(scalar::Arena& arena, std::vector<Access>& reads, const std::vector<Expr*>& values) {
  std::vector<int> place(reads.size(), -1);
  std::vector<Access> ordered;
  std::unordered_set<uint32_t> seen;
  for (Expr* root : values) {
    std::vector<Expr> todo;
    if (root->valid()) todo.push_back(*root);
    while (!todo.empty()) {
      const Expr e = todo.back();
      todo.pop_back();
      if (!seen.insert(e.index()).second) continue;
      if (e.is(scalar::Op::Arg) && place[size_t(e.payload())] < 0) {
        place[size_t(e.payload())] = int(ordered.size());
        ordered.push_back(reads[size_t(e.payload())]);
      }
      for (size_t i = e.args().size(); i-- > 0;) todo.push_back(e.arg(i));
    }
  }
  for (Expr* root : values) {
    if (!root->valid()) continue;
    *root = scalar::rewrite(*root, arena, [&](Expr e, std::span<const Expr>) {
      return e.is(scalar::Op::Arg) ? scalar::arg(arena, e.kind(), place[size_t(e.payload())]) : Expr();
    });
  }
  reads = std::move(ordered);
}

}  // namespace

Region part(const Region& of, const std::vector<Slice>& slices) {
  Region out = of;
  out.axes.clear();
  for (size_t i = 0; i < of.axes.size(); ++i) {
    RegionAxis axis = of.axes[i];
    const Slice slice = i < slices.size() ? slices[i] : all;
    Form& base = out.base[size_t(axis.dimension)];
    if (slice.start) base = base + *slice.start;
    if (slice.extent) {
      axis.extent = *slice.extent;
      axis.stated = true;
    }
    if (slice.extent || !slice.start) out.axes.push_back(std::move(axis));
  }
  return out;
}

// ---- what a statement may be told ----

Said& Said::async() {
  if (auto* s = std::get_if<Copy>(stmt_)) s->async = true;
  if (auto* s = std::get_if<Combine>(stmt_)) s->async = true;
  return *this;
}
Said& Said::bulk() {
  if (auto* s = std::get_if<Combine>(stmt_)) s->bulk = true;
  return *this;
}
Said& Said::ordered(Form by) {
  if (auto* s = std::get_if<Combine>(stmt_)) s->ordered = std::move(by);
  return *this;
}
Said& Said::team(Team team) {
  if (auto* s = std::get_if<Gemm>(stmt_)) s->team = team;
  return *this;
}
Said& Said::step(int64_t n) {
  if (auto* s = std::get_if<For>(stmt_)) s->step = n;
  return *this;
}
Said& Said::unrolled() {
  if (auto* s = std::get_if<For>(stmt_)) s->kind = LoopKind::Unrolled;
  return *this;
}
Said& Said::pipelined(int depth) {
  if (auto* s = std::get_if<For>(stmt_)) {
    s->kind = LoopKind::Pipelined;
    s->depth = depth;
  }
  return *this;
}
Said& Said::where(Program& program, const std::vector<Index>& points, const std::function<view::Formula(const Forms&)>& domain) {
  auto* s = std::get_if<For>(stmt_);
  if (!s) return *this;
  Forms at;
  for (const Index& i : points) {
    const Var v = Var(program.variables.size());
    program.variables.push_back(i.name);
    s->points.push_back({v, i.extent});
    at.push_back(Form::index(v));
  }
  s->where = domain(at);
  return *this;
}

// ---- points ----

Expr Point::read(const Region& tile, const Forms& at) {
  Access a = tile.at(at);
  const auto known = std::find(reads_.begin(), reads_.end(), a);
  const int r = int(known - reads_.begin());
  const Kind kind = scalar::kind_of(program_.buffers[size_t(tile.buffer)].type);
  if (known == reads_.end()) reads_.push_back(std::move(a));
  return scalar::arg(*program_.arena, kind, r);
}
Expr Point::value(const Form& form) const { return value_of(*program_.arena, form); }
void Point::store(const Region& tile, const Forms& at, Expr value) { stores_.push_back({tile.at(at), value, {}, {}}); }
void Point::add(const Region& tile, const Forms& at, Expr value) { stores_.push_back({tile.at(at), value, {}, scalar::Op::Add}); }

// ---- the program ----

Form Builder::size(std::string name, std::optional<int64_t> typical) {
  program.sizes.push_back({std::move(name), {}, typical});
  return Form::size(int(program.sizes.size()) - 1);
}

Region Builder::buffer(Space space, std::string name, scalar::DType type, Forms extents, BufferHints hints) {
  Buffer b;
  b.name = std::move(name);
  b.type = type;
  b.space = space;
  b.extents = std::move(extents);
  b.hints = std::move(hints);
  program.buffers.push_back(std::move(b));
  return whole(int(program.buffers.size()) - 1, program);
}

Region Builder::local(Space space, std::string name, scalar::DType type, Forms extents, const BufferHints& hints, std::optional<double> value) {
  const Region out = buffer(space, std::move(name), type, std::move(extents), hints);
  add(Alloc{out.buffer});
  if (value) add(fill_of(program, out, number(*value, scalar::kind_of(type))));
  return out;
}

Forms Builder::bind(const std::vector<Index>& indices, std::vector<Range>& out) {
  Forms at;
  for (const Index& i : indices) {
    const Var v = Var(program.variables.size());
    program.variables.push_back(i.name);
    out.push_back({v, i.extent});
    at.push_back(Form::index(v));
  }
  return at;
}

Said Builder::add(Stmt stmt) {
  if (!block_) {
    if (!error_) error_ = base::invalid("a statement was built outside a kernel", {}, "build statements in the function given to kernel()");
    return Said(lost_);
  }
  block_->push_back(std::move(stmt));
  return Said(block_->back());
}

template <class T>
Said Builder::keep(base::Result<T> stmt) {
  if (stmt.ok()) return add(Stmt(*std::move(stmt)));
  if (!error_) error_ = stmt.error();
  return Said(lost_);
}

Expr Builder::number(double value, Kind kind) {
  if (kind == Kind::Bool) return scalar::boolean(*program.arena, value != 0);
  return scalar::is_float(kind) ? scalar::constant(*program.arena, kind, value) : scalar::constant_int(*program.arena, kind, int64_t(value));
}

void Builder::kernel(std::string name, const std::vector<Index>& grid, const std::function<void(const Forms&)>& body, KernelHints hints) {
  Kernel k;
  k.name = std::move(name);
  k.hints = hints;
  std::vector<Range> ranges;
  const Forms at = bind(grid, ranges);
  for (const Range& r : ranges) k.grid.push_back({r.var, r.extent, false});
  Block* outer = std::exchange(block_, &k.body);
  body(at);
  block_ = outer;
  program.kernels.push_back(std::move(k));
}

Said Builder::copy(const Region& from, const Region& to, double fill) {
  base::Result<Copy> s = copy_of(program, from, to);
  if (s.ok()) s->fill = number(fill, scalar::kind_of(program.buffers[size_t(to.buffer)].type));
  return keep(std::move(s));
}
Said Builder::gemm(const Region& acc, const Region& a, const Region& b) { return keep(gemm_of(program, acc, a, b, true)); }
Said Builder::gemm_to(const Region& acc, const Region& a, const Region& b) { return keep(gemm_of(program, acc, a, b, false)); }

Said Builder::combine(scalar::Op op, const Region& from, const Region& to) {
  base::Result<Copy> copy = copy_of(program, from, to);
  if (!copy.ok()) return keep(std::move(copy));
  Combine s;
  s.op = op;
  s.box = copy->box;
  s.from = copy->from;
  s.to = copy->to;
  return add(std::move(s));
}

Said Builder::map(const std::vector<Index>& points, const std::function<void(Point&, const Forms&)>& body) {
  Map s;
  const Forms at = bind(points, s.points);
  Point p(program, s.reads);
  body(p, at);
  s.where = std::move(p.domain_);
  s.stores = std::move(p.stores_);
  std::vector<Expr*> values;
  for (Store& store : s.stores) {
    const Kind kind = scalar::kind_of(program.buffers[size_t(store.to.buffer)].type);
    if (p.otherwise_.valid() && !store.combine) store.otherwise = scalar::cast(p.otherwise_, kind);
    values.push_back(&store.value);
    values.push_back(&store.otherwise);
  }
  order_reads(*program.arena, s.reads, values);
  return add(std::move(s));
}

Said Builder::reduce(monoid::MonoidRef monoid, const std::vector<Index>& points, const std::vector<Index>& over, bool accumulate,
                     const std::function<Fold(Point&, const Forms&, const Forms&)>& body) {
  Reduce s;
  const Forms at = bind(points, s.points), folded = bind(over, s.reduces);
  s.monoid = std::move(monoid);
  s.accumulate = accumulate;
  Point p(program, s.reads);
  Fold fold = body(p, at, folded);
  s.where = std::move(p.domain_);
  order_reads(*program.arena, s.reads, {&fold.operand});
  s.body.push_back(fold.operand);
  s.states.push_back(std::move(fold.state));
  return add(std::move(s));
}

Said Builder::loop(std::string name, Expr begin, Expr end, const std::function<void(const Form&)>& body) {
  For s;
  s.var = Var(program.variables.size());
  program.variables.push_back(std::move(name));
  s.begin = begin;
  s.end = end;
  Block inner;
  Block* outer = std::exchange(block_, &inner);
  body(Form::index(s.var));
  block_ = outer;
  s.body = std::move(inner);
  return add(std::move(s));
}

Expr Builder::value(const Form& form) { return value_of(*program.arena, form); }
Expr Builder::ceil_div(Expr a, int64_t b) {
  return scalar::binary(scalar::Op::FloorDiv, a + i64(b) - i64(1), i64(b));
}

base::Result<Program> Builder::finish() {
  if (error_) return *error_;
  LEMMA_TRY_VOID(validate(program));
  return std::move(program);
}

}  // namespace lemma::tile
