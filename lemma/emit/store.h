// Writing values to buffers, one element or a group of lanes.
#pragma once

#include <optional>
#include <string>

#include "lemma/emit/body.h"
#include "lemma/emit/unit.h"

namespace lemma::emit {

// `kind` is the value's kind; it is cast to the buffer's. With `combine` the element becomes op(element, value).
void store_scalar(Unit& unit, Frame& frame, const tile::Access& to, const Value& value, scalar::Kind kind,
                  std::optional<scalar::Op> combine);
void store_lanes(Unit& unit, Frame& frame, const tile::Access& to, const Value& value, scalar::Kind kind,
                 std::optional<scalar::Op> combine, const LaneMask& mask);

}  // namespace lemma::emit
