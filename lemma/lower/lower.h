// From a graph and a schedule to a tile program: one kernel a group, in launch order.
#pragma once

#include "lemma/base/result.h"
#include "lemma/schedule/schedule.h"
#include "lemma/tensor/graph.h"
#include "lemma/tile/program.h"
#include "lemma/tile/target.h"

namespace lemma::lower {

// Unsupported where a stored type or a size cannot be carried out; the message names the node.
base::Result<tile::Program> lower(const tensor::Graph& graph, const schedule::Schedule& schedule,
                                  const tile::Target& target);

}  // namespace lemma::lower
