// Inputs from a hash of (seed, flat row-major index), the same on every machine. Floats are U(seed, i): multiples of
// 2^-23 in [-1, 1), rounded to the element type. Integers are low + I(seed, high - low, i) for a stated range
// low <= value < high; without one -8 ... 7 (signed), 0 ... 15 (unsigned), and 0 or 1 (bool).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lemma/runtime/array.h"

namespace lemma::runtime {

inline uint64_t hash(uint64_t seed, uint64_t index) {
  uint64_t z = index + seed * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
inline double uniform(uint64_t seed, uint64_t index) {
  return double(int64_t(hash(seed, index) >> 40)) * 0x1p-23 - 1.0;
}
inline int64_t integer(uint64_t seed, uint64_t high, uint64_t index) {
  return int64_t((hash(seed, index) >> 33) % high);
}

// The seed of the input of this name in a call with this seed: hash(seed, FNV-1a of the name).
uint64_t seed_of(uint64_t seed, std::string_view name);

struct IntegerRange {
  int64_t low = 0;
  int64_t high = 0;  // exclusive
};

// Fills every element; `sorted` orders each row of the last dimension upward afterwards. An empty range is invalid
// unless there is nothing to fill.
base::Result<void> fill_random(const Array& array, uint64_t seed, std::optional<IntegerRange> range = {},
                               bool sorted = false);

}  // namespace lemma::runtime
