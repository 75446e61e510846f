#include "lemma/layout/bits.h"

namespace lemma::layout {
namespace {

int highest(uint64_t word) { return 63 - __builtin_clzll(word); }

}  // namespace

Echelon::Row Echelon::reduce(uint64_t vector) const {
  Row out{vector, 0};
  for (const Row& row : rows_) {
    if ((out.vector >> highest(row.vector)) & 1) {
      out.vector ^= row.vector;
      out.combination ^= row.combination;
    }
  }
  return out;
}

bool Echelon::insert(uint64_t vector) {
  LEMMA_CHECK(inserted_ < 64, "more than 64 vectors in an echelon form");
  Row fresh = reduce(vector);
  fresh.combination ^= uint64_t(1) << inserted_++;
  if (fresh.vector == 0) return false;
  for (Row& row : rows_) {
    if ((row.vector >> highest(fresh.vector)) & 1) {
      row.vector ^= fresh.vector;
      row.combination ^= fresh.combination;
    }
  }
  rows_.push_back(fresh);
  return true;
}

std::optional<uint64_t> Echelon::solve(uint64_t vector) const {
  const Row rest = reduce(vector);
  if (rest.vector != 0) return std::nullopt;
  return rest.combination;
}

uint64_t pack(const Point& shape, const Point& step) {
  uint64_t word = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int32_t side = piece(shape[d]);
    word = word << bits_of(side) | uint64_t(step[d] & (side - 1));
  }
  return word;
}

Point unpack(const Point& shape, uint64_t word) {
  Point out(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    const int32_t side = piece(shape[d]);
    out[d] = int32_t(word & uint64_t(side - 1));
    word >>= bits_of(side);
  }
  return out;
}

int piece_bits(const Point& shape) {
  int n = 0;
  for (int32_t extent : shape) n += bits_of(extent);
  return n;
}

std::vector<uint64_t> columns(const Layout& layout, Axis axis) {
  std::vector<uint64_t> out;
  for (const Digit& digit : layout[axis]) {
    if (digit.radix == 2) out.push_back(pack(layout.shape, digit.step));
  }
  return out;
}

std::vector<uint64_t> columns(const Layout& layout) {
  std::vector<uint64_t> out;
  for (Axis axis : axes) {
    const std::vector<uint64_t> part = columns(layout, axis);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

uint64_t combine(const std::vector<uint64_t>& columns, uint64_t mask) {
  uint64_t out = 0;
  for (; mask != 0; mask &= mask - 1) out ^= columns[size_t(__builtin_ctzll(mask))];
  return out;
}

uint64_t bit_digits(const std::vector<Digit>& digits, int64_t number) {
  uint64_t mask = 0;
  int position = 0;
  for (const Digit& digit : digits) {
    if (digit.radix == 2) mask |= uint64_t(number % 2) << position++;
    number /= digit.radix;
  }
  return mask;
}

}  // namespace lemma::layout
