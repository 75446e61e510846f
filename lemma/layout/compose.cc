#include <algorithm>
#include <string>

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"

namespace lemma::layout {
namespace {

// A number in mixed radix is cut into runs: bits, then odd digits, then bits again... Two numbers count alike when
// their runs do; within the odd part of a run only the product matters.
struct Run {
  int bits = 0;
  int64_t odd = 1;
  bool operator==(const Run&) const = default;
};

void append(std::vector<Run>& runs, int32_t radix) {
  if (radix == 1) return;
  if (runs.empty() || (radix == 2 && runs.back().odd > 1)) runs.emplace_back();
  if (radix == 2)
    ++runs.back().bits;
  else
    runs.back().odd *= radix;
}

// Where an odd digit stands: in which run, and with which weight within its odd part.
struct OddDigit {
  size_t run = 0;
  int64_t weight = 1;
  int32_t radix = 1;
  Point step;
};

std::vector<Run> runs_of(const Point& shape) {
  std::vector<Run> runs;
  for (size_t d = shape.size(); d-- > 0;) {
    for (int b = 0; b < bits_of(shape[d]); ++b) append(runs, 2);
    append(runs, shape[d] / piece(shape[d]));
  }
  return runs;
}

// The runs of the flat index, and its odd digits.
std::vector<Run> runs_of(const Layout& layout, std::vector<OddDigit>& odds) {
  std::vector<Run> runs;
  for (Axis axis : axes) {
    for (const Digit& digit : layout[axis]) {
      append(runs, digit.radix);
      if (digit.radix != 2) odds.push_back({runs.size() - 1, runs.back().odd / digit.radix, digit.radix, digit.step});
    }
  }
  return runs;
}

// Run and weight of pieces along each dimension of a shape, as odd digits without steps.
std::vector<OddDigit> pieces_of(const Point& shape) {
  std::vector<OddDigit> out(shape.size());
  std::vector<Run> runs;
  for (size_t d = shape.size(); d-- > 0;) {
    for (int b = 0; b < bits_of(shape[d]); ++b) append(runs, 2);
    const int32_t odd = shape[d] / piece(shape[d]);
    append(runs, odd);
    if (odd > 1) out[d] = {runs.size() - 1, runs.back().odd / odd, odd, {}};
  }
  return out;
}

// The digits of the outer layout that an odd digit [weight, weight * radix) of a run passes through.
base::Result<std::vector<Digit>> through(const std::vector<OddDigit>& odds, size_t run, int64_t weight, int32_t radix) {
  std::vector<Digit> out;
  for (const OddDigit& odd : odds) {
    if (odd.run != run || radix == 1) continue;
    const int64_t end = odd.weight * odd.radix;
    if (weight < odd.weight || weight >= end) continue;
    const int64_t inside = weight / odd.weight;  // the part of the outer digit that begins here
    const int64_t room = odd.radix / inside;
    if (weight % odd.weight != 0 || odd.radix % inside != 0 || (room % radix != 0 && radix % room != 0)) {
      return base::unsupported("odd digits of the two layouts overlap in part, radix " + std::to_string(odd.radix) +
                                   " and " + std::to_string(radix),
                               {}, "split both in the same factors");
    }
    const int32_t part = int32_t(std::min<int64_t>(room, radix));
    Digit digit{part, odd.step};
    for (int32_t& v : digit.step) v = int32_t(v * inside);
    out.push_back(std::move(digit));
    weight *= part;
    radix /= part;
  }
  LEMMA_CHECK(radix == 1, "an odd digit beyond the indices of the outer layout");
  return out;
}

}  // namespace

base::Result<Layout> compose(const Layout& outer, const Layout& inner) {
  std::vector<OddDigit> odds;
  if (runs_of(inner.shape) != runs_of(outer, odds)) {
    return base::invalid("a layout of " + std::to_string(count(outer)) + " indices composed with a tile of " +
                             std::to_string(size(inner.shape)) + " elements that counts otherwise",
                         {},
                         "the bits and odd digits of the one's shape must be those of the other's indices, in order");
  }
  const std::vector<OddDigit> pieces = pieces_of(inner.shape);
  const std::vector<uint64_t> bits = columns(outer);
  Layout out;
  out.shape = outer.shape;
  for (Axis axis : axes) {
    for (const Digit& digit : inner[axis]) {
      if (digit.radix == 2) {
        out[axis].push_back({2, unpack(out.shape, combine(bits, pack(inner.shape, digit.step)))});
        continue;
      }
      if (is_zero(digit.step)) {
        out[axis].push_back({digit.radix, Point(out.shape.size(), 0)});
        continue;
      }
      size_t d = 0;
      while (digit.step[d] == 0) ++d;
      const int64_t weight = pieces[d].weight * (digit.step[d] / piece(inner.shape[d]));
      LEMMA_TRY(const std::vector<Digit> parts, through(odds, pieces[d].run, weight, digit.radix));
      out[axis].insert(out[axis].end(), parts.begin(), parts.end());
    }
  }
  LEMMA_TRY_VOID(validate(out));
  return out;
}

}  // namespace lemma::layout
