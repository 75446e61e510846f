// Folds in full generality: components with axes of their own, updates with inner sums, components that leave out
// points, the K best of a row. States live in their buffers.
#pragma once

#include "lemma/emit/unit.h"

namespace lemma::emit {

void emit_general_reduce(Unit& unit, const tile::Reduce& reduce);
void emit_general_scan(Unit& unit, const tile::Scan& scan);
void emit_top_k(Unit& unit, const tile::Reduce& reduce);

}  // namespace lemma::emit
