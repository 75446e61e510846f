// Every program under examples/, at the sizes its comment names, on random inputs: the compiled program must give what
// the oracle gives, derived and as written, on one thread and on two.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "lemma/driver/execute.h"
#include "lemma/runtime/host.h"
#include "lemma/runtime/random.h"
#include "tests/support/programs.h"

namespace lemma {
namespace {

using testing_support::NamedValues;
using testing_support::Runner;

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(LEMMA_SOURCE_DIR) + "/examples")) {
    if (entry.path().extension() == ".lemma") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// `# KEY: rest` of the header.
std::string header(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string line;
  const std::string start = "# " + key + ": ";
  while (std::getline(lines, line)) {
    if (line.rfind(start, 0) == 0) return line.substr(start.size());
  }
  return "";
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

int64_t evaluate_bound(const view::Form& form, const std::vector<tensor::Binding>& sizes) {
  return driver::evaluate_extents({form}, sizes)[0];
}

NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes) {
  NamedValues inputs = testing_support::declared_inputs(graph, sizes);
  for (const tensor::Node& node : graph.nodes) {
    const auto* input = std::get_if<tensor::Input>(&node);
    if (!input) continue;
    testing_support::Values& values = inputs[input->name];
    const uint64_t seed = runtime::seed_of(1, input->name);
    int64_t count = 1;
    for (int64_t extent : values.extents) count *= extent;
    const int64_t low = input->low ? evaluate_bound(*input->low, sizes) : 0;
    const int64_t high = input->high ? evaluate_bound(*input->high, sizes) : 8;
    for (int64_t i = 0; i < count; ++i) {
      const double value = scalar::is_float(input->type) ? runtime::uniform(seed, uint64_t(i))
                                                         : double(low + runtime::integer(seed, uint64_t(high - low), uint64_t(i)));
      values.data.push_back(value);
    }
  }
  return inputs;
}

class Example : public ::testing::TestWithParam<std::string> {};

TEST_P(Example, CompiledGivesWhatTheOracleGives) {
  const std::string path = std::string(LEMMA_SOURCE_DIR) + "/examples/" + GetParam() + ".lemma";
  auto text = testing_support::read_text(path);
  ASSERT_TRUE(text.ok());
  const std::string sizes_text = header(*text, "sizes");
  ASSERT_NE(sizes_text, "") << "the example names no sizes";
  const std::vector<tensor::Binding> sizes = read_sizes(sizes_text);
  const std::string tolerance = header(*text, "tolerance");
  auto graph = testing_support::read_program(*text, GetParam() + ".lemma");
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  const NamedValues inputs = random_inputs(*graph, testing_support::in_order(*graph, sizes));
  auto expected = testing_support::evaluate(*graph, sizes, inputs);
  ASSERT_TRUE(expected.ok()) << base::render(expected.error());
  for (const auto& [derive, threads] : {std::pair{true, 1}, {true, 2}, {false, 1}}) {
    SCOPED_TRACE(std::string(derive ? "derived, " : "as written, ") + std::to_string(threads) + " threads");
    driver::CompileOptions options;
    options.target = runtime::host_target();
    options.derive = derive;
    auto runner = Runner::make(*graph, options);
    ASSERT_TRUE(runner.ok()) << base::render(runner.error());
    auto found = runner->run(sizes, inputs, threads);
    ASSERT_TRUE(found.ok()) << base::render(found.error());
    for (const auto& [name, values] : *found) {
      EXPECT_EQ(testing_support::difference(expected->at(name), values, tolerance.empty() ? -1 : std::stod(tolerance)), "")
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Example, ::testing::ValuesIn(example_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lemma
