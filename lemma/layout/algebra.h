// The algebra of layouts. All of it is on digits: where a result would not be a layout (an offset whose carries cross a
// piece), the function says so.
#pragma once

#include <optional>
#include <vector>

#include "lemma/layout/layout.h"

namespace lemma::layout {

// Dimension d of the result is dimension dimensions[d] of the layout; a permutation.
base::Result<Layout> transpose(Layout layout, const std::vector<int>& dimensions);

// The layout of what is left of a tile when dimension d is reduced: digits that moved along d alone are broadcasts.
base::Result<Layout> slice(Layout layout, int d);

// Without the register digits that are broadcasts.
Layout drop_register_broadcasts(Layout layout);

// Each element of `outer` replaced by a tile of `inner`: shapes multiply, inner digits come first on every axis, and
//     product(inner, outer)(i + count(inner)*o) = inner(i) + shape(inner) * outer(o)    for every axis' i, o.
// Along a dimension where inner's extent is no power of two, outer's must be odd.
base::Result<Layout> product(const Layout& inner, const Layout& outer);

// The C with product(prefix, C) == layout, if there is one: whether the layout is made of whole instructions.
std::optional<Layout> divide(const Layout& layout, const Layout& prefix);

// The indices of a layout as a tile: dimensions from slow to fast [offset] warp lane register, where an axis that is no
// power of two times one odd number becomes several. Axes without digits have extent 1; a memory layout has only its
// offset, a distribution no offset. Its row-major rank is the flat index of layout::at.
Point index_shape(const Layout& layout);

// compose(outer, inner)(i) = outer(flatten(inner.shape, inner(i))): the rank of inner's point is outer's flat index.
// Both must count alike: the bits and odd digits of inner's shape are those of outer's indices, in order.
base::Result<Layout> compose(const Layout& outer, const Layout& inner);

// From the row-major rank of a point (the axis Offset) to the flat index of the layout, as a point of
// index_shape(layout): compose(layout, inverse(layout)) is row_major(layout.shape). The layout must be surjective.
// Where several indices hold an element the answer is the one whose redundant digits (query.h) are 0: registers are
// preferred to lanes, lanes to warps, and low bits to high ones.
base::Result<Layout> inverse(const Layout& layout);

// Which index of `memory` each index of `distribution` meets: compose(inverse(memory), distribution), for two layouts
// of one tile. flatten(result.shape, at(result, i)) is the offset.
base::Result<Layout> relate(const Layout& memory, const Layout& distribution);

}  // namespace lemma::layout
