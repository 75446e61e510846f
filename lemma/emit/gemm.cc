// Matrix products. Where the operands have the shape a register tile wants, the product runs through a microkernel
// (microkernel.h); anything else becomes a reduction over k.

#include "lemma/emit/microkernel.h"
#include "lemma/emit/statements.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;

namespace {

monoid::MonoidRef sum_of_products(Kind kind) {
  auto m = std::make_shared<monoid::Monoid>();
  m->name = "sum";
  m->arena = std::make_shared<scalar::Arena>();
  m->structure = monoid::Structure::Elementwise;
  m->operands = {kind};
  m->components = {{"sum", kind, {}}};
  m->identity = {kind == Kind::Bool ? scalar::boolean(*m->arena, false) : scalar::constant(*m->arena, kind, 0)};
  m->lift = {scalar::arg(*m->arena, kind, 0)};
  monoid::Update update;
  update.reads = {{false, 0, {}}, {true, 0, {}}};
  update.body = scalar::arg(*m->arena, kind, 0) + scalar::arg(*m->arena, kind, 1);
  m->combine = {update};
  m->commutative = true;
  return m;
}

}  // namespace

void emit_gemm(Unit& unit, const tile::Gemm& gemm) {
  if (!gemm.comment.empty()) unit.out.line("/* " + gemm.comment + " */");
  std::string reason;
  if (emit_register_tiles(unit, gemm, reason)) return;
  unit.out.line("/* generic gemm: " + reason + " */");
  const Kind kind = scalar::kind_of(unit.buffer(gemm.acc.buffer).type);
  tile::Reduce reduce;
  reduce.points = {gemm.m, gemm.n};
  reduce.reduces = gemm.taps;
  reduce.reduces.push_back(gemm.k);
  reduce.reads = {gemm.a, gemm.b};
  // A result that does not mention m or n has one row or column: a state that leaves a point out is folded once.
  std::erase_if(reduce.points, [&](const tile::Range& r) {
    for (const view::Form& c : gemm.acc.coords) {
      if (c.uses(view::AtomKind::Index, r.var)) return false;
    }
    for (tile::Access& read : reduce.reads) {
      for (view::Form& c : read.coords) c = c.substitute_index(r.var, view::Form(0));
    }
    return true;
  });
  const auto operand = [&](int r) {
    const tile::Access& a = reduce.reads[size_t(r)];
    const Kind own = scalar::kind_of(unit.buffer(a.buffer).type);
    const Expr value = scalar::cast(scalar::arg(unit.arena, own, r), kind);
    if (a.guard.is_always()) return value;
    return scalar::select(scalar::present(unit.arena, r), value, scalar::constant(unit.arena, kind, 0));
  };
  reduce.body = {operand(0) * operand(1)};
  reduce.monoid = sum_of_products(kind);
  reduce.states = {gemm.acc};
  reduce.accumulate = gemm.accumulate;
  emit_reduce(unit, reduce);
}

}  // namespace lemma::emit
