// The functions that emitted device text stands on. The C family shares one text, in which $ names stand for what its
// members call differently.
#include "lemma/emit/device/dialect.h"

#include "lemma/emit/prelude_cuda.h"

#include <string>
#include <vector>

namespace lemma::emit::device {
namespace {

constexpr std::string_view kCudaHead = R"(
LM_DEVICE float lm_as_float(unsigned int x) { return lm_bits_float(x); }
LM_DEVICE unsigned int lm_as_uint(float x) { return lm_float_bits(x); }
LM_DEVICE double lm_as_double(unsigned long long x) { union { unsigned long long u; double d; } v; v.u = x; return v.d; }
// 2^x by the special function unit, 2^-22.7 of it off; what would be denormal is 0. Of e^x the product's rounding is made good.
// To 30 bits and a sign.
LM_DEVICE int lm_cut(long long x) { return x > 1073741824ll ? 1073741824 : x < -1073741824ll ? -1073741824 : (int)x; }
LM_DEVICE float lm_max_f32(float a, float b) { return lm_max_nan(a, b); }
LM_DEVICE float lm_min_f32(float a, float b) { return lm_min_nan(a, b); }
LM_DEVICE float lm_exp2_f32(float x) { return lm_exp2_approx(x); }
LM_DEVICE float lm_exp_rounded_f32(float x) { return lm_exp2_approx(x * 1.44269504f); }
LM_DEVICE float lm_exp_f32(float x) {
  const float h = x * 1.44269502f, y = lm_exp2_approx(h);
  const float l = lm_fma(x, 1.44269502f, -h) + x * 1.92596299e-8f;
  return x < 88.7f && x > -104.0f ? lm_fma(y, l * 0.693147182f, y) : y;
}
LM_DEVICE unsigned long long lm_as_ulong(double x) { union { unsigned long long u; double d; } v; v.d = x; return v.u; }
)";

constexpr std::string_view kOpenClHead = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
float lm_as_float(uint x) { return as_float(x); }
uint lm_as_uint(float x) { return as_uint(x); }
double lm_as_double(ulong x) { return as_double(x); }
ulong lm_as_ulong(double x) { return as_ulong(x); }
#define lm_tid ((int)get_local_id(0))
#define lm_group ((int)get_group_id(0))
#define lm_groups ((int)get_num_groups(0))
#define lm_barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define lm_atomic_compare(p, i, old, word) atomic_cmpxchg(&(p)[i], old, word)
)";

constexpr std::string_view kMetalPreamble = R"(#include <metal_stdlib>
using namespace metal;
#define LM_KERNEL(name, threads) kernel void name
#define LM_PARAMETER(T, name, index) device T* name [[buffer(index)]]
#define LM_SIZES(name, index) constant long* name [[buffer(index)]]
#define LM_AND_IDS , LM_IDS
#define LM_IDS uint lm_tid_ [[thread_position_in_threadgroup]], uint lm_group_ [[threadgroup_position_in_grid]], uint lm_groups_ [[threadgroups_per_grid]]
#define LM_TID ((int)lm_tid_)
#define LM_BLOCK_X ((int)lm_group_)
#define LM_GRID_X ((int)lm_groups_)
#define LM_SHARED(T, name, count) threadgroup T name[count]
#define LM_AT(n)
#define lm_barrier() threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
inline float lm_as_float(uint x) { return as_type<float>(x); }
inline uint lm_as_uint(float x) { return as_type<uint>(x); }
inline uint lm_atomic_compare(device uint* p, long i, uint old, uint word) {
  atomic_compare_exchange_weak_explicit((device atomic_uint*)(p + i), &old, word, memory_order_relaxed, memory_order_relaxed);
  return old;
}
inline uint lm_atomic_compare(threadgroup uint* p, long i, uint old, uint word) {
  atomic_compare_exchange_weak_explicit((threadgroup atomic_uint*)(p + i), &old, word, memory_order_relaxed, memory_order_relaxed);
  return old;
}
)";

constexpr std::string_view kFloats = R"($fn bool lm_is_nan_f32(float x) { return (lm_as_uint(x) & 0x7fffffffu) > 0x7f800000u; }
$fn float lm_floordiv_f32(float a, float b) { return $floorf(a / b); }
$fn float lm_mod_f32(float a, float b) { const float r = a - $floorf(a / b) * b; return r; }
)";

constexpr std::string_view kExtremes = R"($fn float lm_max_f32(float a, float b) { return lm_is_nan_f32(a) ? a : lm_is_nan_f32(b) ? b : a < b ? b : a; }
$fn float lm_min_f32(float a, float b) { return lm_is_nan_f32(a) ? a : lm_is_nan_f32(b) ? b : b < a ? b : a; }
)";

constexpr std::string_view kDoubles = R"($fn $u64 lm_as_ulong2($u32 high, $u32 low) { return (($u64)high << 32) | low; }
$fn double lm_as_double2($u32 high, $u32 low) { return lm_as_double((($u64)high << 32) | low); }
$fn bool lm_is_nan_f64(double x) { return (lm_as_ulong(x) & 0x7fffffffffffffff$ul) > 0x7ff0000000000000$ul; }
$fn double lm_max_f64(double a, double b) { return lm_is_nan_f64(a) ? a : lm_is_nan_f64(b) ? b : a < b ? b : a; }
$fn double lm_min_f64(double a, double b) { return lm_is_nan_f64(a) ? a : lm_is_nan_f64(b) ? b : b < a ? b : a; }
$fn double lm_floordiv_f64(double a, double b) { return floor(a / b); }
$fn double lm_mod_f64(double a, double b) { return a - floor(a / b) * b; }
)";

// For an integer type: $t, $n its suffix, $w its unsigned type.
constexpr std::string_view kSigned = R"($fn $t lm_max_$n($t a, $t b) { return a < b ? b : a; }
$fn $t lm_min_$n($t a, $t b) { return b < a ? b : a; }
$fn $t lm_floordiv_$n($t a, $t b) {
  if (b == 0) return 0;
  if (b == -1) return ($t)(0 - ($w)a);
  const $t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
$fn $t lm_mod_$n($t a, $t b) {
  if (b == 0 || b == -1) return 0;
  const $t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
$fn $t lm_pow_$n($t x, $t n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? ((n & 1) != 0 ? -1 : 1) : 0;
  $w r = 1, b = ($w)x;
  for (; n != 0; n = n >> 1) { if ((n & 1) != 0) r = r * b; b = b * b; }
  return ($t)r;
}
)";
constexpr std::string_view kUnsigned = R"($fn $t lm_max_$n($t a, $t b) { return a < b ? b : a; }
$fn $t lm_min_$n($t a, $t b) { return b < a ? b : a; }
$fn $t lm_floordiv_$n($t a, $t b) { return b == 0 ? 0 : a / b; }
$fn $t lm_mod_$n($t a, $t b) { return b == 0 ? 0 : a % b; }
$fn $t lm_pow_$n($t x, $t n) {
  $t r = 1;
  for (; n != 0; n = n >> 1) { if ((n & 1) != 0) r = r * x; x = x * x; }
  return r;
}
)";
// From a float type $f with suffix $m: toward zero, saturating, nan to 0.
constexpr std::string_view kCasts = R"($fn $i32 lm_i32_of_$m($f x) { return lm_is_nan_$m(x) ? 0 : x >= 2147483648.0$e ? 2147483647 : x < -2147483648.0$e ? -2147483647 - 1 : ($i32)x; }
$fn $u32 lm_u32_of_$m($f x) { return lm_is_nan_$m(x) || x <= 0 ? 0u : x >= 4294967296.0$e ? 4294967295u : ($u32)x; }
$fn $i64 lm_i64_of_$m($f x) { return lm_is_nan_$m(x) ? 0 : x >= 9223372036854775808.0$e ? 9223372036854775807$l : x < -9223372036854775808.0$e ? -9223372036854775807$l - 1 : ($i64)x; }
$fn $u64 lm_u64_of_$m($f x) { return lm_is_nan_$m(x) || x <= 0 ? 0 : x >= 18446744073709551616.0$e ? 18446744073709551615$ul : ($u64)x; }
)";

constexpr std::string_view kGlsl = R"(#version 450
#extension GL_EXT_control_flow_attributes : enable
#define uint_of(x) uint(x)
#define lm_as_float(x) uintBitsToFloat(x)
#define lm_as_uint(x) floatBitsToUint(x)
#define lm_as_double2(high, low) packDouble2x32(uvec2(low, high))
#define lm_barrier() { memoryBarrierBuffer(); memoryBarrierShared(); barrier(); }
bool lm_is_nan_f32(float x) { return (lm_as_uint(x) & 0x7fffffffu) > 0x7f800000u; }
bool lm_is_nan_f64(double x) { const uvec2 w = unpackDouble2x32(x); return ((w.y & 0x7fffffffu) > 0x7ff00000u) || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u); }
float lm_max_f32(float a, float b) { return lm_is_nan_f32(a) ? a : lm_is_nan_f32(b) ? b : a < b ? b : a; }
float lm_min_f32(float a, float b) { return lm_is_nan_f32(a) ? a : lm_is_nan_f32(b) ? b : b < a ? b : a; }
double lm_max_f64(double a, double b) { return lm_is_nan_f64(a) ? a : lm_is_nan_f64(b) ? b : a < b ? b : a; }
double lm_min_f64(double a, double b) { return lm_is_nan_f64(a) ? a : lm_is_nan_f64(b) ? b : b < a ? b : a; }
float lm_floordiv_f32(float a, float b) { return floor(a / b); }
float lm_mod_f32(float a, float b) { return a - floor(a / b) * b; }
double lm_floordiv_f64(double a, double b) { return floor(a / b); }
double lm_mod_f64(double a, double b) { return a - floor(a / b) * b; }
int lm_max_i32(int a, int b) { return a < b ? b : a; }
int lm_min_i32(int a, int b) { return b < a ? b : a; }
uint lm_max_u32(uint a, uint b) { return a < b ? b : a; }
uint lm_min_u32(uint a, uint b) { return b < a ? b : a; }
int lm_floordiv_i32(int a, int b) {
  if (b == 0) return 0;
  if (b == -1) return 0 - a;
  const int q = a / b, r = a - q * b;
  return r != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
int lm_mod_i32(int a, int b) { return b == 0 || b == -1 ? 0 : a - lm_floordiv_i32(a, b) * b; }
uint lm_floordiv_u32(uint a, uint b) { return b == 0u ? 0u : a / b; }
uint lm_mod_u32(uint a, uint b) { return b == 0u ? 0u : a % b; }
uint lm_pow_u32(uint x, uint n) {
  uint r = 1u;
  for (; n != 0u; n = n >> 1) { if ((n & 1u) != 0u) r = r * x; x = x * x; }
  return r;
}
int lm_pow_i32(int x, int n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? ((n & 1) != 0 ? -1 : 1) : 0;
  return int(lm_pow_u32(uint(x), uint(n)));
}
int lm_i32_of_f32(float x) { return lm_is_nan_f32(x) ? 0 : x >= 2147483648.0 ? 2147483647 : x < -2147483648.0 ? -2147483647 - 1 : int(x); }
uint lm_u32_of_f32(float x) { return lm_is_nan_f32(x) || x <= 0.0 ? 0u : x >= 4294967296.0 ? 4294967295u : uint(x); }
int lm_i32_of_f64(double x) { return lm_is_nan_f64(x) ? 0 : x >= 2147483648.0lf ? 2147483647 : x < -2147483648.0lf ? -2147483647 - 1 : int(x); }
uint lm_u32_of_f64(double x) { return lm_is_nan_f64(x) || x <= 0.0lf ? 0u : x >= 4294967296.0lf ? 4294967295u : uint(x); }
)";

constexpr std::string_view kWgsl = R"(fn uint_of(x: i32) -> u32 { return u32(x); }
fn lm_as_float(x: u32) -> f32 { return bitcast<f32>(x); }
fn lm_as_uint(x: f32) -> u32 { return bitcast<u32>(x); }
fn lm_is_nan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn lm_max_f32(a: f32, b: f32) -> f32 { if (lm_is_nan_f32(a)) { return a; } if (lm_is_nan_f32(b)) { return b; } return select(a, b, a < b); }
fn lm_min_f32(a: f32, b: f32) -> f32 { if (lm_is_nan_f32(a)) { return a; } if (lm_is_nan_f32(b)) { return b; } return select(a, b, b < a); }
fn lm_floordiv_f32(a: f32, b: f32) -> f32 { return floor(a / b); }
fn lm_mod_f32(a: f32, b: f32) -> f32 { return a - floor(a / b) * b; }
fn lm_max_i32(a: i32, b: i32) -> i32 { return max(a, b); }
fn lm_min_i32(a: i32, b: i32) -> i32 { return min(a, b); }
fn lm_max_u32(a: u32, b: u32) -> u32 { return max(a, b); }
fn lm_min_u32(a: u32, b: u32) -> u32 { return min(a, b); }
fn lm_floordiv_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return 0 - a; }
  let q = a / b;
  let r = a - q * b;
  return select(q, q - 1, r != 0 && (a < 0) != (b < 0));
}
fn lm_mod_i32(a: i32, b: i32) -> i32 { if (b == 0 || b == -1) { return 0; } return a - lm_floordiv_i32(a, b) * b; }
fn lm_floordiv_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a / b; }
fn lm_mod_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a % b; }
fn lm_pow_u32(x0: u32, n0: u32) -> u32 {
  var r = 1u;
  var x = x0;
  var n = n0;
  loop { if (n == 0u) { break; } if ((n & 1u) != 0u) { r = r * x; } x = x * x; n = n >> 1u; }
  return r;
}
fn lm_pow_i32(x: i32, n: i32) -> i32 {
  if (n < 0) { if (x == 1) { return 1; } if (x == -1) { return select(1, -1, (n & 1) != 0); } return 0; }
  return i32(lm_pow_u32(u32(x), u32(n)));
}
fn lm_i32_of_f32(x: f32) -> i32 {
  if (lm_is_nan_f32(x)) { return 0; }
  if (x >= 2147483648.0f) { return 2147483647; }
  if (x < -2147483648.0f) { return -2147483647 - 1; }
  return i32(x);
}
fn lm_u32_of_f32(x: f32) -> u32 {
  if (lm_is_nan_f32(x) || x <= 0.0f) { return 0u; }
  if (x >= 4294967296.0f) { return 4294967295u; }
  return u32(x);
}
)";

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

std::string filled(std::string_view text, const Pairs& pairs) {
  std::string out(text);
  for (const auto& [from, to] : pairs) {
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size())) out.replace(at, from.size(), to);
  }
  return out;
}

}  // namespace

std::string preamble(const Dialect& d) {
  if (d.id == DialectId::Cuda) return std::string(cuda_prelude());
  return d.id == DialectId::Metal ? std::string(kMetalPreamble) : std::string();
}

std::string prelude(const Dialect& d) {
  if (d.id == DialectId::Glsl) return std::string(kGlsl);
  if (d.id == DialectId::Wgsl) return std::string(kWgsl);
  const bool cuda = d.id == DialectId::Cuda;
  const std::string_view u32 = cuda ? "unsigned int" : "uint", u64 = cuda ? "unsigned long long" : "ulong", i64 = cuda ? "long long" : "long";
  // Longer names first: $u64 before $u.
  const Pairs names{{"$floorf", cuda ? "floorf" : "floor"}, {"$fn", cuda ? "LM_DEVICE" : d.id == DialectId::Metal ? "inline" : ""},
                    {"$u32", u32}, {"$u64", u64}, {"$i32", "int"}, {"$i64", i64}, {"$ul", cuda ? "ull" : "ul"}, {"$l", cuda ? "ll" : "l"}};
  std::string out(cuda ? kCudaHead : d.id == DialectId::Metal ? std::string_view() : kOpenClHead);
  const auto add = [&](std::string_view text, Pairs more) {
    more.insert(more.begin(), names.begin(), names.end());
    out += filled(text, more);
  };
  add(kFloats, {});
  if (!cuda) add(kExtremes, {});
  if (d.doubles) add(kDoubles, {});
  else add("$fn $u64 lm_as_ulong2($u32 high, $u32 low) { return (($u64)high << 32) | low; }\n", {});
  add(kSigned, {{"$t", "int"}, {"$n", "i32"}, {"$w", u32}});
  add(kSigned, {{"$t", i64}, {"$n", "i64"}, {"$w", u64}});
  add(kUnsigned, {{"$t", u32}, {"$n", "u32"}});
  add(kUnsigned, {{"$t", u64}, {"$n", "u64"}});
  add(kCasts, {{"$f", "float"}, {"$m", "f32"}, {"$e", "f"}});
  if (d.doubles) add(kCasts, {{"$f", "double"}, {"$m", "f64"}, {"$e", ""}});
  return out + "\n";
}

}  // namespace lemma::emit::device
