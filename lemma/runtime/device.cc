// The checks and the order of calls that all interfaces share.
#include "lemma/runtime/device.h"

#include <mutex>
#include <set>
#include <string_view>
#include <variant>

#include "lemma/base/match.h"
#include "lemma/runtime/cuda.h"
#include "lemma/runtime/device_backend.h"
#include "lemma/runtime/opencl.h"
#include "lemma/runtime/vulkan.h"
#include "lemma/runtime/webgpu.h"

namespace lemma::runtime {

using base::Result;

namespace {

using Backend = std::variant<std::shared_ptr<CudaDevice>, std::shared_ptr<OpenClDevice>, std::shared_ptr<VulkanDevice>,
                             std::shared_ptr<WebGpuDevice>>;

template <class X>
Result<Backend> open_backend(const DeviceInfo& info, const DeviceOptions& options) {
  LEMMA_TRY(auto opened, X::open(info, options));
  return Backend(std::move(opened));
}

Result<Backend> open_backend(const DeviceInfo& info, const DeviceOptions& options) {
  switch (info.api) {
    case Api::Cuda:
      return open_backend<CudaDevice>(info, options);
    case Api::OpenCl:
      return open_backend<OpenClDevice>(info, options);
    case Api::Vulkan:
      return open_backend<VulkanDevice>(info, options);
    case Api::WebGpu:
      return open_backend<WebGpuDevice>(info, options);
  }
  return base::system_failure("no such interface");
}

std::string count(int64_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

Result<void> check_range(int64_t offset, int64_t bytes, int64_t size, const std::string& what) {
  if (offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset) return {};
  return base::invalid(what + " covers " + count(bytes, "byte") + " from byte " + std::to_string(offset) +
                       ", and the buffer has " + std::to_string(size));
}

Result<void> check_source(const DeviceSource& source, const DeviceInfo& info) {
  if (source.texts.empty() || source.kernels.empty()) return base::invalid("there is no kernel to compile");
  std::set<std::string_view> names;
  for (const KernelEntry& entry : source.kernels) {
    if (!names.insert(entry.name).second) return base::invalid("two kernels are named " + entry.name);
    const std::string what = "kernel " + entry.name;
    if (entry.text < 0 || size_t(entry.text) >= source.texts.size()) {
      return base::invalid(what + " stands in text " + std::to_string(entry.text) + ", and there are " +
                           std::to_string(source.texts.size()));
    }
    if (entry.threads == 0 && (info.api == Api::Vulkan || info.api == Api::WebGpu)) {
      return base::invalid(what + " does not say how many threads its blocks have, which its text fixes");
    }
    if (int64_t(entry.buffers.size()) > info.max_bindings || entry.scalars > info.max_scalars) {
      return base::unsupported(what + " takes " + count(int64_t(entry.buffers.size()), "buffer") + " and " +
                               count(entry.scalars, "scalar") + ", and this device passes at most " +
                               std::to_string(info.max_bindings) + " and " + std::to_string(info.max_scalars));
    }
  }
  return {};
}

// Limits of the grid; 0 in the information is unknown.
Result<void> check_grid(const Launch& launch, const KernelEntry& entry, const DeviceInfo& info) {
  const std::string what = "kernel " + entry.name;
  if (entry.threads != 0 && launch.threads != entry.threads) {
    return base::invalid(what + " is written for blocks of " + std::to_string(entry.threads) +
                         " threads and launched with " + std::to_string(launch.threads));
  }
  if (launch.threads == 0 || (info.max_threads != 0 && launch.threads > info.max_threads)) {
    return base::invalid(what + " is launched with " + std::to_string(launch.threads) +
                         " threads a block, and the device takes 1 to " + std::to_string(info.max_threads));
  }
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t limit = info.max_blocks[size_t(axis)], blocks = launch.blocks[size_t(axis)];
    if (limit != 0 && blocks > limit) {
      return base::unsupported(what + " is launched with " + std::to_string(blocks) + " blocks along axis " +
                                   std::to_string(axis) + ", and the device takes " + std::to_string(limit),
                               {}, "spread the blocks over more axes");
    }
  }
  if (launch.dynamic_shared_bytes > 0 && info.api != Api::Cuda) {
    return base::unsupported(what + " asks for dynamic shared memory, which CUDA alone has");
  }
  if (launch.dynamic_shared_bytes > info.shared_bytes) {
    return base::unsupported(what + " asks for " + std::to_string(launch.dynamic_shared_bytes) +
                             " bytes of shared memory, and a block has " + std::to_string(info.shared_bytes));
  }
  return {};
}

}  // namespace

struct Device::State {
  DeviceInfo info;
  DeviceOptions options;
  Backend backend;
  std::shared_ptr<const void> owner;  // the same object as the backend's
  std::mutex mutex;
  Keep in_flight;
  int launched = 0;  // since the last wait

  State(DeviceInfo i, DeviceOptions o, Backend b) : info(std::move(i)), options(std::move(o)), backend(std::move(b)) {
    owner = base::match(backend, [](const auto& x) { return std::shared_ptr<const void>(x); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    // What a hanging kernel still uses can only be left where it is.
    if (!settle(options.timeout_seconds)) new std::pair(std::move(in_flight), backend);
  }

  Result<void> settle(double limit) {
    LEMMA_TRY(const bool done,
              poll(limit, [&] { return base::match(backend, [](const auto& x) { return x->finished(); }); }));
    if (!done) {
      return base::system_failure(
          "the device " + info.name + " did not finish within " + std::to_string(int64_t(limit * 1000)) + " ms",
          "a kernel hangs, or needs a longer time limit");
    }
    in_flight.clear();
    launched = 0;
    return {};
  }

  Result<void> check_owner(const std::shared_ptr<const void>& other, const char* what) const {
    if (other == owner) return {};
    return base::invalid(std::string(what) + " belongs to another device than " + info.name);
  }
  Result<Argument> prepare_buffer(const BufferArg& arg, void* object, const std::string& what) const;
  Result<Command> prepare(const DeviceModule& module, const Launch& launch) const;
  Result<std::vector<Command>> prepare(std::span<const Step> steps);
  Result<void> start(const Command& command, const DeviceModule& module);
};

Result<Argument> Device::State::prepare_buffer(const BufferArg& arg, void* object, const std::string& what) const {
  const int64_t bytes = arg.bytes < 0 ? arg.buffer.bytes() - arg.offset : arg.bytes;
  LEMMA_TRY_VOID(check_range(arg.offset, bytes, arg.buffer.bytes(), what));
  if (arg.offset % info.offset_alignment != 0) {
    return base::unsupported(what + " begins at byte " + std::to_string(arg.offset) +
                             ", and this device wants multiples of " + std::to_string(info.offset_alignment));
  }
  if (info.max_storage_binding_bytes != 0 && bytes > info.max_storage_binding_bytes) {
    return base::unsupported(what + " covers " + std::to_string(bytes) + " bytes, and this device passes at most " +
                             std::to_string(info.max_storage_binding_bytes));
  }
  return Argument{object, arg.offset, bytes};
}

Result<Command> Device::State::prepare(const DeviceModule& module, const Launch& launch) const {
  LEMMA_TRY_VOID(check_owner(module.owner_, "the module"));
  Command out;
  out.module = module.object_.get();
  out.launch = &launch;
  for (; out.kernel < module.kernels_.size(); ++out.kernel) {
    if (module.kernels_[out.kernel].name == launch.kernel) out.entry = &module.kernels_[out.kernel];
    if (out.entry) break;
  }
  if (!out.entry) {
    std::string names;
    for (const KernelEntry& entry : module.kernels_) names += (names.empty() ? "" : ", ") + entry.name;
    return base::invalid("the module has no kernel " + launch.kernel + "; it has " + names);
  }
  const KernelEntry& entry = *out.entry;
  if (launch.buffers.size() != entry.buffers.size() || launch.scalars.size() != size_t(entry.scalars)) {
    return base::invalid("kernel " + entry.name + " takes " + count(int64_t(entry.buffers.size()), "buffer") + " and " +
                         count(entry.scalars, "scalar") + ", and is given " +
                         count(int64_t(launch.buffers.size()), "buffer") + " and " +
                         count(int64_t(launch.scalars.size()), "scalar"));
  }
  LEMMA_TRY_VOID(check_grid(launch, entry, info));
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const BufferArg& arg = launch.buffers[i];
    const std::string what = "buffer " + std::to_string(i) + " of " + entry.name;
    LEMMA_TRY_VOID(check_owner(arg.buffer.owner_, what.c_str()));
    LEMMA_TRY(Argument argument, prepare_buffer(arg, arg.buffer.object_.get(), what));
    out.buffers.push_back(argument);
  }
  return out;
}

Result<std::vector<Command>> Device::State::prepare(std::span<const Step> steps) {
  std::vector<Command> out;
  for (const Step& step : steps) {
    LEMMA_TRY(Command command, prepare(step.module, step.launch));
    const auto& blocks = step.launch.blocks;
    if (blocks[0] != 0 && blocks[1] != 0 && blocks[2] != 0) out.push_back(std::move(command));
  }
  return out;
}

Result<void> Device::State::start(const Command& command, const DeviceModule& module) {
  const auto& blocks = command.launch->blocks;
  if (blocks[0] == 0 || blocks[1] == 0 || blocks[2] == 0) return {};
  if (launched >= kMostInFlight) LEMMA_TRY_VOID(settle(options.timeout_seconds));
  ++launched;
  in_flight.push_back(module.object_);
  for (const BufferArg& arg : command.launch->buffers) in_flight.push_back(arg.buffer.object_);
  return base::match(backend, [&](const auto& x) { return x->launch(command, in_flight); });
}

Result<Device> Device::open(const DeviceInfo& info, const DeviceOptions& options) {
  LEMMA_TRY(Backend backend, open_backend(info, options));
  return Device(std::make_shared<State>(info, options, std::move(backend)));
}

const DeviceInfo& Device::info() const { return state_->info; }

Result<DeviceModule> Device::compile(const DeviceSource& source, Cache& cache, const Notices& notices) {
  LEMMA_TRY_VOID(check_source(source, info()));
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY(auto object,
            base::match(state_->backend, [&](const auto& x) { return x->compile(source, cache, notices); }));
  DeviceModule out;
  out.kernels_ = source.kernels;
  out.object_ = std::move(object);
  out.owner_ = state_->owner;
  return out;
}

Result<DeviceBuffer> Device::allocate(int64_t bytes) {
  if (bytes < 0) return base::invalid("a buffer of " + std::to_string(bytes) + " bytes was asked for");
  if (info().memory_bytes != 0 && bytes > info().memory_bytes) {
    return base::system_failure("a buffer needs " + std::to_string(bytes) + " bytes, and the device " + info().name +
                                " has " + std::to_string(info().memory_bytes));
  }
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY(auto object, base::match(state_->backend, [&](const auto& x) { return x->allocate(bytes); }));
  DeviceBuffer out;
  out.bytes_ = bytes;
  out.object_ = std::move(object);
  out.owner_ = state_->owner;
  return out;
}

Result<void> Device::write(const DeviceBuffer& buffer, int64_t offset, std::span<const std::byte> from) {
  LEMMA_TRY_VOID(state_->check_owner(buffer.owner_, "the buffer"));
  LEMMA_TRY_VOID(check_range(offset, int64_t(from.size()), buffer.bytes_, "a write"));
  if (from.empty()) return {};
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY_VOID(state_->settle(state_->options.timeout_seconds));
  return base::match(state_->backend, [&](const auto& x) { return x->write(buffer.object_.get(), offset, from); });
}

Result<void> Device::read(const DeviceBuffer& buffer, int64_t offset, std::span<std::byte> into) {
  LEMMA_TRY_VOID(state_->check_owner(buffer.owner_, "the buffer"));
  LEMMA_TRY_VOID(check_range(offset, int64_t(into.size()), buffer.bytes_, "a read"));
  if (into.empty()) return {};
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY_VOID(state_->settle(state_->options.timeout_seconds));
  return base::match(state_->backend, [&](const auto& x) { return x->read(buffer.object_.get(), offset, into); });
}

Result<void> Device::fill(const DeviceBuffer& buffer, uint8_t value) {
  LEMMA_TRY_VOID(state_->check_owner(buffer.owner_, "the buffer"));
  if (buffer.bytes_ == 0) return {};
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY_VOID(state_->settle(state_->options.timeout_seconds));
  return base::match(state_->backend,
                     [&](const auto& x) { return x->fill(buffer.object_.get(), buffer.bytes_, value); });
}

Result<void> Device::launch(const DeviceModule& module, const Launch& launch) {
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY(const Command command, state_->prepare(module, launch));
  return state_->start(command, module);
}

Result<DeviceGraph> Device::record(std::span<const Step> steps) {
  const std::lock_guard lock(state_->mutex);
  DeviceGraph out;
  out.steps_.assign(steps.begin(), steps.end());
  out.owner_ = state_->owner;
  LEMMA_TRY(const std::vector<Command> commands, state_->prepare(steps));
  if (const auto* cuda = std::get_if<std::shared_ptr<CudaDevice>>(&state_->backend); cuda && !commands.empty()) {
    LEMMA_TRY(out.object_, (*cuda)->record(commands));
  }
  return out;
}

Result<void> Device::launch(const DeviceGraph& graph) {
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY_VOID(state_->check_owner(graph.owner_, "the graph"));
  if (graph.object_) {
    if (state_->launched >= kMostInFlight) LEMMA_TRY_VOID(state_->settle(state_->options.timeout_seconds));
    ++state_->launched;
    state_->in_flight.push_back(graph.object_);
    for (const Step& step : graph.steps_) {
      state_->in_flight.push_back(step.module.object_);
      for (const BufferArg& arg : step.launch.buffers) state_->in_flight.push_back(arg.buffer.object_);
    }
    return std::get<std::shared_ptr<CudaDevice>>(state_->backend)->launch_graph(graph.object_.get());
  }
  for (const Step& step : graph.steps_) {
    LEMMA_TRY(const Command command, state_->prepare(step.module, step.launch));
    LEMMA_TRY_VOID(state_->start(command, step.module));
  }
  return {};
}

Result<void> Device::wait() {
  const std::lock_guard lock(state_->mutex);
  return state_->settle(state_->options.timeout_seconds);
}

Result<double> Device::time(std::span<const Step> steps) {
  const std::lock_guard lock(state_->mutex);
  LEMMA_TRY_VOID(state_->settle(state_->options.timeout_seconds));
  LEMMA_TRY(const std::vector<Command> commands, state_->prepare(steps));
  if (commands.empty()) return 0.0;
  for (const Step& step : steps) {
    state_->in_flight.push_back(step.module.object_);
    for (const BufferArg& arg : step.launch.buffers) state_->in_flight.push_back(arg.buffer.object_);
  }
  const double limit = state_->options.timeout_seconds;
  LEMMA_TRY(const double seconds,
            base::match(state_->backend, [&](const auto& x) { return x->time(commands, limit, state_->in_flight); }));
  LEMMA_TRY_VOID(state_->settle(limit));
  return seconds;
}

const char* api_name(Api api) {
  switch (api) {
    case Api::Cuda:
      return "CUDA";
    case Api::OpenCl:
      return "OpenCL";
    case Api::Vulkan:
      return "Vulkan";
    case Api::WebGpu:
      return "WebGPU";
  }
  return "";
}

DeviceList list_devices(const DeviceOptions& options) {
  DeviceList list;
  list_cuda(options, list);
  list_opencl(list);
  list_vulkan(list);
  list_webgpu(options, list);
  return list;
}

}  // namespace lemma::runtime
