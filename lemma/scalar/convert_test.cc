#include "lemma/scalar/convert.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lemma::scalar {
namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
const DType kNarrow[] = {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};

double value(DType type, uint64_t code) { return from_bits(type, code).f; }
uint64_t code(DType type, double v) { return to_bits(type, from_float(v)); }

TEST(Convert, KnownCodes) {
  const struct { DType type; uint64_t code; double value; } rows[] = {
      {DType::F16, 0x3c00, 1},         {DType::F16, 0x7bff, 65504},        {DType::F16, 0x0001, 0x1p-24},
      {DType::F16, 0x0400, 0x1p-14},   {DType::F16, 0xfc00, -kInf},        {DType::BF16, 0x3f80, 1},
      {DType::BF16, 0x0001, 0x1p-133}, {DType::BF16, 0x7f7f, 0x1.fep127},  {DType::F8E4M3, 0x38, 1},
      {DType::F8E4M3, 0x7e, 448},      {DType::F8E4M3, 0x01, 0x1p-9},      {DType::F8E4M3, 0x08, 0x1p-6},
      {DType::F8E5M2, 0x3c, 1},        {DType::F8E5M2, 0x7b, 57344},       {DType::F8E5M2, 0x01, 0x1p-16},
      {DType::F8E5M2, 0x7c, kInf},     {DType::F32, 0x00000001, 0x1p-149}, {DType::F32, 0x7f800000, kInf},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(value(row.type, row.code), row.value) << name(row.type) << " " << row.code;
    EXPECT_EQ(code(row.type, row.value), row.code) << name(row.type) << " " << row.value;
  }
}

TEST(Convert, EveryPatternOfNarrowFloatsReturns) {
  for (DType type : kNarrow) {
    for (uint64_t c = 0; c < uint64_t(1) << bits(type); ++c) {
      const double v = value(type, c);
      if (std::isnan(v)) EXPECT_TRUE(std::isnan(value(type, code(type, v))));
      else EXPECT_EQ(code(type, v), c) << name(type);
      EXPECT_EQ(std::isnan(rounded(type, v)), std::isnan(v));
      if (!std::isnan(v)) {
        EXPECT_EQ(std::bit_cast<uint64_t>(rounded(type, v)), std::bit_cast<uint64_t>(v));
      }
    }
  }
}

TEST(Convert, RoundsToNearestEvenBetweenEveryTwoNeighbours) {
  for (DType type : kNarrow) {
    const uint64_t end = type == DType::F16 ? 0x7bff : type == DType::BF16 ? 0x7f7f : type == DType::F8E4M3 ? 0x7e : 0x7b;
    for (uint64_t c = 0; c < end; ++c) {
      const double a = value(type, c), b = value(type, c + 1), middle = a / 2 + b / 2;
      EXPECT_EQ(code(type, middle), c % 2 == 0 ? c : c + 1) << name(type) << " " << c;
      EXPECT_EQ(code(type, std::nextafter(middle, 0)), c) << name(type);
      EXPECT_EQ(code(type, std::nextafter(middle, kInf)), c + 1) << name(type);
      EXPECT_EQ(code(type, -std::nextafter(middle, kInf)) & (end | 1), (c + 1) & (end | 1)) << name(type);
    }
  }
}

TEST(Convert, OverflowIsInfWhereThereIsOne) {
  EXPECT_EQ(rounded(DType::F16, 65519.99), 65504);
  EXPECT_EQ(rounded(DType::F16, 65520), kInf);
  EXPECT_EQ(rounded(DType::F16, -1e300), -kInf);
  EXPECT_EQ(rounded(DType::BF16, 3.4e38), kInf);
  EXPECT_EQ(rounded(DType::F8E5M2, 61440), kInf);
  EXPECT_EQ(rounded(DType::F8E5M2, 61439), 57344);
  EXPECT_EQ(rounded(DType::F8E4M3, 464), 448);
  EXPECT_TRUE(std::isnan(rounded(DType::F8E4M3, 464.1)));
  EXPECT_TRUE(std::isnan(rounded(DType::F8E4M3, -kInf)));
  EXPECT_EQ(code(DType::F8E4M3, kNan) & 0x7f, 0x7fu);
  EXPECT_EQ(rounded(DType::F16, 5e-324), 0);
  EXPECT_TRUE(std::signbit(rounded(DType::BF16, -5e-324)));
}

TEST(Convert, Bf16IsTheRoundedUpperHalfOfAFloat) {
  // bf16 of a float is its upper half, rounded: an independent formula.
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const uint32_t raw = uint32_t(random());
    const float f = std::bit_cast<float>(raw);
    if (std::isnan(f)) continue;
    const uint32_t expected = (raw + 0x7fff + (raw >> 16 & 1)) >> 16;
    EXPECT_EQ(code(DType::BF16, f), expected) << f << " seed 7";
  }
}

TEST(Convert, IntegersWrapInStorage) {
  const struct { DType type; int64_t in, out; } rows[] = {
      {DType::I8, 128, -128},       {DType::I8, -129, 127},          {DType::U8, -1, 255},
      {DType::U8, 256, 0},          {DType::I4, 8, -8},              {DType::I4, 7, 7},
      {DType::U4, 17, 1},           {DType::I16, 40000, -25536},     {DType::U16, -1, 65535},
      {DType::I32, 1ll << 31, INT32_MIN}, {DType::U32, -1, UINT32_MAX}, {DType::I64, INT64_MIN, INT64_MIN},
      {DType::U64, -1, -1},         {DType::Bool, 256, 1},           {DType::Bool, 0, 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(wrapped(row.type, row.in), row.out) << name(row.type);
    EXPECT_EQ(from_bits(row.type, to_bits(row.type, from_int(row.in))).i, row.out) << name(row.type);
  }
  for (DType type : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I4, DType::U4}) {
    for (uint64_t c = 0; c < uint64_t(1) << bits(type); ++c) EXPECT_EQ(to_bits(type, from_bits(type, c)), c);
  }
}

TEST(Convert, NibblesLieLowFirst) {
  uint8_t bytes[2] = {0, 0};
  for (int i = 0; i < 4; ++i) store(DType::U4, bytes, i, from_int(i + 1));
  EXPECT_EQ(bytes[0], 0x21);
  EXPECT_EQ(bytes[1], 0x43);
  store(DType::I4, bytes, 1, from_int(-1));
  EXPECT_EQ(bytes[0], 0xf1);
  EXPECT_EQ(load(DType::I4, bytes, 1).i, -1);
  EXPECT_EQ(load(DType::I4, bytes, 0).i, 1);
}

TEST(Convert, StoreThenLoadAtOddAddresses) {
  std::vector<char> raw(9 * 8 + 1);
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::I64, DType::I32, DType::U16, DType::I8, DType::Bool}) {
    for (int i = 0; i < 8; ++i) store(type, raw.data() + 1, i, is_float(type) ? from_float(i - 3.5) : from_int(i % 2));
    for (int i = 0; i < 8; ++i) {
      if (is_float(type)) EXPECT_EQ(load(type, raw.data() + 1, i).f, i - 3.5) << name(type);
      else EXPECT_EQ(load(type, raw.data() + 1, i).i, i % 2) << name(type);
    }
  }
}

TEST(Convert, CastsTruncateAndSaturate) {
  EXPECT_EQ(truncated(Kind::I32, -2.9), -2);
  EXPECT_EQ(truncated(Kind::I32, 1e20), INT32_MAX);
  EXPECT_EQ(truncated(Kind::I32, -kInf), INT32_MIN);
  EXPECT_EQ(truncated(Kind::I32, 2147483647.5), INT32_MAX);
  EXPECT_EQ(truncated(Kind::U32, -5), 0);
  EXPECT_EQ(truncated(Kind::U32, 1e10), UINT32_MAX);
  EXPECT_EQ(truncated(Kind::I64, 0x1p63), INT64_MAX);
  EXPECT_EQ(truncated(Kind::I64, -0x1p63), INT64_MIN);
  EXPECT_EQ(uint64_t(truncated(Kind::U64, 1.8e19)), uint64_t(1.8e19));
  EXPECT_EQ(truncated(Kind::U64, 1e30), -1);
  EXPECT_EQ(truncated(Kind::I64, kNan), 0);
  EXPECT_EQ(truncated(Kind::Bool, kNan), 1);
  EXPECT_EQ(truncated(Kind::Bool, -0.0), 0);
}

}  // namespace
}  // namespace lemma::scalar
