#include "lemma/layout/draw.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lemma/layout/fragment.h"
#include "lemma/layout/memory.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

TEST(Draw, TextOfAFragment) {
  const std::string drawn = *draw_text(*mma(Operand::B, 32));
  EXPECT_EQ(drawn.substr(0, drawn.find("\n2")),
            "       0      1      2      3      4      5      6      7\n"
            "0   T0:0   T4:0   T8:0  T12:0  T16:0  T20:0  T24:0  T28:0\n"
            "1   T1:0   T5:0   T9:0  T13:0  T17:0  T21:0  T25:0  T29:0");
}

TEST(Draw, EveryCellIsRight) {
  EXPECT_EQ(*draw_text(*parse("layout [2, 4] register (0,1) lane (0,2) 0 warp (1,0)")),
            "          0         1         2         3\n"
            "0  W0 T0:0+  W0 T0:1+  W0 T1:0+  W0 T1:1+\n"
            "1  W1 T0:0+  W1 T0:1+  W1 T1:0+  W1 T1:1+\n");
  EXPECT_EQ(*draw_text(*parse("layout [2, 2] lane (1,0)")), "      0     1\n0  T0:0     -\n1  T1:0     -\n");
  EXPECT_EQ(*draw_text(*parse("layout [2, 2, 2] offset (0,0,1) (0,1,1) (1,0,0)")),
            "[0, *, *]\n   0  1\n0  0  1\n1  3  2\n[1, *, *]\n   0  1\n0  4  5\n1  7  6\n");
  EXPECT_EQ(*draw_text(*parse("layout [3] offset 3*(1)")), "   0  1  2\n0  0  1  2\n");
  EXPECT_FALSE(draw_text(*row_major({1024, 1024})).ok());
  EXPECT_TRUE(draw_text(*row_major({256, 256})).ok());
}

TEST(Draw, Svg) {
  const auto occurrences = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
    return n;
  };
  const std::string fragment = *draw_svg(*mma(Operand::Accumulator, 16));
  EXPECT_EQ(occurrences(fragment, "<rect "), 128);
  EXPECT_EQ(occurrences(fragment, "lane 5, register "), 4);
  EXPECT_EQ(occurrences(fragment, "hsl(" + std::to_string(5 * 137 % 360) + ","), 4);  // one colour a lane
  EXPECT_EQ(occurrences(fragment, ">31:3</text>"), 1);
  const std::string memory = *draw_svg(*span_swizzled({8, 64}, 16, 128), {16, 1 << 16});
  EXPECT_EQ(occurrences(memory, ", bank 31<"), 16);
  EXPECT_EQ(occurrences(memory, "<title>offset 72, bank 4</title>"), 1);
  EXPECT_EQ(occurrences(memory, "<g>"), occurrences(memory, "</g>"));
  EXPECT_FALSE(draw_svg(*row_major({8, 8}), {12, 1 << 16}).ok());
}

// Every block of docs/layouts.md is a layout, and the drawing under it, if there is one, is its own.
TEST(Draw, WhatTheDocumentShows) {
  std::ifstream file(LEMMA_SOURCE_DIR "/docs/layouts.md");
  ASSERT_TRUE(file.good());
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str(), open = "```layout\n";
  int layouts = 0, drawings = 0;
  for (size_t i = text.find(open); i != std::string::npos; i = text.find(open, i + 1)) {
    const size_t begin = i + open.size(), line = text.find('\n', begin), end = text.find("```\n", begin);
    const std::string written = text.substr(begin, line - begin), drawn = text.substr(line + 1, end - line - 1);
    const base::Result<Layout> layout = parse(written);
    ASSERT_TRUE(layout.ok()) << written << ": " << layout.error().message;
    ++layouts;
    if (drawn.empty()) continue;
    EXPECT_EQ(*draw_text(*layout), drawn);
    ++drawings;
  }
  EXPECT_EQ(layouts, 5);
  EXPECT_EQ(drawings, 3);
}

}  // namespace
}  // namespace lemma::layout
