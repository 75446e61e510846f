// Compares a result with what the oracle says of it, by a stated rule.
//
//   integers, bools      equal
//   floats               of one class (finite, nan, inf and its sign), and |y - r| <= tolerance * max(1, largest |r|)
//
// where the tolerance is 2e-5 for f32, 1e-10 for f64, and for narrower types 2e-5 plus half a step of theirs at r
// (2^-11 f16, 2^-8 bf16, 2^-4 f8e4m3, 2^-3 f8e5m2 of |r|; half the smallest subnormal near 0). The class of r is that
// of r rounded to the type, so what must overflow may.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lemma/runtime/array.h"

namespace lemma::driver {

struct Tolerance {
  double absolute = 0;  // times max(1, largest |r|)
  double relative = 0;  // times |r| of the element
  double least = 0;     // half the smallest subnormal
};
Tolerance tolerance_of(scalar::DType type, std::optional<double> stated = {});
std::string describe(const Tolerance& tolerance);

// One reference value: a double for floats; integers and bools as they are.
struct Reference {
  int64_t flat = 0;     // where, by row-major index
  double real = 0;
  int64_t integer = 0;
};

struct Comparison {
  int64_t compared = 0;
  int64_t different = 0;
  double worst = 0;                 // the largest |y - r| among finite pairs
  double largest = 0;               // the largest finite |r|
  std::optional<int64_t> where;     // of the worst pair; a pair of unlike classes is worse than any other
  double found = 0, expected = 0;   // there
  bool ok() const { return different == 0; }
};
Comparison compare(const runtime::Array& result, std::span<const Reference> reference, const Tolerance& tolerance);

// "[1, 2]".
std::string print_index(std::span<const int64_t> extents, int64_t flat);

// Flat positions to look at where looking at all costs too much: at least `count` of them (or all there are), among
// them the corners of the array, the places beside every multiple of each of `tiles` along each dimension, and random
// ones.
std::vector<int64_t> sample_positions(std::span<const int64_t> extents, std::span<const int64_t> tiles, int64_t count,
                                      uint64_t seed);

}  // namespace lemma::driver
