// Tries a rule on random expressions and values; for tests.
#pragma once

#include <optional>
#include <string>

#include "lemma/scalar/random_expr.h"
#include "lemma/scalar/rule.h"

namespace lemma::scalar::test {

struct RuleCheck {
  int tried = 0;                       // how many expressions the rule applied to
  std::optional<std::string> failure;  // where left and right side differ more than the claim allows
};

// Exact: equal bits (nan apart) in both arithmetics for all special values. Real: equal up to rounding in f64 for values
// whose operations neither overflow nor underflow, inf and nan included. Finite: the same for finite values.
RuleCheck check_rule(const Rule& rule, uint64_t seed, int trials);

}  // namespace lemma::scalar::test
