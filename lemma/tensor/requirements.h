// What must hold of the sizes so that no read leaves its source.
//
// Texts may be written whose reads lie inside only for some sizes: x[i % N] needs N > 0, x[i] over i < M needs M <= N.
// What is known only at a call is asked there, before anything is read.
#pragma once

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

struct Requirement {
  view::Formula condition;  // over sizes
  std::string message;      // of a call at which it does not hold: names the read
};

struct Requirements {
  std::vector<Requirement> list;
  // False: the sizes alone do not tell of every read; check_bounds, once sizes are bound, does.
  bool complete = true;
};

// Of the nodes that outputs need. Vacuous ones (what the domain, or that there are points, already says) are left out.
Requirements requirements(const Graph& graph);

}  // namespace lemma::tensor
