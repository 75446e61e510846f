// Every program under examples/, at the sizes its comment names, on random inputs: the compiled program must give what
// the oracle gives, derived and as written, on one thread and on two.
#include <gtest/gtest.h>

#include "lemma/runtime/host.h"
#include "tests/support/examples.h"

namespace lemma {
namespace {

using testing_support::Runner;

const std::string folder = std::string(LEMMA_SOURCE_DIR) + "/examples";

class Examples : public ::testing::TestWithParam<std::string> {};

TEST_P(Examples, CompiledGivesWhatTheOracleGives) {
  const auto example = testing_support::read_example(folder, GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  for (const auto& [derive, threads] : {std::pair{true, 1}, {true, 2}, {false, 1}}) {
    SCOPED_TRACE(std::string(derive ? "derived, " : "as written, ") + std::to_string(threads) + " threads");
    driver::CompileOptions options;
    options.target = runtime::host_target();
    options.derive = derive;
    auto runner = Runner::make(example->graph, options);
    ASSERT_TRUE(runner.ok()) << base::render(runner.error());
    auto found = runner->run(example->sizes, example->inputs, threads);
    ASSERT_TRUE(found.ok()) << base::render(found.error());
    for (const auto& [name, values] : *found) {
      EXPECT_EQ(testing_support::difference(example->expected.at(name), values, example->bound), "")
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Examples, ::testing::ValuesIn(testing_support::example_names(folder)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lemma
