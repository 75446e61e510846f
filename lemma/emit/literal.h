// Constants as C text, bit for bit and whatever the locale: finite floats in hexadecimal, infinities and nans through
// their bits, the least integers without a literal that C reads as something else.
#pragma once

#include <cstdint>
#include <string>

#include "lemma/scalar/expr.h"

namespace lemma::emit {

std::string integer_literal(int64_t value);                          // an int64_t
std::string literal(scalar::Kind kind, int64_t bits);                // bits as in scalar::Op::Const
inline std::string literal(scalar::Expr constant) { return literal(constant.kind(), constant.payload()); }

}  // namespace lemma::emit
