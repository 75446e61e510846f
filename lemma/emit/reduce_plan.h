// Which of a reduction's variables goes across lanes.
#pragma once

#include <vector>

#include "lemma/emit/body.h"
#include "lemma/emit/fold.h"
#include "lemma/emit/statements.h"

namespace lemma::emit {

// One reduction to write: some components of a statement, over the points they depend on.
struct ReduceTask {
  const tile::Reduce& reduce;
  const Fold& fold;
  std::vector<size_t> components;
  std::vector<tile::Range> points;
  BodyText body;               // roots: the steps of these components
  const RowPart* part = nullptr;
};

enum class ReduceForm { Scalar, PointLanes, ReduceLanes };
struct ReducePlan {
  ReduceForm form = ReduceForm::Scalar;
  tile::Var lane_var = -1;
};

ReducePlan plan_reduce(const Unit& unit, const ReduceTask& task);

}  // namespace lemma::emit
