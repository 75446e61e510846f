#include "lemma/view/form.h"

#include <gtest/gtest.h>

#include "lemma/view/random_form.h"

namespace lemma::view {
namespace {

using test::below;
using test::Meant;
using test::Point;
using test::Random;

const Form i = Form::index(0), j = Form::index(1), S = Form::size(0), T = Form::size(1);

std::string text(const Form& f) { return print(f, test::plain_names()); }

TEST(Form, OperationsMeanWhatTheySay) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const Meant m = test::random_form(random, 8);
    for (int k = 0; k < 20; ++k) {
      const Point p = test::random_point(random);
      ASSERT_EQ(m.form.evaluate(p), m.meaning(p)) << "seed " << seed << ": " << text(m.form);
    }
  }
}

TEST(Form, IsCanonical) {
  EXPECT_EQ((i + j) * (i - j), i * i - j * j);
  EXPECT_EQ(Form::floor_div(4 * i + 6, 4), i + 1 + Form::floor_div(0 * i + 2, 4));
  EXPECT_EQ(Form::floor_div(4 * i + j + 6, 4), i + 1 + Form::floor_div(j + 2, 4));
  EXPECT_EQ(Form::floor_div(2 * i, 4), Form::floor_div(i, 2));
  EXPECT_EQ(Form::floor_div(2 * i + 3, 4), Form::floor_div(i + 1, 2));
  EXPECT_EQ(Form::floor_div(6 * i + 4 * j + 3, 8), Form::floor_div(3 * i + 2 * j + 1, 4));
  EXPECT_EQ(Form::floor_div(Form::floor_div(i, 3), 4), Form::floor_div(i, 12));
  EXPECT_EQ(Form::floor_div(Form::floor_div(i, 3) + 1, 4), Form::floor_div(i + 3, 12));
  EXPECT_EQ(Form::floor_div(Form::floor_div(i, S), T), Form::floor_div(i, S * T));
  EXPECT_EQ(Form::floor_div(S * i + j, S), i + Form::floor_div(j, S));
  EXPECT_EQ(Form::floor_div(S * i, S * T), Form::floor_div(i, T));
  EXPECT_EQ(Form::floor_div(i, -3), Form::floor_div(-i, 3));
  EXPECT_EQ(Form::floor_div(i, -S), Form::floor_div(-i, S));
  EXPECT_EQ(Form::mod(8 * i + j, 4), Form::mod(j, 4));
  EXPECT_EQ(Form::mod(i, 1), Form(0));
  EXPECT_EQ(Form::floor_div(i, 0), Form(0));
  EXPECT_EQ(Form::mod(i, 0), Form(0));
  EXPECT_EQ(Form::ceil_div(i, 4), Form::floor_div(i + 3, 4));
  EXPECT_EQ(Form::ceil_div(7, -2), Form(-3));
  EXPECT_EQ(Form::ceil_div(-7, -2), Form(4));
  EXPECT_EQ(Form::floor_div(INT64_MIN, -1), Form(INT64_MIN));
}

TEST(Form, TheOrderIsTotal) {
  Random random(5);
  std::vector<Form> forms;
  for (int k = 0; k < 60; ++k) forms.push_back(test::random_form(random, 5).form);
  for (const Form& a : forms) {
    for (const Form& b : forms) {
      EXPECT_EQ((a <=> b) == 0, a == b);
      EXPECT_EQ((a <=> b) < 0, (b <=> a) > 0);
      for (const Form& c : forms) {
        EXPECT_TRUE(!((a <=> b) < 0 && (b <=> c) < 0) || (a <=> c) < 0);
      }
    }
  }
}

TEST(Form, SubstitutionIsComposition) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const Meant f = test::random_form(random, 6), by = test::random_form(random, 3);
    const Form out = f.form.substitute_index(1, by.form);
    const Form renamed = f.form.map_data([](int d) { return 1 - d; });
    for (int k = 0; k < 10; ++k) {
      Point p = test::random_point(random), inner = p, swapped = p;
      inner.index[1] = by.meaning(p);
      std::swap(swapped.data[0], swapped.data[1]);
      ASSERT_EQ(out.evaluate(p), f.meaning(inner)) << "seed " << seed << ": " << text(f.form) << " by " << text(by.form);
      ASSERT_EQ(renamed.evaluate(p), f.meaning(swapped)) << "seed " << seed;
    }
  }
}

TEST(Form, SplitAddsUp) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const Form f = test::random_form(random, 6).form;
    const auto split = f.split(0);
    if (!split) continue;
    ++found;
    EXPECT_FALSE(split->coefficient.uses(AtomKind::Index, 0));
    EXPECT_FALSE(split->rest.uses(AtomKind::Index, 0));
    EXPECT_EQ(split->coefficient * Form::index(0) + split->rest, f) << "seed " << seed;
  }
  EXPECT_GT(found, 300);
  EXPECT_FALSE((i * i).split(0));
  EXPECT_FALSE((Form::floor_div(i, 2) + j).split(0));
}

// Random intervals for every atom, and points inside them.
struct Box {
  Range index[3], size[2], data[2];
  explicit Box(Random& random) {
    for (Range* r : {&index[0], &index[1], &index[2], &data[0], &data[1], &size[0], &size[1]}) {
      const bool is_size = r == &size[0] || r == &size[1];
      const int64_t low = is_size ? below(random, 3) : below(random, 3) == 0 ? below(random, 20) - 10 : 0;
      r->low = low;
      r->high = low + below(random, 8);
      if (below(random, 6) == 0) r->high.reset();
      if (!is_size && below(random, 8) == 0) r->low.reset();
    }
  }
  Range operator()(const Atom& a) const {
    return a.kind == AtomKind::Index ? index[a.id] : a.kind == AtomKind::Size ? size[a.id] : data[a.id];
  }
  int64_t pick(const Range& r, Random& random) const {
    const int64_t low = r.low ? *r.low : r.high ? *r.high - 15 : -8, high = r.high ? *r.high : low + 15;
    return low + below(random, int(high - low + 1));
  }
  // Sizes are at least 1: other denominators than constants are taken to be nonzero.
  Point point(Random& random) const {
    Point p;
    for (int k = 0; k < 3; ++k) p.index[k] = pick(index[k], random);
    for (int k = 0; k < 2; ++k) {
      do p.size[k] = pick(size[k], random); while (p.size[k] == 0 && size[k].high != 0);
      p.data[k] = pick(data[k], random);
    }
    return p;
  }
};

TEST(Form, RangeIsSoundAndSimplifyKeepsValues) {
  int narrower = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Random random(seed);
    const Box box(random);
    const Form f = test::random_form(random, 7).form;
    const Range r = range(f, std::cref(box));
    const Form g = simplify(f, std::cref(box));
    narrower += !(g == f);
    for (int k = 0; k < 25; ++k) {
      const Point p = box.point(random);
      if (p.size[0] == 0 || p.size[1] == 0) continue;
      const int64_t v = f.evaluate(p);
      ASSERT_TRUE((!r.low || *r.low <= v) && (!r.high || v <= *r.high)) << "seed " << seed << ": " << text(f) << " is " << v;
      ASSERT_EQ(g.evaluate(p), v) << "seed " << seed << ": " << text(f) << " became " << text(g);
    }
  }
  EXPECT_GT(narrower, 50);
}

TEST(Form, SimplifyUndoesReshapes) {
  const auto box = [](const Atom& a) -> Range {
    if (a.kind == AtomKind::Size) return {1, 100};
    return a.id == 0 ? Range{0, 7} : a.id == 1 ? Range{0, 3} : Range{};
  };
  EXPECT_EQ(simplify(Form::floor_div(4 * i + j, 4), box), i);
  EXPECT_EQ(simplify(Form::mod(4 * i + j, 4), box), j);
  EXPECT_EQ(simplify(Form::floor_div(4 * i + j, 8), box), Form::floor_div(i, 2));
  EXPECT_EQ(simplify(Form::floor_div(i, 8), box), Form(0));
  EXPECT_EQ(simplify(Form::floor_div(i + 16, 8), box), Form(2));
  EXPECT_EQ(simplify(Form::floor_div(i - 8, 8), box), Form(-1));
  EXPECT_EQ(simplify(Form::floor_div(i, S + 8), box), Form(0));
}

TEST(Form, RangesAreTightOnSimpleForms) {
  const auto box = [](const Atom& a) -> Range {
    return a.kind == AtomKind::Size ? Range{0, std::nullopt} : a.id == 0 ? Range{0, 7} : Range{std::nullopt, 5};
  };
  EXPECT_EQ(range(3 * i - 2, box), (Range{-2, 19}));
  EXPECT_EQ(range(-2 * j, box), (Range{-10, std::nullopt}));
  EXPECT_EQ(range(i * S, box), (Range{0, std::nullopt}));
  EXPECT_EQ(range(Form::floor_div(i + 3, S), box), (Range{0, 10}));
  EXPECT_EQ(range(Form::floor_div(-i, 2), box), (Range{-4, 0}));
}

TEST(Form, Prints) {
  EXPECT_EQ(text(2 * i + j - 1), "2*i + j - 1");
  EXPECT_EQ(text(S - 1 - i), "-i + S - 1");
  EXPECT_EQ(text(Form()), "0");
  EXPECT_EQ(text(-3), "-3");
  EXPECT_EQ(text(Form::floor_div(i, S)), "i // S");
  EXPECT_EQ(text(Form::floor_div(i + j, 4) + 1), "((i + j) // 4) + 1");
  EXPECT_EQ(text(Form::mod(i, 4)), "i % 4");
  EXPECT_EQ(text(Form::mod(i + 1, 4)), "(i + 1) % 4");
  EXPECT_EQ(text(3 * Form::mod(i, S) + j), "3*(i % S) + j");
  EXPECT_EQ(text(Form::mod(i, S * T)), "i % (S*T)");
  EXPECT_EQ(text(j - Form::mod(i, 4)), "j - (i % 4)");
  EXPECT_EQ(text(S * Form::floor_div(i, 2)), "S*(i // 2)");
}

}  // namespace
}  // namespace lemma::view
