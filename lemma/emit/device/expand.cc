#include "lemma/emit/device/expand.h"

#include <cmath>

#include "lemma/base/check.h"

namespace lemma::emit::device {

using scalar::Arena;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;

namespace {

// Short spellings for building f32, i32 and u32 expressions.
struct Math {
  Arena& arena;
  Expr f(double v) const { return scalar::f32(arena, v); }
  Expr i(int64_t v) const { return scalar::constant_int(arena, Kind::I32, v); }
  Expr u(uint32_t v) const { return scalar::constant_int(arena, Kind::U32, int64_t(v)); }
  static Expr bits(Expr e, Kind k) { return e.arena().make(Op::Bits, k, std::span<const Expr>(&e, 1)); }
  static Expr op(Op o, Expr a, Expr b) { return scalar::binary(o, a, b); }
  static Expr less(Expr a, Expr b) { return scalar::binary(Op::Lt, a, b); }
  static Expr equal(Expr a, Expr b) { return scalar::binary(Op::Eq, a, b); }
  static Expr shl(Expr a, Expr b) { return scalar::binary(Op::Shl, a, b); }
  static Expr shr(Expr a, Expr b) { return scalar::binary(Op::Shr, a, b); }
  Expr magnitude(Expr x) const { return op(Op::And, bits(x, Kind::U32), u(0x7fffffff)); }
  Expr abs(Expr x) const { return bits(magnitude(x), Kind::F32); }
  Expr is_nan(Expr x) const { return less(u(0x7f800000), magnitude(x)); }
  Expr with_sign(Expr x, Expr sign) const {
    return bits(op(Op::Or, magnitude(x), op(Op::And, bits(sign, Kind::U32), u(0x80000000u))), Kind::F32);
  }
  Expr special(uint32_t pattern) const { return scalar::constant_bits(arena, Kind::F32, int64_t(pattern)); }
  // c[0] + x*(c[1] + x*(...))
  Expr polynomial(Expr x, std::initializer_list<double> highest_first) const {
    Expr out;
    for (double c : highest_first) out = out.valid() ? out * x + f(c) : f(c);
    return out;
  }

  // exp(r) * 2^n, |r| <= ln2 / 2; two steps of scaling make denormal results right.
  Expr scaled_exp(Expr r, Expr n) const {
    const Expr p = polynomial(r, {0.0013814613, 0.00836870984, 0.0416683874, 0.166665207, 0.499999935, 1, 1});
    const Expr half = shr(n, i(1));
    const auto power = [&](Expr k) { return bits(shl(k + i(127), i(23)), Kind::F32); };
    return p * power(half) * power(n - half);
  }
  Expr clamp(Expr x, double low, double high) const {
    x = scalar::select(less(f(high), x), f(high), x);
    return scalar::select(less(x, f(low)), f(low), x);
  }
  Expr exp(Expr x) const {
    const Expr c = clamp(x, -104.5, 89);
    const Expr n = scalar::unary(Op::Round, c * f(1.44269504));
    const Expr r = (c - n * f(0.693359375)) - n * f(-2.12194440e-4);
    return scalar::select(is_nan(x), x, scaled_exp(r, scalar::cast(n, Kind::I32)));
  }
  Expr exp2(Expr x) const {
    const Expr c = clamp(x, -151, 129);
    const Expr n = scalar::unary(Op::Round, c);
    return scalar::select(is_nan(x), x, scaled_exp((c - n) * f(0.69314718), scalar::cast(n, Kind::I32)));
  }

  // a = 2^k * (1 + f), its series pieces, and the results at 0, below it, inf and nan.
  struct Log { Expr k, f, q, s, r; };
  Log take_log(Expr a) const {
    const Expr small = less(a, f(0x1p-126));
    const Expr x = scalar::select(small, a * f(0x1p25), a);
    const Expr e = bits(x, Kind::I32) - i(0x3f3504f3);
    Log out;
    out.k = scalar::cast(shr(e, i(23)), Kind::F32) - scalar::select(small, f(25), f(0));
    out.f = bits(op(Op::And, e, i(0x7fffff)) + i(0x3f3504f3), Kind::F32) - f(1);
    out.s = out.f / (out.f + f(2));
    const Expr z = out.s * out.s, w = z * z;
    out.r = z * (f(0.66666662693) + w * f(0.28498786688)) + w * (f(0.40000972152) + w * f(0.24279078841));
    out.q = f(0.5) * out.f * out.f;
    return out;
  }
  Expr at_edges(Expr a, Expr y) const {
    y = scalar::select(equal(magnitude(a), u(0)), special(0xff800000u), y);
    y = scalar::select(less(a, f(0)), special(0x7fc00000u), y);
    return scalar::select(less(u(0x7f7fffff), bits(a, Kind::U32)), scalar::select(less(a, f(0)), y, a), y);
  }
  Expr log(Expr a) const {
    const Log l = take_log(a);
    return at_edges(a, l.s * (l.q + l.r) + l.k * f(9.0580006145e-06) - l.q + l.f + l.k * f(0.69313812256));
  }
  Expr log2(Expr a) const {
    const Log l = take_log(a);
    const Expr high = bits(op(Op::And, bits(l.f - l.q, Kind::I32), i(-4096)), Kind::F32);
    const Expr low = (l.f - high) - l.q + l.s * (l.q + l.r);
    return at_edges(a, (low + high) * f(-1.7605285393e-4) + low * f(1.4428710938) + high * f(1.4428710938) + l.k);
  }
  Expr tanh(Expr x) const {
    const Expr a = abs(x), z = x * x;
    const Expr p = polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
    const Expr large = with_sign(f(1) - f(2) / (exp(a + a) + f(1)), x);
    return scalar::select(is_nan(x), x, scalar::select(less(a, f(0.625)), p * z * x + x, large));
  }
  Expr erf(Expr x) const {
    const Expr t = abs(x), s = x * x;
    Expr r = f(-1.72853470e-5) * t + f(3.83197126e-4);
    const Expr w = f(-3.88396438e-3) * t + f(2.42546219e-2);
    r = r * s + w;
    r = r * t - f(1.06777877e-1);
    r = r * t - f(6.34846687e-1);
    r = r * t - f(1.28717512e-1);
    r = r * t - t;
    const Expr large = with_sign(f(1) - exp(scalar::select(less(f(5), t), f(-100), r)), x);
    const Expr p = polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
    return scalar::select(is_nan(x), x, scalar::select(less(f(0.927734375), t), large, p * x + x));
  }
  Expr sigmoid(Expr x) const {
    const Expr e = exp(-abs(x));
    return scalar::select(is_nan(x), x, scalar::select(less(x, f(0)), e, f(1)) / (f(1) + e));
  }
  // |x| < 8192: four parts of pi / 2, short enough that the products are exact. Beyond, the dialect's own function.
  Expr sin_or_cos(Expr x, int cosine) const {
    const Expr n = scalar::unary(Op::Round, x * f(0.636619772));
    const Expr j = scalar::cast(n, Kind::I32) + i(cosine);
    Expr r = x - n * f(1.5703125);
    r = r - n * f(4.837512969970703125e-4);
    r = r - n * f(7.549533620476722717e-8);
    r = r - n * f(2.5633440682570896e-12);
    const Expr z = r * r;
    const Expr s = r + r * z * (f(-1.6666654611e-1) + z * (f(8.3321608736e-3) - f(1.9515295891e-4) * z));
    const Expr c = f(1) - f(0.5) * z + z * z * (f(4.166664568298827e-2) + z * (f(-1.388731625493765e-3) + z * f(2.443315711809948e-5)));
    const Expr y = scalar::select(equal(op(Op::And, j, i(1)), i(1)), c, s);
    return bits(op(Op::Xor, bits(y, Kind::U32), shl(scalar::cast(op(Op::And, j, i(2)), Kind::U32), u(30))), Kind::F32);
  }
  Expr reduced(Expr x, Op own, Expr near) const {
    return scalar::select(less(abs(x), f(8192)), near, scalar::unary(own, x));
  }
  Expr atan(Expr x) const {   // |x| <= 1: an odd minimax polynomial
    const Expr z = x * x;
    return x * polynomial(z, {0.00282363896258175373, -0.0159569028764963150, 0.0425049886107444763, -0.0748900920152664185,
                              0.106347933411598206, -0.142027363181114197, 0.199926957488059998, -0.333331018686294556, 1});
  }
  Expr atan2(Expr y, Expr x) const {
    const Expr ax = abs(x), ay = abs(y), swap = less(ax, ay);
    const Expr high = scalar::select(swap, ay, ax), low = scalar::select(swap, ax, ay);
    const Expr both_inf = op(Op::And, equal(magnitude(x), u(0x7f800000)), equal(magnitude(y), u(0x7f800000)));
    const Expr q = scalar::select(both_inf, f(1), scalar::select(equal(high, f(0)), f(0), low / high));
    Expr a = atan(q);
    a = scalar::select(swap, f(1.57079637) - a, a);
    a = scalar::select(equal(shr(bits(x, Kind::U32), u(31)), u(1)), f(3.14159274) - a, a);
    const Expr nan = op(Op::Or, is_nan(x), is_nan(y));
    return scalar::select(nan, x + y, with_sign(a, y));
  }
  // |x|^y through a logarithm in two parts, so that the exponent keeps about 8 more bits than f32 has.
  Expr pow(Expr x, Expr y) const {
    const Expr a = abs(x);
    const Log l = take_log(a);
    const Expr high = bits(op(Op::And, bits(l.f - l.q, Kind::I32), i(-4096)), Kind::F32);
    const Expr low = (l.f - high) - l.q + l.s * (l.q + l.r);
    // log2(a) = k + high * 1.4428710938 + tail
    const Expr tail = (low + high) * f(-1.7605285393e-4) + low * f(1.4428710938);
    const Expr main = high * f(1.4428710938);
    const Expr yh = bits(op(Op::And, bits(y, Kind::U32), u(0xfffff000u)), Kind::F32), yl = y - yh;
    const Expr whole = scalar::unary(Op::Round, y * (l.k + main));
    const Expr rest = ((yh * l.k - whole) + yh * main) + (yl * (l.k + main) + y * tail);
    const Expr c = clamp(whole, -400, 400);
    Expr out = exp2_parts(rest, c);
    const Expr truncated = scalar::unary(Op::Floor, y);
    const Expr integral = equal(truncated, y);
    const Expr half = scalar::unary(Op::Floor, y * f(0.5)) * f(2);
    const Expr odd = op(Op::And, integral, scalar::unary(Op::Not, equal(half, y)));
    const Expr negative = equal(shr(bits(x, Kind::U32), u(31)), u(1));
    const Expr inf = special(0x7f800000u), zero = f(0);
    const Expr grows = less(zero, y);
    out = scalar::select(equal(a, zero), scalar::select(grows, zero, inf), out);
    out = scalar::select(equal(a, inf), scalar::select(grows, inf, zero), out);
    const Expr y_inf = equal(magnitude(y), u(0x7f800000));
    const Expr big = less(f(1), a);
    const Expr same = equal(big, grows);
    out = scalar::select(y_inf, scalar::select(equal(a, f(1)), f(1), scalar::select(same, inf, zero)), out);
    out = scalar::select(op(Op::And, negative, odd), -out, out);
    const Expr finite_negative = op(Op::And, op(Op::And, less(x, zero), less(magnitude(x), u(0x7f800000))), scalar::unary(Op::Not, op(Op::Or, integral, y_inf)));
    out = scalar::select(finite_negative, special(0x7fc00000u), out);
    out = scalar::select(op(Op::Or, is_nan(x), is_nan(y)), x + y, out);
    return scalar::select(op(Op::Or, equal(y, zero), equal(x, f(1))), f(1), out);
  }
  Expr exp2_parts(Expr fraction, Expr whole) const {
    const Expr more = scalar::unary(Op::Round, fraction);
    return scaled_exp_wide((fraction - more) * f(0.69314718), scalar::cast(whole + more, Kind::I32));
  }
  // As scaled_exp, for n within +-400.
  Expr scaled_exp_wide(Expr r, Expr n) const {
    const Expr c = scalar::select(less(n, i(-160)), i(-160), scalar::select(less(i(130), n), i(130), n));
    return scaled_exp(r, c);
  }
};

Expr expanded(Expr e, std::span<const Expr> args, const Math& m) {
  if (e.kind() != Kind::F32) return {};
  switch (e.op()) {
    case Op::Abs: return m.abs(args[0]);
    case Op::Exp: return m.exp(args[0]);
    case Op::Exp2: return m.exp2(args[0]);
    case Op::Log: return m.log(args[0]);
    case Op::Log2: return m.log2(args[0]);
    case Op::Tanh: return m.tanh(args[0]);
    case Op::Erf: return m.erf(args[0]);
    case Op::Sigmoid: return m.sigmoid(args[0]);
    case Op::Sin: return m.reduced(args[0], Op::Sin, scalar::select(m.equal(args[0], m.f(0)), args[0], m.sin_or_cos(args[0], 0)));
    case Op::Cos: return m.reduced(args[0], Op::Cos, m.sin_or_cos(args[0], 1));
    case Op::Tan: {
      const Expr near = m.sin_or_cos(args[0], 0) / m.sin_or_cos(args[0], 1);
      return m.reduced(args[0], Op::Tan, scalar::select(m.equal(args[0], m.f(0)), args[0], near));
    }
    case Op::Atan2: return m.atan2(args[0], args[1]);
    case Op::Pow: return m.pow(args[0], args[1]);
    case Op::Recip: return m.f(1) / args[0];
    case Op::Rsqrt: return m.f(1) / scalar::unary(Op::Sqrt, args[0]);
    case Op::RoundTo: {
      const DType type = DType(e.payload());
      if (!scalar::is_float(type) || scalar::bits(type) > 16) return {};
      return decode(encode(args[0], type), type);
    }
    default: return {};
  }
}

struct Format {
  int exponent = 8, mantissa = 7, bias = 127;
  bool has_inf = true;
};
Format format(DType type) {
  switch (type) {
    case DType::F16: return {5, 10, 15, true};
    case DType::BF16: return {8, 7, 127, true};
    case DType::F8E4M3: return {4, 3, 7, false};
    default: return {5, 2, 15, true};
  }
}

}  // namespace

std::vector<Expr> expand_functions(std::span<const Expr> roots, Arena& into, bool native_exp) {
  const Math m{into};
  return scalar::rewrite_all(roots, into, [&](Expr e, std::span<const Expr> args) {
    if (native_exp && (e.is(Op::Exp) || e.is(Op::Exp2))) return Expr();
    return expanded(e, args, m);
  });
}

Expr decode(Expr bits, DType type) {
  const Math m{bits.arena()};
  const Format f = format(type);
  if (type == DType::BF16) return Math::bits(Math::shl(bits, m.u(16)), Kind::F32);
  const int width = 1 + f.exponent + f.mantissa;
  const Expr sign = Math::shl(Math::shr(bits, m.u(uint32_t(width - 1))), m.u(31));
  const Expr magnitude = Math::op(Op::And, bits, m.u((1u << (width - 1)) - 1));
  // Normal numbers move their fields; subnormal ones are an integer times the smallest of them.
  const Expr moved = Math::shl(magnitude, m.u(uint32_t(23 - f.mantissa))) + m.u(uint32_t(127 - f.bias) << 23);
  const Expr tiny = Math::bits(scalar::cast(magnitude, Kind::F32) * m.f(std::ldexp(1, 1 - f.bias - f.mantissa)), Kind::U32);
  Expr out = scalar::select(Math::less(magnitude, m.u(1u << f.mantissa)), tiny, moved);
  const uint32_t top = ((1u << f.exponent) - 1) << f.mantissa;
  if (f.has_inf) {
    const Expr wide = Math::op(Op::Or, m.u(0x7f800000u), Math::shl(Math::op(Op::And, magnitude, m.u((1u << f.mantissa) - 1)), m.u(uint32_t(23 - f.mantissa))));
    out = scalar::select(Math::less(m.u(top - 1), magnitude), wide, out);
  } else {
    out = scalar::select(Math::equal(magnitude, m.u((1u << (width - 1)) - 1)), m.u(0x7fc00000u), out);
  }
  return Math::bits(Math::op(Op::Or, out, sign), Kind::F32);
}

Expr encode(Expr value, DType type) {
  const Math m{value.arena()};
  const Format f = format(type);
  const int width = 1 + f.exponent + f.mantissa, drop = 23 - f.mantissa;
  const Expr whole = Math::bits(value, Kind::U32), magnitude = Math::op(Op::And, whole, m.u(0x7fffffff));
  const Expr sign = Math::shl(Math::shr(whole, m.u(31)), m.u(uint32_t(width - 1)));
  const auto rounded = [&](Expr bits) {  // drops the low bits, to nearest even
    const Expr odd = Math::op(Op::And, Math::shr(bits, m.u(uint32_t(drop))), m.u(1));
    return Math::shr(bits + m.u((1u << (drop - 1)) - 1) + odd, m.u(uint32_t(drop)));
  };
  const uint32_t top = ((1u << f.exponent) - 1) << f.mantissa;  // inf, or the last binade
  Expr out = rounded(magnitude) - m.u(uint32_t(127 - f.bias) << f.mantissa);
  if (f.bias != 127) {
    // Below the normal numbers: how many of the smallest, rounded by the adder of integers of floats.
    const Expr scaled = Math::bits(magnitude, Kind::F32) * m.f(std::ldexp(1, f.bias + f.mantissa - 1));
    const Expr count = scalar::cast(scalar::unary(Op::Round, scaled), Kind::U32);
    out = scalar::select(Math::less(magnitude, m.u(uint32_t(128 - f.bias) << 23)), count, out);
  }
  const uint32_t most = f.has_inf ? top : (1u << (width - 1)) - 1;  // e4m3: nan where the value is beyond 448
  out = scalar::select(Math::less(m.u(most - 1), out), m.u(most), out);
  if (f.bias != 127) {
    // Far beyond the range the subtraction above wraps nowhere, as magnitudes stay below 2^31.
    out = scalar::select(Math::less(m.u(0x7f7fffff), magnitude), m.u(most), out);
  }
  const uint32_t nan = f.has_inf ? top | (1u << (f.mantissa - 1)) : (1u << (width - 1)) - 1;
  out = scalar::select(Math::less(m.u(0x7f800000u), magnitude), m.u(nan), out);
  return Math::op(Op::Or, out, sign);
}

}  // namespace lemma::emit::device
