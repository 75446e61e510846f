#include "lemma/layout/digits.h"

#include <algorithm>
#include <string>

namespace lemma::layout {

Digit digit_along(const Point& shape, int d, int32_t step, int32_t radix) {
  Digit out{radix, Point(shape.size(), 0)};
  out.step[size_t(d)] = step;
  return out;
}

void append_extent(std::vector<Digit>& digits, const Point& shape, int d, int32_t first, int32_t extent) {
  int32_t step = first;
  for (; extent % 2 == 0; extent /= 2, step *= 2) digits.push_back(digit_along(shape, d, step));
  if (extent > 1) digits.push_back(digit_along(shape, d, step, extent));
}

std::vector<int> descending(size_t rank) {
  std::vector<int> order;
  for (size_t d = rank; d-- > 0;) order.push_back(int(d));
  return order;
}

base::Result<void> check_order(size_t rank, const std::vector<int>& order) {
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == rank;
  for (size_t d = 0; permutation && d < rank; ++d) permutation = sorted[d] == int(d);
  if (permutation) return {};
  std::string found;
  for (int d : order) found += (found.empty() ? "" : ", ") + std::to_string(d);
  return base::invalid("the order of dimensions " + found + ", expected each of the " + std::to_string(rank) +
                       " once, counted from 0");
}

base::Result<void> check_element_bits(int element_bits) {
  if (is_power_of_two(element_bits) && element_bits >= 4 && element_bits <= 128) return {};
  return base::invalid("elements of " + std::to_string(element_bits) + " bits, expected 4, 8, 16, 32, 64 or 128");
}

}  // namespace lemma::layout
