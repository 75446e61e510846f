// A graph as text of the language, with its sugar removed: extents stated, functions inlined, domains written out, one
// equation a node, in order. The text parses back to an equal graph.
//
//     dim N in 0..4096, like 512
//     input x[N, 8] : bf16
//     m[i < N] = max(j < 8) x[i, j]
//     p[i < N, j < 8 : j <= i] = exp(x[i, j] - m[i])
//     output p
//
// Reads that need more than their coordinates say so: `x[i - 1 : 1 <= i] else 0` happens only under its guard,
// `raw(x[... : guard])` is its value with no say on where the node exists, `x[... : true]` is read wherever the node
// exists. Names are kept, in quotes where needed; two things of one name are told apart by a suffix.
#pragma once

#include <string>

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

std::string print(const Graph& graph);

// What the language calls a monoid of the library, `topk[8]`; empty for one that a program defines.
std::string library_name(const monoid::Monoid& monoid);

}  // namespace lemma::tensor
