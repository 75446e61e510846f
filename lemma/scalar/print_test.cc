#include "lemma/scalar/print.h"

#include <limits>

#include <gtest/gtest.h>

#include "lemma/scalar/random_expr.h"

namespace lemma::scalar {
namespace {

class Print : public testing::Test {
 protected:
  Arena arena;
  Expr x = arg(arena, Kind::F32, 0), y = arg(arena, Kind::F32, 1), z = arg(arena, Kind::F32, 2);
  Expr a = index(arena, 0), b = index(arena, 1);
  LeafNames names = [] {
    LeafNames n = plain_names();
    n.arg = [](int which) { return which == 0 ? "s[i, j]" : which == 1 ? "m[i]" : "z"; };
    n.index = [](int which) { return std::string(1, char('a' + which)); };
    return n;
  }();
  std::string text(Expr e, Strength outer = Strength::Any) { return print(e, names, outer); }
};

TEST_F(Print, NeedsFewParentheses) {
  EXPECT_EQ(text(exp(x - y) * f32(arena, 2)), "exp(s[i, j] - m[i]) * 2");
  EXPECT_EQ(text((x + y) + z), "s[i, j] + m[i] + z");
  EXPECT_EQ(text(x + (y + z)), "s[i, j] + (m[i] + z)");
  EXPECT_EQ(text(x - (y - z)), "s[i, j] - (m[i] - z)");
  EXPECT_EQ(text((x + y) * z), "(s[i, j] + m[i]) * z");
  EXPECT_EQ(text(x / (y * z)), "s[i, j] / (m[i] * z)");
  EXPECT_EQ(text(x / y * z), "s[i, j] / m[i] * z");
  EXPECT_EQ(text(-x * y), "-s[i, j] * m[i]");
  EXPECT_EQ(text(-(x * y)), "-(s[i, j] * m[i])");
  EXPECT_EQ(text(-(-x)), "-(-s[i, j])");
  EXPECT_EQ(text(x - -y), "s[i, j] - -m[i]");
  EXPECT_EQ(text(select(binary(Op::Lt, a, b), x, y)), "select(a < b, s[i, j], m[i])");
  EXPECT_EQ(text(binary(Op::FloorDiv, a, b)), "a // b");
  EXPECT_EQ(text(binary(Op::Mod, a + b, b)), "(a + b) % b");
  EXPECT_EQ(text(min(x, max(y, z))), "min(s[i, j], max(m[i], z))");
  EXPECT_EQ(text(x + y, Strength::Product), "(s[i, j] + m[i])");
  EXPECT_EQ(text(x * y, Strength::Product), "s[i, j] * m[i]");
}

TEST_F(Print, Logic) {
  const Expr p = binary(Op::Lt, a, b), q = binary(Op::Le, b, a);
  EXPECT_EQ(text(binary(Op::Or, binary(Op::And, p, q), p)), "a < b and b <= a or a < b");
  EXPECT_EQ(text(binary(Op::And, binary(Op::Or, p, q), p)), "(a < b or b <= a) and a < b");
  EXPECT_EQ(text(unary(Op::Not, p)), "not (a < b)");
  EXPECT_EQ(text(binary(Op::Eq, p, q)), "(a < b) == (b <= a)");
  EXPECT_EQ(text(binary(Op::And, a, binary(Op::Or, b, a))), "a & (b | a)");
  EXPECT_EQ(text(binary(Op::Shl, a + b, b)), "a + b << b");
  EXPECT_EQ(text(unary(Op::Not, a)), "~a");
}

TEST_F(Print, Constants) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(f32(arena, 0.1)), "0.1");
  EXPECT_EQ(text(constant(arena, Kind::F64, 0.1)), "0.1");
  EXPECT_EQ(text(f32(arena, double(0.1f) / 3)), "0.033333335");
  EXPECT_EQ(text(f32(arena, -0.0)), "-0.0");
  EXPECT_EQ(text(f32(arena, 0.0)), "0");
  EXPECT_EQ(text(f32(arena, inf)), "inf");
  EXPECT_EQ(text(f32(arena, -inf)), "-inf");
  EXPECT_EQ(text(f32(arena, inf - inf)), "nan");
  EXPECT_EQ(text(boolean(arena, true)), "true");
  EXPECT_EQ(text(i64(arena, -3)), "-3");
  EXPECT_EQ(text(constant_int(arena, Kind::U64, -1)), "18446744073709551615");
  EXPECT_EQ(text(-f32(arena, 2)), "-(2)");
  EXPECT_EQ(text(x * f32(arena, -2)), "s[i, j] * -2");
  names.decimal_point = true;
  EXPECT_EQ(text(f32(arena, 2)), "2.0");
}

TEST_F(Print, Conversions) {
  EXPECT_EQ(text(cast(x + y, Kind::I32)), "i32(s[i, j] + m[i])");
  EXPECT_EQ(text(cast(a, Kind::F32) * x), "f32(a) * s[i, j]");
  EXPECT_EQ(text(round_to(x, DType::BF16)), "round_to[bf16](s[i, j])");
  EXPECT_EQ(text(arena.make(Op::Bits, Kind::U32, {&x, 1})), "bits[u32](s[i, j])");
}

TEST_F(Print, SharedNodesAreNamedOnce) {
  const Expr big = exp(x - y) * exp(y - z);
  const Expr roots[] = {big + big, big};
  const Printed printed = print_with_lets(roots, names);
  ASSERT_EQ(printed.lets.size(), 1u);
  EXPECT_EQ(printed.lets[0].name, "t0");
  EXPECT_EQ(printed.lets[0].text, "exp(s[i, j] - m[i]) * exp(m[i] - z)");
  EXPECT_EQ(printed.lets[0].value, big);
  EXPECT_EQ(printed.roots[0], "t0 + t0");
  EXPECT_EQ(printed.roots[1], "t0");
  EXPECT_EQ(text(big + big), "t0 + t0 where t0 = exp(s[i, j] - m[i]) * exp(m[i] - z)");
}

TEST_F(Print, SharingStaysLinear) {
  Expr e = x;
  for (int i = 0; i < 400; ++i) e = e * e + y;
  size_t length = text(e).size();
  EXPECT_LT(length, 400u * 60);
  // Nesting: no text is deeper than a hundred parentheses.
  Expr chain = x;
  for (int i = 0; i < 1000; ++i) chain = exp(chain + y);
  const Printed printed = print_with_lets({&chain, 1}, names);
  EXPECT_GE(printed.lets.size(), 20u);
  for (const Let& let : printed.lets) EXPECT_LT(std::count(let.text.begin(), let.text.end(), '('), 100);
}

}  // namespace
}  // namespace lemma::scalar
