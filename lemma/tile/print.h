// The text of a tile program. Complete (everything in the structs but the names of what shares a name is there),
// deterministic, and read back by parse.h. docs/ir.md has the grammar.
#pragma once

#include <string>

#include "lemma/tile/program.h"

namespace lemma::tile {

std::string print(const Program& program);
std::string print(const Program& program, const Kernel& kernel);  // one kernel, for messages

}  // namespace lemma::tile
