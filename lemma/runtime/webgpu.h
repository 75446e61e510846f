// Devices through Dawn's C interface (libwebgpu_wrapper.so); kernels are WGSL.
#pragma once

#include <memory>
#include <span>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {

class WebGpuDevice {
 public:
  static base::Result<std::shared_ptr<WebGpuDevice>> open(const DeviceInfo& info, const DeviceOptions& options);
  ~WebGpuDevice();
  WebGpuDevice(const WebGpuDevice&) = delete;
  WebGpuDevice& operator=(const WebGpuDevice&) = delete;

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
  explicit WebGpuDevice(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace lemma::runtime
