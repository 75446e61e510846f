#include "lemma/layout/text.h"

#include <gtest/gtest.h>

#include "lemma/layout/fragment.h"
#include "lemma/layout/memory.h"
#include "lemma/layout/random_layout.h"

namespace lemma::layout {
namespace {

TEST(Text, Prints) {
  EXPECT_EQ(print(*mma(Operand::Accumulator, 16)), "layout [16, 8] register (0,1) (8,0) lane (0,2) (0,4) (1..4,0)");
  EXPECT_EQ(print(*row_major({96, 40})), "layout [96, 40] offset (0,1..4) 5*(0,8) (1..16,0) 3*(32,0)");
  EXPECT_EQ(print(*span_swizzled({8, 64}, 16, 128)), "layout [8, 64] offset (0,1..32) (1,8) (2,16) (4,32)");
}

TEST(Text, RoundTrip) {
  int runs = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    test::Random random(seed);
    std::vector<Axis> among = test::threads;
    if (test::below(random, 2) == 0) among.push_back(Axis::Offset);
    Layout layout = test::random_layout(random, test::random_shape(random), test::Holds(test::below(random, 3)), among);
    if (test::below(random, 3) == 0) layout = *row_major(layout.shape);
    const std::string text = print(layout);
    runs += text.find("..") != std::string::npos;
    const base::Result<Layout> back = parse(text);
    ASSERT_TRUE(back.ok()) << text << ": " << back.error().message;
    ASSERT_EQ(*back, layout) << text;
    ASSERT_EQ(print(*back), text);
  }
  EXPECT_GT(runs, 100);
  EXPECT_EQ(*parse("layout[4,2]\n  lane (1..2,0)\n  offset(0,1)"),
            *parse("layout [4, 2] lane (1,0) (2,0) offset (0,1)"));
}

TEST(Text, Refuses) {
  const auto refuse = [](const char* text, int line, int column, const char* message) {
    const base::Result<Layout> result = parse(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << text << ": " << result.error().message;
    EXPECT_EQ(result.error().span.line, line) << text;
    EXPECT_EQ(result.error().span.column, column) << text;
  };
  refuse("", 1, 1, "expected `layout` in a layout, found the end of the text");
  refuse("tile [4]", 1, 1, "expected `layout`");
  refuse("layout 4", 1, 8, "expected `[`");
  refuse("layout [4,", 1, 11, "expected a number");
  refuse("layout [4) lane (1)", 1, 10, "expected `]` in a layout, found `)`");
  refuse("layout [99999999999]", 1, 18, "beyond 2147483647");
  refuse("layout [4] (1)", 1, 12, "before the name of an axis");
  refuse("layout [4] lanes (1)", 1, 16, "expected the name of an axis");
  refuse("layout [4] thread (1)", 1, 12, "expected the name of an axis");
  refuse("layout [4]\n lane (1) lane (2)", 2, 11, "the axis lane after lane");
  refuse("layout [4] lane (1) register (2)", 1, 21, "the axis register after lane");
  refuse("layout [4] lane (1,2)", 1, 22, "a step of 2 coordinates in a tile of 1");
  refuse("layout [4] lane (1..3)", 1, 22, "a run from 1 to 3");
  refuse("layout [4] lane (0..2)", 1, 22, "a run from 0 to 2");
  refuse("layout [4,4] lane (1..2,1..2)", 1, 28, "a second run");
  refuse("layout [12] lane 3*(4..8)", 1, 24, "a run of a digit of radix 3");
  refuse("layout [4] lane 3(1)", 1, 18, "expected `*`");
  refuse("layout [4] lane (1", 1, 19, "expected `)`");
  refuse("layout [4] lane -1", 1, 17, "expected a number");
  refuse("layout [4] lane (4)", 1, 1, "leaves the piece");
  refuse("layout [0]", 1, 1, "an extent of 0");
}

TEST(Text, AnyBytesGiveALayoutOrADiagnostic) {
  const std::string good = "layout [96, 40] register (0,1..4) 5*(0,8) 0 lane 3*0 (1..16,0) warp 3*(32,0)";
  ASSERT_TRUE(parse(good).ok());
  int failed = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    test::Random random(seed);
    std::string text = good;
    for (int k = 1 + test::below(random, 3); k > 0; --k) {
      const size_t i = random() % text.size();
      if (test::below(random, 3) == 0)
        text.erase(i, 1);
      else
        text[i] = "()[]0123456789,.*- registlanwpof\n\xff"[random() % 33];
    }
    const base::Result<Layout> result = parse(text);
    failed += !result.ok();
    ASSERT_TRUE(!result.ok() || *parse(print(*result)) == *result) << text;
  }
  EXPECT_GT(failed, 2000);
}

}  // namespace
}  // namespace lemma::layout
