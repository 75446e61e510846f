// Conversions carried out on a simulated block: every register of every lane must end with its element.
#include "lemma/layout/convert.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "lemma/layout/algebra.h"
#include "lemma/layout/distribute.h"
#include "lemma/layout/fragment.h"
#include "lemma/layout/query.h"
#include "lemma/layout/random_layout.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

using test::below;
using test::Holds;
using test::Random;
using test::random_distribution;

// The registers of all threads, by warp, lane and register, each with the row-major rank of its element; -1 is nothing.
struct Block {
  explicit Block(const Layout& layout, bool filled) : layout(layout) {
    for (int64_t i = 0; i < count(layout); ++i) values.push_back(filled ? flatten(layout.shape, at(layout, i)) : -1);
  }
  int64_t& at_register(int64_t warp, int64_t lane, int64_t r) {
    return values[size_t((warp * count(layout, Axis::Lane) + lane) * count(layout, Axis::Register) + r)];
  }
  const Layout& layout;
  std::vector<int64_t> values;
};

std::vector<std::vector<int32_t>> odd_values(const Layout& layout) {
  std::vector<std::vector<int32_t>> out = {{}};
  for (const Digit& digit : layout[Axis::Register]) {
    if (digit.radix == 2) continue;
    std::vector<std::vector<int32_t>> more;
    for (const auto& before : out) {
      for (int32_t v = 0; v < digit.radix; ++v) more.push_back(before), more.back().push_back(v);
    }
    out = more;
  }
  return out;
}

// One instruction: all lanes send, then all receive. A lane sends one register, whoever asks.
void exchange(Block& from, Block& to, const Conversion& plan, const Exchange& e) {
  const int64_t lanes = count(from.layout, Axis::Lane), warps = count(from.layout, Axis::Warp);
  size_t source_odds = 0;
  for (const Digit& digit : from.layout[Axis::Register]) source_odds += digit.radix != 2;
  for (const std::vector<int32_t>& odds : odd_values(to.layout)) {
    std::vector<int32_t> of_source(source_odds, 0);
    for (size_t i = 0; i < odds.size(); ++i) of_source[size_t(plan.odd[i])] = odds[i];
    for (int64_t w = 0; w < warps; ++w) {
      const uint64_t bits = bit_digits(to.layout[Axis::Warp], w);
      for (int part = 0; part < plan.packed; ++part) {
        std::vector<int64_t> sent;
        for (int64_t l = 0; l < lanes; ++l) {
          sent.push_back(from.at_register(
              w, l, register_index(from.layout, e.send.at(uint64_t(l), bits) | uint64_t(part), of_source)));
        }
        for (int64_t l = 0; l < lanes; ++l) {
          const int64_t r = register_index(to.layout, e.receive.at(uint64_t(l), bits) | uint64_t(part), odds);
          ASSERT_EQ(to.at_register(w, l, r), -1) << "a register received twice";
          to.at_register(w, l, r) = sent[e.lane.at(uint64_t(l), bits)];
        }
      }
    }
  }
}

// Plans within warps are carried out; plans through memory must be accesses of a layout that holds every element once.
void carry_out(const Layout& source, const Layout& target, const Conversion& plan, int element_bits = 32) {
  if (plan.kind == ConversionKind::Shared) {
    EXPECT_TRUE(is_injective(plan.memory) && is_surjective(plan.memory));
    EXPECT_EQ(plan.memory.shape, source.shape);
    const Wavefronts write = *count_wavefronts(plan.memory, {source, plan.write_width}, element_bits);
    const Wavefronts read = *count_wavefronts(plan.memory, {target, plan.read_width}, element_bits);
    EXPECT_EQ(plan.wavefronts, write.taken + read.taken);
    EXPECT_EQ(plan.least, write.least + read.least);
    return;
  }
  Block from(source, true), to(target, false);
  const Block expected(target, true);
  for (const Exchange& e : plan.moves) {
    EXPECT_EQ(xor_mask(e), 0u);
    exchange(from, to, plan, e);
  }
  for (const Exchange& e : plan.shuffles) {
    EXPECT_NE(xor_mask(e), 0u);
    exchange(from, to, plan, e);
  }
  ASSERT_EQ(to.values, expected.values) << print(source) << " to " << print(target);
  if (plan.kind != ConversionKind::Same) return;
  for (int64_t i = 0; i < count(target); ++i) {
    const Index index = unflatten(target, i);
    ASSERT_EQ(from.at_register(index[2], index[1], index[0]), expected.values[size_t(i)]);
  }
}

// What one look at the threads tells: does an element leave its warp, and how many elements does the busiest lane
// receive.
struct Needs {
  bool within_warps = true;
  int64_t received = 0;
};
Needs needs(const Layout& source, const Layout& target) {
  Needs out;
  Block from(source, true), to(target, true);
  for (int64_t w = 0; w < count(source, Axis::Warp); ++w) {
    std::set<int64_t> in_warp;
    std::vector<std::set<int64_t>> in_lane(size_t(count(source, Axis::Lane)));
    for (int64_t l = 0; l < count(source, Axis::Lane); ++l) {
      for (int64_t r = 0; r < count(source, Axis::Register); ++r) in_lane[size_t(l)].insert(from.at_register(w, l, r));
      in_warp.insert(in_lane[size_t(l)].begin(), in_lane[size_t(l)].end());
    }
    for (int64_t l = 0; l < count(source, Axis::Lane); ++l) {
      int64_t received = 0;
      for (int64_t r = 0; r < count(target, Axis::Register); ++r) {
        const int64_t element = to.at_register(w, l, r);
        out.within_warps = out.within_warps && in_warp.count(element) != 0;
        received += in_lane[size_t(l)].count(element) == 0;
      }
      out.received = std::max(out.received, received);
    }
  }
  return out;
}

TEST(Convert, RandomPairsAreCarriedOutWithTheFewestShuffles) {
  std::map<ConversionKind, int> kinds;
  int by_mask = 0, by_lane = 0, packed = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const Point shape = std::vector<Point>{{8, 8}, {16, 16}, {4, 8, 4}, {32}, {64, 8}}[size_t(below(random, 5))];
    const int bits = piece_bits(shape), lanes = std::min(bits, 2 + below(random, 4)),
              warps = std::min(bits - lanes, below(random, 3));
    const Layout source = random_distribution(random, shape, lanes, warps);
    Layout target = random_distribution(random, shape, lanes, warps);
    if (below(random, 4) != 0) {  // stay within the warps: an invertible map of the source's bits
      std::vector<uint64_t> basis = columns(source, Axis::Register);
      const std::vector<uint64_t> lane_columns = columns(source, Axis::Lane);
      const size_t registers = basis.size();
      basis.insert(basis.end(), lane_columns.begin(), lane_columns.end());
      std::vector<uint64_t> mixed = test::random_basis(random, int(basis.size()));
      const int style = below(random, 5);
      if (style == 4 && registers > 1) {  // narrow elements that travel in pairs
        mixed = test::random_basis(random, int(basis.size()) - 1);
        for (uint64_t& v : mixed) v <<= 1;
        mixed.insert(mixed.begin(), 1);
      }
      for (size_t i = 0; i < mixed.size(); ++i) {
        if (style == 0) mixed[i] = uint64_t(1) << i;
        if (style == 1) mixed[i] = uint64_t(1) << (mixed.size() - 1 - i);
        if (style == 2)
          mixed[i] = (uint64_t(1) << i) | (i >= registers ? mixed[i] & ((uint64_t(1) << registers) - 1) : 0);
      }
      for (size_t i = 0; i < mixed.size(); ++i) {
        const uint64_t step = combine(basis, mixed[i]);
        (i < registers ? target[Axis::Register][i] : target[Axis::Lane][i - registers]).step = unpack(shape, step);
      }
      target[Axis::Warp] = source[Axis::Warp];
    }
    const int element_bits = 8 << below(random, 3);
    const Conversion plan = *convert(source, target, {element_bits});
    ++kinds[plan.kind];
    carry_out(source, target, plan, element_bits);
    const Needs need = needs(source, target);
    ASSERT_EQ(plan.kind != ConversionKind::Shared, need.within_warps) << print(source) << " to " << print(target);
    if (!need.within_warps) continue;
    ASSERT_EQ(int64_t(plan.shuffles.size()) * plan.packed, need.received) << print(source) << " to " << print(target);
    packed += plan.packed > 1 && !plan.shuffles.empty();
    if (!plan.shuffles.empty()) (xor_mask(plan.shuffles[0]) ? by_mask : by_lane) += 1;
  }
  EXPECT_GT(kinds[ConversionKind::Same], 50);
  EXPECT_GT(kinds[ConversionKind::Registers], 50);
  EXPECT_GT(kinds[ConversionKind::Shuffles], 300);
  EXPECT_GT(kinds[ConversionKind::Shared], 100);
  EXPECT_GT(by_mask, 50);
  EXPECT_GT(by_lane, 100);
  EXPECT_GT(packed, 30);
}

// Sources that hold copies, odd digits: plans stay right, and as few wherever they stay within warps.
TEST(Convert, CopiesAndOddDigits) {
  int within = 0, missed = 0, odd = 0, copies = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const Point shape = std::vector<Point>{{24, 8}, {8, 40}, {6, 16}, {12, 12}, {16, 8}}[size_t(below(random, 5))];
    const int bits = piece_bits(shape), lanes = std::min(bits, 3), warps = below(random, 2);
    Layout source = random_distribution(random, shape, lanes, std::min(warps, bits - lanes));
    Layout target = random_distribution(random, shape, lanes, std::min(warps, bits - lanes));
    if (below(random, 2) == 0) target[Axis::Warp] = source[Axis::Warp];
    const auto extra = [&](Layout& layout, Axis axis) {
      layout[axis].push_back(
          {2, below(random, 2) == 0 ? Point(shape.size(), 0) : unpack(shape, random() % (uint64_t(1) << bits))});
    };
    // One more bit for registers of the source; one more lane for both.
    if (below(random, 2) == 0) extra(source, Axis::Register);
    if (below(random, 2) == 0) extra(source, Axis::Lane), extra(target, Axis::Lane);
    for (const Digit& digit : test::odd_digits(random, shape)) {
      const auto put = [&](Layout& layout, Axis axis) {
        auto& digits = layout[axis];
        digits.insert(digits.begin() + below(random, int(digits.size()) + 1), digit);
      };
      const Axis axis = below(random, 4) == 0 ? Axis::Warp : Axis::Register;
      put(source, axis);
      put(target, axis);
    }
    if (!is_surjective(target)) continue;
    const base::Result<Conversion> plan = convert(source, target, {32});
    ASSERT_TRUE(plan.ok()) << print(source) << " to " << print(target) << ": " << plan.error().message;
    carry_out(source, target, *plan);
    odd += !plan->odd.empty();
    copies += !is_injective(source);
    const Needs need = needs(source, target);
    if (plan->kind == ConversionKind::Shared) {
      missed += need.within_warps;
      continue;
    }
    ++within;
    int64_t rounds = int64_t(plan->shuffles.size());
    for (const Digit& digit : target[Axis::Register]) rounds *= digit.radix == 2 ? 1 : digit.radix;
    EXPECT_EQ(rounds, need.received) << print(source) << " to " << print(target);
  }
  EXPECT_GT(within, 200);
  EXPECT_GT(odd, 150);
  EXPECT_GT(copies, 200);
  EXPECT_LT(missed, within / 10);
  std::printf("%d of %d conversions within warps, %d that could be go through memory\n", within, within + missed,
              missed);
}

TEST(Convert, KnownPairs) {
  // An accumulator becomes the next product's operand without moving.
  const Layout accumulator = *repeat(*mma(Operand::Accumulator, 16), {64, 64}, {4, 1}, {1, 0});
  const Layout operand = *repeat(*mma(Operand::A, 16), {64, 64}, {4, 1}, {1, 0});
  EXPECT_EQ(convert(accumulator, operand, {16})->kind, ConversionKind::Same);
  // The accumulator of one matrix unit to 8 columns a lane: quads of lanes exchange, two bf16 at a time.
  const Layout rows = *parse("layout [16, 32] register (0,1..4) (8,0) lane (0,8) (0,16) (1..4,0)");
  const Conversion quads = *convert(*repeat(*mma(Operand::Accumulator, 16), {16, 32}, {1, 1}, {1, 0}), rows, {16});
  EXPECT_EQ(quads.kind, ConversionKind::Shuffles);
  EXPECT_EQ(quads.packed, 2);
  EXPECT_EQ(quads.shuffles.size(), 6u);  // of 8 machine registers two stay
  for (const Exchange& e : quads.shuffles) EXPECT_LT(*xor_mask(e), 4u);
  // Register order alone.
  const Conversion renamed = *convert(*parse("layout [4, 8] register (0,1) (0,2) (0,4) lane (1..2,0)"),
                                      *parse("layout [4, 8] register (0,4) (0,1) (0,2) lane (1..2,0)"), {32});
  EXPECT_EQ(renamed.kind, ConversionKind::Registers);
  EXPECT_EQ(renamed.moves.size(), 8u);
  // The transpose of lanes alone: one shuffle, no mask.
  const Conversion turned = *convert(*parse("layout [4, 4] lane (0,1) (0,2) (1,0) (2,0)"),
                                     *parse("layout [4, 4] lane (1,0) (2,0) (0,1) (0,2)"), {32});
  EXPECT_EQ(turned.kind, ConversionKind::Shuffles);
  EXPECT_EQ(turned.shuffles.size(), 1u);
  EXPECT_FALSE(xor_mask(turned.shuffles[0]));
  // Rows to columns across warps: shared memory, swizzled so that neither side conflicts.
  const Layout across = *blocked({64, 64}, {{1, 8}, {4, 8}, {4, 1}, {1, 0}});
  const Conversion shared = *convert(across, operand, {16});
  EXPECT_EQ(shared.kind, ConversionKind::Shared);
  EXPECT_EQ(shared.write_width, 8);
  EXPECT_EQ(shared.read_width, 2);
  EXPECT_EQ(shared.wavefronts, shared.least);
}

// Rows to columns of bf16: accesses of 16 bytes would swizzle in chunks too coarse for the columns; those of 8 do not.
TEST(Convert, ChoosesWidthsByWavefronts) {
  const Layout rows = *blocked({128, 256}, {{1, 8}, {1, 32}, {8, 1}, {1, 0}});
  const Layout down = *blocked({128, 256}, {{8, 1}, {16, 2}, {1, 8}, {0, 1}});
  const Conversion plan = *convert(rows, down, {16});
  EXPECT_EQ(plan.kind, ConversionKind::Shared);
  EXPECT_EQ(plan.wavefronts, plan.least);
  EXPECT_EQ(plan.wavefronts, 128 * 256 / 2 / 32 + 128 * 256 / 32);  // rows in full lines, columns an element a lane
  carry_out(rows, down, plan, 16);
}

TEST(Convert, Prints) {
  const auto text = [](const char* source, const char* target) {
    return print(*convert(*parse(source), *parse(target), {32}));
  };
  EXPECT_EQ(text("layout [4] lane (1..2)", "layout [4] lane (1..2)"), "same\n");
  EXPECT_EQ(text("layout [8] register (1) (2) lane (4)", "layout [8] register (2) (1) lane (4)"),
            "registers: 1 register at a time\n"
            "  register 0 <- register 0\n  register 1 <- register 2\n"
            "  register 2 <- register 1\n  register 3 <- register 3\n");
  // A register bit changes places with a lane bit.
  EXPECT_EQ(text("layout [4] register (1) lane (2)", "layout [4] register (2) lane (1)"),
            "shuffles: 1 register at a time\n"
            "  register 0 ^ lane(1) <- register 0 ^ lane(1)\n"
            "  register 1 ^ lane(1) <- register 1 ^ lane(1) of lane ^ 1\n");
  EXPECT_EQ(text("layout [4] lane (1) (2)", "layout [4] lane (2) (1)"),
            "shuffles: 1 register at a time\n  register 0 <- register 0 of lane 0 ^ lane(2,1)\n");
  EXPECT_EQ(text("layout [4] lane (1) warp (2)", "layout [4] lane (2) warp (1)"),
            "shared: write 1 and read 1 elements at a time, 4 wavefronts of 4\n  layout [4] offset (1) (2)\n");
}

TEST(Convert, Refuses) {
  const Layout good = *parse("layout [4, 4] register (0,1) (0,2) lane (1,0) (2,0)");
  const auto refuse = [&](const char* text, const char* part) {
    const base::Result<Conversion> result = convert(good, *parse(text));
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  refuse("layout [4, 8] register (0,1..4) lane (1,0) (2,0)", "different shapes");
  refuse("layout [4, 4] register (0,1..2) (1,0) lane (2,0)", "from 4 to 2 lanes");
  refuse("layout [4, 4] register (0,1) (0,2) lane (1,0) (2,0) warp 0", "from 1 to 2 warps");
  refuse("layout [4, 4] register (0,1) lane (1,0) (2,0)", "leaves elements");
  refuse("layout [4, 4] register (0,1) (0,2) 0 lane (1,0) (2,0)", "hold an element twice");
  refuse("layout [4, 4] register (0,1) (0,2) lane (1,0) (2,0) offset 0", "a memory layout");
  EXPECT_FALSE(convert(good, good, {7}).ok());
}

}  // namespace
}  // namespace lemma::layout
