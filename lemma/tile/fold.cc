// Reductions and scans of the interpreter. Elements are evaluated in lanes; states are kept apart from the buffers
// until the statement is done, so that what a component reads is what was there before.
#include <algorithm>

#include "lemma/tile/machine.h"

namespace lemma::tile {
namespace {

using scalar::Expr;
using scalar::Op;
using scalar::Scalar;

std::vector<Var> variables_of(std::initializer_list<const std::vector<Range>*> lists) {
  std::vector<Var> out;
  for (const auto* list : lists) {
    for (const Range& r : *list) out.push_back(r.var);
  }
  return out;
}

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The states of all points: one column a component where the monoid works on columns, else one row a point.
class States {
 public:
  States(const monoid::MonoidRef& monoid, int64_t points, const monoid::SizeValues& sizes, scalar::Arithmetic arithmetic)
      : evaluator(monoid, sizes, arithmetic) {
    columns_.resize(evaluator.columnar() ? monoid->components.size() : 0);
    std::vector<Scalar> identity(static_cast<size_t>(evaluator.state_size()));
    evaluator.identity(identity.data());
    for (size_t c = 0; c < columns_.size(); ++c) columns_[c].assign(size_t(points), identity[c]);
    if (!evaluator.columnar()) {
      rows_.resize(size_t(points * evaluator.state_size()));
      for (int64_t p = 0; p < points; ++p) std::copy(identity.begin(), identity.end(), row(p));
    }
  }

  Scalar& at(int component, int64_t position, int64_t point) {
    return evaluator.columnar() ? columns_[size_t(component)][size_t(point)]
                                : row(point)[evaluator.offset(component) + position];
  }
  Scalar* row(int64_t point) { return rows_.data() + point * evaluator.state_size(); }
  // One pointer a component, from `point` on; columnar only.
  std::vector<Scalar*> columns(int64_t point) {
    std::vector<Scalar*> out;
    for (auto& c : columns_) out.push_back(c.data() + point);
    return out;
  }

  monoid::Evaluator evaluator;

 private:
  std::vector<std::vector<Scalar>> columns_;
  std::vector<Scalar> rows_;
};

// The operands of the components in `wanted`; the others become a constant, so that nothing is read for them.
std::vector<Expr> operands_for(const monoid::Monoid& m, const std::vector<Expr>& body, const std::vector<char>& wanted) {
  std::vector<char> used(body.size());
  for (size_t c = 0; c < wanted.size(); ++c) {
    if (!wanted[c]) continue;
    for (Expr e : scalar::reachable({&m.lift[c], 1})) {
      if (e.is(Op::Arg)) used[size_t(e.payload())] = true;
    }
  }
  std::vector<Expr> out;
  for (size_t i = 0; i < body.size(); ++i) {
    out.push_back(used[i] ? body[i] : scalar::constant_bits(body[i].arena(), body[i].kind(), 0));
  }
  return out;
}

// The lifted element, one expression a component, over the statement's reads. Of a columnar monoid.
std::vector<Expr> lifted(const monoid::Monoid& m, const std::vector<Expr>& body, scalar::Arena& into) {
  return scalar::rewrite_all(m.lift, into, [&](Expr e, std::span<const Expr>) {
    return e.is(Op::Arg) ? body[size_t(e.payload())] : Expr();
  });
}

// Loads states from, or stores them to, the buffers of their components.
template <class S>
bool transfer(Machine& machine, const S& s, States& states, const std::vector<int64_t>& points,
              const std::vector<char>& wanted, bool writes) {
  for (const Range& axis : s.axes) {
    for (const Access& r : s.reads) {
      for (const view::Form& f : r.coords) {
        if (f.uses(view::AtomKind::Index, axis.var)) {
          return machine.cannot("an operand varies along a state axis, which the interpreter cannot fold yet");
        }
      }
    }
  }
  const Columns columns{variables_of({&s.points, &s.axes}), 0};
  const Points box(joined(points, machine.extents(s.axes)));
  const int64_t per_point = std::max<int64_t>(1, Points(machine.extents(s.axes)).count());
  for (size_t c = 0; c < s.states.size(); ++c) {
    if (!wanted[c]) continue;
    const std::vector<int64_t>& axes = states.evaluator.axes(int(c));
    for (size_t a = 0; a < axes.size(); ++a) {
      if (machine.value(s.axes[a].extent) == axes[a]) continue;
      return machine.fault("state " + std::to_string(c) + " has an axis of " + std::to_string(axes[a]) + ", the statement's has " + std::to_string(machine.value(s.axes[a].extent)));
    }
    LaneAccess access(s.states[c], columns);
    access.begin(machine.fixed());
    // Variables that only other components have: one of their values stands for all.
    std::vector<size_t> left_out;
    for (size_t v = 0; v < columns.variables.size(); ++v) {
      const bool axis = v >= s.points.size();
      bool used = false;
      for (const view::Form& f : s.states[c].coords) used = used || f.uses(view::AtomKind::Index, columns.variables[v]);
      if (axis ? v - s.points.size() >= axes.size() : writes && !used) left_out.push_back(v);
    }
    Lanes lanes;
    lanes.columns.resize(columns.variables.size());
    std::vector<int64_t> elements(kLanes);
    for (int64_t begin = 0; begin < box.count(); begin += kLanes) {
      box.fill(lanes, 0, begin, int(std::min<int64_t>(kLanes, box.count() - begin)));
      access.locate(machine.storage(access.buffer()), lanes, elements.data());
      for (size_t l = 0; l < size_t(lanes.count); ++l) {
        if (std::any_of(left_out.begin(), left_out.end(), [&](size_t v) { return lanes.columns[v][l] != 0; })) continue;
        const int64_t point = (begin + int64_t(l)) / per_point;
        int64_t position = 0;
        for (size_t a = 0; a < axes.size(); ++a) position = position * axes[a] + lanes.columns[s.points.size() + a][l];
        Scalar& state = states.at(int(c), position, point);
        const bool good = writes ? machine.write(access, elements[l], begin + int64_t(l), true, state, columns, lanes, l)
                                 : machine.read(access, elements[l], begin + int64_t(l), false, state, columns, lanes, l);
        if (!good) return false;
      }
    }
  }
  return true;
}

// Folds the elements of a chunk of lanes into their states. `state_of(lane)` names the state of a lane.
template <class StateOf>
void fold_lanes(States& states, PointBody& body, const StateOf& state_of) {
  const size_t count = size_t(body.lanes().count);
  if (!states.evaluator.columnar()) {
    std::vector<Scalar> element(static_cast<size_t>(states.evaluator.state_size()));
    for (size_t l = 0; l < count; ++l) {
      if (!body.where()[l]) continue;
      states.evaluator.lift([&](int operand, int, int64_t) { return body.value(size_t(operand), l); }, element.data());
      states.evaluator.combine(states.row(state_of(l)), element.data());
    }
    return;
  }
  const size_t components = states.evaluator.monoid().components.size();
  std::vector<std::vector<Scalar>> elements(components);
  std::vector<monoid::Segment> segments;
  int64_t filled = 0;
  for (size_t l = 0; l < count; ++l) {
    if (!body.where()[l]) continue;
    const int64_t state = state_of(l);
    if (segments.empty() || segments.back().state != state) segments.push_back({filled, filled, state});
    ++filled;
    segments.back().end = filled;
    for (size_t c = 0; c < components; ++c) elements[c].push_back(body.value(c, l));
  }
  if (filled == 0) return;
  std::vector<Scalar*> columns;
  for (auto& e : elements) columns.push_back(e.data());
  const std::vector<Scalar*> into = states.columns(0);
  states.evaluator.fold_columns(columns, segments, into);
}

template <class S>
PointBody::Parts element_parts(const Program& program, const S& s, bool columnar, const std::vector<Expr>& operands) {
  PointBody::Parts parts;
  parts.reads = &s.reads;
  parts.where = &s.where;
  parts.roots = columnar ? lifted(*s.monoid, operands, *program.arena) : operands;
  return parts;
}

}  // namespace

bool Machine::statement(const Reduce& s) {
  const std::vector<int64_t> given = extents(s.points);
  // A component that leaves out a variable of extent 0 still has its points: that variable counts as one point for it,
  // and only such components are folded.
  std::vector<int64_t> points = given;
  std::vector<char> wanted(s.states.size(), 1);
  bool partial = false;
  for (size_t p = 0; p < given.size(); ++p) {
    if (given[p] > 0) continue;
    partial = true;
    points[p] = 1;
    for (size_t c = 0; c < s.states.size(); ++c) {
      for (const view::Form& f : s.states[c].coords) {
        if (f.uses(view::AtomKind::Index, s.points[p].var)) wanted[c] = false;
      }
    }
  }
  if (std::none_of(wanted.begin(), wanted.end(), [](char w) { return w != 0; })) return true;

  States states(s.monoid, Points(points).count(), [this](int n) { return size(n); }, options_.arithmetic);
  if (s.accumulate && !transfer(*this, s, states, points, wanted, false)) return false;
  const std::vector<Expr> operands = partial ? operands_for(*s.monoid, s.body, wanted) : s.body;
  std::vector<Range> all = s.points;
  all.insert(all.end(), s.reduces.begin(), s.reduces.end());
  std::unique_ptr<PointBody> own;
  PointBody* body;
  PointBody::Parts parts;
  if (partial || !bodies_.count(&s)) parts = element_parts(program_, s, states.evaluator.columnar(), operands);
  if (partial) {
    parts.only_used = true;
    own = std::make_unique<PointBody>(program_, variables_of({&all}), parts, options_.arithmetic);
    own->begin(*this);
    body = own.get();
  } else {
    body = &body_of(&s, all, parts);
  }
  const std::vector<int64_t> reduces = extents(s.reduces);
  const Points box(joined(points, reduces));
  const int64_t per_point = Points(reduces).count();
  for (int64_t begin = 0; begin < box.count(); begin += kLanes) {
    box.fill(body->lanes(), 0, begin, int(std::min<int64_t>(kLanes, box.count() - begin)));
    if (!body->evaluate(*this, begin)) return false;
    fold_lanes(states, *body, [&](size_t l) { return (begin + int64_t(l)) / per_point; });
  }
  return transfer(*this, s, states, points, wanted, true);
}

namespace {

// The stores of a scan at one step, for a chunk of points and one position of the axes.
class StepStores {
 public:
  StepStores(const Scan& s, const Columns& columns, scalar::Arithmetic arithmetic) : scan_(s), columns_(columns) {
    std::vector<Expr> roots;
    for (const Store& store : s.stores) {
      roots.push_back(store.value);
      if (store.otherwise.valid()) roots.push_back(store.otherwise);
      targets_.emplace_back(store.to, columns_);
    }
    program_ = scalar::BatchProgram::compile(roots, arithmetic);
    results_.resize(program_.root_count());
  }

  void begin(Machine& machine) {
    for (LaneAccess& t : targets_) t.begin(machine.fixed());
  }

  // `first`: the chunk's first point; `where`: of the chunk's lanes.
  bool run(Machine& machine, States& states, const Lanes& lanes, const std::vector<char>& where, int64_t first) {
    const size_t count = size_t(lanes.count);
    std::vector<std::vector<Scalar>> values(program_.leaves().size());
    std::vector<scalar::Column> leaves;
    for (size_t i = 0; i < values.size(); ++i) {
      const scalar::BatchProgram::Leaf& leaf = program_.leaves()[i];
      const int column = leaf.op == Op::Index ? columns_.variable(leaf.which) : -1;
      const bool one = leaf.op == Op::Size || (leaf.op == Op::Index && column < 0);
      values[i].resize(one ? 1 : count);
      for (size_t l = 0; l < values[i].size(); ++l) {
        if (leaf.op == Op::Arg) values[i][l] = state(states, leaf.which, lanes, l, first);
        else if (leaf.op == Op::Size) values[i][l] = scalar::from_int(machine.size(leaf.which));
        else values[i][l] = scalar::from_int(column < 0 ? machine.variable(leaf.which) : lanes.columns[size_t(column)][l]);
      }
      leaves.push_back({values[i].data(), one});
    }
    program_.run(leaves, lanes.count, workspace_, results_);
    size_t root = 0;
    std::vector<int64_t> elements(count);
    std::vector<char> guard(count);
    const std::vector<char> known(lanes.columns.size(), 1);
    for (size_t i = 0; i < targets_.size(); ++i) {
      const bool otherwise = scan_.stores[i].otherwise.valid();
      targets_[i].locate(machine.storage(targets_[i].buffer()), lanes, elements.data());
      targets_[i].guard.evaluate(lanes, known, guard.data());
      for (size_t l = 0; l < count; ++l) {
        if (!guard[l]) continue;
        const scalar::Column& from = results_[otherwise && !where[l] ? root + 1 : root];
        const Scalar value = from.data[from.broadcast ? 0 : l];
        // Steps and axes tell points of one statement apart as well; only blocks are watched here.
        if (!machine.write(targets_[i], elements[l], 0, false, value, columns_, lanes, l)) return false;
      }
      root += otherwise ? 2 : 1;
    }
    return true;
  }

 private:
  Scalar state(States& states, int component, const Lanes& lanes, size_t l, int64_t first) const {
    const std::vector<int64_t>& axes = states.evaluator.axes(component);
    int64_t position = 0;
    for (size_t a = 0; a < axes.size(); ++a) position = position * axes[a] + lanes.columns[scan_.points.size() + a][l];
    return states.at(component, position, first + int64_t(l));
  }

  const Scan& scan_;
  Columns columns_;
  std::vector<LaneAccess> targets_;
  scalar::BatchProgram program_;
  scalar::BatchProgram::Workspace workspace_;
  std::vector<scalar::Column> results_;
};

}  // namespace

bool Machine::statement(const Scan& s) {
  const std::vector<int64_t> points = extents(s.points), axes = extents(s.axes);
  const int64_t steps = std::max<int64_t>(0, value(s.along.extent));
  const std::vector<char> wanted(s.states.size(), 1);
  const Points box(points), axis_box(axes);
  States states(s.monoid, box.count(), [this](int n) { return size(n); }, options_.arithmetic);
  if (s.accumulate && !transfer(*this, s, states, points, wanted, false)) return false;

  std::vector<Range> all = s.points;
  all.push_back(s.along);
  PointBody::Parts parts;
  if (!bodies_.count(&s)) parts = element_parts(program_, s, states.evaluator.columnar(), s.body);
  PointBody& body = body_of(&s, all, parts);
  const std::vector<Range> along{s.along};
  const Columns columns{variables_of({&s.points, &s.axes, &along}), 0};
  StepStores stores(s, columns, options_.arithmetic);
  stores.begin(*this);
  Lanes lanes, axis_lanes;
  lanes.columns.resize(columns.variables.size());
  axis_lanes.columns.resize(axes.size());

  for (int64_t first = 0; first < box.count(); first += kLanes) {
    const int count = int(std::min<int64_t>(kLanes, box.count() - first));
    box.fill(body.lanes(), 0, first, count);
    box.fill(lanes, 0, first, count);
    // The state after (or before, if exclusive) a step, at every position of the axes.
    auto store_step = [&](int64_t t) {
      lanes.columns.back().assign(size_t(count), t);
      for (int64_t a = 0; a < axis_box.count(); ++a) {
        axis_box.fill(axis_lanes, 0, a, 1);
        for (size_t d = 0; d < axes.size(); ++d) lanes.columns[s.points.size() + d].assign(size_t(count), axis_lanes.columns[d][0]);
        lanes.count = count;
        if (!stores.run(*this, states, lanes, body.where(), first)) return false;
      }
      return true;
    };
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t t = s.reverse ? steps - 1 - step : step;
      body.lanes().columns[s.points.size()].assign(size_t(count), t);
      body.lanes().count = count;
      if (!body.evaluate(*this, first * steps + step)) return false;
      if (s.exclusive && !store_step(t)) return false;
      fold_lanes(states, body, [&](size_t l) { return first + int64_t(l); });
      if (!s.exclusive && !store_step(t)) return false;
    }
  }
  return transfer(*this, s, states, points, wanted, true);
}

}  // namespace lemma::tile
