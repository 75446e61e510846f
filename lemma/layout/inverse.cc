#include <algorithm>
#include <string>

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/digits.h"
#include "lemma/layout/query.h"

namespace lemma::layout {
namespace {

bool is_memory(const Layout& layout) {
  return layout[Axis::Register].empty() && layout[Axis::Lane].empty() && layout[Axis::Warp].empty();
}

// A digit of the flat index as a step of index_shape(layout).
struct Position {
  size_t dimension;  // counted from the fastest
  int32_t step;
};

// The extents of index_shape from fast to slow, and the position of every digit in the order of the axes.
std::vector<int64_t> positions(const Layout& layout, std::vector<Position>* out) {
  std::vector<int64_t> extents;
  for (Axis axis : axes) {
    if (is_memory(layout) ? axis != Axis::Offset : axis == Axis::Offset && layout[axis].empty()) continue;
    extents.push_back(1);
    for (const Digit& digit : layout[axis]) {
      if (digit.radix == 2 && !is_power_of_two(extents.back())) extents.push_back(1);
      if (out != nullptr) out->push_back({extents.size() - 1, int32_t(extents.back())});
      extents.back() *= digit.radix;
    }
  }
  return extents;
}

// The digits of dimension d's odd part, in order, each with the step of the index digit that walks it.
std::vector<std::pair<Digit, Position>> odd_digits(const Layout& layout, size_t d, const std::vector<Position>& where) {
  std::vector<std::pair<Digit, Position>> out;
  size_t i = 0;
  for (Axis axis : axes) {
    for (const Digit& digit : layout[axis]) {
      if (digit.radix != 2 && digit.step[d] != 0) out.push_back({digit, where[i]});
      ++i;
    }
  }
  std::sort(out.begin(), out.end(), [d](const auto& a, const auto& b) { return a.first.step[d] < b.first.step[d]; });
  return out;
}

}  // namespace

Point index_shape(const Layout& layout) {
  const std::vector<int64_t> extents = positions(layout, nullptr);
  Point out;
  for (size_t d = extents.size(); d-- > 0;) out.push_back(int32_t(extents[d]));
  return out;
}

base::Result<Layout> inverse(const Layout& layout) {
  if (!is_surjective(layout)) {
    return base::invalid("a layout that leaves elements of its tile out has no inverse", {},
                         "invert the layout of the part that it reaches");
  }
  std::vector<Position> where;
  Layout out;
  const std::vector<int64_t> extents = positions(layout, &where);
  if (extents.size() > max_rank) {
    return base::unsupported("the inverse of a layout whose index has " + std::to_string(extents.size()) +
                             " parts of a power of two and an odd number, expected at most " +
                             std::to_string(max_rank));
  }
  out.shape = index_shape(layout);
  const auto step = [&](Position p) {
    return digit_along(out.shape, int(out.shape.size() - 1 - p.dimension), p.step).step;
  };

  Echelon echelon;
  std::vector<Position> bits;
  size_t i = 0;
  for (Axis axis : axes) {
    for (const Digit& digit : layout[axis]) {
      if (digit.radix == 2) {
        echelon.insert(pack(layout.shape, digit.step));
        bits.push_back(where[i]);
      }
      ++i;
    }
  }
  int packed = 0;
  for (size_t d = layout.shape.size(); d-- > 0;) {
    for (int b = 0; b < bits_of(layout.shape[d]); ++b) {
      Digit digit{2, Point(out.shape.size(), 0)};
      uint64_t mask = *echelon.solve(uint64_t(1) << packed++);
      for (; mask != 0; mask &= mask - 1) {
        const Point part = step(bits[size_t(__builtin_ctzll(mask))]);
        for (size_t k = 0; k < part.size(); ++k) digit.step[k] ^= part[k];
      }
      out[Axis::Offset].push_back(std::move(digit));
    }
    for (const auto& [digit, position] : odd_digits(layout, d, where)) {
      out[Axis::Offset].push_back({digit.radix, step(position)});
    }
  }
  LEMMA_CHECK(validate(out).ok(), "an inverse that is no layout");
  return out;
}

}  // namespace lemma::layout
