// Lowered programs against direct loops: the block interpreter runs them, so that what is tested is the dataflow.

#include "lemma/lower/lower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lemma/tensor/builder.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "lemma/tile/validate.h"

namespace lemma::lower {
namespace {

using scalar::Expr;
using scalar::Kind;
using tensor::Builder;
using tensor::Draft;
using tensor::Value;
using view::Form;
using view::Formula;

tile::Target target() {
  tile::Target t;
  t.name = "avx2";
  t.vector_bytes = 32;
  t.vector_registers = 16;
  return t;
}

std::vector<float> random(size_t n, std::mt19937& rng) {
  std::uniform_real_distribution<float> d(-1, 1);
  std::vector<float> out(n);
  for (float& x : out) x = d(rng);
  return out;
}

tile::Target device() {
  tile::Target t;
  t.name = "device";
  t.device = true;
  t.tile_rows = t.tile_columns = t.stream_rows = 32;
  t.stream_columns = 16;
  return t;
}

// Lowers, validates and interprets; arrays in the order of the parameters.
void run_on(const tile::Target& target, const tensor::Graph& graph, const std::vector<tile::SizeValue>& sizes,
            const std::vector<std::vector<float>*>& arrays, schedule::Strategy strategy) {
  std::vector<rewrite::Decision> log;
  const schedule::Schedule schedule = schedule::defaults(graph, {rewrite::Claim::Finite, &log}, target);
  bool found = false;
  for (const schedule::Group& g : schedule.groups) found = found || g.strategy == strategy;
  std::string reasons;
  for (const rewrite::Decision& d : log) reasons += d.subject + " " + d.sentence + "\n";
  // On devices a small product is left to rows.
  EXPECT_TRUE(found || (target.device && strategy == schedule::Strategy::Product)) << schedule::print(schedule, graph) << reasons;
  auto program = lower(graph, schedule, target);
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  const auto valid = tile::validate(*program);
  ASSERT_TRUE(valid.ok()) << base::render(valid.error()) << tile::print(*program);
  std::vector<tile::Argument> arguments;
  for (std::vector<float>* a : arrays) arguments.push_back({a->data(), int64_t(a->size())});
  for (int64_t threads : {1, 3}) {
    const auto done = tile::run(*program, sizes, arguments, {.seed = 7, .threads = threads});
    ASSERT_TRUE(done.ok()) << base::render(done.error()) << tile::print(*program);
  }
}

// On a processor and on a device, each from the arrays as given; the results of the device are left behind, those of the
// processor must be near.
void run(const tensor::Graph& graph, std::vector<tile::SizeValue> sizes, std::vector<std::vector<float>*> arrays,
         schedule::Strategy strategy) {
  std::vector<std::vector<float>> given, found;
  for (const std::vector<float>* a : arrays) given.push_back(*a);
  run_on(target(), graph, sizes, arrays, strategy);
  for (size_t i = 0; i < arrays.size(); ++i) {
    found.push_back(*arrays[i]);
    *arrays[i] = given[i];
  }
  run_on(device(), graph, sizes, arrays, strategy);
  for (size_t i = 0; i < arrays.size(); ++i) {
    for (size_t e = 0; e < found[i].size(); ++e) {
      const float x = found[i][e], y = (*arrays[i])[e];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ASSERT_NEAR(x, y, 1e-5 * std::max(1.0f, std::fabs(x))) << i << " " << e;
    }
  }
}

TEST(Lower, ProductWithEpilogue) {
  std::mt19937 rng(1);
  for (auto [m, n, k] : {std::array<int, 3>{1, 1, 1}, {17, 23, 40}, {200, 33, 7}, {3, 70, 1300}, {5, 4, 0}, {0, 3, 2}}) {
    Builder b;
    const Form M = b.size("M"), N = b.size("N"), K = b.size("K");
    const Value x = b.input("x", {M, K}), w = b.input("w", {K, N}), bias = b.input("bias", {N});
    Draft p = b.draft("p");
    const Form i = p.point("i", M), j = p.point("j", N), c = p.reduce("k", K);
    const Value product = p.fold(monoid::sum(Kind::F32), {p.read(x, {i, c}) * p.read(w, {c, j})});
    Draft e = b.draft("y");
    const Form ei = e.point("i", M), ej = e.point("j", N);
    const Value y = e.map({scalar::max(e.read(product, {ei, ej}) + e.read(bias, {ej}), b.f32(0))});
    b.output("y", y);
    auto xs = random(size_t(m * k), rng), ws = random(size_t(k * n), rng), bs = random(size_t(n), rng);
    std::vector<float> ys(size_t(m * n), NAN);
    run(b.finish(), {{"M", m}, {"N", n}, {"K", k}}, {&xs, &ws, &bs, &ys}, schedule::Strategy::Product);
    for (int r = 0; r < m; ++r) {
      for (int q = 0; q < n; ++q) {
        double sum = bs[size_t(q)];
        for (int z = 0; z < k; ++z) sum += double(xs[size_t(r * k + z)]) * ws[size_t(z * n + q)];
        ASSERT_NEAR(ys[size_t(r * n + q)], std::max(sum, 0.0), 1e-5) << m << " " << n << " " << k;
      }
    }
  }
}

// A stencil with padding, stride and channels: y[b, p, o] = sum(r, c) x[b, 2p + r - 1, c]? * w[r, c, o].
TEST(Lower, WindowWithBorder) {
  std::mt19937 rng(2);
  const int B = 2, H = 9, C = 5, O = 11, R = 3, P = 5;
  Builder b;
  const Value x = b.input("x", {B, H, C}), w = b.input("w", {R, C, O});
  Draft d = b.draft("y");
  const Form bi = d.point("b", B), p = d.point("p", P), o = d.point("o", O), r = d.reduce("r", R), c = d.reduce("c", C);
  const Form at = Form(2) * p + r - Form(1);
  const Expr read = d.read(x, {bi, at, c}, Formula::within(at, H));
  const Value y = d.fold(monoid::sum(Kind::F32),
                         {scalar::select(Draft::present(read), read, b.f32(0)) * d.read(w, {r, c, o})});
  b.output("y", y);
  auto xs = random(B * H * C, rng), ws = random(R * C * O, rng);
  std::vector<float> ys(B * P * O, NAN);
  run(b.finish(), {}, {&xs, &ws, &ys}, schedule::Strategy::Product);
  for (int bb = 0; bb < B; ++bb) {
    for (int pp = 0; pp < P; ++pp) {
      for (int oo = 0; oo < O; ++oo) {
        double sum = 0;
        for (int rr = 0; rr < R; ++rr) {
          for (int cc = 0; cc < C; ++cc) {
            const int h = 2 * pp + rr - 1;
            if (h >= 0 && h < H) sum += double(xs[size_t((bb * H + h) * C + cc)]) * ws[size_t((rr * C + cc) * O + oo)];
          }
        }
        ASSERT_NEAR(ys[size_t((bb * P + pp) * O + oo)], sum, 1e-5);
      }
    }
  }
}

// o[h, i, c] = sum_j softmax-like weights of q.k within `mask`, times v.
void streamed(int H, int N, int M, int D, const std::function<Formula(Form i, Form j)>& mask,
              const std::function<bool(int, int)>& keep) {
  std::mt19937 rng(3);
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value q = b.input("q", {H, n, D}), k = b.input("k", {H, m, D}), v = b.input("v", {H, m, D});
  Draft s = b.draft("s");
  const Form sh = s.point("h", H), si = s.point("i", n), sj = s.point("j", m), sd = s.reduce("d", D);
  const Value score = s.fold(monoid::sum(Kind::F32), {s.read(q, {sh, si, sd}) * s.read(k, {sh, sj, sd}) * b.f32(0.5)});
  Draft r = b.draft("r");
  const Form rh = r.point("h", H), ri = r.point("i", n), rc = r.point("c", D), rj = r.reduce("j", m);
  r.where(mask(ri, rj));
  const Value state = r.fold(monoid::rescaled_sum(Kind::F32, 2, 1.0),
                             {r.read(score, {rh, ri, rj}), b.f32(1), r.read(v, {rh, rj, rc})});
  auto& node = std::get<tensor::Comprehension>(b.graph.node(state.node));
  node.components = {{0, 1}, {0, 1}, {0, 1, 2}};
  node.outputs[0].dims = node.outputs[1].dims = {0, 1};
  Draft o = b.draft("o");
  const Form oh = o.point("h", H), oi = o.point("i", n), oc = o.point("c", D);
  const Expr l = o.read(tensor::sibling(state, 1), {oh, oi}), a = o.read(tensor::sibling(state, 2), {oh, oi, oc});
  const Value out = o.map({scalar::select(scalar::binary(scalar::Op::Eq, l, b.f32(0)), b.f32(0), a / l)});
  b.output("o", out);
  auto qs = random(size_t(H * N * D), rng), ks = random(size_t(H * M * D), rng), vs = random(size_t(H * M * D), rng);
  // Values that nobody may read.
  for (int j = 0; j < M; ++j) {
    bool any = false;
    for (int i = 0; i < N; ++i) any = any || keep(i, j);
    if (any) continue;
    for (int h = 0; h < H; ++h) {
      for (int c = 0; c < D; ++c) vs[size_t((h * M + j) * D + c)] = NAN;
    }
  }
  std::vector<float> os(size_t(H * N * D), NAN);
  run(b.finish(), {{"N", N}, {"M", M}}, {&qs, &ks, &vs, &os}, schedule::Strategy::Streamed);
  for (int h = 0; h < H; ++h) {
    for (int i = 0; i < N; ++i) {
      std::vector<double> e(size_t(M), 0);
      double z = 0;
      for (int j = 0; j < M; ++j) {
        if (!keep(i, j)) continue;
        double dot = 0;
        for (int d = 0; d < D; ++d) dot += double(qs[size_t((h * N + i) * D + d)]) * ks[size_t((h * M + j) * D + d)];
        z += e[size_t(j)] = std::exp(0.5 * dot);
      }
      for (int c = 0; c < D; ++c) {
        double sum = 0;
        for (int j = 0; j < M; ++j) {
          if (keep(i, j)) sum += e[size_t(j)] / z * vs[size_t((h * M + j) * D + c)];
        }
        ASSERT_NEAR(os[size_t((h * N + i) * D + c)], sum, 1e-5) << h << " " << i << " " << c;
      }
    }
  }
}

TEST(Lower, StreamedWhole) {
  streamed(2, 100, 300, 8, [](Form, Form) { return Formula(); }, [](int, int) { return true; });
}
TEST(Lower, StreamedTriangle) {
  streamed(2, 130, 130, 8, [](Form i, Form j) { return Formula::less_equal(j, i); }, [](int i, int j) { return j <= i; });
}
TEST(Lower, StreamedBand) {
  // Rows see j in (i - 5, i]; the last 200 points have no reader.
  streamed(1, 100, 300, 8,
           [](Form i, Form j) { return Formula::less_equal(j, i) && Formula::less(i - Form(5), j); },
           [](int i, int j) { return j <= i && j > i - 5; });
}
TEST(Lower, StreamedEmptyRows) {
  streamed(1, 10, 10, 4, [](Form i, Form j) { return Formula::less(j, i - Form(3)); },
           [](int i, int j) { return j < i - 3; });
}
TEST(Lower, StreamedNothing) {
  streamed(1, 7, 0, 4, [](Form, Form) { return Formula(); }, [](int, int) { return true; });
  streamed(1, 1, 1, 4, [](Form, Form) { return Formula(); }, [](int, int) { return true; });
}

// The two nearest of a streamed product, lane by lane.
TEST(Lower, StreamedSelection) {
  std::mt19937 rng(4);
  const int Q = 70, R = 250, D = 6, K = 2;
  Builder b;
  const Value x = b.input("x", {Q, D}), y = b.input("y", {R, D});
  Draft s = b.draft("s");
  const Form si = s.point("i", Q), sj = s.point("j", R), sd = s.reduce("d", D);
  const Value dot = s.fold(monoid::sum(Kind::F32), {s.read(x, {si, sd}) * s.read(y, {sj, sd})});
  Draft t = b.draft("t");
  const Form ti = t.point("i", Q), te = t.axis("e", K), tj = t.reduce("j", R);
  (void)te;
  const Value top = t.fold(monoid::top_k(Kind::F32, K, false), {t.read(dot, {ti, tj}), t.index(tj)});
  b.output("value", top);
  auto xs = random(Q * D, rng), ys = random(R * D, rng);
  std::vector<float> out(Q * K, NAN);
  run(b.finish(), {}, {&xs, &ys, &out}, schedule::Strategy::Streamed);
  for (int i = 0; i < Q; ++i) {
    std::vector<double> all;
    for (int j = 0; j < R; ++j) {
      double dot_ij = 0;
      for (int d = 0; d < D; ++d) dot_ij += double(xs[size_t(i * D + d)]) * ys[size_t(j * D + d)];
      all.push_back(dot_ij);
    }
    std::sort(all.rbegin(), all.rend());
    for (int e = 0; e < K; ++e) ASSERT_NEAR(out[size_t(i * K + e)], all[size_t(e)], 1e-5);
  }
}

// A state axis of one point stays an axis: the monoid has it.
TEST(Lower, BestOne) {
  Builder b;
  const Form N = b.size("N");
  const Value x = b.input("x", {N});
  Draft d = b.draft("best");
  d.axis("slot", 1);
  const Form j = d.reduce("j", N);
  const Expr value = d.read(x, {j});
  b.output("y", d.fold(monoid::top_k(Kind::F32, 1, false), {value, d.index(j)}));
  std::vector<float> xs = {1, 5, -2, 5}, ys = {NAN};
  run(b.finish(), {{"N", 4}}, {&xs, &ys}, schedule::Strategy::Rows);
  EXPECT_EQ(ys[0], 5);
}

TEST(Lower, RowsTogether) {
  std::mt19937 rng(5);
  const int N = 37, M = 300;
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value x = b.input("x", {n, m});
  Draft t = b.draft("top");
  const Form ti = t.point("i", n), tj = t.reduce("j", m);
  const Value top = t.fold(monoid::maximum(Kind::F32), {t.read(x, {ti, tj})});
  Draft e = b.draft("e");
  const Form ei = e.point("i", n), ej = e.point("j", m);
  const Value ev = e.map({scalar::exp(e.read(x, {ei, ej}) - e.read(top, {ei}))});
  Draft z = b.draft("z");
  const Form zi = z.point("i", n), zj = z.reduce("j", m);
  const Value zv = z.fold(monoid::sum(Kind::F32), {z.read(ev, {zi, zj})});
  Draft p = b.draft("p");
  const Form pi = p.point("i", n), pj = p.point("j", m);
  b.output("p", p.map({p.read(ev, {pi, pj}) / p.read(zv, {pi})}));
  auto xs = random(N * M, rng);
  std::vector<float> out(N * M, NAN);
  const tensor::Graph graph = b.finish();
  EXPECT_EQ(schedule::defaults(graph, {}).groups.size(), 1u);
  run(graph, {{"N", N}, {"M", M}}, {&xs, &out}, schedule::Strategy::Rows);
  for (int i = 0; i < N; ++i) {
    double sum = 0;
    for (int j = 0; j < M; ++j) sum += std::exp(double(xs[size_t(i * M + j)]));
    for (int j = 0; j < M; ++j) {
      ASSERT_NEAR(out[size_t(i * M + j)], std::exp(double(xs[size_t(i * M + j)])) / sum, 1e-6);
    }
  }
}

// A division shared by a row keeps quotients whose divisor has no finite reciprocal, and the classes of all others.
TEST(Lower, DivisionOncePerRow) {
  const float divisors[] = {3.0f, 1e-39f, -1e-45f, 0.0f, INFINITY, NAN, 3e38f};
  const float x0[] = {1.0f, 1e-39f, 0.0f, -2.5e-40f};
  Builder b;
  const Value x = b.input("x", {4}), y = b.input("y", {7});
  Draft d = b.draft("q");
  const Form i = d.point("i", 7), j = d.point("j", 4);
  b.output("q", d.map({d.read(x, {j}) / d.read(y, {i})}));
  std::vector<float> xs(x0, x0 + 4), ys(divisors, divisors + 7), out(28, -7.0f);
  run(b.finish(), {}, {&xs, &ys, &out}, schedule::Strategy::Rows);
  for (size_t r = 0; r < 7; ++r) {
    for (size_t c = 0; c < 4; ++c) {
      const double want = double(xs[c]) / ys[r];
      const double got = out[r * 4 + c];
      if (std::isnan(want)) EXPECT_TRUE(std::isnan(got)) << r << " " << c;
      else if (std::isinf(float(want))) EXPECT_EQ(float(got), float(want)) << r << " " << c;
      else EXPECT_NEAR(got, want, 1e-6 * std::fabs(want) + 2e-45) << r << " " << c;
    }
  }
}

}  // namespace
}  // namespace lemma::lower
