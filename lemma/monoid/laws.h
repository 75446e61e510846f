// Whether a monoid is one: associativity, identity, and the commutativity and idempotence it claims, tested on random
// and special values (infinities, nan, zeros, ties, large and small). A test, not a proof; a counterexample is exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lemma/monoid/eval.h"

namespace lemma::monoid {

struct LawOptions {
  uint64_t seed = 1;
  int random_triples = 400;
  double tolerance = 1e-9;  // relative to the magnitudes that were combined
  SizeValues sizes = {};    // of size symbols in the state's axes
};

struct Violation {
  std::string law;            // "associativity", "identity", "commutativity", "idempotence"
  std::string counterexample; // in words, with the states it was found on
};

struct Report {
  std::vector<Violation> violations;  // found on finite elements; at most one a law
  std::vector<Violation> at_special;  // found only where an element holds inf or nan: 0 * inf breaks many a law there
  int cases = 0;                      // triples tried
  bool ok() const { return violations.empty(); }
};

Report check_laws(const MonoidRef& monoid, const LawOptions& options = {});

// "{value: 3, index: 1}"; at most a few positions of each component.
std::string print_state(const Evaluator& evaluator, const scalar::Scalar* state);

}  // namespace lemma::monoid
