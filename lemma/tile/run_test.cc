// Programs in text against direct computations, with sizes that leave tails, empty and reversed ranges; and planted
// faults, each found by name.
#include "lemma/tile/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "lemma/tile/parse.h"
#include "lemma/tile/print.h"

namespace lemma::tile {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = std::vector<float>;

Program program_of(const std::string& text) {
  auto parsed = parse(text, "test");
  if (!parsed.ok()) ADD_FAILURE() << base::render(parsed.error());
  return parsed.ok() ? *std::move(parsed) : Program();
}

Values random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values out(count);
  for (float& x : out) x = normal(random);
  return out;
}

struct Sizes : std::vector<SizeValue> { using vector::vector; };

base::Result<void> run_on(const Program& program, const Sizes& sizes, std::vector<Values*> arrays, uint64_t seed = 7) {
  std::vector<Argument> arguments;
  for (Values* a : arrays) arguments.push_back({a->data(), int64_t(a->size())});
  RunOptions options;
  options.seed = seed;
  return run(program, sizes, arguments, options);
}

void expect_run(const Program& program, const Sizes& sizes, std::vector<Values*> arrays) {
  auto done = run_on(program, sizes, arrays);
  EXPECT_TRUE(done.ok()) << base::render(done.error());
}

std::string fault_of(const std::string& text, const Sizes& sizes, std::vector<Values*> arrays) {
  const Program p = program_of(text);
  auto done = run_on(p, sizes, arrays);
  return done.ok() ? "" : done.error().message;
}

void expect_near(const Values& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
    }
  }
}

const char* kProduct = R"(
program product {
  size M, N, K
  input a f32[M, K]
  input b f32[K, N]
  output c f32[M, N]
  kernel product grid (y < ceildiv(M, 16), x < ceildiv(N, 8)) {
    shared as f32[16, 4]
    shared bs f32[4, 8] panels 4
    fragment acc f32[16, 8]
    map (i < 16, j < 8) {
      acc[i, j] = 0
    }
    for k in 0 .. ceildiv(K, 4) {
      copy (i < 16, d < 4) a[y*16 + i, k*4 + d] -> as[i, d] fill 0
      copy (d < 4, j < 8) b[k*4 + d, x*8 + j] -> bs[d, j] fill 0
      gemm (i < 16, j < 8, d < 4) acc[i, j] += as[i, d] * bs[d, j]
    }
    copy (i < 16, j < 8) acc[i, j] -> c[y*16 + i, x*8 + j] fill 0
  }
}
)";

TEST(Run, TiledProductWithTails) {
  const Program p = program_of(kProduct);
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{16, 8, 4}, {33, 17, 9}, {1, 1, 1}, {5, 3, 0}, {0, 4, 4}, {64, 64, 64}}) {
    Values a = random_values(size_t(m * k), 1), b = random_values(size_t(k * n), 2), c(size_t(m * n), NAN);
    expect_run(p, {{"M", m}, {"N", n}, {"K", k}}, {&a, &b, &c});
    std::vector<double> want(size_t(m * n), 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t d = 0; d < k; ++d) want[size_t(i * n + j)] += double(a[size_t(i * k + d)]) * b[size_t(d * n + j)];
      }
    }
    expect_near(c, want, 1e-6);
  }
}


TEST(Run, RowMoments) {
  const Program p = program_of(R"(
program rows {
  size M, N
  input x f32[M, N]
  output mean f32[M]
  output best i64[M]
  kernel rows grid (i < M) {
    fragment n f32[1]
    fragment s f32[1]
    fragment m2 f32[1]
    fragment v f32[1]
    reduce (r < 1) over (j < N) by welford[f32] {
      element x[i, j]
      state n[r], s[r], m2[r]
    }
    map (r < 1) { mean[i] = select(n[r] == 0, nan, s[r] / n[r]) }
    reduce (r < 1) over (j < N) by argmax[f32] where j % 2 == 0 {
      element x[i, j], j
      state v[r], best[i + r]
    }
  }
}
)");
  for (int64_t n : {0, 1, 7, 1030}) {
    const int64_t m = 3;
    Values x = random_values(size_t(m * n), 3), mean(size_t(m), 0);
    std::vector<int64_t> best(size_t(m), 99);
    std::vector<Argument> arguments{{x.data(), m * n}, {mean.data(), m}, {best.data(), m}};
    const Sizes sizes{{"M", m}, {"N", n}};
    auto done = run(p, sizes, arguments);
    ASSERT_TRUE(done.ok()) << base::render(done.error());
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      int64_t at = -1;
      for (int64_t j = 0; j < n; ++j) {
        sum += x[size_t(i * n + j)];
        if (j % 2 == 0 && (at < 0 || x[size_t(i * n + j)] > x[size_t(i * n + at)])) at = j;
      }
      if (n == 0) {
        EXPECT_TRUE(std::isnan(mean[size_t(i)]));
      } else {
        EXPECT_NEAR(mean[size_t(i)], sum / double(n), 1e-5);
      }
      EXPECT_EQ(best[size_t(i)], at);
    }
  }
}

// Rows of weights exp(s - max) over the columns j <= i, times values: two products around a running maximum.
const char* kStreamed = R"(
program streamed {
  size N, M, D
  input q f32[N, D]
  input k f32[M, D]
  input v f32[M, D]
  output o f32[N, D]
  kernel streamed grid (x < ceildiv(N, 8)) {
    shared qs f32[8, 4]
    shared ks f32[4, 4]
    shared vs f32[4, 4]
    fragment s f32[8, 4]
    fragment m f32[8]
    fragment l f32[8]
    fragment acc f32[8, 4]
    copy (i < 8, d < 4) q[x*8 + i, d] -> qs[i, d] fill 0
    map (i < 8) {
      m[i] = -inf
      l[i] = 0
    }
    map (i < 8, c < 4) { acc[i, c] = 0 }
    for t in 0 .. ceildiv(M, 4) {
      copy (j < 4, d < 4) k[t*4 + j, d] -> ks[j, d] fill 0
      copy (j < 4, d < 4) v[t*4 + j, d] -> vs[j, d] fill 0
      gemm (i < 8, j < 4, d < 4) s[i, j] = qs[i, d] * ks[j, d]
      # the weighted sum and its normaliser, rescaled as the maximum moves
      reduce (i < 8, c < 4) over (j < 4) by rescaled_sum[f32, 2, 0.5] accumulate where t*4 + j <= x*8 + i and t*4 + j < M {
        element s[i, j], 1.0, vs[j, c]
        state m[i], l[i], acc[i, c]
      }
    }
    map (i < 8, c < 4) where x*8 + i < N and c < D {
      o[x*8 + i, c] = select(l[i] == 0, 0.0, acc[i, c] / l[i])
    }
  }
}
)";

TEST(Run, StreamedRescaledSums) {
  const Program p = program_of(kStreamed);
  for (const auto& [n, m] : std::vector<std::array<int64_t, 2>>{{8, 8}, {19, 13}, {5, 30}, {4, 0}, {0, 4}, {64, 64}}) {
    const int64_t d = 4;
    Values q = random_values(size_t(n * d), 4), k = random_values(size_t(m * d), 5), v = random_values(size_t(m * d), 6), o(size_t(n * d), NAN);
    expect_run(p, {{"N", n}, {"M", m}, {"D", d}}, {&q, &k, &v, &o});
    std::vector<double> want(size_t(n * d), 0);
    for (int64_t i = 0; i < n; ++i) {
      double most = -kInfinity, total = 0;
      std::vector<double> scores;
      for (int64_t j = 0; j < m && j <= i; ++j) {
        double s = 0;
        for (int64_t c = 0; c < d; ++c) s += double(q[size_t(i * d + c)]) * k[size_t(j * d + c)];
        scores.push_back(s);
        most = std::max(most, s);
      }
      for (size_t j = 0; j < scores.size(); ++j) {
        const double e = std::exp(0.5 * (scores[j] - most));
        total += e;
        for (int64_t c = 0; c < d; ++c) want[size_t(i * d + c)] += e * v[j * size_t(d) + size_t(c)];
      }
      for (int64_t c = 0; c < d && total > 0; ++c) want[size_t(i * d + c)] /= total;
    }
    expect_near(o, want, 1e-5);
  }
}

TEST(Run, BestSlotsOverStreamedTiles) {
  const Program p = program_of(R"(
program best {
  size M, N
  input x f32[M, N]
  output v f32[M, 3]
  output at i64[M, 3]
  kernel best grid (i < M) {
    fragment tv f32[3]
    fragment ti i64[3]
    reduce () axes (s < 3) over (j < 0) by topk[f32, 3] {
      element 0.0, j
      state tv[s], ti[s]
    }
    for t in 0 .. ceildiv(N, 5) {
      reduce () axes (s < 3) over (j < 5) by topk[f32, 3] accumulate where t*5 + j < N {
        element x[i, t*5 + j], t*5 + j
        state tv[s], ti[s]
      }
    }
    map (s < 3) {
      v[i, s] = tv[s]
      at[i, s] = ti[s]
    }
  }
}
)");
  for (int64_t n : {0, 2, 5, 23}) {
    Values x = random_values(size_t(n), 8), v(3);
    if (n > 4) x[4] = x[1];
    std::vector<int64_t> at(3);
    std::vector<Argument> arguments{{x.data(), n}, {v.data(), 3}, {at.data(), 3}};
    const Sizes sizes{{"M", 1}, {"N", n}};
    auto done = run(p, sizes, arguments);
    ASSERT_TRUE(done.ok()) << base::render(done.error());
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[size_t(a)] > x[size_t(b)]; });
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(at[s], s < order.size() ? order[s] : -1) << n << " " << s;
      EXPECT_EQ(v[s], s < order.size() ? x[size_t(order[s])] : -float(kInfinity));
    }
  }
}

TEST(Run, ScanCarriesAcrossTiles) {
  const char* text = R"(
program scanned {
  size N
  input a f32[N]
  input b f32[N]
  output h f32[N]
  kernel scanned {
    fragment ca f32[]
    fragment cb f32[]
    map () {
      ca[] = 1
      cb[] = 0
    }
    for t in 0 .. ceildiv(N, 4) {
      scan () along (u < 4) %s by affine[f32] accumulate where t*4 + u < N and u % 3 < 2 {
        element a[t*4 + u], b[t*4 + u]
        state ca[], cb[]
        store {
          h[t*4 + u] = state(1), if t*4 + u < N
        }
      }
    }
  }
}
)";
  for (bool exclusive : {false, true}) {
    std::string with = text;
    with.replace(with.find("%s"), 2, exclusive ? "exclusive" : "");
    const Program p = program_of(with);
    for (int64_t n : {0, 1, 4, 11}) {
      Values a = random_values(size_t(n), 9), b = random_values(size_t(n), 10), h(size_t(n), NAN);
      expect_run(p, {{"N", n}}, {&a, &b, &h});
      std::vector<double> want;
      double state = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (exclusive) want.push_back(state);
        if (i % 4 % 3 < 2) state = a[size_t(i)] * state + b[size_t(i)];
        if (!exclusive) want.push_back(state);
      }
      expect_near(h, want, 1e-5);
    }
  }
}

TEST(Run, StridesWidthsLetsAndBranches) {
  const Program p = program_of(R"(
program mixed {
  size N
  size T = ceildiv(N, 4)
  require 1 <= N : "N is at least 1"
  input x f32[N] strides [-1 + 2]
  input len i64[1]
  output y bf16[N]
  kernel mixed grid (descending t < T) {
    let n = max(0, min(len[0] - t*4, 4))
    if n >= 1 {
      map (i < n) where t*4 + i < N { y[t*4 + i] = x[t*4 + i] * 2 }
    }
    map (i < 4) where n <= i and t*4 + i < N { y[t*4 + i] = -1 }
  }
}
)");
  Values x{1, 1.00390625f, 3, 4, 5, 6};
  std::vector<uint16_t> y(6);
  std::vector<int64_t> len{5};
  std::vector<Argument> arguments{{x.data(), 6}, {len.data(), 1}, {y.data(), 6}};
  auto done = run(p, Sizes{{"N", 6}}, arguments);
  ASSERT_TRUE(done.ok()) << base::render(done.error());
  const double want[] = {2, 2, 6, 8, 10, -1};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(scalar::load(scalar::DType::BF16, y.data(), i).f, want[i]) << i;
  EXPECT_NE(run(p, Sizes{{"N", 0}}, arguments).error().message.find("N is at least 1"), std::string::npos);
}

TEST(Run, ComponentsThatLeaveOutAnEmptyVariableAreFoldedOnce) {
  const Program p = program_of(R"(
program empty {
  size D
  input s f32[4]
  input v f32[4, D]
  output m f32[1]
  output acc f32[1, D]
  kernel empty {
    reduce (i < 1, c < D) over (j < 4) by rescaled_sum[f32, 1, 1.0] {
      element s[j], v[j, c]
      state m[i], acc[i, c]
    }
  }
}
)");
  Values s{1, 4, 2, 3}, v, m{0}, acc;
  expect_run(p, {{"D", 0}}, {&s, &v, &m, &acc});
  EXPECT_EQ(m[0], 4);
}

// ---- planted faults ----

std::string kernel_text(const std::string& body, const std::string& grid = "") {
  return "program f {\n size N\n input x f32[N]\n output y f32[N]\n kernel main" + grid + " {\n" + body + "\n }\n}\n";
}

TEST(Faults, AreNamed) {
  struct Case { const char* name; std::string text, expected; };
  const Case cases[] = {
      {"outside", kernel_text("map (i < N) { y[i] = x[i + 1] }"), "kernel main, statement 1 (map): reads x[4], outside its extents [4], at i = 3"},
      {"outside write", kernel_text("for t in 0 .. 2 {\n map (i < N) { y[i + t] = x[i] }\n }"), "kernel main, statement 1.1 (map): writes y[4], outside its extents [4], at t = 1, i = 3"},
      {"unwritten", kernel_text("fragment a f32[N]\n map (i < N) where i < 3 { a[i] = 1 }\n map (i < N) { y[i] = a[i] }"), "kernel main, statement 3 (map): reads a[3], which nothing has written, at i = 3"},
      {"allocated anew", kernel_text("for t in 0 .. 2 {\n fragment a f32[1]\n if t == 0 {\n map () { a[0] = 1 }\n }\n map () { y[t] = a[0] }\n }"), "kernel main, statement 1.3 (map): reads a[0], which nothing has written, at t = 1"},
      {"blocks write", kernel_text("map () { y[b // 2] = 1 }", " grid (b < N)"), "which another block of the grid writes, at b = "},
      {"blocks read", kernel_text("map () { y[b] = 1 }\n map () where b == 1 { y[1] = y[0] }", " grid (b < 2)"), "which another block of the grid"},
      {"points", kernel_text("map (i < N) { y[0] = x[i] }"), "writes y[0], which another point of the statement writes, at i = 1"},
      {"points read", kernel_text("fragment a f32[N]\n map (i < N) { a[i] = x[i] }\n map (i < 3) { a[i] = a[i + 1] }"), "which another point of the statement"},
      {"product", kernel_text("fragment a f32[2, 2]\n gemm (i < 2, j < 2, k < 2) a[i, j] += a[i, k] * a[k, j]"), "statement 2 (gemm): reads a[0, 0], which nothing has written, at i = 0, k = 0"},
      {"assert", kernel_text("assert x[0] == 0 : \"never\""), ""},
  };
  for (const Case& c : cases) {
    if (c.expected.empty()) continue;
    Values x{1, 2, 3, 4}, y(4);
    const std::string got = fault_of(c.text, {{"N", 4}}, {&x, &y});
    EXPECT_NE(got.find(c.expected), std::string::npos) << c.name << ": " << got;
  }
  Values x{1, 2, 3, 4}, y(4);
  EXPECT_NE(fault_of(kernel_text("assert N <= 3 : \"few\""), {{"N", 4}}, {&x, &y}).find("the assertion does not hold: few"), std::string::npos);
}

TEST(Run, GuardsAndDataDomainsReadOnlyWhatTheyMay) {
  const Program p = program_of(R"(
program gather {
  size N, M
  input at i64[N]
  input x f32[M]
  output y f32[N]
  kernel gather {
    map (i < N) where 0 <= at[i] and at[i] < M { y[i] = x[at[i]], else -1 }
  }
}
)");
  std::vector<int64_t> at{2, -1, 0, 7};
  Values x{10, 20, 30}, y(4);
  std::vector<Argument> arguments{{at.data(), 4}, {x.data(), 3}, {y.data(), 4}};
  const Sizes sizes{{"N", 4}, {"M", 3}};
  auto done = run(p, sizes, arguments);
  ASSERT_TRUE(done.ok()) << base::render(done.error());
  EXPECT_EQ(y, (Values{30, -1, 10, -1}));
}

}  // namespace
}  // namespace lemma::tile
