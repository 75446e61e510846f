#include "lemma/view/formula.h"

#include <gtest/gtest.h>

#include "lemma/view/random_form.h"

namespace lemma::view {
namespace {

using test::Point;
using test::Random;

const Form i = Form::index(0), j = Form::index(1), S = Form::size(0);

std::string text(const Formula& f) { return print(f, test::plain_names()); }

TEST(Formula, AlgebraMeansWhatItSays) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const test::MeantFormula m = test::random_formula(random, 4);
    for (int k = 0; k < 30; ++k) {
      const Point p = test::random_point(random);
      ASSERT_EQ(m.formula.evaluate(p), m.meaning(p)) << "seed " << seed << ": " << text(m.formula);
    }
  }
}

TEST(Formula, SubstitutionIsComposition) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    const test::MeantFormula m = test::random_formula(random, 3);
    const test::Meant by = test::random_form(random, 2);
    const Formula out = m.formula.map_indices([&](int id) { return id == 0 ? by.form : Form::index(id); });
    for (int k = 0; k < 15; ++k) {
      const Point p = test::random_point(random);
      Point inner = p;
      inner.index[0] = by.meaning(p);
      ASSERT_EQ(out.evaluate(p), m.meaning(inner)) << "seed " << seed << ": " << text(m.formula);
    }
  }
}

TEST(Formula, Constructors) {
  for (int64_t a = -3; a <= 3; ++a) {
    for (int64_t b = -3; b <= 3; ++b) {
      Point p;
      p.index[0] = a, p.index[1] = b;
      EXPECT_EQ(Formula::less(i, j).evaluate(p), a < b);
      EXPECT_EQ(Formula::less_equal(i, j).evaluate(p), a <= b);
      EXPECT_EQ(Formula::equal(i, j).evaluate(p), a == b);
      EXPECT_EQ(Formula::within(i, j).evaluate(p), 0 <= a && a < b);
    }
  }
}

TEST(Formula, Canonical) {
  EXPECT_TRUE(Formula::non_negative(3).is_always());
  EXPECT_TRUE(Formula::non_negative(-1).is_never());
  EXPECT_TRUE(Formula::zero(2 * i - 1).is_never());
  EXPECT_EQ(Formula::non_negative(2 * i - 1), Formula::non_negative(i - 1));
  EXPECT_EQ(Formula::zero(i - j), Formula::zero(j - i));
  EXPECT_EQ(Formula::less(i, j), !Formula::less_equal(j, i));
  EXPECT_EQ(Formula::non_negative(i) && Formula::non_negative(i - 3), Formula::non_negative(i - 3));
  EXPECT_TRUE((Formula::non_negative(i - 3) && Formula::non_negative(-i)).is_never());
  EXPECT_TRUE((Formula::zero(i - 3) && Formula::zero(i - 4)).is_never());
  EXPECT_TRUE((Formula::zero(i - 3) && Formula::zero(i + j) && Formula::non_negative(2 - i)).is_never());
  EXPECT_TRUE((Formula::always() || Formula::zero(i)).is_always());
  EXPECT_EQ(Formula::zero(i) || (Formula::zero(i) && Formula::zero(j)), Formula::zero(i));
}

TEST(Formula, ALongConjunctionIsQuick) {
  Formula all;
  for (int k = 0; k < 1000; ++k) all = all && Formula::non_negative(Form::index(k) - Form::index(k + 1));
  EXPECT_EQ(all.cases()[0].size(), 1000u);
}

TEST(Formula, Prints) {
  EXPECT_EQ(text(Formula::less_equal(j, i)), "j <= i");
  EXPECT_EQ(text(Formula::less(j, i)), "j < i");
  EXPECT_EQ(text(Formula::less(i - 4, j)), "i <= j + 3");
  EXPECT_EQ(text(Formula::equal(Form::mod(i, 4), 0)), "i % 4 == 0");
  EXPECT_EQ(text(Formula::equal(i, j)), "i == j");
  EXPECT_EQ(text(Formula::within(i, S)), "i < S and 0 <= i");
  EXPECT_EQ(text(Formula::zero(i) || Formula::less(S, j)), "S < j or i == 0");
  EXPECT_EQ(text(Formula::never()), "false");
  EXPECT_EQ(text(Formula::always()), "true");
}

}  // namespace
}  // namespace lemma::view
