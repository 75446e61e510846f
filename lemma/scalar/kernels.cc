#include "lemma/scalar/kernels.h"

#include <bit>
#include <cmath>
#include <limits>

#include "lemma/base/check.h"

namespace lemma::scalar {
namespace {

using Kernel = BatchProgram::Kernel;

// ---- Floats ----

// What a kernel does to a float result: nothing, or rounding to float.
template <bool Single>
double fit(double x) {
  if constexpr (Single) return double(float(x));
  return x;
}

template <bool Single, class F>
Kernel float_unary(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].f = fit<Single>(F{}(a[i].f));
  };
}

template <bool Single, class F>
Kernel float_binary(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar* b, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].f = fit<Single>(F{}(a[i].f, b[i].f));
  };
}

template <class F>
Kernel float_compare(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar* b, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].i = F{}(a[i].f, b[i].f);
  };
}

// nan wins; of the zeros -0 is the lesser, so that both commute bit for bit.
double least(double a, double b) {
  const double zero = std::bit_cast<double>(std::bit_cast<int64_t>(a) | std::bit_cast<int64_t>(b));
  const double strict = a < b ? a : b;
  const double some = a == b ? zero : strict;
  return a != a ? a : some;
}
double greatest(double a, double b) {
  const double zero = std::bit_cast<double>(std::bit_cast<int64_t>(a) & std::bit_cast<int64_t>(b));
  const double strict = a > b ? a : b;
  const double some = a == b ? zero : strict;
  return a != a ? a : some;
}

// The remainder with the divisor's sign, exact where fmod is.
double floor_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <bool Single>
Kernel float_kernel(Op op) {
  switch (op) {
    case Op::Neg: return float_unary<Single>([](double x) { return -x; });
    case Op::Abs: return float_unary<Single>([](double x) { return std::fabs(x); });
    case Op::Recip: return float_unary<Single>([](double x) { return 1 / x; });
    case Op::Sqrt: return float_unary<Single>([](double x) { return std::sqrt(x); });
    case Op::Rsqrt: return float_unary<Single>([](double x) { return 1 / std::sqrt(x); });
    case Op::Exp: return float_unary<Single>([](double x) { return std::exp(x); });
    case Op::Exp2: return float_unary<Single>([](double x) { return std::exp2(x); });
    case Op::Log: return float_unary<Single>([](double x) { return std::log(x); });
    case Op::Log2: return float_unary<Single>([](double x) { return std::log2(x); });
    case Op::Sin: return float_unary<Single>([](double x) { return std::sin(x); });
    case Op::Cos: return float_unary<Single>([](double x) { return std::cos(x); });
    case Op::Tan: return float_unary<Single>([](double x) { return std::tan(x); });
    case Op::Tanh: return float_unary<Single>([](double x) { return std::tanh(x); });
    case Op::Erf: return float_unary<Single>([](double x) { return std::erf(x); });
    case Op::Sigmoid: return float_unary<Single>([](double x) { return 1 / (1 + std::exp(-x)); });
    case Op::Floor: return float_unary<Single>([](double x) { return std::floor(x); });
    case Op::Round: return float_unary<Single>([](double x) { return std::nearbyint(x); });
    case Op::Add: return float_binary<Single>([](double a, double b) { return a + b; });
    case Op::Sub: return float_binary<Single>([](double a, double b) { return a - b; });
    case Op::Mul: return float_binary<Single>([](double a, double b) { return a * b; });
    case Op::Div: return float_binary<Single>([](double a, double b) { return a / b; });
    case Op::FloorDiv: return float_binary<Single>([](double a, double b) { return std::floor(a / b); });
    case Op::Mod: return float_binary<Single>([](double a, double b) { return floor_remainder(a, b); });
    case Op::Pow: return float_binary<Single>([](double a, double b) { return std::pow(a, b); });
    case Op::Atan2: return float_binary<Single>([](double a, double b) { return std::atan2(a, b); });
    case Op::Min: return float_binary<Single>([](double a, double b) { return least(a, b); });
    case Op::Max: return float_binary<Single>([](double a, double b) { return greatest(a, b); });
    case Op::RoundTo:
      return [](Scalar* out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t type) {
        for (int i = 0; i < n; ++i) out[i].f = fit<Single>(rounded(DType(type), a[i].f));
      };
    default: return nullptr;
  }
}

Kernel float_comparison(Op op) {
  switch (op) {
    case Op::Eq: return float_compare([](double a, double b) { return a == b; });
    case Op::Ne: return float_compare([](double a, double b) { return a != b; });
    case Op::Lt: return float_compare([](double a, double b) { return a < b; });
    case Op::Le: return float_compare([](double a, double b) { return a <= b; });
    default: return nullptr;
  }
}

// ---- Integers: computed in 64 bits without sign, then cut to the kind ----

template <Kind K>
int64_t cut(uint64_t x) {
  if constexpr (K == Kind::I32) return int32_t(uint32_t(x));
  if constexpr (K == Kind::U32) return int64_t(uint32_t(x));
  if constexpr (K == Kind::Bool) return x != 0;
  return int64_t(x);
}

// The type that orders, divides and shifts a kind's values.
template <Kind K>
struct Ordered {
  using type = int64_t;
};
template <>
struct Ordered<Kind::U64> {
  using type = uint64_t;
};

template <Kind K, class F>
Kernel int_unary(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].i = cut<K>(F{}(uint64_t(a[i].i)));
  };
}

template <Kind K, class F>
Kernel int_binary(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar* b, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].i = cut<K>(F{}(uint64_t(a[i].i), uint64_t(b[i].i)));
  };
}

template <class T>
uint64_t floor_quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0 - uint64_t(a);
    return uint64_t(a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
  }
  return uint64_t(a / b);
}

template <class T>
uint64_t floor_modulus(T a, T b) {
  if (b == 0) return 0;
  return uint64_t(a) - uint64_t(b) * floor_quotient<T>(a, b);
}

// Negative exponents: 1 over the power, toward zero, and 0 for 0.
template <class T>
uint64_t power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? ~uint64_t(0) : 1) : 0;
  }
  uint64_t result = 1, square = uint64_t(base);
  for (uint64_t left = uint64_t(exponent); left != 0; left >>= 1, square *= square) {
    if (left & 1) result *= square;
  }
  return result;
}

template <Kind K>
Kernel int_arithmetic(Op op) {
  using T = typename Ordered<K>::type;
  switch (op) {
    case Op::Neg: return int_unary<K>([](uint64_t x) { return 0 - x; });
    case Op::Abs:
      return int_unary<K>([](uint64_t x) { return is_signed(K) && int64_t(x) < 0 ? 0 - x : x; });
    case Op::Floor: case Op::Round: return int_unary<K>([](uint64_t x) { return x; });
    case Op::Not: return int_unary<K>([](uint64_t x) { return K == Kind::Bool ? uint64_t(x == 0) : ~x; });
    case Op::Add: return int_binary<K>([](uint64_t a, uint64_t b) { return a + b; });
    case Op::Sub: return int_binary<K>([](uint64_t a, uint64_t b) { return a - b; });
    case Op::Mul: return int_binary<K>([](uint64_t a, uint64_t b) { return a * b; });
    case Op::FloorDiv: return int_binary<K>([](uint64_t a, uint64_t b) { return floor_quotient<T>(T(a), T(b)); });
    case Op::Mod: return int_binary<K>([](uint64_t a, uint64_t b) { return floor_modulus<T>(T(a), T(b)); });
    case Op::Pow: return int_binary<K>([](uint64_t a, uint64_t b) { return power<T>(T(a), T(b)); });
    case Op::Min: return int_binary<K>([](uint64_t a, uint64_t b) { return T(a) < T(b) ? a : b; });
    case Op::Max: return int_binary<K>([](uint64_t a, uint64_t b) { return T(a) > T(b) ? a : b; });
    case Op::And: return int_binary<K>([](uint64_t a, uint64_t b) { return a & b; });
    case Op::Or: return int_binary<K>([](uint64_t a, uint64_t b) { return a | b; });
    case Op::Xor: return int_binary<K>([](uint64_t a, uint64_t b) { return a ^ b; });
    case Op::Shl:
      return int_binary<K>([](uint64_t a, uint64_t b) { return a << (b & (K == Kind::Bool ? 0 : is_wide(K) ? 63 : 31)); });
    case Op::Shr:
      return int_binary<K>([](uint64_t a, uint64_t b) {
        return uint64_t(T(a) >> (b & (K == Kind::Bool ? 0 : is_wide(K) ? 63 : 31)));
      });
    case Op::RoundTo:
      return [](Scalar* out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t type) {
        for (int i = 0; i < n; ++i) out[i].i = cut<K>(uint64_t(wrapped(DType(type), a[i].i)));
      };
    default: return nullptr;
  }
}

template <class T, class F>
Kernel int_compare(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar* b, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i].i = F{}(T(a[i].i), T(b[i].i));
  };
}

template <class T>
Kernel int_comparison(Op op) {
  switch (op) {
    case Op::Eq: return int_compare<T>([](T a, T b) { return a == b; });
    case Op::Ne: return int_compare<T>([](T a, T b) { return a != b; });
    case Op::Lt: return int_compare<T>([](T a, T b) { return a < b; });
    case Op::Le: return int_compare<T>([](T a, T b) { return a <= b; });
    default: return nullptr;
  }
}

// ---- Conversions ----

template <class F>
Kernel convert(F) {
  return [](Scalar* __restrict out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t) {
    for (int i = 0; i < n; ++i) out[i] = F{}(a[i]);
  };
}

template <Kind K>
Kernel cast_to_int(Kind from) {
  if (is_float(from)) return convert([](Scalar x) { return from_int(truncated(K, x.f)); });
  return convert([](Scalar x) { return from_int(cut<K>(uint64_t(x.i))); });
}

// An integer goes to float in one rounding.
Kernel cast_to_float(Kind from, bool narrow) {
  if (is_float(from)) {
    return narrow ? convert([](Scalar x) { return from_float(float(x.f)); }) : convert([](Scalar x) { return x; });
  }
  if (from == Kind::U64) {
    return narrow ? convert([](Scalar x) { return from_float(float(uint64_t(x.i))); })
                  : convert([](Scalar x) { return from_float(double(uint64_t(x.i))); });
  }
  return narrow ? convert([](Scalar x) { return from_float(float(x.i)); })
                : convert([](Scalar x) { return from_float(double(x.i)); });
}

Kernel cast_kernel(Kind kind, Kind from, bool single) {
  switch (kind) {
    case Kind::F64: return cast_to_float(from, false);
    case Kind::F32: return cast_to_float(from, single);
    case Kind::I64: return cast_to_int<Kind::I64>(from);
    case Kind::I32: return cast_to_int<Kind::I32>(from);
    case Kind::U64: return cast_to_int<Kind::U64>(from);
    case Kind::U32: return cast_to_int<Kind::U32>(from);
    case Kind::Bool: return cast_to_int<Kind::Bool>(from);
  }
  return nullptr;
}

Kernel bits_kernel(Kind kind, Kind from) {
  LEMMA_CHECK(bits(dtype_of(kind)) == bits(dtype_of(from)), "bits of a value of another width");
  if (kind == from) return convert([](Scalar x) { return x; });
  switch (kind) {
    case Kind::F64: return convert([](Scalar x) { return from_float(std::bit_cast<double>(x.i)); });
    case Kind::F32: return convert([](Scalar x) { return from_float(std::bit_cast<float>(uint32_t(x.i))); });
    case Kind::I64: case Kind::U64:
      return is_float(from) ? convert([](Scalar x) { return from_int(std::bit_cast<int64_t>(x.f)); })
                            : convert([](Scalar x) { return x; });
    case Kind::I32:
      return is_float(from) ? convert([](Scalar x) { return from_int(std::bit_cast<int32_t>(float(x.f))); })
                            : convert([](Scalar x) { return from_int(int32_t(x.i)); });
    case Kind::U32:
      return is_float(from) ? convert([](Scalar x) { return from_int(std::bit_cast<uint32_t>(float(x.f))); })
                            : convert([](Scalar x) { return from_int(int64_t(uint32_t(x.i))); });
    case Kind::Bool: break;
  }
  return nullptr;
}

void choose(Scalar* __restrict out, const Scalar* a, const Scalar* b, const Scalar* c, int n, int64_t) {
  for (int i = 0; i < n; ++i) out[i].i = a[i].i ? b[i].i : c[i].i;
}

Kernel same_kernel(Op op, Kind kind, bool single) {
  switch (kind) {
    case Kind::F64: return float_kernel<false>(op);
    case Kind::F32: return single ? float_kernel<true>(op) : float_kernel<false>(op);
    case Kind::I64: return int_arithmetic<Kind::I64>(op);
    case Kind::I32: return int_arithmetic<Kind::I32>(op);
    case Kind::U64: return int_arithmetic<Kind::U64>(op);
    case Kind::U32: return int_arithmetic<Kind::U32>(op);
    case Kind::Bool: return int_arithmetic<Kind::Bool>(op);
  }
  return nullptr;
}

}  // namespace

BatchProgram::Kernel kernel(Op op, Kind kind, Kind operand, bool single) {
  Kernel found = nullptr;
  switch (shape(op)) {
    case OpShape::Leaf: break;
    case OpShape::Same: found = same_kernel(op, kind, single); break;
    case OpShape::Compare:
      found = is_float(operand)      ? float_comparison(op)
              : operand == Kind::U64 ? int_comparison<uint64_t>(op)
                                     : int_comparison<int64_t>(op);
      break;
    case OpShape::Choose: found = choose; break;
    case OpShape::Convert: found = op == Op::Cast ? cast_kernel(kind, operand, single) : bits_kernel(kind, operand); break;
  }
  LEMMA_CHECK(found, "an operation that its kind does not have");
  return found;
}

}  // namespace lemma::scalar
