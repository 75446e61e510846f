// What `lemma show --layout` says of the buffers that thread form has placed.
#pragma once

#include <string>

#include "lemma/base/result.h"
#include "lemma/tile/program.h"

namespace lemma::cli {

// A line for each placed buffer: its name, its layout and its bank conflicts.
std::string list_layouts(const tile::Program& program);

// One buffer: that line and the tile drawn as text, or the tile as SVG alone.
base::Result<std::string> draw_layout(const tile::Program& program, const std::string& buffer, bool svg);

}  // namespace lemma::cli
