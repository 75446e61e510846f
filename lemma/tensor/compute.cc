// Maps write what their body gives; reductions fold columns of lifted elements into one state a point; scans, and states
// with axes, go element by element in order. Everything runs over batches of runs (batch.h).
#include "lemma/tensor/compute.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "lemma/base/check.h"
#include "lemma/monoid/eval.h"

namespace lemma::tensor {

using scalar::Arithmetic;
using scalar::Column;
using scalar::Expr;
using scalar::Scalar;
using view::AtomKind;
using view::Formula;

Frame frame_of(const std::string& name, const std::vector<IndexInfo>& indices, const base::Span& span) {
  return {name, indices, span};
}

std::vector<int64_t> constant_extents(const std::vector<IndexInfo>& indices) {
  std::vector<int64_t> out;
  for (const IndexInfo& i : indices) {
    const auto extent = i.extent.constant();
    LEMMA_CHECK(extent && *extent >= 0, "an extent that is not bound");
    out.push_back(*extent);
  }
  return out;
}

std::vector<int64_t> size_values(const Graph& graph) {
  std::vector<int64_t> out;
  for (const Size& s : graph.sizes) out.push_back(s.value.value_or(0));
  return out;
}

std::vector<ReadPlan> plan_reads(const Graph& graph, const std::vector<IndexInfo>& indices,
                                 const std::vector<Read>& reads, const StoredNodes& sources) {
  const std::vector<int64_t> extents = constant_extents(indices);
  const auto ranges = [&](const view::Atom& a) {
    view::Range r;
    if (a.kind == AtomKind::Index) r = {0, std::max<int64_t>(0, extents[size_t(a.id)] - 1)};
    return r;
  };
  std::vector<ReadPlan> out;
  for (const Read& read : reads) {
    ReadPlan plan;
    plan.name = lemma::tensor::name(graph, read.source);
    plan.source = &sources[size_t(read.source.node.index)][size_t(read.source.output)];
    plan.kind = kind(graph, read.source);
    plan.guard = Condition(read.guard);
    plan.affine = true;
    for (size_t d = 0; d < read.coords.size(); ++d) {
      plan.coords.push_back(Coordinate(read.coords[d]));
      plan.affine = plan.affine && plan.coords.back().is_affine();
      const view::Range range = view::range(read.coords[d], ranges);
      plan.proved.push_back(range.low && *range.low >= 0 && range.high && *range.high < plan.source->extents[d]);
    }
    out.push_back(std::move(plan));
  }
  return out;
}

Formula affine_part(const Formula& formula) {
  Formula out;
  if (formula.cases().size() != 1) return out;
  for (const view::Constraint& k : formula.cases()[0]) {
    if (!Coordinate(k.form).is_affine()) continue;
    out = out && (k.relation == view::Relation::Zero ? Formula::zero(k.form) : Formula::non_negative(k.form));
  }
  return out;
}

Scalar stored_value(scalar::DType type, Scalar value, Arithmetic arithmetic) {
  if (scalar::is_float(type)) {
    return arithmetic == Arithmetic::Single ? scalar::from_float(scalar::rounded(type, value.f)) : value;
  }
  return scalar::from_int(scalar::wrapped(type, value.i));
}

Stored dense(scalar::DType type, std::vector<int64_t> extents) {
  Stored out;
  out.type = type;
  out.strides.assign(extents.size(), 0);
  out.key_strides.assign(extents.size(), 0);
  for (size_t d = extents.size(); d-- > 0;) {
    out.strides[d] = out.slab_size;
    out.slab_size *= extents[d];
  }
  out.extents = std::move(extents);
  out.values.resize(size_t(out.slab_size));
  return out;
}

namespace {

// Few enough possible keys for a table with one entry each.
constexpr int64_t kTable = int64_t(1) << 22;

Stored slabs(scalar::DType type, std::vector<int64_t> extents, const std::vector<int>& dims, const Demand& demand) {
  if (demand.fixed.empty()) return dense(type, std::move(extents));
  Stored out;
  out.type = type;
  out.fixed = true;
  out.strides.assign(extents.size(), 0);
  out.key_strides.assign(extents.size(), 0);
  std::vector<int64_t> key_strides(demand.fixed.size());
  for (size_t k = demand.fixed.size(); k-- > 0;) {
    key_strides[k] = out.key_count;
    out.key_count *= demand.extents[k];
  }
  for (size_t d = extents.size(); d-- > 0;) {
    const auto at = std::find(demand.fixed.begin(), demand.fixed.end(), dims[d]);
    if (at != demand.fixed.end()) {
      out.key_strides[d] = key_strides[size_t(at - demand.fixed.begin())];
    } else {
      out.strides[d] = out.slab_size;
      out.slab_size *= extents[d];
    }
  }
  if (out.key_count <= kTable) out.slab_of_key.assign(size_t(out.key_count), -1);
  for (size_t s = 0; s < demand.keys.size(); ++s) {
    if (out.key_count <= kTable) {
      out.slab_of_key[size_t(demand.keys[s])] = int32_t(s);
    } else {
      out.slab_of_far_key.emplace(demand.keys[s], int64_t(s));
    }
  }
  out.extents = std::move(extents);
  out.values.resize(demand.keys.size() * size_t(out.slab_size));
  return out;
}

class Compute {
 public:
  Compute(const Graph& graph, const Comprehension& node, const Demand& demand, const StoredNodes& sources,
          Arithmetic arithmetic)
      : graph_(graph), node_(node), demand_(demand), arithmetic_(arithmetic),
        frame_(frame_of(node.name.empty() ? node.outputs[0].name : node.name, node.indices, node.span)),
        batch_(frame_, plan_reads(graph, node.indices, node.reads, sources), size_values(graph)) {
    space_.extents = constant_extents(node.indices);
    space_.fixed = demand.fixed;
    space_.fixed_extents = demand.extents;
    space_.keys = &demand.keys;
    if (!filter_is_usable()) demand_filter_ = Formula::always();
    for (const Output& o : node.outputs) {
      std::vector<int64_t> extents;
      for (int id : o.dims) extents.push_back(space_.extents[size_t(id)]);
      out_.push_back(slabs(o.type, std::move(extents), o.dims, demand));
    }
  }

  base::Result<std::vector<Stored>> run() {
    const Formula domain = node_.domain && demand_filter_;
    space_.trim = Condition(affine_part(domain));
    if (Condition whole(domain); !whole.trims()) rest_ = std::move(whole);
    if (node_.monoid) {
      LEMMA_TRY_VOID(fold());
    } else {
      LEMMA_TRY_VOID(map());
    }
    return std::move(out_);
  }

 private:
  // A filter narrows what is computed. A scan needs all its steps, and states their axes.
  bool filter_is_usable() {
    demand_filter_ = demand_.filter;
    if (demand_filter_.is_always() || node_.scan) return false;
    for (int id : demand_filter_.ids(AtomKind::Index)) {
      if (node_.indices[size_t(id)].role != Role::Point) return false;
    }
    return true;
  }

  bool is_fixed(int id) const { return std::find(space_.fixed.begin(), space_.fixed.end(), id) != space_.fixed.end(); }

  void add_loops(Role role) {
    for (int id : node_.with_role(role)) {
      if (!is_fixed(id)) space_.loops.push_back(id);
    }
  }

  // Calls `flush` with every full batch of the space; `group`: positions that must stay together.
  template <class Flush>
  base::Result<void> walk(const Space& space, const Condition& rest, int64_t group, const Flush& flush) {
    Walker walker(space);
    std::vector<int64_t> indices;
    Run run;
    bool more = true;
    const int64_t capacity = std::max<int64_t>(1, Batch::kCapacity / std::max<int64_t>(group, 1)) * group;
    while (more) {
      batch_.start(walker);
      while (batch_.size() < capacity && (more = walker.next(capacity - batch_.size(), run, indices))) {
        batch_.add(run, indices);
      }
      if (batch_.size() == 0) break;
      LEMMA_TRY_VOID(batch_.filter(rest));
      LEMMA_TRY_VOID(flush(walker));
    }
    return {};
  }

  base::Result<void> evaluate(const scalar::BatchProgram& program, std::vector<Column>& results) {
    LEMMA_TRY_VOID(batch_.columns(program, leaves_));
    results.resize(program.root_count());
    program.run(leaves_, int(batch_.size()), workspace_, results);
    return {};
  }

  // ---- maps ----

  base::Result<void> map() {
    // The first output's last dimension runs innermost, so that it is written along.
    for (int id : node_.outputs[0].dims) {
      if (!is_fixed(id)) space_.loops.push_back(id);
    }
    for (int id : node_.with_role(Role::Point)) {
      if (!is_fixed(id) && std::find(space_.loops.begin(), space_.loops.end(), id) == space_.loops.end()) {
        space_.loops.insert(space_.loops.begin(), id);
      }
    }
    space_.point_loops = space_.loops.size();
    if (!(node_.domain && demand_filter_).is_always()) {
      for (Stored& s : out_) s.present.assign(s.values.size(), 0);
    }
    const scalar::BatchProgram program = scalar::BatchProgram::compile(node_.body, arithmetic_);
    std::vector<Column> results;
    return walk(space_, rest_, 1, [&](const Walker&) -> base::Result<void> {
      LEMMA_TRY_VOID(evaluate(program, results));
      for (size_t o = 0; o < out_.size(); ++o) write_map(o, results[size_t(node_.outputs[o].result)]);
      return {};
    });
  }

  void write_map(size_t o, const Column& column) {
    Stored& to = out_[o];
    const std::vector<int>& dims = node_.outputs[o].dims;
    int64_t step = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == batch_.inner()) step = to.strides[d];
    }
    for (const Run& run : batch_.runs()) {
      const int64_t* at = batch_.indices_at(run, 0);
      int64_t offset = run.slab * to.slab_size;
      for (size_t d = 0; d < dims.size(); ++d) offset += to.strides[d] * at[dims[d]];
      for (int64_t k = 0; k < run.count; ++k, offset += step) {
        if (!batch_.active(run.begin + k)) continue;
        to.values[size_t(offset)] =
            stored_value(to.type, column.data[column.broadcast ? 0 : run.begin + k], arithmetic_);
        if (!to.present.empty()) to.present[size_t(offset)] = 1;
      }
    }
  }

  // ---- reductions and scans ----

  base::Result<void> fold() {
    evaluator_.emplace(node_.monoid, [this](int s) { return graph_.sizes[size_t(s)].value.value_or(0); }, arithmetic_);
    components_ = int(node_.monoid->components.size());
    add_loops(Role::Point);
    space_.point_loops = space_.loops.size();
    points_ = Walker(space_).points();
    const std::vector<int> scans = node_.with_role(Role::Scan);
    if (!scans.empty()) {
      scan_ = scans[0];
      steps_ = space_.extents[size_t(scan_)];
      if (node_.scan->reverse) space_.reversed = scan_;
      space_.loops.push_back(scan_);
    }
    add_loops(Role::Reduce);
    LEMMA_TRY_VOID(evaluator_->columnar() && scan_ < 0 ? fold_in_columns() : fold_in_order());
    for (size_t o = 0; o < out_.size(); ++o) finish(o);
    return {};
  }

  // lift[c] of the body's operands, over the node's reads and indices.
  scalar::BatchProgram compile_lifts() {
    std::vector<Expr> roots;
    const monoid::Monoid& m = *node_.monoid;
    for (size_t c = 0; c < m.components.size(); ++c) {
      const std::vector<int>& ids = node_.components[c];
      const size_t axes = m.components[c].axes.size();
      roots.push_back(scalar::rewrite(m.lift[c], scratch_, [&](Expr e, std::span<const Expr>) {
        if (e.is(scalar::Op::Arg)) return scalar::import(node_.body[size_t(e.payload())], scratch_);
        if (e.is(scalar::Op::Index)) return scalar::index(scratch_, ids[ids.size() - axes + size_t(e.payload())]);
        return Expr();
      }));
    }
    return scalar::BatchProgram::compile(roots, arithmetic_);
  }

  base::Result<void> fold_in_columns() {
    const scalar::BatchProgram program = compile_lifts();
    std::vector<Scalar> identity(size_t(evaluator_->state_size()));
    evaluator_->identity(identity.data());
    std::vector<Scalar*> states, elements;
    std::vector<std::vector<Scalar>> lifted;
    lifted.resize(size_t(components_));
    for (std::vector<Scalar>& column : lifted) column.resize(size_t(Batch::kCapacity));
    for (int c = 0; c < components_; ++c) {
      states_.push_back(std::vector<Scalar>(size_t(points_), identity[size_t(c)]));
      states.push_back(states_.back().data());
      elements.push_back(lifted[size_t(c)].data());
    }
    std::vector<Column> results;
    std::vector<monoid::Segment> segments;
    return walk(space_, rest_, 1, [&](const Walker& walker) -> base::Result<void> {
      LEMMA_TRY_VOID(evaluate(program, results));
      segments.clear();
      int64_t n = 0;
      for (const Run& run : batch_.runs()) {
        for (int64_t k = 0; k < run.count; ++k) {
          if (!batch_.active(run.begin + k)) continue;
          const int64_t point = run.point + k * walker.point_step();
          if (segments.empty() || segments.back().state != point) segments.push_back({n, n, point});
          ++segments.back().end;
          ++n;
        }
      }
      for (int c = 0; c < components_; ++c) compress(results[size_t(c)], elements[size_t(c)]);
      evaluator_->fold_columns(elements, segments, states);
      return {};
    });
  }

  // The active positions of a column, one after another.
  void compress(const Column& from, Scalar* to) const {
    if (from.broadcast) {
      std::fill_n(to, batch_.size(), from.data[0]);
    } else if (batch_.all_active()) {
      std::copy_n(from.data, batch_.size(), to);
    } else {
      for (int64_t k = 0; k < batch_.size(); ++k) {
        if (batch_.active(k)) *to++ = from.data[k];
      }
    }
  }

  // Walks elements in order with one state at hand, keeping it where a point or a step ends.
  class Cursor {
   public:
    Cursor(Compute& c, bool exclusive)
        : compute_(c), exclusive_(exclusive), state_(size_t(c.evaluator_->state_size())) {
      if (c.points_ > 0 && c.steps_ > 0) enter();
      if (c.points_ > 0 && c.steps_ == 0) {
        for (int64_t p = 0; p < c.points_; ++p) {
          begin(p);
          c.keep(c.finals_, p, state_.data());
        }
      }
    }
    Scalar* state() { return state_.data(); }
    void advance(int64_t point, int64_t step) {
      while (point_ != point || step_ != step) {
        if (!exclusive_) keep_step();
        if (++step_ == compute_.steps_) {
          if (compute_.scan_ >= 0) compute_.keep(compute_.finals_, point_, state_.data());
          step_ = 0;
          ++point_;
        }
        if (point_ == compute_.points_) return;
        enter();
      }
    }

   private:
    void begin(int64_t point) {
      if (compute_.initial_.empty()) {
        compute_.evaluator_->identity(state_.data());
      } else {
        std::copy_n(compute_.initial_.data() + size_t(point) * state_.size(), state_.size(), state_.begin());
      }
    }
    void enter() {
      if (step_ == 0) begin(point_);
      if (exclusive_) keep_step();
    }
    void keep_step() {
      const bool reverse = compute_.node_.scan && compute_.node_.scan->reverse;
      const int64_t step = reverse ? compute_.steps_ - 1 - step_ : step_;
      compute_.keep(compute_.states_, point_ * compute_.steps_ + step, state_.data());
    }

    Compute& compute_;
    bool exclusive_;
    int64_t point_ = 0, step_ = 0;
    std::vector<Scalar> state_;
  };

  void keep(std::vector<std::vector<Scalar>>& where, int64_t snapshot, const Scalar* state) {
    for (int c = 0; c < components_; ++c) {
      const int64_t n = evaluator_->count(c);
      std::copy_n(state + evaluator_->offset(c), n, where[size_t(c)].begin() + snapshot * n);
    }
  }

  bool top_k() const { return node_.monoid->structure == monoid::Structure::TopK; }

  base::Result<void> fold_in_order() {
    for (int c = 0; c < components_; ++c) {
      const int64_t n = evaluator_->count(c);
      states_.push_back(std::vector<Scalar>(size_t(points_ * steps_ * n)));
      finals_.push_back(std::vector<Scalar>(size_t(scan_ >= 0 ? points_ * n : 0)));
    }
    if (top_k()) {
      LEMMA_TRY_VOID(fold_top_k());
      return {};
    }
    const std::vector<int> axes = node_.with_role(Role::Axis);
    int64_t group = 1;
    for (int id : axes) group *= space_.extents[size_t(id)];
    LEMMA_TRY_VOID(find_initial(axes, group));
    const std::vector<std::vector<int64_t>> places = places_in_group(axes);
    space_.loops.insert(space_.loops.end(), axes.begin(), axes.end());
    const scalar::BatchProgram program = compile_lifts();
    std::vector<Column> results;
    std::vector<Scalar> next(size_t(evaluator_->state_size()));
    Cursor cursor(*this, node_.scan && node_.scan->exclusive);
    if (steps_ == 0) return {};
    LEMMA_TRY_VOID(walk(space_, rest_, group, [&](const Walker& walker) -> base::Result<void> {
      LEMMA_TRY_VOID(evaluate(program, results));
      for_groups(group, [&](const Run& run, int64_t k, int64_t position) {
        for (int c = 0; c < components_; ++c) {
          const Column& column = results[size_t(c)];
          for (size_t p = 0; p < places[size_t(c)].size(); ++p) {
            next[size_t(evaluator_->offset(c)) + p] =
                column.data[column.broadcast ? 0 : position + places[size_t(c)][p]];
          }
        }
        cursor.advance(run.point + k * walker.point_step(), step_of(run, k));
        evaluator_->combine(cursor.state(), next.data());
      });
      return {};
    }));
    cursor.advance(points_, 0);
    return {};
  }

  base::Result<void> fold_top_k() {
    std::vector<Expr> roots;
    for (Expr e : node_.body) roots.push_back(scalar::import(e, scratch_));
    const scalar::BatchProgram program = scalar::BatchProgram::compile(roots, arithmetic_);
    std::vector<Column> results;
    const monoid::Monoid& m = *node_.monoid;
    std::vector<Scalar> next(size_t(2 * m.count));
    evaluator_->identity(next.data());
    Cursor cursor(*this, node_.scan && node_.scan->exclusive);
    if (steps_ == 0) return {};
    LEMMA_TRY_VOID(walk(space_, rest_, 1, [&](const Walker& walker) -> base::Result<void> {
      LEMMA_TRY_VOID(evaluate(program, results));
      for_groups(1, [&](const Run& run, int64_t k, int64_t position) {
        const auto operand = [&](size_t o) { return results[o].data[results[o].broadcast ? 0 : position]; };
        const Scalar value = operand(0), index = operand(1);
        cursor.advance(run.point + k * walker.point_step(), step_of(run, k));
        const Scalar* state = cursor.state();
        if (!monoid::precedes(m.operands[0], m.smallest, value, index.i, state[m.count - 1],
                              state[2 * m.count - 1].i)) {
          return;
        }
        next[0] = value;
        next[size_t(m.count)] = index;
        evaluator_->combine(cursor.state(), next.data());
      });
      return {};
    }));
    cursor.advance(points_, 0);
    return {};
  }

  // Calls f(run, position in the run, position) for the first position of each active group.
  template <class F>
  void for_groups(int64_t group, const F& f) {
    int64_t next = 0;
    for (const Run& run : batch_.runs()) {
      for (int64_t k = next - run.begin; k < run.count; k = next - run.begin) {
        if (batch_.active(next)) f(run, k, next);
        next += group;
      }
    }
  }

  // How many steps precede a position, in the scan's own direction.
  int64_t step_of(const Run& run, int64_t k) {
    if (scan_ < 0) return 0;
    const int64_t t = batch_.indices_at(run, k)[scan_];
    return node_.scan->reverse ? steps_ - 1 - t : t;
  }

  // Per component and position of it: where in a group of all axes it stands.
  std::vector<std::vector<int64_t>> places_in_group(const std::vector<int>& axes) const {
    std::vector<std::vector<int64_t>> out;
    for (int c = 0; c < components_; ++c) out.push_back(places(axes, c));
    return out;
  }

  // For each position of component c, its offset among the row-major positions of `axes` (others at 0).
  std::vector<int64_t> places(const std::vector<int>& axes, int c) const {
    const std::vector<int64_t>& own = evaluator_->axes(c);
    const std::vector<int>& ids = node_.components[size_t(c)];
    std::vector<int64_t> strides(own.size(), 0), out;
    int64_t stride = 1;
    for (size_t a = axes.size(); a-- > 0;) {
      for (size_t k = 0; k < own.size(); ++k) {
        if (ids[ids.size() - own.size() + k] == axes[a]) strides[k] = stride;
      }
      stride *= space_.extents[size_t(axes[a])];
    }
    for (int64_t p = 0; p < evaluator_->count(c); ++p) {
      int64_t rest = p, offset = 0;
      for (size_t k = own.size(); k-- > 0;) {
        offset += strides[k] * (rest % own[k]);
        rest /= own[k];
      }
      out.push_back(offset);
    }
    return out;
  }

  // The states before the first step, one a point.
  base::Result<void> find_initial(const std::vector<int>& axes, int64_t group) {
    if (node_.initial.empty()) return {};
    Space space = space_;
    space.loops.resize(space.point_loops);
    space.loops.insert(space.loops.end(), axes.begin(), axes.end());
    space.trim = Condition();
    const std::vector<std::vector<int64_t>> places = places_in_group(axes);
    const scalar::BatchProgram program = scalar::BatchProgram::compile(node_.initial, arithmetic_);
    std::vector<Column> results;
    initial_.resize(size_t(points_ * evaluator_->state_size()));
    return walk(space, Condition(), group, [&](const Walker& walker) -> base::Result<void> {
      LEMMA_TRY_VOID(evaluate(program, results));
      for_groups(group, [&](const Run& run, int64_t k, int64_t position) {
        Scalar* state = initial_.data() + (run.point + k * walker.point_step()) * evaluator_->state_size();
        for (int c = 0; c < components_; ++c) {
          const Column& column = results[size_t(c)];
          for (size_t p = 0; p < places[size_t(c)].size(); ++p) {
            state[evaluator_->offset(c) + int64_t(p)] =
                column.data[column.broadcast ? 0 : position + places[size_t(c)][p]];
          }
        }
      });
      return {};
    });
  }

  // ---- finish ----

  // Writes output o: finish of the kept states, over points, steps and the output's axes.
  void finish(size_t o) {
    const Output& output = node_.outputs[o];
    Stored& to = out_[o];
    const auto& states = output.final_state ? finals_ : states_;
    const int64_t steps = output.final_state || scan_ < 0 ? 1 : steps_;
    const bool filtered = !demand_filter_.is_always();
    if (filtered) to.present.assign(to.values.size(), 0);
    const scalar::BatchProgram program =
        scalar::BatchProgram::compile({&node_.monoid->finish[size_t(output.result)], 1}, arithmetic_);
    std::vector<int> axes;
    int64_t group = 1, step_stride = 0;
    for (size_t d = 0; d < output.dims.size(); ++d) {
      if (node_.indices[size_t(output.dims[d])].role == Role::Axis) {
        axes.push_back(output.dims[d]);
        group *= space_.extents[size_t(output.dims[d])];
      }
      if (output.dims[d] == scan_) step_stride = to.strides[d];
    }
    const std::vector<int64_t> axis_offsets = offsets_of(axes, output, to);
    std::vector<std::vector<int64_t>> positions;  // per component: its position for each of the group's
    for (int c = 0; c < components_; ++c) positions.push_back(positions_of(axes, c, group));
    Finish batch(program, states, *this, to);
    const Condition filter(demand_filter_);
    for (int64_t p = 0; p < points_; ++p) {
      const std::vector<int64_t>& at = point_indices(p);
      if (filtered && filter.at(at.data(), batch_, 0) != Condition::Truth::Yes) continue;
      int64_t base = p / points_per_key() * to.slab_size;
      for (size_t d = 0; d < output.dims.size(); ++d) {
        if (node_.indices[size_t(output.dims[d])].role == Role::Point) base += to.strides[d] * at[size_t(output.dims[d])];
      }
      for (int64_t t = 0; t < steps; ++t) {
        for (int64_t q = 0; q < group; ++q) {
          batch.add(base + t * step_stride + axis_offsets[size_t(q)], p * steps + t, q, positions);
        }
      }
    }
    batch.flush();
  }

  // Gathers finish's operands until a batch is full.
  class Finish {
   public:
    Finish(const scalar::BatchProgram& program, const std::vector<std::vector<Scalar>>& states, Compute& compute,
           Stored& to)
        : program_(program), states_(states), compute_(compute), to_(to), columns_(program.leaves().size()) {
      for (const auto& leaf : program.leaves()) {
        LEMMA_CHECK(leaf.op == scalar::Op::Arg, "a finish is over components");
      }
    }
    void add(int64_t offset, int64_t snapshot, int64_t q, const std::vector<std::vector<int64_t>>& positions) {
      for (size_t l = 0; l < columns_.size(); ++l) {
        const int c = program_.leaves()[l].which;
        columns_[l].push_back(
            states_[size_t(c)][size_t(snapshot * compute_.evaluator_->count(c) + positions[size_t(c)][size_t(q)])]);
      }
      offsets_.push_back(offset);
      if (int64_t(offsets_.size()) == Batch::kCapacity) flush();
    }
    void flush() {
      if (offsets_.empty()) return;
      std::vector<Column> leaves;
      for (const auto& c : columns_) leaves.push_back({c.data(), false});
      Column result;
      program_.run(leaves, int(offsets_.size()), compute_.workspace_, {&result, 1});
      for (size_t k = 0; k < offsets_.size(); ++k) {
        to_.values[size_t(offsets_[k])] =
            stored_value(to_.type, result.data[result.broadcast ? 0 : k], compute_.arithmetic_);
        if (!to_.present.empty()) to_.present[size_t(offsets_[k])] = 1;
      }
      offsets_.clear();
      for (auto& c : columns_) c.clear();
    }

   private:
    const scalar::BatchProgram& program_;
    const std::vector<std::vector<Scalar>>& states_;
    Compute& compute_;
    Stored& to_;
    std::vector<std::vector<Scalar>> columns_;
    std::vector<int64_t> offsets_;
  };

  int64_t points_per_key() const { return demand_.keys.empty() ? 1 : std::max<int64_t>(1, points_ / int64_t(demand_.keys.size())); }

  const std::vector<int64_t>& point_indices(int64_t point) {
    point_at_.assign(space_.extents.size(), 0);
    int64_t rest = point % points_per_key(), key = demand_.keys[size_t(point / points_per_key())];
    for (size_t k = space_.point_loops; k-- > 0;) {
      const int id = space_.loops[k];
      point_at_[size_t(id)] = rest % space_.extents[size_t(id)];
      rest /= space_.extents[size_t(id)];
    }
    for (size_t k = space_.fixed.size(); k-- > 0;) {
      point_at_[size_t(space_.fixed[k])] = key % space_.fixed_extents[k];
      key /= space_.fixed_extents[k];
    }
    return point_at_;
  }

  std::vector<int64_t> offsets_of(const std::vector<int>& axes, const Output& output, const Stored& to) const {
    std::vector<int64_t> out = {0};
    for (int id : axes) {
      const size_t d = size_t(std::find(output.dims.begin(), output.dims.end(), id) - output.dims.begin());
      std::vector<int64_t> next;
      for (int64_t base : out) {
        for (int64_t k = 0; k < space_.extents[size_t(id)]; ++k) next.push_back(base + k * to.strides[d]);
      }
      out = std::move(next);
    }
    return out;
  }

  // For each row-major position of `axes`, the position of component c there.
  std::vector<int64_t> positions_of(const std::vector<int>& axes, int c, int64_t group) const {
    const std::vector<int64_t>& own = evaluator_->axes(c);
    const std::vector<int>& ids = node_.components[size_t(c)];
    std::vector<int64_t> out(size_t(group), 0);
    for (int64_t q = 0; q < group; ++q) {
      int64_t rest = q;
      std::vector<int64_t> at(space_.extents.size(), 0);
      for (size_t a = axes.size(); a-- > 0;) {
        at[size_t(axes[a])] = rest % space_.extents[size_t(axes[a])];
        rest /= space_.extents[size_t(axes[a])];
      }
      for (size_t k = 0; k < own.size(); ++k) {
        out[size_t(q)] = out[size_t(q)] * own[k] + at[size_t(ids[ids.size() - own.size() + k])];
      }
    }
    return out;
  }

  const Graph& graph_;
  const Comprehension& node_;
  const Demand& demand_;
  Arithmetic arithmetic_;
  Frame frame_;
  Batch batch_;
  Space space_;
  Formula demand_filter_;
  Condition rest_;                       // what trimming leaves of the domain; true if nothing
  std::vector<Stored> out_;
  scalar::Arena scratch_;
  scalar::BatchProgram::Workspace workspace_;
  std::vector<Column> leaves_;

  std::optional<monoid::Evaluator> evaluator_;
  int components_ = 0;
  int scan_ = -1;
  int64_t points_ = 0, steps_ = 1;
  std::vector<std::vector<Scalar>> states_, finals_;  // per component: snapshots, row-major within each
  std::vector<Scalar> initial_;
  std::vector<int64_t> point_at_;
};

// A point that only some components have, and whose extent is 0, leaves the others to be computed: it runs once, reads
// that depend on it do not happen, and the outputs that have it are empty. Nothing for nodes without such a point.
std::optional<Comprehension> without_empty_points(const Comprehension& node) {
  std::vector<bool> empty(node.indices.size(), false);
  for (int i : node.with_role(Role::Point)) {
    if (node.indices[size_t(i)].extent.constant() != 0) continue;
    for (const std::vector<int>& set : node.components) {
      if (std::find(set.begin(), set.end(), i) == set.end()) empty[size_t(i)] = true;
    }
  }
  if (std::find(empty.begin(), empty.end(), true) == empty.end()) return std::nullopt;
  Comprehension out = node;
  for (size_t i = 0; i < empty.size(); ++i) {
    if (!empty[i]) continue;
    out.indices[i].extent = view::Form(1);
    for (Read& r : out.reads) {
      bool uses = r.guard.uses(AtomKind::Index, int(i));
      for (const view::Form& c : r.coords) uses = uses || c.uses(AtomKind::Index, int(i));
      if (uses) r.guard = Formula::never();
    }
  }
  return out;
}

}  // namespace

base::Result<std::vector<Stored>> compute(const Graph& graph, const Comprehension& node, const Demand& demand,
                                          const StoredNodes& sources, Arithmetic arithmetic) {
  const auto run_once = without_empty_points(node);
  if (!run_once) return Compute(graph, node, demand, sources, arithmetic).run();
  LEMMA_TRY(std::vector<Stored> out, Compute(graph, *run_once, demand, sources, arithmetic).run());
  for (size_t o = 0; o < out.size(); ++o) {
    std::vector<int64_t> extents;
    for (int id : node.outputs[o].dims) extents.push_back(*node.indices[size_t(id)].extent.constant());
    if (extents != out[o].extents) out[o] = dense(node.outputs[o].type, std::move(extents));
  }
  return out;
}

}  // namespace lemma::tensor
