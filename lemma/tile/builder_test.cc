// Programs built in C++ equal the texts of examples/tile.
#include "lemma/tile/builder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "lemma/tile/equal.h"
#include "lemma/tile/parse.h"
#include "lemma/tile/print.h"

namespace lemma::tile {
namespace {

using scalar::DType;
using scalar::Expr;
using view::Form;
using view::Formula;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_text(base::Result<Program> built, const std::string& name) {
  std::ifstream file(std::string(LEMMA_SOURCE_DIR) + "/examples/tile/" + name + ".tile");
  std::stringstream text;
  text << file.rdbuf();
  const auto parsed = parse(text.str(), name);
  ASSERT_TRUE(parsed.ok()) << base::render(parsed.error());
  ASSERT_TRUE(built.ok()) << base::render(built.error());
  EXPECT_TRUE(equal(*built, *parsed)) << print(*built) << print(*parsed);
}

base::Result<Program> matmul() {
  Builder b("matmul");
  const Form M = b.size("M", 512), N = b.size("N", 512), K = b.size("K", 512);
  const Region a = b.input("a", DType::F32, {M, K}), w = b.input("b", DType::F32, {K, N}), c = b.output("c", DType::F32, {M, N});
  b.kernel("main", {{"x", Form::ceil_div(N, 64)}, {"y", Form::ceil_div(M, 64)}}, [&](const Forms& g) {
    const Region as = b.shared("as", DType::F32, {64, 32}), bs = b.shared("bs", DType::F32, {32, 64});
    const Region acc = b.fragment("acc", DType::F32, {64, 64}, {}, 0);
    b.loop("k", b.i64(0), b.ceil_div(b.value(K), 32), [&](const Form& k) {
      b.copy(part(a, {{g[1] * 64, 64}, {k * 32, 32}}), as);
      b.copy(part(w, {{k * 32, 32}, {g[0] * 64, 64}}), bs);
      b.gemm(acc, as, bs);
    }).pipelined(3);
    b.copy(acc, part(c, {{g[1] * 64, 64}, {g[0] * 64, 64}}));
  });
  return b.finish();
}

base::Result<Program> product_residual() {
  Builder b("product_residual");
  const Form M = b.size("M", 2048), N = b.size("N", 2048), K = b.size("K", 2048);
  const Region a = b.input("a", DType::BF16, {M, K}), w = b.input("b", DType::BF16, {K, N}), r = b.input("r", DType::BF16, {M, N});
  const Region g = b.input("g", DType::F32, {N});
  const Region h = b.output("h", DType::BF16, {M, N}), hg = b.output("hg", DType::BF16, {M, N});
  const Region ss = b.output("ss", DType::F32, {M, Form::ceil_div(N, 256)});
  b.kernel("main", {{"bn", Form::ceil_div(N, 256)}, {"bm", Form::ceil_div(M, 128)}}, [&](const Forms& at) {
    const Form bn = at[0], bm = at[1];
    const Region as = b.shared("as", DType::BF16, {128, 64}), bs = b.shared("bs", DType::BF16, {64, 256});
    const Region rs = b.shared("rs", DType::BF16, {128, 64}), st = b.shared("st", DType::BF16, {128, 64});
    const Region gs = b.shared("gs", DType::F32, {256});
    const Region acc = b.fragment("acc", DType::F32, {128, 256}, {}, 0), squares = b.fragment("part", DType::F32, {128}, {}, 0);
    b.loop("kb", b.i64(0), b.ceil_div(b.value(K), 64), [&](const Form& kb) {
      b.copy(part(a, {{bm * 128, 128}, {kb * 64, 64}}), as);
      b.copy(part(w, {{kb * 64, 64}, {bn * 256, 256}}), bs);
      b.gemm(acc, as, bs);
    }).pipelined(4);
    b.copy(part(g, {{bn * 256, 256}}), gs);
    b.loop("c", b.i64(0), b.i64(4), [&](const Form& c) {
      const Region t = part(acc, {all, {c * 64, 64}});
      const auto place = [&](const Region& of) { return part(of, {{bm * 128, 128}, {bn * 256 + c * 64, 64}}); };
      b.copy(place(r), rs);
      b.map({{"i", 128}, {"n", 64}}, [&](Point& p, const Forms& v) { p.store(t, v, p.read(t, v) + p.read(rs, v)); });
      b.reduce(monoid::sum(scalar::Kind::F32), {{"i", 128}}, {{"n", 64}}, true, [&](Point& p, const Forms& i, const Forms& n) {
        return Builder::Fold{p.read(t, {i[0], n[0]}) * p.read(t, {i[0], n[0]}), squares.at(i)};
      });
      b.copy(t, st);
      b.copy(st, place(h)).async();
      b.map({{"i", 128}, {"n", 64}}, [&](Point& p, const Forms& v) { p.store(t, v, p.read(t, v) * p.read(gs, {c * 64 + v[1]})); });
      b.copy(t, st);
      b.copy(st, place(hg)).async();
    }).pipelined(2);
    b.copy(squares, part(ss, {{bm * 128, 128}, {bn}}));
  }, {.persistent = true, .order_rows = 8});
  return b.finish();
}

BufferHints hints(int swizzle, int versions) {
  BufferHints out;
  out.swizzle = swizzle;
  out.versions = versions;
  return out;
}

// The reduce of row dots has its state alone and its operand over global memory.
void begin_kernel(Builder& b, const Form& Z, const Form& N, const Region& dout, const Region& o, const Region& dsum, const Region& dqa) {
  b.kernel("begin", {{"z", Z}, {"b", Form::ceil_div(N, 64)}}, [&](const Forms& g) {
    const Region dots = b.fragment("dots", DType::F32, {64}), nothing = b.fragment("nothing", DType::F32, {64, 128}, {}, 0);
    b.reduce(monoid::sum(scalar::Kind::F32), {{"i", 64}}, {{"c", 128}}, false, [&](Point& p, const Forms& i, const Forms& c) {
      p.where(Formula::less(g[1] * 64 + i[0], N));
      const Forms at = {g[0], g[1] * 64 + i[0], c[0]};
      return Builder::Fold{p.read(dout, at) * p.read(o, at), dots.at(i)};
    });
    b.copy(dots, part(dsum, {{g[0]}, {g[1] * 64, 64}}));
    b.copy(nothing, part(dqa, {{g[0]}, {g[1] * 64, 64}, all}));
  });
}

base::Result<Program> attention_backward() {
  Builder b("attention_backward");
  const Form Z = b.size("Z", 8), N = b.size("N", 1024), M = b.size("M", 1024);
  const Region q = b.input("q", DType::BF16, {Z, N, 128}), k = b.input("k", DType::BF16, {Z, M, 128}), v = b.input("v", DType::BF16, {Z, M, 128});
  const Region dout = b.input("do", DType::BF16, {Z, N, 128}), o = b.input("o", DType::BF16, {Z, N, 128}), lse = b.input("lse", DType::F32, {Z, N});
  const Region dq = b.output("dq", DType::BF16, {Z, N, 128}), dk = b.output("dk", DType::BF16, {Z, M, 128}), dv = b.output("dv", DType::BF16, {Z, M, 128});
  const Region dqa = b.scratch("dqa", DType::F32, {Z, N, 128}), dsum = b.scratch("dsum", DType::F32, {Z, N});
  begin_kernel(b, Z, N, dout, o, dsum, dqa);
  b.kernel("main", {{"jb", Form::ceil_div(M, 128)}, {"z", Z}}, [&](const Forms& g) {
    const Form jb = g[0], z = g[1];
    const auto shared = [&](const char* name, DType type, Forms extents, BufferHints how = {}) { return b.shared(name, type, std::move(extents), how); };
    const Region ks = shared("ks", DType::BF16, {128, 128}, hints(128, 1)), vs = shared("vs", DType::BF16, {128, 128}, hints(128, 1));
    const Region qs = shared("qs", DType::BF16, {64, 128}), dos = shared("dos", DType::BF16, {64, 128});
    const Region dss = shared("dss", DType::BF16, {128, 64}, hints(0, 2)), lr = shared("lr", DType::F32, {64}), dr = shared("dr", DType::F32, {64});
    const Region s = b.fragment("s", DType::F32, {128, 64}), dp = b.fragment("dp", DType::F32, {128, 64});
    const Region p = b.fragment("p", DType::BF16, {128, 64}), ds = b.fragment("ds", DType::BF16, {128, 64});
    const Region dkf = b.fragment("dkf", DType::F32, {128, 128}, {}, 0), dvf = b.fragment("dvf", DType::F32, {128, 128}, {}, 0);
    const Region dqf = b.fragment("dqf", DType::F32, {64, 128});
    const auto keys = [&](const Region& of) { return part(of, {{z}, {jb * 128, 128}, all}); };
    b.copy(keys(k), ks);
    b.copy(keys(v), vs);
    Form ib;
    b.loop("ib", b.i64(0), b.ceil_div(b.value(N), 64), [&](const Form& var) {
      ib = var;
      const auto rows = [&](const Region& of) { return part(of, {{z}, {ib * 64, 64}}); };
      b.copy(rows(q), qs);
      b.copy(rows(dout), dos);
      b.copy(rows(lse), lr, kInfinity);
      b.copy(rows(dsum), dr);
      b.gemm_to(s, ks, transposed(qs)).stage(1);
      b.gemm_to(dp, vs, transposed(dos));
      b.map({{"j", 128}, {"i", 64}}, [&](Point& at, const Forms& x) {
        const Form j = x[0], i = x[1];
        at.where(Formula::less_equal(jb * 128 + j, ib * 64 + i) && Formula::less(jb * 128 + j, M) && Formula::less(ib * 64 + i, N));
        at.otherwise(at.f32(0));
        const Expr l = at.read(lr, {i});
        const Expr none = scalar::binary(scalar::Op::Eq, l, at.f32(-kInfinity));
        const Expr w = scalar::unary(scalar::Op::Exp2, at.read(s, x) * at.f32(0.12751743) - scalar::select(none, at.f32(kInfinity), l));
        at.store(p, x, w);
        at.store(ds, x, w * (at.read(dp, x) - at.read(dr, {i})));
      });
      b.copy(ds, dss);
      b.gemm(dvf, p, dos);
      b.gemm_to(dqf, transposed(dss), ks).team(Team::Columns);
      b.gemm(dkf, ds, qs);
      b.combine(scalar::Op::Add, dqf, rows(dqa)).bulk().async().by("producer");
    }).where(b.program, {{"j", 128}, {"i", 64}}, [&](const Forms& x) { return Formula::less_equal(jb * 128 + x[0], ib * 64 + x[1]); }).pipelined(2);
    b.map({{"j", 128}, {"c", 128}}, [&](Point& at, const Forms& x) { at.store(dkf, x, at.read(dkf, x) * at.f32(0.088388348)); });
    b.copy(dkf, keys(dk));
    b.copy(dvf, keys(dv));
  });
  b.kernel("finish", {{"z", Z}, {"b", Form::ceil_div(N, 64)}}, [&](const Forms& g) {
    b.map({{"i", 64}, {"c", 128}}, [&](Point& at, const Forms& x) {
      at.where(Formula::less(g[1] * 64 + x[0], N));
      const Forms place = {g[0], g[1] * 64 + x[0], x[1]};
      at.store(dq, place, at.read(dqa, place) * at.f32(0.088388348));
    });
  });
  return b.finish();
}

TEST(Builder, GivesTheProgramsOfTheTexts) {
  expect_text(matmul(), "matmul");
  expect_text(product_residual(), "product_residual");
  expect_text(attention_backward(), "attention_backward");
}

TEST(Builder, KeepsTheFirstMistake) {
  Builder b("p");
  const Region y = b.output("y", DType::F32, {4});
  b.copy(y, y);
  EXPECT_EQ(b.finish().error().message, "a statement was built outside a kernel");
  Builder c("p");
  const Region z = c.output("z", DType::F32, {4});
  c.kernel("main", {}, [&](const Forms&) {
    c.copy(c.fragment("t", DType::F32, {3}), c.fragment("u", DType::F32, {5})).async();
    c.copy(z, z);
  });
  EXPECT_EQ(c.finish().error().message, "the two sides disagree in dimension 0: `t` has the extent 3 there, `u` 5");
}

}  // namespace
}  // namespace lemma::tile
