#include "lemma/scalar/check_rule.h"

#include <cmath>
#include <sstream>

#include "lemma/scalar/eval.h"
#include "lemma/scalar/pattern.h"
#include "lemma/scalar/print.h"

namespace lemma::scalar::test {
namespace {

constexpr int kEnough = 150;  // expressions
constexpr int kPoints = 12;   // of each

// Values for the claim: special ones for exact rules; for real ones small numbers whose arithmetic is nearly exact.
Scalar value_for(Claim claim, Kind kind, Random& random) {
  if (!is_float(kind) || claim == Claim::Exact) return random_value(kind, random);
  static const double kFinite[] = {0, 1, -1, 2, 0.5, -0.25, 3, -5, 1.5};
  static const double kOther[] = {INFINITY, -INFINITY, NAN, -0.0};
  if (claim == Claim::Real && below(random, 4) == 0) return from_float(kOther[below(random, 4)]);
  if (below(random, 2)) return from_float(kFinite[below(random, 9)]);
  return from_float((below(random, 4001) - 2000) / 256.0);
}

// An expression of the given kind that the pattern's shape matches: variables become reads or constants.
class Instance {
 public:
  Instance(Arena& arena, Random& random, Claim claim, size_t variables)
      : arena_(arena), random_(random), claim_(claim), bound_(variables) {}

  Expr make(const Pattern& p, Kind kind) {
    switch (p.kind) {
      case Pattern::Kind::Variable: return variable(size_t(p.variable), kind);
      case Pattern::Kind::Number:
        if (!is_float(kind) && std::floor(p.number) != p.number) return fail();
        if (!is_float(kind) && std::isinf(p.number)) return fail();
        return constant(arena_, kind, p.number);
      case Pattern::Kind::Truth: return kind == Kind::Bool ? boolean(arena_, p.number != 0) : fail();
      case Pattern::Kind::Operation: break;
    }
    Kind operand = kind;
    if (shape(p.op) == OpShape::Compare) {
      if (kind != Kind::Bool) return fail();
      operand = random_kind(random_);
    }
    if (shape(p.op) == OpShape::Convert) operand = random_kind(random_);
    if (shape(p.op) == OpShape::Same && !has(p.op, kind)) return fail();
    if (p.op == Op::Cast && operand == kind) return fail();
    std::vector<Expr> args;
    for (size_t i = 0; i < p.args.size(); ++i) {
      args.push_back(make(p.args[i], p.op == Op::Select && i == 0 ? Kind::Bool : operand));
      if (failed_) return {};
    }
    return arena_.make(p.op, kind, args, p.op == Op::RoundTo ? round_type(kind) : 0);
  }
  bool failed() const { return failed_; }

 private:
  Expr fail() {
    failed_ = true;
    return {};
  }
  int64_t round_type(Kind kind) { return int64_t(is_float(kind) ? DType::F16 : DType::I8); }
  Expr variable(size_t v, Kind kind) {
    if (!bound_[v].valid()) {
      if (below(random_, 2)) {
        bound_[v] = arg(arena_, kind, int(v));
      } else {
        Scalar value = value_for(claim_, kind, random_);
        if (is_float(kind) && below(random_, 2)) value.f = std::ldexp(1.0, claim_ == Claim::Exact ? below(random_, 41) - 20 : below(random_, 6) - 3);
        bound_[v] = constant_of(arena_, kind, value);
      }
    }
    return bound_[v].kind() == kind ? bound_[v] : fail();
  }

  Arena& arena_;
  Random& random_;
  Claim claim_;
  std::vector<Expr> bound_;
  bool failed_ = false;
};

bool agree(Claim claim, Kind kind, Scalar a, Scalar b) {
  if (claim == Claim::Exact || !is_float(kind)) return same_value(kind, a, b);
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  if (std::isinf(a.f) || std::isinf(b.f)) return a.f == b.f;
  return std::fabs(a.f - b.f) <= 1e-9 * (1 + std::fabs(a.f) + std::fabs(b.f));
}

}  // namespace

RuleCheck check_rule(const Rule& rule, uint64_t seed, int trials) {
  const ParsedRule parsed = parse_rule(rule);
  RuleCheck out;
  Random random(seed);
  for (int t = 0; t < trials && out.tried < kEnough; ++t) {
    Arena arena;
    Instance instance(arena, random, rule.claim, parsed.variables.size());
    const Expr left = instance.make(parsed.from, random_kind(random));
    if (instance.failed()) continue;
    const auto bindings = match(parsed, left);
    if (!bindings) continue;
    const Expr right = build(parsed, *bindings, left, [&](Op op, Kind kind, std::span<const Expr> args, int64_t payload) {
      return arena.make(op, kind, args, payload);
    });
    ++out.tried;
    if (!(left.kind() == right.kind())) {
      out.failure = "the sides have different kinds";
      return out;
    }
    for (int point = 0; point < kPoints; ++point) {
      std::vector<Scalar> values(parsed.variables.size());
      for (Expr e : reachable({&left, 1})) {
        if (e.is(Op::Arg)) values[size_t(e.payload())] = value_for(rule.claim, e.kind(), random);
      }
      Leaves leaves;
      leaves.arg = [&](int which) { return values[size_t(which)]; };
      for (Arithmetic arithmetic : {Arithmetic::Double, Arithmetic::Single}) {
        if (arithmetic == Arithmetic::Single && rule.claim != Claim::Exact) continue;
        const Scalar a = evaluate(left, leaves, arithmetic), b = evaluate(right, leaves, arithmetic);
        if (agree(rule.claim, left.kind(), a, b)) continue;
        std::ostringstream text;
        text << rule.name << " (" << name(left.kind()) << "): " << print(left, plain_names()) << "  ->  "
             << print(right, plain_names());
        if (is_float(left.kind())) text << " gives " << a.f << " and " << b.f;
        else text << " gives " << a.i << " and " << b.i;
        text << " at";
        for (Expr e : reachable({&left, 1})) {
          if (!e.is(Op::Arg)) continue;
          const Scalar v = values[size_t(e.payload())];
          text << " arg" << e.payload() << " = ";
          if (is_float(e.kind())) text << v.f;
          else text << v.i;
        }
        out.failure = text.str() + ", seed " + std::to_string(seed);
        return out;
      }
    }
  }
  return out;
}

}  // namespace lemma::scalar::test
