// A real expression as a sum of atoms with constant factors: 2*(s - m) + s*0.5 is 2.5*s - 2*m.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "lemma/scalar/expr.h"

namespace lemma::rewrite {

struct Linear {
  std::vector<std::pair<scalar::Expr, double>> terms;  // in order of first occurrence, each atom once; zeros stay
  double constant = 0;

  double of(scalar::Expr atom) const;
  void add(scalar::Expr atom, double factor);
};

// Nothing beyond 256 operations.
std::optional<Linear> linear(scalar::Expr expr, double factor = 1);

// Whether a = factor * b term by term, up to the rounding of constants.
bool proportional(const Linear& a, const Linear& b, double factor);

}  // namespace lemma::rewrite
