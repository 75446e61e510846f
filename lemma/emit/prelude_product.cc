// Register tiles of matrix products. A tile is MR rows by NV vectors, every loop over it unrolled, so that the
// accumulators stay in registers; the body stands in a function of its own to keep the register allocator's region
// small. `rows` points at MR rows of the left operand, contiguous along k; `b` advances `ldb` elements a step of k.

#include "lemma/emit/prelude_pieces.h"

namespace lemma::emit {
namespace {

constexpr Piece kProduct[] = {
    {R"c(//: LM_TILE_F32
#define LM_TILE_F32(name, MR, NV) \
  LM_NOINLINE void name(int64_t kc, const float* const* rows, const float* b, int64_t ldb, float* c, int64_t ldc, int32_t add) { \
    lm_vf acc[MR][NV]; \
    const float* a[MR]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      a[i] = rows[i]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = lm_splat_vf(0); \
    } \
    for (int64_t k = 0; k < kc; ++k) { \
      lm_vf bv[NV]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) bv[j] = lm_load_f32(b + j * LM_LANES); \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vf x = lm_splat_vf(a[i][k]); \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + bv[j] * x; \
      } \
      b += ldb; \
    } \
    if (add) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + lm_load_f32(c + i * ldc + j * LM_LANES); \
      } \
    } \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) lm_store_f32(c + i * ldc + j * LM_LANES, acc[i][j]); \
    } \
  }
)c"},
    // Of doubles, half as many in a vector.
    {R"c(//: LM_DOUBLES LM_TILE_F64
#if defined(LM_BYTES)
#define LM_DOUBLES (LM_BYTES / 8)
typedef double lm_vd __attribute__((vector_size(LM_BYTES)));
typedef double lm_vd_mem __attribute__((vector_size(LM_BYTES), aligned(8), may_alias));
#define lm_splat_vd(x) ((x) - (lm_vd){0})
#else
#define LM_DOUBLES 1
typedef double lm_vd;
typedef double lm_vd_mem;
#define lm_splat_vd(x) (x)
#endif
#define LM_TILE_F64(name, MR, NV) \
  LM_NOINLINE void name(int64_t kc, const double* const* rows, const double* b, int64_t ldb, double* c, int64_t ldc, int32_t add) { \
    lm_vd acc[MR][NV]; \
    const double* a[MR]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      a[i] = rows[i]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = lm_splat_vd(0.0); \
    } \
    for (int64_t k = 0; k < kc; ++k) { \
      lm_vd bv[NV]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) bv[j] = *(const lm_vd_mem*)(b + j * LM_DOUBLES); \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vd x = lm_splat_vd(a[i][k]); \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + bv[j] * x; \
      } \
      b += ldb; \
    } \
    if (add) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + *(const lm_vd_mem*)(c + i * ldc + j * LM_DOUBLES); \
      } \
    } \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) *(lm_vd_mem*)(c + i * ldc + j * LM_DOUBLES) = acc[i][j]; \
    } \
  }
)c"},
    // Less than a whole tile of an operand that is not packed.
    {R"c(//: lm_tile_edge_f64
LM_NOINLINE void lm_tile_edge_f64(int64_t kc, const double* const* rows, const double* b, int64_t ldb, double* c, int64_t ldc, int32_t add, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    double* LM_RESTRICT t = c + i * ldc;
    if (!add) {
      for (int64_t j = 0; j < n; ++j) t[j] = 0;
    }
    for (int64_t k = 0; k < kc; ++k) {
      const double x = rows[i][k];
      for (int64_t j = 0; j < n; ++j) t[j] += b[k * ldb + j] * x;
    }
  }
}
)c"},
    // A tile whose left operand is read at shifted places, tap after tap.
    {R"c(//: LM_TAPS_F32
#define LM_TAPS_F32(name, MR, NV) \
  LM_NOINLINE void name(int64_t taps, const int64_t* a_shift, const int64_t* b_shift, int64_t kc, const float* const* rows, const float* b, int64_t ldb, float* c, int64_t ldc, int32_t add) { \
    lm_vf acc[MR][NV]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = lm_splat_vf(0); \
    } \
    for (int64_t t = 0; t < taps; ++t) { \
      const float* a[MR]; \
      const float* p = b + b_shift[t]; \
      LM_UNROLL for (int i = 0; i < MR; ++i) a[i] = rows[i] + a_shift[t]; \
      for (int64_t k = 0; k < kc; ++k) { \
        lm_vf bv[NV]; \
        LM_UNROLL for (int j = 0; j < NV; ++j) bv[j] = lm_load_f32(p + j * LM_LANES); \
        LM_UNROLL for (int i = 0; i < MR; ++i) { \
          const lm_vf x = lm_splat_vf(a[i][k]); \
          LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + bv[j] * x; \
        } \
        p += ldb; \
      } \
    } \
    if (add) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + lm_load_f32(c + i * ldc + j * LM_LANES); \
      } \
    } \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) lm_store_f32(c + i * ldc + j * LM_LANES, acc[i][j]); \
    } \
  }
)c"},
    // One vector of columns, n of them real: the last columns of an operand that is not packed.
    {R"c(//: LM_TILE_EDGE_F32
#define LM_TILE_EDGE_F32(name, MR) \
  LM_NOINLINE void name(int64_t kc, const float* const* rows, const float* b, int64_t ldb, float* c, int64_t ldc, int32_t add, int64_t m, int64_t n) { \
    lm_vf acc[MR]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) acc[i] = lm_splat_vf(0); \
    for (int64_t k = 0; k < kc; ++k) { \
      const lm_vf bv = lm_loadm_f32(b, lm_first(n)); \
      LM_UNROLL for (int i = 0; i < MR; ++i) acc[i] = acc[i] + bv * lm_splat_vf(rows[i][k]); \
      b += ldb; \
    } \
    for (int64_t i = 0; i < m; ++i) { \
      lm_vf x = acc[i]; \
      if (add) x = x + lm_loadm_f32(c + i * ldc, lm_first(n)); \
      lm_storem_f32(c + i * ldc, x, lm_first(n)); \
    } \
  }
)c"},
    // Few rows: B streams by once, eight of its rows side by side; C's columns at hand stay in cache. Rows that lie a power
    // of two apart would share a cache set, so more than four of them are kept aside.
    {R"c(//: lm_few_columns_f32 lm_few_rows_f32
LM_INLINE void lm_few_columns_f32(int64_t m, int64_t n, int64_t kc, const float* const* rows, const float* LM_RESTRICT b, int64_t ldb, float* LM_RESTRICT c, int64_t ldc) {
  int64_t k = 0;
  for (; k + 8 <= kc; k += 8) {
    const float* p = b + k * ldb;
    float a[16][8];
    for (int64_t i = 0; i < m; ++i) memcpy(a[i], rows[i] + k, sizeof a[i]);
    int64_t j = 0;
    for (; j + LM_LANES <= n; j += LM_LANES) {
      lm_vf v[8];
      LM_UNROLL for (int u = 0; u < 8; ++u) v[u] = lm_load_f32(p + u * ldb + j);
      for (int64_t i = 0; i < m; ++i) {
        lm_vf x = lm_load_f32(c + i * ldc + j), y = lm_splat_vf(0);
        LM_UNROLL for (int u = 0; u < 8; u += 2) {
          x = x + v[u] * lm_splat_vf(a[i][u]);
          y = y + v[u + 1] * lm_splat_vf(a[i][u + 1]);
        }
        lm_store_f32(c + i * ldc + j, x + y);
      }
    }
    for (; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        float x = c[i * ldc + j];
        for (int u = 0; u < 8; ++u) x += p[u * ldb + j] * a[i][u];
        c[i * ldc + j] = x;
      }
    }
  }
  for (; k < kc; ++k) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] += b[k * ldb + j] * rows[i][k];
    }
  }
}
LM_NOINLINE void lm_few_rows_f32(int64_t m, int64_t n, int64_t kc, const float* const* rows, const float* LM_RESTRICT b, int64_t ldb, float* LM_RESTRICT c, int64_t ldc, int32_t add) {
  if (!add) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = 0;
    }
  }
  if (m <= 4) {
    for (int64_t n0 = 0; n0 < n; n0 += 4096) lm_few_columns_f32(m, n - n0 < 4096 ? n - n0 : 4096, kc, rows, b + n0, ldb, c + n0, ldc);
    return;
  }
  for (int64_t n0 = 0; n0 < n; n0 += 2048) {
    const int64_t columns = n - n0 < 2048 ? n - n0 : 2048;
    float t[16][2048 + 16];
    for (int64_t i = 0; i < m; ++i) memcpy(t[i], c + i * ldc + n0, sizeof(float) * (size_t)columns);
    lm_few_columns_f32(m, columns, kc, rows, b + n0, ldb, t[0], 2048 + 16);
    for (int64_t i = 0; i < m; ++i) memcpy(c + i * ldc + n0, t[i], sizeof(float) * (size_t)columns);
  }
}
)c"},
    // Pairs of bf16 along k in one 32-bit lane; sums in f32. Without the instruction the halves are widened.
    {R"c(//: lm_pair_product lm_pair
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512BF16__)
#define lm_pair_product(acc, a, b) __asm__("vdpbf16ps %1, %2, %0" : "+v"(acc) : "v"(b), "v"(a))
#else
#define lm_pair_product(acc, a, b) \
  ((acc) = (acc) + lm_as_float_vf((lm_vi)((b) << 16)) * lm_as_float_vf((lm_vi)((a) << 16)) + \
           lm_as_float_vf((lm_vi)((b) & 0xffff0000u)) * lm_as_float_vf((lm_vi)((a) & 0xffff0000u)))
#endif
LM_INLINE uint32_t lm_pair(const uint16_t* p) { uint32_t u; memcpy(&u, p, 4); return u; }
)c"},
    {R"c(//: LM_TILE_BF16
#define LM_TILE_BF16(name, MR, NV) \
  LM_NOINLINE void name(int64_t kc, const uint16_t* const* rows, const uint16_t* b, int64_t ldb, float* c, int64_t ldc, int32_t add) { \
    lm_vf acc[MR][NV]; \
    const uint16_t* a[MR]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      a[i] = rows[i]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = lm_splat_vf(0); \
    } \
    int64_t k = 0; \
    for (; k + 2 <= kc; k += 2) { \
      lm_vu bv[NV]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) bv[j] = lm_load_u32((const uint32_t*)(const void*)b + j * LM_LANES); \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vu x = lm_splat_vu(lm_pair(a[i] + k)); \
        LM_UNROLL for (int j = 0; j < NV; ++j) lm_pair_product(acc[i][j], x, bv[j]); \
      } \
      b += 2 * ldb; \
    } \
    if (k < kc) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vu x = lm_splat_vu(a[i][k]); \
        LM_UNROLL for (int j = 0; j < NV; ++j) { \
          const lm_vu bv = lm_load_u32((const uint32_t*)(const void*)b + j * LM_LANES) & 0xffffu; \
          lm_pair_product(acc[i][j], x, bv); \
        } \
      } \
    } \
    if (add) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + lm_load_f32(c + i * ldc + j * LM_LANES); \
      } \
    } \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) lm_store_f32(c + i * ldc + j * LM_LANES, acc[i][j]); \
    } \
  }
)c"},
    // Pairs of i16 along k in one 32-bit lane; both products are added to the lane, which wraps.
    {R"c(//: lm_pair_words
#if defined(LM_BYTES) && LM_BYTES == 64 && defined(__AVX512VNNI__)
#define lm_pair_words(acc, a, b) __asm__("vpdpwssd %1, %2, %0" : "+v"(acc) : "v"(b), "v"(a))
#elif defined(LM_BYTES) && ((LM_BYTES == 64 && defined(__AVX512BW__)) || (LM_BYTES == 32 && defined(__AVX2__)))
LM_INLINE lm_vi lm_word_products(lm_vu a, lm_vu b) {
  lm_vi out;
  __asm__("vpmaddwd %1, %2, %0" : "=v"(out) : "v"(b), "v"(a));
  return out;
}
#define lm_pair_words(acc, a, b) ((acc) = (acc) + lm_word_products(a, b))
#else
#define lm_pair_words(acc, a, b) \
  ((acc) = (acc) + ((lm_vi)((b) << 16) >> 16) * ((lm_vi)((a) << 16) >> 16) + ((lm_vi)(b) >> 16) * ((lm_vi)(a) >> 16))
#endif
)c"},
    {R"c(//: LM_TILE_I16
#define LM_TILE_I16(name, MR, NV) \
  LM_NOINLINE void name(int64_t kc, const uint16_t* const* rows, const uint16_t* b, int64_t ldb, int32_t* c, int64_t ldc, int32_t add) { \
    lm_vi acc[MR][NV]; \
    const uint16_t* a[MR]; \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      a[i] = rows[i]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = lm_splat_vi(0); \
    } \
    int64_t k = 0; \
    for (; k + 2 <= kc; k += 2) { \
      lm_vu bv[NV]; \
      LM_UNROLL for (int j = 0; j < NV; ++j) bv[j] = lm_load_u32((const uint32_t*)(const void*)b + j * LM_LANES); \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vu x = lm_splat_vu(lm_pair(a[i] + k)); \
        LM_UNROLL for (int j = 0; j < NV; ++j) lm_pair_words(acc[i][j], x, bv[j]); \
      } \
      b += 2 * ldb; \
    } \
    if (k < kc) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        const lm_vu x = lm_splat_vu(a[i][k]); \
        LM_UNROLL for (int j = 0; j < NV; ++j) { \
          const lm_vu bv = lm_load_u32((const uint32_t*)(const void*)b + j * LM_LANES) & 0xffffu; \
          lm_pair_words(acc[i][j], x, bv); \
        } \
      } \
    } \
    if (add) { \
      LM_UNROLL for (int i = 0; i < MR; ++i) { \
        LM_UNROLL for (int j = 0; j < NV; ++j) acc[i][j] = acc[i][j] + lm_load_i32(c + i * ldc + j * LM_LANES); \
      } \
    } \
    LM_UNROLL for (int i = 0; i < MR; ++i) { \
      LM_UNROLL for (int j = 0; j < NV; ++j) lm_store_i32(c + i * ldc + j * LM_LANES, acc[i][j]); \
    } \
  }
)c"},
    {R"c(//: lm_take_words
LM_NOINLINE void lm_take_words(const int32_t* t, int64_t width, int32_t* c, int64_t ldc, int64_t m, int64_t n, int32_t add) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      c[i * ldc + j] = (int32_t)((uint32_t)t[i * width + j] + (add ? (uint32_t)c[i * ldc + j] : 0));
    }
  }
}
)c"},
    // The valid part of a whole tile that was computed aside.
    {R"c(//: lm_take_tile
LM_NOINLINE void lm_take_tile(const float* t, int64_t width, float* c, int64_t ldc, int64_t m, int64_t n, int32_t add) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = add ? c[i * ldc + j] + t[i * width + j] : t[i * width + j];
  }
}
)c"},
    {R"c(//: lm_take_doubles
LM_NOINLINE void lm_take_doubles(const double* t, int64_t width, double* c, int64_t ldc, int64_t m, int64_t n, int32_t add) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = add ? c[i * ldc + j] + t[i * width + j] : t[i * width + j];
  }
}
)c"},
};

}  // namespace

std::span<const Piece> product_pieces() { return kProduct; }

}  // namespace lemma::emit
