#include "lemma/runtime/vulkan_context.h"

#include <algorithm>
#include <cstring>

#include "lemma/runtime/device_backend.h"
#include "lemma/runtime/glsl.h"

namespace lemma::runtime {

using base::Result;
using namespace vulkan;

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr uint64_t kBlockBytes = uint64_t(64) << 20;

Result<LoaderFunctions> load() {
  const std::vector<std::string> names = {"libvulkan.so.1"};
  auto library = DynamicLibrary::open(names);
  if (!library) return base::system_failure("libvulkan.so.1 is not found");
  LoaderFunctions out{};
  library->bind(out.GetInstanceProcAddr, "vkGetInstanceProcAddr");
  library->bind(out.CreateInstance, "vkCreateInstance");
  library->bind(out.EnumerateInstanceLayerProperties, "vkEnumerateInstanceLayerProperties");
  library->bind(out.EnumerateInstanceVersion, "vkEnumerateInstanceVersion");
  if (!library->lacking().empty()) return base::system_failure("libvulkan.so.1 lacks " + library->lacking());
  return out;
}

bool has_layer(const LoaderFunctions& loader, const char* name) {
  uint32_t count = 0;
  loader.EnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<LayerProperties> layers(count);
  loader.EnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(),
                     [&](const LayerProperties& x) { return !std::strcmp(x.name, name); });
}

}  // namespace

Result<void> check_vulkan(int32_t code, const std::string& what) {
  if (code == kSuccess) return {};
  const char* meaning = code == -1   ? ": out of host memory"
                        : code == -2 ? ": out of device memory"
                        : code == -4 ? ": the device is lost"
                                     : "";
  return base::system_failure("Vulkan's " + what + " gave code " + std::to_string(code) + meaning);
}

uint32_t VulkanInstance::on_message(uint32_t, uint32_t, const MessageData* data, void* user) {
  auto& self = *static_cast<VulkanInstance*>(user);
  const std::lock_guard lock(self.mutex_);
  if (self.messages_.size() < 4000 && data->text) self.messages_ += std::string(data->text) + "\n";
  return 0;
}

Result<std::unique_ptr<VulkanInstance>> VulkanInstance::create(bool validate) {
  LEMMA_TRY(const LoaderFunctions loader, load());
  if (validate && !has_layer(loader, kValidationLayer)) {
    return base::system_failure(std::string("the layer ") + kValidationLayer + " is not found",
                                "install vulkan-validationlayers");
  }
  std::unique_ptr<VulkanInstance> out(new VulkanInstance);
  const char* layers[] = {kValidationLayer};
  const char* extensions[] = {"VK_EXT_debug_utils"};
  MessengerCreateInfo messenger{};
  messenger.severities = kWarning | kError;
  messenger.types = kAboutUse;
  messenger.callback = on_message;
  messenger.user = out.get();
  ApplicationInfo application{};
  application.name = application.engine = "lemma";
  application.api_version = kVersion12;
  InstanceCreateInfo create{};
  create.application = &application;
  if (validate) {
    create.layer_count = create.extension_count = 1;
    create.layers = layers;
    create.extensions = extensions;
  }
  LEMMA_TRY_VOID(check_vulkan(loader.CreateInstance(&create, nullptr, &out->instance_), "vkCreateInstance"));
  std::string lacking;
  const auto bind = [&](auto& function, const char* name, bool needed) {
    using F = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<F>(loader.GetInstanceProcAddr(out->instance_, name));
    if (!function && needed && lacking.empty()) lacking = name;
  };
#define LEMMA_VULKAN_BIND(result, name, parameters) bind(out->vk_.name, "vk" #name, true);
  LEMMA_VULKAN_FUNCTIONS(LEMMA_VULKAN_BIND)
#undef LEMMA_VULKAN_BIND
  if (!lacking.empty()) return base::system_failure("the Vulkan loader lacks " + lacking);
  bind(out->vk_.CreateDebugUtilsMessengerEXT, "vkCreateDebugUtilsMessengerEXT", false);
  bind(out->vk_.DestroyDebugUtilsMessengerEXT, "vkDestroyDebugUtilsMessengerEXT", false);
  if (validate && out->vk_.CreateDebugUtilsMessengerEXT && out->vk_.DestroyDebugUtilsMessengerEXT) {
    LEMMA_TRY_VOID(
        check_vulkan(out->vk_.CreateDebugUtilsMessengerEXT(out->instance_, &messenger, nullptr, &out->messenger_),
                     "debug messenger"));
  }
  return out;
}

VulkanInstance::~VulkanInstance() {
  if (messenger_) vk_.DestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_ && vk_.DestroyInstance) vk_.DestroyInstance(instance_, nullptr);
}

Result<void> VulkanInstance::complaints() {
  const std::lock_guard lock(mutex_);
  if (messages_.empty()) return {};
  base::Diagnostic out = base::system_failure("the Vulkan validation layer objects");
  out.notes.push_back(base::Note{base::Span{}, std::exchange(messages_, {})});
  return out;
}

std::vector<PhysicalDevice> VulkanInstance::devices() const {
  uint32_t count = 0;
  if (vk_.EnumeratePhysicalDevices(instance_, &count, nullptr) != kSuccess) return {};
  std::vector<PhysicalDevice> out(count);
  vk_.EnumeratePhysicalDevices(instance_, &count, out.data());
  std::erase_if(out, [&](PhysicalDevice device) {
    Properties properties{};
    vk_.GetPhysicalDeviceProperties(device, &properties);
    return properties.api_version < kVersion12 || compute_family(device) == ~0u;
  });
  return out;
}

uint32_t VulkanInstance::compute_family(PhysicalDevice device) const {
  uint32_t count = 0;
  vk_.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<QueueFamily> families(count);
  vk_.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if (families[i].flags & kQueueCompute) return i;
  }
  return ~0u;
}

DeviceInfo VulkanInstance::describe(PhysicalDevice device, int index) const {
  Vulkan12Properties twelve{};
  Vulkan11Properties eleven{};
  eleven.next = &twelve;
  Properties2 properties{};
  properties.next = &eleven;
  vk_.GetPhysicalDeviceProperties2(device, &properties);
  Vulkan12Features features12{};
  Vulkan11Features features11{};
  features11.next = &features12;
  Features2 features{};
  features.next = &features11;
  vk_.GetPhysicalDeviceFeatures2(device, &features);
  MemoryProperties memory{};
  vk_.GetPhysicalDeviceMemoryProperties(device, &memory);
  const Limits& limits = properties.properties.limits;
  DeviceInfo out;
  out.api = Api::Vulkan;
  out.index = index;
  out.name = properties.properties.name;
  out.driver = std::string(twelve.driver_name) + " " + twelve.driver_info;
  for (uint32_t i = 0; i < memory.heap_count; ++i) {
    if (memory.heaps[i].flags & 1) out.memory_bytes = std::max(out.memory_bytes, int64_t(memory.heaps[i].bytes));
  }
  out.shared_bytes = limits.max_shared_bytes;
  out.max_threads = std::min(limits.max_threads, limits.max_block[0]);
  out.max_blocks = {limits.max_blocks[0], limits.max_blocks[1], limits.max_blocks[2]};
  out.max_storage_binding_bytes = limits.max_storage_range;
  out.offset_alignment = std::max<int64_t>(1, int64_t(limits.min_storage_alignment));
  out.max_bindings = int(std::min(limits.max_stage_storage_buffers, 1024u));
  out.max_scalars = int(limits.max_push_constant_bytes / 4);
  out.subgroup = int(eleven.subgroup_size);
  out.f16 = features12.float16;
  out.f64 = features.features.float64;
  out.i64 = features.features.int64;
  out.i16_storage = features11.storage16;
  out.i8_storage = features12.storage8;
  return out;
}

void list_vulkan(DeviceList& list) {
  const auto instance = VulkanInstance::create(false);
  if (!instance) {
    list.missing.push_back(
        {Api::Vulkan, instance.error().message, "install libvulkan1 and a driver such as mesa-vulkan-drivers"});
    return;
  }
  if (glsl_compiler().empty()) {
    const base::Diagnostic reason = compile_glsl("").error();
    list.missing.push_back({Api::Vulkan, reason.message, reason.suggestion});
    return;
  }
  int index = 0;
  for (const PhysicalDevice device : (*instance)->devices())
    list.devices.push_back((*instance)->describe(device, index++));
  if (index == 0) {
    list.missing.push_back({Api::Vulkan,
                            "the loader libvulkan.so.1 is there, and knows no device of Vulkan 1.2 that computes",
                            "install a driver such as mesa-vulkan-drivers"});
  }
}

Result<std::shared_ptr<VulkanContext>> VulkanContext::create(const DeviceInfo& info, bool validate) {
  std::shared_ptr<VulkanContext> out(new VulkanContext);
  LEMMA_TRY(out->instance_, VulkanInstance::create(validate));
  const Functions& vk = out->vk();
  const std::vector<PhysicalDevice> devices = out->instance_->devices();
  if (info.index < 0 || size_t(info.index) >= devices.size()) {
    return base::system_failure("there is no Vulkan device " + std::to_string(info.index));
  }
  const PhysicalDevice physical = devices[size_t(info.index)];
  out->family_ = out->instance_->compute_family(physical);
  // Of what the device can do, what kernels use.
  Vulkan12Features has12{}, use12{};
  Vulkan11Features has11{}, use11{};
  Features2 has{}, use{};
  has.next = &has11;
  has11.next = &has12;
  use.next = &use11;
  use11.next = &use12;
  vk.GetPhysicalDeviceFeatures2(physical, &has);
  use.features.float64 = has.features.float64;
  use.features.int64 = has.features.int64;
  use.features.int16 = has.features.int16;
  use11.storage16 = has11.storage16;
  use12.storage8 = has12.storage8;
  use12.float16 = has12.float16;
  use12.int8 = has12.int8;
  use12.subgroup_types = has12.subgroup_types;
  const float priority = 1;
  QueueCreateInfo queue{};
  queue.family = out->family_;
  queue.count = 1;
  queue.priorities = &priority;
  DeviceCreateInfo create{};
  create.next = &use;
  create.queue_count = 1;
  create.queues = &queue;
  LEMMA_TRY_VOID(check_vulkan(vk.CreateDevice(physical, &create, nullptr, &out->device_), "vkCreateDevice"));
  vk.GetDeviceQueue(out->device_, out->family_, 0, &out->queue_);
  vk.GetPhysicalDeviceMemoryProperties(physical, &out->memory_);
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<QueueFamily> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  Properties properties{};
  vk.GetPhysicalDeviceProperties(physical, &properties);
  if (families[out->family_].timestamp_bits != 0) out->timestamp_period_ = properties.limits.timestamp_period;
  return out;
}

VulkanContext::~VulkanContext() {
  if (!device_) return;
  for (const Block& block : blocks_) {
    if (block.memory) vk().FreeMemory(device_, block.memory, nullptr);
  }
  vk().DestroyDevice(device_, nullptr);
}

// The first of the allowed types that has all the wanted properties, or the number of types.
uint32_t VulkanContext::find_type(uint32_t allowed, uint32_t wanted) const {
  uint32_t type = 0;
  while (type < memory_.type_count && !((allowed >> type & 1) && (memory_.types[type].flags & wanted) == wanted)) {
    ++type;
  }
  return type;
}

// A block with room for the buffer, made if need be.
Result<size_t> VulkanContext::find_block(const MemoryRequirements& needs, bool host) {
  uint32_t type = find_type(needs.type_bits, host ? kHostVisible | kHostCoherent | kHostCached : kDeviceLocal);
  if (host && type == memory_.type_count) type = find_type(needs.type_bits, kHostVisible | kHostCoherent);
  if (type == memory_.type_count) return base::system_failure("the Vulkan device has no memory for buffers");
  const auto aligned = [&](uint64_t at) { return (at + needs.alignment - 1) / needs.alignment * needs.alignment; };
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.memory && block.type == type && block.bytes >= needs.bytes &&
        aligned(block.used) <= block.bytes - needs.bytes) {
      return i;
    }
  }
  // Large buffers have blocks of their own; so has whoever comes when the rest of a whole one is not to be had.
  Block block;
  block.type = type;
  block.bytes = needs.bytes > kBlockBytes / 4 ? needs.bytes : kBlockBytes;
  MemoryAllocateInfo info{};
  info.type = type;
  info.bytes = block.bytes;
  int32_t code = vk().AllocateMemory(device_, &info, nullptr, &block.memory);
  if (code != kSuccess && block.bytes != needs.bytes) {
    block.bytes = info.bytes = needs.bytes;
    code = vk().AllocateMemory(device_, &info, nullptr, &block.memory);
  }
  LEMMA_TRY_VOID(check_vulkan(code, "vkAllocateMemory of " + std::to_string(block.bytes) + " bytes"));
  if (host) {
    void* mapped = nullptr;
    code = vk().MapMemory(device_, block.memory, 0, block.bytes, 0, &mapped);
    if (code != kSuccess) vk().FreeMemory(device_, block.memory, nullptr);
    LEMMA_TRY_VOID(check_vulkan(code, "vkMapMemory"));
    block.mapped = static_cast<std::byte*>(mapped);
  }
  const auto free_place = std::find_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return !b.memory; });
  if (free_place == blocks_.end()) {
    blocks_.push_back(block);
    return blocks_.size() - 1;
  }
  *free_place = block;
  return size_t(free_place - blocks_.begin());
}

Result<VulkanBuffer> VulkanContext::allocate(int64_t bytes, bool host) {
  const std::lock_guard lock(mutex_);
  BufferCreateInfo info{};
  // Kernels may be given the empty end of a buffer, and an argument is never quite empty.
  info.bytes = uint64_t(bytes + 3) / 4 * 4 + 4;
  info.usage = kTransferSource | kTransferTarget | kStorageBuffer;
  VulkanBuffer out;
  LEMMA_TRY_VOID(check_vulkan(vk().CreateBuffer(device_, &info, nullptr, &out.buffer),
                              "vkCreateBuffer of " + std::to_string(bytes) + " bytes"));
  MemoryRequirements needs{};
  vk().GetBufferMemoryRequirements(device_, out.buffer, &needs);
  const auto found = find_block(needs, host);
  if (!found) {
    vk().DestroyBuffer(device_, out.buffer, nullptr);
    return found.error();
  }
  out.block = *found;
  Block& block = blocks_[out.block];
  const uint64_t at = (block.used + needs.alignment - 1) / needs.alignment * needs.alignment;
  const int32_t code = vk().BindBufferMemory(device_, out.buffer, block.memory, at);
  if (code != kSuccess) vk().DestroyBuffer(device_, out.buffer, nullptr);
  LEMMA_TRY_VOID(check_vulkan(code, "vkBindBufferMemory"));
  block.used = at + needs.bytes;
  ++block.live;
  if (block.mapped) out.mapped = block.mapped + at;
  return out;
}

void VulkanContext::free(const VulkanBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  vk().DestroyBuffer(device_, buffer.buffer, nullptr);
  Block& block = blocks_[buffer.block];
  if (--block.live > 0) return;
  block.used = 0;
  if (block.bytes == kBlockBytes) return;
  vk().FreeMemory(device_, block.memory, nullptr);
  block = Block{};
}

}  // namespace lemma::runtime
