#include "lemma/scalar/simplify.h"

#include <cmath>
#include <unordered_map>

#include "lemma/scalar/eval.h"
#include "lemma/scalar/pattern.h"

namespace lemma::scalar {
namespace {

// A rule's right side is simplified as it is built; this bounds how deep such building may nest.
constexpr int kMaxNesting = 40;
constexpr int kMaxFirings = 200;  // at one node

// Whether a function of one float has an exact value at x, which evaluation then gives.
bool exact_at(Op op, double x, double value) {
  if (std::isnan(x)) return true;
  const bool zero = x == 0, infinite = std::isinf(x);
  switch (op) {
    case Op::Exp: case Op::Sigmoid: return zero || infinite;
    case Op::Exp2: return infinite || (std::floor(x) == x && std::fabs(x) <= 126);
    case Op::Log: return zero || infinite || x == 1 || x < 0;
    case Op::Log2: {
      int exponent;
      return zero || infinite || x < 0 || std::frexp(x, &exponent) == 0.5;
    }
    case Op::Sin: case Op::Tan: return zero;
    case Op::Cos: return zero;
    case Op::Tanh: case Op::Erf: return zero || infinite;
    case Op::Rsqrt: {
      int exponent;
      return zero || infinite || x < 0 || (std::frexp(x, &exponent) == 0.5 && value * value * x == 1);
    }
    default: return false;
  }
}

// Operations whose result in f32 is the exact one rounded.
bool rounds_once(Op op) {
  switch (op) {
    case Op::Neg: case Op::Abs: case Op::Recip: case Op::Sqrt: case Op::Floor: case Op::Round: case Op::Add: case Op::Sub:
    case Op::Mul: case Op::Div: case Op::Min: case Op::Max: case Op::RoundTo: return true;
    default: return false;
  }
}

}  // namespace

std::optional<Expr> fold(Arena& arena, Op op, Kind kind, std::span<const Expr> constants, int64_t payload) {
  if (constants.empty()) return std::nullopt;
  Scalar operands[3];
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!constants[i].is_const()) return std::nullopt;
    operands[i] = value_of(constants[i]);
  }
  const Kind operand = op == Op::Select ? kind : constants[0].kind();
  const Scalar value = apply(op, kind, operand, payload, {operands, constants.size()}, Arithmetic::Single);
  if (shape(op) == OpShape::Same && is_float(kind) && !rounds_once(op)) {
    if (constants.size() != 1 || !exact_at(op, operands[0].f, value.f)) return std::nullopt;
  }
  return constant_of(arena, kind, value);
}

struct Simplifier::State {
  std::vector<ParsedRule> rules;
  std::vector<size_t> row;                  // of each parsed rule: its place among the rows given
  std::vector<std::vector<size_t>> by_op;   // rules by the operation at their root, in order
  std::vector<int> fired;
  int nesting = 0;

  Expr make(Arena& arena, Op op, Kind kind, std::span<const Expr> args, int64_t payload) {
    if (auto constant = fold(arena, op, kind, args, payload)) return *constant;
    Expr e = arena.make(op, kind, args, payload);
    if (nesting >= kMaxNesting) return e;
    ++nesting;
    for (int count = 0; count < kMaxFirings; ++count) {
      const std::optional<Expr> next = step(e);
      if (!next || *next == e) break;
      e = *next;
    }
    --nesting;
    return e;
  }

  // One rule at the root. What it builds is simplified below the root and, through make, at it.
  std::optional<Expr> step(Expr e) {
    for (size_t r : by_op[size_t(e.op())]) {
      const std::optional<Bindings> bindings = match(rules[r], e);
      if (!bindings) continue;
      ++fired[row[r]];
      return build(rules[r], *bindings, e, [&](Op op, Kind kind, std::span<const Expr> args, int64_t payload) {
        return make(e.arena(), op, kind, args, payload);
      });
    }
    return std::nullopt;
  }
};

Simplifier::Simplifier(Claim allow, std::span<const Rule> rules) : state_(std::make_unique<State>()) {
  state_->by_op.resize(size_t(Op::Bits) + 1);
  state_->fired.assign(rules.size(), 0);
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].claim > allow) continue;
    state_->rules.push_back(parse_rule(rules[i]));
    state_->row.push_back(i);
    state_->by_op[size_t(state_->rules.back().from.op)].push_back(state_->rules.size() - 1);
  }
}
Simplifier::~Simplifier() = default;

std::vector<Expr> Simplifier::simplify(std::span<const Expr> roots) {
  if (roots.empty()) return {};
  Arena& arena = roots[0].arena();
  return rewrite_all(roots, arena, [&](Expr e, std::span<const Expr> args) {
    if (shape(e.op()) == OpShape::Leaf) return e;
    return state_->make(arena, e.op(), e.kind(), args, e.payload());
  });
}

Expr Simplifier::simplify(Expr root) { return simplify({&root, 1})[0]; }

const std::vector<int>& Simplifier::fired() const { return state_->fired; }

Expr simplify(Expr root, Claim allow) { return Simplifier(allow).simplify(root); }

}  // namespace lemma::scalar
