// What a thread knows of the others, as a vector clock: of each source of accesses, the latest stamp that happened
// before.
//
// Stamps are drawn from one counter of the block, which grows at every release (a barrier, an arrival), so two accesses
// of a thread with a release between have different stamps. Most kernels synchronise with whole-block barriers only;
// for them `floor` alone decides and the vectors stay as they were.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lemma::emulator {

struct Clock {
  uint32_t floor = 0;          // every thread's accesses up to here are known
  std::vector<uint32_t> seen;  // threads, then agents (asynchronous copies), which no floor covers

  explicit Clock(size_t sources = 0) : seen(sources) {}

  void join(const Clock& other) {
    floor = std::max(floor, other.floor);
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
  }
  void clear() {
    floor = 0;
    std::fill(seen.begin(), seen.end(), 0);
  }
};

}  // namespace lemma::emulator
