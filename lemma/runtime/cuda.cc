#include "lemma/runtime/cuda.h"

#include <algorithm>

#include "lemma/runtime/cuda_api.h"
#include "lemma/runtime/nvrtc.h"

namespace lemma::runtime {

using base::Result;

namespace {

using cuda::Functions;

Result<Functions> load() {
  const std::vector<std::string> names = {"libcuda.so.1"};
  auto library = DynamicLibrary::open(names);
  if (!library) return base::system_failure("libcuda.so.1 is not found");
  Functions cu{};
  library->bind(cu.Init, "cuInit");
  library->bind(cu.DriverGetVersion, "cuDriverGetVersion");
  library->bind(cu.GetErrorName, "cuGetErrorName");
  library->bind(cu.GetErrorString, "cuGetErrorString");
  library->bind(cu.DeviceGetCount, "cuDeviceGetCount");
  library->bind(cu.DeviceGet, "cuDeviceGet");
  library->bind(cu.DeviceGetName, "cuDeviceGetName");
  library->bind(cu.DeviceTotalMem, "cuDeviceTotalMem_v2");
  library->bind(cu.DeviceGetAttribute, "cuDeviceGetAttribute");
  library->bind(cu.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  library->bind(cu.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  library->bind(cu.CtxSetCurrent, "cuCtxSetCurrent");
  library->bind(cu.StreamCreate, "cuStreamCreate");
  library->bind(cu.StreamDestroy, "cuStreamDestroy_v2");
  library->bind(cu.StreamQuery, "cuStreamQuery");
  library->bind(cu.ModuleLoadDataEx, "cuModuleLoadDataEx");
  library->bind(cu.ModuleUnload, "cuModuleUnload");
  library->bind(cu.ModuleGetFunction, "cuModuleGetFunction");
  library->bind(cu.FuncSetAttribute, "cuFuncSetAttribute");
  library->bind(cu.MemAlloc, "cuMemAlloc_v2");
  library->bind(cu.MemFree, "cuMemFree_v2");
  library->bind(cu.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  library->bind(cu.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  library->bind(cu.MemsetD8Async, "cuMemsetD8Async");
  library->bind(cu.LaunchKernel, "cuLaunchKernel");
  library->bind(cu.EventCreate, "cuEventCreate");
  library->bind(cu.EventRecord, "cuEventRecord");
  library->bind(cu.EventElapsedTime, "cuEventElapsedTime");
  library->bind(cu.EventDestroy, "cuEventDestroy_v2");
  library->bind(cu.StreamBeginCapture, "cuStreamBeginCapture_v2");
  library->bind(cu.StreamEndCapture, "cuStreamEndCapture");
  library->bind(cu.GraphInstantiate, "cuGraphInstantiateWithFlags");
  library->bind(cu.GraphLaunch, "cuGraphLaunch");
  library->bind(cu.GraphDestroy, "cuGraphDestroy");
  library->bind(cu.GraphExecDestroy, "cuGraphExecDestroy");
  if (!library->lacking().empty()) {
    return base::system_failure("libcuda.so.1 lacks " + library->lacking(), "install a driver of CUDA 12 or later");
  }
  return cu;
}

Result<void> check(const Functions& cu, int code, const std::string& what) {
  if (code == cuda::kSuccess) return {};
  const char *name = nullptr, *text = nullptr;
  cu.GetErrorName(code, &name);
  cu.GetErrorString(code, &text);
  return base::system_failure("CUDA's " + what + " gave " + (name ? name : std::to_string(code)) +
                              (text ? std::string(": ") + text : ""));
}

int attribute(const Functions& cu, cuda::DeviceId device, int which) {
  int value = 0;
  return cu.DeviceGetAttribute(&value, which, device) == cuda::kSuccess ? value : 0;
}

DeviceInfo describe(const Functions& cu, cuda::DeviceId device, int index) {
  DeviceInfo out;
  out.api = Api::Cuda;
  out.index = index;
  char name[256] = {};
  cu.DeviceGetName(name, sizeof name, device);
  out.name = name;
  int version = 0;
  cu.DriverGetVersion(&version);
  out.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  size_t memory = 0;
  cu.DeviceTotalMem(&memory, device);
  out.memory_bytes = out.max_storage_binding_bytes = int64_t(memory);
  out.shared_bytes = attribute(cu, device, cuda::kMaxSharedOptin);
  out.max_threads = attribute(cu, device, cuda::kMaxThreads);
  out.max_blocks = {attribute(cu, device, cuda::kMaxGridX), attribute(cu, device, cuda::kMaxGridY),
                    attribute(cu, device, cuda::kMaxGridZ)};
  out.max_bindings = out.max_scalars = 256;  // of 8 bytes: together the 4 KB that every driver passes
  out.subgroup = attribute(cu, device, cuda::kWarpSize);
  out.f16 = out.f64 = out.i64 = out.i16_storage = out.i8_storage = true;
  out.compute_capability =
      attribute(cu, device, cuda::kCapabilityMajor) * 10 + attribute(cu, device, cuda::kCapabilityMinor);
  return out;
}

// The name of the architecture that this device runs; from 9.0 on the one with everything it has.
std::string architecture(int compute_capability) {
  return "sm_" + std::to_string(compute_capability) + (compute_capability >= 90 ? "a" : "");
}

}  // namespace

void list_cuda(const DeviceOptions& options, DeviceList& list) {
  const char* look_for_gpu = "see with nvidia-smi whether a GPU is there and its driver is loaded";
  const auto missing = [&](std::string reason, std::string mend) {
    list.missing.push_back({Api::Cuda, std::move(reason), std::move(mend)});
  };
  const auto cu = load();
  if (!cu) return missing(cu.error().message, "install NVIDIA's driver");
  int count = 0;
  if (const auto code = check(*cu, cu->Init(0), "cuInit"); !code) return missing(code.error().message, look_for_gpu);
  if (const auto code = check(*cu, cu->DeviceGetCount(&count), "cuDeviceGetCount"); !code) {
    return missing(code.error().message, look_for_gpu);
  }
  if (count == 0) return missing("the driver is there, and knows no GPU", look_for_gpu);
  if (const auto nvrtc = nvrtc_version(options.nvrtc); !nvrtc)
    return missing(nvrtc.error().message, nvrtc.error().suggestion);
  for (int i = 0; i < count; ++i) {
    cuda::DeviceId device = 0;
    if (cu->DeviceGet(&device, i) == cuda::kSuccess) list.devices.push_back(describe(*cu, device, i));
  }
}

// Shared by everything made of the device. Any thread may be the one that lets go of it, so each call first says whose
// context it means.
struct CudaDevice::State {
  Functions cu{};
  DeviceInfo info;
  DeviceOptions options;
  cuda::DeviceId device = 0;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;

  ~State() {
    if (!context) return;
    cu.CtxSetCurrent(context);
    if (stream) cu.StreamDestroy(stream);
    cu.DevicePrimaryCtxRelease(device);
  }
  void enter() const { cu.CtxSetCurrent(context); }
  Result<void> launch(const Command& command) const;
};

namespace {

struct Memory {
  std::shared_ptr<void> device;
  const Functions* cu;
  cuda::Context context;
  cuda::Pointer pointer = 0;
  ~Memory() {
    cu->CtxSetCurrent(context);
    if (pointer) cu->MemFree(pointer);
  }
};

struct Loaded {
  std::shared_ptr<void> device;
  const Functions* cu;
  cuda::Context context;
  std::vector<cuda::Module> modules;
  std::vector<cuda::Function> functions;
  std::vector<uint32_t> dynamic_shared;  // asked for so far, a function
  ~Loaded() {
    cu->CtxSetCurrent(context);
    for (const cuda::Module module : modules) cu->ModuleUnload(module);
  }
};

struct Recorded {
  std::shared_ptr<void> device;
  const Functions* cu;
  cuda::Context context;
  cuda::GraphExec graph = nullptr;
  ~Recorded() {
    cu->CtxSetCurrent(context);
    if (graph) cu->GraphExecDestroy(graph);
  }
};

}  // namespace

CudaDevice::CudaDevice(std::shared_ptr<State> state) : state_(std::move(state)) {}
CudaDevice::~CudaDevice() = default;

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(const DeviceInfo& info, const DeviceOptions& options) {
  auto state = std::make_shared<State>();
  LEMMA_TRY(state->cu, load());
  const Functions& cu = state->cu;
  state->info = info;
  state->options = options;
  LEMMA_TRY_VOID(check(cu, cu.Init(0), "cuInit"));
  LEMMA_TRY_VOID(check(cu, cu.DeviceGet(&state->device, info.index), "cuDeviceGet"));
  LEMMA_TRY_VOID(check(cu, cu.DevicePrimaryCtxRetain(&state->context, state->device), "cuDevicePrimaryCtxRetain"));
  LEMMA_TRY_VOID(check(cu, cu.CtxSetCurrent(state->context), "cuCtxSetCurrent"));
  LEMMA_TRY_VOID(check(cu, cu.StreamCreate(&state->stream, cuda::kStreamNonBlocking), "cuStreamCreate"));
  return std::shared_ptr<CudaDevice>(new CudaDevice(std::move(state)));
}

Result<std::shared_ptr<void>> CudaDevice::compile(const DeviceSource& source, Cache& cache, const Notices& notices) {
  const State& s = *state_;
  const std::string arch = architecture(s.info.compute_capability);
  LEMMA_TRY(const std::string version, nvrtc_version(s.options.nvrtc));
  std::string flags = arch;
  for (const char* option : kCudaOptions) flags += std::string(" ") + option;
  for (const std::string& flag : source.flags) flags += " " + flag;
  auto loaded = std::make_shared<Loaded>(Loaded{state_, &s.cu, s.context, {}, {}, {}});
  s.enter();
  for (const std::string& text : source.texts) {
    const KernelKey key{text, flags, version, s.info.driver + " " + s.info.name};
    const auto build = [&]() -> Result<std::vector<std::byte>> {
      LEMMA_TRY(CudaObject object, compile_cuda(text, arch, source.flags, s.options.nvrtc));
      return std::move(object.cubin);
    };
    LEMMA_TRY(const std::vector<std::byte> cubin, cached_object(cache, key, build, notices));
    cuda::Module module = nullptr;
    LEMMA_TRY_VOID(
        check(s.cu, s.cu.ModuleLoadDataEx(&module, cubin.data(), 0, nullptr, nullptr), "cuModuleLoadDataEx"));
    loaded->modules.push_back(module);
  }
  for (const KernelEntry& entry : source.kernels) {
    cuda::Function function = nullptr;
    const int code = s.cu.ModuleGetFunction(&function, loaded->modules[size_t(entry.text)], entry.name.c_str());
    if (code == cuda::kNotFound) return base::invalid("the text has no kernel " + entry.name);
    LEMMA_TRY_VOID(check(s.cu, code, "cuModuleGetFunction"));
    loaded->functions.push_back(function);
    loaded->dynamic_shared.push_back(0);
  }
  return std::shared_ptr<void>(loaded);
}

Result<std::shared_ptr<void>> CudaDevice::allocate(int64_t bytes) {
  const State& s = *state_;
  s.enter();
  auto memory = std::make_shared<Memory>(Memory{state_, &s.cu, s.context, 0});
  const int code = s.cu.MemAlloc(&memory->pointer, size_t(std::max<int64_t>(bytes, 16)));
  LEMMA_TRY_VOID(check(s.cu, code, "cuMemAlloc of " + std::to_string(bytes) + " bytes"));
  return std::shared_ptr<void>(memory);
}

Result<void> CudaDevice::write(void* memory, int64_t offset, std::span<const std::byte> from) {
  const State& s = *state_;
  s.enter();
  const cuda::Pointer to = static_cast<Memory*>(memory)->pointer + uint64_t(offset);
  return check(s.cu, s.cu.MemcpyHtoDAsync(to, from.data(), from.size(), s.stream), "cuMemcpyHtoDAsync");
}

Result<void> CudaDevice::read(void* memory, int64_t offset, std::span<std::byte> into) {
  const State& s = *state_;
  s.enter();
  const cuda::Pointer from = static_cast<Memory*>(memory)->pointer + uint64_t(offset);
  LEMMA_TRY_VOID(check(s.cu, s.cu.MemcpyDtoHAsync(into.data(), from, into.size(), s.stream), "cuMemcpyDtoHAsync"));
  LEMMA_TRY(const bool done, poll(s.options.timeout_seconds, [&] { return finished(); }));
  if (!done) return base::system_failure("a copy did not finish in time");
  return {};
}

Result<void> CudaDevice::fill(void* memory, int64_t bytes, uint8_t value) {
  const State& s = *state_;
  s.enter();
  return check(s.cu, s.cu.MemsetD8Async(static_cast<Memory*>(memory)->pointer, value, size_t(bytes), s.stream),
               "cuMemsetD8Async");
}

Result<void> CudaDevice::State::launch(const Command& command) const {
  auto& loaded = *static_cast<Loaded*>(command.module);
  const cuda::Function function = loaded.functions[command.kernel];
  const uint32_t shared = command.launch->dynamic_shared_bytes;
  // Above 48 KB, those of the text included, it must be asked for; asking for less does no harm.
  if (shared > loaded.dynamic_shared[command.kernel]) {
    LEMMA_TRY_VOID(check(cu, cu.FuncSetAttribute(function, cuda::kFunctionMaxDynamicShared, int(shared)),
                         "cuFuncSetAttribute of " + std::to_string(shared) + " bytes of dynamic shared memory"));
    loaded.dynamic_shared[command.kernel] = shared;
  }
  std::vector<uint64_t> values;
  for (const Argument& argument : command.buffers) {
    values.push_back(static_cast<Memory*>(argument.memory)->pointer + uint64_t(argument.offset));
  }
  for (const int64_t scalar : command.launch->scalars) values.push_back(uint64_t(scalar));
  std::vector<void*> parameters;
  for (uint64_t& value : values) parameters.push_back(&value);
  const auto& blocks = command.launch->blocks;
  return check(cu,
               cu.LaunchKernel(function, blocks[0], blocks[1], blocks[2], command.launch->threads, 1, 1, shared, stream,
                               parameters.data(), nullptr),
               "cuLaunchKernel of " + command.launch->kernel);
}

Result<void> CudaDevice::launch(const Command& command, Keep&) {
  state_->enter();
  return state_->launch(command);
}

Result<bool> CudaDevice::finished() {
  state_->enter();
  const int code = state_->cu.StreamQuery(state_->stream);
  if (code == cuda::kNotReady) return false;
  LEMMA_TRY_VOID(check(state_->cu, code, "kernel"));
  return true;
}

Result<double> CudaDevice::time(std::span<const Command> commands, double limit, Keep&) {
  const State& s = *state_;
  s.enter();
  cuda::Event events[2] = {};
  struct Destroy {
    const Functions& cu;
    cuda::Event* events;
    ~Destroy() {
      for (int i = 0; i < 2; ++i) {
        if (events[i]) cu.EventDestroy(events[i]);
      }
    }
  } const destroy{s.cu, events};
  for (cuda::Event& event : events) LEMMA_TRY_VOID(check(s.cu, s.cu.EventCreate(&event, 0), "cuEventCreate"));
  LEMMA_TRY_VOID(check(s.cu, s.cu.EventRecord(events[0], s.stream), "cuEventRecord"));
  for (const Command& command : commands) LEMMA_TRY_VOID(s.launch(command));
  LEMMA_TRY_VOID(check(s.cu, s.cu.EventRecord(events[1], s.stream), "cuEventRecord"));
  LEMMA_TRY(const bool done, poll(limit, [&] { return finished(); }));
  if (!done) return base::system_failure("the launches to time did not finish in time");
  float milliseconds = 0;
  LEMMA_TRY_VOID(check(s.cu, s.cu.EventElapsedTime(&milliseconds, events[0], events[1]), "cuEventElapsedTime"));
  return double(milliseconds) * 1e-3;
}

Result<std::shared_ptr<void>> CudaDevice::record(std::span<const Command> commands) {
  const State& s = *state_;
  s.enter();
  LEMMA_TRY_VOID(check(s.cu, s.cu.StreamBeginCapture(s.stream, cuda::kCaptureRelaxed), "cuStreamBeginCapture"));
  Result<void> launched;
  for (const Command& command : commands) {
    if (launched) launched = s.launch(command);
  }
  // Even after a failure, so that the stream works on.
  cuda::Graph graph = nullptr;
  const int ended = s.cu.StreamEndCapture(s.stream, &graph);
  auto out = std::make_shared<Recorded>(Recorded{state_, &s.cu, s.context, nullptr});
  int instantiated = cuda::kSuccess;
  if (launched && ended == cuda::kSuccess) instantiated = s.cu.GraphInstantiate(&out->graph, graph, 0);
  if (graph) s.cu.GraphDestroy(graph);
  if (!launched) return launched.error();
  LEMMA_TRY_VOID(check(s.cu, ended, "cuStreamEndCapture"));
  LEMMA_TRY_VOID(check(s.cu, instantiated, "cuGraphInstantiate"));
  return std::shared_ptr<void>(out);
}

Result<void> CudaDevice::launch_graph(void* graph) {
  state_->enter();
  return check(state_->cu, state_->cu.GraphLaunch(static_cast<Recorded*>(graph)->graph, state_->stream),
               "cuGraphLaunch");
}

}  // namespace lemma::runtime
