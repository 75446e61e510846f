// Random layouts for tests.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "lemma/layout/bits.h"
#include "lemma/layout/digits.h"
#include "lemma/layout/layout.h"

namespace lemma::layout::test {

using Random = std::mt19937_64;
inline int below(Random& random, int n) { return int(random() % uint64_t(n)); }

// A number of elements below about 2000, in 1 to 3 dimensions.
inline Point random_shape(Random& random) {
  static const std::vector<int32_t> extents = {1, 2, 4, 8, 16, 3, 5, 6, 12, 9, 20, 7};
  for (;;) {
    Point shape;
    for (int rank = 1 + below(random, 3); rank > 0; --rank)
      shape.push_back(extents[size_t(below(random, int(extents.size())))]);
    if (size(shape) <= 2000) return shape;
  }
}

// Columns that span all of `bits` dimensions, each once.
inline std::vector<uint64_t> random_basis(Random& random, int bits) {
  Echelon echelon;
  std::vector<uint64_t> out;
  while (int(out.size()) < bits) {
    const uint64_t v = random() & ((uint64_t(1) << bits) - 1);
    if (v != 0 && !echelon.contains(v)) echelon.insert(v), out.push_back(v);
  }
  return out;
}

// The odd parts of a shape, a random split in two where they have factors.
inline std::vector<Digit> odd_digits(Random& random, const Point& shape) {
  std::vector<Digit> out;
  for (size_t d = 0; d < shape.size(); ++d) {
    int32_t step = piece(shape[d]), rest = shape[d] / step;
    for (int32_t factor : {3, 5, 7}) {
      for (; rest % factor == 0 && rest > factor && below(random, 2) == 0; rest /= factor, step *= factor) {
        out.push_back(digit_along(shape, int(d), step, factor));
      }
    }
    if (rest > 1) out.push_back(digit_along(shape, int(d), step, rest));
  }
  return out;
}

enum class Holds { Once, Copies, Anything };

// Digits in random order on random axes of `among`.
inline Layout random_layout(Random& random, const Point& shape, Holds holds, const std::vector<Axis>& among) {
  const int bits = piece_bits(shape);
  std::vector<Digit> digits = odd_digits(random, shape);
  for (uint64_t v : random_basis(random, bits)) digits.push_back({2, unpack(shape, v)});
  if (holds == Holds::Anything) {
    for (int n = below(random, 3); n > 0 && !digits.empty(); --n)
      digits.erase(digits.begin() + below(random, int(digits.size())));
  }
  if (holds != Holds::Once) {
    for (int n = below(random, 4); n > 0; --n) {
      digits.push_back({2, unpack(shape, below(random, 2) == 0 ? 0 : random() & ((uint64_t(1) << bits) - 1))});
    }
    if (below(random, 3) == 0) digits.push_back({3, Point(shape.size(), 0)});
  }
  std::shuffle(digits.begin(), digits.end(), random);
  Layout out;
  out.shape = shape;
  for (Digit& digit : digits) out[among[size_t(below(random, int(among.size())))]].push_back(std::move(digit));
  return out;
}

inline const std::vector<Axis> threads = {Axis::Register, Axis::Lane, Axis::Warp};

// Every element once, a power of two in each dimension, over `lanes` and `warps` bits and the rest in registers; steps
// are single bits half of the time, any independent ones else.
inline Layout random_distribution(Random& random, const Point& shape, int lanes, int warps) {
  const int bits = piece_bits(shape);
  std::vector<uint64_t> columns = random_basis(random, bits);
  if (below(random, 2) == 0) {
    for (int b = 0; b < bits; ++b) columns[size_t(b)] = uint64_t(1) << b;
    std::shuffle(columns.begin(), columns.end(), random);
  }
  Layout out;
  out.shape = shape;
  for (int b = 0; b < bits; ++b) {
    const Axis axis = b < lanes ? Axis::Lane : b < lanes + warps ? Axis::Warp : Axis::Register;
    out[axis].push_back({2, unpack(shape, columns[size_t(b)])});
  }
  return out;
}

}  // namespace lemma::layout::test
