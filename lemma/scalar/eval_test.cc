#include "lemma/scalar/eval.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "lemma/scalar/print.h"
#include "lemma/scalar/random_expr.h"
#include "lemma/scalar/simplify.h"
#include "lemma/scalar/small_stack.h"

namespace lemma::scalar {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t ints(Op op, Kind kind, int64_t a, int64_t b) {
  const Scalar args[] = {from_int(a), from_int(b)};
  const Kind result = shape(op) == OpShape::Compare ? Kind::Bool : kind;
  return apply(op, result, kind, 0, {args, size_t(arity(op))}).i;
}
double floats(Op op, double a, double b, Arithmetic arithmetic = Arithmetic::Double) {
  const Scalar args[] = {from_float(a), from_float(b)};
  return apply(op, Kind::F32, Kind::F32, 0, {args, size_t(arity(op))}, arithmetic).f;
}

TEST(Eval, Integers) {
  const struct { Op op; Kind kind; int64_t a, b, out; } rows[] = {
      {Op::Add, Kind::I32, INT32_MAX, 1, INT32_MIN},
      {Op::Add, Kind::U32, UINT32_MAX, 1, 0},
      {Op::Add, Kind::I64, INT64_MAX, 1, INT64_MIN},
      {Op::Sub, Kind::U32, 0, 1, UINT32_MAX},
      {Op::Mul, Kind::I32, 1 << 20, 1 << 20, 0},
      {Op::Neg, Kind::I32, INT32_MIN, 0, INT32_MIN},
      {Op::Abs, Kind::I32, -5, 0, 5},
      {Op::Abs, Kind::I64, INT64_MIN, 0, INT64_MIN},
      {Op::FloorDiv, Kind::I32, -7, 2, -4},
      {Op::FloorDiv, Kind::I32, 7, -2, -4},
      {Op::FloorDiv, Kind::I32, INT32_MIN, -1, INT32_MIN},
      {Op::FloorDiv, Kind::I64, INT64_MIN, -1, INT64_MIN},
      {Op::FloorDiv, Kind::I64, 5, 0, 0},
      {Op::FloorDiv, Kind::U64, -1, 2, INT64_MAX},
      {Op::Mod, Kind::I32, -7, 2, 1},
      {Op::Mod, Kind::I32, 7, -2, -1},
      {Op::Mod, Kind::I32, 7, 0, 0},
      {Op::Mod, Kind::I64, INT64_MIN, -1, 0},
      {Op::Mod, Kind::U64, -1, 10, 5},
      {Op::Pow, Kind::I32, 3, 4, 81},
      {Op::Pow, Kind::I32, -1, -3, -1},
      {Op::Pow, Kind::I32, 2, -1, 0},
      {Op::Pow, Kind::I32, 0, 0, 1},
      {Op::Min, Kind::U64, -1, 1, 1},
      {Op::Max, Kind::I64, -1, 1, 1},
      {Op::Not, Kind::U32, 0, 0, UINT32_MAX},
      {Op::Not, Kind::Bool, 1, 0, 0},
      {Op::Shl, Kind::I32, 1, 31, INT32_MIN},
      {Op::Shl, Kind::I32, 1, 33, 2},
      {Op::Shr, Kind::I32, -8, 1, -4},
      {Op::Shr, Kind::U64, -1, 63, 1},
      {Op::Lt, Kind::U64, -1, 1, 0},
      {Op::Lt, Kind::I64, -1, 1, 1},
      {Op::Add, Kind::Bool, 1, 1, 1},
      {Op::Xor, Kind::Bool, 1, 1, 0},
  };
  for (const auto& r : rows) EXPECT_EQ(ints(r.op, r.kind, r.a, r.b), r.out) << name(r.op) << " " << name(r.kind) << " " << r.a;
}

TEST(Eval, NanPropagatesThroughMinAndMax) {
  for (Op op : {Op::Min, Op::Max}) {
    EXPECT_TRUE(std::isnan(floats(op, kNan, 1)));
    EXPECT_TRUE(std::isnan(floats(op, 1, kNan)));
    EXPECT_TRUE(std::isnan(floats(op, -kInf, kNan)));
  }
  EXPECT_EQ(floats(Op::Max, -kInf, 3), 3);
  EXPECT_TRUE(std::signbit(floats(Op::Min, 0.0, -0.0)));
  EXPECT_TRUE(std::signbit(floats(Op::Min, -0.0, 0.0)));
  EXPECT_FALSE(std::signbit(floats(Op::Max, -0.0, 0.0)));
}

TEST(Eval, Floats) {
  EXPECT_EQ(floats(Op::Round, 2.5, 0), 2);
  EXPECT_EQ(floats(Op::Round, 3.5, 0), 4);
  EXPECT_EQ(floats(Op::Mod, -7, 2), 1);
  EXPECT_EQ(floats(Op::Mod, 7, -2), -1);
  EXPECT_EQ(floats(Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(floats(Op::Sigmoid, -kInf, 0), 0);
  EXPECT_EQ(floats(Op::Sigmoid, 0, 0), 0.5);
  EXPECT_EQ(floats(Op::Rsqrt, 4, 0), 0.5);
  EXPECT_EQ(floats(Op::Div, 1, 3), 1.0 / 3);
  EXPECT_EQ(floats(Op::Div, 1, 3, Arithmetic::Single), double(1.0f / 3.0f));
  EXPECT_EQ(floats(Op::Add, 1, 0x1p-30), 1 + 0x1p-30);
  EXPECT_EQ(floats(Op::Add, 1, 0x1p-30, Arithmetic::Single), 1);
}

TEST(Eval, SingleArithmeticIsFloatArithmetic) {
  test::Random random(11);
  for (int i = 0; i < 100000; ++i) {
    const float a = float(test::random_value(Kind::F32, random).f), b = float(test::random_value(Kind::F32, random).f);
    const struct { Op op; float out; } rows[] = {
        {Op::Add, a + b}, {Op::Sub, a - b}, {Op::Mul, a * b}, {Op::Div, a / b}, {Op::Sqrt, std::sqrt(a)}};
    for (const auto& r : rows) {
      const double got = floats(r.op, a, b, Arithmetic::Single);
      ASSERT_TRUE(test::same_value(Kind::F32, from_float(got), from_float(r.out))) << name(r.op) << " " << a << " " << b;
    }
  }
}

TEST(Eval, Conversions) {
  Arena arena;
  const auto value = [](Expr e, double x) {
    Leaves leaves;
    leaves.arg = [x](int) { return from_float(x); };
    return evaluate(e, leaves);
  };
  const Expr x = arg(arena, Kind::F32, 0);
  EXPECT_EQ(value(cast(x, Kind::I32), 3e9).i, INT32_MAX);
  EXPECT_EQ(value(cast(x, Kind::U32), -3).i, 0);
  EXPECT_EQ(value(cast(x, Kind::I64), kNan).i, 0);
  EXPECT_EQ(value(cast(cast(x, Kind::I64), Kind::U32), -1).i, UINT32_MAX);
  EXPECT_EQ(value(arena.make(Op::Bits, Kind::I32, {&x, 1}), 1).i, 0x3f800000);
  EXPECT_EQ(value(round_to(x, DType::BF16), 1 + 0x1p-9).f, 1);
  EXPECT_EQ(value(round_to(x, DType::F16), 1e6).f, kInf);
}

// Columns of random values for the leaves of a program over random_pool's leaves.
struct Batch {
  std::vector<std::vector<Scalar>> values;
  std::vector<Column> columns;
  Batch(const BatchProgram& program, int count, test::Random& random) {
    for (const BatchProgram::Leaf& leaf : program.leaves()) {
      const bool broadcast = test::below(random, 4) == 0;
      values.emplace_back();
      for (int i = 0; i < (broadcast ? 1 : count); ++i) values.back().push_back(test::random_value(leaf.kind, random));
    }
    for (const auto& v : values) columns.push_back({v.data(), v.size() == 1});
  }
  Leaves at(const BatchProgram& program, size_t point) const {
    const auto find = [this, &program, point](Op op, int which) {
      for (size_t i = 0; i < columns.size(); ++i) {
        if (program.leaves()[i].op == op && program.leaves()[i].which == which) {
          return columns[i].data[columns[i].broadcast ? 0 : point];
        }
      }
      ADD_FAILURE() << "a leaf the program does not list";
      return from_int(0);
    };
    Leaves leaves;
    leaves.arg = [=](int which) { return find(Op::Arg, which); };
    leaves.present = [=](int which) { return find(Op::Present, which).i != 0; };
    leaves.index = [=](int which) { return find(Op::Index, which).i; };
    leaves.size = [=](int which) { return find(Op::Size, which).i; };
    return leaves;
  }
};

TEST(Eval, BatchEqualsSinglePoints) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    test::Random random(seed);
    Arena arena;
    const std::vector<Expr> pool = test::random_pool(arena, random, 120);
    std::vector<Expr> roots;
    for (int i = 0; i < 12; ++i) roots.push_back(pool[size_t(test::below(random, int(pool.size())))]);
    const Arithmetic arithmetic = seed % 2 ? Arithmetic::Double : Arithmetic::Single;
    const BatchProgram program = BatchProgram::compile(roots, arithmetic);
    BatchProgram::Workspace workspace;
    for (int count : {1, 7, 64}) {
      const Batch batch(program, count, random);
      std::vector<Column> results(roots.size());
      program.run(batch.columns, count, workspace, results);
      for (int p = 0; p < count; ++p) {
        const Leaves leaves = batch.at(program, size_t(p));
        for (size_t r = 0; r < roots.size(); ++r) {
          const Scalar one = evaluate(roots[r], leaves, arithmetic);
          const Scalar many = results[r].data[results[r].broadcast ? 0 : p];
          ASSERT_TRUE(test::same_value(roots[r].kind(), one, many))
              << "seed " << seed << " point " << p << ": " << print(roots[r], plain_names());
        }
      }
    }
  }
}

TEST(Eval, BatchOfConstantsAndOfNothing) {
  Arena arena;
  const Expr roots[] = {f32(arena, 2) * f32(arena, 3), arg(arena, Kind::F32, 0)};
  const BatchProgram program = BatchProgram::compile(roots);
  BatchProgram::Workspace workspace;
  const Scalar values[] = {from_float(1), from_float(5)};
  const Column column{values, false};
  Column results[2];
  program.run({&column, 1}, 2, workspace, results);
  EXPECT_TRUE(results[0].broadcast);
  EXPECT_EQ(results[0].data[0].f, 6);
  EXPECT_EQ(results[1].data, values);
  program.run({&column, 1}, 0, workspace, results);
  EXPECT_EQ(results[0].data, nullptr);
}

TEST(Eval, ALongChainNeedsNoStackAndLinearTime) {
  test::on_small_stack([] {
    Arena arena;
    Expr e = arg(arena, Kind::F64, 0);
    const Expr x = e;
    for (int i = 0; i < 200000; ++i) e = i % 2 ? e + x : constant(arena, Kind::F64, 0.5) * e;
    const auto start = std::chrono::steady_clock::now();
    Leaves leaves;
    leaves.arg = [](int) { return from_float(1); };
    EXPECT_NEAR(evaluate(e, leaves).f, 2, 1e-9);
    const BatchProgram program = BatchProgram::compile({&e, 1});
    BatchProgram::Workspace workspace;
    const Scalar one = from_float(1);
    const Column column{&one, true};
    Column result;
    program.run({&column, 1}, 64, workspace, {&result, 1});
    EXPECT_NEAR(result.data[0].f, 2, 1e-9);
    const Printed printed = print_with_lets({&e, 1}, plain_names());
    EXPECT_GT(printed.lets.size(), 1000u);
    EXPECT_NEAR(evaluate(simplify(e, Claim::Real), leaves).f, 2, 1e-9);
    Arena other;
    const Expr copy = import(e, other);
    EXPECT_EQ(copy.index() + 1, other.size());
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 60.0);
  });
}

}  // namespace
}  // namespace lemma::scalar
