// The library of monoids, each built as data by the same few steps a user's monoid goes through. The comment of each
// states its combine; monoid.h states what it promises.
#include <limits>
#include <string>

#include "lemma/base/check.h"
#include "lemma/monoid/monoid.h"

namespace lemma::monoid {
namespace {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The value below (or above) which nothing of the kind lies.
Expr extreme(Arena& arena, Kind kind, bool largest) {
  switch (kind) {
    case Kind::F64:
    case Kind::F32: return scalar::constant(arena, kind, largest ? kInfinity : -kInfinity);
    case Kind::I64:
      return scalar::constant_int(arena, kind, largest ? std::numeric_limits<int64_t>::max()
                                                       : std::numeric_limits<int64_t>::min());
    case Kind::I32:
      return scalar::constant_int(arena, kind, largest ? std::numeric_limits<int32_t>::max()
                                                       : std::numeric_limits<int32_t>::min());
    case Kind::U64: return scalar::constant_int(arena, kind, largest ? -1 : 0);
    case Kind::U32: return scalar::constant_int(arena, kind, largest ? int64_t(0xFFFFFFFF) : 0);
    case Kind::Bool: return scalar::constant_int(arena, kind, largest);
  }
  return {};
}

Expr number(Arena& arena, Kind kind, int64_t value) {
  return scalar::is_float(kind) ? scalar::constant(arena, kind, double(value))
                                : scalar::constant_int(arena, kind, value);
}

Monoid start(std::string name, Structure structure) {
  Monoid m;
  m.name = std::move(name);
  m.arena = std::make_shared<Arena>();
  m.structure = structure;
  return m;
}

void add_component(Monoid& m, std::string name, Kind kind, Expr identity, Expr lift) {
  m.components.push_back({std::move(name), kind, {}});
  m.identity.push_back(identity);
  m.lift.push_back(lift);
}

Expr operand(Monoid& m, size_t i) { return scalar::arg(*m.arena, m.operands[i], int(i)); }
Expr result(Monoid& m, size_t component) {
  return scalar::arg(*m.arena, m.components[component].kind, int(component));
}

void finish_with_all_components(Monoid& m) {
  for (size_t c = 0; c < m.components.size(); ++c) m.finish.push_back(result(m, c));
}

// One update under construction: x(c) and y(c) read the left and right state's component c.
class Combine {
 public:
  explicit Combine(Monoid& m) : monoid_(m) {}
  Expr x(int component) { return read(false, component); }
  Expr y(int component) { return read(true, component); }
  void is(Expr body) {
    update_.body = body;
    monoid_.combine.push_back(std::move(update_));
    update_ = Update();
  }

 private:
  Expr read(bool right, int component) {
    const StateRead wanted{right, component, {}};
    size_t at = 0;
    while (at < update_.reads.size() && !(update_.reads[at] == wanted)) ++at;
    if (at == update_.reads.size()) update_.reads.push_back(wanted);
    return scalar::arg(*monoid_.arena, monoid_.components[size_t(component)].kind, int(at));
  }

  Monoid& monoid_;
  Update update_;
};

// A commutative fold of one value by one operation.
MonoidRef fold(std::string name, Kind kind, Op op, bool idempotent, Expr (*identity)(Arena&, Kind)) {
  Monoid m = start(std::move(name), Structure::Elementwise);
  m.operands = {kind};
  m.commutative = true;
  m.idempotent = idempotent;
  add_component(m, "value", kind, identity(*m.arena, kind), operand(m, 0));
  Combine combine(m);
  const Expr x = combine.x(0), y = combine.y(0);
  combine.is(scalar::binary(op, x, y));
  finish_with_all_components(m);
  return std::make_shared<const Monoid>(std::move(m));
}

Expr both(Expr a, Expr b) { return scalar::binary(Op::And, a, b); }
Expr either(Expr a, Expr b) { return scalar::binary(Op::Or, a, b); }
Expr equal(Expr a, Expr b) { return scalar::binary(Op::Eq, a, b); }
Expr less(Expr a, Expr b) { return scalar::binary(Op::Lt, a, b); }
Expr is_nan(Expr a) { return scalar::binary(Op::Ne, a, a); }

// Whether the candidate (value b, index j) takes the place of (a, i). An index of -1 is nothing; nan lies above every
// number; of equals the smaller index stands, which makes the combine commutative.
Expr takes_over(Expr a, Expr i, Expr b, Expr j, bool smallest) {
  Arena& arena = a.arena();
  const Expr zero = scalar::i64(arena, 0);
  Expr better = smallest ? less(b, a) : less(a, b);
  Expr tied = equal(a, b);
  if (scalar::is_float(a.kind())) {
    const Expr a_nan = is_nan(a), b_nan = is_nan(b);
    better = both(scalar::unary(Op::Not, a_nan), either(b_nan, better));
    tied = either(tied, both(a_nan, b_nan));
  }
  const Expr wins = either(less(i, zero), either(better, both(tied, less(j, i))));
  return both(scalar::unary(Op::Not, less(j, zero)), wins);
}

MonoidRef arg_best(std::string name, Kind kind, bool smallest) {
  Monoid m = start(std::move(name), Structure::Elementwise);
  m.operands = {kind, Kind::I64};
  m.commutative = true;
  m.idempotent = true;
  add_component(m, "value", kind, extreme(*m.arena, kind, smallest), operand(m, 0));
  add_component(m, "index", Kind::I64, scalar::i64(*m.arena, -1), operand(m, 1));
  Combine combine(m);
  for (int c = 0; c < 2; ++c) {
    // Read in one order, so that both updates share their condition.
    const Expr a = combine.x(0), i = combine.x(1), b = combine.y(0), j = combine.y(1);
    const Expr taken = takes_over(a, i, b, j, smallest);
    combine.is(c == 0 ? scalar::select(taken, b, a) : scalar::select(taken, j, i));
  }
  m.finish = {result(m, 1)};
  return std::make_shared<const Monoid>(std::move(m));
}

}  // namespace

MonoidRef sum(Kind kind) {
  return fold("sum", kind, Op::Add, false, [](Arena& a, Kind k) { return number(a, k, 0); });
}

MonoidRef product(Kind kind) {
  return fold("prod", kind, Op::Mul, false, [](Arena& a, Kind k) { return number(a, k, 1); });
}

MonoidRef maximum(Kind kind) {
  return fold("max", kind, Op::Max, true, [](Arena& a, Kind k) { return extreme(a, k, false); });
}

MonoidRef minimum(Kind kind) {
  return fold("min", kind, Op::Min, true, [](Arena& a, Kind k) { return extreme(a, k, true); });
}

MonoidRef any() {
  return fold("any", Kind::Bool, Op::Or, true, [](Arena& a, Kind) { return scalar::boolean(a, false); });
}

MonoidRef all() {
  return fold("all", Kind::Bool, Op::And, true, [](Arena& a, Kind) { return scalar::boolean(a, true); });
}

MonoidRef arg_maximum(Kind kind) { return arg_best("argmax", kind, false); }
MonoidRef arg_minimum(Kind kind) { return arg_best("argmin", kind, true); }

MonoidRef top_k(Kind kind, int count, bool smallest) {
  LEMMA_CHECK(count >= 1, "top_k of no slots");
  Monoid m = start((smallest ? "bottomk[" : "topk[") + std::to_string(count) + "]", Structure::TopK);
  m.operands = {kind, Kind::I64};
  m.commutative = true;
  m.count = count;
  m.smallest = smallest;
  const Expr missing = extreme(*m.arena, kind, smallest), nowhere = scalar::i64(*m.arena, -1);
  const Expr first = equal(scalar::index(*m.arena, 0), scalar::i64(*m.arena, 0));
  add_component(m, "value", kind, missing, scalar::select(first, operand(m, 0), missing));
  add_component(m, "index", Kind::I64, nowhere, scalar::select(first, operand(m, 1), nowhere));
  for (Component& c : m.components) c.axes = {view::Form(count)};
  finish_with_all_components(m);
  return std::make_shared<const Monoid>(std::move(m));
}

// With d = y.sum / y.n - x.sum / x.n:  m2 = x.m2 + y.m2 + d * d * x.n * y.n / (x.n + y.n), the last term 0 where a side
// is empty. One element lifts to m2 = x - x: 0, or nan where x is not finite, as the two-pass form has it.
MonoidRef welford(Kind kind) {
  LEMMA_CHECK(scalar::is_float(kind), "moments of integers");
  Monoid m = start("welford", Structure::Elementwise);
  m.operands = {kind};
  m.commutative = true;
  Arena& arena = *m.arena;
  const Expr zero = number(arena, kind, 0);
  add_component(m, "n", kind, zero, number(arena, kind, 1));
  add_component(m, "sum", kind, zero, operand(m, 0));
  add_component(m, "m2", kind, zero, operand(m, 0) - operand(m, 0));
  Combine combine(m);
  for (int c = 0; c < 2; ++c) {
    const Expr x = combine.x(c), y = combine.y(c);
    combine.is(x + y);
  }
  const Expr xn = combine.x(0), yn = combine.y(0), xs = combine.x(1), ys = combine.y(1), x2 = combine.x(2),
             y2 = combine.y(2);
  const Expr apart = ys / yn - xs / xn;
  const Expr between = apart * apart * (xn * (yn / (xn + yn)));
  combine.is(x2 + y2 + scalar::select(either(equal(xn, zero), equal(yn, zero)), zero, between));
  finish_with_all_components(m);
  return std::make_shared<const Monoid>(std::move(m));
}

MonoidRef rescaled_sum(Kind kind, int sums, double scale) {
  LEMMA_CHECK(scalar::is_float(kind) && sums >= 0 && scale > 0, "a rescaled sum needs floats and a positive scale");
  Monoid m = start("rescaled_sum", Structure::RescaledSum);
  m.operands.assign(size_t(sums) + 1, kind);
  m.commutative = true;
  m.scale = scale;
  Arena& arena = *m.arena;
  const Expr low = extreme(arena, kind, false), zero = number(arena, kind, 0), one = number(arena, kind, 1);
  const auto weight = [&](Expr gap) {
    return scalar::exp(scale == 1 ? gap : scalar::constant(arena, kind, scale) * gap);
  };
  const Expr score = operand(m, 0);
  add_component(m, "max", kind, low, score);
  for (int k = 1; k <= sums; ++k) {
    const Expr term = weight(score - score) * operand(m, size_t(k));
    add_component(m, "sum" + (sums == 1 ? std::string() : std::to_string(k)), kind, zero,
                  scalar::select(equal(score, low), zero, term));
  }
  Combine combine(m);
  {
    const Expr x = combine.x(0), y = combine.y(0);
    combine.is(scalar::max(x, y));
  }
  for (int k = 1; k <= sums; ++k) {
    const Expr x_max = combine.x(0), y_max = combine.y(0), x = combine.x(k), y = combine.y(k);
    const Expr top = scalar::max(x_max, y_max);
    const auto factor = [&](Expr side) { return scalar::select(equal(side, top), one, weight(side - top)); };
    combine.is(x * factor(x_max) + y * factor(y_max));
  }
  finish_with_all_components(m);
  return std::make_shared<const Monoid>(std::move(m));
}

// x is the earlier map, y the later: h -> y.a * (x.a * h + x.b) + y.b.
MonoidRef affine(Kind kind) {
  Monoid m = start("affine", Structure::Elementwise);
  m.operands = {kind, kind};
  add_component(m, "a", kind, number(*m.arena, kind, 1), operand(m, 0));
  add_component(m, "b", kind, number(*m.arena, kind, 0), operand(m, 1));
  Combine combine(m);
  {
    const Expr xa = combine.x(0), ya = combine.y(0);
    combine.is(ya * xa);
  }
  {
    const Expr ya = combine.y(0), xb = combine.x(1), yb = combine.y(1);
    combine.is(ya * xb + yb);
  }
  finish_with_all_components(m);
  return std::make_shared<const Monoid>(std::move(m));
}

}  // namespace lemma::monoid
