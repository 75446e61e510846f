// Layouts: where the elements of a tile lie. A *distribution* says which element a register of a lane of a warp holds,
// a *memory layout* which element lies at an offset; both are maps from input indices to coordinates of the tile.
//
// An index along an axis is written in mixed radix, least significant digit first, and every digit has a step:
//   - a digit of radix 2 is a bit. The steps of all bits of all axes combine by exclusive or: inside a *piece*, the box
//     whose sides are the largest powers of two that divide the tile's, a layout is linear over GF(2). A step of a bit
//     lies inside the piece.
//   - a digit of odd radix chooses among pieces: value times step is added. Its step is a multiple of the piece along
//     one dimension, so a side of 96 = 32 * 3 has five bits and one digit of radix 3.
//   - a step of zeros is a *broadcast*: the elements do not depend on the digit.
// Along one dimension the odd digits tile without overlap: sorted by step, each step is a multiple of the one before
// times its radix, and the last ends within the tile. So all coordinates that occur are inside the tile, and whether a
// layout is injective or surjective is a question of rank.
//
// Layouts are plain values; equality is structural. That two layouts hold the same elements in other registers is
// convert.h's question.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::layout {

enum class Axis : uint8_t { Register, Lane, Warp, Offset };
inline constexpr std::array<Axis, 4> axes = {Axis::Register, Axis::Lane, Axis::Warp, Axis::Offset};
std::string_view name(Axis axis);  // "register"

using Point = std::vector<int32_t>;    // a number per dimension of the tile, slowest dimension first
using Index = std::array<int64_t, 4>;  // a number per axis

struct Digit {
  int32_t radix = 2;  // 2, or odd and at least 3
  Point step;
  bool operator==(const Digit&) const = default;
};

struct Layout {
  Point shape;                               // extents of the tile
  std::array<std::vector<Digit>, 4> digits;  // by axis, least significant first

  const std::vector<Digit>& operator[](Axis axis) const { return digits[size_t(axis)]; }
  std::vector<Digit>& operator[](Axis axis) { return digits[size_t(axis)]; }
  bool operator==(const Layout&) const = default;
};

inline constexpr int64_t max_size = int64_t(1) << 30;  // elements of a tile, and indices of a layout
inline constexpr size_t max_rank = 8;

// Whether the invariants above hold; every function of this folder that makes a layout keeps them.
base::Result<void> validate(const Layout& layout);

size_t hash(const Layout& layout);

int64_t size(const Point& shape);                // elements of a tile of this shape
int64_t count(const Layout& layout, Axis axis);  // indices along an axis
int64_t count(const Layout& layout);             // along all axes

// The coordinate of an index; every number below the count of its axis.
Point at(const Layout& layout, const Index& index);
// The same for one number: register + registers * (lane + lanes * (warp + warps * offset)).
Point at(const Layout& layout, int64_t flat);
Index unflatten(const Layout& layout, int64_t flat);

// Row-major rank of a point, the last dimension fastest; and back.
int64_t flatten(const Point& shape, const Point& point);
Point point_of(const Point& shape, int64_t rank);

// The power of two in an extent: the side of a piece.
inline int32_t piece(int32_t extent) { return extent & -extent; }
inline bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
// log2 of the largest power of two that divides a positive n.
inline int bits_of(int64_t n) { return __builtin_ctzll(uint64_t(n)); }

bool is_zero(const Point& step);

}  // namespace lemma::layout
