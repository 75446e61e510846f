#include "lemma/layout/distribute.h"

#include <string>

#include "lemma/layout/digits.h"

namespace lemma::layout {
namespace {

// What of a dimension's extent is not given away yet.
class Dimension {
 public:
  Dimension(const Point& shape, int d, int32_t taken)
      : shape_(shape),
        d_(d),
        step_(taken & -taken),
        piece_(piece(shape[size_t(d)])),
        odd_(shape[size_t(d)] / piece_ / (taken / step_)),
        odd_step_(piece_ * (taken / step_)) {}

  // n is a power of two; what is beyond the piece is broadcast.
  void take_bits(std::vector<Digit>& digits, int32_t n) {
    for (; n > 1; n /= 2) {
      const bool inside = step_ < piece_;
      digits.push_back(digit_along(shape_, d_, inside ? step_ : 0));
      if (inside) step_ *= 2;
    }
  }
  // False if a tile of several pieces is not divisible by the odd n.
  bool take_odd(std::vector<Digit>& digits, int32_t n) {
    if (n == 1) return true;
    if (odd_ % n != 0 && odd_ != 1) return false;
    const bool inside = odd_ % n == 0;
    digits.push_back(digit_along(shape_, d_, inside ? odd_step_ : 0, n));
    if (inside) odd_ /= n, odd_step_ *= n;
    return true;
  }
  void take_rest(std::vector<Digit>& digits) {
    take_bits(digits, piece_ / step_);
    take_odd(digits, odd_);
  }

 private:
  const Point& shape_;
  int d_;
  int32_t step_;
  int32_t piece_;
  int32_t odd_;
  int32_t odd_step_;
};

base::Result<void> check_counts(const Point& shape, const Point& counts, const char* what, bool may_be_odd) {
  if (counts.size() != shape.size()) {
    return base::invalid(std::to_string(counts.size()) + " numbers of " + what + ", expected one for each of " +
                         std::to_string(shape.size()) + " dimensions");
  }
  for (int32_t n : counts) {
    if (n < 1 || (!may_be_odd && !is_power_of_two(n))) {
      return base::invalid(std::to_string(n) + " " + what + " along a dimension, expected a " +
                           (may_be_odd ? "positive number" : "power of two"));
    }
  }
  return {};
}

base::Result<void> take_warps(std::vector<Dimension>& dimensions, std::vector<Digit>& digits, const Point& shape,
                              const Point& warps, int d) {
  const int32_t n = warps[size_t(d)], bits = n & -n;
  dimensions[size_t(d)].take_bits(digits, bits);
  if (dimensions[size_t(d)].take_odd(digits, n / bits)) return {};
  return base::unsupported(std::to_string(n) + " warps along an extent of " + std::to_string(shape[size_t(d)]), {},
                           "use a power of two, or a number whose odd factor divides the extent");
}

}  // namespace

base::Result<Layout> blocked(const Point& shape, const Blocks& blocks) {
  Layout out;
  out.shape = shape;
  LEMMA_TRY_VOID(validate(out));
  LEMMA_TRY_VOID(check_order(shape.size(), blocks.order));
  LEMMA_TRY_VOID(check_counts(shape, blocks.vector, "vector elements", false));
  LEMMA_TRY_VOID(check_counts(shape, blocks.lanes, "lanes", false));
  LEMMA_TRY_VOID(check_counts(shape, blocks.warps, "warps", true));
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) dimensions.emplace_back(shape, int(d), 1);
  for (int d : blocks.order) dimensions[size_t(d)].take_bits(out[Axis::Register], blocks.vector[size_t(d)]);
  for (int d : blocks.order) dimensions[size_t(d)].take_bits(out[Axis::Lane], blocks.lanes[size_t(d)]);
  for (int d : blocks.order) {
    LEMMA_TRY_VOID(take_warps(dimensions, out[Axis::Warp], shape, blocks.warps, d));
  }
  for (int d : blocks.order) dimensions[size_t(d)].take_rest(out[Axis::Register]);
  LEMMA_TRY_VOID(validate(out));
  return out;
}

base::Result<Layout> repeat(const Layout& fragment, const Point& shape, const Point& warps,
                            const std::vector<int>& order) {
  Layout out;
  out.shape = shape;
  LEMMA_TRY_VOID(validate(out));
  if (shape.size() != fragment.shape.size()) {
    return base::invalid("a tile of " + std::to_string(shape.size()) + " dimensions for a fragment of " +
                         std::to_string(fragment.shape.size()));
  }
  LEMMA_TRY_VOID(check_order(shape.size(), order));
  LEMMA_TRY_VOID(check_counts(shape, warps, "warps", true));
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int32_t side = fragment.shape[d];
    if (shape[d] % side != 0) {
      return base::invalid("an extent of " + std::to_string(shape[d]) + " for fragments of " + std::to_string(side), {},
                           "pad the tile to a multiple of the fragment");
    }
    if (!is_power_of_two(side) && shape[d] / side % 2 == 0) {
      return base::unsupported("an even number of fragments of " + std::to_string(side) + " along a dimension", {},
                               "a fragment whose side is no power of two can be repeated an odd number of times");
    }
    dimensions.emplace_back(shape, int(d), side);
  }
  out.digits = fragment.digits;
  for (int d : order) LEMMA_TRY_VOID(take_warps(dimensions, out[Axis::Warp], shape, warps, d));
  for (int d : order) dimensions[size_t(d)].take_rest(out[Axis::Register]);
  LEMMA_TRY_VOID(validate(out));
  return out;
}

}  // namespace lemma::layout
