// Test texts: graphs as people write them, built in C++.
#pragma once

#include <limits>
#include <string>

#include "lemma/tensor/builder.h"

namespace lemma::rewrite::texts {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Builder;
using tensor::Draft;
using tensor::Value;
using view::Form;
using view::Formula;

struct WeightsText {
  bool causal = false;       // a domain j <= i
  bool masked = false;       // select(j <= i, s, -inf)
  bool guarded = true;       // exp and quotient guarded as the prelude does
  double scale = 0.125;      // of the product, in the sum's body
  bool cap = false;          // a soft cap on the score
  bool values = true;        // p * v summed; else the logarithm of the sum is the output
};

inline Expr least(Builder& b) { return b.f32(-std::numeric_limits<double>::infinity()); }

// s = sum q*k*scale, m = max s, e = exp(s - m), z = sum e, p = e / z, o = sum p*v.
inline tensor::Graph weights(const WeightsText& text) {
  Builder b("weights");
  const Form n = b.size("N"), m = b.size("M"), d = 8, c = 6;
  const Value q = b.input("q", {n, d}), k = b.input("k", {m, d}), v = b.input("v", {m, c});
  Draft sd = b.draft("s");
  const Form si = sd.point("i", n), sj = sd.point("j", m), sc = sd.reduce("d", d);
  const Expr left = sd.read(q, {si, sc}), right = sd.read(k, {sj, sc});
  Value s = sd.fold(monoid::sum(Kind::F32), {left * right * b.f32(text.scale)});
  if (text.cap || text.masked) {
    Draft t = b.draft("t");
    const Form i = t.point("i", n), j = t.point("j", m);
    Expr at = t.read(s, {i, j});
    if (text.cap) at = b.f32(3) * scalar::unary(Op::Tanh, at / b.f32(3));
    if (text.masked) at = scalar::select(scalar::binary(Op::Le, t.index(j), t.index(i)), at, least(b));
    s = t.map({at});
  }
  const auto where = [&](Draft& draft, const Form& i, const Form& j) {
    if (text.causal) draft.where(Formula::less_equal(j, i));
  };
  Draft md = b.draft("m");
  const Form mi = md.point("i", n), mj = md.reduce("j", m);
  where(md, mi, mj);
  const Value max = md.fold(monoid::maximum(Kind::F32), {md.read(s, {mi, mj})});
  Draft ed = b.draft("e");
  const Form ei = ed.point("i", n), ej = ed.point("j", m);
  where(ed, ei, ej);
  const Expr es = ed.read(s, {ei, ej}), em = ed.read(max, {ei}), weight = scalar::exp(es - em);
  const Value e = ed.map({text.guarded ? scalar::select(scalar::binary(Op::Eq, es, least(b)), b.f32(0), weight) : weight});
  Draft zd = b.draft("z");
  const Form zi = zd.point("i", n), zj = zd.reduce("j", m);
  where(zd, zi, zj);
  const Value z = zd.fold(monoid::sum(Kind::F32), {zd.read(e, {zi, zj})});
  if (!text.values) {
    Draft l = b.draft("lse");
    const Form i = l.point("i", n);
    const Expr lm = l.read(max, {i}), lz = l.read(z, {i});
    const Expr inf = b.f32(std::numeric_limits<double>::infinity());
    b.output("lse", l.map({scalar::select(scalar::binary(Op::Eq, lm, inf), inf, lm + scalar::unary(Op::Log, lz))}));
    return b.finish();
  }
  Draft pd = b.draft("p");
  const Form pi = pd.point("i", n), pj = pd.point("j", m);
  where(pd, pi, pj);
  const Expr pe = pd.read(e, {pi, pj}), pz = pd.read(z, {pi});
  const Value p = pd.map({text.guarded ? scalar::select(scalar::binary(Op::Eq, pz, b.f32(0)), b.f32(0), pe / pz) : pe / pz});
  Draft od = b.draft("o");
  const Form oi = od.point("i", n), oc = od.point("c", c), oj = od.reduce("j", m);
  where(od, oi, oj);
  const Expr op = od.read(p, {oi, oj}), ov = od.read(v, {oj, oc});
  b.output("o", od.fold(monoid::sum(Kind::F32), {op * ov}));
  return b.finish();
}

// The nodes of the graph that are no inputs, by name.
inline const tensor::Comprehension* find(const tensor::Graph& graph, const std::string& name) {
  for (const tensor::Node& n : graph.nodes) {
    const auto* c = std::get_if<tensor::Comprehension>(&n);
    if (c && c->name == name) return c;
  }
  return nullptr;
}

inline int count_computed(const tensor::Graph& graph) {
  int out = 0;
  for (const tensor::Node& n : graph.nodes) out += std::holds_alternative<tensor::Input>(n) ? 0 : 1;
  return out;
}

}  // namespace lemma::rewrite::texts
