// What devices ask of schedules: tiles of constant extents that fit in workgroup memory, and few buffers a kernel.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lemma/schedule/streamed.h"

namespace lemma::schedule {

// The greatest value of an extent, where it is known.
std::optional<int64_t> bound(const tensor::Graph& graph, const view::Form& extent);

// Whether tiles of this size fill the extent without a rest, whatever the sizes are. An extent of 0 has no tiles.
bool is_multiple(const tensor::Graph& graph, const view::Form& extent, int64_t tile);

// The same where there is a tile whatever the extent is: then it may not be 0.
bool fills_tiles(const tensor::Graph& graph, const view::Form& extent, int64_t tile);

// What a factor is stored as in a tile: its source's type where matrix units multiply it, else its kind's.
scalar::DType tile_type(const tensor::Graph& graph, const tensor::Comprehension& node, scalar::Expr factor, const tile::Target& target);

// Too few results for tiles: better a reduction for each, which all threads share.
bool is_small_product(const tensor::Graph& graph, const tensor::Comprehension& node, const Contraction& contraction);

struct ProductTiles {
  int64_t rows = 0, columns = 0, depth = 0;
  scalar::DType operand = scalar::DType::F32;
};
ProductTiles product_tiles(const tensor::Graph& graph, const tensor::Comprehension& node, const Contraction& contraction,
                           const Tiles& wanted, const tile::Target& target);

struct StreamTiles {
  int64_t rows = 0, stream = 0, depth = 0;
  bool whole_depth = false;                    // one slice of `depth` holds all reduce points
  scalar::DType operand = scalar::DType::F32;  // of the first product
  std::map<int, int64_t> columns;              // of second products, by their loop
};
// Nothing, with a reason, where there are none.
std::optional<StreamTiles> stream_tiles(const tensor::Graph& graph, const Group& group, const Streamed& parts,
                                        const tile::Target& target, std::string* reason = nullptr);

// Why a group that may grow no further cannot be one kernel of the device; nothing if it can.
std::optional<std::string> device_refusal(const tensor::Graph& graph, const Group& group, const tile::Target& target);

}  // namespace lemma::schedule
