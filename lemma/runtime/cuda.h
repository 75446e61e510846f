// NVIDIA's GPUs through the driver (libcuda.so.1) and NVRTC.
#pragma once

#include <memory>
#include <span>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {

class CudaDevice {
 public:
  static base::Result<std::shared_ptr<CudaDevice>> open(const DeviceInfo& info, const DeviceOptions& options);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  base::Result<std::shared_ptr<void>> compile(const DeviceSource& source, Cache& cache, const Notices& notices);
  base::Result<std::shared_ptr<void>> allocate(int64_t bytes);
  base::Result<void> write(void* memory, int64_t offset, std::span<const std::byte> from);
  base::Result<void> read(void* memory, int64_t offset, std::span<std::byte> into);
  base::Result<void> fill(void* memory, int64_t bytes, uint8_t value);
  base::Result<void> launch(const Command& command, Keep& keep);
  base::Result<bool> finished();
  base::Result<double> time(std::span<const Command> commands, double limit, Keep& keep);

  // The launches as one graph, and its launch.
  base::Result<std::shared_ptr<void>> record(std::span<const Command> commands);
  base::Result<void> launch_graph(void* graph);

 private:
  struct State;
  explicit CudaDevice(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace lemma::runtime
