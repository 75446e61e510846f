#include "lemma/scalar/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lemma/base/check.h"

namespace lemma::scalar {
namespace {

// A binary float format narrower than f32. `top` is the code of the first magnitude that is not finite.
struct Format {
  int mantissa;      // stored bits
  int lowest;        // exponent of the least normal number
  uint32_t top;      // codes from here on are inf (exactly top) or nan
  bool infinite;     // has inf
  uint32_t nan;      // the nan to write
};

Format format(DType type) {
  switch (type) {
    case DType::F16: return {10, -14, 0x7c00, true, 0x7e00};
    case DType::BF16: return {7, -126, 0x7f80, true, 0x7fc0};
    case DType::F8E4M3: return {3, -6, 0x7f, false, 0x7f};
    case DType::F8E5M2: return {2, -14, 0x7c, true, 0x7e};
    default: break;
  }
  base::bug("not a narrow float", __FILE__, __LINE__);
}

uint32_t encode(DType type, double value) {
  const Format f = format(type);
  const uint64_t raw = std::bit_cast<uint64_t>(value);
  const uint32_t sign = uint32_t(raw >> 63) << (bits(type) - 1);
  if (std::isnan(value)) return sign | f.nan;
  if (std::isinf(value)) return sign | (f.infinite ? f.top : f.nan);
  const int biased = int(raw >> 52 & 0x7ff);
  if (biased == 0) return sign;  // zero, or a subnormal double: far below every format's least value
  const uint64_t significand = (raw & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  const int exponent = biased - 1023;
  const int step = exponent < f.lowest ? f.lowest : exponent;  // exponent of the result's quantum, plus mantissa bits
  const int shift = 52 - f.mantissa + (step - exponent);
  if (shift > 54) return sign;  // below half of the least subnormal
  uint64_t kept = significand >> shift;
  const uint64_t half = uint64_t(1) << (shift - 1), rest = significand & (2 * half - 1);
  kept += rest > half || (rest == half && (kept & 1));
  // A normal `kept` carries its hidden bit, which adds one to the exponent field; so does a carry out of rounding.
  const uint64_t code = (uint64_t(step - f.lowest) << f.mantissa) + kept;
  if (code >= f.top) return sign | (f.infinite ? f.top : f.nan);
  return sign | uint32_t(code);
}

double power_of_two(int exponent) { return std::bit_cast<double>(uint64_t(exponent + 1023) << 52); }

double decode(DType type, uint32_t code) {
  const Format f = format(type);
  const bool negative = code >> (bits(type) - 1) & 1;
  const uint32_t magnitude = code & ((uint32_t(1) << (bits(type) - 1)) - 1);
  double value;
  if (f.infinite ? magnitude > f.top : magnitude >= f.top) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (f.infinite && magnitude == f.top) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const uint32_t fraction = magnitude & ((uint32_t(1) << f.mantissa) - 1);
    const int field = int(magnitude >> f.mantissa);
    value = field == 0 ? fraction * power_of_two(f.lowest - f.mantissa)
                       : double(fraction | uint32_t(1) << f.mantissa) * power_of_two(f.lowest + field - 1 - f.mantissa);
  }
  return negative ? -value : value;
}

template <class T>
T read(const void* buffer, int64_t element) {
  T value;
  std::memcpy(&value, static_cast<const char*>(buffer) + element * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(void* buffer, int64_t element, T value) {
  std::memcpy(static_cast<char*>(buffer) + element * int64_t(sizeof(T)), &value, sizeof(T));
}

}  // namespace

double rounded(DType type, double value) {
  if (type == DType::F64) return value;
  if (type == DType::F32) return double(float(value));
  return decode(type, encode(type, value));
}

int64_t wrapped(Kind kind, int64_t value) {
  switch (kind) {
    case Kind::I32: return int32_t(value);
    case Kind::U32: return int64_t(uint32_t(value));
    case Kind::Bool: return value != 0;
    default: return value;
  }
}

int64_t wrapped(DType type, int64_t value) {
  if (type == DType::Bool) return value != 0;
  const int unused = 64 - bits(type);
  const uint64_t top = uint64_t(value) << unused;
  return is_signed(kind_of(type)) ? int64_t(top) >> unused : int64_t(top >> unused);
}

int64_t truncated(Kind kind, double value) {
  if (kind == Kind::Bool) return value != 0;
  if (std::isnan(value)) return 0;
  const auto clamp = [&](double least, double beyond, int64_t first, int64_t last) {
    return value < least ? first : value >= beyond ? last : int64_t(value);
  };
  switch (kind) {
    case Kind::I32: return clamp(-0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
    case Kind::U32: return clamp(0, 0x1p32, 0, UINT32_MAX);
    case Kind::I64: return clamp(-0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
    case Kind::U64: return value <= 0 ? 0 : value >= 0x1p64 ? -1 : int64_t(uint64_t(value));
    default: break;
  }
  base::bug("cast to an integer of a float kind", __FILE__, __LINE__);
}

uint64_t to_bits(DType type, Scalar value) {
  switch (type) {
    case DType::F64: return std::bit_cast<uint64_t>(value.f);
    case DType::F32: return std::bit_cast<uint32_t>(float(value.f));
    case DType::F16: case DType::BF16: case DType::F8E4M3: case DType::F8E5M2: return encode(type, value.f);
    case DType::Bool: return value.i != 0;
    default: break;
  }
  return uint64_t(value.i) & (~uint64_t(0) >> (64 - bits(type)));
}

Scalar from_bits(DType type, uint64_t bits) {
  switch (type) {
    case DType::F64: return from_float(std::bit_cast<double>(bits));
    case DType::F32: return from_float(std::bit_cast<float>(uint32_t(bits)));
    case DType::F16: case DType::BF16: case DType::F8E4M3: case DType::F8E5M2:
      return from_float(decode(type, uint32_t(bits)));
    default: return from_int(wrapped(type, int64_t(bits)));
  }
}

Scalar load(DType type, const void* buffer, int64_t element) {
  switch (bits(type)) {
    case 64: return from_bits(type, read<uint64_t>(buffer, element));
    case 32: return from_bits(type, read<uint32_t>(buffer, element));
    case 16: return from_bits(type, read<uint16_t>(buffer, element));
    case 8: return from_bits(type, read<uint8_t>(buffer, element));
    default: return from_bits(type, (read<uint8_t>(buffer, element >> 1) >> (element & 1 ? 4 : 0)) & 15);
  }
}

void store(DType type, void* buffer, int64_t element, Scalar value) {
  const uint64_t code = to_bits(type, value);
  switch (bits(type)) {
    case 64: return write(buffer, element, code);
    case 32: return write(buffer, element, uint32_t(code));
    case 16: return write(buffer, element, uint16_t(code));
    case 8: return write(buffer, element, uint8_t(code));
    default: break;
  }
  const int shift = element & 1 ? 4 : 0;
  const uint8_t other = read<uint8_t>(buffer, element >> 1) & uint8_t(~(15 << shift));
  write(buffer, element >> 1, uint8_t(other | code << shift));
}

}  // namespace lemma::scalar
