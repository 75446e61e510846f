// Fragments against the documented tables, written out as they stand there.
#include "lemma/layout/fragment.h"

#include <gtest/gtest.h>

#include <functional>

#include "lemma/layout/algebra.h"
#include "lemma/layout/distribute.h"
#include "lemma/layout/query.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

using Place = std::function<Point(int r, int lane, int warp)>;

void expect_table(const Layout& layout, const Point& shape, const Index& counts, const Place& place) {
  ASSERT_TRUE(validate(layout).ok());
  ASSERT_EQ(layout.shape, shape);
  for (Axis axis : {Axis::Register, Axis::Lane, Axis::Warp}) ASSERT_EQ(count(layout, axis), counts[size_t(axis)]);
  for (int w = 0; w < counts[2]; ++w) {
    for (int l = 0; l < counts[1]; ++l) {
      for (int r = 0; r < counts[0]; ++r) {
        ASSERT_EQ(at(layout, Index{r, l, w, 0}), place(r, l, w))
            << print(layout) << " at " << r << " " << l << " " << w;
      }
    }
  }
  EXPECT_TRUE(is_injective(layout) && is_surjective(layout));
}

// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type": for .f16 and .bf16,
//   A: row = groupID for a0 a1 a4 a5, groupID + 8 else; col = threadID * 2 + (i & 1), + 8 for i >= 4
//   B: row = threadID * 2 + (i & 1), + 8 for i >= 2; col = groupID
//   C: row = groupID for c0 c1, groupID + 8 else; col = threadID * 2 + (i & 1)
TEST(Fragment, MmaOf16Bits) {
  expect_table(*mma(Operand::A, 16), {16, 16}, {8, 32, 1, 1}, [](int i, int lane, int) {
    const bool upper = i < 2 || (i >= 4 && i < 6);
    return Point{lane / 4 + (upper ? 0 : 8), lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  });
  expect_table(*mma(Operand::B, 16), {16, 8}, {4, 32, 1, 1}, [](int i, int lane, int) {
    return Point{lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
  });
  expect_table(*mma(Operand::Accumulator, 16), {16, 8}, {4, 32, 1, 1}, [](int i, int lane, int) {
    return Point{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
  });
}

// "mma.m16n8k8" for .tf32: A: row = groupID for a0 a2, + 8 for a1 a3; col = threadID for a0 a1, + 4 for a2 a3.
// B: row = threadID for b0, + 4 for b1; col = groupID.
TEST(Fragment, MmaOf32Bits) {
  expect_table(*mma(Operand::A, 32), {16, 8}, {4, 32, 1, 1}, [](int i, int lane, int) {
    return Point{lane / 4 + (i == 0 || i == 2 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)};
  });
  expect_table(*mma(Operand::B, 32), {8, 8}, {2, 32, 1, 1}, [](int i, int lane, int) {
    return Point{lane % 4 + (i == 0 ? 0 : 4), lane / 4};
  });
}

// "mma.m16n8k32" for .s8: A: row = groupID for 0 <= i < 4 and 8 <= i < 12, + 8 else; col = threadID * 4 + (i & 3), + 16
// for i >= 8. B: row = threadID * 4 + (i & 3), + 16 for i >= 4; col = groupID.
TEST(Fragment, MmaOf8Bits) {
  expect_table(*mma(Operand::A, 8), {16, 32}, {16, 32, 1, 1}, [](int i, int lane, int) {
    const bool upper = i < 4 || (i >= 8 && i < 12);
    return Point{lane / 4 + (upper ? 0 : 8), lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  });
  expect_table(*mma(Operand::B, 8), {32, 8}, {8, 32, 1, 1}, [](int i, int lane, int) {
    return Point{lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane / 4};
  });
  EXPECT_FALSE(mma(Operand::A, 64).ok());
}

// wgmma D: register r of n/2: row = 16*warp + g + 8*((r>>1)&1), col = 8*(r>>2) + 2*q + (r&1).
TEST(Fragment, WarpgroupAccumulator) {
  for (int n = 8; n <= 256; n += 8) {
    expect_table(*wgmma_accumulator(n), {64, n}, {n / 2, 32, 4, 1}, [](int r, int lane, int warp) {
      return Point{16 * warp + lane / 4 + 8 * ((r >> 1) & 1), 8 * (r >> 2) + 2 * (lane % 4) + (r & 1)};
    });
  }
  EXPECT_FALSE(wgmma_accumulator(12).ok());
  EXPECT_FALSE(wgmma_accumulator(264).ok());
  EXPECT_FALSE(wgmma_accumulator(0).ok());
}

// wgmma A in registers: a_i holds row 16*warp + g + 8*(i&1), the 4 bytes of k = (i>>1)*(K/2) + q*(4/bytes).
TEST(Fragment, WarpgroupA) {
  for (int bits : {8, 16, 32}) {
    const int depth = 256 / bits, packed = 32 / bits;
    expect_table(*wgmma_a(bits), {64, depth}, {4 * packed, 32, 4, 1}, [=](int r, int lane, int warp) {
      const int i = r / packed;
      return Point{16 * warp + lane / 4 + 8 * (i & 1), (i >> 1) * (depth / 2) + lane % 4 * packed + r % packed};
    });
  }
}

// Accumulator registers 8j .. 8j+7 are the A operand of the next product, without a shuffle.
TEST(Fragment, AccumulatorIsTheNextOperand) {
  const Layout accumulator = *repeat(*mma(Operand::Accumulator, 16), {16, 16}, {1, 1}, {1, 0});
  EXPECT_EQ(accumulator, *mma(Operand::A, 16));
}

TEST(Fragment, SimdgroupMatrix) {
  expect_table(simdgroup_matrix(), {8, 8}, {2, 32, 1, 1}, [](int i, int lane, int) {
    const int quad = lane / 4;
    return Point{(quad & 4) + lane / 2 % 4, (quad & 2) * 2 + lane % 2 * 2 + i};
  });
}

TEST(Distribute, RepeatsFragments) {
  // 96 rows are 2 warps by 3 registers, 40 columns 5 registers.
  expect_table(
      *repeat(*mma(Operand::Accumulator, 16), {96, 40}, {2, 1}, {1, 0}), {96, 40}, {60, 32, 2, 1},
      [](int r, int lane, int warp) {
        const int f = r / 4;
        return Point{lane / 4 + 8 * (r >> 1 & 1) + 16 * warp + 32 * (f / 5), lane % 4 * 2 + (r & 1) + 8 * (f % 5)};
      });
  // Three warpgroups of 64 rows: twelve warps.
  expect_table(*repeat(*mma(Operand::Accumulator, 16), {192, 16}, {12, 1}, {1, 0}), {192, 16}, {8, 32, 12, 1},
               [](int r, int lane, int warp) {
                 return Point{lane / 4 + 8 * (r >> 1 & 1) + 16 * warp, lane % 4 * 2 + (r & 1) + 8 * (r / 4)};
               });
  const Layout copies = *repeat(*mma(Operand::Accumulator, 16), {16, 8}, {1, 2}, {1, 0});
  EXPECT_EQ(count(copies, Axis::Warp), 2);
  EXPECT_EQ(redundant_digits(copies)[size_t(Axis::Warp)], std::vector<int>{0});
  EXPECT_FALSE(repeat(*mma(Operand::Accumulator, 16), {24, 8}, {1, 1}, {1, 0}).ok());
  EXPECT_FALSE(repeat(*mma(Operand::Accumulator, 16), {64, 8}, {3, 1}, {1, 0}).ok() &&
               is_injective(*repeat(*mma(Operand::Accumulator, 16), {64, 8}, {3, 1}, {1, 0})));
  EXPECT_FALSE(repeat(*mma(Operand::Accumulator, 16), {16 * 5, 8}, {3, 1}, {1, 0}).ok());
  EXPECT_FALSE(repeat(*mma(Operand::Accumulator, 16), {16, 8, 8}, {1, 1}, {1, 0}).ok());
}

TEST(Distribute, Blocks) {
  // Rows of 64 in vectors of 8: 8 lanes a row, 4 rows a warp, 4 warps down, the rest repeated.
  expect_table(*blocked({48, 64}, {{1, 8}, {4, 8}, {4, 1}, {1, 0}}), {48, 64}, {24, 32, 4, 1},
               [](int r, int lane, int warp) {
                 return Point{lane / 8 + 4 * warp + 16 * (r / 8), lane % 8 * 8 + r % 8};
               });
  // Three warps, each an own third; columns fastest among lanes.
  expect_table(*blocked({12, 16}, {{2, 1}, {2, 16}, {3, 1}, {1, 0}}), {12, 16}, {2, 32, 3, 1},
               [](int r, int lane, int warp) {
                 return Point{r + 2 * (lane / 16) + 4 * warp, lane % 16};
               });
  // More lanes than elements hold copies.
  const Layout small = *blocked({16}, {{1}, {32}, {2}, {0}});
  EXPECT_EQ(print(small), "layout [16] lane (1..8) 0 warp 0");
  EXPECT_FALSE(blocked({16, 16}, {{1, 3}, {4, 8}, {1, 1}, {1, 0}}).ok());
  EXPECT_FALSE(blocked({16, 16}, {{1}, {4, 8}, {1, 1}, {1, 0}}).ok());
  EXPECT_FALSE(blocked({16, 16}, {{1, 1}, {4, 8}, {0, 1}, {1, 0}}).ok());
  EXPECT_FALSE(blocked({16, 16}, {{1, 1}, {4, 8}, {1, 1}, {1, 1}}).ok());
}

// ldmatrix x4: lane l addresses row l % 8 of matrix l / 8; after it register j of a lane holds row g, columns 2q, 2q+1
// of matrix j, so matrix j is where the fragment has its machine register j.
TEST(Fragment, MatrixRows) {
  for (int bits : {8, 16, 32}) {
    const Layout fragment = *mma(Operand::A, bits);
    const int packed = 32 / bits;
    expect_table(
        *matrix_rows(fragment, bits, Rows::Plain), fragment.shape, {4 * packed, 32, 1, 1}, [&](int e, int lane, int) {
          Point p = at(fragment, Index{lane / 8 * packed, lane % 8 * 4, 0, 0});  // the first element of the row
          p[1] += e;
          return p;
        });
  }
  // Transposed: register j of a lane holds rows 2q, 2q+1 of column g of matrix j; rows are along k for B as [k, n].
  const Layout b = *mma(Operand::B, 16);
  expect_table(*matrix_rows(b, 16, Rows::Transposed), {16, 8}, {8, 16, 1, 1}, [](int e, int lane, int) {
    return Point{lane % 8 + lane / 8 * 8, e};
  });
  EXPECT_TRUE(matrix_rows(b, 16, Rows::Plain).ok());
  EXPECT_FALSE(matrix_rows(simdgroup_matrix(), 16, Rows::Plain).ok());
  EXPECT_FALSE(matrix_rows(b, 8, Rows::Transposed).ok());
  EXPECT_FALSE(matrix_rows(Layout{{8}, {}}, 16, Rows::Plain).ok());
}

}  // namespace
}  // namespace lemma::layout
