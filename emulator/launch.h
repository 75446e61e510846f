// What is to be run, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/kernel/abi.h"

namespace lemma::emulator {

struct LaunchBuffer {
  std::string name;
  void* data = nullptr;
  int64_t bytes = 0;
  bool initialised = true;  // false: reading what the kernel has not written is a finding
};

enum class Order { RoundRobin, Reversed, Random };

struct RunOptions {
  Order order = Order::RoundRobin;  // of threads, of blocks, and of the ends of bulk copies
  uint64_t seed = 1;                // of Random
  int preempt = 0;                  // a thread gives way after about so many steps; 0: only where it must wait
  int most_findings = 8;
  int64_t most_steps = 2'000'000'000;
  int stack_bytes = 128 << 10;  // of a thread
};

struct Launch {
  std::string kernel;
  int64_t blocks[3] = {1, 1, 1};
  int threads = 1;                         // of a block
  int64_t dynamic_shared = 0;              // bytes
  std::vector<LaunchBuffer> buffers = {};  // in the order of the parameters, as are the scalars
  std::vector<Scalar> scalars = {};
  std::vector<std::string> statements = {};  // what LM_AT(n) stands before; may be short
  RunOptions options = {};
};

inline Scalar integer(int64_t value) { return {value, double(value)}; }
inline Scalar real(double value) { return {int64_t(value), value}; }

}  // namespace lemma::emulator
