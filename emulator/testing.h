// For tests: text compiled with the system's compiler, and launches with their memory.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "emulator/module.h"
#include "lemma/base/diagnostic.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::emulator {

// Compiled texts are kept for the process only.
inline Module build(const std::string& text) {
  static runtime::TemporaryDirectory folder;
  static runtime::Cache cache{runtime::CacheOptions{folder.file("cache"), folder.path()}};
  ModuleOptions options;
  options.compiler.temporary = folder.path();
  auto compiler = runtime::find_compiler(options.compiler, cache);
  if (!compiler) ADD_FAILURE() << base::render(compiler.error());
  auto module = Module::load(text, *compiler, cache, options);
  if (!module) ADD_FAILURE() << base::render(module.error());
  return *module;
}

inline Report run(const Module& module, const Launch& launch) {
  auto report = module.run(launch);
  if (!report) ADD_FAILURE() << base::render(report.error());
  return *report;
}

template <class T>
LaunchBuffer input(std::string name, std::vector<T>& values) {
  return {std::move(name), values.data(), int64_t(values.size() * sizeof(T)), true};
}
template <class T>
LaunchBuffer output(std::string name, std::vector<T>& values) {
  return {std::move(name), values.data(), int64_t(values.size() * sizeof(T)), false};
}

inline std::vector<float> random_floats(size_t count, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::vector<float> out(count);
  for (float& x : out) x = float(int(random() % 2001) - 1000) / 256;
  return out;
}
inline std::vector<float> nans(size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

// Every way of choosing among threads.
inline std::vector<RunOptions> all_orders() {
  std::vector<RunOptions> out(5);
  out[1].order = Order::Reversed;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    out[2 + seed].order = Order::Random;
    out[2 + seed].seed = seed;
    out[2 + seed].preempt = seed == 0 ? 0 : 3;
  }
  return out;
}

inline std::string all_messages(const Report& report) {
  std::string out;
  for (const Finding& finding : report.findings) out += finding.message + "\n";
  return out;
}

// The first finding of a kind, which must be there.
inline Finding expect(const Report& report, Fault fault) {
  for (const Finding& finding : report.findings) {
    if (finding.fault == fault) return finding;
  }
  ADD_FAILURE() << "no " << name(fault) << " among:\n" << all_messages(report);
  return {};
}

// `from` in `text`, which must stand there once, replaced: how faults are planted.
inline std::string plant(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from << " stands there twice";
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace lemma::emulator
