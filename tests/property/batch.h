// Many cases in one translation unit: emit_c's units share one prelude, and what each defines is renamed by its number.
// The unit is compiled by a child process beside the caller, run in another (so that a crash or an endless loop is an
// outcome of one case), between pages nobody may touch, with outputs full of nan, and compared with the oracle there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/property/case.h"
#include "tests/property/stages.h"

namespace lemma::property {

// How a unit is built: the target and the compiler's flags.
struct Build {
  std::string name;
  tile::Target target;
  std::string flags;
};
// Plain C, then every vector width this machine has.
std::vector<Build> builds();

class Batch {
 public:
  explicit Batch(Build build);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Compiles the case down to C text; a refusal or the oracle's failure is the outcome.
  Failure add(Case c);
  // Starts the C compiler.
  void start();
  // Waits for it, runs every case: the failures, with their cases.
  std::vector<std::pair<Case, Failure>> finish();

  size_t size() const;
  double compile_seconds() const;   // of processor time

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One case alone.
Failure check_c(const Case& c, const Build& build);

}  // namespace lemma::property
