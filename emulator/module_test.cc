// Loading texts, refusing launches, and running in several threads at once.

#include "emulator/module.h"

#include <atomic>
#include <thread>

#include "emulator/testing.h"
#include "emulator/texts_testing.h"

namespace lemma::emulator {
namespace {

struct Workplace {
  runtime::TemporaryDirectory folder;
  runtime::Cache cache{runtime::CacheOptions{folder.file("cache"), folder.path()}};
  ModuleOptions options;
  runtime::Compiler compiler;
  Workplace() {
    options.compiler.temporary = folder.path();
    compiler = *runtime::find_compiler(options.compiler, cache);
  }
  base::Result<Module> load(const std::string& text) { return Module::load(text, compiler, cache, options); }
};

TEST(Module, RefusedTextsNameTheirLine) {
  Workplace place;
  const auto result = place.load("\nLM_KERNEL(bad, 32) (LM_GLOBAL(float) b_y) {\n  b_y[0] = nothing;\n}\n");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().failure, base::Failure::System);
  ASSERT_EQ(result.error().notes.size(), 1u);
  EXPECT_NE(result.error().notes[0].message.find("text:3:12: error: 'nothing' was not declared"), std::string::npos)
      << result.error().notes[0].message;
}

TEST(Module, ATextWithoutKernelsIsRefused) {
  Workplace place;
  EXPECT_EQ(place.load("int x;").error().message, "the text has no LM_KERNEL(name, threads), and nothing can be run");
}

TEST(Module, TextsAreCompiledOnce) {
  Workplace place;
  ASSERT_TRUE(place.load(kAdd).ok());
  ASSERT_TRUE(place.load(kAdd).ok());
  EXPECT_EQ(place.cache.counters().compiles, 1);
  EXPECT_EQ(place.cache.counters().hits, 1);
}

TEST(Module, AKernelWritesToOneNameOnly) {
  const Module module = build(kAdd);
  std::vector<float> x(128, 1.0f);
  Launch launch{.kernel = "add", .threads = 128};
  launch.buffers = {input("x", x), input("y", x), output("z", x)};
  launch.scalars = {integer(128)};
  EXPECT_EQ(module.run(launch).error().message, "buffers x and z of kernel add overlap, and one of them is written");
  std::vector<float> z = nans(128);
  launch.buffers[2] = output("z", z);  // read twice is no matter
  EXPECT_EQ(all_messages(run(module, launch)), "");
  EXPECT_EQ(z[127], 2.0f);
}

TEST(Module, ThreadsMayRunAtOnce) {
  const Module module = build(kTranspose);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        std::vector<float> x = random_floats(32 * 32, uint64_t(t)), y = nans(32 * 32);
        Launch launch{.kernel = "transpose", .blocks = {2, 2, 1}, .threads = 256};
        launch.buffers = {input("x", x), output("y", y)};
        launch.scalars = {integer(32), integer(32)};
        launch.options.order = Order::Random;
        const auto report = module.run(launch);
        bool same = report.ok() && report->findings.empty();
        for (size_t i = 0; i < 32; ++i) {
          for (size_t j = 0; j < 32; ++j) same = same && y[i * 32 + j] == x[j * 32 + i];
        }
        right += same;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 30);
}

TEST(Module, AnEmptyGridDoesNothing) {
  const Module module = build(kAdd);
  std::vector<float> none;
  Launch launch{.kernel = "add", .blocks = {0, 1, 1}, .threads = 128};
  launch.buffers = {input("x", none), input("y", none), output("z", none)};
  launch.scalars = {integer(0)};
  const Report report = run(module, launch);
  EXPECT_EQ(report.steps, 0);
  EXPECT_FALSE(report.stopped);
}

TEST(Module, StopsAtTheAskedNumberOfFindings) {
  const Module module = build(R"(
LM_KERNEL(wild, 32) (LM_GLOBAL(float) b_y) {
  LM_AT(1); b_y[-1] = 0; LM_AT(2); b_y[100] = 0; LM_AT(3); b_y[1 << 20] = 0; LM_AT(4); b_y[LM_TID] = 0;
}
)");
  std::vector<float> y = nans(32);
  Launch launch{.kernel = "wild", .threads = 32};
  launch.buffers = {output("y", y)};
  launch.options.most_findings = 2;
  const Report stopped = run(module, launch);
  EXPECT_EQ(stopped.findings.size(), 2u);
  EXPECT_TRUE(stopped.stopped);
  launch.options.most_findings = 8;
  const Report whole = run(module, launch);
  ASSERT_EQ(whole.findings.size(), 3u);
  EXPECT_FALSE(whole.stopped);
  EXPECT_EQ(whole.findings[0].count, 32);
  EXPECT_EQ(whole.findings[0].element, -1);
  EXPECT_EQ(y[31], 0.0f);
}

}  // namespace
}  // namespace lemma::emulator
