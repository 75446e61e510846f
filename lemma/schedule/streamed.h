// A streamed group taken apart: which member is the product, which of its sides runs along the stream, and what is
// folded over it.
#pragma once

#include <vector>

#include "lemma/schedule/contraction.h"
#include "lemma/schedule/schedule.h"

namespace lemma::schedule {

struct Streamed {
  const Member* member = nullptr;             // the product
  const tensor::Comprehension* node = nullptr;
  Contraction contraction;
  int stream = -1, row = -1;                  // loops; the row loop is the last of the other side
  int stream_index = -1;                      // of the product's node
  scalar::Expr point_factor, stream_factor;   // the contraction's factors, by what they run along
  view::Formula point_domain, stream_domain;
  std::vector<const Member*> reducing;        // members that fold over the stream
};

// The group must be streamed.
Streamed take_apart(const tensor::Graph& graph, const Group& group);

// The indices of a component beyond the block's points: the columns of a second product.
std::vector<int> columns_of(const Group& group, const Member& member, const tensor::Comprehension& node, size_t component);

// Whether a sum of a rescaled sum is a product of weights and columns: its factor does not use the row loop.
bool is_second_product(const Group& group, int row, const Member& member, const tensor::Comprehension& node, size_t component);

}  // namespace lemma::schedule
