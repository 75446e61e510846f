// Programs in text against direct computations, with sizes that leave tails, empty and reversed ranges; and planted
// faults, each found by name.
#include "lemma/tile/run.h"

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
    if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i])) << i;
    else EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
  }
}

const char* kProduct = R"(
program product {
  size M
  size N
  size K
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

}  // namespace
}  // namespace lemma::tile
