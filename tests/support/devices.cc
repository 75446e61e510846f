#include "tests/support/devices.h"

#include <cstdlib>
#include <map>

#include "emulator/program.h"
#include "lemma/runtime/host.h"

namespace lemma::testing_support {

using base::Result;

namespace {

runtime::Api api_of(Place place) {
  switch (place) {
    case Place::OpenCl: return runtime::Api::OpenCl;
    case Place::Vulkan: return runtime::Api::Vulkan;
    case Place::WebGpu: return runtime::Api::WebGpu;
    default: return runtime::Api::Cuda;
  }
}

bool is_text(Place place) { return place == Place::CudaText || place == Place::MetalText; }

const runtime::DeviceInfo* find(Place place) {
  static const runtime::DeviceList list = runtime::list_devices(device_options());
  for (const runtime::DeviceInfo& d : list.devices) {
    if (d.api == api_of(place)) return &d;
  }
  return nullptr;
}

}  // namespace

runtime::DeviceOptions device_options() {
  runtime::DeviceOptions out;
  const auto tool = [](const char* variable, const std::string& name) {
    const char* given = std::getenv(variable);
    return given ? std::string(given) : std::string(LEMMA_SOURCE_DIR) + "/out/tools/" + name;
  };
  out.nvrtc = tool("LEMMA_NVRTC", "nvrtc");
  out.webgpu = tool("LEMMA_WEBGPU", "webgpu");
  return out;
}

Result<driver::Arguments> arguments_of(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes,
                                       const NamedValues& inputs) {
  driver::Arguments out;
  for (const auto& [name, values] : inputs) {
    LEMMA_TRY(runtime::Array array, guarded_array(values));
    out.inputs.push_back({name, std::move(array)});
  }
  out.sizes = in_order(graph, sizes);
  return driver::contiguous_inputs(out);
}

const char* name(Place place) {
  if (is_text(place)) return place == Place::CudaText ? "CudaText" : "MetalText";
  return runtime::api_name(api_of(place));
}

bool is_here(Place place) { return is_text(place) || find(place); }

struct DeviceRunner::State {
  driver::OnDevice program;
  std::optional<runtime::Device> device;
  std::optional<runtime::DeviceModule> module;
  std::optional<emulator::Program> text;
};

// The emulator is slow: small tiles, of operands as matrix units take them.
static tile::Target text_target(const emit::device::DeviceOptions& how) {
  tile::Target out = driver::device_target(how);
  const tile::Target small;
  out.tile_rows = out.tile_columns = small.tile_rows;
  out.tile_depth = small.tile_depth;
  out.stream_rows = small.stream_rows;
  out.stream_columns = small.stream_columns;
  return out;
}

Result<DeviceRunner> DeviceRunner::make(const tensor::Graph& graph, driver::CompileOptions options, Place place) {
  auto state = std::make_shared<State>();
  emit::device::DeviceOptions how;
  if (is_text(place)) {
    how.dialect = place == Place::CudaText ? emit::device::DialectId::Cuda : emit::device::DialectId::Metal;
    how.threads = 64;
    how.max_buffers = 64;
    how.matrix_units = place == Place::CudaText;
  } else {
    how = driver::device_options(*find(place));
  }
  if (is_text(place)) options.target = text_target(how);
  LEMMA_TRY(state->program, driver::compile_for_device(graph, options, how));
  runtime::Cache cache{runtime::CacheOptions{}};
  if (is_text(place)) {
    LEMMA_TRY(state->text, emulator::Program::load(state->program, how.dialect, cache));
  } else {
    LEMMA_TRY(state->device, runtime::Device::open(*find(place), device_options()));
    LEMMA_TRY(state->module, driver::load(*state->device, state->program, cache));
  }
  DeviceRunner out;
  out.state_ = std::move(state);
  return out;
}

Result<std::vector<runtime::Named>> DeviceRunner::run(const std::vector<tensor::Binding>& sizes, const NamedValues& inputs) const {
  const State& s = *state_;
  LEMMA_TRY(const driver::Arguments arguments, arguments_of(s.program.compiled.source, sizes, inputs));
  LEMMA_TRY(driver::Call call, driver::prepare(s.program.compiled, arguments));
  if (!s.text) {
    runtime::Device device = *s.device;
    LEMMA_TRY_VOID(driver::launch(device, *s.module, s.program, call));
    return call.outputs;
  }
  emulator::RunOptions options;
  options.order = emulator::Order::Random;
  LEMMA_TRY_VOID(s.text->run(call, options));
  return call.outputs;
}

}  // namespace lemma::testing_support
