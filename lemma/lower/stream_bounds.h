// What a domain says of a stream for a whole tile of rows: where it begins and ends, whether every point between has a
// row that reads it, and when a tile of the stream lies inside the domain for all rows.
#pragma once

#include <optional>

#include "lemma/lower/context.h"

namespace lemma::lower {

struct StreamBounds {
  Form begin, end;                // begin <= stream point < end holds where any row of the tile is present
  bool exact = true;              // every point between is read by some row, from the first tile's beginning on
  bool contiguous = true;         // the same, but for tiles that begin before `begin` or end behind `end`
  bool upper_follows_row = false; // later rows end later: their blocks are longer
  // After place_tile: the condition under which no row of the tile and no point of the stream tile is absent. Nothing
  // where the domain depends on data that varies inside the tile.
  std::optional<view::Formula> inside;
  std::vector<tile::Access> inside_reads;

  void place_tile(Context& context, const Form& begin_of_tile, const Form& count);

 private:
  friend StreamBounds stream_bounds(Context&, const schedule::Group&, const std::vector<const schedule::Member*>&, int,
                                    int, const std::vector<LoopPlace>&, tile::Block&);
  struct Piece {
    Form rest;                    // at the row where the constraint is tightest
    int64_t stream = 0;           // coefficient of the stream point
  };
  bool known_ = true;             // every constraint is affine in row and stream and uniform otherwise
  std::vector<std::vector<Piece>> cases_;
};

// Uniform data (lengths of a batch) is read once a block by lets appended to `block`.
StreamBounds stream_bounds(Context& context, const schedule::Group& group,
                           const std::vector<const schedule::Member*>& reducing, int stream, int row,
                           const std::vector<LoopPlace>& places, tile::Block& block);

}  // namespace lemma::lower
