// Mixing of hash values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lemma::base {

inline size_t mix(size_t seed, size_t value) {
  uint64_t z = uint64_t(seed) ^ (uint64_t(value) + 0x9E3779B97F4A7C15ull + (uint64_t(seed) << 6) + (uint64_t(seed) >> 2));
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  return size_t(z ^ (z >> 27));
}

}  // namespace lemma::base
