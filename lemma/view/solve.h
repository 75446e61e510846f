// Questions about formulas over integers: is one empty, does one imply another, what bounds an index, what solves an
// equality. isl decides the affine part (with floors by constants) exactly.
//
// A question ranges over all atoms at once: indices, sizes and data are integers within their ranges (sizes multiples
// of their divisors); equal atoms are equal. Products and floors by sizes are opaque integers about which a few sound
// facts are added: their ranges, d*floor(n/d) <= n < d*floor(n/d) + d, and the given constraints times sizes. So Yes
// is always right, and No (there are values at which it fails) is said only where nothing opaque took part. Work is
// bounded; what takes too long is Unknown.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lemma/view/formula.h"

namespace lemma::view {

enum class Answer : uint8_t { No, Yes, Unknown };

using Divisors = std::function<int64_t(int size)>;  // at least 1

Answer empty(const Formula& formula, const Ranges& ranges, const Divisors& divisors = {});
// Wherever `given` holds, so does `claim`.
Answer implies(const Formula& given, const Formula& claim, const Ranges& ranges, const Divisors& divisors = {});

// The formula with its forms simplified, and without the constraints and cases that the ranges decide.
Formula simplify(const Formula& formula, const Ranges& ranges);

// The part of a formula that hangs on no data: weaker, and known before any read.
Formula without_data(const Formula& formula);

// The values of an index a conjunction leaves: every lower <= index < every upper.
struct IndexBounds {
  std::vector<Form> lower;  // inclusive
  std::vector<Form> upper;  // exclusive
  Conjunction rest;         // the constraints that say nothing of this kind, among them those free of the index
  bool exact = true;        // no constraint of `rest` mentions the index
};
IndexBounds bounds(const Conjunction& conjunction, int index);
// Of a formula of one case; nothing for others.
std::optional<IndexBounds> bounds(const Formula& formula, int index);

// Where form == 0 determines the index: its value, and the conditions under which it is one (divisibility, and
// 0 <= value < extent). Nothing where the index does not stand alone with a constant coefficient.
struct Solution {
  Form value;
  Formula conditions;
};
std::optional<Solution> solve_equality(const Form& form, int index, const Form& extent);

}  // namespace lemma::view
