#include "lemma/layout/query.h"

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"

namespace lemma::layout {

std::array<std::vector<int>, 4> redundant_digits(const Layout& layout) {
  std::array<std::vector<int>, 4> out;
  Echelon echelon;
  for (Axis axis : axes) {
    for (size_t i = 0; i < layout[axis].size(); ++i) {
      const Digit& digit = layout[axis][i];
      const bool fresh = digit.radix == 2 ? echelon.insert(pack(layout.shape, digit.step)) : !is_zero(digit.step);
      if (!fresh) out[size_t(axis)].push_back(int(i));
    }
  }
  return out;
}

bool is_injective(const Layout& layout) {
  for (const std::vector<int>& digits : redundant_digits(layout)) {
    if (!digits.empty()) return false;
  }
  return true;
}

bool is_surjective(const Layout& layout) {
  Echelon echelon;
  std::vector<int64_t> reached(layout.shape.size(), 1);
  for (Axis axis : axes) {
    for (const Digit& digit : layout[axis]) {
      if (digit.radix == 2) {
        echelon.insert(pack(layout.shape, digit.step));
        continue;
      }
      for (size_t d = 0; d < reached.size(); ++d) {
        if (digit.step[d] != 0) reached[d] *= digit.radix;
      }
    }
  }
  for (size_t d = 0; d < reached.size(); ++d) {
    if (reached[d] != layout.shape[d] / piece(layout.shape[d])) return false;
  }
  return echelon.rank() == piece_bits(layout.shape);
}

base::Result<VectorAccess> vector_access(const Layout& distribution, const Layout& memory, int most) {
  if (!is_injective(memory)) return base::invalid("a memory layout that holds an element twice");
  LEMMA_TRY(const Layout offsets, relate(memory, distribution));
  Echelon registers;
  for (uint64_t column : columns(offsets, Axis::Register)) registers.insert(column);
  // Only the bits below the first odd digit of the offset are its low bits.
  const int low = bits_of(offsets.shape.back());
  VectorAccess out;
  for (int b = 0; b < low && out.width * 2 <= most; ++b) {
    const std::optional<uint64_t> mask = registers.solve(uint64_t(1) << b);
    if (!mask) break;
    out.registers.push_back(*mask);
    out.width *= 2;
  }
  return out;
}

}  // namespace lemma::layout
