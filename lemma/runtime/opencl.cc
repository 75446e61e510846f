#include "lemma/runtime/opencl.h"

#include <algorithm>
#include <cstring>

#include "lemma/runtime/opencl_api.h"

namespace lemma::runtime {

using base::Result;
using namespace opencl;

namespace {

Result<Functions> load(std::string& lacking) {
  const std::vector<std::string> names = {"libOpenCL.so.1"};
  auto library = DynamicLibrary::open(names);
  if (!library) return base::system_failure("libOpenCL.so.1 is not found");
  Functions cl{};
  library->bind(cl.GetPlatformIDs, "clGetPlatformIDs");
  library->bind(cl.GetPlatformInfo, "clGetPlatformInfo");
  library->bind(cl.GetDeviceIDs, "clGetDeviceIDs");
  library->bind(cl.GetDeviceInfo, "clGetDeviceInfo");
  library->bind(cl.CreateContext, "clCreateContext");
  library->bind(cl.ReleaseContext, "clReleaseContext");
  library->bind(cl.CreateCommandQueueWithProperties, "clCreateCommandQueueWithProperties");
  library->bind(cl.ReleaseCommandQueue, "clReleaseCommandQueue");
  library->bind(cl.CreateBuffer, "clCreateBuffer");
  library->bind(cl.CreateSubBuffer, "clCreateSubBuffer");
  library->bind(cl.ReleaseMemObject, "clReleaseMemObject");
  library->bind(cl.CreateProgramWithSource, "clCreateProgramWithSource");
  library->bind(cl.CreateProgramWithBinary, "clCreateProgramWithBinary");
  library->bind(cl.BuildProgram, "clBuildProgram");
  library->bind(cl.GetProgramInfo, "clGetProgramInfo");
  library->bind(cl.GetProgramBuildInfo, "clGetProgramBuildInfo");
  library->bind(cl.ReleaseProgram, "clReleaseProgram");
  library->bind(cl.CreateKernel, "clCreateKernel");
  library->bind(cl.GetKernelInfo, "clGetKernelInfo");
  library->bind(cl.GetKernelWorkGroupInfo, "clGetKernelWorkGroupInfo");
  library->bind(cl.SetKernelArg, "clSetKernelArg");
  library->bind(cl.ReleaseKernel, "clReleaseKernel");
  library->bind(cl.EnqueueNDRangeKernel, "clEnqueueNDRangeKernel");
  library->bind(cl.EnqueueWriteBuffer, "clEnqueueWriteBuffer");
  library->bind(cl.EnqueueReadBuffer, "clEnqueueReadBuffer");
  library->bind(cl.EnqueueFillBuffer, "clEnqueueFillBuffer");
  library->bind(cl.EnqueueMarkerWithWaitList, "clEnqueueMarkerWithWaitList");
  library->bind(cl.Flush, "clFlush");
  library->bind(cl.GetEventInfo, "clGetEventInfo");
  library->bind(cl.GetEventProfilingInfo, "clGetEventProfilingInfo");
  library->bind(cl.ReleaseEvent, "clReleaseEvent");
  lacking = library->lacking();
  if (!lacking.empty())
    return base::system_failure("libOpenCL.so.1 lacks " + lacking + ", and OpenCL 2.0 or later is needed");
  return cl;
}

base::Diagnostic failure(const std::string& what, int32_t code) {
  const char* meaning = code == -4 || code == -61 ? ": out of memory"
                        : code == -5              ? ": out of resources"
                        : code == -6              ? ": out of host memory"
                        : code == -54             ? ": the block has too many threads"
                                                  : "";
  return base::system_failure("OpenCL's " + what + " gave code " + std::to_string(code) + meaning);
}
Result<void> check(int32_t code, const char* what) {
  if (code == 0) return {};
  return failure(what, code);
}

std::string text_of(const Functions& cl, DeviceId device, uint32_t what) {
  size_t size = 0;
  if (cl.GetDeviceInfo(device, what, 0, nullptr, &size) != 0) return {};
  std::string out(size, '\0');
  if (cl.GetDeviceInfo(device, what, size, out.data(), nullptr) != 0) return {};
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}
template <class T>
int64_t number_of(const Functions& cl, DeviceId device, uint32_t what) {
  T value = 0;
  return cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr) == 0 ? int64_t(value) : 0;
}

struct Found {
  Platform platform;
  DeviceId device;
};
std::vector<Found> find_devices(const Functions& cl) {
  std::vector<Found> out;
  uint32_t count = 0;
  if (cl.GetPlatformIDs(0, nullptr, &count) != 0 || count == 0) return out;
  std::vector<Platform> platforms(count);
  cl.GetPlatformIDs(count, platforms.data(), nullptr);
  for (const Platform platform : platforms) {
    uint32_t devices = 0;
    if (cl.GetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &devices) != 0) continue;
    std::vector<DeviceId> ids(devices);
    cl.GetDeviceIDs(platform, kDeviceTypeAll, devices, ids.data(), nullptr);
    for (const DeviceId id : ids) out.push_back({platform, id});
  }
  return out;
}

DeviceInfo describe(const Functions& cl, const Found& found, int index) {
  DeviceInfo out;
  out.api = Api::OpenCl;
  out.index = index;
  out.name = text_of(cl, found.device, kDeviceName);
  out.driver = text_of(cl, found.device, kDeviceVersion) + " " + text_of(cl, found.device, kDriverVersion);
  out.memory_bytes = number_of<uint64_t>(cl, found.device, kDeviceMemory);
  out.shared_bytes = number_of<uint64_t>(cl, found.device, kDeviceLocalMemory);
  out.max_threads = number_of<size_t>(cl, found.device, kDeviceMaxGroupSize);
  out.max_storage_binding_bytes = number_of<uint64_t>(cl, found.device, kDeviceMaxAllocation);
  out.offset_alignment = std::max<int64_t>(1, number_of<uint32_t>(cl, found.device, kDeviceAlignBits) / 8);
  // Parameters share a space in bytes; half of it for each kind.
  const int64_t parameters = number_of<size_t>(cl, found.device, kDeviceMaxParameterSize) / 8;
  out.max_bindings = out.max_scalars = int(std::clamp<int64_t>(parameters / 2, 1, 1024));
  const std::string extensions = " " + text_of(cl, found.device, kDeviceExtensions) + " ";
  const auto has = [&](const char* name) {
    return extensions.find(" " + std::string(name) + " ") != std::string::npos;
  };
  out.f16 = has("cl_khr_fp16");
  out.f64 = has("cl_khr_fp64");
  out.i64 = true;
  out.i16_storage = out.i8_storage = true;
  return out;
}

struct Memory {
  std::shared_ptr<OpenClDevice> device;
  const Functions* cl = nullptr;
  Mem mem = nullptr;
  ~Memory() {
    if (mem) cl->ReleaseMemObject(mem);
  }
};

struct Loaded {
  std::shared_ptr<OpenClDevice> device;
  const Functions* cl = nullptr;
  std::vector<Program> programs;
  std::vector<Kernel> kernels;
  ~Loaded() {
    for (const Kernel kernel : kernels) cl->ReleaseKernel(kernel);
    for (const Program program : programs) cl->ReleaseProgram(program);
  }
};

}  // namespace

struct OpenClDevice::State {
  Functions cl{};
  DeviceInfo info;
  DeviceId device = nullptr;
  Context context = nullptr;
  Queue queue = nullptr;
  Event last = nullptr;  // a marker after everything that was enqueued when a wait began

  ~State() {
    if (last) cl.ReleaseEvent(last);
    if (queue) cl.ReleaseCommandQueue(queue);
    if (context) cl.ReleaseContext(context);
  }
  Result<std::vector<std::byte>> compile_text(const std::string& text, const std::string& flags);
  Result<Program> load_binary(const std::vector<std::byte>& binary);
  Result<Event> enqueue(const Command& command, Keep& keep);
};

OpenClDevice::OpenClDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
OpenClDevice::~OpenClDevice() = default;

void list_opencl(DeviceList& list) {
  std::string lacking;
  const auto cl = load(lacking);
  if (!cl) {
    list.missing.push_back(
        {Api::OpenCl, cl.error().message, "install ocl-icd-libopencl1 and a driver such as pocl-opencl-icd"});
    return;
  }
  int index = 0;
  for (const Found& found : find_devices(*cl)) list.devices.push_back(describe(*cl, found, index++));
  if (index == 0) {
    list.missing.push_back({Api::OpenCl, "the loader libOpenCL.so.1 is there, and knows no device",
                            "install a driver such as pocl-opencl-icd"});
  }
}

Result<std::shared_ptr<OpenClDevice>> OpenClDevice::open(const DeviceInfo& info, const DeviceOptions&) {
  auto state = std::make_unique<State>();
  std::string lacking;
  LEMMA_TRY(state->cl, load(lacking));
  const std::vector<Found> found = find_devices(state->cl);
  if (info.index < 0 || size_t(info.index) >= found.size()) {
    return base::system_failure("there is no OpenCL device " + std::to_string(info.index));
  }
  state->info = info;
  state->device = found[size_t(info.index)].device;
  int32_t code = 0;
  state->context = state->cl.CreateContext(nullptr, 1, &state->device, nullptr, nullptr, &code);
  LEMMA_TRY_VOID(check(code, "clCreateContext"));
  const uint64_t properties[] = {kQueueProperties, kQueueProfiling, 0};
  state->queue = state->cl.CreateCommandQueueWithProperties(state->context, state->device, properties, &code);
  LEMMA_TRY_VOID(check(code, "clCreateCommandQueueWithProperties"));
  std::shared_ptr<OpenClDevice> device(new OpenClDevice(std::move(state)));
  device->self_ = device;
  return device;
}

Result<std::vector<std::byte>> OpenClDevice::State::compile_text(const std::string& text, const std::string& flags) {
  int32_t code = 0;
  const char* begin = text.data();
  const size_t size = text.size();
  const Program program = cl.CreateProgramWithSource(context, 1, &begin, &size, &code);
  LEMMA_TRY_VOID(check(code, "clCreateProgramWithSource"));
  Loaded owner{nullptr, &cl, {program}, {}};
  code = cl.BuildProgram(program, 1, &device, flags.c_str(), nullptr, nullptr);
  if (code != 0) {
    size_t length = 0;
    cl.GetProgramBuildInfo(program, device, kProgramBuildLog, 0, nullptr, &length);
    std::string log(length, '\0');
    cl.GetProgramBuildInfo(program, device, kProgramBuildLog, length, log.data(), nullptr);
    if (code == kBuildProgramFailure) return compiler_refusal("the OpenCL compiler", std::move(log));
    return failure("clBuildProgram", code);
  }
  size_t bytes = 0;
  LEMMA_TRY_VOID(
      check(cl.GetProgramInfo(program, kProgramBinarySizes, sizeof bytes, &bytes, nullptr), "clGetProgramInfo"));
  std::vector<std::byte> out(bytes);
  std::byte* into = out.data();
  LEMMA_TRY_VOID(check(cl.GetProgramInfo(program, kProgramBinaries, sizeof into, &into, nullptr), "clGetProgramInfo"));
  return out;
}

Result<Program> OpenClDevice::State::load_binary(const std::vector<std::byte>& binary) {
  int32_t code = 0, status = 0;
  const auto* begin = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  const Program program = cl.CreateProgramWithBinary(context, 1, &device, &size, &begin, &status, &code);
  LEMMA_TRY_VOID(check(code, "clCreateProgramWithBinary"));
  code = cl.BuildProgram(program, 1, &device, "", nullptr, nullptr);
  if (code == 0) return program;
  cl.ReleaseProgram(program);
  return failure("clBuildProgram", code);
}

Result<std::shared_ptr<void>> OpenClDevice::compile(const DeviceSource& source, Cache& cache, const Notices& notices) {
  std::string flags;
  for (const std::string& flag : source.flags) flags += (flags.empty() ? "" : " ") + flag;
  auto loaded = std::make_shared<Loaded>();
  loaded->device = self_.lock();
  loaded->cl = &state_->cl;
  for (const std::string& text : source.texts) {
    const KernelKey key{text, flags, "OpenCL " + state_->info.driver, state_->info.name};
    const auto build = [&] { return state_->compile_text(text, flags); };
    LEMMA_TRY(const std::vector<std::byte> binary, cached_object(cache, key, build, notices));
    auto program = state_->load_binary(binary);
    if (!program) {
      // A driver may refuse what another build of it made.
      cache.discard(key);
      LEMMA_TRY(const std::vector<std::byte> again, cached_object(cache, key, build, notices));
      program = state_->load_binary(again);
      if (!program) return program.error();
    }
    loaded->programs.push_back(*program);
  }
  for (const KernelEntry& entry : source.kernels) {
    int32_t code = 0;
    const Kernel kernel = state_->cl.CreateKernel(loaded->programs[size_t(entry.text)], entry.name.c_str(), &code);
    if (code == -46) return base::invalid("the text has no kernel " + entry.name);
    LEMMA_TRY_VOID(check(code, "clCreateKernel"));
    loaded->kernels.push_back(kernel);
    uint32_t arguments = 0;
    state_->cl.GetKernelInfo(kernel, kKernelArguments, sizeof arguments, &arguments, nullptr);
    if (arguments != entry.buffers.size() + size_t(entry.scalars)) {
      return base::invalid("kernel " + entry.name + " has " + std::to_string(arguments) + " parameters, expected " +
                           std::to_string(entry.buffers.size()) + " buffers and " + std::to_string(entry.scalars) +
                           " scalars");
    }
  }
  return std::shared_ptr<void>(loaded);
}

Result<std::shared_ptr<void>> OpenClDevice::allocate(int64_t bytes) {
  const int64_t most = state_->info.max_storage_binding_bytes;
  if (most != 0 && bytes > most) {
    return base::system_failure("a buffer needs " + std::to_string(bytes) + " bytes, and the device " +
                                state_->info.name + " allocates at most " + std::to_string(most) + " at once");
  }
  auto memory = std::make_shared<Memory>();
  memory->device = self_.lock();
  memory->cl = &state_->cl;
  int32_t code = 0;
  memory->mem =
      state_->cl.CreateBuffer(state_->context, kMemReadWrite, size_t(std::max<int64_t>(bytes, 4)), nullptr, &code);
  if (code != 0) return failure("clCreateBuffer of " + std::to_string(bytes) + " bytes", code);
  return std::shared_ptr<void>(memory);
}

Result<void> OpenClDevice::write(void* memory, int64_t offset, std::span<const std::byte> from) {
  return check(state_->cl.EnqueueWriteBuffer(state_->queue, static_cast<Memory*>(memory)->mem, 1, size_t(offset),
                                             from.size(), from.data(), 0, nullptr, nullptr),
               "clEnqueueWriteBuffer");
}

Result<void> OpenClDevice::read(void* memory, int64_t offset, std::span<std::byte> into) {
  return check(state_->cl.EnqueueReadBuffer(state_->queue, static_cast<Memory*>(memory)->mem, 1, size_t(offset),
                                            into.size(), into.data(), 0, nullptr, nullptr),
               "clEnqueueReadBuffer");
}

Result<void> OpenClDevice::fill(void* memory, int64_t bytes, uint8_t value) {
  return check(state_->cl.EnqueueFillBuffer(state_->queue, static_cast<Memory*>(memory)->mem, &value, 1, 0,
                                            size_t(bytes), 0, nullptr, nullptr),
               "clEnqueueFillBuffer");
}

// The kernel's arguments are set just before it is enqueued, which copies them.
Result<Event> OpenClDevice::State::enqueue(const Command& command, Keep& keep) {
  if (last) cl.ReleaseEvent(last);  // a wait that gave up: its marker no longer stands last
  last = nullptr;
  const Kernel kernel = static_cast<Loaded*>(command.module)->kernels[command.kernel];
  uint32_t position = 0;
  for (const Argument& argument : command.buffers) {
    Mem mem = static_cast<Memory*>(argument.memory)->mem;
    if (argument.offset != 0 && argument.bytes != 0) {
      const BufferRegion region{size_t(argument.offset), size_t(argument.bytes)};
      int32_t code = 0;
      auto part = std::make_shared<Memory>();
      part->cl = &cl;
      part->mem = mem = cl.CreateSubBuffer(mem, kMemReadWrite, kBufferRegion, &region, &code);
      LEMMA_TRY_VOID(check(code, "clCreateSubBuffer"));
      keep.push_back(part);
    }
    LEMMA_TRY_VOID(check(cl.SetKernelArg(kernel, position++, sizeof mem, &mem), "clSetKernelArg"));
  }
  for (const int64_t scalar : command.launch->scalars) {
    LEMMA_TRY_VOID(check(cl.SetKernelArg(kernel, position++, sizeof scalar, &scalar), "clSetKernelArg"));
  }
  const size_t threads = command.launch->threads;
  const auto& blocks = command.launch->blocks;
  const size_t global[3] = {blocks[0] * threads, blocks[1], blocks[2]}, local[3] = {threads, 1, 1};
  Event event = nullptr;
  LEMMA_TRY_VOID(check(cl.EnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, local, 0, nullptr, &event),
                       "clEnqueueNDRangeKernel"));
  return event;
}

Result<void> OpenClDevice::launch(const Command& command, Keep& keep) {
  LEMMA_TRY(const Event event, state_->enqueue(command, keep));
  state_->cl.ReleaseEvent(event);
  return check(state_->cl.Flush(state_->queue), "clFlush");
}

Result<bool> OpenClDevice::finished() {
  State& s = *state_;
  if (!s.last) {
    LEMMA_TRY_VOID(check(s.cl.EnqueueMarkerWithWaitList(s.queue, 0, nullptr, &s.last), "clEnqueueMarkerWithWaitList"));
    LEMMA_TRY_VOID(check(s.cl.Flush(s.queue), "clFlush"));
  }
  int32_t status = 0;
  LEMMA_TRY_VOID(check(s.cl.GetEventInfo(s.last, kEventStatus, sizeof status, &status, nullptr), "clGetEventInfo"));
  if (status > 0) return false;
  s.cl.ReleaseEvent(s.last);
  s.last = nullptr;
  if (status < 0) return failure("kernel", status);
  return true;
}

Result<double> OpenClDevice::time(std::span<const Command> commands, double limit, Keep& keep) {
  State& s = *state_;
  std::vector<Event> events;
  const auto release = [&] {
    for (const Event event : events) s.cl.ReleaseEvent(event);
  };
  for (const Command& command : commands) {
    auto event = s.enqueue(command, keep);
    if (!event) {
      release();
      return event.error();
    }
    events.push_back(*event);
  }
  const auto done = poll(limit, [&] { return finished(); });
  uint64_t start = 0, end = 0;
  int32_t code = 0;
  if (done.ok() && *done) {
    code |= s.cl.GetEventProfilingInfo(events.front(), kProfilingStart, sizeof start, &start, nullptr);
    code |= s.cl.GetEventProfilingInfo(events.back(), kProfilingEnd, sizeof end, &end, nullptr);
  }
  release();
  if (!done) return done.error();
  if (!*done) return base::system_failure("the launches to time did not finish in time");
  LEMMA_TRY_VOID(check(code, "clGetEventProfilingInfo"));
  return double(end - start) * 1e-9;
}

}  // namespace lemma::runtime
