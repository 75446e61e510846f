// The library by values: what nothing gives, what nan and infinities do, who wins a tie.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lemma/monoid/eval.h"

namespace lemma::monoid {
namespace {

using scalar::from_float;
using scalar::from_int;
using scalar::Kind;
using scalar::Scalar;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Scalar> fold(const MonoidRef& monoid, const std::vector<std::vector<Scalar>>& elements) {
  Evaluator e(monoid);
  std::vector<Scalar> state(size_t(e.state_size())), next(size_t(e.state_size())), out;
  e.identity(state.data());
  for (const auto& row : elements) {
    e.lift([&](int o, int, int64_t) { return row[size_t(o)]; }, next.data());
    e.combine(state.data(), next.data());
  }
  for (const auto& result : e.finish(state.data())) out.push_back(result[0]);
  return out;
}

std::vector<std::vector<Scalar>> floats(const std::vector<double>& values, bool indexed = false) {
  std::vector<std::vector<Scalar>> out;
  for (size_t i = 0; i < values.size(); ++i) {
    out.push_back({from_float(values[i])});
    if (indexed) out.back().push_back(from_int(int64_t(i)));
  }
  return out;
}

TEST(Library, EmptyReductions) {
  EXPECT_EQ(fold(sum(Kind::F32), {})[0].f, 0);
  EXPECT_EQ(fold(product(Kind::F32), {})[0].f, 1);
  EXPECT_EQ(fold(maximum(Kind::F32), {})[0].f, -kInf);
  EXPECT_EQ(fold(minimum(Kind::F64), {})[0].f, kInf);
  EXPECT_EQ(fold(maximum(Kind::I32), {})[0].i, std::numeric_limits<int32_t>::min());
  EXPECT_EQ(fold(minimum(Kind::U32), {})[0].i, 0xFFFFFFFF);
  EXPECT_EQ(fold(any(), {})[0].i, 0);
  EXPECT_EQ(fold(all(), {})[0].i, 1);
  EXPECT_EQ(fold(arg_maximum(Kind::F32), {})[0].i, -1);
}

TEST(Library, NanWinsMaxAndMin) {
  EXPECT_TRUE(std::isnan(fold(maximum(Kind::F32), floats({1, kNan, 3}))[0].f));
  EXPECT_TRUE(std::isnan(fold(minimum(Kind::F32), floats({kNan, -kInf}))[0].f));
  EXPECT_EQ(fold(maximum(Kind::F32), floats({1, 3, 2}))[0].f, 3);
}

TEST(Library, ArgMaximumPicksTheFirstNanElseTheFirstBest) {
  EXPECT_EQ(fold(arg_maximum(Kind::F32), floats({1, 3, 3}, true))[0].i, 1);
  EXPECT_EQ(fold(arg_maximum(Kind::F32), floats({1, kNan, kInf, kNan}, true))[0].i, 1);
  EXPECT_EQ(fold(arg_maximum(Kind::F32), floats({-kInf, -kInf}, true))[0].i, 0);
  EXPECT_EQ(fold(arg_minimum(Kind::F32), floats({2, 1, 1}, true))[0].i, 1);
  EXPECT_EQ(fold(arg_minimum(Kind::F32), floats({kInf, kNan}, true))[0].i, 1);
  EXPECT_EQ(fold(arg_maximum(Kind::I32), {{from_int(std::numeric_limits<int32_t>::min()), from_int(4)}})[0].i, 4);
}

TEST(Library, WelfordMergesUnequalCounts) {
  Evaluator e(welford(Kind::F64));
  std::vector<Scalar> a(3), b(3), next(3);
  e.identity(a.data());
  e.identity(b.data());
  const double values[] = {1, 2, 4, 8, 16};
  for (int i = 0; i < 5; ++i) {
    e.lift([&](int, int, int64_t) { return from_float(values[i]); }, next.data());
    e.combine(i < 1 ? a.data() : b.data(), next.data());
  }
  e.combine(a.data(), b.data());
  EXPECT_EQ(a[0].f, 5);
  EXPECT_EQ(a[1].f, 31);
  double m2 = 0;
  for (double v : values) m2 += (v - 6.2) * (v - 6.2);
  EXPECT_NEAR(a[2].f, m2, 1e-12);
  EXPECT_TRUE(std::isnan(fold(welford(Kind::F64), floats({1, kInf}))[2].f));
}

TEST(Library, RescaledSumShowsWhatIsNotFinite) {
  const auto run = [](std::vector<double> scores, std::vector<double> terms) {
    std::vector<std::vector<Scalar>> rows;
    for (size_t i = 0; i < scores.size(); ++i) rows.push_back({from_float(scores[i]), from_float(terms[i])});
    return fold(rescaled_sum(Kind::F64, 1, 2.0), rows);
  };
  const auto plain = run({1, 3, 2}, {5, 7, 11});
  EXPECT_EQ(plain[0].f, 3);
  EXPECT_NEAR(plain[1].f, 5 * std::exp(-4.0) + 7 + 11 * std::exp(-2.0), 1e-12);
  EXPECT_EQ(run({}, {})[0].f, -kInf);
  // -inf is as if absent, whatever its term holds.
  EXPECT_EQ(run({-kInf, -kInf}, {1, kNan})[1].f, 0);
  EXPECT_EQ(run({-kInf, 0}, {kInf, 2})[1].f, 2);
  EXPECT_EQ(run({kInf, 0}, {1, 1})[0].f, kInf);
  EXPECT_TRUE(std::isnan(run({kInf, 0}, {1, 1})[1].f));
  EXPECT_TRUE(std::isnan(run({0, kNan}, {1, 1})[1].f));
}

TEST(Library, AffineComposesEarlierFirst) {
  // h -> 2h + 1 and then h -> 3h + 5.
  const auto both = fold(affine(Kind::F64), {{from_float(2), from_float(1)}, {from_float(3), from_float(5)}});
  EXPECT_EQ(both[0].f, 6);
  EXPECT_EQ(both[1].f, 8);
}

TEST(Library, ProductsStandSideBySide) {
  const MonoidRef both = pair(pair(sum(Kind::F32), arg_maximum(Kind::F32)), maximum(Kind::F32));
  EXPECT_EQ(both->name, "(sum, argmax, max)");
  EXPECT_EQ(both->structure, Structure::Elementwise);
  EXPECT_EQ(both->components[3].name, "value3");
  std::vector<std::vector<Scalar>> rows;
  for (int i = 0; i < 3; ++i) {
    const double v[] = {1, 4, 2};
    rows.push_back({from_float(v[i]), from_float(v[i]), from_int(i), from_float(-v[i])});
  }
  const auto out = fold(both, rows);
  EXPECT_EQ(out[0].f, 7);
  EXPECT_EQ(out[1].i, 1);
  EXPECT_EQ(out[2].f, -1);
  EXPECT_FALSE(pairable(*top_k(Kind::F32, 2, false)));
}

TEST(Library, SameComparesDefinitions) {
  EXPECT_TRUE(same(*sum(Kind::F32), *sum(Kind::F32)));
  EXPECT_EQ(hash(*welford(Kind::F32)), hash(*welford(Kind::F32)));
  EXPECT_FALSE(same(*sum(Kind::F32), *sum(Kind::F64)));
  EXPECT_FALSE(same(*maximum(Kind::F32), *minimum(Kind::F32)));
  EXPECT_FALSE(same(*rescaled_sum(Kind::F32, 1, 1), *rescaled_sum(Kind::F32, 1, 2)));
  EXPECT_TRUE(same(*pair(any(), all()), *pair(any(), all())));
}

}  // namespace
}  // namespace lemma::monoid
