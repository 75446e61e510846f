#include "lemma/layout/memory.h"

#include <string>

#include "lemma/layout/digits.h"

namespace lemma::layout {
namespace {

Layout empty(const Point& shape) {
  Layout out;
  out.shape = shape;
  return out;
}

}  // namespace

base::Result<Layout> row_major(const Point& shape) { return dense(shape, descending(shape.size())); }

base::Result<Layout> dense(const Point& shape, const std::vector<int>& order) {
  Layout out = empty(shape);
  LEMMA_TRY_VOID(validate(out));
  LEMMA_TRY_VOID(check_order(shape.size(), order));
  for (int d : order) append_extent(out[Axis::Offset], shape, d, 1, shape[size_t(d)]);
  return out;
}

base::Result<Layout> slabs(const Point& shape, int32_t columns) {
  Layout out = empty(shape);
  LEMMA_TRY_VOID(validate(out));
  const int last = int(shape.size()) - 1;
  if (!is_power_of_two(columns) || shape.back() % columns != 0) {
    return base::invalid("slabs of " + std::to_string(columns) + " columns for rows of " +
                             std::to_string(shape.back()) + ", expected a power of two that divides the row",
                         {}, "the largest is " + std::to_string(piece(shape.back())));
  }
  append_extent(out[Axis::Offset], shape, last, 1, columns);
  for (int d = last - 1; d >= 0; --d) append_extent(out[Axis::Offset], shape, d, 1, shape[size_t(d)]);
  append_extent(out[Axis::Offset], shape, last, columns, shape.back() / columns);
  return out;
}

base::Result<Layout> piecewise(const Point& shape, const std::vector<int>& order) {
  Layout out = empty(shape);
  LEMMA_TRY_VOID(validate(out));
  LEMMA_TRY_VOID(check_order(shape.size(), order));
  for (int d : order) append_extent(out[Axis::Offset], shape, d, 1, piece(shape[size_t(d)]));
  for (int d : order) {
    const int32_t side = piece(shape[size_t(d)]);
    append_extent(out[Axis::Offset], shape, d, side, shape[size_t(d)] / side);
  }
  return out;
}

Layout swizzled(Layout memory, const Swizzle& swizzle) {
  std::vector<Digit>& digits = memory[Axis::Offset];
  LEMMA_CHECK(swizzle.size() <= digits.size() && digits.size() <= 64, "a swizzle of more digits than the offset has");
  const std::vector<Digit> plain = digits;
  for (size_t j = 0; j < swizzle.size(); ++j) {
    for (size_t i = 0; i < plain.size(); ++i) {
      if (((swizzle[j] >> i) & 1) == 0) continue;
      LEMMA_CHECK(plain[i].radix == 2 && plain[j].radix == 2, "a swizzle of a digit of odd radix");
      LEMMA_CHECK(i >= swizzle.size() || swizzle[i] == 0, "a swizzle that is not its own inverse");
      for (size_t d = 0; d < memory.shape.size(); ++d) digits[j].step[d] ^= plain[i].step[d];
    }
  }
  return memory;
}

base::Result<Layout> span_swizzled(const Point& shape, int element_bits, int span_bytes) {
  if (span_bytes != 32 && span_bytes != 64 && span_bytes != 128) {
    return base::invalid("a swizzle span of " + std::to_string(span_bytes) + " bytes, expected 32, 64 or 128");
  }
  LEMMA_TRY_VOID(check_element_bits(element_bits));
  LEMMA_TRY(const Layout memory, slabs(shape, span_bytes * 8 / element_bits));
  const int lowest = 4 + 3 - bits_of(element_bits);  // the offset digit of byte address bit 4
  const int flips = bits_of(span_bytes / 16), above = lowest + 3;
  const std::vector<Digit>& digits = memory[Axis::Offset];
  Swizzle swizzle(digits.size(), 0);
  for (int b = 0; b < flips; ++b) {
    for (int j = 0; j <= above + b && size_t(j) < digits.size(); ++j) {
      if (digits[size_t(j)].radix != 2) {
        return base::unsupported("a swizzle span of " + std::to_string(span_bytes) + " bytes with an extent of " +
                                     std::to_string(digits[size_t(j)].radix) + " pieces below address bit " +
                                     std::to_string(7 + b),
                                 {}, "make the rows of the tile a multiple of 8");
      }
    }
    if (size_t(above + b) < digits.size()) swizzle[size_t(above + b)] = uint64_t(1) << (lowest + b);
  }
  return swizzled(memory, swizzle);
}

std::optional<int> recognise_span(const Layout& memory, int element_bits) {
  if (!check_element_bits(element_bits).ok() || !validate(memory).ok()) return std::nullopt;
  for (int span : {128, 64, 32}) {
    const base::Result<Layout> candidate = span_swizzled(memory.shape, element_bits, span);
    if (candidate.ok() && *candidate == memory) return span;
  }
  for (int32_t columns = 128 / element_bits; columns > 0 && columns <= piece(memory.shape.back()); columns *= 2) {
    const base::Result<Layout> plain = slabs(memory.shape, columns);
    if (plain.ok() && *plain == memory) return 0;
  }
  const base::Result<Layout> rows = row_major(memory.shape);
  if (rows.ok() && *rows == memory && int64_t(memory.shape.back()) * element_bits % 128 == 0) return 0;
  return std::nullopt;
}

}  // namespace lemma::layout
