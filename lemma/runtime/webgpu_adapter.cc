#include "lemma/runtime/webgpu_adapter.h"

#include <algorithm>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {

using base::Result;
using namespace webgpu;

namespace {

constexpr double kSecondsForAdapter = 10;

Result<Functions> load(const std::string& place) {
  std::vector<std::string> names = library_names(place, "libwebgpu_wrapper.so");
  if (place.empty()) names = {"libwebgpu_wrapper.so"};
  auto library = DynamicLibrary::open(names);
  if (!library) {
    return base::system_failure(
        place.empty() ? "libwebgpu_wrapper.so is not found" : "there is no libwebgpu_wrapper.so in '" + place + "'",
        "take it from the npm package bun-webgpu-linux-x64 0.1.7 and set LEMMA_WEBGPU to its folder");
  }
  Functions wgpu{};
  library->bind(wgpu.CreateInstance, "wgpuCreateInstance");
  library->bind(wgpu.InstanceRelease, "wgpuInstanceRelease");
  library->bind(wgpu.InstanceProcessEvents, "wgpuInstanceProcessEvents");
  library->bind(wgpu.InstanceRequestAdapter, "wgpuInstanceRequestAdapter");
  library->bind(wgpu.AdapterRelease, "wgpuAdapterRelease");
  library->bind(wgpu.AdapterGetInfo, "wgpuAdapterGetInfo");
  library->bind(wgpu.AdapterInfoFreeMembers, "wgpuAdapterInfoFreeMembers");
  library->bind(wgpu.AdapterGetLimits, "wgpuAdapterGetLimits");
  library->bind(wgpu.AdapterHasFeature, "wgpuAdapterHasFeature");
  library->bind(wgpu.AdapterRequestDevice, "wgpuAdapterRequestDevice");
  library->bind(wgpu.DeviceRelease, "wgpuDeviceRelease");
  library->bind(wgpu.DeviceGetQueue, "wgpuDeviceGetQueue");
  library->bind(wgpu.QueueRelease, "wgpuQueueRelease");
  library->bind(wgpu.DeviceCreateShaderModule, "wgpuDeviceCreateShaderModule");
  library->bind(wgpu.ShaderModuleGetCompilationInfo, "wgpuShaderModuleGetCompilationInfo");
  library->bind(wgpu.ShaderModuleRelease, "wgpuShaderModuleRelease");
  library->bind(wgpu.DeviceCreateBindGroupLayout, "wgpuDeviceCreateBindGroupLayout");
  library->bind(wgpu.BindGroupLayoutRelease, "wgpuBindGroupLayoutRelease");
  library->bind(wgpu.DeviceCreatePipelineLayout, "wgpuDeviceCreatePipelineLayout");
  library->bind(wgpu.PipelineLayoutRelease, "wgpuPipelineLayoutRelease");
  library->bind(wgpu.DeviceCreateComputePipeline, "wgpuDeviceCreateComputePipeline");
  library->bind(wgpu.ComputePipelineRelease, "wgpuComputePipelineRelease");
  library->bind(wgpu.DeviceCreateBindGroup, "wgpuDeviceCreateBindGroup");
  library->bind(wgpu.BindGroupRelease, "wgpuBindGroupRelease");
  library->bind(wgpu.DeviceCreateBuffer, "wgpuDeviceCreateBuffer");
  library->bind(wgpu.BufferRelease, "wgpuBufferRelease");
  library->bind(wgpu.BufferMapAsync, "wgpuBufferMapAsync");
  library->bind(wgpu.BufferGetConstMappedRange, "wgpuBufferGetConstMappedRange");
  library->bind(wgpu.BufferUnmap, "wgpuBufferUnmap");
  library->bind(wgpu.QueueWriteBuffer, "wgpuQueueWriteBuffer");
  library->bind(wgpu.QueueSubmit, "wgpuQueueSubmit");
  library->bind(wgpu.QueueOnSubmittedWorkDone, "wgpuQueueOnSubmittedWorkDone");
  library->bind(wgpu.DeviceCreateCommandEncoder, "wgpuDeviceCreateCommandEncoder");
  library->bind(wgpu.CommandEncoderRelease, "wgpuCommandEncoderRelease");
  library->bind(wgpu.CommandEncoderBeginComputePass, "wgpuCommandEncoderBeginComputePass");
  library->bind(wgpu.CommandEncoderCopyBufferToBuffer, "wgpuCommandEncoderCopyBufferToBuffer");
  library->bind(wgpu.CommandEncoderFinish, "wgpuCommandEncoderFinish");
  library->bind(wgpu.CommandBufferRelease, "wgpuCommandBufferRelease");
  library->bind(wgpu.ComputePassEncoderSetPipeline, "wgpuComputePassEncoderSetPipeline");
  library->bind(wgpu.ComputePassEncoderSetBindGroup, "wgpuComputePassEncoderSetBindGroup");
  library->bind(wgpu.ComputePassEncoderDispatchWorkgroups, "wgpuComputePassEncoderDispatchWorkgroups");
  library->bind(wgpu.ComputePassEncoderEnd, "wgpuComputePassEncoderEnd");
  library->bind(wgpu.ComputePassEncoderRelease, "wgpuComputePassEncoderRelease");
  if (!library->lacking().empty()) return base::system_failure("'" + library->path() + "' lacks " + library->lacking());
  return wgpu;
}

struct Answer {
  bool given = false;
  Adapter adapter = nullptr;
  std::string message;
};

void on_adapter(uint32_t, Adapter adapter, StringView message, void* user, void*) {
  auto& answer = *static_cast<Answer*>(user);
  answer.given = true;
  answer.adapter = adapter;
  answer.message = webgpu_text(message);
}

DeviceInfo describe(const Functions& wgpu, Adapter adapter, const Limits& limits) {
  AdapterInfo about{};
  wgpu.AdapterGetInfo(adapter, &about);
  DeviceInfo out;
  out.api = Api::WebGpu;
  out.name = webgpu_text(about.device);
  out.driver = "Dawn, " + webgpu_text(about.description);
  if (about.subgroup_max <= 128 && wgpu.AdapterHasFeature(adapter, kSubgroups)) out.subgroup = int(about.subgroup_min);
  wgpu.AdapterInfoFreeMembers(about);
  out.shared_bytes = limits.max_shared_bytes;
  out.max_threads = std::min(limits.max_threads, limits.max_block[0]);
  out.max_blocks.fill(limits.max_blocks);
  out.max_storage_binding_bytes = int64_t(limits.max_storage_bytes);
  out.offset_alignment = limits.min_storage_alignment;
  out.max_bindings = int(limits.max_storage_buffers) - 1;  // one is for the scalars
  out.max_scalars = 256;
  out.f16 = wgpu.AdapterHasFeature(adapter, kShaderF16);
  out.i16_storage = out.f16;
  return out;
}

}  // namespace

std::string webgpu_text(StringView view) {
  if (!view.data) return {};
  return view.length == SIZE_MAX ? std::string(view.data) : std::string(view.data, view.length);
}

Result<WebGpuAdapter> find_webgpu_adapter(const std::string& place) {
  WebGpuAdapter out;
  LEMMA_TRY(out.functions, load(place));
  const Functions& wgpu = out.functions;
  out.instance = {wgpu.CreateInstance(nullptr), wgpu.InstanceRelease};
  if (!out.instance) return base::system_failure("Dawn gives no instance");
  Answer answer;
  const RequestAdapterOptions options{};
  AdapterCallbackInfo callback{};
  callback.callback = on_adapter;
  callback.user1 = &answer;
  wgpu.InstanceRequestAdapter(out.instance.get(), &options, callback);
  LEMMA_TRY(const bool done, poll(kSecondsForAdapter, [&]() -> Result<bool> {
              wgpu.InstanceProcessEvents(out.instance.get());
              return answer.given;
            }));
  if (!done || !answer.adapter) {
    return base::system_failure(
        "Dawn finds no device" + (answer.message.empty() ? "" : ": " + answer.message),
        "install a Vulkan driver; mesa-vulkan-drivers of version 23 or later has one for the processor");
  }
  out.adapter = {answer.adapter, wgpu.AdapterRelease};
  wgpu.AdapterGetLimits(answer.adapter, &out.limits);
  const Limits& limits = out.limits;
  // Another version of the interface would put other numbers there.
  const uint32_t alignment = limits.min_storage_alignment;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || limits.max_threads < 64 || limits.max_threads > 65536 ||
      limits.max_storage_buffers < 4 || limits.max_storage_bytes < (uint64_t(1) << 20)) {
    return base::system_failure("this library of Dawn's is of another version than the one expected",
                                "take it from the npm package bun-webgpu-linux-x64 0.1.7");
  }
  out.info = describe(wgpu, answer.adapter, limits);
  return out;
}

void list_webgpu(const DeviceOptions& options, DeviceList& list) {
  const auto found = find_webgpu_adapter(options.webgpu);
  if (found) {
    list.devices.push_back(found->info);
  } else {
    list.missing.push_back({Api::WebGpu, found.error().message, found.error().suggestion});
  }
}

}  // namespace lemma::runtime
