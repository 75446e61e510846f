// Roundings that a program carries out between its inputs and its outputs: what a comparison with the oracle must allow.
#pragma once

#include <string>
#include <vector>

#include "lemma/tensor/graph.h"
#include "lemma/tile/program.h"

namespace lemma::driver {

// A buffer inside blocks that holds floats in a narrower type than they were computed in: the weights of attention where
// the target multiplies bf16. Copies of what is as narrow already are none.
struct Kept {
  std::string buffer;
  scalar::DType type = scalar::DType::F32;
};
std::vector<Kept> kept_narrow(const tile::Program& program);

// The largest rounding of those, relative to a value; 0 without any.
double kept_rounding(const tile::Program& program);

// The widest step between neighbours of a narrow float type that the program itself states for a value that is read
// further, relative to a value: where two evaluations lie on both sides of a tie, they differ by one step.
double stated_step(const tensor::Graph& graph);

}  // namespace lemma::driver
