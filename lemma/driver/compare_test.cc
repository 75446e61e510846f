#include "lemma/driver/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace lemma::driver {
namespace {

using runtime::Array;
using scalar::DType;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Comparison compare_floats(DType type, std::vector<double> found, std::vector<double> expected) {
  const Array array = *runtime::allocate(type, {int64_t(found.size())});
  std::vector<Reference> references;
  for (size_t i = 0; i < found.size(); ++i) {
    runtime::set_float(array, int64_t(i), found[i]);
    references.push_back({int64_t(i), expected[i], 0});
  }
  return compare(array, references, tolerance_of(type));
}

TEST(Compare, ToleranceScalesWithTheLargest) {
  EXPECT_TRUE(compare_floats(DType::F32, {1.00001, 2}, {1, 2}).ok());
  EXPECT_FALSE(compare_floats(DType::F32, {1.0001, 2}, {1, 2}).ok());
  EXPECT_TRUE(compare_floats(DType::F32, {1.0001, 1000}, {1, 1000}).ok());
  const Comparison c = compare_floats(DType::F32, {1, 2.5, 3}, {1, 2, 3});
  EXPECT_EQ(c.different, 1);
  EXPECT_EQ(c.where, 1);
  EXPECT_EQ(c.worst, 0.5);
  EXPECT_EQ(c.found, 2.5);
  EXPECT_EQ(c.expected, 2);
}

TEST(Compare, ClassesComeBeforeValues) {
  for (const double bad : {kNan, kInf, -kInf}) {
    const Comparison c = compare_floats(DType::F32, {bad, 7}, {1, 1});
    EXPECT_EQ(c.different, 2);
    EXPECT_EQ(c.where, 0);
  }
  EXPECT_EQ(compare_floats(DType::F32, {1}, {kNan}).different, 1);
  EXPECT_EQ(compare_floats(DType::F32, {kInf}, {-kInf}).different, 1);
  EXPECT_TRUE(compare_floats(DType::F32, {kNan, kInf, -kInf}, {kNan, kInf, -kInf}).ok());
}

TEST(Compare, NarrowTypesMayRoundAndOverflow) {
  EXPECT_TRUE(compare_floats(DType::BF16, {1.0}, {1.0039}).ok());
  EXPECT_FALSE(compare_floats(DType::BF16, {1.0}, {1.0079}).ok());
  EXPECT_TRUE(compare_floats(DType::F16, {kInf}, {70000}).ok());
  EXPECT_FALSE(compare_floats(DType::F32, {kInf}, {70000}).ok());
  EXPECT_TRUE(compare_floats(DType::F8E4M3, {0}, {0.0009}).ok());
  EXPECT_FALSE(compare_floats(DType::F64, {1 + 1e-9}, {1}).ok());
}

TEST(Compare, IntegersAreEqualOrNot) {
  const Array array = *runtime::allocate(DType::I64, {3});
  runtime::set_int(array, 0, (int64_t(1) << 62) + 1);
  const std::vector<Reference> same = {{0, 0, (int64_t(1) << 62) + 1}, {1, 0, 0}};
  EXPECT_TRUE(compare(array, same, {}).ok());
  const std::vector<Reference> off = {{0, 0, int64_t(1) << 62}};
  EXPECT_EQ(compare(array, off, {}).different, 1);
}

TEST(Compare, SamplesHoldCornersAndTileEdges) {
  const std::vector<int64_t> extents = {1000, 777}, tiles = {64};
  const std::vector<int64_t> positions = sample_positions(extents, tiles, 4096, 1);
  EXPECT_GE(positions.size(), 4096u);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end());
  for (const int64_t row : {0, 63, 64, 959, 960, 999}) {
    for (const int64_t column : {0, 63, 64, 767, 768, 776}) {
      EXPECT_TRUE(std::binary_search(positions.begin(), positions.end(), row * 777 + column)) << row << " " << column;
    }
  }
  EXPECT_EQ(sample_positions(std::vector<int64_t>{3, 2}, tiles, 4096, 1), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(sample_positions(std::vector<int64_t>{3, 0}, tiles, 4096, 1).size(), 0u);
}

}  // namespace
}  // namespace lemma::driver
