// Lifts random and special elements, combines them both ways and compares. Rounding is told from disagreement by scale:
// beside the two results, the magnitudes of all states involved bound what rounding may have cost. Where a result is
// not finite the two ways must agree on it.
#include "lemma/monoid/laws.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace lemma::monoid {
namespace {

using scalar::Kind;
using scalar::Scalar;

// splitmix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }
  double unit() { return double(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSpecialFloats[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
constexpr double kNotableFloats[] = {0.0, -0.0, 1.0, -1.0, 2.0, 1e6, -1e6, 1e-6};

Scalar random_value(Random& random, Kind kind, bool special) {
  switch (kind) {
    case Kind::F64:
    case Kind::F32:
      if (special && random.below(3) == 0) {
        return scalar::from_float(kSpecialFloats[random.below(int64_t(std::size(kSpecialFloats)))]);
      }
      if (random.below(4) == 0) {
        return scalar::from_float(kNotableFloats[random.below(int64_t(std::size(kNotableFloats)))]);
      }
      // Half of them small integers, so that ties happen.
      if (random.below(2) == 0) return scalar::from_float(double(random.below(7) - 3));
      return scalar::from_float((random.unit() * 2 - 1) * 4);
    case Kind::Bool: return scalar::from_int(random.below(2));
    case Kind::U32:
    case Kind::U64: break;
    case Kind::I32:
    case Kind::I64:
      if (random.below(8) == 0) {
        const int64_t least = kind == Kind::I32 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
        return scalar::from_int(random.below(2) == 0 ? least : -(least + 1));
      }
      return scalar::from_int(random.below(9) - 4);
  }
  if (random.below(8) == 0) return scalar::from_int(scalar::wrapped(kind, -1));
  return scalar::from_int(random.below(9));
}

std::string print_value(Kind kind, Scalar value) {
  char text[32];
  if (scalar::is_float(kind)) {
    std::snprintf(text, sizeof text, "%.9g", value.f);
    return std::isnan(value.f) ? "nan" : text;
  }
  if (kind == Kind::Bool) return value.i ? "true" : "false";
  return kind == Kind::U64 ? std::to_string(uint64_t(value.i)) : std::to_string(value.i);
}

using State = std::vector<Scalar>;

class Check {
 public:
  Check(const MonoidRef& monoid, const LawOptions& options)
      : evaluator_(monoid, options.sizes), monoid_(*monoid), options_(options), random_(options.seed) {
    find_varying_operands();
    find_positions();
    identity_.resize(size_t(evaluator_.state_size()));
    evaluator_.identity(identity_.data());
  }

  Report run() {
    for (int k = 0; k < options_.random_triples; ++k) {
      // Elements of one reduction have distinct positions, so operands of an index kind never repeat within a triple.
      next_index_ = random_.below(4);
      special_ = k % 2 == 1;
      // A third of the states combine several elements, which no single element shows.
      const State a = state(k), b = state(k / 3), c = state(k / 9);
      triple(a, b, c);
      ++report_.cases;
    }
    return std::move(report_);
  }

 private:
  // An operand may differ along a state's axes only where every component that lifts it has the same axes.
  void find_varying_operands() {
    varies_.assign(monoid_.operands.size(), 1);
    std::vector<const std::vector<view::Form>*> axes(monoid_.operands.size(), nullptr);
    for (size_t c = 0; c < monoid_.components.size(); ++c) {
      for (scalar::Expr e : scalar::reachable({&monoid_.lift[c], 1})) {
        if (!e.is(scalar::Op::Arg)) continue;
        const size_t o = size_t(e.payload());
        const auto& own = monoid_.components[c].axes;
        if (own.empty() || (axes[o] && *axes[o] != own) || monoid_.structure == Structure::TopK) varies_[o] = 0;
        axes[o] = &own;
      }
    }
  }

  // An I64 operand lifted into a component whose identity is -1 is the position of the element.
  void find_positions() {
    position_.assign(monoid_.operands.size(), 0);
    for (size_t c = 0; c < monoid_.components.size(); ++c) {
      const scalar::Expr identity = monoid_.identity[c];
      if (!identity.is_const() || identity.kind() != Kind::I64 || identity.as_int() != -1) continue;
      for (scalar::Expr e : scalar::reachable({&monoid_.lift[c], 1})) {
        if (e.is(scalar::Op::Arg)) position_[size_t(e.payload())] = 1;
      }
    }
  }

  State element() {
    std::vector<State> values(monoid_.operands.size());
    for (size_t o = 0; o < values.size(); ++o) {
      int64_t count = 1;
      for (size_t c = 0; c < monoid_.components.size() && varies_[o]; ++c) {
        count = std::max(count, evaluator_.count(int(c)));
      }
      // The terms of a rescaled sum are finite: inf times a weight that underflows is nan, one step or two.
      const bool special = special_ && !(monoid_.structure == Structure::RescaledSum && o > 0);
      for (int64_t p = 0; p < count; ++p) values[o].push_back(random_value(random_, monoid_.operands[o], special));
    }
    for (size_t o = 0; o < values.size(); ++o) {
      if (position_[o]) values[o][0] = scalar::from_int(next_index_);
    }
    ++next_index_;
    State out(identity_.size());
    evaluator_.lift([&](int o, int, int64_t p) { return values[size_t(o)][varies_[size_t(o)] ? size_t(p) : 0]; },
                    out.data());
    return out;
  }

  State state(int k) {
    State out = element();
    for (int extra = k % 3; extra > 0; --extra) out = combined(out, element());
    return out;
  }

  State combined(State a, const State& b) {
    evaluator_.combine(a.data(), b.data());
    return a;
  }

  void triple(const State& a, const State& b, const State& c) {
    const State ab = combined(a, b), bc = combined(b, c);
    const State left = combined(ab, c), right = combined(a, bc);
    if (!agree(left, right, {&a, &b, &c, &ab, &bc})) {
      violate("associativity", "combine(combine(a, b), c) = " + text(left) + " but combine(a, combine(b, c)) = " +
                                   text(right) + " for a = " + text(a) + ", b = " + text(b) + ", c = " + text(c));
    }
    for (const bool on_left : {true, false}) {
      const State with = on_left ? combined(identity_, a) : combined(a, identity_);
      if (!agree(with, a, {&a})) {
        violate("identity", std::string(on_left ? "combine(identity, a) = " : "combine(a, identity) = ") + text(with) +
                                " but a = " + text(a) + ", with identity = " + text(identity_));
      }
    }
    if (monoid_.commutative) {
      const State ba = combined(b, a);
      if (!agree(ab, ba, {&a, &b})) {
        violate("commutativity", "combine(a, b) = " + text(ab) + " but combine(b, a) = " + text(ba) +
                                     " for a = " + text(a) + ", b = " + text(b));
      }
    }
    if (monoid_.idempotent) {
      const State aa = combined(a, a);
      if (!agree(aa, a, {&a})) violate("idempotence", "combine(a, a) = " + text(aa) + " but a = " + text(a));
    }
  }

  bool agree(const State& x, const State& y, std::initializer_list<const State*> involved) const {
    double scale = 0;
    for (const State* s : involved) {
      for (size_t c = 0; c < monoid_.components.size(); ++c) {
        if (!scalar::is_float(monoid_.components[c].kind)) continue;
        for (int64_t p = 0; p < evaluator_.count(int(c)); ++p) {
          const double v = std::fabs((*s)[size_t(evaluator_.offset(int(c)) + p)].f);
          if (std::isfinite(v)) scale = std::max(scale, v);
        }
      }
    }
    for (size_t c = 0; c < monoid_.components.size(); ++c) {
      for (int64_t p = 0; p < evaluator_.count(int(c)); ++p) {
        const size_t at = size_t(evaluator_.offset(int(c)) + p);
        if (!close(monoid_.components[c].kind, x[at], y[at], scale)) return false;
      }
    }
    return true;
  }

  bool close(Kind kind, Scalar x, Scalar y, double scale) const {
    if (!scalar::is_float(kind)) return x.i == y.i;
    if (std::isnan(x.f) || std::isnan(y.f)) return std::isnan(x.f) && std::isnan(y.f);
    if (std::isinf(x.f) || std::isinf(y.f)) return x.f == y.f;
    // A combine may multiply what it holds, so squares of magnitudes may have cancelled.
    const double allowed = options_.tolerance * std::max({scale, std::fabs(x.f), std::fabs(y.f), 1.0});
    return std::fabs(x.f - y.f) <= allowed * std::max(1.0, std::min(scale, 1e3));
  }

  std::string text(const State& s) const { return print_state(evaluator_, s.data()); }

  void violate(std::string law, std::string counterexample) {
    std::vector<Violation>& list = special_ ? report_.at_special : report_.violations;
    for (const Violation& v : list) {
      if (v.law == law) return;
    }
    list.push_back({std::move(law), std::move(counterexample)});
  }

  Evaluator evaluator_;
  const Monoid& monoid_;
  const LawOptions& options_;
  Random random_;
  std::vector<char> varies_;
  bool special_ = false;  // whether elements may hold inf and nan
  std::vector<char> position_;
  int64_t next_index_ = 0;
  State identity_;
  Report report_;
};

}  // namespace

std::string print_state(const Evaluator& evaluator, const Scalar* state) {
  constexpr int64_t kShown = 16;
  std::string out = "{";
  for (size_t c = 0; c < evaluator.monoid().components.size(); ++c) {
    const Component& component = evaluator.monoid().components[c];
    out += (c == 0 ? "" : ", ") + component.name + ": ";
    const int64_t count = evaluator.count(int(c));
    const bool list = !component.axes.empty();
    if (list) out += "[";
    for (int64_t p = 0; p < std::min(count, kShown); ++p) {
      out += (p == 0 ? "" : ", ") + print_value(component.kind, state[evaluator.offset(int(c)) + p]);
    }
    if (count > kShown) out += ", ...";
    if (list) out += "]";
  }
  return out + "}";
}

Report check_laws(const MonoidRef& monoid, const LawOptions& options) { return Check(monoid, options).run(); }

}  // namespace lemma::monoid
