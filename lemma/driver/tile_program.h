// Tile programs written by hand, as the pipeline's input. No graph stands behind them, so their sizes, inputs and outputs
// are given to the rest of the driver as one: a graph whose outputs all hold 0, of which only names, types and extents
// mean anything.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lemma/driver/execute.h"

namespace lemma::driver {

// Whether a text is a tile program: its first word is `program`.
bool is_tile_text(std::string_view text);

// The graph that stands for the program's sizes, inputs and outputs.
base::Result<tensor::Graph> interface_of(const tile::Program& program);

// The pipeline from the tile program on. `source` and `derived` of the result are the interface.
base::Result<Compiled> compile_tiles(tile::Program program, const CompileOptions& options, const Trace& trace = {});

// Every output by the block interpreter, which says where the program breaks a rule. `print` hears what it prints.
base::Result<std::vector<runtime::Named>> interpret_tiles(const Compiled& compiled, const Arguments& arguments,
                                                          const std::function<void(const std::string&)>& print = {});

}  // namespace lemma::driver
