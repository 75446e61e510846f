// Constants and storage types survive the trip through C text, bit for bit.

#include "lemma/emit/literal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using tile::Space;

TEST(Literal, Spells) {
  EXPECT_EQ(literal(Kind::F32, std::bit_cast<int32_t>(1.5f)), "0x1.8p+0f");
  EXPECT_EQ(literal(Kind::F32, std::bit_cast<int32_t>(2.0f)), "2.0f");
  EXPECT_EQ(literal(Kind::F32, int64_t(0x80000000)), "(-0x0p+0f)");
  EXPECT_EQ(literal(Kind::F32, 0x7f800000), "lm_float_bits(0x7f800000u)");
  EXPECT_EQ(literal(Kind::I32, INT32_MIN), "INT32_MIN");
  EXPECT_EQ(literal(Kind::I64, INT64_MIN), "INT64_MIN");
  EXPECT_EQ(literal(Kind::I64, -5), "INT64_C(-5)");
  EXPECT_EQ(literal(Kind::U32, 4294967295), "4294967295u");
}

TEST(Literal, ComesBackFromTheCompiler) {
  const uint32_t patterns[] = {0x3dcccccd, 0x3eaaaaab, 0x4b800000, 0x4b7fffff, 0x00000001, 0x00001383, 0x00800000, 0x007fffff,
                               0x7f7fffff, 0xff7fffff, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800001, 0x322bcc77};
  const int64_t integers[] = {INT32_MIN, INT32_MAX, -1, 0};
  const int64_t longs[] = {INT64_MIN, INT64_MAX, -1, 4294967295};
  Builder b;
  const int x = b.buffer("x", Space::Output, DType::F32, {16});
  const int y = b.buffer("y", Space::Output, DType::I32, {4});
  const int z = b.buffer("z", Space::Output, DType::I64, {4});
  const int d = b.buffer("d", Space::Output, DType::F64, {3});
  tile::Kernel& k = b.kernel();
  const auto put = [&](int buffer, int64_t at, Expr value) {
    tile::Map map;
    map.stores = {{{buffer, {at}, {}}, value, {}, std::nullopt}};
    k.body.push_back({map});
  };
  for (int i = 0; i < 16; ++i) put(x, i, scalar::constant_bits(b.arena(), Kind::F32, patterns[i]));
  for (int i = 0; i < 4; ++i) put(y, i, scalar::constant_int(b.arena(), Kind::I32, integers[i]));
  for (int i = 0; i < 4; ++i) put(z, i, scalar::constant_int(b.arena(), Kind::I64, longs[i]));
  const double doubles[] = {0.1, 5e-324, -1.7976931348623157e308};
  for (int i = 0; i < 3; ++i) put(d, i, scalar::constant(b.arena(), Kind::F64, doubles[i]));
  std::string failure;
  auto unit = testing::Unit::load(b.program, sse2_build(), failure);
  ASSERT_TRUE(unit) << failure;
  Guarded xs(64), ys(16), zs(32), ds(24);
  ASSERT_EQ(unit->run({}, {xs.data(), ys.data(), zs.data(), ds.data()}), 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(xs.as<uint32_t>()[i], patterns[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ys.as<int32_t>()[i], integers[i]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(zs.as<int64_t>()[i], longs[i]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ds.as<double>()[i], doubles[i]);
}

// Every code of the narrow types to f32 and back; and f32 values that round, through each type.
TEST(Storage, NarrowTypesRoundTripAndRound) {
  for (const Build& build : native_builds()) {
    if (build.compiler != "gcc") continue;
    for (DType type : {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::I16, DType::U16, DType::I8, DType::U8, DType::I4, DType::U4, DType::Bool}) {
      Builder b;
      const Kind kind = scalar::kind_of(type);
      const int N = b.size("N"), i = b.var("i");
      const int x = b.buffer("x", Space::Input, type, {s(N)});
      const int w = b.buffer("w", Space::Output, scalar::dtype_of(kind), {s(N)});
      const int y = b.buffer("y", Space::Output, type, {s(N)});
      tile::Map map;
      map.points = {{i, s(N)}};
      map.reads = {{x, {f(i)}, {}}};
      const Expr value = scalar::arg(b.arena(), kind, 0);
      map.stores = {{{w, {f(i)}, {}}, value, {}, std::nullopt}, {{y, {f(i)}, {}}, value, {}, std::nullopt}};
      b.kernel().body.push_back({map});
      std::string failure;
      auto unit = testing::Unit::load(b.program, build, failure);
      ASSERT_TRUE(unit) << failure;
      const int width = scalar::bits(type);
      const int64_t n = width == 16 ? 65536 : width == 4 ? 256 : type == DType::Bool ? 2 : 256;
      const int64_t bytes = scalar::bytes(type, n);
      Guarded xs(bytes), ws(n * scalar::bits(scalar::dtype_of(kind)) / 8), ys(bytes);
      for (int64_t k = 0; k < bytes; ++k) {
        if (width == 16) xs.as<uint8_t>()[k] = uint8_t((k / 2) >> (k % 2 * 8));
        else xs.as<uint8_t>()[k] = uint8_t(width == 4 ? k * 37 : k);
      }
      ASSERT_EQ(unit->run({n}, {xs.data(), ws.data(), ys.data()}), 0);
      for (int64_t k = 0; k < n; ++k) {
        if (scalar::is_float(kind) && std::isnan(ws.as<float>()[k])) continue;  // any nan
        const int64_t at = width == 4 ? k / 2 : width == 16 ? 2 * k : k;
        ASSERT_EQ(0, std::memcmp(xs.as<char>() + at, ys.as<char>() + at, width == 16 ? 2 : 1)) << build.name << " " << scalar::name(type) << " " << k;
      }
      if (type == DType::F16) {
        EXPECT_EQ(ws.as<float>()[0x7bff], 65504.0f);
        EXPECT_EQ(ws.as<float>()[0x0001], 0x1p-24f);
        EXPECT_TRUE(std::isinf(ws.as<float>()[0x7c00]) && std::isnan(ws.as<float>()[0x7c01]));
      }
      if (type == DType::F8E4M3) {
        EXPECT_EQ(ws.as<float>()[0x7e], 448.0f);
        EXPECT_TRUE(std::isnan(ws.as<float>()[0x7f]));
      }
      if (type == DType::I4) { EXPECT_EQ(ws.as<int32_t>()[2], int32_t((37 & 15) ^ 8) - 8); }
    }
  }
}

}  // namespace
}  // namespace lemma::emit
