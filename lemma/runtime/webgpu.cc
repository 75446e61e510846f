#include "lemma/runtime/webgpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "lemma/runtime/webgpu_adapter.h"

namespace lemma::runtime {

using base::Result;
using namespace webgpu;

// Shared by everything made of the device. What Dawn objects to comes by a callback and is collected.
struct WebGpuDevice::State {
  std::mutex mutex;  // of `errors`
  std::string errors;
  WebGpuAdapter from;  // and what follows: last, so that callbacks at their end still find the rest
  double limit = 60;
  WebGpuOwned<webgpu::Device> device{nullptr, nullptr};
  WebGpuOwned<Queue> queue{nullptr, nullptr};
  bool asked = false;  // for the end of the work so far
  bool stale = false;  // work was submitted since
  bool done = false;

  const Functions& wgpu() const { return from.functions; }
  void process() const { wgpu().InstanceProcessEvents(from.instance.get()); }
  Result<void> complaints();
  Result<WebGpuOwned<Buffer>> make_buffer(uint64_t bytes, uint64_t usage);
  Result<void> dispatch(ComputePass pass, const Command& command, Keep& keep);
  Result<void> launch(std::span<const Command> commands, Keep& keep);
  Result<void> submit(WebGpuOwned<CommandEncoder> encoder);
  Result<bool> finished();

  static void on_error(const webgpu::Device*, uint32_t, StringView message, void* user, void*) {
    auto& self = *static_cast<State*>(user);
    const std::lock_guard lock(self.mutex);
    if (self.errors.size() < 4000) self.errors += webgpu_text(message) + "\n";
  }
  static void on_lost(const webgpu::Device*, uint32_t, StringView, void*, void*) {}
  static void on_done(uint32_t, StringView, void* user, void*) { static_cast<State*>(user)->done = true; }
};

namespace {

constexpr int64_t kPieceBytes = int64_t(16) << 20;  // of a transfer

struct Memory {
  std::shared_ptr<void> device;
  WebGpuOwned<Buffer> buffer;
};

struct Kernel {
  WebGpuOwned<BindGroupLayout> group{nullptr, nullptr};
  WebGpuOwned<ComputePipeline> pipeline{nullptr, nullptr};
};

struct Loaded {
  std::shared_ptr<void> device;
  std::vector<Kernel> kernels;
};

struct Opened {
  bool given = false;
  webgpu::Device device = nullptr;
  std::string message;
};
void on_device(uint32_t, webgpu::Device device, StringView message, void* user, void*) {
  *static_cast<Opened*>(user) = {true, device, webgpu_text(message)};
}

struct Compiled {
  bool given = false;
  std::string errors;  // "line:column: message"
};
void on_compiled(uint32_t, const CompilationInfo* info, void* user, void*) {
  auto& out = *static_cast<Compiled*>(user);
  out.given = true;
  for (size_t i = 0; info && i < info->count; ++i) {
    const CompilationMessage& message = info->messages[i];
    if (message.kind != 1) continue;
    out.errors += "kernels.wgsl:" + std::to_string(message.line) + ":" + std::to_string(message.column) + ": " +
                  webgpu_text(message.message) + "\n";
  }
}

struct Mapped {
  uint32_t status = 0;
  std::string message;
};
void on_mapped(uint32_t status, StringView message, void* user, void*) {
  *static_cast<Mapped*>(user) = {status, webgpu_text(message)};
}

}  // namespace

WebGpuDevice::WebGpuDevice(std::shared_ptr<State> state) : state_(std::move(state)) {}
WebGpuDevice::~WebGpuDevice() = default;

Result<void> WebGpuDevice::State::complaints() {
  process();
  const std::lock_guard lock(mutex);
  if (errors.empty()) return {};
  base::Diagnostic out = base::system_failure("WebGPU objects");
  out.notes.push_back(base::Note{base::Span{}, std::exchange(errors, {})});
  return out;
}

Result<std::shared_ptr<WebGpuDevice>> WebGpuDevice::open(const DeviceInfo& info, const DeviceOptions& options) {
  if (info.index != 0) return base::system_failure("there is no WebGPU device " + std::to_string(info.index));
  auto state = std::make_shared<State>();
  LEMMA_TRY(state->from, find_webgpu_adapter(options.webgpu));
  state->limit = options.timeout_seconds;
  const Functions& wgpu = state->wgpu();
  const Adapter adapter = state->from.adapter.get();
  std::vector<uint32_t> features;
  for (const uint32_t feature : {kShaderF16, kSubgroups, kImplicitSynchronization}) {
    if (wgpu.AdapterHasFeature(adapter, feature)) features.push_back(feature);
  }
  DeviceDescriptor descriptor{};
  descriptor.feature_count = features.size();
  descriptor.features = features.data();
  descriptor.limits = &state->from.limits;
  descriptor.lost.callback = State::on_lost;
  descriptor.error.callback = State::on_error;
  descriptor.error.user1 = state.get();
  Opened opened;
  DeviceCallbackInfo callback{};
  callback.callback = on_device;
  callback.user1 = &opened;
  wgpu.AdapterRequestDevice(adapter, &descriptor, callback);
  LEMMA_TRY(const bool done, poll(state->limit, [&]() -> Result<bool> {
              state->process();
              return opened.given;
            }));
  if (!done || !opened.device) return base::system_failure("Dawn does not open the device: " + opened.message);
  state->device = {opened.device, wgpu.DeviceRelease};
  state->queue = {wgpu.DeviceGetQueue(opened.device), wgpu.QueueRelease};
  return std::shared_ptr<WebGpuDevice>(new WebGpuDevice(std::move(state)));
}

namespace {

Result<void> check_text(const Functions& wgpu, ShaderModule module, const std::function<void()>& process) {
  Compiled compiled;
  CompilationCallbackInfo callback{};
  callback.callback = on_compiled;
  callback.user1 = &compiled;
  wgpu.ShaderModuleGetCompilationInfo(module, callback);
  LEMMA_TRY(const bool done, poll(60, [&]() -> Result<bool> {
              process();
              return compiled.given;
            }));
  if (!done) return base::system_failure("Dawn does not say whether the text is right");
  if (!compiled.errors.empty()) return compiler_refusal("Tint", compiled.errors);
  return {};
}

Kernel make_kernel(const Functions& wgpu, webgpu::Device device, ShaderModule module, const KernelEntry& entry) {
  std::vector<BindGroupLayoutEntry> bindings(entry.buffers.size() + (entry.scalars > 0 ? 1 : 0));
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    bindings[i].binding = i;
    const bool written = i < entry.buffers.size() && entry.buffers[i] == Access::ReadWrite;
    bindings[i].buffer.kind = written ? kStorage : kReadOnlyStorage;
  }
  Kernel out;
  BindGroupLayoutDescriptor group{};
  group.count = bindings.size();
  group.entries = bindings.data();
  out.group = {wgpu.DeviceCreateBindGroupLayout(device, &group), wgpu.BindGroupLayoutRelease};
  const BindGroupLayout layout = out.group.get();
  PipelineLayoutDescriptor groups{};
  groups.groups = &layout;
  const WebGpuOwned<PipelineLayout> pipeline_layout{wgpu.DeviceCreatePipelineLayout(device, &groups),
                                                    wgpu.PipelineLayoutRelease};
  ComputePipelineDescriptor pipeline{};
  pipeline.layout = pipeline_layout.get();
  pipeline.module = module;
  pipeline.entry = {entry.name.data(), entry.name.size()};
  out.pipeline = {wgpu.DeviceCreateComputePipeline(device, &pipeline), wgpu.ComputePipelineRelease};
  return out;
}

}  // namespace

Result<std::shared_ptr<void>> WebGpuDevice::compile(const DeviceSource& source, Cache&, const Notices&) {
  State& s = *state_;
  const Functions& wgpu = s.wgpu();
  std::vector<WebGpuOwned<ShaderModule>> modules;
  for (const std::string& text : source.texts) {
    ShaderSourceWgsl code{};
    code.code = {text.data(), text.size()};
    Descriptor descriptor{};
    descriptor.next = &code.chain;
    modules.emplace_back(wgpu.DeviceCreateShaderModule(s.device.get(), &descriptor), wgpu.ShaderModuleRelease);
    const auto right = check_text(wgpu, modules.back().get(), [&] { s.process(); });
    if (!right) {
      (void)s.complaints();  // the same, said once more
      return right.error();
    }
  }
  auto loaded = std::make_shared<Loaded>();
  loaded->device = state_;
  for (const KernelEntry& entry : source.kernels) {
    loaded->kernels.push_back(make_kernel(wgpu, s.device.get(), modules[size_t(entry.text)].get(), entry));
    if (const auto right = s.complaints(); !right) {
      base::Diagnostic out = right.error();
      out.failure = base::Failure::Invalid;
      out.message = "WebGPU refused kernel " + entry.name;
      return out;
    }
  }
  return std::shared_ptr<void>(loaded);
}

Result<WebGpuOwned<Buffer>> WebGpuDevice::State::make_buffer(uint64_t bytes, uint64_t usage) {
  BufferDescriptor descriptor{};
  descriptor.usage = usage;
  descriptor.bytes = bytes;
  WebGpuOwned<Buffer> out{wgpu().DeviceCreateBuffer(device.get(), &descriptor), wgpu().BufferRelease};
  LEMMA_TRY_VOID(complaints());
  if (!out) return base::system_failure("WebGPU gives no buffer of " + std::to_string(bytes) + " bytes");
  return out;
}

Result<std::shared_ptr<void>> WebGpuDevice::allocate(int64_t bytes) {
  const uint64_t most = state_->from.limits.max_buffer_bytes;
  // Transfers are of whole words, and an argument at the very end of a buffer is never quite empty.
  const uint64_t padded = uint64_t(bytes + 3) / 4 * 4 + 4;
  if (padded > most) {
    return base::system_failure("a buffer needs " + std::to_string(bytes) + " bytes, and the device " +
                                state_->from.info.name + " allocates at most " + std::to_string(most - 4) + " at once");
  }
  LEMMA_TRY(WebGpuOwned<Buffer> buffer, state_->make_buffer(padded, kStorageUsage | kCopySource | kCopyTarget));
  return std::shared_ptr<void>(std::make_shared<Memory>(Memory{state_, std::move(buffer)}));
}

Result<void> WebGpuDevice::write(void* memory, int64_t offset, std::span<const std::byte> from) {
  const Buffer buffer = static_cast<Memory*>(memory)->buffer.get();
  for (size_t done = 0; done < from.size();) {
    const size_t bytes = std::min(from.size() - done, size_t(kPieceBytes));
    const int64_t begin = offset + int64_t(done), end = begin + int64_t(bytes);
    const int64_t low = begin / 4 * 4, high = (end + 3) / 4 * 4;
    // Whole words are written; what else is in the first and the last one is read back first.
    std::vector<std::byte> words(size_t(high - low));
    if (begin != low) LEMMA_TRY_VOID(read(memory, low, std::span(words).first(4)));
    if (end != high) LEMMA_TRY_VOID(read(memory, high - 4, std::span(words).last(4)));
    std::memcpy(words.data() + (begin - low), from.data() + done, bytes);
    state_->wgpu().QueueWriteBuffer(state_->queue.get(), buffer, uint64_t(low), words.data(), words.size());
    done += bytes;
  }
  state_->stale = state_->asked;
  return state_->complaints();
}

Result<void> WebGpuDevice::read(void* memory, int64_t offset, std::span<std::byte> into) {
  State& s = *state_;
  const Functions& wgpu = s.wgpu();
  const Buffer buffer = static_cast<Memory*>(memory)->buffer.get();
  for (size_t done = 0; done < into.size();) {
    const size_t bytes = std::min(into.size() - done, size_t(kPieceBytes));
    const int64_t begin = offset + int64_t(done);
    const int64_t low = begin / 4 * 4, high = (begin + int64_t(bytes) + 3) / 4 * 4;
    LEMMA_TRY(const WebGpuOwned<Buffer> staging, s.make_buffer(uint64_t(high - low), kMapRead | kCopyTarget));
    WebGpuOwned<CommandEncoder> encoder{wgpu.DeviceCreateCommandEncoder(s.device.get(), nullptr),
                                        wgpu.CommandEncoderRelease};
    wgpu.CommandEncoderCopyBufferToBuffer(encoder.get(), buffer, uint64_t(low), staging.get(), 0, uint64_t(high - low));
    LEMMA_TRY_VOID(s.submit(std::move(encoder)));
    auto mapped = std::make_unique<Mapped>();
    MapCallbackInfo callback{};
    callback.callback = on_mapped;
    callback.user1 = mapped.get();
    wgpu.BufferMapAsync(staging.get(), kMapRead, 0, size_t(high - low), callback);
    LEMMA_TRY(const bool is_mapped, poll(s.limit, [&]() -> Result<bool> {
                s.process();
                return mapped->status != 0;
              }));
    if (!is_mapped) {
      (void)mapped.release();  // the callback may still come
      return base::system_failure("a copy did not finish in time");
    }
    const void* data =
        mapped->status == kSuccess ? wgpu.BufferGetConstMappedRange(staging.get(), 0, size_t(high - low)) : nullptr;
    if (!data) return base::system_failure("WebGPU does not map a buffer: " + mapped->message);
    std::memcpy(into.data() + done, static_cast<const std::byte*>(data) + (begin - low), bytes);
    wgpu.BufferUnmap(staging.get());
    done += bytes;
  }
  return {};
}

Result<void> WebGpuDevice::fill(void* memory, int64_t bytes, uint8_t value) {
  const std::vector<std::byte> piece(size_t(std::min(bytes, kPieceBytes)), std::byte(value));
  for (int64_t done = 0; done < bytes; done += kPieceBytes) {
    LEMMA_TRY_VOID(write(memory, done, std::span(piece).first(size_t(std::min(bytes - done, kPieceBytes)))));
  }
  return {};
}

Result<void> WebGpuDevice::State::dispatch(ComputePass pass, const Command& command, Keep& keep) {
  const Kernel& kernel = static_cast<Loaded*>(command.module)->kernels[command.kernel];
  LEMMA_TRY(const std::vector<int32_t> scalars, narrow_scalars(*command.launch));
  std::vector<BindGroupEntry> entries;
  for (const Argument& argument : command.buffers) {
    BindGroupEntry entry{};
    entry.binding = uint32_t(entries.size());
    entry.buffer = static_cast<Memory*>(argument.memory)->buffer.get();
    entry.offset = uint64_t(argument.offset);
    entry.bytes = uint64_t(std::max<int64_t>(argument.bytes + 3, 4)) / 4 * 4;
    entries.push_back(entry);
  }
  if (!scalars.empty()) {
    LEMMA_TRY(WebGpuOwned<Buffer> buffer, make_buffer(scalars.size() * 4, kStorageUsage | kCopyTarget));
    wgpu().QueueWriteBuffer(queue.get(), buffer.get(), 0, scalars.data(), scalars.size() * 4);
    BindGroupEntry entry{};
    entry.binding = uint32_t(entries.size());
    entry.buffer = buffer.get();
    entry.offset = 0;
    entry.bytes = scalars.size() * 4;
    entries.push_back(entry);
    keep.push_back(std::make_shared<WebGpuOwned<Buffer>>(std::move(buffer)));
  }
  BindGroupDescriptor descriptor{};
  descriptor.layout = kernel.group.get();
  descriptor.count = entries.size();
  descriptor.entries = entries.data();
  const WebGpuOwned<BindGroup> group{wgpu().DeviceCreateBindGroup(device.get(), &descriptor), wgpu().BindGroupRelease};
  wgpu().ComputePassEncoderSetPipeline(pass, kernel.pipeline.get());
  wgpu().ComputePassEncoderSetBindGroup(pass, 0, group.get(), 0, nullptr);
  const auto& blocks = command.launch->blocks;
  wgpu().ComputePassEncoderDispatchWorkgroups(pass, blocks[0], blocks[1], blocks[2]);
  return {};
}

Result<void> WebGpuDevice::State::submit(WebGpuOwned<CommandEncoder> encoder) {
  const WebGpuOwned<CommandBuffer> commands{wgpu().CommandEncoderFinish(encoder.get(), nullptr),
                                            wgpu().CommandBufferRelease};
  const CommandBuffer raw = commands.get();
  wgpu().QueueSubmit(queue.get(), 1, &raw);
  stale = asked;
  return complaints();
}

Result<void> WebGpuDevice::State::launch(std::span<const Command> commands, Keep& keep) {
  WebGpuOwned<CommandEncoder> encoder{wgpu().DeviceCreateCommandEncoder(device.get(), nullptr),
                                      wgpu().CommandEncoderRelease};
  const WebGpuOwned<ComputePass> pass{wgpu().CommandEncoderBeginComputePass(encoder.get(), nullptr),
                                      wgpu().ComputePassEncoderRelease};
  Result<void> dispatched;
  for (const Command& command : commands) {
    if (dispatched) dispatched = dispatch(pass.get(), command, keep);
  }
  wgpu().ComputePassEncoderEnd(pass.get());
  if (!dispatched) return dispatched;
  return submit(std::move(encoder));
}

Result<void> WebGpuDevice::launch(const Command& command, Keep& keep) {
  return state_->launch(std::span(&command, 1), keep);
}

// Dawn rounds the device's own time stamps to a tenth of a millisecond, so the host's clock it is.
Result<double> WebGpuDevice::time(std::span<const Command> commands, double limit, Keep& keep) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  LEMMA_TRY_VOID(state_->launch(commands, keep));
  for (;;) {
    LEMMA_TRY(const bool done, state_->finished());
    if (done) return elapsed();
    if (elapsed() > limit) return base::system_failure("the launches to time did not finish in time");
  }
}

Result<bool> WebGpuDevice::finished() { return state_->finished(); }

Result<bool> WebGpuDevice::State::finished() {
  if (!asked) {
    done = stale = false;
    DoneCallbackInfo callback{};
    callback.callback = on_done;
    callback.user1 = this;
    asked = true;
    wgpu().QueueOnSubmittedWorkDone(queue.get(), callback);
  }
  process();
  if (!done) return false;
  asked = false;
  if (std::exchange(stale, false)) return false;
  LEMMA_TRY_VOID(complaints());
  return true;
}

}  // namespace lemma::runtime
