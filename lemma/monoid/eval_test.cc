// Monoids on values: top-k's merge, states with axes and inner sums, and folds by columns against folds one by one.
#include "lemma/monoid/eval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lemma::monoid {
namespace {

using scalar::from_float;
using scalar::from_int;
using scalar::Kind;
using scalar::Scalar;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Lifts each row of operands and combines them in order; the results of finish.
std::vector<std::vector<Scalar>> fold(const MonoidRef& monoid, const std::vector<std::vector<Scalar>>& elements) {
  Evaluator e(monoid);
  std::vector<Scalar> state(size_t(e.state_size())), next(size_t(e.state_size()));
  e.identity(state.data());
  for (const auto& row : elements) {
    e.lift([&](int o, int, int64_t) { return row[size_t(o)]; }, next.data());
    e.combine(state.data(), next.data());
  }
  return e.finish(state.data());
}

TEST(MonoidEval, TopKOrdersNanAboveAllAndTiesByIndex) {
  std::vector<std::vector<Scalar>> elements;
  const double values[] = {1, 5, -kInf, 5, kNan, 2};
  for (int i = 0; i < 6; ++i) elements.push_back({from_float(values[i]), from_int(i)});
  const auto best = fold(top_k(Kind::F32, 4, false), elements);
  EXPECT_TRUE(std::isnan(best[0][0].f));
  EXPECT_EQ(best[0][1].f, 5);
  EXPECT_EQ(best[0][2].f, 5);
  EXPECT_EQ(best[0][3].f, 2);
  const int64_t expected[] = {4, 1, 3, 5};
  for (int k = 0; k < 4; ++k) EXPECT_EQ(best[1][size_t(k)].i, expected[k]);
}

TEST(MonoidEval, TopKFillsMissingSlots) {
  const auto best = fold(top_k(Kind::F32, 3, false), {{from_float(-kInf), from_int(7)}});
  EXPECT_EQ(best[0][0].f, -kInf);
  EXPECT_EQ(best[1][0].i, 7);
  EXPECT_EQ(best[0][1].f, -kInf);
  EXPECT_EQ(best[1][1].i, -1);
  const auto least = fold(top_k(Kind::I32, 2, true), {{from_int(9), from_int(0)}});
  EXPECT_EQ(least[0][0].i, 9);
  EXPECT_EQ(least[0][1].i, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(least[1][1].i, -1);
}

TEST(MonoidEval, TopKCopesWithReversedArrival) {
  const auto best = fold(top_k(Kind::F32, 2, true),
                         {{from_float(1), from_int(3)}, {from_float(1), from_int(2)}, {from_float(0), from_int(9)}});
  EXPECT_EQ(best[1][0].i, 9);
  EXPECT_EQ(best[1][1].i, 2);
}

// Products of 2x2 matrices: new.a[i, k] = sum over l of y.a[i, l] * x.a[l, k].
MonoidRef matrices() {
  Monoid m;
  m.name = "matrices";
  m.arena = std::make_shared<scalar::Arena>();
  m.operands = {Kind::F32};
  m.components = {{"a", Kind::F32, {view::Form(2), view::Form(2)}}};
  scalar::Arena& arena = *m.arena;
  const scalar::Expr row = scalar::index(arena, 0), column = scalar::index(arena, 1);
  m.identity = {scalar::select(scalar::binary(scalar::Op::Eq, row, column), scalar::f32(arena, 1), scalar::f32(arena, 0))};
  m.lift = {scalar::arg(arena, Kind::F32, 0)};
  Update update;
  update.sums = {view::Form(2)};
  update.reads = {{true, 0, {view::Form::index(0), view::Form::index(2)}},
                  {false, 0, {view::Form::index(2), view::Form::index(1)}}};
  update.body = scalar::arg(arena, Kind::F32, 0) * scalar::arg(arena, Kind::F32, 1);
  m.combine = {update};
  m.finish = {scalar::arg(arena, Kind::F32, 0)};
  return std::make_shared<const Monoid>(std::move(m));
}

TEST(MonoidEval, CombinesMatricesByInnerSums) {
  Evaluator e(matrices());
  ASSERT_EQ(e.state_size(), 4);
  Scalar state[4], next[4];
  e.identity(state);
  EXPECT_EQ(state[0].f, 1);
  EXPECT_EQ(state[1].f, 0);
  const double first[] = {1, 2, 3, 4}, second[] = {0, 1, 5, 2};
  for (const double* values : {first, second}) {
    e.lift([&](int, int, int64_t p) { return from_float(values[p]); }, next);
    e.combine(state, next);
  }
  // second * first
  const double expected[] = {3, 4, 11, 18};
  for (int p = 0; p < 4; ++p) EXPECT_EQ(state[p].f, expected[p]);
}

TEST(MonoidEval, FoldsColumnsAsOneByOne) {
  for (const MonoidRef& monoid : {welford(Kind::F64), rescaled_sum(Kind::F64, 1, 0.5), affine(Kind::F64),
                                  sum(Kind::F64), maximum(Kind::F64)}) {
    Evaluator e(monoid);
    ASSERT_TRUE(e.columnar());
    const size_t n = size_t(e.state_size());
    constexpr int kElements = 23;
    std::vector<std::vector<Scalar>> columns(n, std::vector<Scalar>(kElements)), states(n, std::vector<Scalar>(3));
    std::vector<Scalar> identity(n), state(n), next(n);
    e.identity(identity.data());
    const Segment segments[] = {{0, 9, 2}, {9, 10, 0}, {10, 23, 1}};
    std::vector<std::vector<Scalar>> expected(3, identity);
    for (int k = 0; k < kElements; ++k) {
      e.lift([&](int o, int, int64_t) { return from_float(std::sin(k * 1.7 + o)); }, next.data());
      for (size_t c = 0; c < n; ++c) columns[c][size_t(k)] = next[c];
      for (const Segment& s : segments) {
        if (k >= s.begin && k < s.end) e.combine(expected[size_t(s.state)].data(), next.data());
      }
    }
    std::vector<Scalar*> elements, folded;
    for (size_t c = 0; c < n; ++c) {
      elements.push_back(columns[c].data());
      folded.push_back(states[c].data());
      std::fill(states[c].begin(), states[c].end(), identity[c]);
    }
    e.fold_columns(elements, segments, folded);
    for (size_t c = 0; c < n; ++c) {
      for (size_t s = 0; s < 3; ++s) EXPECT_NEAR(states[c][s].f, expected[s][c].f, 1e-12) << monoid->name;
    }
  }
}

TEST(MonoidEval, IntegersWrapAndCompareAsTheirKind) {
  EXPECT_EQ(fold(sum(Kind::I32), {{from_int(std::numeric_limits<int32_t>::max())}, {from_int(1)}})[0][0].i,
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(fold(product(Kind::U32), {{from_int(0x10000)}, {from_int(0x10001)}})[0][0].i, 0x10000);
  EXPECT_EQ(fold(maximum(Kind::U64), {{from_int(1)}, {from_int(-1)}})[0][0].i, -1);
  EXPECT_EQ(fold(minimum(Kind::I64), {{from_int(1)}, {from_int(-1)}})[0][0].i, -1);
}

}  // namespace
}  // namespace lemma::monoid
