#include "lemma/view/convert.h"

#include <gtest/gtest.h>

#include "lemma/scalar/eval.h"
#include "lemma/scalar/print.h"
#include "lemma/scalar/small_stack.h"
#include "lemma/view/checked.h"
#include "lemma/view/random_form.h"

namespace lemma::view {
namespace {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using test::below;
using test::Point;
using test::Random;

scalar::Leaves leaves_at(const Point& p) {
  scalar::Leaves leaves;
  leaves.arg = [p](int which) { return scalar::from_int(p.data[which]); };
  leaves.index = [p](int which) { return p.index[which]; };
  leaves.size = [p](int which) { return p.size[which]; };
  return leaves;
}

std::optional<Form> read(Expr arg) { return Form::data(int(arg.payload())); }

TEST(Convert, FormsGoToExpressionsAndBack) {
  int back_count = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const test::Meant m = test::random_form(random, 7);
    Arena arena;
    const Expr e = to_expr(m.form, arena);
    const auto back = from_expr(e, read);
    if (back) {
      ++back_count;
      EXPECT_EQ(*back, m.form) << "seed " << seed << ": " << print(m.form, test::plain_names());
    }
    for (int k = 0; k < 10; ++k) {
      const Point p = test::random_point(random);
      ASSERT_EQ(evaluate(e, leaves_at(p)).i, m.meaning(p)) << "seed " << seed << ": " << print(m.form, test::plain_names());
    }
  }
  EXPECT_GT(back_count, 1900);
}

TEST(Convert, FormulasGoToExpressionsAndBack) {
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    Random random(seed);
    const test::MeantFormula m = test::random_formula(random, 3);
    Arena arena;
    const Expr e = to_expr(m.formula, arena);
    const auto back = formula_from_expr(e, read);
    for (int k = 0; k < 15; ++k) {
      const Point p = test::random_point(random);
      ASSERT_EQ(evaluate(e, leaves_at(p)).i != 0, m.meaning(p)) << "seed " << seed;
      if (back) { ASSERT_EQ(back->evaluate(p), m.meaning(p)) << "seed " << seed; }
    }
  }
}

TEST(Convert, RandomConditionsBecomeEqualFormulas) {
  int converted = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    Arena arena;
    std::vector<Expr> pool;
    for (int k = 0; k < 4; ++k) {
      const Expr a = to_expr(test::random_form(random, 2).form, arena), b = to_expr(test::random_form(random, 1).form, arena);
      static const Op kCompare[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le};
      pool.push_back(binary(kCompare[below(random, 4)], a, b));
    }
    pool.push_back(scalar::arg(arena, Kind::Bool, 0));
    for (int k = 0; k < 5; ++k) {
      const Expr a = pool[size_t(below(random, int(pool.size())))], b = pool[size_t(below(random, int(pool.size())))];
      static const Op kLogic[] = {Op::And, Op::Or, Op::Xor, Op::Eq, Op::Ne, Op::Min, Op::Max, Op::Mul};
      switch (below(random, 4)) {
        case 0: pool.push_back(unary(Op::Not, a)); break;
        case 1: pool.push_back(select(pool.back(), a, b)); break;
        default: pool.push_back(binary(kLogic[below(random, 8)], pool.back(), b));
      }
    }
    const auto formula = formula_from_expr(pool.back(), read);
    if (!formula) continue;
    ++converted;
    for (int k = 0; k < 20; ++k) {
      Point p = test::random_point(random);
      p.data[0] = below(random, 2);
      ASSERT_EQ(evaluate(pool.back(), leaves_at(p)).i != 0, formula->evaluate(p))
          << "seed " << seed << ": " << print(pool.back(), scalar::plain_names());
    }
  }
  EXPECT_GT(converted, 1000);
}

TEST(Convert, WritesWhatPeopleWrite) {
  Arena arena;
  const Form i = Form::index(0), j = Form::index(1), S = Form::size(0);
  const auto text = [&](Expr e) { return print(e, scalar::plain_names()); };
  EXPECT_EQ(text(to_expr(2 * i - j + S - 1, arena)), "2 * i0 - i1 + n0 - 1");
  EXPECT_EQ(text(to_expr(Form::mod(i, 4) + 3 * Form::floor_div(j, S), arena)), "i0 % 4 + 3 * (i1 // n0)");
  EXPECT_EQ(text(to_expr(Formula::less(j, i) && Formula::equal(i, S), arena)), "i1 < i0 and i0 == n0");
  EXPECT_EQ(text(to_expr(Formula::never(), arena)), "false");
  EXPECT_EQ(text(to_expr(Form::data(2), arena, [&](int r) { return scalar::arg(arena, Kind::I32, r); })), "i64(arg2)");
}

TEST(Convert, RefusesWhatCouldDiffer) {
  Arena arena;
  const Expr i = scalar::index(arena, 0), narrow = scalar::arg(arena, Kind::I32, 0), wide = scalar::arg(arena, Kind::U64, 1);
  EXPECT_TRUE(from_expr(cast(narrow, Kind::I64) + i, read));
  EXPECT_FALSE(from_expr(cast(narrow + narrow, Kind::I64), read));      // wraps at 32 bits
  EXPECT_FALSE(from_expr(cast(wide, Kind::I64), read));
  EXPECT_FALSE(from_expr(cast(i, Kind::I32), read));
  EXPECT_FALSE(from_expr(binary(Op::Mod, i, cast(narrow, Kind::I64)), read));  // may be zero
  EXPECT_FALSE(from_expr(cast(narrow, Kind::I64)));                     // nobody tracks reads
  EXPECT_TRUE(formula_from_expr(binary(Op::Eq, narrow, scalar::arg(arena, Kind::I32, 1)), read));
  EXPECT_FALSE(formula_from_expr(scalar::present(arena, 0), read));
}

TEST(Convert, ALongChainNeedsNoStack) {
  scalar::test::on_small_stack([] {
    Arena arena;
    const Expr i = scalar::index(arena, 0);
    Expr sum = i;
    for (int k = 0; k < 200000; ++k) sum = sum + (k % 2 ? i : scalar::i64(arena, 1));
    EXPECT_EQ(*from_expr(sum), Form(100001) * Form::index(0) + 100000);
  });
}

TEST(Convert, HugeTextIsRefusedNotFatal) {
  Arena arena;
  const Expr i = scalar::index(arena, 0), j = scalar::index(arena, 1);
  Expr product = i, power = i + j, nest = i, sum = i;
  for (int k = 0; k < 5000; ++k) {
    product = product * scalar::i64(arena, 1000003);
    power = power * (i + scalar::i64(arena, k));
    nest = binary(Op::FloorDiv, nest + j * nest, scalar::i64(arena, 3));
    sum = sum + scalar::i64(arena, k) * i;
  }
  EXPECT_FALSE(from_expr(product));
  EXPECT_FALSE(from_expr(power));
  EXPECT_FALSE(from_expr(nest));
  EXPECT_EQ(*from_expr(sum), Form(1 + 4999 * 2500) * Form::index(0));
}

TEST(Checked, FormulasStayBounded) {
  std::optional<Formula> all = Formula::always(), any = Formula::never();
  int refused = 0;
  for (int k = 0; k < 40; ++k) {
    const Formula two = Formula::zero(Form::index(2 * k)) || Formula::zero(Form::index(2 * k + 1));
    const Formula pair = Formula::zero(Form::index(2 * k)) && Formula::zero(Form::index(2 * k + 1));
    all = all ? checked_and(*all, two) : std::nullopt;
    any = any ? checked_or(*any, pair) : std::nullopt;
    if (any) refused += !checked_not(*any);
  }
  EXPECT_FALSE(all);
  ASSERT_TRUE(any);
  EXPECT_EQ(any->cases().size(), 40u);
  EXPECT_GT(refused, 30);
  EXPECT_EQ(*checked_not(Formula::zero(Form::index(0))), !Formula::zero(Form::index(0)));
}

TEST(Checked, AgreesWithPlainArithmeticWhereItAnswers) {
  int answered = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    const Form a = test::random_form(random, 5).form, b = test::random_form(random, 5).form;
    if (auto f = checked_add(a, b)) { EXPECT_EQ(*f, a + b); }
    if (auto f = checked_subtract(a, b)) { EXPECT_EQ(*f, a - b); }
    if (auto f = checked_multiply(a, b)) { ++answered; EXPECT_EQ(*f, a * b); }
    if (auto f = checked_floor_div(a, 7)) { EXPECT_EQ(*f, Form::floor_div(a, 7)); }
    if (auto f = checked_mod(a, Form::size(0))) { EXPECT_EQ(*f, Form::mod(a, Form::size(0))); }
    if (auto f = checked_ceil_div(a, 5)) { EXPECT_EQ(*f, Form::ceil_div(a, 5)); }
  }
  EXPECT_GT(answered, 900);
  EXPECT_FALSE(checked_multiply(Form(int64_t(1) << 40) * Form::index(0), Form(int64_t(1) << 30)));
}

}  // namespace
}  // namespace lemma::view
