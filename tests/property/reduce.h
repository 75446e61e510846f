// Shrinks a failing case while it still fails in the same stage: fewer outputs, producers cut off into inputs, smaller
// sizes, no domains and guards, simpler bodies, coordinates and monoids.
#pragma once

#include <functional>

#include "tests/property/case.h"
#include "tests/property/stages.h"

namespace lemma::property {

using Check = std::function<Failure(const Case&)>;

struct Reduced {
  Case c;
  Failure failure;
  int attempts = 0;
};

// `check` fails on `c`. At most this many further checks are made.
Reduced reduce(const Case& c, const Check& check, int most_attempts = 400);

}  // namespace lemma::property
