// Wavefronts against a count written the other way round, and swizzles against all there are.
#include "lemma/layout/banks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lemma/layout/algebra.h"
#include "lemma/layout/distribute.h"
#include "lemma/layout/fragment.h"
#include "lemma/layout/memory.h"
#include "lemma/layout/query.h"
#include "lemma/layout/random_layout.h"
#include "lemma/layout/swizzle.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

using test::below;
using test::Holds;
using test::Random;

// A warp's accesses from the elements up: where each lies by looking, which aligned blocks each lane owns, and for
// every phase the words that each bank must deliver. Accesses of one instruction are paired by the register that begins
// them.
Wavefronts brute_force(const Layout& memory, const Access& access, int element_bits) {
  std::map<Point, int64_t> offset;
  for (int64_t o = 0; o < count(memory); ++o) offset[at(memory, o)] = o;
  const Layout& d = access.distribution;
  const int width = access.width, lane_bits = std::max(32, width * element_bits), together = 1024 / lane_bits;
  Wavefronts out;
  for (int64_t w = 0; w < count(d, Axis::Warp); ++w) {
    std::set<int64_t> done;  // registers whose block lane 0 has accessed
    std::set<int64_t> blocks_of_first;
    for (int64_t r = 0; r < count(d, Axis::Register); ++r) {
      // A register of lane 0 that lies in a block already accessed is part of that access, unless it is a copy of its
      // own.
      const int64_t first = offset.at(at(d, Index{r, 0, w, 0})) / width;
      if (width > 1 && !blocks_of_first.insert(first).second) continue;
      int64_t taken = 0, phases = 0;
      for (int64_t begin = 0; begin < count(d, Axis::Lane); begin += together, ++phases) {
        std::map<int64_t, std::set<int64_t>> words;
        for (int64_t l = begin; l < std::min(begin + together, count(d, Axis::Lane)); ++l) {
          const int64_t block = offset.at(at(d, Index{r, l, w, 0})) / width;
          for (int64_t bit = block * width * element_bits; bit < (block + 1) * width * element_bits;
               bit += element_bits) {
            words[bit / 32 % 32].insert(bit / 32);
            words[(bit + element_bits - 1) / 32 % 32].insert((bit + element_bits - 1) / 32);
            if (element_bits == 128)
              words[(bit / 32 + 1) % 32].insert(bit / 32 + 1), words[(bit / 32 + 2) % 32].insert(bit / 32 + 2);
          }
        }
        size_t most = 0;
        for (const auto& [bank, distinct] : words) most = std::max(most, distinct.size());
        taken += int64_t(most);
      }
      ++out.accesses, out.taken += taken, out.least += phases, out.worst = std::max(out.worst, taken);
    }
  }
  return out;
}

TEST(Banks, CountsAgreeWithBruteForce) {
  int conflicting = 0, wide = 0, compared = 0, swizzled_less = 0, unsupported = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Random random(seed);
    Point shape =
        std::vector<Point>{{32, 64}, {64, 32}, {16, 16, 8}, {24, 40}, {8, 96}, {2048}}[size_t(below(random, 6))];
    const Layout memory =
        below(random, 2) == 0 ? *row_major(shape) : test::random_layout(random, shape, Holds::Once, {Axis::Offset});
    Layout distribution = test::random_layout(random, shape, Holds::Once, {Axis::Register, Axis::Warp});
    // The first bits of some order become lanes.
    std::vector<Digit>& registers = distribution[Axis::Register];
    std::stable_sort(registers.begin(), registers.end(),
                     [](const Digit& a, const Digit& b) { return a.radix < b.radix; });
    while (distribution[Axis::Lane].size() < 5 && !registers.empty() && registers[0].radix == 2) {
      distribution[Axis::Lane].push_back(registers[0]);
      registers.erase(registers.begin());
    }
    if (below(random, 3) == 0 && !distribution[Axis::Lane].empty()) {  // lanes that hold copies, or a skewed step
      distribution[Axis::Lane].back().step = distribution[Axis::Lane].front().step;
    }
    const int bits = std::vector<int>{8, 16, 32, 64, 128}[size_t(below(random, 5))];
    if (below(random, 2) == 0) {  // vectors: the lowest offsets in registers
      for (size_t i = 0; i < 3 && memory[Axis::Offset][i].radix == 2; ++i) registers.push_back(memory[Axis::Offset][i]);
      if (!validate(distribution).ok()) continue;
    }
    const base::Result<VectorAccess> vector = vector_access(distribution, memory, 128 / bits);
    if (!vector.ok()) continue;
    const Access access{distribution, vector->width};
    if (vector->width > 1 && !redundant_digits(distribution)[0].empty()) continue;  // which copies go together is free
    const Wavefronts expected = brute_force(memory, access, bits);
    ASSERT_EQ(*count_wavefronts(memory, access, bits), expected) << print(distribution) << " in " << print(memory);
    // Whatever the memory layout was, its swizzle is no worse, and its count holds.
    const base::Result<DerivedSwizzle> derived = derive_swizzle(memory, {access}, bits);
    if (derived.ok()) {
      ASSERT_EQ(brute_force(derived->memory, access, bits), derived->wavefronts[0]) << print(derived->memory);
      ASSERT_LE(derived->taken, expected.taken);
      swizzled_less += derived->taken < expected.taken;
    } else {
      ASSERT_EQ(derived.error().failure, base::Failure::Unsupported);
      ++unsupported;
    }
    ++compared;
    conflicting += expected.taken > expected.least;
    wide += vector->width > 1;
  }
  EXPECT_GT(compared, 60);
  EXPECT_GT(swizzled_less, 20);
  EXPECT_GT(unsupported, 5);
  EXPECT_LT(unsupported, compared / 2);
  EXPECT_GT(conflicting, 30);
  EXPECT_GT(wide, 5);
}

// A tile of 64 columns of bf16: rows written 16 bytes a lane, read by ldmatrix.
struct Standard {
  Layout write = *blocked({64, 64}, {{1, 8}, {4, 8}, {4, 1}, {1, 0}});
  Layout read = *matrix_rows(*repeat(*mma(Operand::A, 16), {64, 64}, {4, 1}, {1, 0}), 16, Rows::Plain);
};

TEST(Banks, KnownCounts) {
  const Standard s;
  const Layout rows = *row_major({64, 64});
  // Each of the 4 phases of an ldmatrix x4 reads 8 rows at the same 16 bytes: 8 wavefronts.
  EXPECT_EQ(*count_wavefronts(rows, {s.read, 8}, 16), (Wavefronts{16, 16 * 32, 16 * 4, 32}));
  EXPECT_EQ(*count_wavefronts(rows, {s.write, 8}, 16), (Wavefronts{16, 16 * 4, 16 * 4, 4}));
  // A column of 32 floats: 32 words of one bank.
  const Layout column = *blocked({32, 32}, {{1, 1}, {32, 1}, {1, 1}, {0, 1}});
  EXPECT_EQ(count_wavefronts(*row_major({32, 32}), {column, 1}, 32)->worst, 32);
  // All lanes the same word: one wavefront.
  Layout same = *parse("layout [32] register (1..16) lane 0 0 0 0 0");
  EXPECT_EQ(count_wavefronts(*row_major({32}), {same, 1}, 32)->worst, 1);
  EXPECT_FALSE(count_wavefronts(rows, {s.read, 16}, 16).ok());
  EXPECT_FALSE(count_wavefronts(rows, {s.read, 3}, 16).ok());
  EXPECT_FALSE(count_wavefronts(rows, {column, 1}, 16).ok());
  EXPECT_FALSE(count_wavefronts(rows, {s.read, 8}, 24).ok());
  EXPECT_FALSE(count_wavefronts(*dense({32, 32}, {0, 1}), {column, 2}, 32).ok());  // a lane holds a row
}

TEST(Swizzle, FindsTheStandardOne) {
  const Standard s;
  const DerivedSwizzle found = *derive_swizzle(*row_major({64, 64}), {{s.write, 8}, {s.read, 8}}, 16);
  EXPECT_EQ(found.taken, found.least);
  EXPECT_TRUE(found.proven);
  EXPECT_EQ(print(found.memory), "layout [64, 64] offset (0,1..32) (1,8) (2,16) (4,32) (8..32,0)");
  EXPECT_EQ(found.memory, *span_swizzled({64, 64}, 16, 128));
  EXPECT_EQ(recognise_span(found.memory, 16), 128);
  // Rows of 64 and 32 bytes have theirs, and so have bytes and floats of the same rows.
  for (const auto& [columns, bits, span] :
       std::vector<std::tuple<int, int, int>>{{32, 16, 64}, {16, 16, 32}, {128, 8, 128}, {32, 32, 128}}) {
    const int vector = 128 / bits;
    const Layout write =
        *blocked({64, columns}, {{1, vector}, {32 * vector / columns, columns / vector}, {4, 1}, {1, 0}});
    const Layout read = *matrix_rows(*repeat(*mma(Operand::A, bits), {64, columns}, {4, 1}, {1, 0}), bits, Rows::Plain);
    const DerivedSwizzle other = *derive_swizzle(*row_major({64, columns}), {{write, vector}, {read, vector}}, bits);
    EXPECT_EQ(other.taken, other.least) << columns;
    EXPECT_EQ(recognise_span(other.memory, bits), span) << print(other.memory);
  }
}

TEST(Swizzle, TransposesFloats) {
  const Layout rows = *blocked({32, 32}, {{1, 1}, {1, 32}, {1, 1}, {1, 0}});
  const Layout columns = *blocked({32, 32}, {{1, 1}, {32, 1}, {1, 1}, {0, 1}});
  const DerivedSwizzle found = *derive_swizzle(*row_major({32, 32}), {{rows, 1}, {columns, 1}}, 32);
  EXPECT_EQ(found.taken, found.least);
  // In chunks of 16 bytes a column cannot do without conflicts: 8 chunks for 32 rows.
  const DerivedSwizzle chunks = *derive_swizzle(*row_major({32, 32}), {{rows, 1}, {columns, 1}}, 32, {16, 1 << 20});
  EXPECT_TRUE(chunks.proven);
  EXPECT_EQ(chunks.taken, 32 + 32 * 4);
  EXPECT_FALSE(derive_swizzle(*row_major({32, 32}), {{rows, 1}}, 32, {2, 1 << 20}).ok());
  EXPECT_FALSE(derive_swizzle(*row_major({32, 32}), {{rows, 1}}, 32, {48, 1 << 20}).ok());
  EXPECT_FALSE(derive_swizzle(*row_major({32, 40}), {}, 32).ok());
  // An exhausted search says so.
  EXPECT_FALSE(derive_swizzle(*row_major({32, 32}), {{rows, 1}, {columns, 1}}, 32, {16, 2})->proven);
}

// Wide rows that are no power of two, in slabs; the read is of twelve warps, an odd number of pieces.
TEST(Swizzle, SlabsOfAnOddTile) {
  const Layout write = *blocked({48, 192}, {{1, 8}, {4, 8}, {4, 1}, {1, 0}});
  const Layout read = *matrix_rows(*repeat(*mma(Operand::A, 16), {48, 192}, {3, 4}, {1, 0}), 16, Rows::Plain);
  const DerivedSwizzle found = *derive_swizzle(*slabs({48, 192}, 64), {{write, 8}, {read, 8}}, 16);
  EXPECT_EQ(found.taken, found.least);
  EXPECT_EQ(recognise_span(found.memory, 16), 128);
}

TEST(Swizzle, SpansAreAddressBits) {
  for (const auto& [span, flips] : std::vector<std::pair<int, int>>{{32, 1}, {64, 2}, {128, 3}}) {
    for (const auto& [rows, columns, bits] :
         std::vector<std::tuple<int, int, int>>{{16, 128, 16}, {8, 256, 8}, {24, 96, 32}, {64, 64, 16}}) {
      const base::Result<Layout> memory = span_swizzled({rows, columns}, bits, span);
      ASSERT_EQ(memory.ok(), columns % (span * 8 / bits) == 0);
      if (!memory.ok()) continue;
      const int width = span * 8 / bits;
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) {
          int64_t address = (int64_t(c / width) * rows * width + r * width + c % width) * bits / 8;
          address ^= (address >> 7 & ((1 << flips) - 1)) << 4;
          ASSERT_EQ(at(*memory, address * 8 / bits), (Point{r, c}));
        }
      }
      EXPECT_EQ(recognise_span(*memory, bits), span);
    }
  }
  EXPECT_EQ(recognise_span(*row_major({64, 64}), 16), 0);
  EXPECT_EQ(recognise_span(*slabs({24, 96}, 8), 16), 0);
  EXPECT_EQ(recognise_span(*row_major({64, 4}), 16), std::nullopt);
  EXPECT_EQ(recognise_span(*dense({64, 64}, {0, 1}), 16), std::nullopt);
  EXPECT_FALSE(span_swizzled({8, 64}, 16, 256).ok());
  EXPECT_FALSE(span_swizzled({3, 192}, 16, 128).ok());  // the rows' digit of radix 3 is address bit 7
}

// The fewest wavefronts over all linear swizzles: every value of every bit above the line.
int64_t best_of_all(const Layout& memory, const std::vector<Access>& accesses, int bits, int chunk, int line) {
  const int above = int(memory[Axis::Offset].size()) - line, flips = line - chunk;
  int64_t best = INT64_MAX;
  for (uint64_t code = 0; code < uint64_t(1) << (above * flips); ++code) {
    Swizzle swizzle(memory[Axis::Offset].size(), 0);
    for (int j = 0; j < above; ++j) swizzle[size_t(line + j)] = (code >> (j * flips) & ((1u << flips) - 1)) << chunk;
    int64_t taken = 0;
    const Layout candidate = swizzled(memory, swizzle);
    for (const Access& access : accesses) taken += count_wavefronts(candidate, access, bits)->taken;
    best = std::min(best, taken);
  }
  return best;
}

TEST(Swizzle, NoneIsBetter) {
  int imperfect = 0, helped = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    // 16-byte elements: three bits of a line, three above.
    const Layout memory = *row_major(std::vector<Point>{{8, 8}, {16, 4}, {4, 16}}[size_t(below(random, 3))]);
    std::vector<Access> accesses;
    for (int n = 1 + below(random, 8); n > 0; --n)
      accesses.push_back({test::random_distribution(random, memory.shape, 5, 0), 1});
    const DerivedSwizzle found = *derive_swizzle(memory, accesses, 128);
    int64_t plain = 0;
    for (const Access& access : accesses) plain += count_wavefronts(memory, access, 128)->taken;
    ASSERT_TRUE(found.proven);
    ASSERT_EQ(found.taken, best_of_all(memory, accesses, 128, 0, 3)) << "seed " << seed;
    imperfect += found.taken > found.least;
    helped += found.taken < plain;
  }
  EXPECT_GT(helped, 8);
  EXPECT_GT(imperfect, 2);
}

TEST(Swizzle, NoneIsBetterForWordsInChunks) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    const Layout memory = *row_major({16, 32});  // floats: five bits of a line, four above; chunks of 32 bytes
    const std::vector<Access> accesses = {{test::random_distribution(random, memory.shape, 5, 0), 1},
                                          {test::random_distribution(random, memory.shape, 5, 1), 1}};
    const DerivedSwizzle found = *derive_swizzle(memory, accesses, 32, {32, 1 << 20});
    ASSERT_TRUE(found.proven);
    ASSERT_EQ(found.taken, best_of_all(memory, accesses, 32, 3, 5)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lemma::layout
