// Thread form: a barrier stands wherever a statement touches what other threads may have written, or may still read,
// since the last one.
//
// Statements are in the flow of the whole block: branches and loops depend on nothing that differs between threads, so
// barriers may stand anywhere. What lies in registers is the thread's own. Rings are left to the loops that fill them
// (pipeline.h).
#pragma once

#include "lemma/tile/program.h"

namespace lemma::tile {

Program place_barriers(Program program);

}  // namespace lemma::tile
