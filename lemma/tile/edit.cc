#include "lemma/tile/edit.h"

#include <iterator>
#include <utility>

#include "lemma/base/match.h"

namespace lemma::tile {

std::vector<Block*> bodies(Stmt& stmt) {
  if (auto* loop = std::get_if<For>(&stmt)) return {&loop->body};
  if (auto* branch = std::get_if<If>(&stmt)) return {&branch->then, &branch->otherwise};
  return {};
}

std::vector<const Block*> bodies(const Stmt& stmt) {
  if (const auto* loop = std::get_if<For>(&stmt)) return {&loop->body};
  if (const auto* branch = std::get_if<If>(&stmt)) return {&branch->then, &branch->otherwise};
  return {};
}

Block edit(Block block, const Edit& f) {
  Block out;
  out.reserve(block.size());
  for (Stmt& stmt : block) {
    for (Block* body : bodies(stmt)) *body = edit(std::move(*body), f);
    Block by = f(std::move(stmt));
    out.insert(out.end(), std::make_move_iterator(by.begin()), std::make_move_iterator(by.end()));
  }
  return out;
}

void visit(const Block& block, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& stmt : block) {
    f(stmt);
    for (const Block* body : bodies(stmt)) visit(*body, f);
  }
}

namespace {

// Applies `Parts` to the fields of each kind of statement; the one place that lists them all.
struct Replacer {
  const Parts& p;

  void at(view::Form& f) const { if (p.form) f = p.form(f); }
  void at(view::Formula& f) const { if (p.formula) f = p.formula(f); }
  void at(scalar::Expr& e) const { if (p.expr && e.valid()) e = p.expr(e); }
  void at(monoid::MonoidRef& m) const { if (p.monoid && m) m = p.monoid(m); }
  void bind(Var& v) const { if (p.bound) v = p.bound(v); }
  void at(Access& a) const {
    if (p.buffer) a.buffer = p.buffer(a.buffer);
    for (view::Form& f : a.coords) at(f);
    at(a.guard);
  }
  void at(Store& s) const { at(s.to); at(s.value); at(s.otherwise); }
  template <class T>
  void at(std::vector<T>& list) const { for (T& x : list) at(x); }
  // Extents are over outer variables, so all of them come before the first binding.
  void extents(std::vector<Range>& ranges) const { for (Range& r : ranges) at(r.extent); }
  void bind(std::vector<Range>& ranges) const { for (Range& r : ranges) bind(r.var); }

  void operator()(Let& s) const { at(s.reads); at(s.value); bind(s.var); }
  void operator()(Alloc& s) const { if (p.buffer) s.buffer = p.buffer(s.buffer); }
  void operator()(Copy& s) const { extents(s.box); bind(s.box); at(s.from); at(s.to); at(s.fill); }
  void operator()(Map& s) const { extents(s.points); bind(s.points); at(s.reads); at(s.where); at(s.stores); }
  void operator()(Reduce& s) const {
    extents(s.points); extents(s.axes); extents(s.reduces);
    bind(s.points); bind(s.axes); bind(s.reduces);
    at(s.monoid); at(s.reads); at(s.where); at(s.body); at(s.states);
  }
  void operator()(Scan& s) const {
    extents(s.points); extents(s.axes); at(s.along.extent);
    bind(s.points); bind(s.axes); bind(s.along.var);
    at(s.monoid); at(s.reads); at(s.where); at(s.body); at(s.states); at(s.stores);
  }
  void operator()(Gemm& s) const {
    at(s.m.extent); at(s.n.extent); at(s.k.extent); extents(s.taps);
    bind(s.m.var); bind(s.n.var); bind(s.k.var); bind(s.taps);
    at(s.a); at(s.b); at(s.acc);
  }
  void operator()(For& s) const { at(s.begin); at(s.end); bind(s.var); extents(s.points); bind(s.points); at(s.where); }
  void operator()(If& s) const { at(s.reads); at(s.condition); }
  void operator()(Assert& s) const { at(s.reads); at(s.condition); }
  void operator()(Combine& s) const {
    extents(s.box); bind(s.box); at(s.from); at(s.to);
    if (s.ordered) at(*s.ordered);
  }
  void operator()(Print& s) const { at(s.reads); at(s.values); }
  void operator()(Extern& s) const {
    for (auto* list : {&s.reads, &s.writes}) {
      for (int& b : *list) if (p.buffer) b = p.buffer(b);
    }
    at(s.values);
  }
  void operator()(Phase&) const {}
  void operator()(Barrier&) const {}
  void operator()(Commit&) const {}
  void operator()(Wait&) const {}
};

}  // namespace

void replace_parts(Stmt& stmt, const Parts& parts) { std::visit(Replacer{parts}, static_cast<Stmt::variant&>(stmt)); }

std::vector<Var> bound_variables(const Stmt& stmt) {
  if (const auto* loop = std::get_if<For>(&stmt)) return {loop->var};
  if (std::holds_alternative<If>(stmt)) return {};
  std::vector<Var> out;
  Stmt copy = stmt;
  Parts parts;
  parts.bound = [&](Var v) { out.push_back(v); return v; };
  replace_parts(copy, parts);
  return out;
}

const char* word(const Stmt& stmt) {
  static constexpr const char* kWords[] = {"let", "alloc", "copy", "map", "reduce", "scan", "gemm", "for", "if", "assert",
                                           "combine", "print", "extern", "phase", "barrier", "commit", "wait"};
  const auto* check = std::get_if<Assert>(&stmt);
  return check && check->assumed ? "assume" : kWords[stmt.index()];
}

}  // namespace lemma::tile
