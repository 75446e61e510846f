// Elementary functions of f32 values. One text serves scalars and vectors, so a lane and a scalar agree bit for bit
// under one compiler. The constants are near-minimax fits; docs/accuracy.md states methods and measured errors. Nothing
// here relies on contraction into fused multiply-adds.

#include "lemma/emit/prelude_pieces.h"

namespace lemma::emit {
namespace {

constexpr Piece kMath[] = {
    {R"c(//: lm_abs_@ lm_copysign_@
LM_INLINE $F lm_abs_@($F x) { return lm_as_float_@(lm_as_int_@(x) & 0x7fffffff); }
LM_INLINE $F lm_copysign_@($F x, $F s) {
  return lm_as_float_@((lm_as_int_@(x) & 0x7fffffff) | (lm_as_int_@(s) & INT32_MIN));
}
)c", true},
    {R"c(//: lm_floor_@ lm_round_@
LM_INLINE $F lm_floor_@($F x) {
  const $F t = lm_to_float_@(lm_to_int_@(lm_sel_@(lm_abs_@(x) < 8388608.0f, x, lm_splat_@(0))));
  const $F f = lm_copysign_@(t - lm_sel_@(t > x, lm_splat_@(1.0f), lm_splat_@(0)), x);
  return lm_sel_@(lm_abs_@(x) < 8388608.0f, f, x);
}
LM_INLINE $F lm_round_@($F x) {
  const $F a = lm_abs_@(x);
  return lm_sel_@(a < 8388608.0f, lm_copysign_@((a + 8388608.0f) - 8388608.0f, x), x);
}
)c", true},
    {R"c(//: lm_expp_@
/* exp(r) for |r| <= ln2 / 2 */
LM_INLINE $F lm_expp_@($F r) {
  $F p = 0.0013814613f * r + 0.00836870984f;
  p = p * r + 0.0416683874f;
  p = p * r + 0.166665207f;
  p = p * r + 0.499999935f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}
)c", true},
    {R"c(//: lm_expm_@
/* exp(r) times 2^n; n within +-300. Two steps of scaling make denormal results right. */
LM_INLINE $F lm_expm_@($F r, $I n) {
  const $F p = lm_expp_@(r);
  const $I h = n >> 1;
  return p * lm_as_float_@((h + 127) << 23) * lm_as_float_@((n - h + 127) << 23);
}
)c", true},
    {R"c(//: lm_exp_far_@
LM_INLINE $F lm_exp_far_@($F x) {
  x = lm_sel_@(x > 89.0f, lm_splat_@(89.0f), x);
  x = lm_sel_@(x < -104.5f, lm_splat_@(-104.5f), x);
  const $F t = x * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
  const $F r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  return lm_expm_@(r, lm_as_int_@(t) - 0x4b400000);
}
)c", true},
    {R"c(//: lm_exp_f32
LM_INLINE float lm_exp_f32(float x) { return lm_exp_far_f32(x); }
)c"},
    {R"c(//: lm_exp_vf
/* The same bits: where no lane is near the ends, neither clamps nor two steps of scaling are needed. */
LM_INLINE lm_vf lm_exp_vf(lm_vf x) {
  if (LM_UNLIKELY(lm_any(lm_not(lm_abs_vf(x) <= 87.0f)))) return lm_exp_far_vf(x);
  const lm_vf t = x * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
  const lm_vf r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  return lm_as_float_vf((lm_vi)((lm_vu)lm_as_int_vf(lm_expp_vf(r)) + ((lm_vu)lm_as_int_vf(t) << 23)));
}
)c"},
    {R"c(//: lm_exp2_@
LM_INLINE $F lm_exp2_@($F x) {
  x = lm_sel_@(x > 129.0f, lm_splat_@(129.0f), x);
  x = lm_sel_@(x < -151.0f, lm_splat_@(-151.0f), x);
  const $F t = x + 12582912.0f;
  return lm_expm_@((x - (t - 12582912.0f)) * 0.69314718f, lm_as_int_@(t) - 0x4b400000);
}
)c", true},
    {R"c(//: lm_log_@
LM_INLINE $F lm_log_@($F a) {
  const $F x = lm_sel_@(a < 0x1p-126f, a * 0x1p25f, a);
  const $I i = lm_as_int_@(x) - 0x3f3504f3;
  $F k = lm_to_float_@(i >> 23);
  k = k - lm_sel_@(a < 0x1p-126f, lm_splat_@(25.0f), lm_splat_@(0));
  const $F f = lm_as_float_@((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const $F s = f / (f + 2.0f), z = s * s, w = z * z;
  const $F r = z * (0.66666662693f + w * 0.28498786688f) + w * (0.40000972152f + w * 0.24279078841f);
  const $F q = 0.5f * f * f;
  $F y = s * (q + r) + k * 9.0580006145e-06f - q + f + k * 0.69313812256f;
  y = lm_sel_@(a == 0.0f, lm_splat_@(lm_float_bits(0xff800000u)), y);
  y = lm_sel_@(a < 0.0f, lm_splat_@(lm_float_bits(0x7fc00000u)), y);
  return lm_sel_@((a == lm_splat_@(lm_float_bits(0x7f800000u))) | (a != a), a, y);
}
)c", true},
    {R"c(//: lm_log2_@
LM_INLINE $F lm_log2_@($F a) {
  const $F x = lm_sel_@(a < 0x1p-126f, a * 0x1p25f, a);
  const $I i = lm_as_int_@(x) - 0x3f3504f3;
  $F k = lm_to_float_@(i >> 23);
  k = k - lm_sel_@(a < 0x1p-126f, lm_splat_@(25.0f), lm_splat_@(0));
  const $F f = lm_as_float_@((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const $F s = f / (f + 2.0f), z = s * s, w = z * z;
  const $F r = z * (0.66666662693f + w * 0.28498786688f) + w * (0.40000972152f + w * 0.24279078841f);
  const $F q = 0.5f * f * f;
  const $F high = lm_as_float_@(lm_as_int_@(f - q) & -4096);
  const $F low = (f - high) - q + s * (q + r);
  $F y = (low + high) * -1.7605285393e-4f + low * 1.4428710938f + high * 1.4428710938f + k;
  y = lm_sel_@(a == 0.0f, lm_splat_@(lm_float_bits(0xff800000u)), y);
  y = lm_sel_@(a < 0.0f, lm_splat_@(lm_float_bits(0x7fc00000u)), y);
  return lm_sel_@((a == lm_splat_@(lm_float_bits(0x7f800000u))) | (a != a), a, y);
}
)c", true},
    {R"c(//: lm_tanh_@
LM_INLINE $F lm_tanh_@($F x) {
  const $F a = lm_abs_@(x), z = x * x;
  $F p = -5.70498872745e-3f * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const $F small = p * z * x + x;
  const $F large = lm_copysign_@(1.0f - 2.0f / (lm_exp_@(a + a) + 1.0f), x);
  return lm_sel_@(a < 0.625f, small, lm_sel_@(x != x, x, large));
}
)c", true},
    {R"c(//: lm_erf_@
LM_INLINE $F lm_erf_@($F x) {
  const $F t = lm_abs_@(x), s = x * x;
  $F r = -1.72853470e-5f * t + 3.83197126e-4f;
  const $F u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  const $F large = lm_copysign_@(1.0f - lm_exp_@(lm_sel_@(t > 5.0f, lm_splat_@(-100.0f), r)), x);
  $F p = -5.96761703e-4f * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  return lm_sel_@(t > 0.927734375f, large, p * x + x);
}
)c", true},
    {R"c(//: lm_sigmoid_@
LM_INLINE $F lm_sigmoid_@($F x) {
  const $F e = lm_exp_@(0.0f - lm_abs_@(x));
  return lm_sel_@(x < 0.0f, e, lm_splat_@(1.0f)) / (1.0f + e);
}
)c", true},
    {R"c(//: lm_sincos_@
/* sin (cosine = 0) or cos (1) of |x| < 8192: four parts of pi / 2, short enough that the products are exact. */
LM_INLINE $F lm_sincos_@($F x, int32_t cosine) {
  const $F t = x * 0.636619772f + 12582912.0f, n = t - 12582912.0f;
  const $I j = lm_as_int_@(t) + cosine;
  $F r = x - n * 1.5703125f;
  r = r - n * 4.837512969970703125e-4f;
  r = r - n * 7.549533620476722717e-8f;
  r = r - n * 2.5633440682570896e-12f;
  const $F z = r * r;
  const $F s = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f - 1.9515295891e-4f * z));
  const $F c = 1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
  const $F y = lm_sel_@((j & 1) != 0, c, s);
  return lm_as_float_@(lm_as_int_@(y) ^ ($I)(($U)(j & 2) << 30));
}
)c", true},
    {R"c(//: lm_sin_f32 lm_cos_f32 lm_tan_f32
LM_INLINE float lm_sin_f32(float x) { return fabsf(x) < 8192.0f ? (x == 0.0f ? x : lm_sincos_f32(x, 0)) : sinf(x); }
LM_INLINE float lm_cos_f32(float x) { return fabsf(x) < 8192.0f ? lm_sincos_f32(x, 1) : cosf(x); }
LM_INLINE float lm_tan_f32(float x) {
  return fabsf(x) < 8192.0f ? (x == 0.0f ? x : lm_sincos_f32(x, 0) / lm_sincos_f32(x, 1)) : tanf(x);
}
)c"},
    {R"c(//: lm_sin_vf lm_cos_vf lm_tan_vf
#define LM_REDUCED(name, formula, fallback) \
  LM_INLINE lm_vf name(lm_vf x) { \
    lm_vf y = formula; \
    const lm_vi far = lm_not(lm_abs_vf(x) < 8192.0f); \
    if (LM_UNLIKELY(lm_any(far))) { \
      for (int l = 0; l < LM_LANES; ++l) if (lm_get(far, l)) lm_set(y, l, fallback(lm_get(x, l))); \
    } \
    return y; \
  }
LM_REDUCED(lm_sin_vf, lm_sel_vf(x == 0.0f, x, lm_sincos_vf(x, 0)), sinf)
LM_REDUCED(lm_cos_vf, lm_sincos_vf(x, 1), cosf)
LM_REDUCED(lm_tan_vf, lm_sel_vf(x == 0.0f, x, lm_sincos_vf(x, 0) / lm_sincos_vf(x, 1)), tanf)
)c"},
    {R"c(//: lm_sqrt_vf
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512F__) && defined(__clang__)
LM_INLINE lm_vf lm_sqrt_vf(lm_vf x) { return __builtin_ia32_sqrtps512(x, 4); }
#elif defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512F__)
LM_INLINE lm_vf lm_sqrt_vf(lm_vf x) {
  return __builtin_ia32_sqrtps512_mask(x, (lm_vf){0}, (unsigned short)-1, 4);
}
#elif defined(LM_BYTES) && LM_BYTES == 32
LM_INLINE lm_vf lm_sqrt_vf(lm_vf x) { return __builtin_ia32_sqrtps256(x); }
#elif defined(LM_BYTES) && LM_BYTES == 16 && defined(__SSE2__)
LM_INLINE lm_vf lm_sqrt_vf(lm_vf x) { return __builtin_ia32_sqrtps(x); }
#else
LM_INLINE lm_vf lm_sqrt_vf(lm_vf x) {
  for (int l = 0; l < LM_LANES; ++l) lm_set(x, l, sqrtf(lm_get(x, l)));
  return x;
}
#endif
)c"},
    {R"c(//: lm_pow_vf
LM_INLINE lm_vf lm_pow_vf(lm_vf x, lm_vf y) {
  for (int l = 0; l < LM_LANES; ++l) lm_set(x, l, powf(lm_get(x, l), lm_get(y, l)));
  return x;
}
)c"},
    {R"c(//: lm_atan2_vf
LM_INLINE lm_vf lm_atan2_vf(lm_vf y, lm_vf x) {
  for (int l = 0; l < LM_LANES; ++l) lm_set(y, l, atan2f(lm_get(y, l), lm_get(x, l)));
  return y;
}
)c"},
    {R"c(//: lm_sigmoid_f64
LM_INLINE double lm_sigmoid_f64(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
)c"},
    {R"c(//: lm_pow_i64 lm_pow_u64 lm_pow_i32 lm_pow_u32
LM_INLINE uint64_t lm_pow_u64(uint64_t x, uint64_t n) {
  uint64_t r = 1;
  for (; n; n >>= 1, x *= x) if (n & 1) r *= x;
  return r;
}
LM_INLINE int64_t lm_pow_i64(int64_t x, int64_t n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  return (int64_t)lm_pow_u64((uint64_t)x, (uint64_t)n);
}
LM_INLINE int32_t lm_pow_i32(int32_t x, int32_t n) { return (int32_t)(uint32_t)lm_pow_i64(x, n); }
LM_INLINE uint32_t lm_pow_u32(uint32_t x, uint32_t n) { return (uint32_t)lm_pow_u64(x, n); }
)c"},
};

}  // namespace

std::span<const Piece> math_pieces() { return kMath; }

}  // namespace lemma::emit
