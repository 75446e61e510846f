// Thread form: the operands of matrix units are laid out in shared memory so that loading fragments and storing what is
// copied from global memory meet no bank twice, as far as a linear swizzle can.
//
//     shared as bf16[128, 64]    =>    shared as bf16[128, 64] layout "layout [128, 64] offset ..."
//
// The swizzle is derived from both accesses (layout/swizzle.h). `layout swizzle 128` and a layout that is written are kept.
#pragma once

#include <string>
#include <vector>

#include "lemma/layout/banks.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

Program arrange_shared(Program program);

// How warps reach a shared tile that is an operand of matrix units: what its bank conflicts are counted of.
struct SharedAccess {
  std::string what;           // "loads of fragments"
  layout::Access access;
};
std::vector<SharedAccess> shared_accesses(const Program& program, int buffer);

}  // namespace lemma::tile
