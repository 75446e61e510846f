// Specialises a graph: named sizes become constants in every extent, form, formula and expression.
#pragma once

#include <span>

#include "lemma/base/result.h"
#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// Sizes that no binding names stay symbolic. Invalid: an unknown name, two unlike values for one size, a value outside
// a size's stated range or divisor, a negative extent, an iteration space or value of more than 2^62 elements. Size
// ids stay what they are; Size::value records the binding.
base::Result<Graph> bind(const Graph& graph, std::span<const Binding> bindings);

// The names of the sizes that have no value yet.
std::vector<std::string> unbound_sizes(const Graph& graph);

}  // namespace lemma::tensor
