#include "lemma/runtime/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lemma::runtime {
namespace {

using scalar::DType;

Array counting(DType type, std::vector<int64_t> extents) {
  Array array = *allocate(type, std::move(extents));
  for (int64_t i = 0; i < array.count(); ++i) set_int(array, i, i);
  return array;
}

std::vector<int64_t> values(const Array& array) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < array.count(); ++i) out.push_back(int_at(array, i));
  return out;
}

TEST(Array, ViewsReadTheRightElements) {
  const Array a = counting(DType::I32, {2, 3});
  struct Case {
    int64_t offset;
    std::vector<int64_t> extents, strides, expected;
  };
  const Case cases[] = {
      {0, {3, 2}, {1, 3}, {0, 3, 1, 4, 2, 5}},   // transposed
      {5, {6}, {-1}, {5, 4, 3, 2, 1, 0}},        // reversed
      {1, {2, 2}, {3, 1}, {1, 2, 4, 5}},         // sliced
      {2, {2, 2}, {0, 3}, {2, 5, 2, 5}},         // broadcast
      {0, {4, 3}, {1, 1}, {0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5}},  // overlapping windows
      {9, {0, 4}, {1, 1}, {}},                   // empty, wherever it points
      {4, {}, {}, {4}},                          // one element
  };
  for (const Case& c : cases) {
    const Array v = *view(a, c.offset, c.extents, c.strides);
    EXPECT_EQ(values(v), c.expected);
    EXPECT_EQ(values(*contiguous(v)), c.expected);
    EXPECT_TRUE(contiguous(v)->contiguous());
  }
}

TEST(Array, ViewsOutsideTheStorageAreRefused) {
  const Array a = counting(DType::F32, {2, 3});
  EXPECT_EQ(view(a, 0, {7}, {1}).error().message, "a view reaches elements 0 to 6 of storage that holds 6");
  EXPECT_EQ(view(a, 0, {2}, {-1}).error().message, "a view reaches elements -1 to 0 of storage that holds 6");
  EXPECT_FALSE(view(a, 1, {int64_t(1) << 62, 2}, {int64_t(1) << 62, 1}).ok());
  EXPECT_FALSE(view(a, 0, {-1}, {1}).ok());
  EXPECT_FALSE(view(a, 0, {2, 2}, {1}).ok());
}

TEST(Array, ContiguityIgnoresStridesOfExtentOne) {
  const Array a = counting(DType::I32, {2, 3});
  EXPECT_TRUE(a.contiguous());
  EXPECT_TRUE(view(a, 0, {2, 1, 3}, {3, 77, 1})->contiguous());
  EXPECT_FALSE(view(a, 0, {3, 2}, {1, 3})->contiguous());
  EXPECT_TRUE(view(a, 0, {0, 9}, {5, 5})->contiguous());
}

TEST(Array, NibblesAreLowFirstAndSurviveViews) {
  const Array a = *allocate(DType::I4, {5});
  const int64_t wanted[] = {-8, 7, 0, -1, 3};
  for (int64_t i = 0; i < 5; ++i) set_int(a, i, wanted[i]);
  EXPECT_EQ(a.bytes(), 3);
  EXPECT_EQ(int(a.data()[0]), 0x78);
  EXPECT_EQ(values(*view(a, 4, {5}, {-1})), (std::vector<int64_t>{3, -1, 0, 7, -8}));
  EXPECT_EQ(values(*contiguous(*view(a, 1, {3}, {1}))), (std::vector<int64_t>{7, 0, -1}));
}

TEST(Array, CountsThatOverflowAreRefused) {
  const int64_t big = int64_t(1) << 32;
  EXPECT_EQ(checked_count(std::vector<int64_t>{big, big}), std::nullopt);
  EXPECT_EQ(checked_count(std::vector<int64_t>{big, big, 0}), std::nullopt);
  EXPECT_EQ(checked_count(std::vector<int64_t>{3, 0, 5}), 0);
  EXPECT_EQ(checked_count(std::vector<int64_t>{}), 1);
  EXPECT_EQ(checked_bytes(DType::F64, std::vector<int64_t>{int64_t(1) << 60}), std::nullopt);
  EXPECT_EQ(checked_bytes(DType::I4, std::vector<int64_t>{5}), 3);
  const auto refused = allocate(DType::F32, {int64_t(1) << 50}, "input 'x'");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().failure, base::Failure::System);
  EXPECT_TRUE(refused.error().message.starts_with(
      "input 'x' of type f32[1125899906842624] needs 4503599627370496 bytes, and the machine has "))
      << refused.error().message;
}

TEST(Array, ConversionSaturatesFloatsAndWrapsIntegers) {
  const double inf = std::numeric_limits<double>::infinity();
  const Array a = *allocate(DType::F64, {6});
  const double in[] = {-300.5, 300.9, inf, -inf, NAN, 1.9};
  for (int64_t i = 0; i < 6; ++i) set_float(a, i, in[i]);
  EXPECT_EQ(values(*convert(a, DType::I8)), (std::vector<int64_t>{-128, 127, 127, -128, 0, 1}));
  EXPECT_EQ(values(*convert(a, DType::U8)), (std::vector<int64_t>{0, 255, 255, 0, 0, 1}));
  EXPECT_EQ(values(*convert(a, DType::I4)), (std::vector<int64_t>{-8, 7, 7, -8, 0, 1}));
  EXPECT_EQ(values(*convert(a, DType::Bool)), (std::vector<int64_t>{1, 1, 1, 1, 1, 1}));
  const Array b = *allocate(DType::I32, {3});
  const int64_t ints[] = {257, -1, 65536};
  for (int64_t i = 0; i < 3; ++i) set_int(b, i, ints[i]);
  EXPECT_EQ(values(*convert(b, DType::U8)), (std::vector<int64_t>{1, 255, 0}));
  EXPECT_EQ(float_at(*convert(b, DType::BF16), 0), 256.0);
  const Array c = *allocate(DType::U64, {1});
  set_int(c, 0, -1);
  EXPECT_EQ(float_at(c, 0), 0x1p64);
}

TEST(Array, LargeStorageIsAlignedAndZero) {
  const Array a = *allocate(DType::U8, {(int64_t(5) << 20) + 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % (2 << 20), 0u);
  EXPECT_EQ(int(a.data()[a.bytes() - 1]), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(allocate(DType::U8, {3})->data()) % 64, 0u);
}

TEST(Array, PoisonIsNanOrTheAskedBits) {
  const Array f = *allocate(DType::BF16, {3}), i = *allocate(DType::I16, {2}), b = *allocate(DType::Bool, {2});
  fill_poison(f, 0);
  fill_poison(i, 0xA5);
  fill_poison(b, 0xA5);
  EXPECT_TRUE(std::isnan(float_at(f, 2)));
  EXPECT_EQ(uint16_t(int_at(i, 1)), 0xA5A5);
  EXPECT_EQ(int_at(b, 1), 1);
}

}  // namespace
}  // namespace lemma::runtime
