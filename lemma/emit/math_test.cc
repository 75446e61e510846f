// Elementary functions against long double, over bit patterns of the whole range: docs/accuracy.md states the bounds.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Space;

struct Function {
  Op op;
  long double (*reference)(long double);
  double ulp;                 // the bound
};

long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
long double reciprocal(long double x) { return 1 / x; }
long double inverse_root(long double x) { return 1 / sqrtl(x); }

const Function kFunctions[] = {
    {Op::Exp, expl, 1.2},   {Op::Exp2, exp2l, 1.2},    {Op::Log, logl, 1.0},   {Op::Log2, log2l, 1.5},
    {Op::Tanh, tanhl, 2.0}, {Op::Erf, erfl, 1.5},      {Op::Sin, sinl, 2.5},   {Op::Cos, cosl, 2.0},
    {Op::Tan, tanl, 4.0},   {Op::Sigmoid, sigmoid, 3}, {Op::Sqrt, sqrtl, 0.5}, {Op::Recip, reciprocal, 0.5},
    {Op::Rsqrt, inverse_root, 1.5}, {Op::Floor, floorl, 0}, {Op::Round, rintl, 0}, {Op::Abs, fabsl, 0},
};

double ulp_error(float got, long double want) {
  const float rounded = float(want);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e30;
  int exponent;
  std::frexp(rounded, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - 24, -149));
  return double(fabsl((long double)got - want)) / step;
}

TEST(Math, WithinTheStatedBounds) {
  Build builds[] = {sse2_build(), native_builds().back()};
  for (const Build& build : native_builds()) if (build.name == "avx2" || build.name == "avx512") builds[1] = build;
  for (const Build& build : builds) {
    Builder b;
    const int N = b.size("N");
    const int x = b.buffer("x", Space::Input, DType::F32, {s(N)});
    tile::Kernel& kernel = b.kernel();
    for (const Function& function : kFunctions) {
      const int i = b.var("i");
      const int y = b.buffer(std::string(scalar::name(function.op)), Space::Output, DType::F32, {s(N)});
      tile::Map map;
      map.points = {{i, s(N)}};
      map.reads = {{x, {f(i)}, {}}};
      map.stores = {{{y, {f(i)}, {}}, scalar::unary(function.op, scalar::arg(b.arena(), Kind::F32, 0)), {}, std::nullopt}};
      kernel.body.push_back({map});
    }
    std::string failure;
    auto unit = testing::Unit::load(b.program, build, failure);
    ASSERT_TRUE(unit) << failure;
    std::vector<uint32_t> patterns = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 1, 0x80000001, 0x007fffff,
                                      0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800000, 0x42b17218, 0xc2cff1b5};
    for (uint64_t u = 0; u < (uint64_t(1) << 32); u += 10007) patterns.push_back(uint32_t(u));
    const int64_t n = int64_t(patterns.size());
    Guarded xs(4 * n);
    std::memcpy(xs.data(), patterns.data(), size_t(4 * n));
    std::vector<std::unique_ptr<Guarded>> outs;
    std::vector<void*> buffers{xs.data()};
    for (size_t k = 0; k < std::size(kFunctions); ++k) {
      outs.push_back(std::make_unique<Guarded>(4 * n));
      buffers.push_back(outs.back()->data());
    }
    ASSERT_EQ(unit->run({n}, buffers), 0);
    for (size_t k = 0; k < std::size(kFunctions); ++k) {
      double worst = 0;
      float where = 0;
      for (int64_t j = 0; j < n; ++j) {
        const float v = xs.as<float>()[j];
        const double e = ulp_error(outs[k]->as<float>()[j], kFunctions[k].reference(v));
        if (e > worst) worst = e, where = v;
      }
      ::testing::Test::RecordProperty(std::string(scalar::name(kFunctions[k].op)), std::to_string(worst));
      EXPECT_LE(worst, kFunctions[k].ulp) << build.name << " " << scalar::name(kFunctions[k].op) << " at " << where;
      std::printf("%s %s: %.3f ulp at %a\n", build.name.c_str(), std::string(scalar::name(kFunctions[k].op)).c_str(), worst, double(where));
    }
  }
}

}  // namespace
}  // namespace lemma::emit
