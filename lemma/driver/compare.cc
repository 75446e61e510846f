#include "lemma/driver/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lemma/runtime/random.h"
#include "lemma/scalar/convert.h"

namespace lemma::driver {
namespace {

using scalar::DType;

// nan, -inf, finite, +inf.
int class_of(double value) { return std::isnan(value) ? -2 : std::isinf(value) ? (value > 0 ? 1 : -1) : 0; }

std::string print(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

void note(Comparison& out, double found, double expected, int64_t flat) {
  out.where = flat;
  out.found = found;
  out.expected = expected;
}

Comparison compare_integers(const runtime::Array& result, std::span<const Reference> reference) {
  Comparison out;
  const bool wide = result.type == DType::U64;
  const auto real = [&](int64_t value) { return wide ? double(uint64_t(value)) : double(value); };
  for (const Reference& r : reference) {
    const int64_t value = runtime::int_at(result, r.flat);
    ++out.compared;
    out.largest = std::max(out.largest, std::fabs(real(r.integer)));
    if (value == r.integer) continue;
    ++out.different;
    const double error = std::fabs(real(value) - real(r.integer));
    if (!out.where || error > out.worst) {
      out.worst = error;
      note(out, real(value), real(r.integer), r.flat);
    }
  }
  return out;
}

}  // namespace

Tolerance tolerance_of(DType type, std::optional<double> stated) {
  Tolerance out;
  if (!scalar::is_float(type)) return out;
  out.absolute = stated.value_or(type == DType::F64 ? 1e-10 : 2e-5);
  switch (type) {
    case DType::F16: out.relative = 0x1p-11, out.least = 0x1p-25; break;
    case DType::BF16: out.relative = 0x1p-8, out.least = 0x1p-134; break;
    case DType::F8E4M3: out.relative = 0x1p-4, out.least = 0x1p-10; break;
    case DType::F8E5M2: out.relative = 0x1p-3, out.least = 0x1p-17; break;
    default: break;
  }
  return out;
}

std::string describe(const Tolerance& tolerance) {
  if (tolerance.absolute == 0 && tolerance.relative == 0) return "equal";
  std::string out = print(tolerance.absolute) + " * max(1, largest)";
  if (tolerance.relative > 0) out += " + " + print(tolerance.relative) + " * |value|";
  return out;
}

Comparison compare(const runtime::Array& result, std::span<const Reference> reference, const Tolerance& tolerance) {
  if (!scalar::is_float(result.type)) return compare_integers(result, reference);
  Comparison out;
  for (const Reference& r : reference) {
    if (std::isfinite(r.real)) out.largest = std::max(out.largest, std::fabs(r.real));
  }
  bool class_differs = false;
  for (const Reference& r : reference) {
    const double value = runtime::float_at(result, r.flat);
    ++out.compared;
    const bool unlike = class_of(value) != class_of(scalar::rounded(result.type, r.real));
    if (unlike) {
      ++out.different;
      if (!class_differs) note(out, value, r.real, r.flat);
      class_differs = true;
      continue;
    }
    if (class_of(value) != 0 || class_of(r.real) != 0) continue;
    const double error = std::fabs(value - r.real);
    const double allowed = tolerance.absolute * std::max(1.0, out.largest) + tolerance.relative * std::fabs(r.real) +
                           tolerance.least;
    if (error > allowed) ++out.different;
    if (error >= out.worst && !class_differs) note(out, value, r.real, r.flat);
    out.worst = std::max(out.worst, error);
  }
  return out;
}

std::string print_index(std::span<const int64_t> extents, int64_t flat) {
  std::string out = "]";
  for (size_t d = extents.size(); d-- > 0;) {
    out = (d ? ", " : "") + std::to_string(flat % extents[d]) + out;
    flat /= extents[d];
  }
  return "[" + out;
}

std::vector<int64_t> sample_positions(std::span<const int64_t> extents, std::span<const int64_t> tiles, int64_t count,
                                      uint64_t seed) {
  const int64_t total = runtime::checked_count(extents).value_or(0);
  std::vector<int64_t> out;
  if (total <= count) {
    for (int64_t i = 0; i < total; ++i) out.push_back(i);
    return out;
  }
  // Per dimension: ends, and both sides of some tile borders.
  std::vector<std::vector<int64_t>> marks(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    std::vector<int64_t>& m = marks[d];
    m = {0, extents[d] - 1};
    for (const int64_t tile : tiles) {
      if (tile < 1 || tile >= extents[d]) continue;
      const int64_t last = (extents[d] - 1) / tile * tile;
      for (const int64_t at : {tile - 1, tile, last - 1, last}) m.push_back(at);
    }
    std::sort(m.begin(), m.end());
    m.erase(std::unique(m.begin(), m.end()), m.end());
  }
  // Half of the points have marked coordinates, half are free; a free point has one marked coordinate at times.
  const auto draw = [&](uint64_t i, size_t d, uint64_t below) {
    return int64_t(runtime::hash(seed + 77 * d, i) % below);
  };
  uint64_t i = 0;
  while (int64_t(out.size()) < count) {
    for (const uint64_t end = i + 2 * uint64_t(count); i < end; ++i) {
      int64_t flat = 0;
      for (size_t d = 0; d < extents.size(); ++d) {
        const bool marked = i % 2 == 0 || (i % 4 == 1 && d == (i / 4) % extents.size());
        const int64_t at = marked ? marks[d][size_t(draw(i, d, marks[d].size()))] : draw(i, d, uint64_t(extents[d]));
        flat = flat * extents[d] + at;
      }
      out.push_back(flat);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return out;
}

}  // namespace lemma::driver
