// One opened Vulkan device: its functions, its queue, its memory. Everything made of it keeps it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/runtime/device.h"
#include "lemma/runtime/vulkan_api.h"

namespace lemma::runtime {

base::Result<void> check_vulkan(int32_t code, const std::string& what);

// An instance, and the messages of the validation layer where it is loaded.
class VulkanInstance {
 public:
  static base::Result<std::unique_ptr<VulkanInstance>> create(bool validate);
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  const vulkan::Functions& functions() const { return vk_; }
  // Those of version 1.2 or later that compute.
  std::vector<vulkan::PhysicalDevice> devices() const;
  uint32_t compute_family(vulkan::PhysicalDevice device) const;  // ~0: none
  DeviceInfo describe(vulkan::PhysicalDevice device, int index) const;
  base::Result<void> complaints();  // what the validation layer said since the last call, as an error

 private:
  VulkanInstance() = default;
  static uint32_t on_message(uint32_t, uint32_t, const vulkan::MessageData* data, void* user);

  vulkan::Functions vk_;
  vulkan::Instance instance_ = nullptr;
  vulkan::Messenger messenger_ = nullptr;
  std::mutex mutex_;
  std::string messages_;
};

// A buffer and the piece of a memory block under it.
struct VulkanBuffer {
  vulkan::Buffer buffer = nullptr;
  size_t block = 0;
  void* mapped = nullptr;  // where the host sees it
};

// Memory is taken from the driver in blocks, and from a block by counting up; a block starts over when nothing of it is
// in use. Drivers allow only some thousand allocations, and each is slow.
class VulkanContext {
 public:
  static base::Result<std::shared_ptr<VulkanContext>> create(const DeviceInfo& info, bool validate);
  ~VulkanContext();
  VulkanContext(const VulkanContext&) = delete;
  VulkanContext& operator=(const VulkanContext&) = delete;

  const vulkan::Functions& vk() const { return instance_->functions(); }
  vulkan::LogicalDevice device() const { return device_; }
  vulkan::Queue queue() const { return queue_; }
  uint32_t family() const { return family_; }
  float timestamp_period() const { return timestamp_period_; }  // 0: the queue has no clock
  base::Result<void> complaints() { return instance_->complaints(); }

  base::Result<VulkanBuffer> allocate(int64_t bytes, bool host);  // `host`: mapped, else on the device
  void free(const VulkanBuffer& buffer);

 private:
  struct Block {
    vulkan::DeviceMemory memory = nullptr;
    uint32_t type = 0;
    uint64_t bytes = 0;
    uint64_t used = 0;
    int live = 0;
    std::byte* mapped = nullptr;
  };
  VulkanContext() = default;
  uint32_t find_type(uint32_t allowed, uint32_t wanted) const;
  base::Result<size_t> find_block(const vulkan::MemoryRequirements& needs, bool host);

  std::unique_ptr<VulkanInstance> instance_;
  vulkan::LogicalDevice device_ = nullptr;
  vulkan::Queue queue_ = nullptr;
  uint32_t family_ = 0;
  float timestamp_period_ = 0;
  vulkan::MemoryProperties memory_{};
  std::mutex mutex_;  // of the blocks
  std::vector<Block> blocks_;
};

}  // namespace lemma::runtime
