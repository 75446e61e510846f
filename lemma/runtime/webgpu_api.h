// The part of Dawn's C interface that is used, as in the npm package bun-webgpu-linux-x64 0.1.7, declared here since
// the library comes without a header. Names are the standard's without the prefix WGPU or wgpu.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lemma::runtime::webgpu {

struct Instance_;
struct Adapter_;
struct Device_;
struct Queue_;
struct Buffer_;
struct ShaderModule_;
struct BindGroupLayout_;
struct PipelineLayout_;
struct BindGroup_;
struct ComputePipeline_;
struct CommandEncoder_;
struct ComputePass_;
struct CommandBuffer_;
using Instance = Instance_*;
using Adapter = Adapter_*;
using Device = Device_*;
using Queue = Queue_*;
using Buffer = Buffer_*;
using ShaderModule = ShaderModule_*;
using BindGroupLayout = BindGroupLayout_*;
using PipelineLayout = PipelineLayout_*;
using BindGroup = BindGroup_*;
using ComputePipeline = ComputePipeline_*;
using CommandEncoder = CommandEncoder_*;
using ComputePass = ComputePass_*;
using CommandBuffer = CommandBuffer_*;

struct Chain {
  Chain* next = nullptr;
  uint32_t kind = 0;
};
inline constexpr uint32_t kShaderSourceWgsl = 2;

struct StringView {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  // SIZE_MAX: up to the zero
};
struct Future {
  uint64_t id;
};
inline constexpr uint32_t kProcessEvents = 2;  // when callbacks come: in InstanceProcessEvents
inline constexpr uint32_t kSpontaneous = 3;    // or any time

struct RequestAdapterOptions {
  Chain* next = nullptr;
  uint32_t feature_level = 2;  // core
  uint32_t power = 0;
  uint32_t fallback = 0;
  uint32_t backend = 0;
  void* surface = nullptr;
};
using AdapterCallback = void (*)(uint32_t status, Adapter, StringView, void*, void*);
struct AdapterCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kProcessEvents;
  AdapterCallback callback;
  void *user1, *user2 = nullptr;
};
struct AdapterInfo {
  Chain* next = nullptr;
  StringView vendor, architecture, device, description;
  uint32_t backend, kind, vendor_id, device_id, subgroup_min, subgroup_max;
};
// Later versions append; hence the room at the end, which is never read.
struct Limits {
  Chain* next = nullptr;
  uint32_t before_bindings[6];
  uint32_t max_bindings_per_group;
  uint32_t before_storage[4];
  uint32_t max_storage_buffers;
  uint32_t max_storage_textures, max_uniform_buffers;
  uint64_t max_uniform_bytes, max_storage_bytes;
  uint32_t min_uniform_alignment, min_storage_alignment;
  uint32_t max_vertex_buffers;
  uint64_t max_buffer_bytes;
  uint32_t before_workgroup[5];
  uint32_t max_shared_bytes;
  uint32_t max_threads;
  uint32_t max_block[3];
  uint32_t max_blocks;
  uint32_t room[61];
};
static_assert(offsetof(Limits, max_storage_buffers) == 52 && offsetof(Limits, max_storage_bytes) == 72 &&
              offsetof(Limits, max_buffer_bytes) == 96 && offsetof(Limits, max_shared_bytes) == 124 &&
              offsetof(Limits, max_blocks) == 144);
inline constexpr uint32_t kShaderF16 = 0x0A, kSubgroups = 0x12, kImplicitSynchronization = 0x00050004;

using ErrorCallback = void (*)(const Device*, uint32_t, StringView, void*, void*);  // both of losses and of errors
struct LostCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kSpontaneous;
  ErrorCallback callback;
  void *user1, *user2 = nullptr;
};
struct ErrorCallbackInfo {
  Chain* next = nullptr;
  ErrorCallback callback;
  void *user1, *user2 = nullptr;
};
struct DeviceDescriptor {
  Chain* next = nullptr;
  StringView label;
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  Chain* queue_next = nullptr;
  StringView queue_label;
  LostCallbackInfo lost;
  ErrorCallbackInfo error;
};
using DeviceCallback = void (*)(uint32_t status, Device, StringView, void*, void*);
struct DeviceCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kProcessEvents;
  DeviceCallback callback;
  void *user1, *user2 = nullptr;
};
struct ShaderSourceWgsl {
  Chain chain{nullptr, kShaderSourceWgsl};
  StringView code;
};
struct Descriptor {  // of a shader module, an encoder
  Chain* next = nullptr;
  StringView label;
};
struct CompilationMessage {
  Chain* next;
  StringView message;
  uint32_t kind;  // 1: an error
  uint64_t line, column, offset, length;
};
struct CompilationInfo {
  Chain* next;
  size_t count;
  const CompilationMessage* messages;
};
using CompilationCallback = void (*)(uint32_t status, const CompilationInfo*, void*, void*);
struct CompilationCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kProcessEvents;
  CompilationCallback callback;
  void *user1, *user2 = nullptr;
};
inline constexpr uint32_t kStorage = 3, kReadOnlyStorage = 4;  // of bindings
inline constexpr uint64_t kComputeStage = 4;
struct BindGroupLayoutEntry {
  Chain* next = nullptr;
  uint32_t binding;
  uint64_t visibility = kComputeStage;
  uint32_t array_size = 0;
  struct {
    Chain* next = nullptr;
    uint32_t kind = 0, dynamic = 0;
    uint64_t min_bytes = 0;
  } buffer;
  struct {
    Chain* next = nullptr;
    uint32_t kind = 0;
  } sampler;
  struct {
    Chain* next = nullptr;
    uint32_t sample = 0, dimension = 0, multisampled = 0;
  } texture;
  struct {
    Chain* next = nullptr;
    uint32_t access = 0, format = 0, dimension = 0;
  } storage_texture;
};
struct BindGroupLayoutDescriptor {
  Chain* next = nullptr;
  StringView label;
  size_t count;
  const BindGroupLayoutEntry* entries;
};
struct PipelineLayoutDescriptor {
  Chain* next = nullptr;
  StringView label;
  size_t count = 1;
  const BindGroupLayout* groups;
  uint32_t immediate_bytes = 0;
};
struct ComputePipelineDescriptor {
  Chain* next = nullptr;
  StringView label;
  PipelineLayout layout;
  Chain* stage_next = nullptr;
  ShaderModule module;
  StringView entry;
  size_t constant_count = 0;
  const void* constants = nullptr;
};
struct BindGroupEntry {
  Chain* next = nullptr;
  uint32_t binding;
  Buffer buffer;
  uint64_t offset, bytes;
  void *sampler = nullptr, *texture = nullptr;
};
struct BindGroupDescriptor {
  Chain* next = nullptr;
  StringView label;
  BindGroupLayout layout;
  size_t count;
  const BindGroupEntry* entries;
};
inline constexpr uint64_t kMapRead = 1, kCopySource = 4, kCopyTarget = 8, kStorageUsage = 0x80;
struct BufferDescriptor {
  Chain* next = nullptr;
  StringView label;
  uint64_t usage, bytes;
  uint32_t mapped = 0;
};
using MapCallback = void (*)(uint32_t status, StringView, void*, void*);
struct MapCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kProcessEvents;
  MapCallback callback;
  void *user1, *user2 = nullptr;
};
using DoneCallback = void (*)(uint32_t status, StringView, void*, void*);
struct DoneCallbackInfo {
  Chain* next = nullptr;
  uint32_t mode = kProcessEvents;
  DoneCallback callback;
  void *user1, *user2 = nullptr;
};
inline constexpr uint32_t kSuccess = 1;
static_assert(sizeof(DeviceDescriptor) == 144 && sizeof(BindGroupLayoutEntry) == 120 && sizeof(BindGroupEntry) == 56 &&
              sizeof(BufferDescriptor) == 48 && sizeof(PipelineLayoutDescriptor) == 48 &&
              sizeof(ComputePipelineDescriptor) == 80 && sizeof(AdapterInfo) == 96 && sizeof(CompilationMessage) == 64);

struct Functions {
  Instance (*CreateInstance)(const void* descriptor);
  void (*InstanceRelease)(Instance);
  void (*InstanceProcessEvents)(Instance);
  Future (*InstanceRequestAdapter)(Instance, const RequestAdapterOptions*, AdapterCallbackInfo);
  void (*AdapterRelease)(Adapter);
  uint32_t (*AdapterGetInfo)(Adapter, AdapterInfo*);
  void (*AdapterInfoFreeMembers)(AdapterInfo);
  uint32_t (*AdapterGetLimits)(Adapter, Limits*);
  uint32_t (*AdapterHasFeature)(Adapter, uint32_t);
  Future (*AdapterRequestDevice)(Adapter, const DeviceDescriptor*, DeviceCallbackInfo);
  void (*DeviceRelease)(Device);
  Queue (*DeviceGetQueue)(Device);
  void (*QueueRelease)(Queue);
  ShaderModule (*DeviceCreateShaderModule)(Device, const Descriptor*);
  Future (*ShaderModuleGetCompilationInfo)(ShaderModule, CompilationCallbackInfo);
  void (*ShaderModuleRelease)(ShaderModule);
  BindGroupLayout (*DeviceCreateBindGroupLayout)(Device, const BindGroupLayoutDescriptor*);
  void (*BindGroupLayoutRelease)(BindGroupLayout);
  PipelineLayout (*DeviceCreatePipelineLayout)(Device, const PipelineLayoutDescriptor*);
  void (*PipelineLayoutRelease)(PipelineLayout);
  ComputePipeline (*DeviceCreateComputePipeline)(Device, const ComputePipelineDescriptor*);
  void (*ComputePipelineRelease)(ComputePipeline);
  BindGroup (*DeviceCreateBindGroup)(Device, const BindGroupDescriptor*);
  void (*BindGroupRelease)(BindGroup);
  Buffer (*DeviceCreateBuffer)(Device, const BufferDescriptor*);
  void (*BufferRelease)(Buffer);
  Future (*BufferMapAsync)(Buffer, uint64_t, size_t, size_t, MapCallbackInfo);
  const void* (*BufferGetConstMappedRange)(Buffer, size_t, size_t);
  void (*BufferUnmap)(Buffer);
  void (*QueueWriteBuffer)(Queue, Buffer, uint64_t, const void*, size_t);
  void (*QueueSubmit)(Queue, size_t, const CommandBuffer*);
  Future (*QueueOnSubmittedWorkDone)(Queue, DoneCallbackInfo);
  CommandEncoder (*DeviceCreateCommandEncoder)(Device, const Descriptor*);
  void (*CommandEncoderRelease)(CommandEncoder);
  ComputePass (*CommandEncoderBeginComputePass)(CommandEncoder, const void*);
  void (*CommandEncoderCopyBufferToBuffer)(CommandEncoder, Buffer, uint64_t, Buffer, uint64_t, uint64_t);
  CommandBuffer (*CommandEncoderFinish)(CommandEncoder, const Descriptor*);
  void (*CommandBufferRelease)(CommandBuffer);
  void (*ComputePassEncoderSetPipeline)(ComputePass, ComputePipeline);
  void (*ComputePassEncoderSetBindGroup)(ComputePass, uint32_t, BindGroup, size_t, const uint32_t*);
  void (*ComputePassEncoderDispatchWorkgroups)(ComputePass, uint32_t, uint32_t, uint32_t);
  void (*ComputePassEncoderEnd)(ComputePass);
  void (*ComputePassEncoderRelease)(ComputePass);
};

}  // namespace lemma::runtime::webgpu
