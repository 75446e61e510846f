#include "lemma/emit/literal.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace lemma::emit {
namespace {

std::string hex_digits(uint64_t value) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, value, 16).ptr;
  return std::string(text, end);
}

// 0x1.8p+3: to_chars writes no prefix, and the sign comes first.
template <class F>
std::string hex_float(F value, const char* suffix) {
  char text[64];
  const F magnitude = std::fabs(value);
  const auto end = std::to_chars(text, text + sizeof text, magnitude, std::chars_format::hex).ptr;
  const std::string body = "0x" + std::string(text, end) + suffix;
  return std::signbit(value) ? "(-" + body + ")" : body;
}

// Short decimals read better and are exact for small integers and halves.
template <class F>
std::string float_text(F value, const char* suffix) {
  if (std::fabs(value) < 65536 && value == std::trunc(value) && !(value == 0 && std::signbit(value))) {
    const std::string body = std::to_string(int64_t(std::fabs(value))) + ".0" + suffix;
    return value < 0 ? "(-" + body + ")" : body;
  }
  return hex_float(value, suffix);
}

}  // namespace

std::string integer_literal(int64_t value) {
  if (value == INT64_MIN) return "INT64_MIN";
  if (value < 0) return "(-INT64_C(" + std::to_string(-value) + "))";
  if (value <= INT32_MAX) return std::to_string(value);
  return "INT64_C(" + std::to_string(value) + ")";
}

std::string literal(scalar::Kind kind, int64_t bits) {
  switch (kind) {
    case scalar::Kind::F32: {
      const float value = std::bit_cast<float>(uint32_t(bits));
      if (std::isfinite(value)) return float_text(value, "f");
      return "lm_float_bits(0x" + hex_digits(uint32_t(bits)) + "u)";
    }
    case scalar::Kind::F64: {
      const double value = std::bit_cast<double>(bits);
      if (std::isfinite(value)) return float_text(value, "");
      return "lm_double_bits(UINT64_C(0x" + hex_digits(uint64_t(bits)) + "))";
    }
    case scalar::Kind::I64: return bits == INT64_MIN ? "INT64_MIN" : "INT64_C(" + std::to_string(bits) + ")";
    case scalar::Kind::U64: return "UINT64_C(0x" + hex_digits(uint64_t(bits)) + ")";
    case scalar::Kind::I32: {
      if (int32_t(bits) == INT32_MIN) return "INT32_MIN";
      return bits < 0 ? "(" + std::to_string(int32_t(bits)) + ")" : std::to_string(int32_t(bits));
    }
    case scalar::Kind::U32: return std::to_string(uint32_t(bits)) + "u";
    case scalar::Kind::Bool: return bits ? "1" : "0";
  }
  return "0";
}

}  // namespace lemma::emit
