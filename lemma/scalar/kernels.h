// The loops that carry out one operation over columns; eval.cc strings them together.
#pragma once

#include "lemma/scalar/eval.h"

namespace lemma::scalar {

// `operand` is the kind of the operands (of a Select's arms). `single` rounds F32 results to float.
BatchProgram::Kernel kernel(Op op, Kind kind, Kind operand, bool single);

}  // namespace lemma::scalar
