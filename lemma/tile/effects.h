// Which buffers a statement touches itself; what its bodies do is theirs.
#pragma once

#include <set>

#include "lemma/tile/program.h"

namespace lemma::tile {

struct Effects {
  std::set<int> reads, writes, combines;  // what is combined into is written too
};
Effects effects(const Stmt& stmt);
// Of a block and all bodies in it.
Effects effects(const Block& block);

}  // namespace lemma::tile
