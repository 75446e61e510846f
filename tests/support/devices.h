// Programs on devices: those at hand, and CUDA and Metal text run on the CPU under the thread emulator.
#pragma once

#include <array>

#include "lemma/driver/on_device.h"
#include "tests/support/programs.h"

namespace lemma::testing_support {

enum class Place { OpenCl, Vulkan, WebGpu, Cuda, CudaText, MetalText };
inline constexpr std::array kPlaces = {Place::OpenCl, Place::Vulkan, Place::WebGpu, Place::Cuda, Place::CudaText, Place::MetalText};
const char* name(Place place);

// Inputs side by side in memory, as devices take them, behind guards.
base::Result<driver::Arguments> arguments_of(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes,
                                             const NamedValues& inputs);

// Where the tools lie that `run` fetched, or the environment says: NVRTC, a WebGPU library.
runtime::DeviceOptions device_options();

// Whether there is such a device here; text always runs.
bool is_here(Place place);

class DeviceRunner {
 public:
  static base::Result<DeviceRunner> make(const tensor::Graph& graph, driver::CompileOptions options, Place place);
  // Outputs hold nan before. What the emulator finds (races, reads of what nobody wrote) is an error.
  base::Result<std::vector<runtime::Named>> run(const std::vector<tensor::Binding>& sizes, const NamedValues& inputs) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace lemma::testing_support
