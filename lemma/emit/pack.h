// Writing into panels: columns are taken a panel at a time, so that a panel's row is whole vectors side by side; columns
// and rows that fill up the last panel become zero.
#pragma once

#include "lemma/emit/unit.h"

namespace lemma::emit {

// Writes the map if its one store goes to panels in a form this knows; else the map is written like any other.
bool emit_packing(Unit& unit, const tile::Map& map);

}  // namespace lemma::emit
