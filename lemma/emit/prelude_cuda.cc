#include "lemma/emit/prelude_cuda.h"

namespace lemma::emit {

std::string_view cuda_prelude() {
  return R"cuda(//: LM_KERNEL LM_DEVICE LM_GLOBAL LM_POINTER LM_SHARED LM_SHARED_POOL LM_AT LM_UNROLL LM_UNROLL_4 LM_INFINITY
#define LM_KERNEL(name, max_threads) extern "C" __global__ void __launch_bounds__(max_threads) name
#define LM_DEVICE __device__ __forceinline__
#define LM_GLOBAL(T) T* __restrict__
#define LM_POINTER(T) lm_pointer_<T>
#define LM_SHARED(T, name, count) __shared__ __align__(16) T name[count]
#define LM_SHARED_POOL(name) extern __shared__ __align__(1024) unsigned char name[]
#define LM_AT(n) ((void)0)
#define LM_UNROLL _Pragma("unroll")
#define LM_UNROLL_4 _Pragma("unroll 4")
#define LM_INFINITY __int_as_float(0x7f800000)
template <class T> using lm_pointer_ = T*;
//: LM_TID LM_LANE LM_WARP LM_BLOCK_X LM_BLOCK_Y LM_BLOCK_Z LM_GRID_X LM_GRID_Y LM_GRID_Z
#define LM_TID ((int)threadIdx.x)
#define LM_LANE ((int)threadIdx.x & 31)
#define LM_WARP ((int)threadIdx.x >> 5)
#define LM_BLOCK_X ((int)blockIdx.x)
#define LM_BLOCK_Y ((int)blockIdx.y)
#define LM_BLOCK_Z ((int)blockIdx.z)
#define LM_GRID_X ((int)gridDim.x)
#define LM_GRID_Y ((int)gridDim.y)
#define LM_GRID_Z ((int)gridDim.z)
//: lm_plain lm_plain_
template <class T> struct lm_plain_ { typedef T type; };
template <class T> struct lm_plain_<const T> { typedef T type; };
template <class T> using lm_plain = typename lm_plain_<T>::type;
//: lm_bf16 lm_f16 lm_mbarrier
struct lm_bf16 { unsigned short bits; };
struct lm_f16 { unsigned short bits; };
struct lm_mbarrier { unsigned long long state; };
//: lm_float_bits lm_bits_float
LM_DEVICE unsigned lm_float_bits(float x) { return __float_as_uint(x); }
LM_DEVICE float lm_bits_float(unsigned x) { return __uint_as_float(x); }
//: lm_to_float lm_to_bf16 lm_to_f16 lm_to_tf32 lm_pack
LM_DEVICE float lm_to_float(lm_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
LM_DEVICE float lm_to_float(lm_f16 x) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
  return out;
}
LM_DEVICE lm_bf16 lm_to_bf16(float x) {
  lm_bf16 out;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
  return out;
}
LM_DEVICE lm_f16 lm_to_f16(float x) {
  lm_f16 out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
  return out;
}
LM_DEVICE unsigned lm_to_tf32(float x) {
  unsigned out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}
LM_DEVICE unsigned lm_pack(lm_bf16 low, lm_bf16 high) { return low.bits | (unsigned)high.bits << 16; }
LM_DEVICE unsigned lm_pack(lm_f16 low, lm_f16 high) { return low.bits | (unsigned)high.bits << 16; }
//: lm_max_nan lm_min_nan
LM_DEVICE float lm_max_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
LM_DEVICE float lm_min_nan(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
//: lm_exp2_approx lm_fma
LM_DEVICE float lm_exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
LM_DEVICE float lm_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
//: lm_shared_at
template <class T>
LM_DEVICE T* lm_shared_at(unsigned char* pool, long long byte_offset) {
  return reinterpret_cast<T*>(pool + byte_offset);
}
//: lm_vec lm_load lm_store lm_chunk_
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) lm_vec {
  T elements[N];
  __device__ T& operator[](int i) { return elements[i]; }
  __device__ const T& operator[](int i) const { return elements[i]; }
};
template <int bytes> struct lm_chunk_ { typedef uint4 type; };
template <> struct lm_chunk_<8> { typedef uint2 type; };
template <> struct lm_chunk_<4> { typedef unsigned type; };
template <> struct lm_chunk_<2> { typedef unsigned short type; };
template <> struct lm_chunk_<1> { typedef unsigned char type; };
template <int N, class T>
LM_DEVICE lm_vec<lm_plain<T>, N> lm_load(T* from, long long index) {
  typedef typename lm_chunk_<sizeof(T) * N>::type chunk;
  union { lm_vec<lm_plain<T>, N> value; chunk chunks[sizeof(T) * N / sizeof(chunk)]; } out;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * N / sizeof(chunk)); ++i) out.chunks[i] = reinterpret_cast<const chunk*>(from + index)[i];
  return out.value;
}
template <int N, class T>
LM_DEVICE void lm_store(T* to, long long index, lm_vec<T, N> value) {
  typedef typename lm_chunk_<sizeof(T) * N>::type chunk;
  union { lm_vec<T, N> value; chunk chunks[sizeof(T) * N / sizeof(chunk)]; } in = {value};
#pragma unroll
  for (int i = 0; i < int(sizeof(T) * N / sizeof(chunk)); ++i) reinterpret_cast<chunk*>(to + index)[i] = in.chunks[i];
}
//: lm_atomic_add
template <class T> LM_DEVICE T lm_atomic_add(T* to, long long index, lm_plain<T> value) { return atomicAdd(to + index, value); }
LM_DEVICE long long lm_atomic_add(long long* to, long long index, long long value) {
  return (long long)atomicAdd(reinterpret_cast<unsigned long long*>(to + index), (unsigned long long)value);
}
//: lm_atomic_max lm_atomic_min
template <class T> LM_DEVICE T lm_atomic_max(T* to, long long index, lm_plain<T> value) { return atomicMax(to + index, value); }
template <class T> LM_DEVICE T lm_atomic_min(T* to, long long index, lm_plain<T> value) { return atomicMin(to + index, value); }
LM_DEVICE float lm_atomic_max(float* to, long long index, float value) {
  unsigned* word = reinterpret_cast<unsigned*>(to + index);
  unsigned before = *reinterpret_cast<volatile unsigned*>(word);
  while (__uint_as_float(before) < value) {
    const unsigned found = atomicCAS(word, before, __float_as_uint(value));
    if (found == before) break;
    before = found;
  }
  return __uint_as_float(before);
}
LM_DEVICE float lm_atomic_min(float* to, long long index, float value) {
  unsigned* word = reinterpret_cast<unsigned*>(to + index);
  unsigned before = *reinterpret_cast<volatile unsigned*>(word);
  while (value < __uint_as_float(before)) {
    const unsigned found = atomicCAS(word, before, __float_as_uint(value));
    if (found == before) break;
    before = found;
  }
  return __uint_as_float(before);
}
//: lm_atomic_or lm_atomic_and lm_atomic_xor lm_atomic_exchange lm_atomic_compare
template <class T> LM_DEVICE T lm_atomic_or(T* to, long long index, lm_plain<T> value) { return atomicOr(to + index, value); }
template <class T> LM_DEVICE T lm_atomic_and(T* to, long long index, lm_plain<T> value) { return atomicAnd(to + index, value); }
template <class T> LM_DEVICE T lm_atomic_xor(T* to, long long index, lm_plain<T> value) { return atomicXor(to + index, value); }
template <class T> LM_DEVICE T lm_atomic_exchange(T* to, long long index, lm_plain<T> value) { return atomicExch(to + index, value); }
template <class T>
LM_DEVICE T lm_atomic_compare(T* to, long long index, lm_plain<T> expected, lm_plain<T> value) {
  return atomicCAS(to + index, expected, value);
}
//: lm_barrier lm_barrier_named lm_barrier_arrive lm_warp_sync lm_fence_async
LM_DEVICE void lm_barrier() { __syncthreads(); }
LM_DEVICE void lm_barrier_named(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
LM_DEVICE void lm_barrier_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
LM_DEVICE void lm_warp_sync() { __syncwarp(); }
LM_DEVICE void lm_fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
//: lm_shuffle lm_shuffle_xor lm_shuffle_down
LM_DEVICE float lm_shuffle(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
LM_DEVICE int lm_shuffle(int value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
LM_DEVICE unsigned lm_shuffle(unsigned value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
LM_DEVICE double lm_shuffle(double value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
LM_DEVICE float lm_shuffle_xor(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
LM_DEVICE int lm_shuffle_xor(int value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
LM_DEVICE unsigned lm_shuffle_xor(unsigned value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
LM_DEVICE double lm_shuffle_xor(double value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
LM_DEVICE float lm_shuffle_down(float value, int delta) { return __shfl_down_sync(0xffffffffu, value, delta); }
LM_DEVICE int lm_shuffle_down(int value, int delta) { return __shfl_down_sync(0xffffffffu, value, delta); }
LM_DEVICE unsigned lm_shuffle_down(unsigned value, int delta) { return __shfl_down_sync(0xffffffffu, value, delta); }
LM_DEVICE double lm_shuffle_down(double value, int delta) { return __shfl_down_sync(0xffffffffu, value, delta); }
//: lm_shared_address_ lm_global_address_
LM_DEVICE unsigned lm_shared_address_(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
LM_DEVICE unsigned long long lm_global_address_(const void* p) { return (unsigned long long)__cvta_generic_to_global(p); }
//: lm_ldmatrix_x1 lm_ldmatrix_x2 lm_ldmatrix_x4
template <class T>
LM_DEVICE void lm_ldmatrix_x1(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0]) : "r"(lm_shared_address_(row + index)) : "memory");
}
template <class T>
LM_DEVICE void lm_ldmatrix_x2(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(lm_shared_address_(row + index)) : "memory");
}
template <class T>
LM_DEVICE void lm_ldmatrix_x4(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(lm_shared_address_(row + index)) : "memory");
}
//: lm_ldmatrix_x1_trans lm_ldmatrix_x2_trans lm_ldmatrix_x4_trans
template <class T>
LM_DEVICE void lm_ldmatrix_x1_trans(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0]) : "r"(lm_shared_address_(row + index)) : "memory");
}
template <class T>
LM_DEVICE void lm_ldmatrix_x2_trans(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(lm_shared_address_(row + index)) : "memory");
}
template <class T>
LM_DEVICE void lm_ldmatrix_x4_trans(unsigned* r, T* row, long long index) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(lm_shared_address_(row + index)) : "memory");
}
//: lm_mma_m16n8k16_bf16 lm_mma_m16n8k16_f16 lm_mma_m16n8k8_tf32 lm_mma_m16n8k32_s8
#define LM_MMA_(name, shape, accumulator, constraint)                                                     \
  LM_DEVICE void name(accumulator* c, const unsigned* a, const unsigned* b) {                             \
    asm("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"      \
        : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3])                          \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                              \
  }
LM_MMA_(lm_mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "+f")
LM_MMA_(lm_mma_m16n8k16_f16, "m16n8k16.row.col.f32.f16.f16.f32", float, "+f")
LM_MMA_(lm_mma_m16n8k8_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "+f")
LM_MMA_(lm_mma_m16n8k32_s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "+r")
//: lm_copy_async lm_copy_commit lm_copy_wait lm_copy_wait_all
template <int bytes, class T, class S>
LM_DEVICE void lm_copy_async(T* to, long long to_index, S* from, long long from_index, int valid_bytes = bytes) {
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(lm_shared_address_(to + to_index)),
                 "l"(lm_global_address_(from + from_index)), "r"(valid_bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(lm_shared_address_(to + to_index)),
                 "l"(lm_global_address_(from + from_index)), "n"(bytes), "r"(valid_bytes) : "memory");
  }
}
LM_DEVICE void lm_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int newer> LM_DEVICE void lm_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(newer) : "memory"); }
LM_DEVICE void lm_copy_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
//: lm_mbarrier_init lm_mbarrier_arrive lm_mbarrier_arrive_expect lm_mbarrier_try_wait_parity lm_mbarrier_wait_parity
LM_DEVICE void lm_mbarrier_init(lm_mbarrier* b, long long i, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;"
               ::"r"(lm_shared_address_(b + i)), "r"(arrivals) : "memory");
}
LM_DEVICE void lm_mbarrier_arrive(lm_mbarrier* b, long long i) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(lm_shared_address_(b + i)) : "memory");
}
LM_DEVICE void lm_mbarrier_arrive_expect(lm_mbarrier* b, long long i, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(lm_shared_address_(b + i)), "r"(bytes) : "memory");
}
LM_DEVICE bool lm_mbarrier_try_wait_parity(lm_mbarrier* b, long long i, int parity) {
  unsigned done;
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(done) : "r"(lm_shared_address_(b + i)), "r"(parity) : "memory");
  return done != 0;
}
LM_DEVICE void lm_mbarrier_wait_parity(lm_mbarrier* b, long long i, int parity) {
  while (!lm_mbarrier_try_wait_parity(b, i, parity)) {
  }
}
//: lm_bulk_load lm_bulk_store lm_bulk_commit lm_bulk_wait lm_bulk_wait_read
template <class T, class S>
LM_DEVICE void lm_bulk_load(T* to, long long to_index, S* from, long long from_index, int bytes, lm_mbarrier* b, long long i) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(lm_shared_address_(to + to_index)), "l"(lm_global_address_(from + from_index)), "r"(bytes),
               "r"(lm_shared_address_(b + i)) : "memory");
}
template <class T, class S>
LM_DEVICE void lm_bulk_store(T* to, long long to_index, S* from, long long from_index, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               ::"l"(lm_global_address_(to + to_index)), "r"(lm_shared_address_(from + from_index)), "r"(bytes) : "memory");
}
LM_DEVICE void lm_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int newer> LM_DEVICE void lm_bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(newer) : "memory"); }
template <int newer> LM_DEVICE void lm_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(newer) : "memory");
}
)cuda";
}

}  // namespace lemma::emit
