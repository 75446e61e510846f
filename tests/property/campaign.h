// Runs stages over many cases and reports each failure shrunk, with the program and how to replay it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/property/case.h"
#include "tests/property/stages.h"

namespace lemma::property {

struct Plan {
  Family family = Family::Wide;
  uint64_t seed = 1;          // of the first case
  uint64_t count = 100;       // 0: without end
  uint64_t step = 1;          // between seeds
  std::string stage;          // one stage; "": all
  uint64_t maths_share = 1;   // every which case passes the graph level's stages, and so on
  uint64_t tile_share = 1;
  uint64_t run_share = 1;
  size_t batch = 100;         // cases a translation unit
  int most_failures = 5;
  bool progress = false;      // a line a batch, to standard error
  bool reduce = true;
};

struct Report {
  uint64_t cases = 0, interpreted = 0, compiled = 0, refused = 0;
  double seconds = 0;
  double compiler_seconds = 0;           // of processor time, with the runs
  std::vector<std::string> failures;     // whole texts
};

Report run(const Plan& plan);

}  // namespace lemma::property
