#include "lemma/rewrite/linear.h"

#include <cmath>

namespace lemma::rewrite {

using scalar::Expr;
using scalar::Op;

double Linear::of(Expr atom) const {
  for (const auto& [e, factor] : terms) {
    if (e == atom) return factor;
  }
  return 0;
}

void Linear::add(Expr atom, double factor) {
  for (auto& [e, f] : terms) {
    if (e == atom) {
      f += factor;
      return;
    }
  }
  terms.emplace_back(atom, factor);
}

std::optional<Linear> linear(Expr expr, double factor) {
  Linear out;
  int steps = 0;
  std::vector<std::pair<Expr, double>> stack{{expr, factor}};
  while (!stack.empty()) {
    const auto [e, f] = stack.back();
    stack.pop_back();
    if (++steps > 256) return std::nullopt;
    const auto constant = [](Expr c) { return c.is_const() && scalar::is_float(c.kind()) && std::isfinite(c.as_float()); };
    if (constant(e)) {
      out.constant += f * e.as_float();
    } else if (e.is(Op::Add) || e.is(Op::Sub)) {
      stack.push_back({e.arg(1), e.is(Op::Add) ? f : -f});
      stack.push_back({e.arg(0), f});
    } else if (e.is(Op::Neg)) {
      stack.push_back({e.arg(0), -f});
    } else if (e.is(Op::Mul) && constant(e.arg(0))) {
      stack.push_back({e.arg(1), f * e.arg(0).as_float()});
    } else if (e.is(Op::Mul) && constant(e.arg(1))) {
      stack.push_back({e.arg(0), f * e.arg(1).as_float()});
    } else if (e.is(Op::Div) && constant(e.arg(1)) && e.arg(1).as_float() != 0) {
      stack.push_back({e.arg(0), f / e.arg(1).as_float()});
    } else {
      out.add(e, f);
    }
  }
  return out;
}

namespace {
bool close(double a, double b) { return a == b || std::fabs(a - b) <= 1e-12 * std::fmax(std::fabs(a), std::fabs(b)); }
}  // namespace

bool proportional(const Linear& a, const Linear& b, double factor) {
  for (const auto& [e, f] : a.terms) {
    if (!close(f, factor * b.of(e))) return false;
  }
  for (const auto& [e, f] : b.terms) {
    if (!close(a.of(e), factor * f)) return false;
  }
  return close(a.constant, factor * b.constant);
}

}  // namespace lemma::rewrite
