#include "lemma/layout/layout.h"

#include <algorithm>
#include <string>

#include "lemma/base/hash.h"

namespace lemma::layout {
namespace {

std::string text(const Point& point) {
  std::string out;
  for (int32_t v : point) out += (out.empty() ? "(" : ",") + std::to_string(v);
  return out + ")";
}

// An odd digit that is not a broadcast, along its dimension.
struct Stride {
  int64_t step;
  int32_t radix;
};

base::Result<void> check_shape(const Point& shape) {
  if (shape.empty() || shape.size() > max_rank) {
    return base::invalid("a tile of " + std::to_string(shape.size()) + " dimensions, expected 1 to " +
                         std::to_string(max_rank));
  }
  int64_t elements = 1;
  for (int32_t extent : shape) {
    if (extent < 1) return base::invalid("an extent of " + std::to_string(extent) + " in a tile, expected at least 1");
    elements *= extent;
    if (elements > max_size) {
      return base::unsupported("a tile of more than 1073741824 elements", {}, "lay out a part of it and loop");
    }
  }
  return {};
}

base::Result<void> check_bit(const Layout& layout, const Digit& digit) {
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    const int32_t side = piece(layout.shape[d]);
    if (digit.step[d] < 0 || digit.step[d] >= side) {
      return base::invalid("the step " + text(digit.step) + " of a bit leaves the piece of " + std::to_string(side) +
                               " along dimension " + std::to_string(d),
                           {},
                           "an extent is a power of two times an odd number; a digit of that radix walks its pieces");
    }
  }
  return {};
}

base::Result<void> check_odd(const Layout& layout, const Digit& digit, std::vector<std::vector<Stride>>& strides) {
  if (digit.radix < 3 || digit.radix % 2 == 0) {
    return base::invalid("a digit of radix " + std::to_string(digit.radix) + ", expected 2 or an odd number from 3", {},
                         "write an even radix as bits and an odd digit");
  }
  if (is_zero(digit.step)) return {};
  const auto nonzero = [](int32_t v) { return v != 0; };
  const auto first = std::find_if(digit.step.begin(), digit.step.end(), nonzero);
  const size_t d = size_t(first - digit.step.begin());
  if (std::any_of(first + 1, digit.step.end(), nonzero)) {
    return base::invalid("the step " + text(digit.step) + " of a digit of radix " + std::to_string(digit.radix) +
                         " moves along two dimensions, expected one");
  }
  if (*first < 0 || *first % piece(layout.shape[d]) != 0) {
    return base::invalid("the step " + text(digit.step) + " of a digit of radix " + std::to_string(digit.radix) +
                         " is no multiple of the piece of " + std::to_string(piece(layout.shape[d])));
  }
  strides[d].push_back({*first, digit.radix});
  return {};
}

// The odd digits along dimension d, sorted by step, tile without overlap.
base::Result<void> check_chain(const Layout& layout, size_t d, std::vector<Stride> strides) {
  std::sort(strides.begin(), strides.end(), [](const Stride& a, const Stride& b) { return a.step < b.step; });
  int64_t end = piece(layout.shape[d]);
  for (const Stride& s : strides) {
    if (s.step % end != 0) {
      return base::invalid("digits of odd radix overlap along dimension " + std::to_string(d) + ": the step " +
                           std::to_string(s.step) + " is no multiple of " + std::to_string(end));
    }
    end = s.step * s.radix;
  }
  if (layout.shape[d] % end != 0) {
    return base::invalid("digits of odd radix reach " + std::to_string(end) + " along dimension " + std::to_string(d) +
                         ", which does not divide its extent " + std::to_string(layout.shape[d]));
  }
  return {};
}

}  // namespace

std::string_view name(Axis axis) {
  switch (axis) {
    case Axis::Register:
      return "register";
    case Axis::Lane:
      return "lane";
    case Axis::Warp:
      return "warp";
    case Axis::Offset:
      return "offset";
  }
  return "";
}

bool is_zero(const Point& step) {
  return std::all_of(step.begin(), step.end(), [](int32_t v) { return v == 0; });
}

base::Result<void> validate(const Layout& layout) {
  LEMMA_TRY_VOID(check_shape(layout.shape));
  std::vector<std::vector<Stride>> strides(layout.shape.size());
  int64_t indices = 1;
  for (Axis axis : axes) {
    for (const Digit& digit : layout[axis]) {
      if (digit.step.size() != layout.shape.size()) {
        return base::invalid("the step " + text(digit.step) + " has " + std::to_string(digit.step.size()) +
                             " coordinates, expected " + std::to_string(layout.shape.size()));
      }
      LEMMA_TRY_VOID(digit.radix == 2 ? check_bit(layout, digit) : check_odd(layout, digit, strides));
      if (digit.radix > max_size / indices) return base::unsupported("a layout of more than 1073741824 indices");
      indices *= digit.radix;
    }
  }
  for (size_t d = 0; d < layout.shape.size(); ++d) LEMMA_TRY_VOID(check_chain(layout, d, strides[d]));
  return {};
}

size_t hash(const Layout& layout) {
  size_t h = layout.shape.size();
  for (int32_t extent : layout.shape) h = base::mix(h, size_t(extent));
  for (Axis axis : axes) {
    h = base::mix(h, layout[axis].size());
    for (const Digit& digit : layout[axis]) {
      h = base::mix(h, size_t(digit.radix));
      for (int32_t v : digit.step) h = base::mix(h, size_t(v));
    }
  }
  return h;
}

int64_t size(const Point& shape) {
  int64_t n = 1;
  for (int32_t extent : shape) n *= extent;
  return n;
}

int64_t count(const Layout& layout, Axis axis) {
  int64_t n = 1;
  for (const Digit& digit : layout[axis]) n *= digit.radix;
  return n;
}

int64_t count(const Layout& layout) {
  int64_t n = 1;
  for (Axis axis : axes) n *= count(layout, axis);
  return n;
}

Point at(const Layout& layout, const Index& index) {
  const size_t rank = layout.shape.size();
  Point inside(rank, 0), pieces(rank, 0);
  for (Axis axis : axes) {
    int64_t rest = index[size_t(axis)];
    for (const Digit& digit : layout[axis]) {
      const int32_t value = int32_t(rest % digit.radix);
      rest /= digit.radix;
      if (value == 0) continue;
      for (size_t d = 0; d < rank; ++d) {
        if (digit.radix == 2)
          inside[d] ^= digit.step[d];
        else
          pieces[d] += value * digit.step[d];
      }
    }
    LEMMA_CHECK(rest == 0, "an index beyond its axis");
  }
  for (size_t d = 0; d < rank; ++d) inside[d] += pieces[d];
  return inside;
}

Index unflatten(const Layout& layout, int64_t flat) {
  Index index{};
  for (Axis axis : axes) {
    const int64_t n = count(layout, axis);
    index[size_t(axis)] = flat % n;
    flat /= n;
  }
  LEMMA_CHECK(flat == 0, "an index beyond its layout");
  return index;
}

Point at(const Layout& layout, int64_t flat) { return at(layout, unflatten(layout, flat)); }

int64_t flatten(const Point& shape, const Point& point) {
  int64_t out = 0;
  for (size_t d = 0; d < shape.size(); ++d) out = out * shape[d] + point[d];
  return out;
}

Point point_of(const Point& shape, int64_t rank) {
  Point out(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = int32_t(rank % shape[d]);
    rank /= shape[d];
  }
  return out;
}

}  // namespace lemma::layout
