// A form as the sum people write: c*(a % b) where b*floor(a / b) stands beside a, indices first, the constant last.
// Printing and conversion to expressions both read forms this way.
#pragma once

#include "lemma/view/form.h"

namespace lemma::view {

// coefficient * (product of factors), or coefficient * (numerator % denominator) where modulus is set.
struct Summand {
  int64_t coefficient = 0;
  std::vector<Atom> factors;                  // none: the constant
  std::shared_ptr<const FloorParts> modulus;  // then there are no factors
  bool is_constant() const { return factors.empty() && !modulus; }
};

std::vector<Summand> summands(const Form& form);

// The sides of form >= 0 as right <= left (or right < left where strict), all coefficients positive.
struct Sides {
  std::vector<Summand> left, right;
  bool strict = false;
};
Sides inequality_sides(const Form& form);
// Of form == 0 as left == right: the first index on the left, a lone 0 on the right.
Sides equality_sides(const Form& form);

}  // namespace lemma::view
