// Arithmetic for forms and logic for formulas made of user text: nothing where coefficients could leave 64 bits, where a
// form grows beyond what walks that recurse into floors may meet, or where a formula has too many cases (a disjunctive
// normal form can grow exponentially). Forms that pass are small; Form's own operators on a few of them are safe.
#pragma once

#include <optional>

#include "lemma/view/formula.h"

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

// Up to 64 cases.
std::optional<Formula> checked_and(const Formula& a, const Formula& b);
std::optional<Formula> checked_or(const Formula& a, const Formula& b);
std::optional<Formula> checked_not(const Formula& a);

}  // namespace lemma::view
