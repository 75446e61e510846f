// A kernel with phases becomes kernels that run one after another over the same grid:
//
//     kernel k grid (i < n) { A; phase; B }   =>   kernel k grid (i < n) { A }   kernel k.2 grid (i < n) { B }
//
// Exact: lets and block-local buffers end at a phase, and a kernel begins when the one before has ended.
#pragma once

#include "lemma/tile/program.h"

namespace lemma::tile {

Program split_phases(Program program);

}  // namespace lemma::tile
