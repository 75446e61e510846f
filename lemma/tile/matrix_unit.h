// Products that matrix units do, by warps, on fragments that layout/fragment.h describes.
#pragma once

#include <optional>

#include "lemma/scalar/type.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

// An instruction of one warp: acc[m, n] += a[m, k] * b[k, n].
struct MatrixUnit {
  int m = 16, n = 8, k = 16;
  scalar::DType operand = scalar::DType::BF16;
  scalar::DType accumulator = scalar::DType::F32;
};
// The unit for these types; nothing if there is none that computes the product as it is written. (tf32 would round.)
std::optional<MatrixUnit> matrix_unit(scalar::DType a, scalar::DType b, scalar::DType accumulator);

// How an operand of a product lies in its buffer: its last two dimensions are the product's, those before them are the
// same for the whole block. Nothing where a coordinate is more than the product's variable and a constant multiple of
// what is fixed.
struct OperandPlace {
  bool transposed = false;                 // the last dimension is the first of the operand (m of a, k of b)
};
std::optional<OperandPlace> operand_place(const Access& access, Var first, Var second);

// The unit that does a statement: its operands are of a unit's types, its extents multiples of the unit's, `b` is shared,
// `a` shared or a fragment, the accumulator a fragment, all as operand_place asks.
std::optional<MatrixUnit> unit_of(const Program& program, const Gemm& gemm);

}  // namespace lemma::tile
