#include "lemma/layout/algebra.h"

#include <algorithm>
#include <string>

#include "lemma/layout/digits.h"

namespace lemma::layout {

base::Result<Layout> transpose(Layout layout, const std::vector<int>& dimensions) {
  LEMMA_TRY_VOID(check_order(layout.shape.size(), dimensions));
  const auto permute = [&](const Point& point) {
    Point out;
    for (int d : dimensions) out.push_back(point[size_t(d)]);
    return out;
  };
  layout.shape = permute(layout.shape);
  for (std::vector<Digit>& digits : layout.digits) {
    for (Digit& digit : digits) digit.step = permute(digit.step);
  }
  return layout;
}

base::Result<Layout> slice(Layout layout, int d) {
  if (d < 0 || size_t(d) >= layout.shape.size()) {
    return base::invalid("dimension " + std::to_string(d) + " of a tile of " + std::to_string(layout.shape.size()) +
                         " dimensions");
  }
  if (layout.shape.size() == 1) {
    return base::invalid("the only dimension of a tile cannot be sliced away", {}, "a scalar has no layout");
  }
  layout.shape.erase(layout.shape.begin() + d);
  for (std::vector<Digit>& digits : layout.digits) {
    for (Digit& digit : digits) digit.step.erase(digit.step.begin() + d);
  }
  return layout;
}

Layout drop_register_broadcasts(Layout layout) {
  std::vector<Digit>& registers = layout[Axis::Register];
  registers.erase(std::remove_if(registers.begin(), registers.end(), [](const Digit& d) { return is_zero(d.step); }),
                  registers.end());
  return layout;
}

base::Result<Layout> product(const Layout& inner, const Layout& outer) {
  if (inner.shape.size() != outer.shape.size()) {
    return base::invalid("the product of tiles of " + std::to_string(inner.shape.size()) + " and " +
                         std::to_string(outer.shape.size()) + " dimensions");
  }
  Layout out = inner;
  for (size_t d = 0; d < inner.shape.size(); ++d) {
    if (!is_power_of_two(inner.shape[d]) && outer.shape[d] % 2 == 0) {
      return base::unsupported(
          "the product of an extent of " + std::to_string(inner.shape[d]) + " with " + std::to_string(outer.shape[d]),
          {}, "an extent that is no power of two can be repeated an odd number of times");
    }
    const int64_t extent = int64_t(inner.shape[d]) * outer.shape[d];
    if (extent > max_size) return base::unsupported("a tile of more than 1073741824 elements");
    out.shape[d] = int32_t(extent);
  }
  for (Axis axis : axes) {
    for (Digit digit : outer[axis]) {
      for (size_t d = 0; d < inner.shape.size(); ++d) digit.step[d] *= inner.shape[d];
      out[axis].push_back(std::move(digit));
    }
  }
  LEMMA_TRY_VOID(validate(out));
  return out;
}

std::optional<Layout> divide(const Layout& layout, const Layout& prefix) {
  if (layout.shape.size() != prefix.shape.size()) return std::nullopt;
  Layout out;
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    if (layout.shape[d] % prefix.shape[d] != 0) return std::nullopt;
    out.shape.push_back(layout.shape[d] / prefix.shape[d]);
  }
  for (Axis axis : axes) {
    const std::vector<Digit>& whole = layout[axis];
    const std::vector<Digit>& first = prefix[axis];
    if (first.size() > whole.size() || !std::equal(first.begin(), first.end(), whole.begin())) return std::nullopt;
    for (size_t i = first.size(); i < whole.size(); ++i) {
      Digit digit = whole[i];
      for (size_t d = 0; d < out.shape.size(); ++d) {
        if (digit.step[d] % prefix.shape[d] != 0) return std::nullopt;
        digit.step[d] /= prefix.shape[d];
      }
      out[axis].push_back(std::move(digit));
    }
  }
  // A bit of the whole may have become a step that leaves the quotient's pieces; then there is no such C.
  const base::Result<Layout> again = validate(out).ok() ? product(prefix, out) : base::Result<Layout>(Layout{});
  if (!again.ok() || *again != layout) return std::nullopt;
  return out;
}

base::Result<Layout> relate(const Layout& memory, const Layout& distribution) {
  if (memory.shape != distribution.shape) return base::invalid("two layouts of tiles of different shapes");
  LEMMA_TRY(const Layout offsets, inverse(memory));
  return compose(offsets, distribution);
}

}  // namespace lemma::layout
