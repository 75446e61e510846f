#include "lemma/runtime/module.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lemma/runtime/host.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

// y[i] = x[i] + added, through the workspace; size 13 fails.
std::string kernel(int added) {
  return "#include <stdint.h>\n"
         "int32_t lemma_run(const int64_t* sizes, void* const* buffers, void* workspace, int32_t threads) {\n"
         "  (void)threads;\n"
         "  if (sizes[0] == 13) return 1;\n"
         "  const float* x = buffers[0];\n  float* y = buffers[1];\n  float* t = workspace;\n"
         "  for (int64_t i = 0; i < sizes[0]; ++i) t[i] = x[i] + " + std::to_string(added) + ";\n"
         "  for (int64_t i = 0; i < sizes[0]; ++i) y[i] = t[i];\n  return 0;\n}\n"
         "int64_t lemma_workspace(const int64_t* sizes, int32_t threads) { (void)threads; return sizes[0] * 4; }\n"
         "const char* lemma_message(int32_t code) { return code == 1 ? \"thirteen is refused\" : 0; }\n";
}

float call(const Module& module, float x) {
  float y = 0;
  const int64_t size = 1;
  void* buffers[] = {&x, &y};
  Workspace workspace;
  EXPECT_TRUE(module.run({&size, 1}, buffers, workspace, 1).ok());
  return y;
}

struct Workplace {
  TemporaryDirectory folder;
  CompilerOptions options;
  Cache cache{CacheOptions{folder.file("cache"), folder.path()}};
  Workplace() { options.temporary = folder.path(); }
};

TEST(Module, CompilesRunsAndReportsFailures) {
  Workplace s;
  const Compiler compiler = *find_compiler(s.options, s.cache);
  const Module module = *build_module(kernel(5), compiler, host_target(), s.options, s.cache);
  EXPECT_EQ(call(module, 2), 7);
  const int64_t thirteen = 13;
  float x[13] = {}, y[13] = {};
  void* buffers[] = {x, y};
  Workspace workspace;
  EXPECT_EQ(module.run({&thirteen, 1}, buffers, workspace, 1).error().message, "thirteen is refused");
  EXPECT_EQ(workspace.bytes(), 52);
  const int64_t huge = int64_t(1) << 55;
  EXPECT_TRUE(module.run({&huge, 1}, buffers, workspace, 1).error().message.starts_with(
      "the workspace needs 144115188075855872 bytes, and the machine has "));
}

TEST(Module, SameNameDifferentContentIsADifferentKernel) {
  Workplace s;
  const Compiler compiler = *find_compiler(s.options, s.cache);
  const Module one = *build_module(kernel(1), compiler, host_target(), s.options, s.cache);
  const Module two = *build_module(kernel(2), compiler, host_target(), s.options, s.cache);
  const Module again = *build_module(kernel(1), compiler, host_target(), s.options, s.cache);
  EXPECT_EQ(call(one, 0), 1);
  EXPECT_EQ(call(two, 0), 2);
  EXPECT_EQ(call(again, 0), 1);
  EXPECT_EQ(s.cache.counters().hits, 1);
  EXPECT_EQ(s.cache.counters().compiles, 2);
}

TEST(Module, CopiesOutliveTheFile) {
  Workplace s;
  Cache none{CacheOptions{"", s.folder.path()}};
  const Compiler compiler = *find_compiler(s.options, none);
  const Module module = *build_module(kernel(9), compiler, host_target(), s.options, none);
  const Module copy = module;  // NOLINT: the point
  EXPECT_EQ(call(copy, 1), 10);
  EXPECT_TRUE(std::filesystem::is_empty(s.folder.path()));
  EXPECT_EQ(none.counters().uncached, 1);
}

TEST(Module, ThreadsMayCallAtOnce) {
  Workplace s;
  const Module module =
      *build_module(kernel(3), *find_compiler(s.options, s.cache), host_target(), s.options, s.cache);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) right += call(module, float(t)) == float(t + 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 800);
}

TEST(Module, CachedStartIsQuick) {
  Workplace s;
  (void)build_module(kernel(4), *find_compiler(s.options, s.cache), host_target(), s.options, s.cache);
  double best = 1;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto module = build_module(kernel(4), *find_compiler(s.options, s.cache), host_target(), s.options, s.cache);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    ASSERT_TRUE(module.ok());
  }
  EXPECT_LT(best, 0.010);
}

TEST(Compiler, RefusalsCarryWhatItSaidAndKeepTheSource) {
  Workplace s;
  const auto result = build_module("this is not C\n", *find_compiler(s.options, s.cache), host_target(), s.options, s.cache);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().failure, base::Failure::System);
  ASSERT_EQ(result.error().notes.size(), 1u);
  EXPECT_NE(result.error().notes[0].message.find("error"), std::string::npos);
  const std::string path = result.error().suggestion.substr(std::string("the source is kept in ").size());
  std::ifstream kept(path);
  std::string line;
  std::getline(kept, line);
  EXPECT_EQ(line, "this is not C");
}

TEST(Compiler, AbsenceIsASystemFailure) {
  Workplace s;
  s.options.search_path = "";
  const auto none = find_compiler(s.options, s.cache);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(base::render(none.error()),
            "system error: there is no C compiler: none of gcc, cc, clang is on the search path\n"
            "  help: install one, or name one with --cc\n");
  s.options.compiler = "no-such-compiler";
  EXPECT_EQ(find_compiler(s.options, s.cache).error().message, "there is no compiler 'no-such-compiler'");
}

// A compiler that is a script, to see its arguments and to hang.
std::string script(const TemporaryDirectory& folder, const std::string& body) {
  const std::string path = folder.file("cc.sh");
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(Compiler, HangingOnesAreKilled) {
  Workplace s;
  s.options.timeout_seconds = 0.3;
  const Compiler compiler{script(s.folder, "sleep 100 & sleep 100"), "hangs", false};
  const auto start = std::chrono::steady_clock::now();
  const auto result = build_module(kernel(1), compiler, host_target(), s.options, s.cache);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "'" + compiler.path + "' took longer than 0 seconds");
  std::atomic<bool> stop{true};
  s.options.cancelled = &stop;
  s.options.timeout_seconds = 100;
  EXPECT_EQ(build_module(kernel(1), compiler, host_target(), s.options, s.cache).error().message,
            "'" + compiler.path + "' was stopped");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Compiler, KnowledgeIsRememberedUntilTheFileChanges) {
  Workplace s;
  s.options.compiler = script(s.folder, "echo called >> " + s.folder.file("calls") + "; echo version one; exit 0");
  EXPECT_EQ(find_compiler(s.options, s.cache)->version, "version one");
  const auto calls = [&] { return std::filesystem::file_size(s.folder.file("calls")); };
  const auto first = calls();
  EXPECT_EQ(find_compiler(s.options, s.cache)->version, "version one");
  EXPECT_EQ(calls(), first);
  script(s.folder, "echo version two");
  EXPECT_EQ(find_compiler(s.options, s.cache)->version, "version two");
}

}  // namespace
}  // namespace lemma::runtime
