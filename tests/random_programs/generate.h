// Random programs in the language, from a seed: maps with odd reads (shifted, reversed, guarded, gathered), reductions and
// scans over conditions, prelude functions, values that exist on a part of their points.
//
// Values stay near 1 in size, and only inputs are compared with one another, so that rounding can move no result far: the
// compiled program must agree with the oracle to a few roundings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::random_programs {

struct Equation {
  std::string name;                  // what it defines
  std::string text;
  std::vector<size_t> reads;         // earlier equations
};

struct Program {
  std::string declarations;          // sizes and inputs
  std::vector<Equation> equations;
  std::vector<size_t> outputs;       // equations
  std::vector<tensor::Binding> sizes;
};

Program generate(uint64_t seed);

// The program's text with these outputs, without the equations that none of them needs.
std::string print(const Program& program, const std::vector<size_t>& outputs);
inline std::string print(const Program& program) { return print(program, program.outputs); }

}  // namespace lemma::random_programs
