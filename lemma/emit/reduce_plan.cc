#include "lemma/emit/reduce_plan.h"

#include <algorithm>

namespace lemma::emit {

using tile::Access;
using tile::Range;
using tile::Var;

namespace {

bool too_short(const Unit& unit, const Range& r) {
  const auto n = r.extent.constant();
  return n && *n < std::max(2, unit.lanes() / 4);
}

bool wide(const ReduceTask& task) {
  for (size_t c : task.components) {
    if (scalar::is_wide(task.fold.kinds[c])) return true;
  }
  return false;
}

int read_score(const Unit& unit, const ReduceTask& task, Var v) {
  int score = 0;
  const std::vector<bool> used = used_reads(task.body);
  for (size_t r = 0; r < used.size(); ++r) {
    if (used[r]) score += lane_score(unit, task.reduce.reads[r], v, false);
  }
  return score;
}

}  // namespace

ReducePlan plan_reduce(const Unit& unit, const ReduceTask& task) {
  ReducePlan plan;
  if (unit.lanes() <= 1 || wide(task)) return plan;
  int best = -1;
  for (const Range& r : task.points) {
    if (too_short(unit, r) || !lanes_possible(unit, task.body, r.var)) continue;
    bool ok = true;
    int score = read_score(unit, task, r.var);
    for (size_t c : task.components) {
      const Access& state = task.reduce.states[c];
      if (scalar::is_wide(scalar::kind_of(unit.buffer(state.buffer).type))) ok = false;
      score += lane_score(unit, state, r.var, true) > 0 ? 1 : 0;
    }
    if (ok && score >= best) {
      best = score;
      plan = {ReduceForm::PointLanes, r.var};
    }
  }
  if (!task.reduce.monoid->commutative) return plan;
  for (const Range& r : task.reduce.reduces) {
    if (too_short(unit, r) || !lanes_possible(unit, task.body, r.var)) continue;
    const int score = read_score(unit, task, r.var);
    if (score > best || (score == best && plan.form == ReduceForm::ReduceLanes)) {
      best = score;
      plan = {ReduceForm::ReduceLanes, r.var};
    }
  }
  return plan;
}

}  // namespace lemma::emit
