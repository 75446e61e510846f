// O-26. A straight chain of 5,000 element-wise steps: compile time linear in its length, no deep recursion (the test runs
// in a thread with a stack of 512 KiB), and the right values.
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cmath>
#include <functional>

#include "lemma/runtime/host.h"
#include "tests/cases/case_file.h"
#include "tests/support/programs.h"

namespace lemma::cases {
namespace {

std::string chain_text(int steps, bool distinct) {
  std::string text = "input x0[9]\n";
  char line[120];
  for (int i = 0; i < steps; ++i) {
    const double factor = distinct ? 0.999 + 1e-7 * i : 0.999;
    std::snprintf(line, sizeof line, "x%d[i] = x%d[i] * %.17g + 0.001\n", i + 1, i, factor);
    text += line;
  }
  return text + "output x" + std::to_string(steps) + "\n";
}

// Runs f on a stack of 512 KiB.
void on_small_stack(const std::function<void()>& f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_t thread;
  const auto call = [](void* data) -> void* {
    (*static_cast<const std::function<void()>*>(data))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<void*>(static_cast<const void*>(&f))), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

double seconds_to_compile(int steps) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto graph = testing_support::read_program(chain_text(steps, true), "chain");
  EXPECT_TRUE(graph.ok()) << base::render(graph.error());
  driver::CompileOptions options;
  options.target = runtime::host_target();
  auto compiled = driver::compile(*graph, options);
  EXPECT_TRUE(compiled.ok()) << base::render(compiled.error());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_chain(bool distinct, const std::string& digest) {
  auto graph = testing_support::read_program(chain_text(5000, distinct), "chain");
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  auto inputs = testing_support::declared_inputs(*graph, {});
  inputs["x0"].data = *generate("2 + U(2601)", {9});
  auto expected = testing_support::evaluate(*graph, {}, inputs);
  ASSERT_TRUE(expected.ok()) << base::render(expected.error());
  auto file = parse_case("chain", "# expect: x5000 " + digest + "\n");
  // The digest's factors are exact; the program's literals are f32 constants.
  EXPECT_EQ(unmet(file->runs[0].expectations[0], {9}, expected->at("x5000").data, 2e-5), "");
  driver::CompileOptions options;
  options.target = runtime::host_target();
  auto runner = testing_support::Runner::make(*graph, options);
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  auto found = runner->run({}, inputs, 1);
  ASSERT_TRUE(found.ok()) << base::render(found.error());
  EXPECT_EQ(testing_support::difference(expected->at("x5000"), found->at("x5000"), 2e-4), "");
}

TEST(LongChain, OneFactor) {
  on_small_stack([] {
    check_chain(false, "(9,) sum=9.06270448 l1=9.06270448 [0]=1.00987585 [3]=1.00536441 [6]=1.00852657 [8]=1.00494563");
  });
}

TEST(LongChain, DistinctFactors) {
  on_small_stack([] {
    check_chain(true, "(9,) sum=14.4094222 l1=14.4094222 [0]=1.61120726 [3]=1.59544833 [6]=1.60649411 [8]=1.59398546");
  });
}

TEST(LongChain, TwiceTheLengthTakesAtMostThreeTimesAsLong) {
  on_small_stack([] {
    seconds_to_compile(500);
    const double once = seconds_to_compile(5000);
    const double twice = seconds_to_compile(10000);
    EXPECT_LT(once, 10);
    EXPECT_LT(twice, 3 * once + 0.2) << "5000 steps took " << once << " s, 10000 took " << twice << " s";
  });
}

}  // namespace
}  // namespace lemma::cases
