// Devices through the Vulkan loader (libvulkan.so.1), from version 1.2 on; kernels are GLSL.
#pragma once

#include <memory>
#include <span>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {

class VulkanDevice {
 public:
  static base::Result<std::shared_ptr<VulkanDevice>> open(const DeviceInfo& info, const DeviceOptions& options);
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice&) = delete;
  VulkanDevice& operator=(const VulkanDevice&) = delete;

  base::Result<std::shared_ptr<void>> compile(const DeviceSource& source, Cache& cache, const Notices& notices);
  base::Result<std::shared_ptr<void>> allocate(int64_t bytes);
  base::Result<void> write(void* memory, int64_t offset, std::span<const std::byte> from);
  base::Result<void> read(void* memory, int64_t offset, std::span<std::byte> into);
  base::Result<void> fill(void* memory, int64_t bytes, uint8_t value);
  base::Result<void> launch(const Command& command, Keep& keep);
  base::Result<bool> finished();
  base::Result<double> time(std::span<const Command> commands, double limit, Keep& keep);

 private:
  struct State;
  explicit VulkanDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lemma::runtime
