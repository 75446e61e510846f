// Linear algebra over GF(2): vectors are words, addition is exclusive or. And the linear part of a layout in this form.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

// A growing set of vectors in echelon form that remembers how its members were combined.
class Echelon {
 public:
  // Adds vector number `inserted()`; false if it depends on those before it.
  bool insert(uint64_t vector);
  int inserted() const { return inserted_; }
  int rank() const { return int(rows_.size()); }
  bool contains(uint64_t vector) const { return reduce(vector).vector == 0; }
  // Which inserted vectors add up to this one, as a mask; only independent ones are used, so the answer is unique and
  // linear in the vector.
  std::optional<uint64_t> solve(uint64_t vector) const;

 private:
  struct Row {
    uint64_t vector = 0;       // leading bit: its highest
    uint64_t combination = 0;  // of inserted vectors
  };
  Row reduce(uint64_t vector) const;
  std::vector<Row> rows_;  // no leading bit stands in another row
  int inserted_ = 0;
};

// A coordinate inside a piece as one word: the bits of the last dimension lowest.
uint64_t pack(const Point& shape, const Point& step);
Point unpack(const Point& shape, uint64_t word);
int piece_bits(const Point& shape);

// The packed steps of all bits of an axis, in order; odd digits left out.
std::vector<uint64_t> columns(const Layout& layout, Axis axis);
// Of all axes, registers first: the order of layout::at's flat index.
std::vector<uint64_t> columns(const Layout& layout);

// The sum of those columns whose bit is set in `mask`.
uint64_t combine(const std::vector<uint64_t>& columns, uint64_t mask);

// The values of the bit digits of a number as a mask; odd digits left out.
uint64_t bit_digits(const std::vector<Digit>& digits, int64_t number);

}  // namespace lemma::layout
