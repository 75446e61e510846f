// The part of Vulkan 1.2 that is used, declared here so that no header is needed to build. Names are the standard's
// without the prefix Vk; a structure's first two members are its kind and the next of a chain. Where a structure is
// long, the members between those in use are counted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lemma::runtime::vulkan {

#define LEMMA_VULKAN_HANDLE(name) \
  struct name##_;                 \
  using name = name##_*
LEMMA_VULKAN_HANDLE(Instance);
LEMMA_VULKAN_HANDLE(PhysicalDevice);
LEMMA_VULKAN_HANDLE(LogicalDevice);
LEMMA_VULKAN_HANDLE(Queue);
LEMMA_VULKAN_HANDLE(CommandBuffer);
LEMMA_VULKAN_HANDLE(DeviceMemory);
LEMMA_VULKAN_HANDLE(Buffer);
LEMMA_VULKAN_HANDLE(Fence);
LEMMA_VULKAN_HANDLE(ShaderModule);
LEMMA_VULKAN_HANDLE(SetLayout);
LEMMA_VULKAN_HANDLE(PipelineLayout);
LEMMA_VULKAN_HANDLE(Pipeline);
LEMMA_VULKAN_HANDLE(DescriptorPool);
LEMMA_VULKAN_HANDLE(DescriptorSet);
LEMMA_VULKAN_HANDLE(CommandPool);
LEMMA_VULKAN_HANDLE(QueryPool);
LEMMA_VULKAN_HANDLE(Messenger);
#undef LEMMA_VULKAN_HANDLE

inline constexpr int32_t kSuccess = 0, kNotReady = 1, kTimeout = 2;
inline constexpr uint32_t kVersion12 = (1u << 22) | (2u << 12);

enum Kind : int32_t {
  kApplicationInfo = 0,
  kInstanceCreateInfo = 1,
  kDeviceQueueCreateInfo = 2,
  kDeviceCreateInfo = 3,
  kSubmitInfo = 4,
  kMemoryAllocateInfo = 5,
  kFenceCreateInfo = 8,
  kQueryPoolCreateInfo = 11,
  kBufferCreateInfo = 12,
  kShaderModuleCreateInfo = 16,
  kStageCreateInfo = 18,
  kComputePipelineCreateInfo = 29,
  kPipelineLayoutCreateInfo = 30,
  kSetLayoutCreateInfo = 32,
  kDescriptorPoolCreateInfo = 33,
  kDescriptorSetAllocateInfo = 34,
  kWriteDescriptorSet = 35,
  kCommandPoolCreateInfo = 39,
  kCommandBufferAllocateInfo = 40,
  kCommandBufferBeginInfo = 42,
  kMemoryBarrier = 46,
  kVulkan11Features = 49,
  kVulkan11Properties = 50,
  kVulkan12Features = 51,
  kVulkan12Properties = 52,
  kFeatures2 = 1000059000,
  kProperties2 = 1000059001,
  kMessengerCreateInfo = 1000128004,
};

struct ApplicationInfo {
  Kind kind = kApplicationInfo;
  const void* next = nullptr;
  const char* name;
  uint32_t version;
  const char* engine;
  uint32_t engine_version;
  uint32_t api_version;
};
struct InstanceCreateInfo {
  Kind kind = kInstanceCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0;
  const ApplicationInfo* application;
  uint32_t layer_count;
  const char* const* layers;
  uint32_t extension_count;
  const char* const* extensions;
};
struct LayerProperties {
  char name[256];
  uint32_t version, implementation;
  char description[256];
};
struct Limits {
  uint32_t before_storage_range[7];
  uint32_t max_storage_range;
  uint32_t max_push_constant_bytes;
  uint32_t before_stage_storage_buffers[10];
  uint32_t max_stage_storage_buffers;
  uint32_t before_shared_bytes[34];
  uint32_t max_shared_bytes;
  uint32_t max_blocks[3];
  uint32_t max_threads;
  uint32_t max_block[3];
  uint32_t before_alignment[20];
  uint64_t min_storage_alignment;
  uint32_t before_timestamps[21];
  uint32_t timestamps;
  float timestamp_period;  // nanoseconds a tick
  uint32_t rest[19];
};
static_assert(offsetof(Limits, max_storage_range) == 28 && offsetof(Limits, max_stage_storage_buffers) == 76 &&
              offsetof(Limits, max_shared_bytes) == 216 && offsetof(Limits, min_storage_alignment) == 328 &&
              offsetof(Limits, timestamp_period) == 424 && sizeof(Limits) == 504);
struct Properties {
  uint32_t api_version, driver_version, vendor, device, device_kind;
  char name[256];
  uint8_t uuid[16];
  Limits limits;
  uint32_t sparse[5];
};
static_assert(sizeof(Properties) == 824 && offsetof(Properties, limits) == 296);
struct Vulkan11Properties {
  Kind kind = kVulkan11Properties;
  void* next = nullptr;
  uint8_t ids[48];
  uint32_t subgroup_size;
  uint32_t before_allocation[9];
  uint64_t max_allocation;
};
static_assert(offsetof(Vulkan11Properties, subgroup_size) == 64 && sizeof(Vulkan11Properties) == 112);
struct Vulkan12Properties {
  Kind kind = kVulkan12Properties;
  void* next = nullptr;
  uint32_t driver_id;
  char driver_name[256];
  char driver_info[256];
  uint8_t rest[204];
};
static_assert(sizeof(Vulkan12Properties) == 736);
struct Properties2 {
  Kind kind = kProperties2;
  void* next = nullptr;
  Properties properties;
};
struct Features {
  uint32_t before_float64[39];
  uint32_t float64, int64, int16;
  uint32_t rest[13];
};
static_assert(sizeof(Features) == 220);
struct Features2 {
  Kind kind = kFeatures2;
  void* next = nullptr;
  Features features;
};
struct Vulkan11Features {
  Kind kind = kVulkan11Features;
  void* next = nullptr;
  uint32_t storage16;
  uint32_t rest[11];
};
static_assert(sizeof(Vulkan11Features) == 64);
struct Vulkan12Features {
  Kind kind = kVulkan12Features;
  void* next = nullptr;
  uint32_t before_storage8[2];
  uint32_t storage8;
  uint32_t before_float16[4];
  uint32_t float16, int8;
  uint32_t before_subgroup_types[25];
  uint32_t subgroup_types;
  uint32_t rest[13];
};
static_assert(sizeof(Vulkan12Features) == 208 && offsetof(Vulkan12Features, float16) == 44 &&
              offsetof(Vulkan12Features, subgroup_types) == 152);
struct QueueFamily {
  uint32_t flags, count, timestamp_bits, granularity[3];
};
inline constexpr uint32_t kQueueCompute = 2;
struct QueueCreateInfo {
  Kind kind = kDeviceQueueCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, family, count;
  const float* priorities;
};
struct DeviceCreateInfo {
  Kind kind = kDeviceCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, queue_count;
  const QueueCreateInfo* queues;
  uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  uint32_t extension_count = 0;
  const char* const* extensions = nullptr;
  const Features* features = nullptr;
};
struct MemoryProperties {
  uint32_t type_count;
  struct {
    uint32_t flags, heap;
  } types[32];
  uint32_t heap_count;
  struct {
    uint64_t bytes;
    uint32_t flags;
  } heaps[16];
};
static_assert(sizeof(MemoryProperties) == 520);
inline constexpr uint32_t kDeviceLocal = 1, kHostVisible = 2, kHostCoherent = 4, kHostCached = 8;
struct MemoryRequirements {
  uint64_t bytes, alignment;
  uint32_t type_bits;
};
struct MemoryAllocateInfo {
  Kind kind = kMemoryAllocateInfo;
  const void* next = nullptr;
  uint64_t bytes;
  uint32_t type;
};
struct BufferCreateInfo {
  Kind kind = kBufferCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0;
  uint64_t bytes;
  uint32_t usage, sharing = 0, family_count = 0;
  const uint32_t* families = nullptr;
};
inline constexpr uint32_t kTransferSource = 1, kTransferTarget = 2, kStorageBuffer = 0x20;
struct ShaderModuleCreateInfo {
  Kind kind = kShaderModuleCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0;
  size_t bytes;
  const uint32_t* code;
};
inline constexpr uint32_t kDescriptorStorageBuffer = 7, kStageCompute = 0x20, kBindCompute = 1;
struct SetLayoutBinding {
  uint32_t binding, kind, count, stages;
  const void* samplers;
};
struct SetLayoutCreateInfo {
  Kind kind = kSetLayoutCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, count;
  const SetLayoutBinding* bindings;
};
struct PushConstantRange {
  uint32_t stages, offset, bytes;
};
struct PipelineLayoutCreateInfo {
  Kind kind = kPipelineLayoutCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, set_count;
  const SetLayout* sets;
  uint32_t range_count;
  const PushConstantRange* ranges;
};
struct StageCreateInfo {
  Kind kind = kStageCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, stage;
  ShaderModule module;
  const char* name;
  const void* constants;
};
struct ComputePipelineCreateInfo {
  Kind kind = kComputePipelineCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0;
  StageCreateInfo stage;
  PipelineLayout layout;
  Pipeline base = nullptr;
  int32_t base_index = -1;
};
struct DescriptorPoolSize {
  uint32_t kind, count;
};
struct DescriptorPoolCreateInfo {
  Kind kind = kDescriptorPoolCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, max_sets, size_count;
  const DescriptorPoolSize* sizes;
};
struct DescriptorSetAllocateInfo {
  Kind kind = kDescriptorSetAllocateInfo;
  const void* next = nullptr;
  DescriptorPool pool;
  uint32_t count;
  const SetLayout* layouts;
};
struct DescriptorBufferInfo {
  Buffer buffer;
  uint64_t offset, range;
};
struct WriteDescriptorSet {
  Kind kind = kWriteDescriptorSet;
  const void* next = nullptr;
  DescriptorSet set;
  uint32_t binding, element, count, descriptor_kind;
  const void* images;
  const DescriptorBufferInfo* buffers;
  const void* texels;
};
struct CommandPoolCreateInfo {
  Kind kind = kCommandPoolCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, family;
};
struct CommandBufferAllocateInfo {
  Kind kind = kCommandBufferAllocateInfo;
  const void* next = nullptr;
  CommandPool pool;
  uint32_t level = 0, count;
};
struct CommandBufferBeginInfo {
  Kind kind = kCommandBufferBeginInfo;
  const void* next = nullptr;
  uint32_t flags;
  const void* inheritance = nullptr;
};
struct MemoryBarrier {
  Kind kind = kMemoryBarrier;
  const void* next = nullptr;
  uint32_t from, to;
};
inline constexpr uint32_t kReads = 0x8000, kWrites = 0x10000, kAllCommands = 0x10000, kTopOfPipe = 1,
                          kBottomOfPipe = 0x2000;
inline constexpr uint32_t kHostStage = 0x4000;
struct SubmitInfo {
  Kind kind = kSubmitInfo;
  const void* next = nullptr;
  uint32_t wait_count = 0;
  const void* waits = nullptr;
  const uint32_t* wait_stages = nullptr;
  uint32_t command_count;
  const CommandBuffer* commands;
  uint32_t signal_count = 0;
  const void* signals = nullptr;
};
struct FenceCreateInfo {
  Kind kind = kFenceCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0;
};
struct BufferCopy {
  uint64_t from, to, bytes;
};
struct QueryPoolCreateInfo {
  Kind kind = kQueryPoolCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, query_kind, count, statistics = 0;
};
inline constexpr uint32_t kQueryTimestamp = 2, kQuery64 = 1, kQueryWait = 2;
struct MessageData {
  Kind kind;
  const void* next;
  uint32_t flags;
  const char* id;
  int32_t number;
  const char* text;
};
using MessageCallback = uint32_t (*)(uint32_t severity, uint32_t types, const MessageData* data, void* user);
struct MessengerCreateInfo {
  Kind kind = kMessengerCreateInfo;
  const void* next = nullptr;
  uint32_t flags = 0, severities, types;
  MessageCallback callback;
  void* user;
};
inline constexpr uint32_t kWarning = 0x100, kError = 0x1000, kAboutUse = 2;

using Nothing = const void*;  // allocation callbacks, never given

// Asked of the loader before there is an instance.
struct LoaderFunctions {
  void* (*GetInstanceProcAddr)(Instance, const char*);
  int32_t (*CreateInstance)(const InstanceCreateInfo*, Nothing, Instance*);
  int32_t (*EnumerateInstanceLayerProperties)(uint32_t*, LayerProperties*);
  int32_t (*EnumerateInstanceVersion)(uint32_t*);
};

// Name and signature of every function asked of an instance.
#define LEMMA_VULKAN_FUNCTIONS(F)                                                                                    \
  F(void, DestroyInstance, (Instance, Nothing))                                                                      \
  F(int32_t, EnumeratePhysicalDevices, (Instance, uint32_t*, PhysicalDevice*))                                       \
  F(void, GetPhysicalDeviceProperties, (PhysicalDevice, Properties*))                                                \
  F(void, GetPhysicalDeviceProperties2, (PhysicalDevice, Properties2*))                                              \
  F(void, GetPhysicalDeviceFeatures2, (PhysicalDevice, Features2*))                                                  \
  F(void, GetPhysicalDeviceMemoryProperties, (PhysicalDevice, MemoryProperties*))                                    \
  F(void, GetPhysicalDeviceQueueFamilyProperties, (PhysicalDevice, uint32_t*, QueueFamily*))                         \
  F(int32_t, CreateDevice, (PhysicalDevice, const DeviceCreateInfo*, Nothing, LogicalDevice*))                       \
  F(void, DestroyDevice, (LogicalDevice, Nothing))                                                                   \
  F(void, GetDeviceQueue, (LogicalDevice, uint32_t, uint32_t, Queue*))                                               \
  F(int32_t, AllocateMemory, (LogicalDevice, const MemoryAllocateInfo*, Nothing, DeviceMemory*))                     \
  F(void, FreeMemory, (LogicalDevice, DeviceMemory, Nothing))                                                        \
  F(int32_t, MapMemory, (LogicalDevice, DeviceMemory, uint64_t, uint64_t, uint32_t, void**))                         \
  F(int32_t, CreateBuffer, (LogicalDevice, const BufferCreateInfo*, Nothing, Buffer*))                               \
  F(void, DestroyBuffer, (LogicalDevice, Buffer, Nothing))                                                           \
  F(void, GetBufferMemoryRequirements, (LogicalDevice, Buffer, MemoryRequirements*))                                 \
  F(int32_t, BindBufferMemory, (LogicalDevice, Buffer, DeviceMemory, uint64_t))                                      \
  F(int32_t, CreateShaderModule, (LogicalDevice, const ShaderModuleCreateInfo*, Nothing, ShaderModule*))             \
  F(void, DestroyShaderModule, (LogicalDevice, ShaderModule, Nothing))                                               \
  F(int32_t, CreateDescriptorSetLayout, (LogicalDevice, const SetLayoutCreateInfo*, Nothing, SetLayout*))            \
  F(void, DestroyDescriptorSetLayout, (LogicalDevice, SetLayout, Nothing))                                           \
  F(int32_t, CreatePipelineLayout, (LogicalDevice, const PipelineLayoutCreateInfo*, Nothing, PipelineLayout*))       \
  F(void, DestroyPipelineLayout, (LogicalDevice, PipelineLayout, Nothing))                                           \
  F(int32_t, CreateComputePipelines,                                                                                 \
    (LogicalDevice, Nothing, uint32_t, const ComputePipelineCreateInfo*, Nothing, Pipeline*))                        \
  F(void, DestroyPipeline, (LogicalDevice, Pipeline, Nothing))                                                       \
  F(int32_t, CreateDescriptorPool, (LogicalDevice, const DescriptorPoolCreateInfo*, Nothing, DescriptorPool*))       \
  F(int32_t, ResetDescriptorPool, (LogicalDevice, DescriptorPool, uint32_t))                                         \
  F(void, DestroyDescriptorPool, (LogicalDevice, DescriptorPool, Nothing))                                           \
  F(int32_t, AllocateDescriptorSets, (LogicalDevice, const DescriptorSetAllocateInfo*, DescriptorSet*))              \
  F(void, UpdateDescriptorSets, (LogicalDevice, uint32_t, const WriteDescriptorSet*, uint32_t, Nothing))             \
  F(int32_t, CreateCommandPool, (LogicalDevice, const CommandPoolCreateInfo*, Nothing, CommandPool*))                \
  F(int32_t, ResetCommandPool, (LogicalDevice, CommandPool, uint32_t))                                               \
  F(void, FreeCommandBuffers, (LogicalDevice, CommandPool, uint32_t, const CommandBuffer*))                          \
  F(void, DestroyCommandPool, (LogicalDevice, CommandPool, Nothing))                                                 \
  F(int32_t, AllocateCommandBuffers, (LogicalDevice, const CommandBufferAllocateInfo*, CommandBuffer*))              \
  F(int32_t, BeginCommandBuffer, (CommandBuffer, const CommandBufferBeginInfo*))                                     \
  F(int32_t, EndCommandBuffer, (CommandBuffer))                                                                      \
  F(int32_t, QueueSubmit, (Queue, uint32_t, const SubmitInfo*, Fence))                                               \
  F(int32_t, CreateFence, (LogicalDevice, const FenceCreateInfo*, Nothing, Fence*))                                  \
  F(void, DestroyFence, (LogicalDevice, Fence, Nothing))                                                             \
  F(int32_t, GetFenceStatus, (LogicalDevice, Fence))                                                                 \
  F(int32_t, ResetFences, (LogicalDevice, uint32_t, const Fence*))                                                   \
  F(int32_t, CreateQueryPool, (LogicalDevice, const QueryPoolCreateInfo*, Nothing, QueryPool*))                      \
  F(void, DestroyQueryPool, (LogicalDevice, QueryPool, Nothing))                                                     \
  F(int32_t, GetQueryPoolResults, (LogicalDevice, QueryPool, uint32_t, uint32_t, size_t, void*, uint64_t, uint32_t)) \
  F(void, CmdBindPipeline, (CommandBuffer, uint32_t, Pipeline))                                                      \
  F(void, CmdBindDescriptorSets,                                                                                     \
    (CommandBuffer, uint32_t, PipelineLayout, uint32_t, uint32_t, const DescriptorSet*, uint32_t, const uint32_t*))  \
  F(void, CmdPushConstants, (CommandBuffer, PipelineLayout, uint32_t, uint32_t, uint32_t, const void*))              \
  F(void, CmdDispatch, (CommandBuffer, uint32_t, uint32_t, uint32_t))                                                \
  F(void, CmdPipelineBarrier,                                                                                        \
    (CommandBuffer, uint32_t, uint32_t, uint32_t, uint32_t, const MemoryBarrier*, uint32_t, Nothing, uint32_t,       \
     Nothing))                                                                                                       \
  F(void, CmdCopyBuffer, (CommandBuffer, Buffer, Buffer, uint32_t, const BufferCopy*))                               \
  F(void, CmdResetQueryPool, (CommandBuffer, QueryPool, uint32_t, uint32_t))                                         \
  F(void, CmdWriteTimestamp, (CommandBuffer, uint32_t, QueryPool, uint32_t))

struct Functions {
#define LEMMA_VULKAN_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  LEMMA_VULKAN_FUNCTIONS(LEMMA_VULKAN_MEMBER)
#undef LEMMA_VULKAN_MEMBER
  // Present with the extension alone.
  int32_t (*CreateDebugUtilsMessengerEXT)(Instance, const MessengerCreateInfo*, Nothing, Messenger*) = nullptr;
  void (*DestroyDebugUtilsMessengerEXT)(Instance, Messenger, Nothing) = nullptr;
};

}  // namespace lemma::runtime::vulkan
