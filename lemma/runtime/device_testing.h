// For tests: the same four kernels in each language.
//
//   add        z[i] = x[i] + y[i], i < n                               blocks of 64 along x
//   transpose  y[c, r] = x[r, c] through an 8x8 tile of shared memory  blocks of 64; block (c / 8, r / 8)
//   affine     x[i] = x[i] * a + b % 1000003, ints, i < 64             blocks of 64
//   spin       x[0] = x[0] * 1664525 + 1013904223, `rounds` times      one block of 64, whose first thread works
#pragma once

#include "lemma/runtime/device.h"

namespace lemma::runtime::device_testing {

inline constexpr uint32_t kThreads = 64;

inline const char* kCuda = R"(
extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
  long long i = blockIdx.x * 64ll + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ void transpose(const float* x, float* y, long long rows, long long columns) {
  __shared__ float tile[8][9];
  int tr = threadIdx.x / 8, tc = threadIdx.x % 8;
  long long r = blockIdx.y * 8ll + tr, c = blockIdx.x * 8ll + tc;
  if (r < rows && c < columns) tile[tr][tc] = x[r * columns + c];
  __syncthreads();
  long long r2 = blockIdx.y * 8ll + tc, c2 = blockIdx.x * 8ll + tr;
  if (r2 < rows && c2 < columns) y[c2 * rows + r2] = tile[tc][tr];
}
extern "C" __global__ void affine(int* x, long long a, long long b) {
  x[threadIdx.x] = x[threadIdx.x] * (int)a + (int)(b % 1000003);
}
extern "C" __global__ void spin(unsigned* x, long long rounds) {
  if (threadIdx.x != 0) return;
  unsigned value = x[0];
  for (long long i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u + (value >> 31);
  x[0] = value;
}
)";

inline const char* kOpenCl = R"(
__kernel void add(__global const float* x, __global const float* y, __global float* z, long n) {
  long i = get_global_id(0);
  if (i < n) z[i] = x[i] + y[i];
}
__kernel void transpose(__global const float* x, __global float* y, long rows, long columns) {
  __local float tile[8][9];
  int tr = get_local_id(0) / 8, tc = get_local_id(0) % 8;
  long r = get_group_id(1) * 8l + tr, c = get_group_id(0) * 8l + tc;
  if (r < rows && c < columns) tile[tr][tc] = x[r * columns + c];
  barrier(CLK_LOCAL_MEM_FENCE);
  long r2 = get_group_id(1) * 8l + tc, c2 = get_group_id(0) * 8l + tr;
  if (r2 < rows && c2 < columns) y[c2 * rows + r2] = tile[tc][tr];
}
__kernel void affine(__global int* x, long a, long b) {
  int i = get_local_id(0);
  x[i] = x[i] * (int)a + (int)(b % 1000003);
}
__kernel void spin(__global uint* x, long rounds) {
  if (get_local_id(0) != 0) return;
  uint value = x[0];
  for (long i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u + (value >> 31);
  x[0] = value;
}
)";

inline const char* kGlslHead = "#version 450\nlayout(local_size_x = 64) in;\n";
inline const char* kGlsl[] = {
    R"(layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(set = 0, binding = 2) buffer Z { float z[]; };
layout(push_constant) uniform S { int n; };
void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i < n) z[i] = x[i] + y[i];
}
)",
    R"(layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform S { int rows; int columns; };
shared float tile[8][9];
void main() {
  int tr = int(gl_LocalInvocationID.x) / 8, tc = int(gl_LocalInvocationID.x) % 8;
  int r = int(gl_WorkGroupID.y) * 8 + tr, c = int(gl_WorkGroupID.x) * 8 + tc;
  if (r < rows && c < columns) tile[tr][tc] = x[r * columns + c];
  barrier();
  int r2 = int(gl_WorkGroupID.y) * 8 + tc, c2 = int(gl_WorkGroupID.x) * 8 + tr;
  if (r2 < rows && c2 < columns) y[c2 * rows + r2] = tile[tc][tr];
}
)",
    R"(layout(set = 0, binding = 0) buffer X { int x[]; };
layout(push_constant) uniform S { int a; int b; };
void main() {
  int i = int(gl_LocalInvocationID.x);
  x[i] = x[i] * a + b % 1000003;
}
)",
    R"(layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform S { int rounds; };
void main() {
  if (gl_LocalInvocationID.x != 0) return;
  uint value = x[0];
  for (int i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u + (value >> 31);
  x[0] = value;
}
)"};

inline const char* kWgsl = R"(
@group(0) @binding(0) var<storage, read> ax: array<f32>;
@group(0) @binding(1) var<storage, read> ay: array<f32>;
@group(0) @binding(2) var<storage, read_write> az: array<f32>;
@group(0) @binding(3) var<storage, read> as_: array<i32>;
@compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = i32(id.x);
  if (i < as_[0]) { az[i] = ax[i] + ay[i]; }
}
@group(0) @binding(0) var<storage, read> tx: array<f32>;
@group(0) @binding(1) var<storage, read_write> ty: array<f32>;
@group(0) @binding(2) var<storage, read> ts: array<i32>;
var<workgroup> tile: array<array<f32, 9>, 8>;
@compute @workgroup_size(64)
fn transpose(@builtin(local_invocation_id) id: vec3<u32>, @builtin(workgroup_id) block: vec3<u32>) {
  let tr = i32(id.x) / 8; let tc = i32(id.x) % 8;
  let r = i32(block.y) * 8 + tr; let c = i32(block.x) * 8 + tc;
  if (r < ts[0] && c < ts[1]) { tile[tr][tc] = tx[r * ts[1] + c]; }
  workgroupBarrier();
  let r2 = i32(block.y) * 8 + tc; let c2 = i32(block.x) * 8 + tr;
  if (r2 < ts[0] && c2 < ts[1]) { ty[c2 * ts[0] + r2] = tile[tc][tr]; }
}
@group(0) @binding(0) var<storage, read_write> fx: array<i32>;
@group(0) @binding(1) var<storage, read> fs: array<i32>;
@compute @workgroup_size(64) fn affine(@builtin(local_invocation_id) id: vec3<u32>) {
  fx[id.x] = fx[id.x] * fs[0] + fs[1] % 1000003;
}
@group(0) @binding(0) var<storage, read_write> sx: array<u32>;
@group(0) @binding(1) var<storage, read> ss: array<i32>;
@compute @workgroup_size(64) fn spin(@builtin(local_invocation_id) id: vec3<u32>) {
  if (id.x != 0u) { return; }
  var value = sx[0];
  for (var i = 0; i < ss[0]; i++) { value = value * 1664525u + 1013904223u + (value >> 31u); }
  sx[0] = value;
}
)";

inline DeviceSource kernels(Api api) {
  DeviceSource out;
  const auto r = Access::Read, w = Access::ReadWrite;
  out.kernels = {{"add", {r, r, w}, 1, kThreads, 0},
                 {"transpose", {r, w}, 2, kThreads, 0},
                 {"affine", {w}, 2, kThreads, 0},
                 {"spin", {w}, 1, kThreads, 0}};
  switch (api) {
    case Api::Cuda:
      out.texts = {kCuda};
      break;
    case Api::OpenCl:
      out.texts = {kOpenCl};
      break;
    case Api::WebGpu:
      out.texts = {kWgsl};
      break;
    case Api::Vulkan:
      for (size_t i = 0; i < 4; ++i) {
        out.texts.push_back(std::string(kGlslHead) + kGlsl[i]);
        out.kernels[i].text = int(i);
      }
  }
  return out;
}

// A text whose third line is not of the language.
inline DeviceSource broken(Api api) {
  DeviceSource out;
  out.kernels = {{"k", {Access::ReadWrite}, 0, kThreads, 0}};
  switch (api) {
    case Api::Cuda:
      out.texts = {"extern \"C\" __global__ void k(float* x) {\n  x[0] = 1;\n  x[1] = missing_name;\n}\n"};
      break;
    case Api::OpenCl:
      out.texts = {"__kernel void k(__global float* x) {\n  x[0] = 1;\n  x[1] = missing_name;\n}\n"};
      break;
    case Api::WebGpu:
      out.texts = {
          "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
          "@compute @workgroup_size(64) fn k() {\n  x[1] = missing_name;\n}\n"};
      break;
    case Api::Vulkan:
      out.texts = {std::string(kGlslHead) + "void main() { missing_name = 1; }\n"};
      break;
  }
  return out;
}

}  // namespace lemma::runtime::device_testing
