// The machine at hand and machines by name, as targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/tile/target.h"

namespace lemma::runtime {

// What the processor and the system say they can do. Features are named to the compiler one by one, never as
// -march=native, so that a cached kernel's key tells where it may run.
tile::Target host_target();

// "host", or one of target_names().
base::Result<tile::Target> named_target(std::string_view name);
std::vector<std::string> target_names();

// Whether this process can run code for a target; if not, the feature it lacks.
base::Result<void> runs_here(const tile::Target& target);

int core_count();  // that this process may use

}  // namespace lemma::runtime
