// Devices beside the processor: CUDA, OpenCL, Vulkan and WebGPU, behind one small interface. Each is a library that is
// looked for when the program runs and need be there neither then nor when Lemma is built; what is absent is said.
//
// A kernel takes its buffers in order, then its scalars. Per language that reads
//
//   CUDA     extern "C" __global__ void k(T* b0, ..., long long s0, ...)
//   OpenCL   __kernel void k(__global T* b0, ..., long s0, ...)
//   GLSL     one text a kernel, entry point main; set 0 binding i is buffer i; push constants: int s0, ...
//   WGSL     one text, entry point k; @group(0) @binding(i) is buffer i; where there are scalars, binding n after the
//            buffers is var<storage, read> array<i32>
//
// Everything that can go wrong with a launch without asking the device (names, numbers of arguments, ranges, limits) is
// found out before it starts, by the same rules for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/runtime/cache.h"

namespace lemma::runtime {

enum class Api : uint8_t { Cuda, OpenCl, Vulkan, WebGpu };
inline constexpr std::array kApis = {Api::Cuda, Api::OpenCl, Api::Vulkan, Api::WebGpu};
const char* api_name(Api api);  // "CUDA", "OpenCL", "Vulkan", "WebGPU"

// Limits and abilities, as data. What an interface does not tell is 0, or the least that it promises.
struct DeviceInfo {
  Api api = Api::Cuda;
  int index = 0;  // among the devices of this interface
  std::string name;
  std::string driver;        // and its version
  int64_t memory_bytes = 0;  // 0: unknown
  int64_t shared_bytes = 0;  // of a block
  int64_t max_threads = 0;   // of a block
  std::array<int64_t, 3> max_blocks = {};
  int64_t max_storage_binding_bytes = 0;
  int64_t offset_alignment = 1;  // of the place in a buffer where an argument begins
  int max_bindings = 0;
  int max_scalars = 0;
  int subgroup = 0;  // threads that step together; 0: none that kernels may use
  bool f16 = false;  // arithmetic
  bool f64 = false;
  bool i64 = false;
  bool i16_storage = false;  // 16-bit elements in buffers
  bool i8_storage = false;
  int compute_capability = 0;  // CUDA: 90 is 9.0; elsewhere 0
};

// An interface without a device: what was looked for and not found, and what would mend it.
struct Missing {
  Api api = Api::Cuda;
  std::string reason;
  std::string mend;
};

struct DeviceList {
  std::vector<DeviceInfo> devices;
  std::vector<Missing> missing;
};

struct DeviceOptions {
  std::string nvrtc;            // libnvrtc, or the folder where it is; empty: the loader's path
  std::string webgpu;           // libwebgpu_wrapper.so, or the folder where it is; empty: the loader's path
  double timeout_seconds = 60;  // after which a kernel is taken to hang
  bool validate = false;        // Vulkan: load the validation layer; what it says is an error
};

DeviceList list_devices(const DeviceOptions& options = {});

enum class Access : uint8_t { Read, ReadWrite };

struct KernelEntry {
  std::string name;
  std::vector<Access> buffers;  // one each; WGSL declares the same
  int scalars = 0;
  uint32_t threads = 0;  // of a block, where the text fixes them (GLSL, WGSL); 0: any
  int text = 0;          // which of the texts it stands in
};

struct DeviceSource {
  std::vector<std::string> texts;  // one for all kernels, or several; in GLSL one a kernel
  std::vector<KernelEntry> kernels;
  std::vector<std::string> flags;  // more of them for NVRTC or OpenCL's compiler
};

// Handles: copies share the object, which lives until the last of them goes and no kernel in flight uses it.
class DeviceBuffer {
 public:
  int64_t bytes() const { return bytes_; }

 private:
  friend class Device;
  int64_t bytes_ = 0;
  std::shared_ptr<void> object_;  // of the interface
  std::shared_ptr<const void> owner_;
};

class DeviceModule {
 public:
  const std::vector<KernelEntry>& kernels() const { return kernels_; }

 private:
  friend class Device;
  std::vector<KernelEntry> kernels_;
  std::shared_ptr<void> object_;
  std::shared_ptr<const void> owner_;
};

struct BufferArg {
  DeviceBuffer buffer;
  int64_t offset = 0;
  int64_t bytes = -1;  // -1: to the end
};

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> blocks = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t dynamic_shared_bytes = 0;  // CUDA alone
  std::vector<BufferArg> buffers;
  std::vector<int64_t> scalars;  // GLSL and WGSL: must fit 32 bits
};

struct Step {
  DeviceModule module;
  Launch launch;
};

// Steps checked once and launched many times. CUDA keeps them as a graph; the others repeat them.
class DeviceGraph {
  friend class Device;
  std::vector<Step> steps_;
  std::shared_ptr<void> object_;
  std::shared_ptr<const void> owner_;
};

// A handle. Threads may use copies of one Device at once: calls are put in some order, and a call that waits makes the
// others wait. Launches run in the order in which they were made, and reads and writes among them in theirs.
class Device {
 public:
  static base::Result<Device> open(const DeviceInfo& info, const DeviceOptions& options = {});
  const DeviceInfo& info() const;

  // Compiled objects come from the cache and go to it, except WebGPU's, which gives none. If the compiler refuses,
  // the Diagnostic's note holds its words.
  base::Result<DeviceModule> compile(const DeviceSource& source, Cache& cache, const Notices& notices = {});

  base::Result<DeviceBuffer> allocate(int64_t bytes);
  base::Result<void> write(const DeviceBuffer& buffer, int64_t offset, std::span<const std::byte> from);
  base::Result<void> read(const DeviceBuffer& buffer, int64_t offset, std::span<std::byte> into);
  base::Result<void> fill(const DeviceBuffer& buffer, uint8_t value);

  // Returns before the kernel has run. A grid without blocks launches nothing.
  base::Result<void> launch(const DeviceModule& module, const Launch& launch);
  base::Result<DeviceGraph> record(std::span<const Step> steps);
  base::Result<void> launch(const DeviceGraph& graph);

  // Until everything launched has run; an error after the options' time limit. What hangs keeps its memory, and a
  // later wait may still find it done.
  base::Result<void> wait();

  // Seconds that the steps take together, by the device's clock (WebGPU: the host's). Waits.
  base::Result<double> time(std::span<const Step> steps);

 private:
  struct State;
  explicit Device(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace lemma::runtime
