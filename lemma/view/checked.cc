#include "lemma/view/checked.h"

#include <algorithm>
#include <cmath>

namespace lemma::view {
namespace {

constexpr double kMagnitude = 0x1p60;
constexpr int kDepth = 48;
constexpr double kAtoms = 4096;
constexpr size_t kCases = 64;
constexpr double kWork = 512;   // cases before they are joined

std::optional<Form> small(Form form) {
  if (!is_small(form)) return std::nullopt;
  return form;
}

// The sum of the coefficients' absolute values, floors' parts apart.
double norm(const Form& form) {
  double out = 0;
  for (const Term& t : form.terms()) out += std::fabs(double(t.coefficient));
  return out;
}

// A floor's coefficients are at most its numerator's, and one more.
bool may_divide(const Form& a, const Form& b) { return norm(a) + (norm(a) + 2) * norm(b) < kMagnitude; }
bool may_multiply(const Form& a, const Form& b) {
  return norm(a) * norm(b) < kMagnitude && double(a.terms().size()) * double(b.terms().size()) <= kAtoms;
}

}  // namespace

Extent extent_of(const Form& form) {
  Extent out;
  for (const Term& t : form.terms()) {
    out.magnitude += std::fabs(double(t.coefficient));
    out.atoms += 1;
    for (const Atom& a : t.factors) {
      out.atoms += 1;
      if (a.kind != AtomKind::Floor) continue;
      const Extent n = extent_of(a.floor->numerator), d = extent_of(a.floor->denominator);
      out.magnitude = std::max({out.magnitude, n.magnitude, d.magnitude});
      out.depth = std::max({out.depth, n.depth + 1, d.depth + 1});
      out.atoms += n.atoms + d.atoms;
    }
  }
  return out;
}

bool is_small(const Form& form) {
  const Extent e = extent_of(form);
  return e.magnitude < kMagnitude && e.depth <= kDepth && e.atoms <= kAtoms;
}

std::optional<Form> checked_add(const Form& a, const Form& b) {
  if (norm(a) + norm(b) >= kMagnitude) return std::nullopt;
  return small(a + b);
}

std::optional<Form> checked_subtract(const Form& a, const Form& b) {
  if (norm(a) + norm(b) >= kMagnitude) return std::nullopt;
  return small(a - b);
}

std::optional<Form> checked_multiply(const Form& a, const Form& b) {
  if (!may_multiply(a, b)) return std::nullopt;
  return small(a * b);
}

std::optional<Form> checked_floor_div(const Form& a, const Form& b) {
  if (!may_divide(a, b)) return std::nullopt;
  return small(Form::floor_div(a, b));
}

std::optional<Form> checked_mod(const Form& a, const Form& b) {
  if (!may_divide(a, b) || double(a.terms().size() + 1) * double(b.terms().size()) > kAtoms) return std::nullopt;
  return small(Form::mod(a, b));
}

std::optional<Form> checked_ceil_div(const Form& a, const Form& b) {
  if (!may_divide(a, b) || norm(a) + norm(b) + 1 >= kMagnitude) return std::nullopt;
  return small(Form::ceil_div(a, b));
}

namespace {
std::optional<Formula> bounded(Formula f) {
  if (f.cases().size() > kCases) return std::nullopt;
  return f;
}
}  // namespace

std::optional<Formula> checked_and(const Formula& a, const Formula& b) {
  if (double(a.cases().size()) * double(b.cases().size()) > kWork) return std::nullopt;
  return bounded(a && b);
}

std::optional<Formula> checked_or(const Formula& a, const Formula& b) {
  if (a.cases().size() + b.cases().size() > 2 * kCases) return std::nullopt;
  return bounded(a || b);
}

// Negating n cases of k constraints can give k^n.
std::optional<Formula> checked_not(const Formula& a) {
  double cases = 1;
  for (const Conjunction& c : a.cases()) {
    double choices = 0;
    for (const Constraint& k : c) choices += k.relation == Relation::Zero ? 2 : 1;
    cases *= std::max(choices, 1.0);
    if (cases > kWork) return std::nullopt;
  }
  return bounded(!a);
}

}  // namespace lemma::view
