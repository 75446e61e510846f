// Random expressions and values for tests.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lemma/scalar/convert.h"
#include "lemma/scalar/expr.h"

namespace lemma::scalar::test {

using Random = std::mt19937_64;

inline int below(Random& random, int n) { return int(random() % uint64_t(n)); }

// A value of the kind: special ones often.
inline Scalar random_value(Kind kind, Random& random) {
  if (is_float(kind)) {
    static const double kSpecial[] = {0.0, -0.0, 1, -1, 0.5, 2, std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN(), 0x1p-140, -0x1p-149, 0x1p127, 3};
    if (below(random, 3) == 0) return from_float(kSpecial[below(random, int(std::size(kSpecial)))]);
    return from_float(float(std::ldexp(double(int64_t(random()) >> 11), below(random, 20) - 62)));
  }
  static const int64_t kSpecial[] = {0, 1, -1, 2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 31, 64, 7, -3};
  if (below(random, 2) == 0) return from_int(wrapped(kind, kSpecial[below(random, int(std::size(kSpecial)))]));
  return from_int(wrapped(kind, below(random, 2) ? int64_t(random()) : below(random, 21) - 10));
}

inline Kind random_kind(Random& random) { return Kind(below(random, 7)); }

inline bool has(Op op, Kind kind) {
  switch (op) {
    case Op::Recip: case Op::Sqrt: case Op::Rsqrt: case Op::Exp: case Op::Exp2: case Op::Log: case Op::Log2:
    case Op::Sin: case Op::Cos: case Op::Tan: case Op::Tanh: case Op::Erf: case Op::Sigmoid: case Op::Div:
    case Op::Atan2: return is_float(kind);
    case Op::Not: case Op::And: case Op::Or: case Op::Xor: case Op::Shl: case Op::Shr: return !is_float(kind);
    default: return true;
  }
}

// `bits`: with the operation that shows a nan's payload. A pool of nodes over a few leaves of each kind: Arg(k) has kind k % 7; present 0, index 0 and size 0 exist.
inline std::vector<Expr> random_pool(Arena& arena, Random& random, int operations, bool bits = true) {
  std::vector<Expr> pool;
  for (int k = 0; k < 14; ++k) pool.push_back(arg(arena, Kind(k % 7), k));
  for (int k = 0; k < 14; ++k) {
    const Kind kind = Kind(k % 7);
    const Scalar v = random_value(kind, random);
    pool.push_back(is_float(kind) ? constant(arena, kind, v.f) : constant_int(arena, kind, v.i));
  }
  pool.push_back(present(arena, 0));
  pool.push_back(index(arena, 0));
  pool.push_back(size(arena, 0));
  const int last = int(Op::Bits) - (bits ? 0 : 1);
  const auto pick = [&](Kind kind) {
    for (;;) {
      const Expr e = pool[size_t(below(random, int(pool.size())))];
      if (e.kind() == kind) return e;
    }
  };
  for (int made = 0; made < operations;) {
    const Op op = Op(below(random, last + 1));
    const Kind kind = random_kind(random), from = random_kind(random);
    if (shape(op) == OpShape::Leaf) continue;
    if (op == Op::Cast) {
      if (kind != from) pool.push_back(cast(pick(from), kind));
    } else if (op == Op::Bits) {
      if (kind == Kind::Bool || from == Kind::Bool || is_wide(kind) != is_wide(from)) continue;
      const Expr e = pick(from);
      pool.push_back(arena.make(Op::Bits, kind, {&e, 1}));
    } else if (op == Op::RoundTo) {
      static const DType kFloats[] = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};
      static const DType kInts[] = {DType::I8, DType::U8, DType::I16, DType::I4, DType::U4};
      pool.push_back(round_to(pick(kind), is_float(kind) ? kFloats[below(random, 5)] : kInts[below(random, 5)]));
    } else if (!has(op, kind)) {
      continue;
    } else if (shape(op) == OpShape::Choose) {
      pool.push_back(select(pick(Kind::Bool), pick(kind), pick(kind)));
    } else if (arity(op) == 1) {
      pool.push_back(unary(op, pick(kind)));
    } else {
      pool.push_back(binary(op, pick(kind), pick(kind)));
    }
    ++made;
  }
  return pool;
}

// Bit for bit, nan payloads apart.
inline bool same_value(Kind kind, Scalar a, Scalar b) {
  if (!is_float(kind)) return a.i == b.i;
  return a.i == b.i || (std::isnan(a.f) && std::isnan(b.f));
}

}  // namespace lemma::scalar::test
