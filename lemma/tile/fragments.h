// Fragments in registers: which accesses of a statement follow a distribution of its points over threads.
//
// A statement over points is carried out by a *distribution* of its box: every thread visits the points that its
// registers stand for. A fragment that is read or written at exactly the points' own variables, some of them left out, is
// then at hand in the same thread if its layout is the projection of that distribution.
#pragma once

#include <optional>
#include <vector>

#include "lemma/layout/layout.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

// Whether the buffer is a fragment that a pass has placed in registers.
bool in_registers(const Buffer& buffer);

// The constant extents of a box or buffer; nothing where one is not constant, or is no power of two.
std::optional<layout::Point> regular_shape(const std::vector<view::Form>& extents);
std::optional<layout::Point> regular_shape(const std::vector<Range>& ranges);

// Per dimension of the access, the point whose variable it is; nothing where a coordinate is anything else or a point
// stands twice.
std::optional<std::vector<int>> point_dimensions(const Access& access, const std::vector<Range>& points);

// What a distribution of the points is to a buffer with these point_dimensions: the other points left out.
layout::Layout project(const layout::Layout& points, const std::vector<int>& dimensions);

// The distribution of the points under which a buffer that uses all of them, with this layout, is at hand.
layout::Layout distribution_of(const layout::Layout& buffer, const std::vector<int>& dimensions);

// The register digits of the points' distribution that are those of the projection, in order.
std::vector<int> projected_registers(const layout::Layout& points, const std::vector<int>& dimensions);

}  // namespace lemma::tile
