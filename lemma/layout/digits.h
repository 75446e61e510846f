// Digits of extents, and checks that several makers of layouts share.
#pragma once

#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

// A digit that moves by `step` along dimension d.
Digit digit_along(const Point& shape, int d, int32_t step, int32_t radix = 2);

// Appends the digits that walk `extent` steps of `first` along dimension d: its bits, then its odd part. `first` times
// the power of two in `extent` must divide the piece, or, where it does not, `extent` must be odd.
void append_extent(std::vector<Digit>& digits, const Point& shape, int d, int32_t first, int32_t extent);

// {rank-1, ..., 0}: the last dimension fastest.
std::vector<int> descending(size_t rank);

base::Result<void> check_order(size_t rank, const std::vector<int>& order);
base::Result<void> check_element_bits(int element_bits);

}  // namespace lemma::layout
