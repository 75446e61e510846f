#include "lemma/runtime/random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lemma::runtime {
namespace {

using scalar::DType;

// The first values of U(1, i) and I(1, 10, i), computed by hand from the hash's definition in exact arithmetic.
TEST(Random, IsTheDocumentedHash) {
  EXPECT_EQ(hash(1, 0), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(hash(0, 0), 0u);
  EXPECT_EQ(uniform(0, 0), -1.0);
  EXPECT_EQ(uniform(1, 0), double(0xE220A8) / 8388608.0 - 1.0);
  EXPECT_EQ(integer(1, 10, 0), int64_t((0xE220A8397B1DCDAFull >> 33) % 10));
}

TEST(Random, FillsEveryTypeInItsRange) {
  for (const DType type : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::I64, DType::I32,
                           DType::I4, DType::U64, DType::U4, DType::Bool}) {
    const Array array = *allocate(type, {500});
    ASSERT_TRUE(fill_random(array, 5).ok());
    double low = 1e9, high = -1e9;
    for (int64_t i = 0; i < 500; ++i) {
      low = std::min(low, float_at(array, i));
      high = std::max(high, float_at(array, i));
    }
    const bool real = scalar::is_float(type), is_bool = type == DType::Bool;
    const bool with_sign = scalar::is_signed(scalar::kind_of(type));
    EXPECT_GE(low, real ? -1 : with_sign ? -8 : 0);
    EXPECT_LE(low, real ? -0.9 : with_sign ? -8 : 0);
    EXPECT_LE(high, real ? 1 : is_bool ? 1 : with_sign ? 7 : 15);
    EXPECT_GE(high, real ? 0.9 : is_bool ? 1 : with_sign ? 7 : 15);
  }
}

TEST(Random, KeepsRangesAndSorts) {
  const Array keys = *allocate(DType::I32, {2, 50});
  ASSERT_TRUE(fill_random(keys, 5, IntegerRange{-3, 4}, true).ok());
  for (int64_t row = 0; row < 2; ++row) {
    EXPECT_EQ(int_at(keys, row * 50), -3);
    EXPECT_EQ(int_at(keys, row * 50 + 49), 3);
    for (int64_t i = 1; i < 50; ++i) EXPECT_LE(int_at(keys, row * 50 + i - 1), int_at(keys, row * 50 + i));
  }
  EXPECT_EQ(fill_random(keys, 5, IntegerRange{2, 2}).error().message, "the range 2..2 holds no integer to draw");
  EXPECT_TRUE(fill_random(*allocate(DType::I32, {0}), 5, IntegerRange{2, 2}, true).ok());
}

TEST(Random, SeedsDifferByName) {
  EXPECT_NE(seed_of(1, "q"), seed_of(1, "k"));
  EXPECT_NE(seed_of(1, "q"), seed_of(2, "q"));
  EXPECT_EQ(seed_of(1, "q"), seed_of(1, "q"));
}

}  // namespace
}  // namespace lemma::runtime
