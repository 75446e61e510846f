// Tiles and parts of them, and the statements over whole ones: each part's own positions become the statement's variables.
//
//     copy a[y*128 +: 128, k*64 +: 64] -> as   =>   copy (i < 128, j < 64) a[y*128 + i, k*64 + j] -> as[i, j]
//
// The text's short forms and the builder go through here, so that both say the same. Diagnostics have no place.
#pragma once

#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

// `base` holds a coordinate for every dimension of the buffer, to which each axis adds its own position. `stated`: the
// extent was written (`+:`), rather than being the buffer's own.
struct RegionAxis {
  int dimension = 0;
  view::Form extent;
  bool stated = false;
};
struct Region {
  int buffer = -1;
  std::vector<view::Form> base;
  std::vector<RegionAxis> axes;
  Access at(const std::vector<view::Form>& positions) const;
};
Region whole(int buffer, const Program& program);
Region transposed(Region region);   // its last two axes change places; there must be two

// New variables of the program over these extents, added to `out`; their positions.
std::vector<view::Form> fresh_points(Program& program, const std::vector<view::Form>& extents, std::vector<Range>& out);

// Without fill. Extents agree, or one side is a global buffer's whole dimension, which follows the other.
base::Result<Copy> copy_of(Program& program, const Region& from, const Region& to);
base::Result<Gemm> gemm_of(Program& program, const Region& acc, const Region& a, const Region& b, bool accumulate);
// The map that writes a constant everywhere.
Map fill_of(Program& program, const Region& to, scalar::Expr value);

}  // namespace lemma::tile
