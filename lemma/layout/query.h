// What holds of a layout.
#pragma once

#include <array>
#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

bool is_injective(const Layout& layout);   // no element is held twice
bool is_surjective(const Layout& layout);  // every element of the tile is held

// The digits of each axis that are redundant: broadcasts, and bits that depend on bits before them (registers come
// before lanes, lanes before warps, low before high). Who holds copies has one of them set.
std::array<std::vector<int>, 4> redundant_digits(const Layout& layout);

// How a lane's registers meet memory: `width` elements of one lane lie at neighbouring offsets that start at a multiple
// of `width`, for every lane and every choice of the other registers. Element e of an access is in the register
// base ^ combine(registers, e), where registers[i] is a mask of *bit* digits of the register index; 1, 2, 4, ... when
// the registers are already in order.
struct VectorAccess {
  int width = 1;
  std::vector<uint64_t> registers;
  bool operator==(const VectorAccess&) const = default;
};
// The widest one up to `most` elements, within the bits below the first odd digit of the offset; both layouts are of
// one tile, and memory is injective and surjective.
base::Result<VectorAccess> vector_access(const Layout& distribution, const Layout& memory, int most);

}  // namespace lemma::layout
