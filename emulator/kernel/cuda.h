// The neutral names of CUDA text (LM_..., lm_...) as the emulator means them. lemma/emit/prelude_cuda.cc has the same
// names for the device: what one knows, the other must.
#pragma once

#include "emulator/kernel/memory.h"
#include "emulator/kernel/numbers.h"

#define LM_EMULATOR 1
#define LM_KERNEL(name, max_threads)        \
  enum { lm_threads_##name = max_threads }; \
  static void lm_kernel_##name
#define LM_DEVICE static inline
#define LM_GLOBAL(T) lemma::emulator::Pointer<T>
#define LM_POINTER(T) lemma::emulator::Pointer<T>
#define LM_SHARED(T, name, count) \
  const lemma::emulator::Pointer<T> name = lemma::emulator::shared<T>(__COUNTER__, #name, count)
#define LM_SHARED_POOL(name) \
  lemma::emulator::Buffer* const name = lemma::emulator::current->host->shared_pool(lemma::emulator::current)
#define LM_TID (lemma::emulator::current->index)
#define LM_LANE (lemma::emulator::current->index & 31)
#define LM_WARP (lemma::emulator::current->index >> 5)
#define LM_BLOCK_X (lemma::emulator::current->block[0])
#define LM_BLOCK_Y (lemma::emulator::current->block[1])
#define LM_BLOCK_Z (lemma::emulator::current->block[2])
#define LM_GRID_X (lemma::emulator::current->blocks[0])
#define LM_GRID_Y (lemma::emulator::current->blocks[1])
#define LM_GRID_Z (lemma::emulator::current->blocks[2])
#define LM_AT(n) lemma::emulator::at(n)
#define LM_UNROLL
#define LM_UNROLL_4
#define LM_INFINITY __builtin_inff()

// How the engine reaches a kernel; one such line follows the text for each.
#define LM_ENTRY(name)                                                           \
  extern "C" void lm_entry_##name(const lemma::emulator::Arguments* arguments) { \
    lemma::emulator::call(&lm_kernel_##name, *arguments);                        \
  }                                                                              \
  extern "C" void lm_signature_##name(lemma::emulator::Signature* signature) {   \
    lemma::emulator::describe(&lm_kernel_##name, signature);                     \
    signature->threads = lm_threads_##name;                                      \
  }

// CUDA knows these without a header.
extern "C" {
float expf(float), exp2f(float), expm1f(float), logf(float), log2f(float), log1pf(float), sqrtf(float), sinf(float);
float cosf(float), tanf(float), tanhf(float), erff(float), erfcf(float), powf(float, float), fabsf(float);
float fmaxf(float, float), fminf(float, float), fmaf(float, float, float), floorf(float), ceilf(float), truncf(float);
float rintf(float), roundf(float), fmodf(float, float), copysignf(float, float), atanf(float), atan2f(float, float);
double exp(double), exp2(double), log(double), log2(double), sqrt(double), sin(double), cos(double), tanh(double);
double pow(double, double), fabs(double), fmax(double, double), fmin(double, double), fma(double, double, double);
double floor(double), ceil(double), trunc(double), rint(double);
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

template <class T, int N>
using lm_vec = lemma::emulator::Vector<T, N>;

struct lm_bf16 {
  unsigned short bits;
};
struct lm_f16 {
  unsigned short bits;
};
struct lm_mbarrier {
  unsigned long long state;
};

inline float lm_to_float(lm_bf16 x) { return lemma::emulator::float_of_bf16(x.bits); }
inline float lm_to_float(lm_f16 x) { return lemma::emulator::float_of_f16(x.bits); }
inline lm_bf16 lm_to_bf16(float x) { return {lemma::emulator::bf16_bits(x)}; }
inline lm_f16 lm_to_f16(float x) { return {lemma::emulator::f16_bits(x)}; }
inline unsigned lm_to_tf32(float x) { return lemma::emulator::tf32_bits(x); }
inline unsigned lm_pack(lm_bf16 low, lm_bf16 high) { return low.bits | (unsigned)high.bits << 16; }
inline unsigned lm_pack(lm_f16 low, lm_f16 high) { return low.bits | (unsigned)high.bits << 16; }
inline unsigned lm_float_bits(float x) { return lemma::emulator::bits_of(x); }
inline float lm_bits_float(unsigned x) { return lemma::emulator::float_of(x); }

inline float lm_max_nan(float a, float b) { return a != a ? a : b != b ? b : a < b ? b : a; }
inline float lm_min_nan(float a, float b) { return a != a ? a : b != b ? b : b < a ? b : a; }
inline float lm_exp2_approx(float x) { return __builtin_exp2f(x); }
inline float lm_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

template <class T>
inline LM_POINTER(T) lm_shared_at(lemma::emulator::Buffer* pool, long long byte_offset) {
  return {{pool, byte_offset}};
}
template <int N, class T>
inline lm_vec<lemma::emulator::plain<T>, N> lm_load(LM_POINTER(T) from, long long index) {
  return lemma::emulator::load<N>(from, index);
}
template <int N, class T>
inline void lm_store(LM_POINTER(T) to, long long index, lm_vec<T, N> value) {
  lemma::emulator::store(to, index, value);
}

// Atomics return what was there before.
#define LM_ATOMIC_(name, expression)                                                        \
  template <class T>                                                                        \
  inline T name(LM_POINTER(T) to, long long index, lemma::emulator::plain<T> value) {       \
    return lemma::emulator::atomic(to, index, [value](T before) { return T(expression); }); \
  }
LM_ATOMIC_(lm_atomic_add, before + value)
LM_ATOMIC_(lm_atomic_max, before < value ? value : before)
LM_ATOMIC_(lm_atomic_min, value < before ? value : before)
LM_ATOMIC_(lm_atomic_or, before | value)
LM_ATOMIC_(lm_atomic_and, before& value)
LM_ATOMIC_(lm_atomic_xor, before ^ value)
LM_ATOMIC_(lm_atomic_exchange, value)
template <class T>
inline T lm_atomic_compare(LM_POINTER(T) to, long long index, lemma::emulator::plain<T> expected,
                           lemma::emulator::plain<T> value) {
  return lemma::emulator::atomic(to, index, [=](T before) { return before == expected ? value : before; });
}

#define LM_HOST_(function, ...) lemma::emulator::current->host->function(lemma::emulator::current, __VA_ARGS__)

inline void lm_barrier() { LM_HOST_(barrier, 0, 0, true); }
inline void lm_barrier_named(int id, int threads) { LM_HOST_(barrier, id, threads, true); }
inline void lm_barrier_arrive(int id, int threads) { LM_HOST_(barrier, id, threads, false); }
inline void lm_fence_async() { lemma::emulator::current->host->fence_async(lemma::emulator::current); }
inline void lm_warp_sync() { LM_HOST_(warp, lemma::emulator::WarpOperation::Sync, nullptr); }

template <class T>
inline T lm_exchange_(lemma::emulator::WarpOperation operation, T value, int operand) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move values of 32 or 64 bits");
  lemma::emulator::Exchange exchange = {0, operand};
  __builtin_memcpy(&exchange.value, &value, sizeof value);
  LM_HOST_(warp, operation, &exchange);
  __builtin_memcpy(&value, &exchange.value, sizeof value);
  return value;
}
#define LM_SHUFFLE_(name, operation)                                                                    \
  inline float name(float value, int operand) { return lm_exchange_(operation, value, operand); }       \
  inline int name(int value, int operand) { return lm_exchange_(operation, value, operand); }           \
  inline unsigned name(unsigned value, int operand) { return lm_exchange_(operation, value, operand); } \
  inline double name(double value, int operand) { return lm_exchange_(operation, value, operand); }
LM_SHUFFLE_(lm_shuffle, lemma::emulator::WarpOperation::Shuffle)
LM_SHUFFLE_(lm_shuffle_xor, lemma::emulator::WarpOperation::ShuffleXor)
LM_SHUFFLE_(lm_shuffle_down, lemma::emulator::WarpOperation::ShuffleDown)

// Matrices of 8 x 8 elements of 16 bits; lane l names row l % 8 of matrix l / 8.
#define LM_LDMATRIX_(name, count, operation)                                  \
  template <class T>                                                          \
  inline void name(unsigned* registers, LM_POINTER(T) row, long long index) { \
    static_assert(sizeof(T) == 2, "ldmatrix moves elements of 16 bits");      \
    lemma::emulator::MatrixLoad load = {registers, count, row.at(index)};     \
    LM_HOST_(warp, lemma::emulator::WarpOperation::operation, &load);         \
  }
LM_LDMATRIX_(lm_ldmatrix_x1, 1, LoadMatrix)
LM_LDMATRIX_(lm_ldmatrix_x2, 2, LoadMatrix)
LM_LDMATRIX_(lm_ldmatrix_x4, 4, LoadMatrix)
LM_LDMATRIX_(lm_ldmatrix_x1_trans, 1, LoadTransposed)
LM_LDMATRIX_(lm_ldmatrix_x2_trans, 2, LoadTransposed)
LM_LDMATRIX_(lm_ldmatrix_x4_trans, 4, LoadTransposed)

// c[4] += a * b, one warp; the fragments as documented for mma.sync.
#define LM_MMA_(name, accumulator, operation)                              \
  inline void name(accumulator* c, const unsigned* a, const unsigned* b) { \
    lemma::emulator::Product product = {c, a, b};                          \
    LM_HOST_(warp, lemma::emulator::WarpOperation::operation, &product);   \
  }
LM_MMA_(lm_mma_m16n8k16_bf16, float, ProductBf16)
LM_MMA_(lm_mma_m16n8k16_f16, float, ProductF16)
LM_MMA_(lm_mma_m16n8k8_tf32, float, ProductTf32)
LM_MMA_(lm_mma_m16n8k32_s8, int, ProductS8)

// Copies global -> shared behind the thread's back: visible to it after lm_copy_wait, to others after a barrier then.
// Only valid_bytes are read; zeros fill the rest.
template <int bytes, class T, class S>
inline void lm_copy_async(LM_POINTER(T) to, long long to_index, LM_POINTER(S) from, long long from_index,
                          int valid_bytes = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async moves 4, 8 or 16 bytes");
  LM_HOST_(copy_async, to.at(to_index), from.at(from_index), bytes, valid_bytes);
}
inline void lm_copy_commit() { lemma::emulator::current->host->copy_commit(lemma::emulator::current); }
template <int newer>
inline void lm_copy_wait() {
  LM_HOST_(copy_wait, newer);
}
inline void lm_copy_wait_all() { LM_HOST_(copy_wait, -1); }

inline void lm_mbarrier_init(LM_POINTER(lm_mbarrier) b, long long i, int arrivals) {
  LM_HOST_(mbarrier_init, b.at(i), arrivals);
}
inline void lm_mbarrier_arrive(LM_POINTER(lm_mbarrier) b, long long i) { LM_HOST_(mbarrier_arrive, b.at(i), 0); }
inline void lm_mbarrier_arrive_expect(LM_POINTER(lm_mbarrier) b, long long i, int bytes) {
  LM_HOST_(mbarrier_arrive, b.at(i), bytes);
}
inline bool lm_mbarrier_try_wait_parity(LM_POINTER(lm_mbarrier) b, long long i, int parity) {
  return LM_HOST_(mbarrier_wait, b.at(i), parity, false);
}
inline void lm_mbarrier_wait_parity(LM_POINTER(lm_mbarrier) b, long long i, int parity) {
  LM_HOST_(mbarrier_wait, b.at(i), parity, true);
}

// Bulk copies of multiples of 16 bytes by the copy engine; groups belong to the thread.
template <class T, class S>
inline void lm_bulk_load(LM_POINTER(T) to, long long to_index, LM_POINTER(S) from, long long from_index, int bytes,
                         LM_POINTER(lm_mbarrier) b, long long i) {
  LM_HOST_(bulk_load, to.at(to_index), from.at(from_index), bytes, b.at(i));
}
template <class T, class S>
inline void lm_bulk_store(LM_POINTER(T) to, long long to_index, LM_POINTER(S) from, long long from_index, int bytes) {
  LM_HOST_(bulk_store, to.at(to_index), from.at(from_index), bytes);
}
inline void lm_bulk_commit() { lemma::emulator::current->host->bulk_commit(lemma::emulator::current); }
template <int newer>
inline void lm_bulk_wait() {
  LM_HOST_(bulk_wait, newer, false);
}
template <int newer>
inline void lm_bulk_wait_read() {
  LM_HOST_(bulk_wait, newer, true);
}
