// The f64 oracle, and for tile programs the block interpreter, as the commands use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "lemma/base/result.h"
#include "lemma/driver/compare.h"
#include "lemma/driver/execute.h"

namespace lemma::cli {

// All outputs, rounded to their types; a tile program's by the block interpreter, which prints to standard error.
base::Result<std::vector<runtime::Named>> interpret(const Context& context, const Source& source,
                                                    const ProgramOptions& options, const driver::Arguments& arguments);

// What the oracle says of every output: whole while that takes at most `most_operations`, else at sampled positions.
struct Expected {
  std::string output;
  std::vector<int64_t> extents;
  std::vector<driver::Reference> references;
  bool whole = true;
};
struct SampleOptions {
  double most_operations = 1e9;
  int64_t points = 4096;
  std::vector<int64_t> tiles;   // tile sizes whose edges are looked at
  uint64_t seed = 0;
};
base::Result<std::vector<Expected>> expect(const Context& context, const Source& source, const ProgramOptions& program,
                                           const driver::Arguments& arguments,
                                           const SampleOptions& options);

}  // namespace lemma::cli
