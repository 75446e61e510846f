// A factor of a product as a tile of constant extents in shared memory: copied where it is a plain read, evaluated by a
// map where it is not. Off its domain and beyond its ends it is 0. The tile lies as memory runs.
#pragma once

#include "lemma/lower/operand.h"

namespace lemma::lower {

struct TileOperand {
  const tensor::Comprehension* node = nullptr;
  Expr factor;
  view::Formula domain;
  Flat side, depth;                 // the points it has alone, and the reduce points
  int64_t side_tile = 0, depth_tile = 0;
  scalar::DType type = scalar::DType::F32;
  bool side_last = false;           // memory runs along the side's points
  std::optional<int> plain = {};    // the read that it is
  int buffer = -1;

  // The tile's element at these positions.
  tile::Access access(const Form& side_at, const Form& depth_at) const;
};

// Declares the tile's buffer, called after what it copies or else `name`; `side_last` where the factor's reads do not tell.
TileOperand plan_operand(Context& context, const std::string& name, TileOperand operand, bool side_last, tile::Block& block);

// Where the tile is taken from: `forms` are the node's other indices.
struct TilePlace {
  std::vector<Form> forms;
  Form side_base, depth_base;
  std::optional<Form> depth_begin = {}, depth_end = {};  // reduce points before and from here on are 0 too
};

tile::Stmt load_operand(Context& context, const TileOperand& operand, const TilePlace& place);

// The same by a map, with 0 also where `used`, a tile of flags along the depth, is false.
tile::Map evaluate_operand(Context& context, const TileOperand& operand, const TilePlace& place, std::optional<int> used = {});

}  // namespace lemma::lower
