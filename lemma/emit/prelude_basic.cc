// Types, conversions, integer arithmetic, loads and stores.

#include "lemma/emit/prelude_pieces.h"

namespace lemma::emit {

std::string_view prelude_head() {
  return R"c(
/* Vectors need the GNU extensions; without them, or with LEMMA_SCALAR, a vector has one lane. */
#if defined(__GNUC__) && !defined(LEMMA_SCALAR) && LM_MAX_BYTES >= 16
#if defined(LEMMA_WIDE)
#define LM_BYTES LM_MAX_BYTES
#elif defined(__AVX512F__) && LM_MAX_BYTES >= 64
#define LM_BYTES 64
#elif defined(__AVX__) && LM_MAX_BYTES >= 32
#define LM_BYTES 32
#elif defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__riscv_vector)
#define LM_BYTES 16
#endif
#endif
#if defined(__GNUC__)
#define LM_INLINE static inline __attribute__((always_inline, unused))
#define LM_NOINLINE static __attribute__((noinline, unused))
#define LM_FUNCTION static __attribute__((unused))
#define LM_ALIGN __attribute__((aligned(64)))
#define LM_ALIGNED(p) __builtin_assume_aligned((p), 64)
#define LM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LM_RESTRICT __restrict__
#define LM_PREFETCH(p) __builtin_prefetch((const void*)(p))
#else
#define LM_INLINE static
#define LM_NOINLINE static
#define LM_FUNCTION static
#define LM_ALIGN
#define LM_ALIGNED(p) (p)
#define LM_UNLIKELY(x) (x)
#define LM_RESTRICT
#define LM_PREFETCH(p) ((void)0)
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define LM_UNROLL _Pragma("GCC unroll 64")
#elif defined(__clang__)
#define LM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LM_UNROLL
#endif
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#endif
#if defined(LM_BYTES)
#define LM_LANES (LM_BYTES / 4)
typedef float lm_vf __attribute__((vector_size(LM_BYTES)));
typedef int32_t lm_vi __attribute__((vector_size(LM_BYTES)));
typedef uint32_t lm_vu __attribute__((vector_size(LM_BYTES)));
typedef uint16_t lm_vh __attribute__((vector_size(LM_BYTES / 2)));
typedef uint8_t lm_vb __attribute__((vector_size(LM_BYTES / 4)));
#define lm_set(v, l, x) ((v)[l] = (x))
#define lm_get(v, l) ((v)[l])
#else
#define LM_LANES 1
typedef float lm_vf;
typedef int32_t lm_vi;
typedef uint32_t lm_vu;
typedef uint16_t lm_vh;
typedef uint8_t lm_vb;
#define lm_set(v, l, x) ((void)(l), (v) = (x))
#define lm_get(v, l) ((void)(l), (v))
#endif
)c";
}

namespace {

constexpr Piece kBasic[] = {
    {R"c(//: lm_float_bits
LM_INLINE float lm_float_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
)c"},
    {R"c(//: lm_double_bits
LM_INLINE double lm_double_bits(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }
)c"},
    {R"c(//: lm_bits_f32 lm_bits_f64
LM_INLINE uint32_t lm_bits_f32(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
LM_INLINE uint64_t lm_bits_f64(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
)c"},
    {R"c(//: lm_splat_vf lm_splat_vi lm_splat_vu
#if defined(LM_BYTES)
LM_INLINE lm_vf lm_splat_vf(float x) { return x - (lm_vf){0}; }
LM_INLINE lm_vi lm_splat_vi(int32_t x) { return x - (lm_vi){0}; }
LM_INLINE lm_vu lm_splat_vu(uint32_t x) { return x - (lm_vu){0}; }
#else
LM_INLINE lm_vf lm_splat_vf(float x) { return x; }
LM_INLINE lm_vi lm_splat_vi(int32_t x) { return x; }
LM_INLINE lm_vu lm_splat_vu(uint32_t x) { return x; }
#endif
)c"},
    {R"c(//: lm_iota
#if defined(LM_BYTES)
#if LM_LANES == 16
#define lm_iota ((lm_vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#elif LM_LANES == 8
#define lm_iota ((lm_vi){0, 1, 2, 3, 4, 5, 6, 7})
#else
#define lm_iota ((lm_vi){0, 1, 2, 3})
#endif
#else
#define lm_iota 0
#endif
)c"},
    // A mask's lanes are 0 or -1 (with one lane 0 or anything else).
    {R"c(//: lm_not lm_xor_mask lm_eq_mask lm_sel_vf lm_sel_vi lm_sel_vu lm_one
#if defined(LM_BYTES)
LM_INLINE lm_vi lm_not(lm_vi m) { return ~m; }
LM_INLINE lm_vi lm_xor_mask(lm_vi a, lm_vi b) { return a ^ b; }
LM_INLINE lm_vi lm_eq_mask(lm_vi a, lm_vi b) { return ~(a ^ b); }
LM_INLINE lm_vi lm_one(lm_vi m) { return m & 1; }
LM_INLINE lm_vf lm_sel_vf(lm_vi m, lm_vf a, lm_vf b) { return (lm_vf)((m & (lm_vi)a) | (~m & (lm_vi)b)); }
LM_INLINE lm_vi lm_sel_vi(lm_vi m, lm_vi a, lm_vi b) { return (m & a) | (~m & b); }
LM_INLINE lm_vu lm_sel_vu(lm_vi m, lm_vu a, lm_vu b) { return ((lm_vu)m & a) | (~(lm_vu)m & b); }
#else
LM_INLINE lm_vi lm_not(lm_vi m) { return !m; }
LM_INLINE lm_vi lm_xor_mask(lm_vi a, lm_vi b) { return !a != !b; }
LM_INLINE lm_vi lm_eq_mask(lm_vi a, lm_vi b) { return !a == !b; }
LM_INLINE lm_vi lm_one(lm_vi m) { return m != 0; }
LM_INLINE lm_vf lm_sel_vf(lm_vi m, lm_vf a, lm_vf b) { return m ? a : b; }
LM_INLINE lm_vi lm_sel_vi(lm_vi m, lm_vi a, lm_vi b) { return m ? a : b; }
LM_INLINE lm_vu lm_sel_vu(lm_vi m, lm_vu a, lm_vu b) { return m ? a : b; }
#endif
)c"},
    {R"c(//: lm_sel_f32 lm_sel_i32 lm_sel_u32
LM_INLINE float lm_sel_f32(int32_t m, float a, float b) { return m ? a : b; }
LM_INLINE int32_t lm_sel_i32(int32_t m, int32_t a, int32_t b) { return m ? a : b; }
LM_INLINE uint32_t lm_sel_u32(int32_t m, uint32_t a, uint32_t b) { return m ? a : b; }
)c"},
    {R"c(//: lm_any
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512DQ__)
LM_INLINE int lm_any(lm_vi m) { return __builtin_ia32_cvtd2mask512(m) != 0; }
#elif defined(LM_BYTES) && LM_BYTES == 32
typedef float lm_v8f __attribute__((vector_size(32)));
LM_INLINE int lm_any(lm_vi m) { return __builtin_ia32_movmskps256((lm_v8f)m) != 0; }
#elif defined(LM_BYTES) && defined(__SSE2__) && LM_BYTES == 16
LM_INLINE int lm_any(lm_vi m) { return __builtin_ia32_movmskps((lm_vf)m) != 0; }
#else
LM_INLINE int lm_any(lm_vi m) { int32_t r = 0; for (int l = 0; l < LM_LANES; ++l) r |= lm_get(m, l); return r != 0; }
#endif
)c"},
    {R"c(//: lm_first
LM_INLINE lm_vi lm_first(int64_t n) { return lm_iota < lm_splat_vi((int32_t)n); }
)c"},
    {R"c(//: lm_range
/* Lanes l with low <= v + l < high. */
LM_INLINE lm_vi lm_range(int64_t v, int64_t low, int64_t high) {
  int64_t a = low - v, b = high - v;
  a = a < 0 ? 0 : a > LM_LANES ? LM_LANES : a;
  b = b < 0 ? 0 : b > LM_LANES ? LM_LANES : b;
  return (lm_iota >= lm_splat_vi((int32_t)a)) & (lm_iota < lm_splat_vi((int32_t)b));
}
)c"},
    // ---- the two faces of generic functions ----
    {R"c(//: lm_as_int_f32 lm_as_float_f32 lm_splat_f32
LM_INLINE int32_t lm_as_int_f32(float x) { return (int32_t)lm_bits_f32(x); }
LM_INLINE float lm_as_float_f32(int32_t x) { return lm_float_bits((uint32_t)x); }
LM_INLINE float lm_splat_f32(float x) { return x; }
)c"},
    {R"c(//: lm_as_int_vf lm_as_float_vf
#if defined(LM_BYTES)
LM_INLINE lm_vi lm_as_int_vf(lm_vf x) { return (lm_vi)x; }
LM_INLINE lm_vf lm_as_float_vf(lm_vi x) { return (lm_vf)x; }
#else
LM_INLINE lm_vi lm_as_int_vf(lm_vf x) { return (int32_t)lm_bits_f32(x); }
LM_INLINE lm_vf lm_as_float_vf(lm_vi x) { return lm_float_bits((uint32_t)x); }
#endif
)c"},
    {R"c(//: lm_to_float_f32 lm_to_int_f32
LM_INLINE float lm_to_float_f32(int32_t x) { return (float)x; }
LM_INLINE int32_t lm_to_int_f32(float x) { return (int32_t)x; }
)c"},
    {R"c(//: lm_to_float_vf lm_to_int_vf lm_unsigned_to_float_vf lm_to_unsigned_vf
#if defined(LM_BYTES)
LM_INLINE lm_vf lm_to_float_vf(lm_vi x) { return __builtin_convertvector(x, lm_vf); }
LM_INLINE lm_vi lm_to_int_vf(lm_vf x) { return __builtin_convertvector(x, lm_vi); }
LM_INLINE lm_vf lm_unsigned_to_float_vf(lm_vu x) { return __builtin_convertvector(x, lm_vf); }
LM_INLINE lm_vu lm_to_unsigned_vf(lm_vf x) { return __builtin_convertvector(x, lm_vu); }
#else
LM_INLINE lm_vf lm_to_float_vf(lm_vi x) { return (float)x; }
LM_INLINE lm_vi lm_to_int_vf(lm_vf x) { return (int32_t)x; }
LM_INLINE lm_vf lm_unsigned_to_float_vf(lm_vu x) { return (float)x; }
LM_INLINE lm_vu lm_to_unsigned_vf(lm_vf x) { return (uint32_t)x; }
#endif
)c"},
    {R"c(//: lm_widen_h lm_widen_b lm_narrow_h lm_narrow_b
#if defined(LM_BYTES)
LM_INLINE lm_vu lm_widen_h(lm_vh x) { return __builtin_convertvector(x, lm_vu); }
LM_INLINE lm_vu lm_widen_b(lm_vb x) { return __builtin_convertvector(x, lm_vu); }
LM_INLINE lm_vh lm_narrow_h(lm_vu x) { return __builtin_convertvector(x, lm_vh); }
LM_INLINE lm_vb lm_narrow_b(lm_vu x) { return __builtin_convertvector(x, lm_vb); }
#else
LM_INLINE lm_vu lm_widen_h(lm_vh x) { return x; }
LM_INLINE lm_vu lm_widen_b(lm_vb x) { return x; }
LM_INLINE lm_vh lm_narrow_h(lm_vu x) { return (uint16_t)x; }
LM_INLINE lm_vb lm_narrow_b(lm_vu x) { return (uint8_t)x; }
#endif
)c"},
    // ---- scalar integers; the vector forms of rare ones go lane by lane ----
    {R"c(//: lm_floordiv_i64 lm_mod_i64
LM_INLINE int64_t lm_floordiv_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
LM_INLINE int64_t lm_mod_i64(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)c"},
    {R"c(//: lm_floordiv_i32 lm_mod_i32
LM_INLINE int32_t lm_floordiv_i32(int32_t a, int32_t b) { return (int32_t)(uint32_t)lm_floordiv_i64(a, b); }
LM_INLINE int32_t lm_mod_i32(int32_t a, int32_t b) { return (int32_t)lm_mod_i64(a, b); }
)c"},
    {R"c(//: lm_floordiv_u64 lm_mod_u64 lm_floordiv_u32 lm_mod_u32
LM_INLINE uint64_t lm_floordiv_u64(uint64_t a, uint64_t b) { return b ? a / b : 0; }
LM_INLINE uint64_t lm_mod_u64(uint64_t a, uint64_t b) { return b ? a % b : 0; }
LM_INLINE uint32_t lm_floordiv_u32(uint32_t a, uint32_t b) { return b ? a / b : 0; }
LM_INLINE uint32_t lm_mod_u32(uint32_t a, uint32_t b) { return b ? a % b : 0; }
)c"},
    {R"c(//: lm_floordiv_f32 lm_mod_f32 lm_floordiv_f64 lm_mod_f64
LM_INLINE double lm_floordiv_f64(double a, double b) { return floor(a / b); }
LM_INLINE double lm_mod_f64(double a, double b) {
  const double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
LM_INLINE float lm_floordiv_f32(float a, float b) { return floorf(a / b); }
LM_INLINE float lm_mod_f32(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)c"},
    {R"c(//: lm_floordiv_vi lm_mod_vi
LM_INLINE lm_vi lm_floordiv_vi(lm_vi a, lm_vi b) {
  lm_vi r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_floordiv_i32(lm_get(a, l), lm_get(b, l)));
  return r;
}
LM_INLINE lm_vi lm_mod_vi(lm_vi a, lm_vi b) {
  lm_vi r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_mod_i32(lm_get(a, l), lm_get(b, l)));
  return r;
}
)c"},
    {R"c(//: lm_floordiv_vu lm_mod_vu
LM_INLINE lm_vu lm_floordiv_vu(lm_vu a, lm_vu b) {
  lm_vu r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_floordiv_u32(lm_get(a, l), lm_get(b, l)));
  return r;
}
LM_INLINE lm_vu lm_mod_vu(lm_vu a, lm_vu b) {
  lm_vu r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_mod_u32(lm_get(a, l), lm_get(b, l)));
  return r;
}
)c"},
    {R"c(//: lm_floordiv_vf lm_mod_vf
LM_INLINE lm_vf lm_floordiv_vf(lm_vf a, lm_vf b) {
  lm_vf r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_floordiv_f32(lm_get(a, l), lm_get(b, l)));
  return r;
}
LM_INLINE lm_vf lm_mod_vf(lm_vf a, lm_vf b) {
  lm_vf r = a;
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_mod_f32(lm_get(a, l), lm_get(b, l)));
  return r;
}
)c"},
    {R"c(//: lm_min_i64 lm_max_i64
LM_INLINE int64_t lm_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
LM_INLINE int64_t lm_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
)c"},
    {R"c(//: lm_min_u64 lm_max_u64 lm_min_i32 lm_max_i32 lm_min_u32 lm_max_u32
LM_INLINE uint64_t lm_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
LM_INLINE uint64_t lm_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
LM_INLINE int32_t lm_min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
LM_INLINE int32_t lm_max_i32(int32_t a, int32_t b) { return a > b ? a : b; }
LM_INLINE uint32_t lm_min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
LM_INLINE uint32_t lm_max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
)c"},
    {R"c(//: lm_min_vi lm_max_vi lm_min_vu lm_max_vu
LM_INLINE lm_vi lm_min_vi(lm_vi a, lm_vi b) { return lm_sel_vi(a < b, a, b); }
LM_INLINE lm_vi lm_max_vi(lm_vi a, lm_vi b) { return lm_sel_vi(a > b, a, b); }
LM_INLINE lm_vu lm_min_vu(lm_vu a, lm_vu b) { return lm_sel_vu(a < b, a, b); }
LM_INLINE lm_vu lm_max_vu(lm_vu a, lm_vu b) { return lm_sel_vu(a > b, a, b); }
)c"},
    // nan wins from either side.
    {R"c(//: lm_min_f32 lm_max_f32 lm_min_f64 lm_max_f64
LM_INLINE float lm_min_f32(float a, float b) { return a < b || a != a ? a : b; }
LM_INLINE float lm_max_f32(float a, float b) { return a > b || a != a ? a : b; }
LM_INLINE double lm_min_f64(double a, double b) { return a < b || a != a ? a : b; }
LM_INLINE double lm_max_f64(double a, double b) { return a > b || a != a ? a : b; }
)c"},
    {R"c(//: lm_min_vf lm_max_vf
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512F__) && !defined(__clang__)
LM_INLINE lm_vf lm_min_vf(lm_vf a, lm_vf b) {
  return lm_sel_vf(a != a, a, __builtin_ia32_minps512_mask(a, b, (lm_vf){0}, (unsigned short)-1, 4));
}
LM_INLINE lm_vf lm_max_vf(lm_vf a, lm_vf b) {
  return lm_sel_vf(a != a, a, __builtin_ia32_maxps512_mask(a, b, (lm_vf){0}, (unsigned short)-1, 4));
}
#elif defined(LM_BYTES) && LM_BYTES == 32 && !defined(__clang__)
LM_INLINE lm_vf lm_min_vf(lm_vf a, lm_vf b) { return lm_sel_vf(a != a, a, __builtin_ia32_minps256(a, b)); }
LM_INLINE lm_vf lm_max_vf(lm_vf a, lm_vf b) { return lm_sel_vf(a != a, a, __builtin_ia32_maxps256(a, b)); }
#else
LM_INLINE lm_vf lm_min_vf(lm_vf a, lm_vf b) { return lm_sel_vf((a < b) | (a != a), a, b); }
LM_INLINE lm_vf lm_max_vf(lm_vf a, lm_vf b) { return lm_sel_vf((a > b) | (a != a), a, b); }
#endif
)c"},
    // ---- casts: toward zero, saturating, nan gives 0 ----
    {R"c(//: lm_cast_f64_i64 lm_cast_f64_u64 lm_cast_f64_i32 lm_cast_f64_u32
LM_INLINE int64_t lm_cast_f64_i64(double x) {
  return x != x ? 0 : x < -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}
LM_INLINE uint64_t lm_cast_f64_u64(double x) { return !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x; }
LM_INLINE int32_t lm_cast_f64_i32(double x) {
  return x != x ? 0 : x < -0x1p31 ? INT32_MIN : x >= 0x1p31 ? INT32_MAX : (int32_t)x;
}
LM_INLINE uint32_t lm_cast_f64_u32(double x) { return !(x > 0) ? 0 : x >= 0x1p32 ? UINT32_MAX : (uint32_t)x; }
)c"},
    {R"c(//: lm_cast_f32_i64 lm_cast_f32_u64 lm_cast_f32_i32 lm_cast_f32_u32
LM_INLINE int64_t lm_cast_f32_i64(float x) {
  return x != x ? 0 : x < -0x1p63f ? INT64_MIN : x >= 0x1p63f ? INT64_MAX : (int64_t)x;
}
LM_INLINE uint64_t lm_cast_f32_u64(float x) { return !(x > 0) ? 0 : x >= 0x1p64f ? UINT64_MAX : (uint64_t)x; }
LM_INLINE int32_t lm_cast_f32_i32(float x) {
  return x != x ? 0 : x < -0x1p31f ? INT32_MIN : x >= 0x1p31f ? INT32_MAX : (int32_t)x;
}
LM_INLINE uint32_t lm_cast_f32_u32(float x) { return !(x > 0) ? 0 : x >= 0x1p32f ? UINT32_MAX : (uint32_t)x; }
)c"},
    {R"c(//: lm_cast_vf_vi lm_cast_vf_vu
LM_INLINE lm_vi lm_cast_vf_vi(lm_vf x) {
  lm_vi r = lm_to_int_vf(lm_sel_vf((x >= -0x1p31f) & (x < 0x1p31f), x, lm_splat_vf(0)));
  r = lm_sel_vi(x >= 0x1p31f, lm_splat_vi(INT32_MAX), r);
  return lm_sel_vi(x < -0x1p31f, lm_splat_vi(INT32_MIN), r);
}
LM_INLINE lm_vu lm_cast_vf_vu(lm_vf x) {
  lm_vu r = lm_splat_vu(0);
  for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_cast_f32_u32(lm_get(x, l)));
  return r;
}
)c"},
    {R"c(//: lm_pick_u_f32 lm_u_f32
LM_INLINE uint32_t lm_pick_u_f32(int32_t m, uint32_t a, uint32_t b) { return m ? a : b; }
LM_INLINE uint32_t lm_u_f32(uint32_t x) { return x; }
)c"},
    {R"c(//: lm_pick_u_vf lm_u_vf
LM_INLINE lm_vu lm_pick_u_vf(lm_vi m, lm_vu a, lm_vu b) { return lm_sel_vu(m, a, b); }
LM_INLINE lm_vu lm_u_vf(uint32_t x) { return lm_splat_vu(x); }
)c"},
    // ---- narrow floats: f32 to and from codes, in integer arithmetic ----
    {R"c(//: lm_encode_f16_@ lm_decode_f16_@
LM_INLINE $U lm_encode_f16_@($F x) {
  $U u = ($U)lm_as_int_@(x), sign = (u >> 16) & 0x8000u, code;
  u &= 0x7fffffffu;
  const $F tiny = lm_as_float_@(($I)u) + 0.5f; /* 0.5 has the quantum of the least numbers: the sum rounds to it */
  code = (u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u) >> 13;
  code = lm_pick_u_@(u < 0x38800000u, ($U)lm_as_int_@(tiny) - 0x3f000000u, code);
  code = lm_pick_u_@(u >= 0x477ff000u, lm_pick_u_@(u > 0x7f800000u, lm_u_@(0x7e00u), lm_u_@(0x7c00u)), code);
  return sign | code;
}
LM_INLINE $F lm_decode_f16_@($U h) {
  const $U u = h & 0x7fffu;
  $F x = lm_as_float_@(($I)(u << 13)) * 0x1p112f;
  x = lm_sel_@(u >= 0x7c00u, lm_as_float_@(($I)((u << 13) | 0x7f800000u)), x);
  return lm_as_float_@(lm_as_int_@(x) | ($I)((h & 0x8000u) << 16));
}
)c", true},
    {R"c(//: lm_encode_bf16_@ lm_decode_bf16_@
LM_INLINE $U lm_encode_bf16_@($F x) {
  const $U u = ($U)lm_as_int_@(x);
  return lm_pick_u_@((u & 0x7fffffffu) > 0x7f800000u, ((u >> 16) & 0x8000u) | 0x7fc0u, (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
LM_INLINE $F lm_decode_bf16_@($U h) { return lm_as_float_@(($I)(h << 16)); }
)c", true},
    {R"c(//: lm_encode_f8e4m3_@ lm_decode_f8e4m3_@
LM_INLINE $U lm_encode_f8e4m3_@($F x) {
  $U u = ($U)lm_as_int_@(x), sign = (u >> 24) & 0x80u, code;
  u &= 0x7fffffffu;
  const $F tiny = lm_as_float_@(($I)u) + 16384.0f;
  code = (u + 0x7ffffu + ((u >> 20) & 1u) - 0x3c000000u) >> 20;
  code = lm_pick_u_@(u < 0x3c800000u, ($U)lm_as_int_@(tiny) - 0x46800000u, code);
  return sign | lm_pick_u_@(code > 0x7fu, lm_u_@(0x7fu), code);
}
LM_INLINE $F lm_decode_f8e4m3_@($U h) {
  const $U u = h & 0x7fu;
  $F x = lm_as_float_@(($I)(u << 20)) * 0x1p120f;
  x = lm_sel_@(u == 0x7fu, lm_as_float_@(($I)((u << 20) | 0x7fc00000u)), x);
  return lm_as_float_@(lm_as_int_@(x) | ($I)((h & 0x80u) << 24));
}
)c", true},
    {R"c(//: lm_encode_f8e5m2_@ lm_decode_f8e5m2_@
LM_INLINE $U lm_encode_f8e5m2_@($F x) {
  $U u = ($U)lm_as_int_@(x), sign = (u >> 24) & 0x80u, code;
  u &= 0x7fffffffu;
  const $F tiny = lm_as_float_@(($I)u) + 128.0f;
  code = (u + 0xfffffu + ((u >> 21) & 1u) - 0x38000000u) >> 21;
  code = lm_pick_u_@(u < 0x38800000u, ($U)lm_as_int_@(tiny) - 0x43000000u, code);
  code = lm_pick_u_@(code > 0x7cu, lm_u_@(0x7cu), code);
  return sign | lm_pick_u_@(u > 0x7f800000u, lm_u_@(0x7eu), code);
}
LM_INLINE $F lm_decode_f8e5m2_@($U h) {
  const $U u = h & 0x7fu;
  $F x = lm_as_float_@(($I)(u << 21)) * 0x1p112f;
  x = lm_sel_@(u >= 0x7cu, lm_as_float_@(($I)((u << 21) | 0x7f800000u)), x);
  return lm_as_float_@(lm_as_int_@(x) | ($I)((h & 0x80u) << 24));
}
)c", true},
    // A double to a float that a second rounding to a narrower type cannot hurt: inexact results get an odd last bit.
    {R"c(//: lm_round_to_odd
LM_INLINE float lm_round_to_odd(double x) {
  float f = (float)x;
  uint32_t u = lm_bits_f32(f);
  if (f != f || (double)f == x || (u & 0x7fffffffu) == 0x7f800000u) return f;
  if (fabs((double)f) > fabs(x)) --u;
  return lm_float_bits(u | 1u);
}
)c"},
    {R"c(//: lm_round_f16_@ lm_round_bf16_@ lm_round_f8e4m3_@ lm_round_f8e5m2_@
LM_INLINE $F lm_round_f16_@($F x) { return lm_decode_f16_@(lm_encode_f16_@(x)); }
LM_INLINE $F lm_round_bf16_@($F x) { return lm_decode_bf16_@(lm_encode_bf16_@(x)); }
LM_INLINE $F lm_round_f8e4m3_@($F x) { return lm_decode_f8e4m3_@(lm_encode_f8e4m3_@(x)); }
LM_INLINE $F lm_round_f8e5m2_@($F x) { return lm_decode_f8e5m2_@(lm_encode_f8e5m2_@(x)); }
)c", true},
    {R"c(//: lm_load4 lm_store4 lm_sign4
LM_INLINE uint32_t lm_load4(const uint8_t* p, int64_t i) { return (p[i >> 1] >> ((i & 1) * 4)) & 15u; }
LM_INLINE int32_t lm_sign4(uint32_t x) { return (int32_t)(x ^ 8u) - 8; }
LM_INLINE void lm_store4(uint8_t* p, int64_t i, uint32_t x) {
  const int s = (int)(i & 1) * 4;
  p[i >> 1] = (uint8_t)((p[i >> 1] & ~(15u << s)) | ((x & 15u) << s));
}
)c"},
    // ---- vector loads and stores; user memory has the alignment of its elements ----
    {R"c(//: lm_vf_mem lm_vh_mem lm_vb_mem
#if defined(LM_BYTES)
typedef float lm_vf_mem __attribute__((vector_size(LM_BYTES), aligned(4), may_alias));
typedef uint16_t lm_vh_mem __attribute__((vector_size(LM_BYTES / 2), aligned(2), may_alias));
typedef uint8_t lm_vb_mem __attribute__((vector_size(LM_BYTES / 4), aligned(1), may_alias));
#else
typedef float lm_vf_mem;
typedef uint16_t lm_vh_mem;
typedef uint8_t lm_vb_mem;
#endif
)c"},
    {R"c(//: lm_load_f32 lm_loadn_f32 lm_loadm_f32 lm_store_f32 lm_storen_f32 lm_storem_f32
LM_INLINE lm_vf lm_load_f32(const float* p) { return *(const lm_vf_mem*)p; }
LM_INLINE void lm_store_f32(float* p, lm_vf x) { *(lm_vf_mem*)p = x; }
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512DQ__)
LM_INLINE lm_vf lm_loadm_f32(const float* p, lm_vi m) {
  return __builtin_ia32_loadups512_mask((const void*)p, (lm_vf){0}, (unsigned short)__builtin_ia32_cvtd2mask512(m));
}
LM_INLINE void lm_storem_f32(float* p, lm_vf x, lm_vi m) {
  __builtin_ia32_storeups512_mask((void*)p, x, (unsigned short)__builtin_ia32_cvtd2mask512(m));
}
#elif defined(LM_BYTES) && LM_BYTES == 32
LM_INLINE lm_vf lm_loadm_f32(const float* p, lm_vi m) { return __builtin_ia32_maskloadps256((const void*)p, m); }
LM_INLINE void lm_storem_f32(float* p, lm_vf x, lm_vi m) { __builtin_ia32_maskstoreps256((void*)p, m, x); }
#else
LM_INLINE lm_vf lm_loadm_f32(const float* p, lm_vi m) {
  lm_vf r = lm_splat_vf(0);
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) lm_set(r, l, p[l]);
  return r;
}
LM_INLINE void lm_storem_f32(float* p, lm_vf x, lm_vi m) {
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) p[l] = lm_get(x, l);
}
#endif
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512F__)
LM_INLINE lm_vf lm_loadn_f32(const float* p, int64_t n) {
  return __builtin_ia32_loadups512_mask((const void*)p, (lm_vf){0}, (unsigned short)((1u << n) - 1));
}
LM_INLINE void lm_storen_f32(float* p, lm_vf x, int64_t n) {
  __builtin_ia32_storeups512_mask((void*)p, x, (unsigned short)((1u << n) - 1));
}
#else
LM_INLINE lm_vf lm_loadn_f32(const float* p, int64_t n) { return lm_loadm_f32(p, lm_first(n)); }
LM_INLINE void lm_storen_f32(float* p, lm_vf x, int64_t n) { lm_storem_f32(p, x, lm_first(n)); }
#endif
)c"},
    {R"c(//: lm_load_i32 lm_loadn_i32 lm_loadm_i32 lm_store_i32 lm_storen_i32 lm_storem_i32
LM_INLINE lm_vi lm_load_i32(const int32_t* p) { return lm_as_int_vf(lm_load_f32((const float*)p)); }
LM_INLINE lm_vi lm_loadn_i32(const int32_t* p, int64_t n) { return lm_as_int_vf(lm_loadn_f32((const float*)p, n)); }
LM_INLINE lm_vi lm_loadm_i32(const int32_t* p, lm_vi m) { return lm_as_int_vf(lm_loadm_f32((const float*)p, m)); }
LM_INLINE void lm_store_i32(int32_t* p, lm_vi x) { lm_store_f32((float*)p, lm_as_float_vf(x)); }
LM_INLINE void lm_storen_i32(int32_t* p, lm_vi x, int64_t n) { lm_storen_f32((float*)p, lm_as_float_vf(x), n); }
LM_INLINE void lm_storem_i32(int32_t* p, lm_vi x, lm_vi m) { lm_storem_f32((float*)p, lm_as_float_vf(x), m); }
)c"},
    {R"c(//: lm_load_u32 lm_loadn_u32 lm_loadm_u32 lm_store_u32 lm_storen_u32 lm_storem_u32
LM_INLINE lm_vu lm_load_u32(const uint32_t* p) { return (lm_vu)lm_load_i32((const int32_t*)p); }
LM_INLINE lm_vu lm_loadn_u32(const uint32_t* p, int64_t n) { return (lm_vu)lm_loadn_i32((const int32_t*)p, n); }
LM_INLINE lm_vu lm_loadm_u32(const uint32_t* p, lm_vi m) { return (lm_vu)lm_loadm_i32((const int32_t*)p, m); }
LM_INLINE void lm_store_u32(uint32_t* p, lm_vu x) { lm_store_i32((int32_t*)p, (lm_vi)x); }
LM_INLINE void lm_storen_u32(uint32_t* p, lm_vu x, int64_t n) { lm_storen_i32((int32_t*)p, (lm_vi)x, n); }
LM_INLINE void lm_storem_u32(uint32_t* p, lm_vu x, lm_vi m) { lm_storem_i32((int32_t*)p, (lm_vi)x, m); }
)c"},
    {R"c(//: lm_load_h lm_loadn_h lm_loadm_h lm_store_h lm_storen_h lm_storem_h
LM_INLINE lm_vu lm_load_h(const uint16_t* p) { return lm_widen_h(*(const lm_vh_mem*)p); }
LM_INLINE void lm_store_h(uint16_t* p, lm_vu x) { *(lm_vh_mem*)p = lm_narrow_h(x); }
LM_INLINE lm_vu lm_loadn_h(const uint16_t* p, int64_t n) {
  uint16_t t[LM_LANES] = {0};
  for (int l = 0; l < n; ++l) t[l] = p[l];
  return lm_load_h(t);
}
LM_INLINE lm_vu lm_loadm_h(const uint16_t* p, lm_vi m) {
  if (!lm_any(~m)) return lm_load_h(p);
  uint16_t t[LM_LANES] = {0};
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) t[l] = p[l];
  return lm_load_h(t);
}
LM_INLINE void lm_storen_h(uint16_t* p, lm_vu x, int64_t n) {
  uint16_t t[LM_LANES];
  lm_store_h(t, x);
  for (int l = 0; l < n; ++l) p[l] = t[l];
}
LM_INLINE void lm_storem_h(uint16_t* p, lm_vu x, lm_vi m) {
  if (!lm_any(~m)) {
    lm_store_h(p, x);
    return;
  }
  uint16_t t[LM_LANES];
  lm_store_h(t, x);
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) p[l] = t[l];
}
)c"},
    {R"c(//: lm_load_b lm_loadn_b lm_loadm_b lm_store_b lm_storen_b lm_storem_b
LM_INLINE lm_vu lm_load_b(const uint8_t* p) { return lm_widen_b(*(const lm_vb_mem*)p); }
LM_INLINE void lm_store_b(uint8_t* p, lm_vu x) { *(lm_vb_mem*)p = lm_narrow_b(x); }
LM_INLINE lm_vu lm_loadn_b(const uint8_t* p, int64_t n) {
  uint8_t t[LM_LANES] = {0};
  for (int l = 0; l < n; ++l) t[l] = p[l];
  return lm_load_b(t);
}
LM_INLINE lm_vu lm_loadm_b(const uint8_t* p, lm_vi m) {
  if (!lm_any(~m)) return lm_load_b(p);
  uint8_t t[LM_LANES] = {0};
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) t[l] = p[l];
  return lm_load_b(t);
}
LM_INLINE void lm_storen_b(uint8_t* p, lm_vu x, int64_t n) {
  uint8_t t[LM_LANES];
  lm_store_b(t, x);
  for (int l = 0; l < n; ++l) p[l] = t[l];
}
LM_INLINE void lm_storem_b(uint8_t* p, lm_vu x, lm_vi m) {
  if (!lm_any(~m)) {
    lm_store_b(p, x);
    return;
  }
  uint8_t t[LM_LANES];
  lm_store_b(t, x);
  for (int l = 0; l < LM_LANES; ++l) if (lm_get(m, l)) p[l] = t[l];
}
)c"},
    // Lane l gets lane l ^ h; h is a constant.
    {R"c(//: lm_swap_vf lm_swap_vi lm_swap_vu
#if defined(LM_BYTES) && !defined(__clang__)
#define lm_swap_vf(x, h) __builtin_shuffle((x), lm_iota ^ (h))
#define lm_swap_vi(x, h) __builtin_shuffle((x), lm_iota ^ (h))
#define lm_swap_vu(x, h) __builtin_shuffle((x), lm_iota ^ (h))
#else
LM_INLINE lm_vf lm_swap_vf(lm_vf x, int h) { lm_vf r = x; for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_get(x, l ^ h)); return r; }
LM_INLINE lm_vi lm_swap_vi(lm_vi x, int h) { lm_vi r = x; for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_get(x, l ^ h)); return r; }
LM_INLINE lm_vu lm_swap_vu(lm_vu x, int h) { lm_vu r = x; for (int l = 0; l < LM_LANES; ++l) lm_set(r, l, lm_get(x, l ^ h)); return r; }
#endif
)c"},
    {R"c(//: lm_hsum_vf
LM_INLINE float lm_hsum_vf(lm_vf x) {
  float t[LM_LANES];
  memcpy(t, &x, sizeof t);
  for (int h = LM_LANES / 2; h > 0; h /= 2) {
    for (int l = 0; l < h; ++l) t[l] += t[l + h];
  }
  return t[0];
}
)c"},
    {R"c(//: lm_fail
LM_NOINLINE void lm_fail(int32_t* status, int32_t code) {
#if defined(__GNUC__)
  __atomic_store_n(status, code, __ATOMIC_RELAXED);
#else
  *(volatile int32_t*)status = code;
#endif
}
)c"},
    {R"c(//: lm_round_up
LM_INLINE int64_t lm_round_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }
)c"},
};

}  // namespace

std::span<const Piece> basic_pieces() { return kBasic; }

}  // namespace lemma::emit
