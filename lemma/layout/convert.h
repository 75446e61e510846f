// From one distribution of a tile to another: nothing to do, other registers, shuffles within warps, or shared memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/layout/swizzle.h"

namespace lemma::layout {

enum class ConversionKind : uint8_t {
  Same,       // every register holds its element already
  Registers,  // every element is in its lane already
  Shuffles,   // every element is in its warp already
  Shared,
};

// A number that depends on who asks: base ^ the sum of by_lane[i] for the set bits i of a lane ^ by_warp likewise.
// Warps count by their bit digits (bits.h: bit_digits).
struct Chosen {
  uint64_t base = 0;
  std::vector<uint64_t> by_lane;
  std::vector<uint64_t> by_warp;
  uint64_t at(uint64_t lane, uint64_t warp) const;
  bool operator==(const Chosen&) const = default;
};

// One instruction of a warp: each lane sends one register and receives into one. Registers are masks of the *bit*
// digits of the register index: `send` of the source, asked of the sender; `receive` of the target, asked of the
// receiver.
struct Exchange {
  Chosen lane;  // whom a lane receives from
  Chosen send;
  Chosen receive;
  bool operator==(const Exchange&) const = default;
};
// The mask of an exchange between lanes l and l ^ mask.
std::optional<uint64_t> xor_mask(const Exchange& exchange);

struct Conversion {
  ConversionKind kind = ConversionKind::Same;
  // Registers and Shuffles. One exchange moves `packed` neighbouring registers (a machine register of narrow elements);
  // all are repeated for every value of the odd register digits, of which target digit i is source digit odd[i].
  int packed = 1;
  std::vector<Exchange> moves;     // within lanes
  std::vector<Exchange> shuffles;  // as few as can be: see plan_shuffles in shuffle.h
  std::vector<int> odd;
  // Shared: write `write_width` elements at a time, wait, read `read_width`.
  Layout memory;
  int write_width = 1;
  int read_width = 1;
  int64_t wavefronts = 0;  // of both, all warps
  int64_t least = 0;
};

struct ConvertOptions {
  int element_bits = 32;
};

// Both are surjective distributions of one tile over the same lanes and warps, and the target's registers are not
// redundant (algebra.h: drop_register_broadcasts).
base::Result<Conversion> convert(const Layout& source, const Layout& target, const ConvertOptions& options = {});

// What a conversion does, a line for each exchange:
//     shuffles: 2 registers at a time
//       register 4 ^ lane(8,0,0,0,0) <- register 0 ^ lane(4,0,0,0,0) of lane ^ 1
// Here a lane with bit 0 set receives into register 4 ^ 8; the register sent is told of the sender's lane.
std::string print(const Conversion& conversion);

// The register index whose bit digits are `bits` and whose odd digits are `odds`, lowest first.
int64_t register_index(const Layout& layout, uint64_t bits, const std::vector<int32_t>& odds);

}  // namespace lemma::layout
