// Whether a graph is one: its shape, and that its reads are possible.
#pragma once

#include "lemma/base/result.h"
#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// The shape: order of nodes, ranks, kinds, ids, roles, which indices each component, body and output may hang on.
// Holds between passes; definitions are looked into.
base::Result<void> validate(const Graph& graph);

// Every read lies inside its source, and in its source's domain, wherever it happens. Says which read may not, with a
// point where one is found, or that it cannot be proved. Sizes may be symbolic; bound ones prove more.
base::Result<void> check_bounds(const Graph& graph);

}  // namespace lemma::tensor
