// Bringing one comprehension to the indices and reads of another, to compare their bodies.
#pragma once

#include <optional>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

// What `node` computes, said over the indices and reads of `into`.
struct Aligned {
  std::vector<scalar::Expr> body;
  view::Formula domain;
};

// index[i]: what index i of `node` is in `into`. Nothing if `into` lacks one of the reads.
std::optional<Aligned> align(const tensor::Comprehension& node, const tensor::Comprehension& into,
                             const std::vector<int>& index);

// The reads of `value`, if there is one and it is unguarded and at distinct plain points of the node; else nothing.
std::optional<int> read_at_points(const tensor::Comprehension& node, tensor::Value value);

// index for the points of `producer` as the read sees them, -1 for its other indices.
std::vector<int> points_seen(const tensor::Comprehension& producer, int output, const tensor::Comprehension& reader, int read);

}  // namespace lemma::rewrite
