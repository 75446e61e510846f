// What follows a product while its tile is near: the product's own scale and stores, then the maps over its points.
#pragma once

#include <functional>

#include "lemma/lower/member.h"
#include "lemma/schedule/contraction.h"

namespace lemma::lower {

struct ProductTile {
  const schedule::Group& group;
  const schedule::Member& member;
  const tensor::Comprehension& node;
  const schedule::Contraction& contraction;
  std::function<std::vector<Form>(const Form& row, const Form& column)> forms;  // of the node's indices, at a place of the block
  std::function<tile::Access(const Form& row, const Form& column)> access;      // the product there
  int buffer = -1;              // that holds it, where members read it
  bool stored = false;          // it lies in its output already
  Form capacity_rows = {}, capacity_columns = {};
  tile::Space space = tile::Space::Local;  // of what members keep
  std::function<std::vector<Edge>(tile::Var row, tile::Var column)> edges = {};  // where a tile sticks out
};

// Over `rows` x `columns` places from row `row0` on. Buffers come to life in `outer`.
void lower_epilogue(Context& context, const ProductTile& product, const Form& row0, const Form& rows, const Form& columns,
                    tile::Block& outer, tile::Block& block);

}  // namespace lemma::lower
