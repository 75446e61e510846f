// Structural equality of graphs: the same inputs, sizes and outputs by name, and behind the outputs the same nodes up to
// their numbering and names, the names of indices, the numbering of reads, and definitions.
#pragma once

#include <string>

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// "" if they are equal, else the first difference, as a sentence.
std::string difference(const Graph& a, const Graph& b);
inline bool equal(const Graph& a, const Graph& b) { return difference(a, b).empty(); }

}  // namespace lemma::tensor
