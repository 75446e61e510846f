// A blocked matrix product as a hand-written tile program, in a few forms.
#pragma once

#include "lemma/emit/testing.h"

namespace lemma::emit::testing {

struct GemmForm {
  scalar::DType type = scalar::DType::F32;  // of the inputs; the result is f32, or f64 with them
  bool packed = true;        // the right operand goes through panels
  bool pairs = true;         // bf16 panels in pairs; else they are widened while packed
  bool a_transposed = false, b_transposed = false;
  int64_t block_m = 192, block_n = 512, block_k = 512;
};

// Sizes M, N, K; parameters a, b, c.
inline Builder gemm_program(const GemmForm& form, const tile::Target& target) {
  using namespace scalar;
  using tile::Space;
  using view::Form;
  using view::Formula;
  Builder b;
  const int M = b.size("M"), N = b.size("N"), K = b.size("K");
  const int bi = b.var("bi"), bj = b.var("bj"), k0 = b.var("k0"), m = b.var("m"), n = b.var("n"), k = b.var("k");
  const int rows = b.var("rows"), columns = b.var("columns"), deep = b.var("deep");
  const auto ab = [&](bool t, Form x, Form y) { return t ? std::vector<Form>{y, x} : std::vector<Form>{x, y}; };
  const int a = b.buffer("a", Space::Input, form.type, ab(form.a_transposed, s(M), s(K)));
  const int w = b.buffer("b", Space::Input, form.type, ab(form.b_transposed, s(K), s(N)));
  const bool doubles = form.type == DType::F64;
  const DType own = doubles ? DType::F64 : DType::F32;
  const int c = b.buffer("c", Space::Output, own, {s(M), s(N)});
  const int acc = b.buffer("acc", Space::Local, own, {form.block_m, form.block_n});
  b.program.buffers.back().layout.pad = 16;
  const bool pairs = form.type == DType::BF16 && form.pairs && form.packed;
  const int panel = b.buffer("panel", Space::Shared, pairs ? DType::BF16 : own, {form.block_k, form.block_n});
  if (form.packed) {
    const int vectors = target.vector_registers >= 32 ? 4 : 2;
    b.program.buffers.back().layout = {tile::LayoutKind::Panels, 0, vectors * std::max(4, target.lanes()), pairs ? 2 : 1};
  }
  tile::Kernel& kernel = b.kernel("product");
  kernel.grid = {{bi, Form::ceil_div(s(M), Form(form.block_m)), false}, {bj, Form::ceil_div(s(N), Form(form.block_n)), false}};
  Arena& arena = b.arena();
  const auto let = [&](int v, int size, Expr from, int64_t block) {
    return tile::Let{v, {}, min(i64(arena, block), scalar::size(arena, size) - from)};
  };
  const Expr m0 = index(arena, bi) * i64(arena, form.block_m), n0 = index(arena, bj) * i64(arena, form.block_n);
  kernel.body.push_back({let(rows, M, m0, form.block_m)});
  kernel.body.push_back({let(columns, N, n0, form.block_n)});
  kernel.body.push_back({tile::Alloc{acc}});
  tile::Map zero;
  zero.points = {{m, f(rows)}, {n, f(columns)}};
  zero.stores = {{{acc, {f(m), f(n)}, {}}, constant(arena, kind_of(own), 0), {}, std::nullopt}};
  kernel.body.push_back({zero});
  tile::For loop;
  loop.var = k0;
  loop.begin = i64(arena, 0);
  loop.end = scalar::size(arena, K);
  loop.step = form.block_k;
  loop.body.push_back({let(deep, K, index(arena, k0), form.block_k)});
  loop.body.push_back({tile::Alloc{panel}});
  const Form am = f(bi) * Form(form.block_m) + f(m), bn = f(bj) * Form(form.block_n) + f(n), kk = f(k0) + f(k);
  tile::Copy pack;
  pack.box = {{k, f(deep)}, {n, f(columns)}};
  pack.from = {w, ab(form.b_transposed, kk, bn), {}};
  pack.to = {panel, {f(k), f(n)}, {}};
  pack.fill = constant(arena, kind_of(own), 0);
  tile::Gemm gemm;
  gemm.m = {m, f(rows)};
  gemm.n = {n, f(columns)};
  gemm.k = {k, f(deep)};
  gemm.a = {a, ab(form.a_transposed, am, kk), {}};
  gemm.b = form.packed ? tile::Access{panel, {f(k), f(n)}, {}} : tile::Access{w, ab(form.b_transposed, kk, bn), {}};
  gemm.acc = {acc, {f(m), f(n)}, {}};
  if (form.packed) loop.body.push_back({pack});
  loop.body.push_back({gemm});
  kernel.body.push_back({loop});
  tile::Copy out;
  out.box = {{m, f(rows)}, {n, f(columns)}};
  out.from = {acc, {f(m), f(n)}, {}};
  out.to = {c, {am, bn}, {}};
  out.fill = constant(arena, kind_of(own), 0);
  kernel.body.push_back({out});
  return b;
}

}  // namespace lemma::emit::testing
