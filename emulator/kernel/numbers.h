// The 16-bit floating-point formats by their bits, rounded to nearest even as the device's cvt.rn does, and the
// rounding of f32 to tf32. Used by emitted text and by the engine's matrix products. Includes nothing.
#pragma once

namespace lemma::emulator {

inline unsigned bits_of(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

inline float float_of(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

inline unsigned short bf16_bits(float value) {
  const unsigned bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float float_of_bf16(unsigned short bits) { return float_of((unsigned)bits << 16); }

inline unsigned short f16_bits(float value) {
  const unsigned sign = (bits_of(value) >> 16) & 0x8000, bits = bits_of(value) & 0x7fffffff;
  if (bits > 0x7f800000) return 0x7fff;
  if (bits >= 0x477ff000) return (unsigned short)(sign | 0x7c00);  // 65520 and beyond
  // Below 2^-14: at 0.5 the distance of floats is 2^-24, the subnormals' own.
  if (bits < 0x38800000) return (unsigned short)(sign | (bits_of(float_of(bits) + 0.5f) - 0x3f000000));
  return (unsigned short)(sign | ((bits + 0xfff + ((bits >> 13) & 1) - 0x38000000) >> 13));
}

inline float float_of_f16(unsigned short bits) {
  const unsigned sign = (unsigned)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = (float)fraction * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

// Ties away from zero, as cvt.rna does.
inline unsigned tf32_bits(float value) {
  const unsigned bits = bits_of(value);
  return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}

}  // namespace lemma::emulator
