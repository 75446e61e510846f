// What stands at each element of a tile, for drawings.
#pragma once

#include <vector>

#include "lemma/layout/draw.h"

namespace lemma::layout {

struct Cell {
  int64_t holders = 0;
  Index first{};  // the least index that holds the element, registers fastest
};

// By row-major rank.
base::Result<std::vector<Cell>> cells(const Layout& layout, const DrawOptions& options);

// A tile as tables: the last dimension across, the one before down, a table for each rank of the rest.
struct Tables {
  int64_t count = 1, rows = 1, columns = 1;
};
Tables tables(const Point& shape);
// "[2, *, *]", or nothing if there is only one.
std::string table_title(const Point& shape, int64_t table);

}  // namespace lemma::layout
