#include "lemma/tile/fragments.h"

#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/layout/algebra.h"

namespace lemma::tile {

using layout::Axis;
using layout::Point;

namespace {

bool moves(const layout::Digit& digit, const std::vector<int>& dimensions) {
  return std::any_of(dimensions.begin(), dimensions.end(), [&](int d) { return digit.step[size_t(d)] != 0; });
}

}  // namespace

bool in_registers(const Buffer& buffer) { return buffer.space == Space::Fragment && buffer.hints.placed.has_value(); }

std::optional<Point> regular_shape(const std::vector<view::Form>& extents) {
  Point out;
  for (const view::Form& e : extents) {
    const auto n = e.constant();
    if (!n || !layout::is_power_of_two(*n) || *n > (1 << 20)) return std::nullopt;
    out.push_back(int32_t(*n));
  }
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<Point> regular_shape(const std::vector<Range>& ranges) {
  std::vector<view::Form> extents;
  for (const Range& r : ranges) extents.push_back(r.extent);
  return regular_shape(extents);
}

std::optional<std::vector<int>> point_dimensions(const Access& access, const std::vector<Range>& points) {
  std::vector<int> out;
  for (const view::Form& c : access.coords) {
    const auto var = c.as_index();
    if (!var) return std::nullopt;
    const auto at = std::find_if(points.begin(), points.end(), [&](const Range& r) { return r.var == *var; });
    if (at == points.end()) return std::nullopt;
    const int d = int(at - points.begin());
    if (std::find(out.begin(), out.end(), d) != out.end()) return std::nullopt;
    out.push_back(d);
  }
  return out;
}

layout::Layout project(const layout::Layout& points, const std::vector<int>& dimensions) {
  layout::Layout out = points;
  for (auto& axis : out.digits) {
    for (layout::Digit& digit : axis) {
      Point step;
      for (int d : dimensions) step.push_back(digit.step[size_t(d)]);
      digit.step = std::move(step);
    }
  }
  out.shape.clear();
  for (int d : dimensions) out.shape.push_back(points.shape[size_t(d)]);
  return layout::drop_register_broadcasts(std::move(out));
}

layout::Layout distribution_of(const layout::Layout& buffer, const std::vector<int>& dimensions) {
  LEMMA_CHECK(dimensions.size() == buffer.shape.size(), "a fragment that leaves points out decides nothing of them");
  std::vector<int> inverse(dimensions.size());
  for (size_t d = 0; d < dimensions.size(); ++d) inverse[size_t(dimensions[d])] = int(d);
  layout::Layout out = buffer;
  for (size_t d = 0; d < inverse.size(); ++d) out.shape[d] = buffer.shape[size_t(inverse[d])];
  for (auto& axis : out.digits) {
    for (layout::Digit& digit : axis) {
      const Point step = digit.step;
      for (size_t d = 0; d < inverse.size(); ++d) digit.step[d] = step[size_t(inverse[d])];
    }
  }
  return out;
}

std::vector<int> projected_registers(const layout::Layout& points, const std::vector<int>& dimensions) {
  std::vector<int> out;
  const auto& registers = points[Axis::Register];
  for (size_t i = 0; i < registers.size(); ++i) {
    if (moves(registers[i], dimensions)) out.push_back(int(i));
  }
  return out;
}

}  // namespace lemma::tile
