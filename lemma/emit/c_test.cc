// Every statement kind, compiled and run for every native target, against references written out here.

#include "lemma/emit/c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Space;
using view::Form;
using view::Formula;
using EmitUnit = testing::Unit;

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

float noise(int64_t i) {
  uint64_t z = uint64_t(i) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return float(int64_t((z ^ (z >> 31)) >> 40)) * 0x1p-23f - 1.0f;
}

const int64_t kExtents[] = {0, 1, 2, 15, 16, 17, 31, 33, 100};

class Builds : public ::testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(Native, Builds, ::testing::ValuesIn(native_builds()), build_name);

TEST_P(Builds, MapWithTwoReadsBroadcastAndDomain) {
  // y[i, j] = x[i, j] * w[j] + j where j <= i + 3, else -1
  Builder b;
  const int M = b.size("M"), N = b.size("N");
  const int i = b.var("i"), j = b.var("j");
  const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
  const int w = b.buffer("w", Space::Input, DType::F32, {s(N)});
  const int y = b.buffer("y", Space::Output, DType::F32, {s(M), s(N)});
  tile::Map map;
  map.points = {{i, s(M)}, {j, s(N)}};
  map.where = Formula::less_equal(f(j), f(i) + Form(3));
  map.reads = {{x, {f(i), f(j)}, {}}, {w, {f(j)}, {}}};
  const Expr value = scalar::arg(b.arena(), Kind::F32, 0) * scalar::arg(b.arena(), Kind::F32, 1) +
                     scalar::cast(scalar::index(b.arena(), j), Kind::F32);
  map.stores = {{{y, {f(i), f(j)}, {}}, value, scalar::f32(b.arena(), -1), std::nullopt}};
  b.kernel().body.push_back({map});
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  for (int64_t n : kExtents) {
    const int64_t m = 5;
    Guarded xs(4 * m * n), ws(4 * n), ys(4 * m * n);
    for (int64_t k = 0; k < m * n; ++k) xs.as<float>()[k] = noise(k);
    for (int64_t k = 0; k < n; ++k) ws.as<float>()[k] = noise(k + 1000);
    ASSERT_EQ(unit->run({m, n}, {xs.data(), ws.data(), ys.data()}), 0);
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t q = 0; q < n; ++q) {
        const float want = q <= p + 3 ? xs.as<float>()[p * n + q] * ws.as<float>()[q] + float(q) : -1;
        EXPECT_NEAR(ys.as<float>()[p * n + q], want, 1e-5) << n << " " << p << " " << q;
      }
    }
  }
}

TEST_P(Builds, GuardsKeepReadsInside) {
  // y[i] = x[2 i - 3] where that is inside, else 7: strided, with a guard, at the end of a page
  for (int stride : {1, 2}) {
    Builder b;
    const int N = b.size("N"), i = b.var("i");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(N)});
    const int y = b.buffer("y", Space::Output, DType::F32, {s(N)});
    tile::Map map;
    map.points = {{i, s(N)}};
    const Form at = f(i) * Form(stride) - Form(3);
    map.reads = {{x, {at}, Formula::within(at, s(N))}};
    map.stores = {{{y, {f(i)}, {}},
                   scalar::select(scalar::present(b.arena(), 0), scalar::arg(b.arena(), Kind::F32, 0), scalar::f32(b.arena(), 7)),
                   {}, std::nullopt}};
    b.kernel().body.push_back({map});
    auto unit = load(b, GetParam());
    ASSERT_TRUE(unit);
    for (int64_t n : kExtents) {
      Guarded xs(4 * n), ys(4 * n);
      for (int64_t k = 0; k < n; ++k) xs.as<float>()[k] = noise(k);
      ASSERT_EQ(unit->run({n}, {xs.data(), ys.data()}), 0);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t at_k = stride * k - 3;
        EXPECT_EQ(ys.as<float>()[k], at_k >= 0 && at_k < n ? xs.as<float>()[at_k] : 7) << n << " " << k;
      }
    }
  }
}

TEST_P(Builds, SumsAndMaximaAlongAndAcross) {
  for (bool across : {false, true}) {
    for (bool largest : {false, true}) {
      Builder b;
      const int M = b.size("M"), N = b.size("N"), i = b.var("i"), j = b.var("j");
      const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
      const int y = b.buffer("y", Space::Output, DType::F32, {across ? s(N) : s(M)});
      tile::Reduce r;
      const tile::Range over_i{i, s(M)}, over_j{j, s(N)};
      r.points = {across ? over_j : over_i};
      r.reduces = {across ? over_i : over_j};
      r.where = Formula::less_equal(f(j), f(i) + Form(20));
      r.reads = {{x, {f(i), f(j)}, {}}};
      r.body = {scalar::arg(b.arena(), Kind::F32, 0)};
      r.monoid = largest ? maximum() : sum(Kind::F32);
      r.states = {{y, {across ? f(j) : f(i)}, {}}};
      b.kernel().body.push_back({r});
      auto unit = load(b, GetParam());
      ASSERT_TRUE(unit);
      for (int64_t n : kExtents) {
        const int64_t m = 7, outs = across ? n : m;
        Guarded xs(4 * m * n), ys(4 * outs);
        for (int64_t k = 0; k < m * n; ++k) xs.as<float>()[k] = noise(k + n);
        if (n > 20) xs.as<float>()[2 * n + 18] = kNan;
        ASSERT_EQ(unit->run({m, n}, {xs.data(), ys.data()}), 0);
        for (int64_t o = 0; o < outs; ++o) {
          double want = largest ? -kInf : 0;
          for (int64_t k = 0; k < (across ? m : n); ++k) {
            const int64_t p = across ? k : o, q = across ? o : k;
            if (q > p + 20) continue;
            const double v = xs.as<float>()[p * n + q];
            want = largest ? (v > want || v != v ? v : want) : want + v;
          }
          const float got = ys.as<float>()[o];
          if (want != want) {
            EXPECT_TRUE(got != got) << n << " " << o;
          } else if (std::isinf(want)) {
            EXPECT_EQ(got, want) << n << " " << o;
          } else {
            EXPECT_NEAR(got, want, 1e-5) << across << largest << " " << n << " " << o;
          }
        }
      }
    }
  }
}

TEST_P(Builds, ArgMaximum) {
  Builder b;
  const int M = b.size("M"), N = b.size("N"), i = b.var("i"), j = b.var("j");
  const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
  const int v = b.buffer("v", Space::Output, DType::F32, {s(M)});
  const int y = b.buffer("y", Space::Output, DType::I64, {s(M)});
  tile::Reduce r;
  r.points = {{i, s(M)}};
  r.reduces = {{j, s(N)}};
  r.reads = {{x, {f(i), f(j)}, {}}};
  r.body = {scalar::arg(b.arena(), Kind::F32, 0), scalar::index(b.arena(), j)};
  r.monoid = arg_maximum();
  r.states = {{v, {f(i)}, {}}, {y, {f(i)}, {}}};
  b.kernel().body.push_back({r});
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  for (int64_t n : kExtents) {
    const int64_t m = 4;
    Guarded xs(4 * m * n), vs(4 * m), ys(8 * m);
    for (int64_t k = 0; k < m * n; ++k) xs.as<float>()[k] = float(int(noise(k) * 8));
    if (n > 20) xs.as<float>()[n + 13] = xs.as<float>()[n + 19] = kNan;
    ASSERT_EQ(unit->run({m, n}, {xs.data(), vs.data(), ys.data()}), 0);
    for (int64_t p = 0; p < m; ++p) {
      int64_t want = -1;
      for (int64_t q = 0; q < n; ++q) {
        const float c = xs.as<float>()[p * n + q], best = want < 0 ? 0 : xs.as<float>()[p * n + want];
        if (want < 0 || (c > best) || (c != c && best == best)) want = q;
      }
      EXPECT_EQ(ys.as<int64_t>()[p], want) << n;
    }
  }
}

TEST_P(Builds, RescaledSumWithAColumnOfItsOwn) {
  // m[i], l[i] and a[i, c]: the score does not depend on c
  for (bool accumulate : {false, true}) {
    Builder b;
    const int M = b.size("M"), N = b.size("N"), C = b.size("C");
    const int i = b.var("i"), j = b.var("j"), c = b.var("c");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
    const int g = b.buffer("g", Space::Input, DType::F32, {s(N), s(C)});
    const int m = b.buffer("m", Space::Update, DType::F32, {s(M)});
    const int l = b.buffer("l", Space::Update, DType::F32, {s(M)});
    const int o = b.buffer("o", Space::Update, DType::F32, {s(M), s(C)});
    tile::Reduce r;
    r.points = {{i, s(M)}, {c, s(C)}};
    r.reduces = {{j, s(N)}};
    r.where = Formula::less_equal(f(j), f(i) + Form(9));
    r.reads = {{x, {f(i), f(j)}, {}}, {g, {f(j), f(c)}, {}}};
    r.body = {scalar::arg(b.arena(), Kind::F32, 0), scalar::f32(b.arena(), 1), scalar::arg(b.arena(), Kind::F32, 1)};
    r.monoid = rescaled_sum(2, 0.5);
    r.states = {{m, {f(i)}, {}}, {l, {f(i)}, {}}, {o, {f(i), f(c)}, {}}};
    r.accumulate = accumulate;
    b.kernel().body.push_back({r});
    auto unit = load(b, GetParam());
    ASSERT_TRUE(unit);
    for (int64_t n : {0, 1, 17, 40}) {
      const int64_t rows = 6, cols = 19;
      Guarded xs(4 * rows * n), gs(4 * n * cols), ms(4 * rows), ls(4 * rows), os(4 * rows * cols);
      for (int64_t k = 0; k < rows * n; ++k) xs.as<float>()[k] = 20 * noise(k);
      for (int64_t k = 0; k < n; ++k) xs.as<float>()[k] = -kInf;           // row 0: nothing
      if (n > 3) xs.as<float>()[2 * n + 3] = kInf, xs.as<float>()[3 * n + 1] = kNan;
      for (int64_t k = 0; k < n * cols; ++k) gs.as<float>()[k] = noise(k + 7);
      const float m0 = accumulate ? 1.5f : -kInf;
      for (int64_t p = 0; p < rows; ++p) {
        if (!accumulate) break;
        ms.as<float>()[p] = m0, ls.as<float>()[p] = 2;
        for (int64_t q = 0; q < cols; ++q) os.as<float>()[p * cols + q] = 3;
      }
      ASSERT_EQ(unit->run({rows, n, cols}, {xs.data(), gs.data(), ms.data(), ls.data(), os.data()}), 0);
      for (int64_t p = 0; p < rows; ++p) {
        double top = m0;
        for (int64_t k = 0; k < n && k <= p + 9; ++k) {
          const double v = xs.as<float>()[p * n + k];
          top = v > top || v != v ? v : top;
        }
        const bool odd = top != top || top == kInf;
        for (int64_t q = 0; q < cols; ++q) {
          double z = accumulate ? 2 * std::exp(0.5 * (m0 - top)) : 0, a = accumulate ? 3 * std::exp(0.5 * (m0 - top)) : 0;
          for (int64_t k = 0; k < n && k <= p + 9; ++k) {
            const double v = xs.as<float>()[p * n + k];
            if (v == -kInf) continue;
            z += std::exp(0.5 * (v - top));
            a += std::exp(0.5 * (v - top)) * gs.as<float>()[k * cols + q];
          }
          if (odd) {
            EXPECT_TRUE(std::isnan(ls.as<float>()[p])) << n << " " << p;
            EXPECT_TRUE(std::isnan(os.as<float>()[p * cols + q])) << n << " " << p;
          } else {
            EXPECT_EQ(ms.as<float>()[p], float(top));
            EXPECT_NEAR(ls.as<float>()[p], z, 1e-5 * (1 + z)) << n << " " << p;
            EXPECT_NEAR(os.as<float>()[p * cols + q], a, 1e-4) << n << " " << p;
          }
        }
      }
    }
  }
}

TEST_P(Builds, TopK) {
  for (bool smallest : {false, true}) {
    Builder b;
    const int M = b.size("M"), N = b.size("N"), i = b.var("i"), j = b.var("j"), k = b.var("k");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
    const int v = b.buffer("v", Space::Output, DType::F32, {s(M), 5});
    const int y = b.buffer("y", Space::Output, DType::I64, {s(M), 5});
    tile::Reduce r;
    r.points = {{i, s(M)}};
    r.axes = {{k, 5}};
    r.reduces = {{j, s(N)}};
    r.reads = {{x, {f(i), f(j)}, {}}};
    r.body = {scalar::arg(b.arena(), Kind::F32, 0), scalar::index(b.arena(), j)};
    r.monoid = top_k(5, smallest);
    r.states = {{v, {f(i), f(k)}, {}}, {y, {f(i), f(k)}, {}}};
    b.kernel().body.push_back({r});
    auto unit = load(b, GetParam());
    ASSERT_TRUE(unit);
    for (int64_t n : kExtents) {
      const int64_t m = 4;
      Guarded xs(4 * m * n), vs(4 * m * 5), ys(8 * m * 5);
      for (int64_t q = 0; q < m * n; ++q) xs.as<float>()[q] = float(int(noise(q) * 8));
      if (n > 20) xs.as<float>()[n + 13] = xs.as<float>()[n + 19] = kNan, xs.as<float>()[5] = smallest ? kInf : -kInf;
      ASSERT_EQ(unit->run({m, n}, {xs.data(), vs.data(), ys.data()}), 0);
      for (int64_t p = 0; p < m; ++p) {
        std::vector<int64_t> order;
        for (int64_t q = 0; q < n; ++q) order.push_back(q);
        const float* row = xs.as<float>() + p * n;
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t c) {
          if (row[a] != row[a] || row[c] != row[c]) return row[a] != row[a] && row[c] == row[c];
          return smallest ? row[a] < row[c] : row[a] > row[c];
        });
        for (int64_t q = 0; q < 5; ++q) {
          EXPECT_EQ(ys.as<int64_t>()[p * 5 + q], q < n ? order[size_t(q)] : -1) << n << " " << p << " " << q;
          if (q >= n) { EXPECT_EQ(vs.as<float>()[p * 5 + q], smallest ? kInf : -kInf); }
        }
      }
    }
  }
}

// What only a store's place needs is read, also where nothing else asks for it.
TEST_P(Builds, StoresWhereDataSays) {
  Builder b;
  const int N = b.size("N"), i = b.var("i");
  const int key = b.buffer("key", Space::Input, DType::I32, {s(N)}), y = b.buffer("y", Space::Output, DType::F32, {s(N)});
  tile::Map map;
  map.points = {{i, s(N)}};
  map.reads = {{key, {f(i)}, {}}};
  map.stores = {{{y, {view::Form::data(0)}, {}}, scalar::f32(b.arena(), 3), {}, std::nullopt}};
  b.kernel().body.push_back({map});
  tile::Map nowhere = map;
  nowhere.where = Formula::never();
  b.kernel().body.push_back({nowhere});
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  Guarded keys(4 * 3), ys(4 * 3);
  for (int k = 0; k < 3; ++k) keys.as<int32_t>()[k] = 2 - k;
  ASSERT_EQ(unit->run({3}, {keys.data(), ys.data()}), 0);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(ys.as<float>()[k], 3);
}

TEST_P(Builds, ScansForwardReverseExclusive) {
  for (int variant = 0; variant < 4; ++variant) {
    Builder b;
    const int M = b.size("M"), N = b.size("N"), i = b.var("i"), t = b.var("t");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
    const int g = b.buffer("g", Space::Input, DType::F32, {s(M), s(N)});
    const int a = b.buffer("a", Space::Update, DType::F32, {s(M)});
    const int h = b.buffer("h", Space::Update, DType::F32, {s(M)});
    const int y = b.buffer("y", Space::Output, DType::F32, {s(M), s(N)});
    tile::Scan r;
    r.points = {{i, s(M)}};
    r.along = {t, s(N)};
    r.reverse = variant & 1;
    r.exclusive = variant & 2;
    r.where = Formula::less_equal(Form(2), f(t));
    r.reads = {{g, {f(i), f(t)}, {}}, {x, {f(i), f(t)}, {}}};
    r.body = {scalar::arg(b.arena(), Kind::F32, 0), scalar::arg(b.arena(), Kind::F32, 1)};
    r.monoid = affine();
    r.states = {{a, {f(i)}, {}}, {h, {f(i)}, {}}};
    r.stores = {{{y, {f(i), f(t)}, {}}, scalar::arg(b.arena(), Kind::F32, 1), {}, std::nullopt}};
    r.accumulate = true;
    b.kernel().body.push_back({r});
    auto unit = load(b, GetParam());
    ASSERT_TRUE(unit);
    for (int64_t n : kExtents) {
      const int64_t m = 19;
      Guarded xs(4 * m * n), gs(4 * m * n), as(4 * m), hs(4 * m), ys(4 * m * n);
      for (int64_t q = 0; q < m * n; ++q) xs.as<float>()[q] = noise(q), gs.as<float>()[q] = noise(q + 5000);
      for (int64_t q = 0; q < m; ++q) as.as<float>()[q] = 1, hs.as<float>()[q] = 0.25f;
      ASSERT_EQ(unit->run({m, n}, {xs.data(), gs.data(), as.data(), hs.data(), ys.data()}), 0);
      for (int64_t p = 0; p < m; ++p) {
        float state = 0.25f;
        for (int64_t q = 0; q < n; ++q) {
          const int64_t at = variant & 1 ? n - 1 - q : q;
          if (variant & 2) { EXPECT_NEAR(ys.as<float>()[p * n + at], state, 1e-5); }
          if (at >= 2) state = gs.as<float>()[p * n + at] * state + xs.as<float>()[p * n + at];
          if (!(variant & 2)) { EXPECT_NEAR(ys.as<float>()[p * n + at], state, 1e-5); }
        }
        EXPECT_NEAR(hs.as<float>()[p], state, 1e-5);
      }
    }
  }
}

TEST_P(Builds, MonoidWithAxesAndInnerSums) {
  Builder b;
  const int M = b.size("M"), N = b.size("N"), i = b.var("i"), j = b.var("j"), p = b.var("p"), q = b.var("q");
  const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
  const int y = b.buffer("y", Space::Output, DType::F32, {s(M), 3, 3});
  tile::Reduce r;
  r.points = {{i, s(M)}};
  r.axes = {{p, 3}, {q, 3}};
  r.reduces = {{j, s(N)}};
  r.reads = {{x, {f(i), f(j)}, {}}};
  r.body = {scalar::arg(b.arena(), Kind::F32, 0)};
  r.monoid = matrix_product(3);
  r.states = {{y, {f(i), f(p), f(q)}, {}}};
  b.kernel().body.push_back({r});
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  for (int64_t n : {0, 1, 5}) {
    const int64_t m = 3;
    Guarded xs(4 * m * n), ys(4 * m * 9);
    for (int64_t k = 0; k < m * n; ++k) xs.as<float>()[k] = noise(k);
    ASSERT_EQ(unit->run({m, n}, {xs.data(), ys.data()}), 0);
    for (int64_t row = 0; row < m; ++row) {
      double a[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
      for (int64_t k = 0; k < n; ++k) {
        double e[3][3] = {}, c[3][3] = {};
        for (int u = 0; u < 3; ++u) e[u][u] = xs.as<float>()[row * n + k], u < 2 ? e[u][u + 1] = 1 : 0;
        for (int u = 0; u < 3; ++u) for (int w = 0; w < 3; ++w) for (int z = 0; z < 3; ++z) c[u][w] += e[u][z] * a[z][w];
        std::memcpy(a, c, sizeof a);
      }
      for (int u = 0; u < 9; ++u) EXPECT_NEAR(ys.as<float>()[row * 9 + u], a[u / 3][u % 3], 1e-5) << n << " " << u;
    }
  }
}

}  // namespace
}  // namespace lemma::emit
