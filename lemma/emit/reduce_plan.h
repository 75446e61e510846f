// Which of a reduction's variables goes across lanes.
#pragma once

#include <vector>

#include "lemma/emit/statements.h"
#include "lemma/emit/states.h"

namespace lemma::emit {

// One reduction to write: some components of a statement, over the points they depend on.
struct ReduceTask : FoldTask {
  const tile::Reduce& reduce;
  std::vector<tile::Range> points;
  const RowPart* part = nullptr;
};

enum class ReduceForm { Scalar, PointLanes, ReduceLanes };
struct ReducePlan {
  ReduceForm form = ReduceForm::Scalar;
  tile::Var lane_var = -1;
};

ReducePlan plan_reduce(const Unit& unit, const ReduceTask& task);

}  // namespace lemma::emit
