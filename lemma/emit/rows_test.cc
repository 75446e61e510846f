// Statements that share the loops over their rows: results against references, and what may not be shared.

#include <gtest/gtest.h>

#include <cmath>

#include "lemma/emit/c.h"
#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using tile::Space;
using view::Form;
using view::Formula;
using EmitUnit = testing::Unit;

class Rows : public ::testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(Native, Rows, ::testing::ValuesIn(native_builds()), build_name);

float value_at(int64_t i) { return float((i * 7919) % 1009 - 500) * 0.3f; }

size_t count(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++out;
  return out;
}

// m[i] = max x[i, :]; s[i] = sum e(x[i, j] - m[i]); y[i, j] = e(x[i, j] - m[i]) / s[i] where j < limit
struct Weights {
  Builder b;
  explicit Weights(std::optional<int64_t> limit) {
    const int M = b.size("M"), N = b.size("N");
    const int i = b.var("i"), j = b.var("j"), i2 = b.var("i"), j2 = b.var("j"), i3 = b.var("i"), j3 = b.var("j");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
    const int y = b.buffer("y", Space::Output, DType::F32, {s(M), s(N)});
    const int m = b.buffer("m", Space::Local, DType::F32, {s(M)});
    const int z = b.buffer("z", Space::Local, DType::F32, {s(M)});
    const Expr e = scalar::exp(scalar::arg(b.arena(), Kind::F32, 0) - scalar::arg(b.arena(), Kind::F32, 1));
    tile::Reduce most, total;
    most.points = {{i, s(M)}};
    most.reduces = {{j, s(N)}};
    most.reads = {{x, {f(i), f(j)}, {}}};
    most.body = {scalar::arg(b.arena(), Kind::F32, 0)};
    most.monoid = maximum();
    most.states = {{m, {f(i)}, {}}};
    total.points = {{i2, s(M)}};
    total.reduces = {{j2, s(N)}};
    total.reads = {{x, {f(i2), f(j2)}, {}}, {m, {f(i2)}, {}}};
    total.body = {e};
    total.monoid = sum(Kind::F32);
    total.states = {{z, {f(i2)}, {}}};
    tile::Map map;
    map.points = {{i3, s(M)}, {j3, s(N)}};
    if (limit) map.where = Formula::less(f(j3), Form(*limit));
    map.reads = {{x, {f(i3), f(j3)}, {}}, {m, {f(i3)}, {}}, {z, {f(i3)}, {}}};
    map.stores = {{{y, {f(i3), f(j3)}, {}}, e / scalar::arg(b.arena(), Kind::F32, 2), {}, std::nullopt}};
    b.kernel().body = {{tile::Alloc{m}}, {most}, {tile::Alloc{z}}, {total}, {map}};
  }
};

void check_weights(const EmitUnit& unit, int64_t limit) {
  for (int64_t n : {1, 2, 7, 8, 9, 31, 33, 64, 100}) {
    const int64_t rows = 3;
    Guarded x(rows * n * 4), y(rows * n * 4);
    for (int64_t k = 0; k < rows * n; ++k) x.as<float>()[k] = value_at(k);
    ASSERT_EQ(unit.run({rows, n}, {x.data(), y.data()}), 0);
    for (int64_t i = 0; i < rows; ++i) {
      double most = -1e30, total = 0;
      for (int64_t j = 0; j < n; ++j) most = std::max(most, double(x.as<float>()[i * n + j]));
      for (int64_t j = 0; j < n; ++j) total += std::exp(double(x.as<float>()[i * n + j]) - most);
      for (int64_t j = 0; j < n; ++j) {
        const float got = y.as<float>()[i * n + j];
        if (j >= limit) {
          EXPECT_TRUE(std::isnan(got)) << n << " " << i << " " << j << ": an element off the domain was written";
          continue;
        }
        const double want = std::exp(double(x.as<float>()[i * n + j]) - most) / total;
        EXPECT_NEAR(got, want, 1e-6 * want + 1e-30) << n << " " << i << " " << j;
      }
    }
  }
}

TEST_P(Rows, AValueIsComputedOnceAndStoredWhereTheResultWillStand) {
  auto unit = load(Weights(std::nullopt).b, GetParam());
  ASSERT_TRUE(unit);
  EXPECT_EQ(count(unit->source(), "< z_M"), 1u) << "the rows have one loop";
  check_weights(*unit, 1 << 20);
}

TEST_P(Rows, AStoredValueStaysOutOfElementsOffTheDomain) {
  auto unit = load(Weights(5).b, GetParam());
  ASSERT_TRUE(unit);
  check_weights(*unit, 5);
}

TEST_P(Rows, ARowThatReadsItsNeighbourIsNotShared) {
  // t[i] = sum x[i, :]; y[i, j] = x[i, j] - t[M - 1 - i]
  Builder b;
  const int M = b.size("M"), N = b.size("N");
  const int i = b.var("i"), j = b.var("j"), i2 = b.var("i"), j2 = b.var("j");
  const int x = b.buffer("x", Space::Input, DType::F32, {s(M), s(N)});
  const int y = b.buffer("y", Space::Output, DType::F32, {s(M), s(N)});
  const int t = b.buffer("t", Space::Local, DType::F32, {s(M)});
  tile::Reduce total;
  total.points = {{i, s(M)}};
  total.reduces = {{j, s(N)}};
  total.reads = {{x, {f(i), f(j)}, {}}};
  total.body = {scalar::arg(b.arena(), Kind::F32, 0)};
  total.monoid = sum(Kind::F32);
  total.states = {{t, {f(i)}, {}}};
  tile::Map map;
  map.points = {{i2, s(M)}, {j2, s(N)}};
  map.reads = {{x, {f(i2), f(j2)}, {}}, {t, {s(M) - Form(1) - f(i2)}, {}}};
  map.stores = {{{y, {f(i2), f(j2)}, {}},
                 scalar::arg(b.arena(), Kind::F32, 0) - scalar::arg(b.arena(), Kind::F32, 1), {}, std::nullopt}};
  b.kernel().body = {{tile::Alloc{t}}, {total}, {map}};
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  const int64_t rows = 4, n = 37;
  Guarded in(rows * n * 4), out(rows * n * 4);
  for (int64_t k = 0; k < rows * n; ++k) in.as<float>()[k] = float(k % 13);
  ASSERT_EQ(unit->run({rows, n}, {in.data(), out.data()}), 0);
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += in.as<float>()[(rows - 1 - r) * n + c];
    for (int64_t c = 0; c < n; ++c) EXPECT_EQ(out.as<float>()[r * n + c], in.as<float>()[r * n + c] - sum);
  }
}

}  // namespace
}  // namespace lemma::emit
