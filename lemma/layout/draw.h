// Layouts drawn: which lane and register holds each element of a distribution, at which offset and in which bank a
// memory layout has it. Tiles of more than two dimensions are drawn as a table for each index of the others.
#pragma once

#include <string>

#include "lemma/layout/layout.h"

namespace lemma::layout {

struct DrawOptions {
  int element_bits = 16;   // for banks
  int64_t most = 1 << 16;  // elements; larger tiles are refused
};

// A table, columns across. Cells are lane:register (`T4:0`, with a warp `W1 T4:0`), or offsets; `+` marks elements that
// others hold too, of which the least index is shown, and `-` those that nobody holds.
base::Result<std::string> draw_text(const Layout& layout, const DrawOptions& options = {});

// The same as SVG: colours by lane and the register in each cell, or colours by bank and the offset.
base::Result<std::string> draw_svg(const Layout& layout, const DrawOptions& options = {});

}  // namespace lemma::layout
