#include "lemma/emit/names.h"

#include <gtest/gtest.h>

namespace lemma::emit {
namespace {

TEST(Names, AreCleanUniqueAndNoKeywords) {
  Names names;
  EXPECT_EQ(names.take("b_", "x y"), "b_x_y");
  EXPECT_EQ(names.take("b_", "a_b"), "b_a_b");
  EXPECT_EQ(names.take("b_", "a__b"), "b_a_b_2");
  EXPECT_EQ(names.take("b_", "a_b_2"), "b_a_b_2_2");
  EXPECT_EQ(names.take("", "restrict"), "restrict_2");
  EXPECT_EQ(names.take("", "1abc"), "n1abc");
  EXPECT_EQ(names.take("", "_x"), "x");
  EXPECT_EQ(names.take("", ""), "unnamed");
  EXPECT_EQ(names.take("", "\xce\xb1"), "unnamed_2");
  EXPECT_EQ(names.take("", "inline"), "inline_2");
}

TEST(Names, KnowsTheKeywords) {
  for (const char* word : {"NULL", "_Bool", "auto", "restrict", "xor_eq", "template", "main", "inline"}) {
    EXPECT_TRUE(is_c_keyword(word)) << word;
  }
  EXPECT_FALSE(is_c_keyword("kernel"));
}

}  // namespace
}  // namespace lemma::emit
