// Bank conflicts of shared memory: 32 banks of 4 bytes.
//
// The model: the lanes of an access of up to 4 bytes go together, those of 8 bytes in two phases of 16 lanes, those of
// 16 bytes in four phases of 8, always neighbouring lanes. In a phase each bank delivers one 4-byte word a wavefront, to
// as many lanes as want it; so a phase takes as many wavefronts as the busiest bank has distinct words, one at least.
#pragma once

#include <cstdint>

#include "lemma/layout/layout.h"

namespace lemma::layout {

inline constexpr int banks = 32;
inline constexpr int bank_bits = 32;  // of a word
inline constexpr int line_bits = banks * bank_bits;
inline constexpr int max_access_bits = 128;  // of one lane

// Every lane of a distribution reads or writes all its registers, `width` neighbouring elements at a time.
struct Access {
  Layout distribution;
  int width = 1;
};

struct Wavefronts {
  int64_t accesses = 0;  // instructions of a warp, all warps together
  int64_t taken = 0;     // wavefronts of all of them
  int64_t least = 0;     // what they would take without conflicts: one for each phase
  int64_t worst = 0;     // of one access
  bool operator==(const Wavefronts&) const = default;
};

// Counted access by access, lane by lane.
base::Result<Wavefronts> count_wavefronts(const Layout& memory, const Access& access, int element_bits);

}  // namespace lemma::layout
