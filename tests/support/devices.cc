#include "tests/support/devices.h"

#include <cstdlib>
#include <map>

#include "emulator/module.h"
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

bool is_text(Place place) { return place == Place::CudaText || place == Place::MetalText; }

const runtime::DeviceInfo* find(Place place) {
  static const runtime::DeviceList list = runtime::list_devices(device_options());
  for (const runtime::DeviceInfo& d : list.devices) {
    if (d.api == api_of(place)) return &d;
  }
  return nullptr;
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

// A call's buffers as the emulator takes them.
class Memory {
 public:
  Memory(const tile::Program& program, const driver::DeviceCall& plan, const driver::Call& call, bool metal) : program_(program), metal_(metal) {
    size_t parameter = 0;
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      if (plan.bytes[b] == 0) continue;
      const tile::Space space = program.buffers[b].space;
      Buffer& own = buffers_[int(b)];
      own.bytes.assign(size_t(plan.bytes[b]), std::byte{0xff});
      if (space == tile::Space::Scratch) continue;
      own.parameter = int(parameter);
      const runtime::Array& array = call.arrays[parameter];
      if (space != tile::Space::Output) {
        std::copy_n(static_cast<const std::byte*>(call.buffers[parameter]), scalar::bytes(array.type, array.count()), own.bytes.begin());
        own.written = true;
      }
      ++parameter;
    }
  }

  Result<void> run(const emulator::Module& module, const emit::device::DeviceKernel& kernel, const driver::DeviceLaunch& l) {
    emulator::Launch launch;
    launch.kernel = kernel.name;
    launch.blocks[0] = l.blocks;
    launch.threads = kernel.threads;
    launch.options.order = emulator::Order::Random;
    launch.options.seed = uint64_t(l.kernel) + 1;
    for (int b : l.buffers) {
      Buffer& own = buffers_[b];
      launch.buffers.push_back({program_.buffers[size_t(b)].name, own.bytes.data(), int64_t(own.bytes.size()), own.written});
    }
    std::vector<std::byte> slices(size_t(4 * l.slice_words), std::byte{0xff});
    if (l.slice_words > 0) launch.buffers.push_back({"slices", slices.data(), int64_t(slices.size()), false});
    // Metal takes its sizes from memory.
    std::vector<int64_t> sizes = l.scalars;
    if (metal_ && !sizes.empty()) launch.buffers.push_back({"sizes", sizes.data(), int64_t(8 * sizes.size()), true});
    else for (int64_t s : sizes) launch.scalars.push_back(emulator::integer(s));
    LEMMA_TRY(const emulator::Report report, module.run(launch));
    if (!report.findings.empty()) return base::invalid(report.findings[0].message);
    for (size_t i = 0; i < l.buffers.size(); ++i) buffers_[l.buffers[i]].written |= kernel.written[i];
    return {};
  }

  void copy_back(driver::Call& call) const {
    for (const auto& [b, own] : buffers_) {
      if (own.parameter < 0 || program_.buffers[size_t(b)].space == tile::Space::Input) continue;
      const runtime::Array& array = call.arrays[size_t(own.parameter)];
      std::copy_n(own.bytes.begin(), scalar::bytes(array.type, array.count()), static_cast<std::byte*>(call.buffers[size_t(own.parameter)]));
    }
  }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    bool written = false;
    int parameter = -1;
  };
  const tile::Program& program_;
  const bool metal_;
  std::map<int, Buffer> buffers_;
};

}  // namespace

const char* name(Place place) {
  if (is_text(place)) return place == Place::CudaText ? "CudaText" : "MetalText";
  return runtime::api_name(api_of(place));
}

bool is_here(Place place) { return is_text(place) || find(place); }

struct DeviceRunner::State {
  driver::OnDevice program;
  std::optional<runtime::Device> device;
  std::optional<runtime::DeviceModule> module;
  std::optional<emulator::Module> text;
  bool metal = false;
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
  } else {
    how = driver::device_options(*find(place));
  }
  state->metal = place == Place::MetalText;
  if (is_text(place)) options.target = text_target(how);
  LEMMA_TRY(state->program, driver::compile_for_device(graph, options, how));
  runtime::Cache cache{runtime::CacheOptions{}};
  if (is_text(place)) {
    LEMMA_TRY(const runtime::Compiler compiler, runtime::find_compiler({}, cache));
    LEMMA_TRY(state->text, emulator::Module::load(std::string(place == Place::MetalText ? emulator::metal_header() : "") + state->program.text.source, compiler, cache));
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
  // A few workgroups, which walk over all blocks.
  LEMMA_TRY(const driver::DeviceCall plan, driver::plan_launches(s.program, call, 3));
  Memory memory(s.program.compiled.program, plan, call, s.metal);
  for (const driver::DeviceLaunch& l : plan.launches) {
    if (l.blocks > 0) LEMMA_TRY_VOID(memory.run(*s.text, s.program.text.kernels[size_t(l.kernel)], l));
  }
  memory.copy_back(call);
  return call.outputs;
}

}  // namespace lemma::testing_support
