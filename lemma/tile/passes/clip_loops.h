// Loops over tiles run only where something happens, and drop masks where nothing is masked.
//
//     for k in 0 .. ceildiv(M, 64) {                  =>   for k in 0 .. full { ... no mask ... }
//       ...                                                for k in full .. min(ceildiv(M, 64), x + 1) {
//       reduce ... accumulate where k*64 + j <= x*64 + i     ... where k*64 + j <= x*64 + i ...
//     }                                                    }
//
// An iteration is skipped if it provably has no effect: all it writes are buffers that the loop fills anew in every
// iteration and nothing else uses, and states and elements under a `where` that holds at no point of its box. It is
// free of masks if the constraints that mention the loop's variable hold at every point of every box; the loop is split
// into ranges accordingly, and those constraints leave the middle one. Bounds are forms over sizes, grid variables and
// lets: exact for every size, 0 and negative ranges included. What is not affine with constant coefficients, and what
// depends on data, stays as it is.
//
// Exact, but for one rule that is finite: `acc += p * b` with p all 0 has no effect.
#pragma once

#include "lemma/tile/program.h"

namespace lemma::tile {

Program clip_loops(Program program);

}  // namespace lemma::tile
