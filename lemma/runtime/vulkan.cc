#include "lemma/runtime/vulkan.h"

#include <algorithm>
#include <cstring>

#include "lemma/runtime/glsl.h"
#include "lemma/runtime/vulkan_context.h"

namespace lemma::runtime {

using base::Result;
using namespace vulkan;

namespace {

constexpr int64_t kStagingBytes = int64_t(4) << 20;

struct Memory {
  std::shared_ptr<VulkanContext> context;
  VulkanBuffer buffer;
  ~Memory() {
    if (buffer.buffer) context->free(buffer);
  }
};

struct Kernel {
  SetLayout set = nullptr;
  PipelineLayout layout = nullptr;
  Pipeline pipeline = nullptr;
};

struct Loaded {
  std::shared_ptr<VulkanContext> context;
  std::vector<Kernel> kernels;
  ~Loaded() {
    const Functions& vk = context->vk();
    for (const Kernel& kernel : kernels) {
      if (kernel.pipeline) vk.DestroyPipeline(context->device(), kernel.pipeline, nullptr);
      if (kernel.layout) vk.DestroyPipelineLayout(context->device(), kernel.layout, nullptr);
      if (kernel.set) vk.DestroyDescriptorSetLayout(context->device(), kernel.set, nullptr);
    }
  }
};

// The threads of a block as the SPIR-V states them (OpExecutionMode LocalSize), or 0.
uint64_t block_threads(const std::vector<std::byte>& spirv) {
  constexpr uint32_t kOpExecutionMode = 16, kLocalSize = 17;
  std::vector<uint32_t> words(spirv.size() / 4);
  std::memcpy(words.data(), spirv.data(), words.size() * 4);
  for (size_t at = 5; at < words.size();) {
    const uint32_t length = words[at] >> 16, operation = words[at] & 0xFFFF;
    if (length == 0) return 0;
    if (operation == kOpExecutionMode && length == 6 && at + 5 < words.size() && words[at + 2] == kLocalSize) {
      return uint64_t(words[at + 3]) * words[at + 4] * words[at + 5];
    }
    at += length;
  }
  return 0;
}

Result<Kernel> make_kernel(const VulkanContext& context, const KernelEntry& entry, const std::vector<std::byte>& spirv,
                           Kernel& out) {
  const Functions& vk = context.vk();
  const LogicalDevice device = context.device();
  std::vector<SetLayoutBinding> bindings;
  for (uint32_t i = 0; i < entry.buffers.size(); ++i) {
    bindings.push_back({i, kDescriptorStorageBuffer, 1, kStageCompute, nullptr});
  }
  SetLayoutCreateInfo set{};
  set.count = uint32_t(bindings.size());
  set.bindings = bindings.data();
  LEMMA_TRY_VOID(
      check_vulkan(vk.CreateDescriptorSetLayout(device, &set, nullptr, &out.set), "vkCreateDescriptorSetLayout"));
  const PushConstantRange range{kStageCompute, 0, uint32_t(entry.scalars) * 4};
  PipelineLayoutCreateInfo layout{};
  layout.set_count = 1;
  layout.sets = &out.set;
  layout.range_count = entry.scalars > 0 ? 1 : 0;
  layout.ranges = &range;
  LEMMA_TRY_VOID(
      check_vulkan(vk.CreatePipelineLayout(device, &layout, nullptr, &out.layout), "vkCreatePipelineLayout"));
  std::vector<uint32_t> words(spirv.size() / 4);
  std::memcpy(words.data(), spirv.data(), words.size() * 4);
  ShaderModuleCreateInfo shader{};
  shader.bytes = words.size() * 4;
  shader.code = words.data();
  ComputePipelineCreateInfo pipeline{};
  pipeline.stage.stage = kStageCompute;
  pipeline.stage.name = "main";
  pipeline.layout = out.layout;
  LEMMA_TRY_VOID(
      check_vulkan(vk.CreateShaderModule(device, &shader, nullptr, &pipeline.stage.module), "vkCreateShaderModule"));
  const int32_t code = vk.CreateComputePipelines(device, nullptr, 1, &pipeline, nullptr, &out.pipeline);
  vk.DestroyShaderModule(device, pipeline.stage.module, nullptr);
  LEMMA_TRY_VOID(check_vulkan(code, "vkCreateComputePipelines of " + entry.name));
  return out;
}

}  // namespace

struct VulkanDevice::State {
  std::shared_ptr<VulkanContext> context;
  double limit = 60;
  CommandPool commands = nullptr;
  Fence fence = nullptr;
  bool fence_given = false;  // submitted after some work, and not yet seen signalled
  bool fence_stale = false;  // work was submitted after it
  VulkanBuffer staging;

  ~State() {
    if (!context) return;
    const Functions& vk = context->vk();
    if (staging.buffer) context->free(staging);
    if (fence) vk.DestroyFence(context->device(), fence, nullptr);
    if (commands) vk.DestroyCommandPool(context->device(), commands, nullptr);
  }
  Result<CommandBuffer> begin();
  Result<void> submit(CommandBuffer buffer);
  Result<void> record(CommandBuffer buffer, const Command& command, Keep& keep);
  Result<void> copy(Buffer from, Buffer to, const BufferCopy& piece);
  Result<bool> finished();
};

VulkanDevice::VulkanDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
VulkanDevice::~VulkanDevice() = default;

Result<std::shared_ptr<VulkanDevice>> VulkanDevice::open(const DeviceInfo& info, const DeviceOptions& options) {
  auto state = std::make_unique<State>();
  LEMMA_TRY(state->context, VulkanContext::create(info, options.validate));
  state->limit = options.timeout_seconds;
  const Functions& vk = state->context->vk();
  const LogicalDevice device = state->context->device();
  CommandPoolCreateInfo pool{};
  pool.family = state->context->family();
  LEMMA_TRY_VOID(check_vulkan(vk.CreateCommandPool(device, &pool, nullptr, &state->commands), "vkCreateCommandPool"));
  const FenceCreateInfo fence{};
  LEMMA_TRY_VOID(check_vulkan(vk.CreateFence(device, &fence, nullptr, &state->fence), "vkCreateFence"));
  LEMMA_TRY(state->staging, state->context->allocate(kStagingBytes, true));
  return std::shared_ptr<VulkanDevice>(new VulkanDevice(std::move(state)));
}

Result<std::shared_ptr<void>> VulkanDevice::compile(const DeviceSource& source, Cache& cache, const Notices& notices) {
  auto loaded = std::make_shared<Loaded>();
  loaded->context = state_->context;
  std::vector<std::vector<std::byte>> objects;
  for (const std::string& text : source.texts) {
    const KernelKey key{text, "vulkan1.2", glsl_compiler(), "SPIR-V 1.5"};
    LEMMA_TRY(auto object, cached_object(
                               cache, key, [&] { return compile_glsl(text); }, notices));
    objects.push_back(std::move(object));
  }
  for (const KernelEntry& entry : source.kernels) {
    const std::vector<std::byte>& object = objects[size_t(entry.text)];
    const uint64_t threads = block_threads(object);
    if (threads != entry.threads) {
      return base::invalid("the text of kernel " + entry.name + " has blocks of " + std::to_string(threads) +
                           " threads, expected " + std::to_string(entry.threads));
    }
    Kernel& kernel = loaded->kernels.emplace_back();
    LEMMA_TRY_VOID(make_kernel(*state_->context, entry, object, kernel));
  }
  LEMMA_TRY_VOID(state_->context->complaints());
  return std::shared_ptr<void>(loaded);
}

Result<std::shared_ptr<void>> VulkanDevice::allocate(int64_t bytes) {
  auto memory = std::make_shared<Memory>();
  memory->context = state_->context;
  LEMMA_TRY(memory->buffer, state_->context->allocate(bytes, false));
  return std::shared_ptr<void>(memory);
}

Result<CommandBuffer> VulkanDevice::State::begin() {
  const Functions& vk = context->vk();
  CommandBufferAllocateInfo info{};
  info.pool = commands;
  info.count = 1;
  CommandBuffer out = nullptr;
  LEMMA_TRY_VOID(check_vulkan(vk.AllocateCommandBuffers(context->device(), &info, &out), "vkAllocateCommandBuffers"));
  CommandBufferBeginInfo begin{};
  begin.flags = 1;  // submitted once
  LEMMA_TRY_VOID(check_vulkan(vk.BeginCommandBuffer(out, &begin), "vkBeginCommandBuffer"));
  return out;
}

Result<void> VulkanDevice::State::submit(CommandBuffer buffer) {
  const Functions& vk = context->vk();
  LEMMA_TRY_VOID(check_vulkan(vk.EndCommandBuffer(buffer), "vkEndCommandBuffer"));
  SubmitInfo info{};
  info.command_count = 1;
  info.commands = &buffer;
  fence_stale = fence_given;
  return check_vulkan(vk.QueueSubmit(context->queue(), 1, &info, nullptr), "vkQueueSubmit");
}

// A dispatch that sees what was written before it.
Result<void> VulkanDevice::State::record(CommandBuffer buffer, const Command& command, Keep& keep) {
  const Functions& vk = context->vk();
  const LogicalDevice device = context->device();
  const Kernel& kernel = static_cast<Loaded*>(command.module)->kernels[command.kernel];
  LEMMA_TRY(const std::vector<int32_t> scalars, narrow_scalars(*command.launch));
  MemoryBarrier barrier{};
  barrier.from = kWrites;
  barrier.to = kReads | kWrites;
  vk.CmdPipelineBarrier(buffer, kAllCommands, kAllCommands, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  vk.CmdBindPipeline(buffer, kBindCompute, kernel.pipeline);
  if (!command.buffers.empty()) {
    const uint32_t count = uint32_t(command.buffers.size());
    const DescriptorPoolSize size{kDescriptorStorageBuffer, count};
    DescriptorPoolCreateInfo create{};
    create.max_sets = create.size_count = 1;
    create.sizes = &size;
    DescriptorPool pool = nullptr;
    LEMMA_TRY_VOID(check_vulkan(vk.CreateDescriptorPool(device, &create, nullptr, &pool), "vkCreateDescriptorPool"));
    keep.push_back(std::shared_ptr<void>(
        pool, [c = context](DescriptorPool p) { c->vk().DestroyDescriptorPool(c->device(), p, nullptr); }));
    DescriptorSetAllocateInfo allocate{};
    allocate.pool = pool;
    allocate.count = 1;
    allocate.layouts = &kernel.set;
    DescriptorSet set = nullptr;
    LEMMA_TRY_VOID(check_vulkan(vk.AllocateDescriptorSets(device, &allocate, &set), "vkAllocateDescriptorSets"));
    std::vector<DescriptorBufferInfo> places;
    for (const Argument& argument : command.buffers) {
      const uint64_t bytes = uint64_t(std::max<int64_t>(argument.bytes, 4));
      places.push_back({static_cast<Memory*>(argument.memory)->buffer.buffer, uint64_t(argument.offset), bytes});
    }
    std::vector<WriteDescriptorSet> writes(count);
    for (uint32_t i = 0; i < count; ++i) {
      writes[i].set = set;
      writes[i].binding = i;
      writes[i].count = 1;
      writes[i].descriptor_kind = kDescriptorStorageBuffer;
      writes[i].buffers = &places[i];
    }
    vk.UpdateDescriptorSets(device, count, writes.data(), 0, nullptr);
    vk.CmdBindDescriptorSets(buffer, kBindCompute, kernel.layout, 0, 1, &set, 0, nullptr);
  }
  if (!scalars.empty()) {
    vk.CmdPushConstants(buffer, kernel.layout, kStageCompute, 0, uint32_t(scalars.size() * 4), scalars.data());
  }
  const auto& blocks = command.launch->blocks;
  vk.CmdDispatch(buffer, blocks[0], blocks[1], blocks[2]);
  return {};
}

Result<void> VulkanDevice::launch(const Command& command, Keep& keep) {
  LEMMA_TRY(const CommandBuffer buffer, state_->begin());
  LEMMA_TRY_VOID(state_->record(buffer, command, keep));
  LEMMA_TRY_VOID(state_->submit(buffer));
  return state_->context->complaints();
}

Result<bool> VulkanDevice::finished() { return state_->finished(); }

Result<bool> VulkanDevice::State::finished() {
  const Functions& vk = context->vk();
  const LogicalDevice device = context->device();
  if (!fence_given) {
    LEMMA_TRY_VOID(check_vulkan(vk.QueueSubmit(context->queue(), 0, nullptr, fence), "vkQueueSubmit"));
    fence_given = true;
    fence_stale = false;
  }
  const int32_t status = vk.GetFenceStatus(device, fence);
  if (status == kNotReady) return false;
  LEMMA_TRY_VOID(check_vulkan(status, "vkGetFenceStatus"));
  LEMMA_TRY_VOID(check_vulkan(vk.ResetFences(device, 1, &fence), "vkResetFences"));
  fence_given = false;
  if (std::exchange(fence_stale, false)) return false;
  LEMMA_TRY_VOID(
      check_vulkan(vk.ResetCommandPool(device, commands, 1 /* give the buffers back */), "vkResetCommandPool"));
  LEMMA_TRY_VOID(context->complaints());
  return true;
}

// Copies, and waits for it.
Result<void> VulkanDevice::State::copy(Buffer from, Buffer to, const BufferCopy& piece) {
  const Functions& vk = context->vk();
  LEMMA_TRY(const CommandBuffer buffer, begin());
  MemoryBarrier barrier{};
  barrier.from = kWrites;
  barrier.to = kReads | kWrites;
  vk.CmdPipelineBarrier(buffer, kAllCommands | kHostStage, kAllCommands, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  vk.CmdCopyBuffer(buffer, from, to, 1, &piece);
  vk.CmdPipelineBarrier(buffer, kAllCommands, kAllCommands | kHostStage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  LEMMA_TRY_VOID(submit(buffer));
  LEMMA_TRY(const bool done, poll(limit, [&] { return finished(); }));
  if (!done) return base::system_failure("a copy did not finish in time");
  return {};
}

Result<void> VulkanDevice::write(void* memory, int64_t offset, std::span<const std::byte> from) {
  const Buffer buffer = static_cast<Memory*>(memory)->buffer.buffer;
  for (size_t done = 0; done < from.size();) {
    const size_t bytes = std::min(from.size() - done, size_t(kStagingBytes));
    std::memcpy(state_->staging.mapped, from.data() + done, bytes);
    LEMMA_TRY_VOID(state_->copy(state_->staging.buffer, buffer, {0, uint64_t(offset) + done, bytes}));
    done += bytes;
  }
  return {};
}

Result<void> VulkanDevice::read(void* memory, int64_t offset, std::span<std::byte> into) {
  const Buffer buffer = static_cast<Memory*>(memory)->buffer.buffer;
  for (size_t done = 0; done < into.size();) {
    const size_t bytes = std::min(into.size() - done, size_t(kStagingBytes));
    LEMMA_TRY_VOID(state_->copy(buffer, state_->staging.buffer, {uint64_t(offset) + done, 0, bytes}));
    std::memcpy(into.data() + done, state_->staging.mapped, bytes);
    done += bytes;
  }
  return {};
}

Result<void> VulkanDevice::fill(void* memory, int64_t bytes, uint8_t value) {
  const Buffer buffer = static_cast<Memory*>(memory)->buffer.buffer;
  std::memset(state_->staging.mapped, value, size_t(std::min(bytes, kStagingBytes)));
  for (int64_t done = 0; done < bytes; done += kStagingBytes) {
    const uint64_t piece = uint64_t(std::min(bytes - done, kStagingBytes));
    LEMMA_TRY_VOID(state_->copy(state_->staging.buffer, buffer, {0, uint64_t(done), piece}));
  }
  return {};
}

Result<double> VulkanDevice::time(std::span<const Command> commands, double limit, Keep& keep) {
  State& s = *state_;
  const Functions& vk = s.context->vk();
  const LogicalDevice device = s.context->device();
  if (s.context->timestamp_period() == 0) return base::unsupported("this Vulkan device has no clock for kernels");
  QueryPoolCreateInfo create{};
  create.query_kind = kQueryTimestamp;
  create.count = 2;
  QueryPool pool = nullptr;
  LEMMA_TRY_VOID(check_vulkan(vk.CreateQueryPool(device, &create, nullptr, &pool), "vkCreateQueryPool"));
  keep.push_back(
      std::shared_ptr<void>(pool, [c = s.context](QueryPool p) { c->vk().DestroyQueryPool(c->device(), p, nullptr); }));
  LEMMA_TRY(const CommandBuffer buffer, s.begin());
  vk.CmdResetQueryPool(buffer, pool, 0, 2);
  vk.CmdWriteTimestamp(buffer, kBottomOfPipe, pool, 0);
  for (const Command& command : commands) LEMMA_TRY_VOID(s.record(buffer, command, keep));
  vk.CmdWriteTimestamp(buffer, kBottomOfPipe, pool, 1);
  LEMMA_TRY_VOID(s.submit(buffer));
  LEMMA_TRY(const bool done, poll(limit, [&] { return finished(); }));
  if (!done) return base::system_failure("the launches to time did not finish in time");
  uint64_t ticks[2] = {};
  LEMMA_TRY_VOID(check_vulkan(vk.GetQueryPoolResults(device, pool, 0, 2, sizeof ticks, ticks, 8, kQuery64 | kQueryWait),
                              "vkGetQueryPoolResults"));
  return double(ticks[1] - ticks[0]) * double(s.context->timestamp_period()) * 1e-9;
}

}  // namespace lemma::runtime
