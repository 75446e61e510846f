// Matrix products in the shapes a register tile takes and in those it does not, against plain sums.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lemma/emit/testing.h"
#include "lemma/emit/testing_gemm.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using tile::Space;
using view::Form;

float noise(int64_t i) {
  uint64_t z = uint64_t(i) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  return float(int64_t((z ^ (z >> 31)) >> 40)) * 0x1p-23f - 1.0f;
}

uint16_t to_bf16(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
float from_bf16(uint16_t h) {
  const uint32_t u = uint32_t(h) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

struct Case {
  const char* name;
  GemmForm form;
};

class Products : public ::testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(Native, Products, ::testing::ValuesIn(native_builds()), build_name);

TEST_P(Products, AgreeWithPlainSums) {
  GemmForm tiled, direct, transposed_a, transposed_b, pairs, wide;
  direct.packed = false;
  transposed_a.a_transposed = true;
  transposed_b.b_transposed = true;
  pairs.type = DType::BF16;
  wide.type = DType::BF16;
  wide.pairs = false;
  const Case cases[] = {{"tiled", tiled}, {"direct", direct}, {"transposed a", transposed_a}, {"transposed b", transposed_b},
                        {"pairs", pairs}, {"widened", wide}};
  for (const Case& c : cases) {
    std::string failure;
    const Builder b = gemm_program(c.form, GetParam().target);
    auto unit = testing::Unit::load(b.program, GetParam(), failure);
    ASSERT_TRUE(unit) << c.name << failure;
    const int64_t sizes[][3] = {{1, 1, 1}, {0, 5, 3}, {3, 70, 9}, {6, 64, 33}, {7, 65, 31}, {13, 130, 1}, {50, 33, 0}, {20, 100, 1100}};
    for (const auto& size : sizes) {
      const int64_t m = size[0], n = size[1], k = size[2];
      const int64_t width = c.form.type == DType::F32 ? 4 : 2;
      Guarded as(width * m * k), bs(width * k * n), cs(4 * m * n);
      std::vector<float> a(size_t(m * k)), w(size_t(k * n));
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = noise(int64_t(i));
        if (width == 2) a[i] = from_bf16(as.as<uint16_t>()[i] = to_bf16(a[i]));
        else as.as<float>()[i] = a[i];
      }
      for (size_t i = 0; i < w.size(); ++i) {
        w[i] = noise(int64_t(i) + 77777);
        if (width == 2) w[i] = from_bf16(bs.as<uint16_t>()[i] = to_bf16(w[i]));
        else bs.as<float>()[i] = w[i];
      }
      ASSERT_EQ(unit->run({m, n, k}, {as.data(), bs.data(), cs.data()}, 1), 0);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double want = 0;
          for (int64_t l = 0; l < k; ++l) {
            want += double(a[size_t(c.form.a_transposed ? l * m + i : i * k + l)]) * w[size_t(c.form.b_transposed ? j * k + l : l * n + j)];
          }
          ASSERT_NEAR(cs.as<float>()[i * n + j], want, 2e-6 * double(k + 1)) << c.name << " " << m << "x" << n << "x" << k << " at " << i << "," << j;
        }
      }
    }
  }
}

TEST_P(Products, OfDoubles) {
  GemmForm tiled, direct, transposed_a, transposed_b;
  direct.packed = false;
  transposed_a.a_transposed = true;
  transposed_b.b_transposed = true;
  for (GemmForm form : {tiled, direct, transposed_a, transposed_b}) {
    form.type = DType::F64;
    std::string failure;
    const Builder b = gemm_program(form, GetParam().target);
    auto unit = testing::Unit::load(b.program, GetParam(), failure);
    ASSERT_TRUE(unit) << failure;
    EXPECT_EQ(unit->source().find("LM_TILE_F64(") != std::string::npos, GetParam().target.lanes() > 1);
    const int64_t sizes[][3] = {{1, 1, 1}, {0, 5, 3}, {3, 70, 9}, {6, 64, 33}, {7, 65, 31}, {13, 130, 1}, {50, 33, 0}, {20, 100, 1100}};
    for (const auto& [m, n, k] : sizes) {
      Guarded as(8 * m * k), bs(8 * k * n), cs(8 * m * n);
      // Whole numbers with an inexact part too small for f32, so that sums in f32 would be seen.
      for (int64_t i = 0; i < m * k; ++i) as.as<double>()[i] = noise(i) + 1e-9 * double(i % 7);
      for (int64_t i = 0; i < k * n; ++i) bs.as<double>()[i] = noise(i + 77777) + 1e-9 * double(i % 5);
      ASSERT_EQ(unit->run({m, n, k}, {as.data(), bs.data(), cs.data()}, 1), 0);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double want = 0;
          for (int64_t l = 0; l < k; ++l) {
            want += as.as<double>()[form.a_transposed ? l * m + i : i * k + l] * bs.as<double>()[form.b_transposed ? j * k + l : l * n + j];
          }
          ASSERT_NEAR(cs.as<double>()[i * n + j], want, 1e-14 * double(k + 1)) << m << "x" << n << "x" << k << " at " << i << "," << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lemma::emit
