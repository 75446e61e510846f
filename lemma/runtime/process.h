// Runs a program to its end: arguments as they are (no shell), output captured, a time limit, and a way to stop.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::runtime {

struct ProcessOptions {
  std::vector<std::string> environment;           // NAME=value; nothing is inherited
  double timeout_seconds = 120;
  const std::atomic<bool>* cancelled = nullptr;   // the child is killed soon after this becomes true
  size_t most_output = size_t(1) << 20;           // what goes beyond is dropped
};

struct ProcessResult {
  int exit_code = 0;   // 128 + the signal, if one ended it
  std::string output;  // standard output and error together
};

base::Result<ProcessResult> run_process(const std::vector<std::string>& arguments, const ProcessOptions& options);

}  // namespace lemma::runtime
