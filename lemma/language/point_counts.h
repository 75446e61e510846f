// How many points and elements a program may state: what counts them must stay a form.
#pragma once

#include "lemma/base/result.h"
#include "lemma/tensor/graph.h"

namespace lemma::language {

// The product of the extents of every value and every space of indices has coefficients below 2^50, so that offsets,
// bytes and tiles are forms as well.
base::Result<void> check_point_counts(const tensor::Graph& graph);

}  // namespace lemma::language
