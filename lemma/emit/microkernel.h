// Register-blocked products.
#pragma once

#include <string>

#include "lemma/emit/unit.h"

namespace lemma::emit {

// Writes the product through register tiles, or says why it cannot.
bool emit_register_tiles(Unit& unit, const tile::Gemm& gemm, std::string& reason);

}  // namespace lemma::emit
