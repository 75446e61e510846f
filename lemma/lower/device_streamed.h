// A streamed group under way on a device: what device_streamed.cc and device_rescaled.cc share.
#pragma once

#include "lemma/lower/stream_bounds.h"
#include "lemma/lower/tile_operand.h"
#include "lemma/schedule/device.h"

namespace lemma::lower {

// A sum that is a product of weights and columns.
struct SecondProduct {
  size_t component = 0;
  int column = -1;  // loop
  TileOperand columns;
  bool unread = false;  // copied with stream points that no row of the tile reads, which are to be 0
};

struct DeviceStreamed {
  DeviceStreamed(Context& c, const schedule::Group& g) : context(c), group(g), parts(schedule::take_apart(c.graph, g)) {}
  Context& context;
  const schedule::Group& group;
  const schedule::Streamed parts;
  schedule::StreamTiles tiles;
  Flat k;
  tile::Kernel kernel;
  std::vector<LoopPlace> places;
  TileOperand points, stream;
  Home product;
  bool score_in_place = false;                                  // one member reads the product, as its score
  bool scale_with_score = false;                                // and multiplies it by its scale there
  std::map<int, std::vector<Home>> states;                      // of reducing members, by node
  std::map<int, std::vector<SecondProduct>> second;
  StreamBounds bounds;
  bool bounded = false;                                         // some domain is not always true
  bool diagonal = false;                                        // stream <= row, and both end together
  std::optional<Form> columns_begin, columns_end;               // columns are 0 before and from here on
  std::optional<view::Formula> inside;                          // no point of the turn is absent; nothing: not known
  Form stream_base;
};

// The forms of a node's indices at the current places, statement variables left out.
std::vector<Form> bases(const DeviceStreamed& s, const schedule::Member& m);

// Flags of the stream points that some row of the tile reads; their buffer.
int vote(DeviceStreamed& s, const schedule::Member& m, tile::Block& block);

// Where the product's single reader is a rescaled sum whose score it is, scores take its place, and its scale goes with
// them.
void match_score(DeviceStreamed& s);

// Folds a turn of the stream into the states of a rescaled sum.
void fold_rescaled(DeviceStreamed& s, const schedule::Member& m, tile::Block& block);

}  // namespace lemma::lower
