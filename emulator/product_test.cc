// Matrix units: a tiled product through ldmatrix and mma against sums in f64, the fragments of each type against their
// documented layouts, and planted faults.

#include <cmath>

#include "emulator/kernel/numbers.h"
#include "emulator/testing.h"
#include "emulator/texts_testing.h"

namespace lemma::emulator {
namespace {

struct Matmul {
  static constexpr int m = 64, n = 96, k = 64;
  std::vector<unsigned short> a, b;
  std::vector<float> c = nans(m * n);
  Launch launch{.kernel = "matmul", .blocks = {n / 32, m / 32, 1}, .threads = 128};

  Matmul() {
    for (const float x : random_floats(m * k, 1)) a.push_back(bf16_bits(x));
    for (const float x : random_floats(k * n, 2)) b.push_back(bf16_bits(x));
    launch.buffers = {input("a", a), input("b", b), output("c", c)};
    launch.scalars = {integer(m), integer(n), integer(k)};
  }
  int wrong() const {
    int out = 0;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) {
          sum += double(float_of_bf16(a[size_t(i * k + l)])) * double(float_of_bf16(b[size_t(l * n + j)]));
        }
        out += !(std::abs(c[size_t(i * n + j)] - sum) <= 1e-4 * (1 + std::abs(sum)));
      }
    }
    return out;
  }
};

TEST(Product, TiledMatmulIsRightInEveryOrder) {
  const Module module = build(kMatmul);
  for (const RunOptions& options : all_orders()) {
    Matmul matmul;
    matmul.launch.options = options;
    EXPECT_EQ(all_messages(run(module, matmul.launch)), "");
    EXPECT_EQ(matmul.wrong(), 0);
  }
}

TEST(Product, AWrongSwizzleReadsAnothersElements) {
  // Of the store alone: the same elements in other places. Nothing is unwritten, nothing races, and the values tell.
  Matmul matmul;
  const std::string text = plant(kMatmul, "lm_store<8>(bs, swizzled(r, k)", "lm_store<8>(bs, swizzled(r ^ 2, k)");
  EXPECT_EQ(all_messages(run(build(text), matmul.launch)), "");
  EXPECT_GT(matmul.wrong(), 1000);
}

TEST(Product, AWrongSwizzleReadsWhatNobodyWrote) {
  Matmul matmul;
  const std::string text = plant(kMatmul, "lm_store<8>(as, swizzled(r, k)", "lm_store<8>(as, swizzled(r & ~2, k)");
  const Report report = run(build(text), matmul.launch);
  const Finding unwritten = expect(report, Fault::Uninitialised);
  EXPECT_EQ(unwritten.buffer, "as");
  EXPECT_EQ(unwritten.who.statement, 4);
  EXPECT_EQ(expect(report, Fault::Race).who.statement, 1);  // two threads write one row
}

TEST(Product, ASwappedFragmentRowGivesWrongValues) {
  Matmul matmul;
  const std::string text = plant(kMatmul, "LM_AT(6); lm_mma",
                                 "LM_AT(6); const unsigned swapped = fa[0]; fa[0] = fa[1]; fa[1] = swapped; lm_mma");
  EXPECT_EQ(all_messages(run(build(text), matmul.launch)), "");
  EXPECT_GT(matmul.wrong(), 1000);
}

TEST(Product, AMissingSecondBarrierIsARace) {
  Matmul matmul;
  const Report report = run(build(plant(kMatmul, "LM_AT(8); lm_barrier();", "")), matmul.launch);
  const Finding race = expect(report, Fault::Race);
  EXPECT_LE(race.who.statement, 2);     // the next tile is written
  EXPECT_GE(race.other->statement, 4);  // while this one is read
  EXPECT_LE(race.other->statement, 5);
}

TEST(Product, RowsOfMatricesAreAligned) {
  Matmul matmul;
  const std::string text = plant(kMatmul, "lm_ldmatrix_x4(fa, as, swizzled(wr + LM_LANE % 16, kk + LM_LANE / 16 * 8))",
                                 "lm_ldmatrix_x4(fa, as, (wr + LM_LANE % 16) * 32 + 4)");
  EXPECT_EQ(expect(run(build(text), matmul.launch), Fault::Misaligned).who.statement, 4);
}

// One product of fragments that the kernel builds element by element, as the documentation places them. `load` is the
// value of an element of A or B, `depth` is K.
std::string fragments(const std::string& type, const std::string& accumulator, const std::string& body) {
  return "LM_KERNEL(one, 32) (LM_GLOBAL(const " + type + ") b_a, LM_GLOBAL(const " + type + ") b_b, LM_GLOBAL(" +
         accumulator + ") b_c) {\n  const int g = LM_LANE / 4, q = LM_LANE % 4;\n  unsigned a[4], b[2];\n  " +
         accumulator + " c[4] = {1, 2, 3, 4};\n" + body +
         "  for (int r = 0; r < 4; ++r) b_c[(g + r / 2 * 8) * 8 + 2 * q + r % 2] = c[r];\n}\n";
}

template <class T, class C>
void check_one(const std::string& text, int depth, const std::vector<T>& given_a, const std::vector<T>& given_b,
               double (*value)(T)) {
  std::vector<T> a = given_a, b = given_b;  // a[16][depth], b[8][depth]: both along K
  std::vector<C> c(128, C(-999));
  Launch launch{.kernel = "one", .threads = 32};
  launch.buffers = {input("a", a), input("b", b), output("c", c)};
  EXPECT_EQ(all_messages(run(build(text), launch)), "");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      double sum = 1 + j % 2 + 2 * (i / 8);
      for (int k = 0; k < depth; ++k) sum += value(a[size_t(i * depth + k)]) * value(b[size_t(j * depth + k)]);
      EXPECT_NEAR(double(c[size_t(i * 8 + j)]), sum, 1e-5 * std::abs(sum)) << i << " " << j;
    }
  }
}

TEST(Product, F16Fragments) {
  std::vector<unsigned short> a, b;
  for (const float x : random_floats(16 * 16, 3)) a.push_back(f16_bits(x));
  for (const float x : random_floats(8 * 16, 4)) b.push_back(f16_bits(x));
  check_one<unsigned short, float>(fragments("lm_f16", "float", R"(
  for (int i = 0; i < 4; ++i) {
    const int at = (g + i % 2 * 8) * 16 + 2 * q + i / 2 * 8;
    a[i] = lm_pack((lm_f16)b_a[at], (lm_f16)b_a[at + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    const int at = g * 16 + 2 * q + i * 8;
    b[i] = lm_pack((lm_f16)b_b[at], (lm_f16)b_b[at + 1]);
  }
  lm_mma_m16n8k16_f16(c, a, b);
)"),
                                   16, a, b, [](unsigned short x) { return double(float_of_f16(x)); });
}

TEST(Product, Tf32Fragments) {
  const std::vector<float> a = random_floats(16 * 8, 3), b = random_floats(8 * 8, 4);
  std::vector<float> fine = a;
  fine[3] = 1.0f + 0x1p-20f;  // the last bits are not looked at
  check_one<float, float>(fragments("float", "float", R"(
  for (int i = 0; i < 4; ++i) a[i] = lm_float_bits(b_a[(g + i % 2 * 8) * 8 + q + i / 2 * 4]);
  for (int i = 0; i < 2; ++i) b[i] = lm_float_bits(b_b[g * 8 + q + i * 4]);
  lm_mma_m16n8k8_tf32(c, a, b);
)"),
                          8, fine, b, [](float x) { return double(float_of(bits_of(x) & 0xffffe000)); });
}

TEST(Product, S8Fragments) {
  std::vector<signed char> a, b;
  for (int i = 0; i < 16 * 32; ++i) a.push_back((signed char)(i * 37 % 255 - 127));
  for (int i = 0; i < 8 * 32; ++i) b.push_back((signed char)(i * 53 % 255 - 127));
  check_one<signed char, int>(fragments("signed char", "int", R"(
  for (int i = 0; i < 4; ++i) {
    a[i] = 0;
    for (int j = 0; j < 4; ++j) a[i] |= (unsigned)(unsigned char)b_a[(g + i % 2 * 8) * 32 + 4 * q + i / 2 * 16 + j] << (8 * j);
  }
  for (int i = 0; i < 2; ++i) {
    b[i] = 0;
    for (int j = 0; j < 4; ++j) b[i] |= (unsigned)(unsigned char)b_b[g * 32 + 4 * q + i * 16 + j] << (8 * j);
  }
  lm_mma_m16n8k32_s8(c, a, b);
)"),
                              32, a, b, [](signed char x) { return double(x); });
}

TEST(Product, SixteenBitFormatsRoundToNearestEven) {
  EXPECT_EQ(bf16_bits(1.0f + 0x1p-8f), 0x3f80);      // a tie, to even
  EXPECT_EQ(bf16_bits(1.0f + 3 * 0x1p-8f), 0x3f82);  // a tie, to even
  EXPECT_EQ(bf16_bits(std::nextafter(1.0f + 0x1p-8f, 2.0f)), 0x3f81);
  EXPECT_EQ(bf16_bits(3.4e38f), 0x7f80);  // beyond the largest
  EXPECT_EQ(bf16_bits(-INFINITY), 0xff80);
  EXPECT_EQ(bf16_bits(NAN), 0x7fff);
  EXPECT_EQ(f16_bits(65519.0f), 0x7bff);
  EXPECT_EQ(f16_bits(65520.0f), 0x7c00);
  EXPECT_EQ(f16_bits(0x1p-24f), 0x0001);
  EXPECT_EQ(f16_bits(0x1p-25f), 0x0000);       // a tie, to even
  EXPECT_EQ(f16_bits(3 * 0x1p-25f), 0x0002);   // a tie, to even
  EXPECT_EQ(f16_bits(-0x1.ff8p-15f), 0x83ff);  // the largest subnormal
  EXPECT_EQ(f16_bits(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f16_bits(NAN), 0x7fff);
  int changed = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const unsigned short h = (unsigned short)bits;
    if ((h & 0x7fff) <= 0x7c00) changed += f16_bits(float_of_f16(h)) != h;
    if ((h & 0x7fff) <= 0x7f80) changed += bf16_bits(float_of_bf16(h)) != h;
  }
  EXPECT_EQ(changed, 0);
}

}  // namespace
}  // namespace lemma::emulator
