// The tables behind prelude.cc. A piece is found by the names it defines; `@` in a generic piece stands for the suffix
// f32 (scalars) or vf (vectors), $F $I $U for the types, so that a lane and a scalar compute the same value.
#pragma once

#include <span>
#include <string_view>

namespace lemma::emit {

struct Piece {
  std::string_view text;
  bool generic = false;
};

std::span<const Piece> basic_pieces();   // types, conversions, integer and storage functions
std::span<const Piece> math_pieces();    // elementary functions
std::span<const Piece> product_pieces(); // register tiles
std::string_view prelude_head();         // lane count and vector types; takes LM_MAX_BYTES

}  // namespace lemma::emit
