// Reductions whose states are single values a point. Three forms: by scalars; with a point variable across lanes (each
// lane folds its own point); with a reduce variable across lanes (a commutative monoid: lanes and a few independent
// accumulators are merged at the end, in a fixed order).

#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/emit/body.h"
#include "lemma/emit/fold.h"
#include "lemma/emit/general_fold.h"
#include "lemma/emit/reduce_plan.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/states.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Range;
using tile::Reduce;
using tile::Var;
using view::AtomKind;
using view::Form;

namespace {


// left = merge(left, right), componentwise as the monoid says.
void merge(Unit& unit, const ReduceTask& task, const States& left, const std::vector<std::string>& right) {
  Frame frame;
  frame.lane_var = left.varying ? 0 : -1;  // any: only whether values vary matters
  const size_t n = task.fold.kinds.size();
  frame.reads.resize(2 * n);
  frame.present.resize(2 * n);
  for (int side = 0; side < 2; ++side) {
    frame.read_kinds.insert(frame.read_kinds.end(), task.fold.kinds.begin(), task.fold.kinds.end());
  }
  std::vector<Expr> roots;
  for (size_t i = 0; i < task.components.size(); ++i) {
    const size_t c = task.components[i];
    frame.reads[c] = {left.names[i], left.varying};
    frame.reads[n + c] = {right[i], left.varying};
    roots.push_back(task.fold.merge[c]);
  }
  const std::vector<Value> next = emit_values(unit, frame, roots);
  std::vector<std::string> names;
  for (size_t i = 0; i < next.size(); ++i) {
    const Kind kind = task.fold.kinds[task.components[i]];
    names.push_back(unit.fresh("s"));
    unit.out.line("const " + declared_type(kind, left.varying) + " " + names.back() + " = " +
                  (left.varying ? as_vector(next[i], kind) : next[i].text) + ";");
  }
  for (size_t i = 0; i < next.size(); ++i) unit.out.line(left.names[i] + " = " + names[i] + ";");
}

// ---- Forms ----

void scalar_reduce(Unit& unit, const ReduceTask& task) {
  for (const Range& r : task.points) open_loop(unit, r);
  unit.out.open("");
  const States states = declare_states(unit, task, false, "s");
  if (task.reduce.accumulate) load_states(unit, Frame{}, task, states);
  for (const Range& r : task.reduce.reduces) open_loop(unit, r);
  scalar_body(unit, Frame{}, task.body, [&](Frame& frame) {
    step(unit, frame, task, states, "");
    for (const Kept& k : task.part->kept) {
      store_scalar(unit, frame, k.to, emit_value(unit, frame, k.value), k.value.kind(), std::nullopt);
    }
  }, nullptr);
  unit.out.close(int(task.reduce.reduces.size()));
  Frame frame;
  store_states(unit, frame, task, states, {});
  unit.out.close(1 + int(task.points.size()));
}

// Lanes from the variable on: `groups` vectors of them at once, or `count` lanes of one.
void point_lane_group(Unit& unit, const ReduceTask& task, const Range& lanes, int groups, const std::string& count) {
  Frame row;
  row.lane_var = lanes.var;
  std::vector<States> states;
  std::vector<Frame> frames;
  std::vector<std::map<Var, std::string>> vars(static_cast<size_t>(groups));
  for (int u = 0; u < groups; ++u) {
    states.push_back(declare_states(unit, task, true, "s"));
    if (u > 0) vars[size_t(u)][lanes.var] = "(" + unit.var_name(lanes.var) + " + " + std::to_string(u) + " * LM_LANES)";
    frames.push_back(row);
    frames.back().vars = vars[size_t(u)];
    if (task.reduce.accumulate) load_lane_states(unit, frames.back(), task, states.back(), count);
  }
  for (const Range& r : task.reduce.reduces) open_loop(unit, r);
  LaneBody body(unit, row, task.body, unit.form_text(lanes.extent, row), false);
  body.row();
  for (int u = 0; u < groups; ++u) {
    unit.out.open("");
    body.lanes(vars[size_t(u)], count, [&](Frame& frame, const LaneMask& mask) { step(unit, frame, task, states[size_t(u)], mask.mask); });
    unit.out.close();
  }
  unit.out.close(int(task.reduce.reduces.size()));
  for (int u = 0; u < groups; ++u) store_states(unit, frames[size_t(u)], task, states[size_t(u)], {"", count});
}

void point_lanes(Unit& unit, const ReduceTask& task, Var lane_var) {
  const Range* lanes = nullptr;
  int outer = 0;
  for (const Range& r : task.points) {
    if (r.var == lane_var) lanes = &r;
    else {
      open_loop(unit, r);
      ++outer;
    }
  }
  note_range(unit, *lanes);
  const std::string& v = unit.var_name(lane_var);
  const std::string extent = unit.form_text(lanes->extent, {});
  const auto n = lanes->extent.constant();
  unit.out.open("");
  unit.out.line("int64_t " + v + " = 0;");
  // Several vectors at once hide the latency of a step and use whole lines of what is read.
  const int groups = int(task.components.size()) * 4 > 8 || cost(task.body.roots) > 30 ? 2 : 4;
  if (!n || *n >= groups * unit.lanes()) {
    const std::string stride = std::to_string(groups) + " * LM_LANES";
    unit.out.open("for (; " + v + " + " + stride + " <= " + extent + "; " + v + " += " + stride + ")");
    point_lane_group(unit, task, *lanes, groups, "");
    unit.out.close();
  }
  unit.out.open("for (; " + v + " + LM_LANES <= " + extent + "; " + v + " += LM_LANES)");
  point_lane_group(unit, task, *lanes, 1, "");
  unit.out.close();
  if (!n || *n % unit.lanes() != 0) {
    unit.out.open("if (" + v + " < " + extent + ")");
    const std::string count = unit.fresh("n");
    unit.out.line("const int64_t " + count + " = " + extent + " - " + v + ";");
    point_lane_group(unit, task, *lanes, 1, count);
    unit.out.close();
  }
  unit.out.close(1 + outer);
}

// Folds the lanes of `vectors` into the scalar states: halves onto halves, in a fixed order.
void fold_lanes(Unit& unit, const ReduceTask& task, const States& states, const States& vectors) {
  for (int h = unit.lanes() / 2; h > 0; h /= 2) {
    unit.out.line("#if LM_LANES >= " + std::to_string(2 * h));
    unit.out.open("");
    std::vector<std::string> other;
    for (size_t i = 0; i < vectors.names.size(); ++i) {
      const Kind kind = task.fold.kinds[task.components[i]];
      other.push_back(unit.fresh("o"));
      unit.out.line("const " + vector_type(kind) + " " + other.back() + " = lm_swap_" + vector_suffix(kind) + "(" +
                    vectors.names[i] + ", " + std::to_string(h) + ");");
    }
    merge(unit, task, vectors, other);
    unit.out.close();
    unit.out.line("#endif");
  }
  std::vector<std::string> right;
  for (size_t i = 0; i < vectors.names.size(); ++i) {
    std::string text = "lm_get(" + vectors.names[i] + ", 0)";
    if (task.fold.kinds[task.components[i]] == Kind::Bool) text = "(" + text + " != 0)";
    right.push_back(text);
  }
  merge(unit, task, states, right);
}

constexpr int kLineBytes = 64;
constexpr int64_t kRowBytes = 16 << 10;  // of a row that may wait in the nearest cache until it is read

// How far ahead the next row's elements lie, 0 where rows are too long to be fetched early.
std::vector<std::string> ahead_steps(Unit& unit, const Frame& row, const ReduceTask& task, const Range& lanes) {
  std::vector<std::string> out;
  for (const Ahead& a : task.part->ahead) {
    out.push_back(unit.fresh("k"));
    const int64_t most = kRowBytes * 8 / scalar::bits(unit.buffer(a.from.buffer).type);
    unit.out.line("const int64_t " + out.back() + " = " + unit.form_text(lanes.extent, row) + " <= " +
                  std::to_string(most) + " ? " + unit.form_text(a.step, row) + " : 0;");
  }
  return out;
}

// Hardware stops at the ends of pages, which rows often are.
void fetch_ahead(Unit& unit, const Frame& row, const Ahead& ahead, const std::string& step, int copies) {
  const int bits = scalar::bits(unit.buffer(ahead.from.buffer).type), line = kLineBytes * 8 / bits;
  const std::string place = unit.form_text(unit.simplify(unit.offset(ahead.from.buffer, ahead.from.coords)), row);
  for (int at = 0; at < copies * unit.lanes(); at += line) {
    unit.out.line("LM_PREFETCH(" + unit.buffer_name(ahead.from.buffer) + " + (" + place + " + " + step + " + " +
                  std::to_string(at) + "));");
  }
}

// Steps of the unrolled loop after which accumulators join a total and begin anew. A sum of n terms that lie far from 0
// loses, at each step, half a unit in the last place of what has been summed so far; sums of few terms, summed, lose little.
constexpr int kBlockSteps = 16;

bool sums_floats(const ReduceTask& task) {
  return std::any_of(task.components.begin(), task.components.end(), [&](size_t c) {
    return scalar::is_float(task.fold.kinds[c]) && task.fold.merge[c].is(Op::Add);
  });
}

void reduce_lanes(Unit& unit, const ReduceTask& task, Var lane_var) {
  for (const Range& r : task.points) open_loop(unit, r);
  unit.out.open("");
  const States states = declare_states(unit, task, false, "s");
  if (task.reduce.accumulate) load_states(unit, Frame{}, task, states);
  const int copies = cost(task.body.roots) > 30 ? 2 : 4;
  std::vector<States> vectors;
  for (int u = 0; u < copies; ++u) vectors.push_back(declare_states(unit, task, true, "a"));
  const Range* lanes = nullptr;
  for (const Range& r : task.reduce.reduces) if (r.var == lane_var) lanes = &r;
  const auto n = lanes->extent.constant();
  const bool blocks = sums_floats(task) && (!n || *n > kBlockSteps * copies * unit.lanes());
  const States total = blocks ? declare_states(unit, task, true, "t") : States{};
  int outer = 0;
  for (const Range& r : task.reduce.reduces) {
    if (r.var == lane_var) continue;
    open_loop(unit, r);
    ++outer;
  }
  note_range(unit, *lanes);
  const std::string& v = unit.var_name(lane_var);
  Frame row;
  row.lane_var = lane_var;
  unit.out.open("");
  LaneBody body(unit, row, task.body, unit.form_text(lanes->extent, row), true);
  body.row();
  unit.out.line("int64_t " + v + " = " + body.low() + ";");
  const auto group = [&](int u, const std::string& count) {
    std::map<Var, std::string> vars;
    if (u > 0) vars[lane_var] = "(" + v + " + " + std::to_string(u) + " * LM_LANES)";
    unit.out.open("");
    body.lanes(vars, count, [&](Frame& frame, const LaneMask& mask) {
      std::string live = mask.mask;
      if (!count.empty()) live = (live.empty() ? "" : live + " & ") + ("lm_first(" + count + ")");
      step(unit, frame, task, vectors[size_t(u)], live.empty() ? "" : "(" + live + ")");
      for (const Kept& k : task.part->kept) {
        store_lanes(unit, frame, k.to, emit_value(unit, frame, k.value), k.value.kind(), std::nullopt, mask);
      }
    });
    unit.out.close();
  };
  const auto join = [&] {
    for (int u = copies - 1; u > 0; --u) merge(unit, task, vectors[size_t(u - 1)], vectors[size_t(u)].names);
  };
  const bool unrolled = !n || *n >= copies * unit.lanes();
  if (unrolled) {
    const std::vector<std::string> ahead = ahead_steps(unit, row, task, *lanes);
    const std::string stride = std::to_string(copies) + " * LM_LANES";
    std::string end = body.high();
    if (blocks) {
      const std::string block = std::to_string(kBlockSteps) + " * " + stride;
      end = unit.fresh("end");
      unit.out.open("for (;;)");
      unit.out.line("const int64_t " + end + " = " + body.high() + " - " + v + " > " + block + " ? " + v + " + " + block + " : " + body.high() + ";");
    }
    unit.out.open("for (; " + v + " + " + stride + " <= " + end + "; " + v + " += " + stride + ")");
    for (size_t i = 0; i < ahead.size(); ++i) fetch_ahead(unit, row, task.part->ahead[i], ahead[i], copies);
    for (int u = 0; u < copies; ++u) group(u, "");
    unit.out.close();
    if (blocks) {
      unit.out.line("if (" + v + " + " + stride + " > " + body.high() + ") break;");
      join();
      merge(unit, task, total, vectors[0].names);
      for (const States& s : vectors) reset_states(unit, task, s);
      unit.out.close();
    }
  }
  unit.out.open("for (; " + v + " + LM_LANES <= " + body.high() + "; " + v + " += LM_LANES)");
  group(0, "");
  unit.out.close();
  unit.out.open("if (" + v + " < " + body.high() + ")");
  const std::string count = unit.fresh("n");
  unit.out.line("const int64_t " + count + " = " + body.high() + " - " + v + ";");
  group(0, count);
  unit.out.close();
  unit.out.close(1 + outer);
  join();
  if (blocks) merge(unit, task, vectors[0], total.names);
  fold_lanes(unit, task, states, vectors[0]);
  Frame frame;
  store_states(unit, frame, task, states, {});
  unit.out.close(1 + int(task.points.size()));
}

void emit_task(Unit& unit, const ReduceTask& task) {
  for (const Range& r : task.points) note_range(unit, r);
  for (const Range& r : task.reduce.reduces) note_range(unit, r);
  const ReducePlan plan = plan_reduce(unit, task);
  switch (plan.form) {
    case ReduceForm::Scalar: return scalar_reduce(unit, task);
    case ReduceForm::PointLanes: return point_lanes(unit, task, plan.lane_var);
    case ReduceForm::ReduceLanes: return reduce_lanes(unit, task, plan.lane_var);
  }
}

// The points that a component's state depends on.
std::vector<Range> points_of(const Reduce& reduce, size_t component) {
  std::vector<Range> out;
  for (const Range& r : reduce.points) {
    bool used = r.extent.constant() == int64_t(1);
    for (const Form& c : reduce.states[component].coords) used = used || c.uses(AtomKind::Index, r.var);
    if (used) out.push_back(r);
  }
  return out;
}

// Components in groups that do not read one another; nothing if linked ones differ in their points.
std::optional<std::vector<std::vector<size_t>>> independent_groups(const Reduce& reduce) {
  const size_t n = reduce.states.size();
  std::vector<size_t> group(n);
  for (size_t c = 0; c < n; ++c) group[c] = c;
  const auto join = [&](size_t a, size_t b) {
    const size_t from = std::max(group[a], group[b]), to = std::min(group[a], group[b]);
    for (size_t& g : group) if (g == from) g = to;
  };
  for (size_t c = 0; c < n; ++c) {
    for (const monoid::StateRead& r : reduce.monoid->combine[c].reads) {
      if (points_of(reduce, c) != points_of(reduce, size_t(r.component))) return std::nullopt;
      join(c, size_t(r.component));
    }
  }
  // Unlinked ones over the same points share a walk.
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (points_of(reduce, a) == points_of(reduce, b)) join(a, b);
    }
  }
  std::vector<std::vector<size_t>> out;
  for (size_t g = 0; g < n; ++g) {
    std::vector<size_t> members;
    for (size_t c = 0; c < n; ++c) if (group[c] == g) members.push_back(c);
    if (!members.empty()) out.push_back(members);
  }
  return out;
}

}  // namespace

std::optional<Var> lane_variable(Unit& unit, const Reduce& reduce) {
  if (!is_flat(*reduce.monoid)) return std::nullopt;
  const auto groups = independent_groups(reduce);
  if (!groups || groups->size() != 1) return std::nullopt;
  const Fold fold = make_fold(unit, *reduce.monoid, reduce.body, reduce.reads.size());
  const RowPart none;
  const ReduceTask task{{fold, reduce.states, (*groups)[0], {&reduce.where, &reduce.reads, fold.step}}, reduce, points_of(reduce, 0), &none};
  for (const Range& r : reduce.points) note_range(unit, r);
  for (const Range& r : reduce.reduces) note_range(unit, r);
  return plan_reduce(unit, task).lane_var;
}

void emit_reduce(Unit& unit, const Reduce& reduce, const RowPart& part) {
  if (!reduce.comment.empty()) unit.out.line("/* " + reduce.comment + " */");
  if (reduce.monoid->structure == monoid::Structure::TopK) return emit_top_k(unit, reduce);
  const auto groups = is_flat(*reduce.monoid) ? independent_groups(reduce) : std::nullopt;
  if (!groups) return emit_general_reduce(unit, reduce);
  const Fold fold = make_fold(unit, *reduce.monoid, reduce.body, reduce.reads.size());
  for (const std::vector<size_t>& members : *groups) {
    std::vector<Expr> roots;
    for (size_t c : members) roots.push_back(fold.step[c]);
    const ReduceTask task{{fold, reduce.states, members, {&reduce.where, &reduce.reads, roots}}, reduce, points_of(reduce, members[0]), &part};
    emit_task(unit, task);
  }
}

}  // namespace lemma::emit
