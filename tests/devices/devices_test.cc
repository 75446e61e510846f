// Every program under examples/ on every kind of device: the ones at hand (OpenCL, Vulkan, WebGPU, CUDA) and, as text run
// on the CPU under the thread emulator, CUDA. Each must give what the oracle gives, with outputs poisoned before; the
// emulator must find nothing. A device that is not there is skipped, by name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "emulator/module.h"
#include "lemma/driver/on_device.h"
#include "lemma/runtime/host.h"
#include "tests/support/examples.h"

namespace lemma {
namespace {

using base::Result;
using testing_support::Example;

const std::string folder = std::string(LEMMA_SOURCE_DIR) + "/examples";

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

const runtime::DeviceList& devices() {
  static const runtime::DeviceList list = runtime::list_devices(device_options());
  return list;
}

Result<driver::Arguments> arguments_of(const Example& example) {
  driver::Arguments out;
  for (const auto& [name, values] : example.inputs) {
    LEMMA_TRY(runtime::Array array, testing_support::guarded_array(values));
    out.inputs.push_back({name, std::move(array)});
  }
  for (const tensor::Binding& b : testing_support::in_order(example.graph, example.sizes)) {
    for (const tensor::Size& s : example.graph.sizes) {
      if (s.name == b.name) out.sizes.push_back(b);
    }
  }
  return driver::contiguous_inputs(out);
}

void expect_outputs(const Example& example, const driver::Call& call) {
  for (const runtime::Named& n : call.outputs) {
    EXPECT_EQ(testing_support::difference(example.expected.at(n.name), testing_support::values_of(n.array), example.bound), "") << n.name;
  }
}

// What no device of this kind can do yet, with the limit's name.
bool skips(const base::Diagnostic& d) { return d.failure == base::Failure::Unsupported; }

class OnDevices : public ::testing::TestWithParam<std::tuple<std::string, runtime::Api>> {};

TEST_P(OnDevices, GivesWhatTheOracleGives) {
  const auto& [name, api] = GetParam();
  const runtime::DeviceInfo* info = nullptr;
  for (const runtime::DeviceInfo& d : devices().devices) {
    if (d.api == api && !info) info = &d;
  }
  if (!info) GTEST_SKIP() << "no " << runtime::api_name(api) << " device here";
  const auto example = testing_support::read_example(folder, name);
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto program = driver::compile_for_device(example->graph, {}, driver::device_options(*info));
  if (!program.ok() && skips(program.error())) GTEST_SKIP() << base::render(program.error());
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  auto device = runtime::Device::open(*info, device_options());
  ASSERT_TRUE(device.ok()) << base::render(device.error());
  runtime::Cache cache{runtime::CacheOptions{}};
  const auto module = driver::load(*device, *program, cache);
  ASSERT_TRUE(module.ok()) << base::render(module.error());
  const auto arguments = arguments_of(*example);
  ASSERT_TRUE(arguments.ok()) << base::render(arguments.error());
  auto call = driver::prepare(program->compiled, *arguments);
  ASSERT_TRUE(call.ok()) << base::render(call.error());
  const auto ran = driver::launch(*device, *module, *program, *call);
  ASSERT_TRUE(ran.ok()) << base::render(ran.error());
  expect_outputs(*example, *call);
}

INSTANTIATE_TEST_SUITE_P(All, OnDevices,
                         ::testing::Combine(::testing::ValuesIn(testing_support::example_names(folder)),
                                            ::testing::ValuesIn(runtime::kApis)),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + runtime::api_name(std::get<1>(info.param)); });

class Emulated : public ::testing::TestWithParam<std::string> {};

// Grids are cut to a few workgroups, which walk over the blocks all the same.
TEST_P(Emulated, CudaTextGivesWhatTheOracleGives) {
  const auto example = testing_support::read_example(folder, GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  emit::device::DeviceOptions options;
  options.dialect = emit::device::DialectId::Cuda;
  options.threads = 64;
  options.max_buffers = 64;
  const auto program = driver::compile_for_device(example->graph, {}, options);
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  runtime::Cache cache{runtime::CacheOptions{}};
  const auto compiler = runtime::find_compiler({}, cache);
  ASSERT_TRUE(compiler.ok()) << base::render(compiler.error());
  const auto module = emulator::Module::load(program->text.source, *compiler, cache);
  ASSERT_TRUE(module.ok()) << base::render(module.error());
  const auto arguments = arguments_of(*example);
  ASSERT_TRUE(arguments.ok()) << base::render(arguments.error());
  auto call = driver::prepare(program->compiled, *arguments);
  ASSERT_TRUE(call.ok()) << base::render(call.error());
  const auto plan = driver::plan_launches(*program, *call, 3);
  ASSERT_TRUE(plan.ok()) << base::render(plan.error());
  const tile::Program& tiles = program->compiled.program;
  std::map<int, std::vector<std::byte>> memory;
  std::map<int, bool> written;
  size_t parameter = 0;
  std::map<int, size_t> array_of;
  for (size_t b = 0; b < tiles.buffers.size(); ++b) {
    const tile::Space space = tiles.buffers[b].space;
    if (plan->bytes[b] == 0) continue;
    memory[int(b)].assign(size_t(plan->bytes[b]), std::byte{0xff});
    written[int(b)] = space == tile::Space::Input || space == tile::Space::Update;
    if (space == tile::Space::Scratch) continue;
    const runtime::Array& array = call->arrays[parameter];
    if (written[int(b)]) std::copy_n(static_cast<const std::byte*>(call->buffers[parameter]), scalar::bytes(array.type, array.count()), memory[int(b)].begin());
    array_of[int(b)] = parameter++;
  }
  for (const driver::DeviceLaunch& l : plan->launches) {
    if (l.blocks == 0) continue;
    const emit::device::DeviceKernel& kernel = program->text.kernels[size_t(l.kernel)];
    emulator::Launch launch;
    launch.kernel = kernel.name;
    launch.blocks[0] = l.blocks;
    launch.threads = kernel.threads;
    launch.options.order = emulator::Order::Random;
    launch.options.seed = uint64_t(l.kernel) + 1;
    for (int b : l.buffers) {
      launch.buffers.push_back({tiles.buffers[size_t(b)].name, memory[b].data(), int64_t(memory[b].size()), written[b]});
    }
    std::vector<std::byte> slices(size_t(4 * l.slice_words), std::byte{0xff});
    if (l.slice_words > 0) launch.buffers.push_back({"slices", slices.data(), int64_t(slices.size()), false});
    for (int64_t s : l.scalars) launch.scalars.push_back(emulator::integer(s));
    const auto report = module->run(launch);
    ASSERT_TRUE(report.ok()) << base::render(report.error());
    for (const emulator::Finding& f : report->findings) ADD_FAILURE() << f.message;
    for (size_t i = 0; i < l.buffers.size(); ++i) written[l.buffers[i]] = written[l.buffers[i]] || kernel.written[i];
  }
  for (const auto& [b, at] : array_of) {
    if (tiles.buffers[size_t(b)].space == tile::Space::Input) continue;
    const runtime::Array& array = call->arrays[at];
    std::copy_n(memory[b].begin(), scalar::bytes(array.type, array.count()), static_cast<std::byte*>(call->buffers[at]));
  }
  expect_outputs(*example, *call);
}

INSTANTIATE_TEST_SUITE_P(All, Emulated, ::testing::ValuesIn(testing_support::example_names(folder)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lemma
