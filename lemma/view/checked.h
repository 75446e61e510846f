// Arithmetic for forms made of user text: nothing where coefficients could leave 64 bits, or where the form grows
// beyond what walks that recurse into floors may meet. Forms that pass are small; Form's own operators on a few of them
// are safe.
#pragma once

#include <optional>

#include "lemma/view/form.h"

namespace lemma::view {

struct Extent {
  double magnitude = 0;  // sum of the coefficients' absolute values, floors' parts included
  int depth = 0;         // of nested floors
  double atoms = 0;      // written out
};
Extent extent_of(const Form& form);
bool is_small(const Form& form);  // magnitude below 2^60, depth up to 48, up to 4096 atoms

std::optional<Form> checked_add(const Form& a, const Form& b);
std::optional<Form> checked_subtract(const Form& a, const Form& b);
std::optional<Form> checked_multiply(const Form& a, const Form& b);
std::optional<Form> checked_floor_div(const Form& a, const Form& b);
std::optional<Form> checked_mod(const Form& a, const Form& b);
std::optional<Form> checked_ceil_div(const Form& a, const Form& b);

}  // namespace lemma::view
