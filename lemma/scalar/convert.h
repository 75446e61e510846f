// Exact conversion between values and the bits they are stored as, for every DType, and access to elements of raw
// buffers.
//
// A value is a Scalar: the member `f` for the float kinds, `i` for integers and Bool (U64 as the same 64 bits, U32
// zero-extended, I32 sign-extended, Bool 0 or 1). Rounding is to nearest, ties to even, subnormals included; overflow
// gives inf where the type has it. f8e4m3 has none: beyond 464 (half way past its largest value, 448) and for inf it
// gives its nan, 0x7f. Storing an integer keeps the type's low bits; storing a Bool stores 0 or 1.
#pragma once

#include <cstdint>

#include "lemma/scalar/type.h"

namespace lemma::scalar {

union Scalar {
  double f;
  int64_t i;
};

inline Scalar from_float(double value) { return Scalar{.f = value}; }
inline Scalar from_int(int64_t value) { return Scalar{.i = value}; }

// The nearest value of a float type, as a double.
double rounded(DType type, double value);
// An integer cut to its kind's width (Bool: x != 0), in the representation above.
int64_t wrapped(Kind kind, int64_t value);
// An integer cut to the low bits of a storage type and extended to its kind.
int64_t wrapped(DType type, int64_t value);
// A float cast to an integer kind: toward zero, saturating, nan gives 0; to Bool: x != 0.
int64_t truncated(Kind kind, double value);

// The stored bits of a value of kind_of(type), in the low bits(type) bits; and back.
uint64_t to_bits(DType type, Scalar value);
Scalar from_bits(DType type, uint64_t bits);

// Element `element` of a contiguous buffer; i4 and u4 lie two to a byte, low nibble first. `buffer` needs no alignment.
Scalar load(DType type, const void* buffer, int64_t element);
void store(DType type, void* buffer, int64_t element, Scalar value);

}  // namespace lemma::scalar
