// Every case file, twice: the oracle must give the digest, and the compiled program must give what the oracle gives,
// derived and as written, on one thread and on two.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "lemma/runtime/host.h"
#include "lemma/scalar/convert.h"
#include "tests/cases/case_file.h"
#include "tests/support/programs.h"

namespace lemma::cases {
namespace {

using testing_support::NamedValues;
using testing_support::Runner;

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class Case : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string path = std::string(LEMMA_SOURCE_DIR) + "/tests/cases/" + GetParam();
    auto text = testing_support::read_text(path);
    ASSERT_TRUE(text.ok()) << base::render(text.error());
    auto parsed = parse_case(path, *text);
    ASSERT_TRUE(parsed.ok()) << base::render(parsed.error());
    file_ = *parsed;
    if (!file_.heavy.empty() && !std::getenv("LEMMA_HEAVY")) GTEST_SKIP() << "takes " << file_.heavy << "; set LEMMA_HEAVY";
    auto graph = testing_support::read_program(file_.text, GetParam());
    ASSERT_TRUE(graph.ok()) << base::render(graph.error());
    graph_ = *graph;
  }

  double bound_of(const std::string& output) const {
    const auto found = file_.absolute.find(output);
    return found == file_.absolute.end() ? -1 : found->second;
  }

  void compare_with_oracle(const Runner& runner, const CaseRun& run, int threads) {
    SCOPED_TRACE(run.name + " on " + std::to_string(threads) + " threads");
    auto inputs = inputs_of(graph_, run);
    ASSERT_TRUE(inputs.ok()) << base::render(inputs.error());
    auto expected = testing_support::evaluate(graph_, run.sizes, *inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    auto arrays = runner.run_arrays(run.sizes, *inputs, threads);
    ASSERT_TRUE(arrays.ok()) << base::render(arrays.error());
    for (const runtime::Named& named : *arrays) {
      const std::string wrong =
          testing_support::difference(expected->at(named.name), testing_support::values_of(named.array), bound_of(named.name));
      EXPECT_EQ(wrong, "") << named.name;
      compare_bits(named);
    }
  }

  void compare_bits(const runtime::Named& named) {
    const auto found = file_.bits.find(named.name);
    if (found == file_.bits.end()) return;
    uint64_t bits = 0;
    std::memcpy(&bits, named.array.data(), size_t(named.array.bytes()));
    char text[32];
    std::snprintf(text, sizeof text, "%0*" PRIx64, int(2 * named.array.bytes()), bits);
    const bool nan = found->second == "7fc00000";
    if (nan) EXPECT_TRUE(std::isnan(runtime::float_at(named.array, 0))) << named.name;
    else EXPECT_EQ(text, found->second) << named.name;
  }

  CaseFile file_;
  tensor::Graph graph_;
};

TEST_P(Case, OracleGivesTheDigest) {
  for (const CaseRun& run : file_.runs) {
    SCOPED_TRACE(run.name);
    auto inputs = inputs_of(graph_, run);
    ASSERT_TRUE(inputs.ok()) << base::render(inputs.error());
    auto outputs = testing_support::evaluate(graph_, run.sizes, *inputs);
    ASSERT_TRUE(outputs.ok()) << base::render(outputs.error());
    for (const Expectation& expectation : run.expectations) {
      const auto found = outputs->find(expectation.output);
      ASSERT_NE(found, outputs->end()) << expectation.output;
      EXPECT_EQ(unmet(expectation, found->second.extents, found->second.data, file_.oracle), "") << expectation.output;
    }
  }
}

// One compiled program serves all runs, in this order and in reverse.
void run_all(const CaseFile& file, const std::function<void(const CaseRun&, int)>& check) {
  for (const CaseRun& run : file.runs) check(run, 1);
  for (auto run = file.runs.rbegin(); run != file.runs.rend(); ++run) check(*run, 2);
}

TEST_P(Case, CompiledGivesWhatTheOracleGives) {
  for (const bool derive : {true, false}) {
    SCOPED_TRACE(derive ? "derived" : "as written");
    driver::CompileOptions options;
    options.target = runtime::host_target();
    options.derive = derive;
    auto runner = Runner::make(graph_, options);
    if (!runner.ok() && runner.error().failure == base::Failure::Unsupported) GTEST_SKIP() << runner.error().message;
    ASSERT_TRUE(runner.ok()) << base::render(runner.error());
    run_all(file_, [&](const CaseRun& run, int threads) { compare_with_oracle(*runner, run, threads); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Case, ::testing::ValuesIn(case_paths(std::string(LEMMA_SOURCE_DIR) + "/tests/cases")), test_name);

}  // namespace
}  // namespace lemma::cases
