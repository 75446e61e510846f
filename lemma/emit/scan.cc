// Scans whose states are single values. Where memory lies along the points, it is read and written side by side: a few
// vectors of points walk along the scan together with their states in registers; more points, and kinds too wide for lanes,
// take a step all together, row after row, with the states in their buffers. Else a point at a time. The points of a scan
// do not meet, so the forms give the same values.

#include <algorithm>
#include <functional>

#include "lemma/emit/general_fold.h"
#include "lemma/emit/states.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using tile::Access;
using tile::Range;
using tile::Var;
using view::AtomKind;

namespace {

enum class Walk { Point, PointLanes, PointsInside };

struct Task : FoldTask {
  const tile::Scan& scan;
  std::vector<Expr> values;    // of the stores, over Arg(component)
};

bool uses(const Access& a, Var v) {
  return std::any_of(a.coords.begin(), a.coords.end(), [&](const view::Form& c) { return c.uses(AtomKind::Index, v); });
}

// Whether every state is a single value at every point and what is read is not written on the way.
bool stays_in_variables(const Unit& unit, const tile::Scan& scan) {
  if (!is_flat(*scan.monoid) || !scan.axes.empty()) return false;
  std::vector<int> written;
  for (size_t c = 0; c < scan.states.size(); ++c) {
    const Access& state = scan.states[c];
    if (!state.guard.is_always() || scalar::kind_of(unit.buffer(state.buffer).type) != scan.monoid->components[c].kind) return false;
    for (const Range& r : scan.points) if (!uses(state, r.var)) return false;
    written.push_back(state.buffer);
  }
  for (const tile::Store& s : scan.stores) {
    if (s.combine || s.otherwise.valid() || s.to.guard.uses(AtomKind::Data)) return false;
    for (const view::Form& c : s.to.coords) if (c.uses(AtomKind::Data)) return false;
    written.push_back(s.to.buffer);
  }
  return std::none_of(scan.reads.begin(), scan.reads.end(), [&](const Access& a) {
    return std::find(written.begin(), written.end(), a.buffer) != written.end();
  });
}

bool lanes_allowed(const Unit& unit, const Task& task, const Range& r) {
  const auto n = r.extent.constant();
  if (unit.lanes() <= 1 || (n && *n < std::max(2, unit.lanes() / 4)) || !lanes_possible(unit, task.body, r.var)) return false;
  for (size_t c = 0; c < task.states.size(); ++c) {
    if (scalar::is_wide(task.fold.kinds[c])) return false;
  }
  for (const tile::Store& s : task.scan.stores) {
    if (scalar::is_wide(scalar::kind_of(unit.buffer(s.to.buffer).type))) return false;
  }
  return can_vectorize(task.values, r.var, std::vector<bool>(task.states.size(), true));
}

struct Plan {
  Walk walk = Walk::Point;
  const Range* inside = nullptr;   // the point variable that is innermost
};

Plan plan_scan(const Unit& unit, const Task& task) {
  Plan plan;
  int best = 0;  // neighbours far apart in memory: one by one
  for (const Range& r : task.scan.points) {
    int score = 0;
    const std::vector<bool> used = used_reads(task.body);
    for (size_t i = 0; i < used.size(); ++i) if (used[i]) score += lane_score(unit, task.scan.reads[i], r.var, false);
    for (const tile::Store& s : task.scan.stores) score += lane_score(unit, s.to, r.var, true);
    if (score <= best) continue;
    best = score;
    plan = {lanes_allowed(unit, task, r) ? Walk::PointLanes : Walk::PointsInside, &r};
  }
  return plan;
}

void open_scan(Unit& unit, const tile::Scan& scan) {
  note_range(unit, scan.along);
  const std::string& t = unit.var_name(scan.along.var);
  const std::string n = unit.form_text(scan.along.extent, {});
  unit.out.open(scan.reverse ? "for (int64_t " + t + " = " + n + " - 1; " + t + " >= 0; --" + t + ")"
                             : "for (int64_t " + t + " = 0; " + t + " < " + n + "; ++" + t + ")");
}

// What is stored at a step, by the values that the states have.
void store_values(Unit& unit, const Frame& place, const Task& task, const States& states, const std::string& count) {
  unit.out.open("");
  Frame frame = place;
  frame.reads.clear();
  frame.known.clear();
  for (const std::string& name : states.names) frame.reads.push_back({name, states.varying});
  frame.read_kinds = task.fold.kinds;
  frame.present.assign(states.names.size(), {"1", false});
  const std::vector<Value> values = emit_values(unit, frame, task.values);
  for (size_t i = 0; i < values.size(); ++i) {
    const Access& to = task.scan.stores[i].to;
    if (states.varying) store_lanes(unit, frame, to, values[i], task.values[i].kind(), std::nullopt, {"", count});
    else store_scalar(unit, frame, to, values[i], task.values[i].kind(), std::nullopt);
  }
  unit.out.close();
}

// Lanes from the variable on: `groups` vectors of them at once, or `count` lanes of one.
void lane_group(Unit& unit, const Task& task, const Range& lanes, int groups, const std::string& count) {
  Frame row;
  row.lane_var = lanes.var;
  std::vector<States> states;
  std::vector<Frame> frames(size_t(groups), row);
  for (int u = 0; u < groups; ++u) {
    Frame& frame = frames[size_t(u)];
    if (u > 0) frame.vars[lanes.var] = "(" + unit.var_name(lanes.var) + " + " + std::to_string(u) + " * LM_LANES)";
    states.push_back(declare_states(unit, task, true, "s"));
    if (task.scan.accumulate) load_lane_states(unit, frame, task, states.back(), count);
  }
  open_scan(unit, task.scan);
  LaneBody body(unit, row, task.body, unit.form_text(lanes.extent, row), false);
  body.row();
  for (int u = 0; u < groups; ++u) {
    const Frame& frame = frames[size_t(u)];
    if (task.scan.exclusive) store_values(unit, frame, task, states[size_t(u)], count);
    unit.out.open("");
    body.lanes(frame.vars, count, [&](Frame& inner, const LaneMask& mask) { step(unit, inner, task, states[size_t(u)], mask.mask); });
    unit.out.close();
    if (!task.scan.exclusive) store_values(unit, frame, task, states[size_t(u)], count);
  }
  unit.out.close();
  for (int u = 0; u < groups; ++u) store_states(unit, frames[size_t(u)], task, states[size_t(u)], {"", count});
}

// How many vectors walk together: enough for whole lines of memory, as few as registers hold.
int vectors_at_once(const Unit& unit, const Task& task) {
  constexpr int kRunBytes = 256;
  const int held = unit.options.target.vector_registers / 2 / std::max<int>(1, int(task.states.size()));
  const int most = std::min({8, held, kRunBytes / unit.options.target.vector_bytes, cost(task.body.roots) > 30 ? 2 : 8});
  return most >= 8 ? 8 : most >= 4 ? 4 : 2;
}

// Vectors of lanes to the end, the last one short: `inside` writes one, of `count` lanes (empty: all).
void each_vector(Unit& unit, const Range& lanes, const std::function<void(const std::string&)>& inside) {
  const std::string& v = unit.var_name(lanes.var);
  const std::string extent = unit.form_text(lanes.extent, {});
  const auto n = lanes.extent.constant();
  unit.out.open("for (; " + v + " + LM_LANES <= " + extent + "; " + v + " += LM_LANES)");
  inside("");
  unit.out.close();
  if (n && *n % unit.lanes() == 0) return;
  unit.out.open("if (" + v + " < " + extent + ")");
  const std::string count = unit.fresh("n");
  unit.out.line("const int64_t " + count + " = " + extent + " - " + v + ";");
  inside(count);
  unit.out.close();
}

// As many points as registers hold: the states stay there all along.
void lanes_in_registers(Unit& unit, const Task& task, const Range& lanes, int most) {
  const std::string& v = unit.var_name(lanes.var);
  const std::string extent = unit.form_text(lanes.extent, {});
  unit.out.line("int64_t " + v + " = 0;");
  for (int groups = most; groups > 1; groups /= 2) {
    const std::string stride = std::to_string(groups) + " * LM_LANES";
    unit.out.open("for (; " + v + " + " + stride + " <= " + extent + "; " + v + " += " + stride + ")");
    lane_group(unit, task, lanes, groups, "");
    unit.out.close();
  }
  each_vector(unit, lanes, [&](const std::string& count) { lane_group(unit, task, lanes, 1, count); });
}

// More points than that: a step of all of them, row after row of memory, with the states in their buffers.
void lanes_in_rows(Unit& unit, const Task& task, const Range& lanes) {
  const std::string start = "int64_t " + unit.var_name(lanes.var) + " = 0;";
  Frame row;
  row.lane_var = lanes.var;
  if (!task.scan.accumulate) {
    unit.out.open("");
    unit.out.line(start);
    each_vector(unit, lanes, [&](const std::string& count) {
      Frame frame = row;
      store_states(unit, frame, task, declare_states(unit, task, true, "s"), {"", count});
    });
    unit.out.close();
  }
  open_scan(unit, task.scan);
  LaneBody body(unit, row, task.body, unit.form_text(lanes.extent, row), false);
  body.row();
  unit.out.line(start);
  each_vector(unit, lanes, [&](const std::string& count) {
    Frame frame = row;
    const States states = declare_states(unit, task, true, "s");
    load_lane_states(unit, frame, task, states, count);
    if (task.scan.exclusive) store_values(unit, frame, task, states, count);
    unit.out.open("");
    body.lanes({}, count, [&](Frame& inner, const LaneMask& mask) { step(unit, inner, task, states, mask.mask); });
    unit.out.close();
    if (!task.scan.exclusive) store_values(unit, frame, task, states, count);
    store_states(unit, frame, task, states, {"", count});
  });
  unit.out.close();
}

void point_lanes(Unit& unit, const Task& task, const Range& lanes) {
  note_range(unit, lanes);
  const int most = vectors_at_once(unit, task);
  const auto n = lanes.extent.constant();
  const bool few = n && *n <= most * unit.lanes(), many = n && !few;
  if (!many) {
    unit.out.open(few ? "" : "if (" + unit.form_text(lanes.extent, {}) + " <= " + std::to_string(most) + " * LM_LANES)");
    lanes_in_registers(unit, task, lanes, most);
    unit.out.close();
  }
  if (!few) {
    unit.out.open(many ? "" : "else");
    lanes_in_rows(unit, task, lanes);
    unit.out.close();
  }
}

// One step of one point.
void scalar_step(Unit& unit, const Task& task, const States& states) {
  if (task.scan.exclusive) store_values(unit, Frame{}, task, states, "");
  scalar_body(unit, Frame{}, task.body, [&](Frame& frame) { step(unit, frame, task, states, ""); }, nullptr);
  if (!task.scan.exclusive) store_values(unit, Frame{}, task, states, "");
}

void one_point(Unit& unit, const Task& task) {
  Frame frame;
  unit.out.open("");
  const States states = declare_states(unit, task, false, "s");
  if (task.scan.accumulate) load_states(unit, frame, task, states);
  open_scan(unit, task.scan);
  scalar_step(unit, task, states);
  unit.out.close();
  store_states(unit, frame, task, states, {});
  unit.out.close();
}

void points_inside(Unit& unit, const Task& task, const Range& inside) {
  Frame frame;
  if (!task.scan.accumulate) {
    open_loop(unit, inside);
    store_states(unit, frame, task, declare_states(unit, task, false, "s"), {});
    unit.out.close();
  }
  open_scan(unit, task.scan);
  open_loop(unit, inside);
  const States states = declare_states(unit, task, false, "s");
  load_states(unit, frame, task, states);
  scalar_step(unit, task, states);
  store_states(unit, frame, task, states, {});
  unit.out.close(2);
}

}  // namespace

void emit_scan(Unit& unit, const tile::Scan& scan) {
  if (!scan.comment.empty()) unit.out.line("/* " + scan.comment + " */");
  if (!stays_in_variables(unit, scan)) return emit_general_scan(unit, scan);
  const Fold fold = make_fold(unit, *scan.monoid, scan.body, scan.reads.size());
  std::vector<size_t> components;
  for (size_t c = 0; c < scan.states.size(); ++c) components.push_back(c);
  Task task{{fold, scan.states, components, {&scan.where, &scan.reads, fold.step}}, scan, {}};
  for (const tile::Store& s : scan.stores) task.values.push_back(scalar::import(s.value, unit.arena));
  for (const Range& r : scan.points) note_range(unit, r);
  note_range(unit, scan.along);
  const Plan plan = plan_scan(unit, task);
  int outer = 0;
  for (const Range& r : scan.points) {
    if (&r == plan.inside) continue;
    open_loop(unit, r);
    ++outer;
  }
  switch (plan.walk) {
    case Walk::Point: one_point(unit, task); break;
    case Walk::PointLanes: point_lanes(unit, task, *plan.inside); break;
    case Walk::PointsInside: points_inside(unit, task, *plan.inside); break;
  }
  unit.out.close(outer);
}

}  // namespace lemma::emit
