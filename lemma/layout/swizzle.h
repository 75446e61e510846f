// Swizzles derived from how a tile is accessed.
#pragma once

#include <vector>

#include "lemma/layout/banks.h"
#include "lemma/layout/memory.h"

namespace lemma::layout {

struct SwizzleOptions {
  int chunk_bytes = 0;           // kept together; 0: as many as the widest access has, 4 at least
  int64_t most_tries = 1 << 20;  // partial swizzles looked at
};

struct DerivedSwizzle {
  Swizzle swizzle;                     // of offset digits; all zero where none helps
  Layout memory;                       // the layout given, swizzled
  std::vector<Wavefronts> wavefronts;  // of each access, counted in that layout
  int64_t taken = 0;                   // together
  int64_t least = 0;
  bool proven = true;  // no linear swizzle of these chunks takes fewer
};

// The exclusive or of bank bits above the chunk by bits above the 128-byte line under which all accesses together take
// the fewest wavefronts; among equals one that flips few bits.
//
// A phase's offsets are a shifted span of the lanes' steps, so its wavefronts are two to the power of what the map from
// that span to banks loses in rank. The swizzle enters only through its values on the spans' bits above the line; these
// are fixed one basis vector after the other, and a branch is cut when what is fixed already costs as much as the best.
// The result is counted again, access by access.
//
// The first 128 bytes of the memory layout must be bits: store tiles whose rows are no power of two in slabs or pieces.
base::Result<DerivedSwizzle> derive_swizzle(const Layout& memory, const std::vector<Access>& accesses, int element_bits,
                                            const SwizzleOptions& options = {});

}  // namespace lemma::layout
