// Every program under examples/ and every case under tests/cases on every kind of device: OpenCL, Vulkan, WebGPU and CUDA
// where they are at hand, and the CUDA text on the CPU under the thread emulator, which must find nothing. Each gives what
// the oracle gives, with outputs poisoned before. What is not there, or is refused, is skipped by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/cases/case_file.h"
#include "tests/support/devices.h"
#include "tests/support/examples.h"

namespace lemma {
namespace {

using testing_support::DeviceRunner;
using testing_support::NamedValues;
using testing_support::Place;

const std::string examples = std::string(LEMMA_SOURCE_DIR) + "/examples", cases = std::string(LEMMA_SOURCE_DIR) + "/tests/cases";

void compare(const DeviceRunner& runner, const std::vector<tensor::Binding>& sizes, const NamedValues& inputs,
             const NamedValues& expected, const std::function<double(const std::string&)>& bound) {
  const auto found = runner.run(sizes, inputs);
  ASSERT_TRUE(found.ok()) << base::render(found.error());
  for (const runtime::Named& n : *found) {
    EXPECT_EQ(testing_support::difference(expected.at(n.name), testing_support::values_of(n.array), bound(n.name)), "") << n.name;
  }
}

using Parameters = ::testing::TestWithParam<std::tuple<std::string, Place>>;

std::string test_name(const ::testing::TestParamInfo<std::tuple<std::string, Place>>& info) {
  std::string out = std::get<0>(info.param).substr(0, std::get<0>(info.param).rfind('.')) + "_" + testing_support::name(std::get<1>(info.param));
  std::replace_if(out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}

class ExampleOn : public Parameters {};

TEST_P(ExampleOn, GivesWhatTheOracleGives) {
  const auto& [name, place] = GetParam();
  if (!testing_support::is_here(place)) GTEST_SKIP() << "no " << testing_support::name(place) << " device here";
  const auto example = testing_support::read_example(examples, name);
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto runner = DeviceRunner::make(testing_support::with_columns_bound(example->graph, example->sizes), {}, place);
  if (!runner.ok() && runner.error().failure == base::Failure::Unsupported) GTEST_SKIP() << base::render(runner.error());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  compare(*runner, example->sizes, example->inputs, example->expected, [&](const std::string&) { return example->bound; });
}

INSTANTIATE_TEST_SUITE_P(All, ExampleOn,
                         ::testing::Combine(::testing::ValuesIn(testing_support::example_names(examples)), ::testing::ValuesIn(testing_support::kPlaces)),
                         test_name);

class CaseOn : public Parameters {};

TEST_P(CaseOn, GivesWhatTheOracleGives) {
  const auto& [name, place] = GetParam();
  if (!testing_support::is_here(place)) GTEST_SKIP() << "no " << testing_support::name(place) << " device here";
  const auto text = testing_support::read_text(cases + "/" + name);
  ASSERT_TRUE(text.ok()) << base::render(text.error());
  const auto file = cases::parse_case(name, *text);
  ASSERT_TRUE(file.ok()) << base::render(file.error());
  if (!file->heavy.empty()) GTEST_SKIP() << "takes " << file->heavy;
  const auto graph = testing_support::read_program(*text, name);
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  const auto runner = DeviceRunner::make(*graph, {}, place);
  if (!runner.ok() && runner.error().failure == base::Failure::Unsupported) GTEST_SKIP() << base::render(runner.error());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  for (const cases::CaseRun& run : file->runs) {
    SCOPED_TRACE(run.name);
    const auto inputs = cases::inputs_of(*graph, run);
    ASSERT_TRUE(inputs.ok()) << base::render(inputs.error());
    const auto expected = testing_support::evaluate(*graph, run.sizes, *inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    compare(*runner, run.sizes, *inputs, *expected, [&](const std::string& output) {
      const auto bound = file->absolute.find(output);
      return bound == file->absolute.end() ? -1 : bound->second;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseOn,
                         ::testing::Combine(::testing::ValuesIn(cases::case_paths(cases)), ::testing::ValuesIn(testing_support::kPlaces)),
                         test_name);

}  // namespace
}  // namespace lemma
