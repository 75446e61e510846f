// Metal's words over the neutral names: what stands before Metal text in the emulator, behind kernel/cuda.h.
#pragma once

#define LM_PARAMETER(T, name, index) LM_GLOBAL(T) name
#define LM_SIZES(name, index) LM_GLOBAL(const long) name
#define LM_AND_IDS
#define LM_IDS

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

inline float lm_as_float(uint x) { return lm_bits_float(x); }
inline uint lm_as_uint(float x) { return lm_float_bits(x); }
inline float rint(float x) { return rintf(x); }
inline float floor(float x) { return floorf(x); }
inline float sqrt(float x) { return sqrtf(x); }
inline float sin(float x) { return sinf(x); }
inline float cos(float x) { return cosf(x); }
inline float tan(float x) { return tanf(x); }
inline float abs(float x) { return fabsf(x); }
