#include "lemma/scalar/simplify.h"

#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "lemma/scalar/check_rule.h"
#include "lemma/scalar/eval.h"
#include "lemma/scalar/print.h"

namespace lemma::scalar {
namespace {

TEST(Rules, EachHoldsAtItsClaim) {
  std::set<std::string> names;
  for (const Rule& rule : library_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands twice";
    const test::RuleCheck check = test::check_rule(rule, 1, 3000);
    EXPECT_FALSE(check.failure) << *check.failure;
    EXPECT_GE(check.tried, 15) << rule.name << " was hardly tried";
  }
}

TEST(Rules, WrongOnesAreCaught) {
  const Rule wrong[] = {
      {"planted_add_zero", "?a + 0", "?a", "a:float", Claim::Exact},             // -0
      {"planted_sub_self", "?a - ?a", "0", "a:float", Claim::Real},              // inf, nan
      {"planted_not_lt", "not(?a < ?b)", "?b <= ?a", "", Claim::Exact},          // nan
      {"planted_mul_zero", "?a * 0", "0", "a:float", Claim::Real},               // inf
      {"planted_sqrt", "sqrt(?a) * sqrt(?a)", "?a", "", Claim::Real},            // negatives
      {"planted_div_mul", "(?a // ?b) * ?b", "?a", "a:int", Claim::Exact},
      {"planted_div_self", "?a // ?a", "1", "a:int", Claim::Exact},              // 0
      {"planted_abs_neg", "abs(-?a)", "abs(?a)", "", Claim::Exact},              // unsigned
      {"planted_min_max", "min(?a, max(?a, ?b))", "?a", "a:float", Claim::Real}, // nan
      {"planted_recip", "?a * recip(?b)", "?a / ?b", "", Claim::Exact},          // rounding
      {"planted_cast", "cast(cast(?a))", "cast(?a)", "", Claim::Exact},
      {"planted_sum", "(?a + ?b) - ?b", "?a", "a:float", Claim::Real},           // inf
      {"planted_finite", "?a * 2", "?a + 1", "a:float", Claim::Finite},
  };
  for (const Rule& rule : wrong) EXPECT_TRUE(test::check_rule(rule, 1, 4000).failure) << rule.name;
  // What only inf and nan break is finite.
  EXPECT_FALSE(test::check_rule({"finite", "?a - ?a", "0", "a:float", Claim::Finite}, 1, 2000).failure);
}

class Simplify : public testing::Test {
 protected:
  Arena arena;
  Expr x = arg(arena, Kind::F32, 0), y = arg(arena, Kind::F32, 1);
  Expr i = index(arena, 0), j = index(arena, 1);
  std::string text(Expr e, Claim allow = Claim::Exact) { return print(simplify(e, allow), plain_names()); }
};

TEST_F(Simplify, Floats) {
  EXPECT_EQ(text(x * f32(arena, 1)), "arg0");
  EXPECT_EQ(text(x + f32(arena, 0)), "arg0 + 0");
  EXPECT_EQ(text(x + f32(arena, 0), Claim::Real), "arg0");
  EXPECT_EQ(text(x - x, Claim::Loose), "arg0 - arg0");
  EXPECT_EQ(text(x / f32(arena, 8)), "arg0 * 0.125");
  EXPECT_EQ(text(x / f32(arena, 3)), "arg0 / 3");
  EXPECT_EQ(text(unary(Op::Recip, unary(Op::Sqrt, x)), Claim::Real), "rsqrt(arg0)");
  EXPECT_EQ(text(x / unary(Op::Sqrt, f32(arena, 64))), "arg0 * 0.125");
  EXPECT_EQ(text(x * f32(arena, 0.5) * f32(arena, 4), Claim::Real), "arg0 * 2");
  EXPECT_EQ(text(max(f32(arena, -INFINITY), max(x, x))), "arg0");
  EXPECT_EQ(text(x + -y), "arg0 - arg1");
  EXPECT_EQ(text(exp(x) * exp(y), Claim::Real), "exp(arg0 + arg1)");
  EXPECT_EQ(text(exp(x) * exp(y)), "exp(arg0) * exp(arg1)");
}

TEST_F(Simplify, IntegersAndTruth) {
  const Expr less = binary(Op::Lt, i, j);
  EXPECT_EQ(text((i + i64(arena, 3)) - i64(arena, 3)), "i0");
  EXPECT_EQ(text(i64(arena, 0) * i + (i - i)), "0");
  EXPECT_EQ(text(unary(Op::Not, less)), "i1 <= i0");
  EXPECT_EQ(text(unary(Op::Not, binary(Op::Lt, x, y))), "not (arg0 < arg1)");
  EXPECT_EQ(text(binary(Op::And, less, binary(Op::Or, less, binary(Op::Eq, i, j)))), "i0 < i1");
  EXPECT_EQ(text(select(unary(Op::Not, binary(Op::Lt, x, y)), x, y)), "select(arg0 < arg1, arg1, arg0)");
  EXPECT_EQ(text(select(binary(Op::Eq, i, i), x, y)), "arg0");
  EXPECT_EQ(text(select(less, select(less, x, y), y)), "select(i0 < i1, arg0, arg1)");
  EXPECT_EQ(text(cast(cast(arg(arena, Kind::I32, 2), Kind::I64), Kind::F32)), "f32(arg2)");
  EXPECT_EQ(text(cast(cast(i, Kind::I32), Kind::I64)), "i64(i32(i0))");
}

TEST_F(Simplify, FoldsWhatIsExactInFloat) {
  EXPECT_EQ(simplify(f32(arena, 0.1) + f32(arena, 0.2), Claim::Exact), f32(arena, double(0.1f + 0.2f)));
  EXPECT_EQ(simplify(f32(arena, 1) / f32(arena, 3), Claim::Exact), f32(arena, double(1.0f / 3.0f)));
  EXPECT_EQ(text(exp(f32(arena, 1))), "exp(1)");
  EXPECT_EQ(text(exp(f32(arena, 0))), "1");
  EXPECT_EQ(text(exp(f32(arena, -INFINITY))), "0");
  EXPECT_EQ(text(unary(Op::Exp2, f32(arena, 5))), "32");
  EXPECT_EQ(text(unary(Op::Log2, f32(arena, 0.25))), "-2");
  EXPECT_EQ(text(unary(Op::Log2, f32(arena, 3))), "log2(3)");
  EXPECT_EQ(text(unary(Op::Rsqrt, f32(arena, 16))), "0.25");
  EXPECT_EQ(text(unary(Op::Rsqrt, f32(arena, 2))), "rsqrt(2)");
  EXPECT_EQ(text(binary(Op::Lt, f32(arena, NAN), f32(arena, 1))), "false");
  EXPECT_EQ(text(cast(f32(arena, 1e20), Kind::I32)), "2147483647");
}

// What simplification does to random expressions is invisible in f32 arithmetic, and done once.
TEST_F(Simplify, KeepsRandomExpressionsBitForBit) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    test::Random random(seed);
    Arena own;
    std::vector<Expr> pool = test::random_pool(own, random, 150, false);
    Simplifier exact(Claim::Exact), real(Claim::Real);
    const std::vector<Expr> simpler = exact.simplify(pool);
    EXPECT_EQ(exact.simplify(simpler), simpler) << "seed " << seed;
    const std::vector<Expr> loose = real.simplify(pool);
    EXPECT_EQ(real.simplify(loose), loose) << "seed " << seed;
    for (int point = 0; point < 6; ++point) {
      Scalar args[14];
      for (int k = 0; k < 14; ++k) args[k] = test::random_value(Kind(k % 7), random);
      const int64_t index = test::below(random, 10) - 3, size = test::below(random, 10);
      Leaves leaves;
      leaves.arg = [&](int which) { return args[which]; };
      leaves.present = [&](int) { return index % 2 != 0; };
      leaves.index = [&](int) { return index; };
      leaves.size = [&](int) { return size; };
      for (size_t e = pool.size() - 20; e < pool.size(); ++e) {
        changed += !(pool[e] == simpler[e]);
        const Scalar before = evaluate(pool[e], leaves, Arithmetic::Single);
        const Scalar after = evaluate(simpler[e], leaves, Arithmetic::Single);
        ASSERT_TRUE(test::same_value(pool[e].kind(), before, after))
            << "seed " << seed << ": " << print(pool[e], plain_names()) << "  ->  " << print(simpler[e], plain_names());
      }
    }
  }
  EXPECT_GT(changed, 3000);
}

TEST_F(Simplify, CountsFirings) {
  Simplifier simplifier(Claim::Exact);
  simplifier.simplify(x * f32(arena, 1) - f32(arena, 0));
  EXPECT_EQ(simplifier.fired()[0], 1);  // mul_one
  EXPECT_EQ(simplifier.fired()[2], 1);  // sub_zero
}

TEST_F(Simplify, LongChains) {
  Expr sum = i, nest = x, plain = x;
  for (int k = 0; k < 20000; ++k) {
    sum = sum + i64(arena, k);
    nest = -(-(nest - -y));
    plain = plain + y;
  }
  EXPECT_EQ(text(sum), "i0 + 199990000");
  EXPECT_EQ(simplify(nest, Claim::Exact), plain);
}

}  // namespace
}  // namespace lemma::scalar
