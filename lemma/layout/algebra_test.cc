// The laws of layouts, at every coordinate.
#include "lemma/layout/algebra.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lemma/layout/memory.h"
#include "lemma/layout/query.h"
#include "lemma/layout/random_layout.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

using test::below;
using test::Holds;
using test::Random;
using test::random_layout;
using test::random_shape;

std::map<Point, int> holders(const Layout& layout) {
  std::map<Point, int> out;
  for (int64_t i = 0; i < count(layout); ++i) ++out[at(layout, i)];
  return out;
}

TEST(Layout, EvaluatesDigits) {
  Layout layout;
  layout.shape = {6, 8};
  layout[Axis::Register] = {{2, {0, 1}}, {3, {2, 0}}, {2, {1, 3}}};
  layout[Axis::Lane] = {{2, {0, 4}}};
  ASSERT_TRUE(validate(layout).ok());
  EXPECT_EQ(count(layout, Axis::Register), 12);
  EXPECT_EQ(at(layout, Index{0, 0, 0, 0}), (Point{0, 0}));
  EXPECT_EQ(at(layout, Index{1 + 2 * 2 + 6 * 1, 1, 0, 0}), (Point{5, 6}));  // 1^3 = 2, + 4; 1 + 2*2
  EXPECT_EQ(at(layout, 11 + 12), (Point{5, 6}));
}

TEST(Layout, ValidateRefuses) {
  const auto refuse = [](Digit digit, const char* part) {
    Layout layout;
    layout.shape = {12, 8};
    layout[Axis::Register] = {{3, {4, 0}}};
    ASSERT_TRUE(validate(layout).ok());
    layout[Axis::Lane].push_back(std::move(digit));
    const base::Result<void> result = validate(layout);
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  refuse({2, {4, 0}}, "leaves the piece of 4");
  refuse({2, {-1, 0}}, "leaves the piece of 4");
  refuse({2, {1}}, "has 1 coordinates, expected 2");
  refuse({4, {1, 0}}, "a digit of radix 4");
  refuse({1, {1, 0}}, "a digit of radix 1");
  refuse({3, {4, 8}}, "two dimensions");
  refuse({3, {4, 0}}, "overlap");
  refuse({3, {12, 0}}, "does not divide its extent 12");
  refuse({3, {2, 0}}, "is no multiple of the piece");
  Layout none;
  EXPECT_FALSE(validate(none).ok());
  none.shape = {4, 0};
  EXPECT_FALSE(validate(none).ok());
  none.shape = {1 << 20, 1 << 20};
  EXPECT_FALSE(validate(none).ok());
}

TEST(Layout, HashFollowsEquality) {
  Random random(3);
  std::set<size_t> hashes;
  for (int k = 0; k < 200; ++k) {
    Layout a = random_layout(random, {8, 24}, Holds::Once, test::threads);
    const Layout b = a;
    EXPECT_EQ(hash(a), hash(b));
    hashes.insert(hash(a));
    if (a[Axis::Lane].empty()) continue;
    a[Axis::Warp].push_back(a[Axis::Lane].back());
    a[Axis::Lane].pop_back();
    EXPECT_NE(a, b);
    EXPECT_NE(hash(a), hash(b));
  }
  EXPECT_GT(hashes.size(), 195u);
}

TEST(Memory, DenseIsStrides) {
  Random random(11);
  for (int k = 0; k < 100; ++k) {
    const Point shape = random_shape(random);
    std::vector<int> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = int(d);
    std::shuffle(order.begin(), order.end(), random);
    const Layout memory = *dense(shape, order), rows = *row_major(shape);
    for (int64_t i = 0; i < size(shape); ++i) {
      const Point p = point_of(shape, i);
      int64_t offset = 0, stride = 1;
      for (int d : order) offset += p[size_t(d)] * stride, stride *= shape[size_t(d)];
      ASSERT_EQ(at(memory, Index{0, 0, 0, offset}), p);
      ASSERT_EQ(at(rows, i), p);
    }
  }
  EXPECT_FALSE(dense({4, 4}, {0}).ok());
  EXPECT_FALSE(dense({4, 4}, {0, 0}).ok());
}

TEST(Memory, SlabsAndPieces) {
  for (const auto& [shape, columns] :
       std::vector<std::pair<Point, int32_t>>{{{24, 192}, 64}, {{5, 3, 40}, 8}, {{8, 16}, 16}}) {
    const Layout memory = *slabs(shape, columns);
    const int32_t row = shape.back();
    const int64_t rows = size(shape) / row;
    for (int64_t i = 0; i < size(shape); ++i) {
      const int64_t r = i / row, c = i % row;
      const int64_t offset = c / columns * rows * columns + r * columns + c % columns;
      ASSERT_EQ(at(memory, offset), point_of(shape, i)) << print(memory);
    }
  }
  EXPECT_FALSE(slabs({8, 48}, 32).ok());
  EXPECT_FALSE(slabs({8, 48}, 3).ok());
  const Layout pieces = *piecewise({12, 40}, {1, 0});
  for (int64_t i = 0; i < 12 * 40; ++i) {
    const int64_t r = i / 40, c = i % 40;
    ASSERT_EQ(at(pieces, (r / 4 * 5 + c / 8) * 32 + r % 4 * 8 + c % 8), point_of(pieces.shape, i));
  }
}

TEST(Query, InjectiveSurjectiveAndRedundantAgreeWithCounting) {
  int injective = 0, surjective = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    const Layout layout = random_layout(random, random_shape(random), Holds(below(random, 3)), test::threads);
    ASSERT_TRUE(validate(layout).ok()) << print(layout);
    const std::map<Point, int> held = holders(layout);
    const bool once = int64_t(held.size()) == count(layout), all = int64_t(held.size()) == size(layout.shape);
    injective += once, surjective += all;
    ASSERT_EQ(is_injective(layout), once) << print(layout);
    ASSERT_EQ(is_surjective(layout), all) << print(layout);
    // Every element that is held is held as often as the redundant digits have values.
    int64_t copies = 1;
    const auto redundant = redundant_digits(layout);
    for (Axis axis : axes) {
      for (int i : redundant[size_t(axis)]) copies *= layout[axis][size_t(i)].radix;
    }
    for (const auto& [point, n] : held) ASSERT_EQ(n, copies) << print(layout);
  }
  EXPECT_GT(injective, 150);
  EXPECT_GT(surjective, 150);
  EXPECT_LT(injective, 550);
  EXPECT_LT(surjective, 590);
}

TEST(Algebra, TransposeAndSlice) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Layout layout = random_layout(random, random_shape(random), Holds::Copies, test::threads);
    std::vector<int> order;
    for (size_t d = 0; d < layout.shape.size(); ++d) order.push_back(int(d));
    std::shuffle(order.begin(), order.end(), random);
    const Layout turned = *transpose(layout, order);
    const int d = below(random, int(layout.shape.size()));
    const base::Result<Layout> reduced = slice(layout, d);
    EXPECT_EQ(reduced.ok(), layout.shape.size() > 1);
    ASSERT_TRUE(validate(turned).ok());
    for (int64_t i = 0; i < count(layout); ++i) {
      Point p = at(layout, i);
      const Point q = at(turned, i);
      for (size_t k = 0; k < order.size(); ++k) ASSERT_EQ(q[k], p[size_t(order[k])]);
      if (!reduced.ok()) continue;
      p.erase(p.begin() + d);
      ASSERT_EQ(at(*reduced, i), p);
    }
    if (!reduced.ok()) continue;
    ASSERT_TRUE(validate(*reduced).ok());
    const Layout lean = drop_register_broadcasts(*reduced);
    EXPECT_EQ(is_surjective(lean), is_surjective(*reduced));
    for (const Digit& digit : lean[Axis::Register]) EXPECT_FALSE(is_zero(digit.step));
  }
}

TEST(Algebra, ProductAndDivide) {
  int made = 0, refused = 0, undivided = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    Point a, b;
    for (int rank = 1 + below(random, 2); rank > 0; --rank) {
      a.push_back(std::vector<int32_t>{1, 2, 4, 6, 3}[size_t(below(random, 5))]);
      b.push_back(std::vector<int32_t>{1, 2, 8, 12, 5}[size_t(below(random, 5))]);
    }
    const Layout inner = random_layout(random, a, Holds(below(random, 3)), test::threads);
    const Layout outer = random_layout(random, b, Holds(below(random, 3)), test::threads);
    const base::Result<Layout> both = product(inner, outer);
    bool fits = true;
    for (size_t d = 0; d < a.size(); ++d) fits = fits && (is_power_of_two(a[d]) || b[d] % 2 == 1);
    ASSERT_EQ(both.ok(), fits);
    if (!both.ok()) {
      ++refused;
      continue;
    }
    ++made;
    for (int64_t o = 0; o < count(outer); ++o) {
      for (int64_t i = 0; i < count(inner); ++i) {
        const Index x = unflatten(inner, i), y = unflatten(outer, o);
        Index index{};
        for (Axis axis : axes) index[size_t(axis)] = x[size_t(axis)] + count(inner, axis) * y[size_t(axis)];
        Point expected = at(inner, x);
        const Point far = at(outer, y);
        for (size_t d = 0; d < a.size(); ++d) expected[d] += a[d] * far[d];
        ASSERT_EQ(at(*both, index), expected) << print(inner) << " x " << print(outer);
      }
    }
    const std::optional<Layout> again = divide(*both, inner);
    ASSERT_TRUE(again) << print(inner) << " x " << print(outer);
    EXPECT_EQ(*again, outer);
    const std::optional<Layout> other = divide(*both, outer);
    undivided += !other;
    if (other) {
      EXPECT_EQ(*product(outer, *other), *both);
    }
  }
  // A multiple of an odd side that is even is no product, even where no step tells.
  EXPECT_FALSE(divide(*parse("layout [12] lane 0"), *parse("layout [3] lane 0")));
  EXPECT_FALSE(divide(*parse("layout [12] lane 0 0"), *parse("layout [3] lane 0")));
  EXPECT_GT(made, 200);
  EXPECT_GT(refused, 30);
  EXPECT_GT(undivided, 100);
}

TEST(Algebra, ComposeIsComposition) {
  int made = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const Layout outer =
        random_layout(random, random_shape(random), Holds(below(random, 3)), {Axis::Register, Axis::Lane});
    const Layout inner = random_layout(random, index_shape(outer), Holds::Copies, test::threads);
    const base::Result<Layout> both = compose(outer, inner);
    if (!both.ok()) {  // odd factors that are split in two ways
      EXPECT_NE(both.error().message.find("overlap in part"), std::string::npos) << both.error().message;
      ++refused;
      continue;
    }
    ++made;
    for (int64_t i = 0; i < count(inner); ++i) {
      ASSERT_EQ(at(*both, i), at(outer, flatten(inner.shape, at(inner, i)))) << print(outer) << " o " << print(inner);
    }
  }
  EXPECT_GT(made, 350);
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(compose(*row_major({4, 6}), *row_major({3, 8})).ok());
}

TEST(Algebra, InverseIsInverse) {
  int copies = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const bool memory = below(random, 4) == 0;
    const Layout layout = random_layout(random, random_shape(random), memory ? Holds::Once : Holds::Copies,
                                        memory ? std::vector<Axis>{Axis::Offset} : test::threads);
    const base::Result<Layout> back = inverse(layout);
    if (!back.ok()) {
      EXPECT_EQ(back.error().failure, base::Failure::Unsupported) << print(layout);
      continue;
    }
    copies += !is_injective(layout);
    ASSERT_EQ(size(back->shape), count(layout));
    const auto redundant = redundant_digits(layout);
    for (int64_t i = 0; i < size(layout.shape); ++i) {
      const int64_t flat = flatten(back->shape, at(*back, i));
      ASSERT_EQ(at(layout, flat), point_of(layout.shape, i)) << print(layout);
      // The stated choice: redundant digits are 0.
      Index index = unflatten(layout, flat);
      for (Axis axis : axes) {
        for (size_t k = 0; k < layout[axis].size(); ++k) {
          const int32_t radix = layout[axis][k].radix;
          const auto& free = redundant[size_t(axis)];
          const bool spare = std::count(free.begin(), free.end(), int(k)) > 0;
          ASSERT_TRUE(!spare || index[size_t(axis)] % radix == 0) << print(layout);
          index[size_t(axis)] /= radix;
        }
      }
    }
    const base::Result<Layout> identity = compose(layout, *back);
    ASSERT_TRUE(identity.ok());
    for (int64_t i = 0; i < size(layout.shape); ++i) ASSERT_EQ(at(*identity, i), point_of(layout.shape, i));
  }
  EXPECT_GT(copies, 100);
  Layout partial;
  partial.shape = {4};
  partial[Axis::Lane] = {{2, {1}}};
  EXPECT_FALSE(inverse(partial).ok());
}

// The widest aligned blocks of which every lane owns all or nothing, up to `most`, found by looking.
int widest(const Layout& distribution, const Layout& memory, int most) {
  std::map<Point, int64_t> offset;
  for (int64_t o = 0; o < count(memory); ++o) offset[at(memory, o)] = o;
  const int64_t registers = count(distribution, Axis::Register);
  int width = 1;
  for (int64_t begin = 0; begin < count(distribution); begin += registers) {
    std::set<int64_t> owned;
    for (int64_t i = begin; i < begin + registers; ++i) owned.insert(offset[at(distribution, i)]);
    int here = 1;
    const auto whole = [&](int64_t block) {
      for (int64_t e = block; e < block + 2 * here; ++e) {
        if (owned.count(e) == 0) return false;
      }
      return true;
    };
    while (here < most &&
           std::all_of(owned.begin(), owned.end(), [&](int64_t o) { return whole(o / (2 * here) * 2 * here); }))
      here *= 2;
    width = begin == 0 ? here : std::min(width, here);
  }
  return width;
}

TEST(Query, VectorAccessIsTheWidest) {
  int wide = 0, compared = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const Point shape = random_shape(random);
    const Layout memory = random_layout(random, shape, Holds::Once, {Axis::Offset});
    Layout distribution = random_layout(random, shape, Holds::Copies, test::threads);
    if (below(random, 2) == 0) {  // share low bits, in other registers
      const auto& digits = memory[Axis::Offset];
      for (size_t i = 0; i < digits.size() && i < 3 && digits[i].radix == 2; ++i)
        distribution[Axis::Register].push_back(digits[i]);
    }
    if (count(distribution) > 4000) continue;
    const base::Result<VectorAccess> found = vector_access(distribution, memory, 1 << 20);
    if (!found.ok()) continue;  // odd factors split in two ways
    ++compared;
    wide += found->width > 2;
    int most = 1;  // what the bits below the first odd digit of the offset can tell
    for (const Digit& digit : memory[Axis::Offset]) {
      if (digit.radix != 2) break;
      most *= 2;
    }
    ASSERT_EQ(found->width, widest(distribution, memory, most)) << print(distribution) << " in " << print(memory);
    const Layout offsets = *relate(memory, distribution);
    const std::vector<uint64_t> columns_of_registers = columns(offsets, Axis::Register);
    for (size_t b = 0; b < found->registers.size(); ++b) {
      EXPECT_EQ(combine(columns_of_registers, found->registers[b]), uint64_t(1) << b);
    }
    EXPECT_LE(vector_access(distribution, memory, 2)->width, 2);
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(wide, 30);
}

}  // namespace
}  // namespace lemma::layout
