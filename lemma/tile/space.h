// What the spaces of buffers have in common.
#pragma once

#include "lemma/tile/program.h"

namespace lemma::tile {

// What a call passes.
inline bool is_parameter(Space s) { return s == Space::Input || s == Space::Output || s == Space::Update; }
// What every block sees.
inline bool is_global(Space s) { return is_parameter(s) || s == Space::Scratch; }
inline bool is_local(Space s) { return !is_global(s); }

}  // namespace lemma::tile
