// Distributions of a tile over registers, lanes and warps.
#pragma once

#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

// Nested boxes along each dimension: `vector` neighbouring elements in a lane's registers, then the lanes of a warp,
// then the warps; the rest of the tile is repeated in registers. `order` names the dimensions, fastest first, and
// numbers vectors, lanes and warps. Vectors and lanes are powers of two; warps may have an odd factor that divides the
// tile's. Where the boxes are larger than the tile, the bits beyond it are broadcasts.
struct Blocks {
  Point vector;
  Point lanes;
  Point warps;
  std::vector<int> order;
};
base::Result<Layout> blocked(const Point& shape, const Blocks& blocks);

// An instruction's fragment repeated over a tile: neighbouring fragments go to the warps, `warps` of them along each
// dimension, and each warp's repetitions to more registers; both are numbered in `order`. A dimension's odd factors
// come after its powers of two (96 rows in fragments of 16 are 2 * 3 of them), warps before registers in each. Warps
// beyond the tile hold copies.
base::Result<Layout> repeat(const Layout& fragment, const Point& shape, const Point& warps,
                            const std::vector<int>& order);

}  // namespace lemma::layout
