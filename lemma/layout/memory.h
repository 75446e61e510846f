// Memory layouts: the offset of an element of a tile, in elements. Without padding: every offset below the tile's size
// holds one element.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

base::Result<Layout> row_major(const Point& shape);

// Dense, the dimensions in `order`, fastest first; row-major is {rank-1, ..., 0}.
base::Result<Layout> dense(const Point& shape, const std::vector<int>& order);

// Blocks of `columns` columns side by side, each row-major over all other dimensions: the image of a tile that is wider
// than a swizzle span, and of one whose row is no power of two. `columns` is a power of two that divides the row.
base::Result<Layout> slabs(const Point& shape, int32_t columns);

// Pieces one after the other, each dense in `order`: the first offsets are all bits, whatever the shape.
base::Result<Layout> piecewise(const Point& shape, const std::vector<int>& order);

// masks[j] names the offset digits whose bits are flipped by the bit of offset digit j. Neither a digit named in a mask
// nor one with a mask has odd radix, and a digit with a mask stands in none, so the swizzle is its own inverse.
using Swizzle = std::vector<uint64_t>;
Layout swizzled(Layout memory, const Swizzle& swizzle);

// The exclusive or that bulk tensor copies and matrix units know: byte address bits [4, 4 + log2(span/16)) are flipped
// by those from bit 7 on; spans of 32, 64 and 128 bytes. The tile stands in slabs whose rows are the span.
base::Result<Layout> span_swizzled(const Point& shape, int element_bits, int span_bytes);

// The span if `memory` is that layout; 0 if it is plain slabs of rows of 16 bytes or more; nothing if neither.
std::optional<int> recognise_span(const Layout& memory, int element_bits);

}  // namespace lemma::layout
