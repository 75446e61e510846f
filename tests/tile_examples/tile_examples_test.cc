// Every tile program under examples/tile, at the sizes that the maths program beside it names, on random inputs from a
// fresh, printed seed: the block interpreter, and C on one thread and on two, must give what the oracle makes of the maths
// program. Outputs hold nan before each run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <sstream>

#include "emulator/program.h"
#include "lemma/driver/on_device.h"
#include "lemma/driver/tile_program.h"
#include "lemma/runtime/host.h"
#include "lemma/runtime/random.h"
#include "lemma/tile/equal.h"
#include "lemma/tile/parse.h"
#include "lemma/tile/print.h"
#include "tests/support/devices.h"
#include "tests/support/programs.h"

namespace lemma {
namespace {

using testing_support::NamedValues;
using testing_support::Runner;

std::string folder() { return std::string(LEMMA_SOURCE_DIR) + "/examples/tile"; }

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".tile") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The rest of every line `# KEY: rest`.
std::vector<std::string> headers(const std::string& text, const std::string& key) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  std::string line;
  const std::string start = "# " + key + ": ";
  while (std::getline(lines, line)) {
    if (line.rfind(start, 0) == 0) out.push_back(line.substr(start.size()));
  }
  return out;
}

std::vector<tensor::Binding> read_sizes(const std::string& text) {
  std::vector<tensor::Binding> sizes;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const size_t equals = word.find('=');
    sizes.push_back({word.substr(0, equals), std::stoll(word.substr(equals + 1))});
  }
  return sizes;
}

NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& given, uint64_t seed) {
  const std::vector<tensor::Binding> sizes = testing_support::in_order(graph, given);
  NamedValues inputs = testing_support::declared_inputs(graph, sizes);
  for (const tensor::Node& node : graph.nodes) {
    const auto* input = std::get_if<tensor::Input>(&node);
    if (!input) continue;
    testing_support::Values& values = inputs[input->name];
    const uint64_t own = runtime::seed_of(seed, input->name);
    int64_t count = 1;
    for (int64_t extent : values.extents) count *= extent;
    const bool i4 = input->type == scalar::DType::I4;
    const int64_t low = input->low ? driver::evaluate_extents({*input->low}, sizes)[0] : i4 ? -8 : 0;
    const int64_t high = input->high ? driver::evaluate_extents({*input->high}, sizes)[0] : 8;
    for (int64_t i = 0; i < count; ++i) {
      values.data.push_back(scalar::is_float(input->type) ? runtime::uniform(own, uint64_t(i))
                                                          : double(low + runtime::integer(own, uint64_t(high - low), uint64_t(i))));
    }
  }
  return inputs;
}

uint64_t fresh_seed() {
  if (const char* given = std::getenv("LEMMA_SEED")) return std::strtoull(given, nullptr, 10);
  return std::random_device{}();
}

struct Example {
  tensor::Graph maths;
  driver::Compiled compiled;
  double tolerance = -1;
  std::vector<std::vector<tensor::Binding>> sizes;
};

base::Result<Example> load(const std::string& name) {
  Example out;
  LEMMA_TRY(const std::string maths, testing_support::read_text(folder() + "/" + name + ".lemma"));
  LEMMA_TRY(out.maths, testing_support::read_program(maths, name + ".lemma"));
  LEMMA_TRY(const std::string text, testing_support::read_text(folder() + "/" + name + ".tile"));
  LEMMA_TRY(tile::Program program, tile::parse(text, name + ".tile"));
  driver::CompileOptions options;
  options.target = runtime::host_target();
  LEMMA_TRY(out.compiled, driver::compile_tiles(std::move(program), options));
  for (const std::string& sizes : headers(maths, "sizes")) out.sizes.push_back(read_sizes(sizes));
  for (const std::string& tolerance : headers(maths, "tolerance")) out.tolerance = std::stod(tolerance);
  return out;
}

void compare(const Example& example, const NamedValues& expected, const std::vector<runtime::Named>& found) {
  ASSERT_EQ(expected.size(), found.size());
  for (const runtime::Named& output : found) {
    ASSERT_TRUE(expected.count(output.name)) << output.name << " is no output of the maths program";
    EXPECT_EQ(testing_support::difference(expected.at(output.name), testing_support::values_of(output.array), example.tolerance), "") << output.name;
  }
}

class TileExample : public ::testing::TestWithParam<std::string> {};

TEST_P(TileExample, PrintsAndReadsBack) {
  auto text = testing_support::read_text(folder() + "/" + GetParam() + ".tile");
  ASSERT_TRUE(text.ok());
  auto program = tile::parse(*text, GetParam() + ".tile");
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  const std::string printed = tile::print(*program);
  auto again = tile::parse(printed, "printed");
  ASSERT_TRUE(again.ok()) << base::render(again.error()) << printed;
  EXPECT_TRUE(tile::equal(*program, *again)) << printed;
  EXPECT_EQ(tile::print(*again), printed);
}

// As CUDA text, in registers and on matrix units, thread by thread: also without a race or a read of what nobody wrote.
TEST_P(TileExample, GivesTheSameUnderTheThreadEmulator) {
  auto example = load(GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const emit::device::DeviceOptions how = driver::text_options(emit::device::DialectId::Cuda);
  auto text = testing_support::read_text(folder() + "/" + GetParam() + ".tile");
  ASSERT_TRUE(text.ok());
  auto program = tile::parse(*text, GetParam() + ".tile");
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  driver::CompileOptions options;
  options.target = driver::device_target(how);
  auto compiled = driver::compile_tiles(*std::move(program), options);
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  auto on = driver::for_device(*std::move(compiled), how);
  if (!on.ok() && on.error().failure == base::Failure::Unsupported) GTEST_SKIP() << "NOT TESTED: " << on.error().message;
  ASSERT_TRUE(on.ok()) << base::render(on.error());
  runtime::Cache cache{runtime::CacheOptions{}};
  const auto emulated = emulator::Program::load(*std::move(on), how.dialect, cache);
  ASSERT_TRUE(emulated.ok()) << base::render(emulated.error());
  const uint64_t seed = fresh_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const std::vector<tensor::Binding>& sizes : example->sizes) {
    const NamedValues inputs = random_inputs(example->maths, sizes, seed);
    const auto expected = testing_support::evaluate(example->maths, sizes, inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    const auto arguments = testing_support::arguments_of(emulated->program().compiled.source, sizes, inputs);
    ASSERT_TRUE(arguments.ok()) << base::render(arguments.error());
    auto call = driver::prepare(emulated->program().compiled, *arguments);
    ASSERT_TRUE(call.ok()) << base::render(call.error());
    emulator::RunOptions run;
    run.order = emulator::Order::Random;
    run.seed = seed;
    const auto done = emulated->run(*call, run);
    ASSERT_TRUE(done.ok()) << base::render(done.error());
    compare(*example, *expected, call->outputs);
  }
}

TEST_P(TileExample, GivesWhatTheMathsProgramGives) {
  const auto example = load(GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  ASSERT_GE(example->sizes.size(), 1u) << "the maths program names no sizes";
  auto runner = Runner::load(example->compiled, runtime::host_target());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  const uint64_t seed = fresh_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const std::vector<tensor::Binding>& sizes : example->sizes) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + sizes[0].name + " = " + std::to_string(sizes[0].value));
    const NamedValues inputs = random_inputs(example->maths, sizes, seed);
    auto expected = testing_support::evaluate(example->maths, sizes, inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    driver::Arguments arguments;
    arguments.sizes = testing_support::in_order(example->compiled.source, sizes);
    for (const auto& [name, values] : inputs) {
      auto array = testing_support::guarded_array(values);
      ASSERT_TRUE(array.ok()) << base::render(array.error());
      arguments.inputs.push_back({name, *array});
    }
    auto interpreted = driver::interpret_tiles(example->compiled, arguments);
    ASSERT_TRUE(interpreted.ok()) << base::render(interpreted.error());
    {
      SCOPED_TRACE("interpreted");
      compare(*example, *expected, *interpreted);
    }
    for (int threads : {1, 2}) {
      SCOPED_TRACE("C on " + std::to_string(threads) + " threads");
      auto found = runner->run_arrays(sizes, inputs, threads);
      ASSERT_TRUE(found.ok()) << base::render(found.error());
      compare(*example, *expected, *found);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TileExample, ::testing::ValuesIn(example_names()), [](const auto& info) { return info.param; });

// Both p and ds are guarded in the backward: a nan in a row of v that no query sees stays where it is.
TEST(TileExamples, ANanThatNothingReadsSpoilsNothing) {
  const auto example = load("attention_backward");
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const std::vector<tensor::Binding> sizes = {{"Z", 1}, {"N", 70}, {"M", 90}};
  NamedValues inputs = random_inputs(example->maths, sizes, 7);
  for (size_t c = 0; c < 128; ++c) inputs["v"].data[80 * 128 + c] = std::numeric_limits<double>::quiet_NaN();
  auto expected = testing_support::evaluate(example->maths, sizes, inputs);
  ASSERT_TRUE(expected.ok()) << base::render(expected.error());
  for (const auto& [name, values] : *expected) {
    for (double v : values.data) ASSERT_TRUE(std::isfinite(v)) << name;
  }
  auto runner = Runner::load(example->compiled, runtime::host_target());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  auto found = runner->run_arrays(sizes, inputs, 2);
  ASSERT_TRUE(found.ok()) << base::render(found.error());
  compare(*example, *expected, *found);
}

TEST(TileExamples, AreAllThere) { EXPECT_GE(example_names().size(), 13u); }

}  // namespace
}  // namespace lemma
