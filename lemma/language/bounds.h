// Arithmetic on forms and formulas that a user's text may drive: every operation says no instead of overflowing or
// growing without end. And a small sound prover of f >= 0 over the box of a node's indices.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lemma/view/formula.h"

namespace lemma::language {

inline constexpr int64_t largest_literal = int64_t(1) << 40;  // in index and size positions

using MaybeForm = std::optional<view::Form>;
using MaybeFormula = std::optional<view::Formula>;

// Nothing where a coefficient could leave 2^60, or the form has more than 64 terms or floors nested deeper than 16.
MaybeForm add(const view::Form& a, const view::Form& b);
MaybeForm subtract(const view::Form& a, const view::Form& b);
MaybeForm multiply(const view::Form& a, const view::Form& b);
MaybeForm floor_div(const view::Form& a, const view::Form& b);
MaybeForm modulo(const view::Form& a, const view::Form& b);
MaybeForm substitute(const view::Form& form, const view::Form::Substitution& f);

// Nothing where the result would have more than 64 cases or a case more than 64 constraints.
MaybeFormula both(const view::Formula& a, const view::Formula& b);
MaybeFormula either(const view::Formula& a, const view::Formula& b);
MaybeFormula negation(const view::Formula& a);
MaybeFormula substitute(const view::Formula& formula, const view::Form::Substitution& f);
MaybeFormula less(const view::Form& a, const view::Form& b);        // a < b
MaybeFormula less_equal(const view::Form& a, const view::Form& b);
MaybeFormula equal(const view::Form& a, const view::Form& b);

// Every point of `a` is one of `b`, seen from the formulas alone.
bool implies(const view::Formula& a, const view::Formula& b);

// What is known about a node's atoms. Sizes are at least `size_low`; an index lies in [0, extent); a read in
// [low, high) where both are stated.
struct Box {
  std::function<view::Form(int)> extent;
  std::function<int64_t(int)> size_low;
  std::function<std::optional<std::pair<view::Form, view::Form>>(int)> data;
};

// form >= 0 at every point of the box where `given` holds. Sound; says false where it does not know.
bool always_non_negative(const view::Form& form, const view::Formula& given, const Box& box);
bool always(const view::Formula& formula, const view::Formula& given, const Box& box);
// form < 0 somewhere, whatever the sizes, as long as no extent is 0. Sound for affine forms; false where it is not known.
bool sometimes_negative(const view::Form& form, const Box& box);

}  // namespace lemma::language
