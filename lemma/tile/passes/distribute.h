// Thread form, first pass: fragments go into registers.
//
//     fragment acc f32[128, 64]     =>   fragment acc f32[128, 64] layout "layout [128, 64] register ... lane ... warp ..."
//
// *Strict* layouts come first: accumulators and register operands of matrix units, warps split as the statement's team
// says, by rows where rows are reduced or a product's left operand is a fragment, else as square as can be. *Common* ones
// follow: every statement over points is carried out by one distribution of its box, so a fragment that shares a
// statement with a placed one takes the projection of its layout. What is still open is *free*: vectors and lanes along
// the last dimension, warps along the first. A fragment that no one layout serves becomes shared, and a note says why.
// All sides are powers of two.
#pragma once

#include <string>
#include <vector>

#include "lemma/tile/program.h"

namespace lemma::tile {

struct ThreadOptions {
  int threads = 128;              // of a block whose kernel does not say
  bool matrix_units = false;      // the target has those of matrix_unit.h
};

Program distribute(Program program, const ThreadOptions& options, std::vector<std::string>& notes);

}  // namespace lemma::tile
