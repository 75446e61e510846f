// Carries monoids out on values. Scalar states run as columns through one compiled program; states with axes or inner
// sums gather their reads by tables made once; top-k merges sorted lists.
#include "lemma/monoid/eval.h"

#include <algorithm>
#include <cmath>

#include "lemma/base/check.h"

namespace lemma::monoid {
namespace {

using scalar::Column;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using scalar::Scalar;

int64_t constant_of(const view::Form& form, const SizeValues& sizes) {
  return form.evaluate([&](const view::Atom& a) {
    LEMMA_CHECK(a.kind == view::AtomKind::Size && sizes, "a monoid's extent is not a constant");
    return sizes(a.id);
  });
}

// The one operation of a component's combine x op y, if that is what it is.
std::optional<Op> plain_operation(const Monoid& m, size_t component) {
  if (component >= m.combine.size() || !m.components[component].axes.empty()) return std::nullopt;
  const Update& u = m.combine[component];
  if (!u.sums.empty() || u.reads.size() != 2 || u.reads[0].right == u.reads[1].right || !u.body.valid()) {
    return std::nullopt;
  }
  for (const StateRead& r : u.reads) {
    if (size_t(r.component) != component) return std::nullopt;
  }
  switch (u.body.op()) {
    case Op::Add: case Op::Mul:
      if (u.body.kind() == Kind::Bool) return std::nullopt;
      break;
    case Op::Min: case Op::Max: case Op::And: case Op::Or: break;
    default: return std::nullopt;
  }
  const Expr a = u.body.arg(0), b = u.body.arg(1);
  const bool two = a.is(Op::Arg) && b.is(Op::Arg) && a.payload() != b.payload();
  return two ? std::optional(u.body.op()) : std::nullopt;
}

// Per component its one operation; empty if one of them is not that plain. Components then fold by themselves, in order,
// so that a product of two monoids gives bit for bit what each gives alone.
std::vector<Op> plain_operations(const Monoid& m) {
  std::vector<Op> out;
  for (size_t c = 0; c < m.components.size(); ++c) {
    const auto op = plain_operation(m, c);
    if (!op) return {};
    out.push_back(*op);
  }
  return out;
}

template <class F>
Scalar fold_floats(Scalar state, const Scalar* values, int64_t count, bool single, const F& f) {
  double acc = state.f;
  if (single) {
    for (int64_t k = 0; k < count; ++k) acc = double(float(f(acc, values[k].f)));
  } else {
    for (int64_t k = 0; k < count; ++k) acc = f(acc, values[k].f);
  }
  return scalar::from_float(acc);
}

Scalar fold_float(Op op, Scalar state, const Scalar* values, int64_t count, bool single) {
  switch (op) {
    case Op::Add: return fold_floats(state, values, count, single, [](double a, double b) { return a + b; });
    case Op::Mul: return fold_floats(state, values, count, single, [](double a, double b) { return a * b; });
    case Op::Max:  // a nan stays and takes over
      return fold_floats(state, values, count, false, [](double a, double b) { return b > a || b != b ? b : a; });
    default:
      return fold_floats(state, values, count, false, [](double a, double b) { return b < a || b != b ? b : a; });
  }
}

template <class F>
Scalar fold_integers(Scalar state, const Scalar* values, int64_t count, const F& f) {
  uint64_t acc = uint64_t(state.i);
  for (int64_t k = 0; k < count; ++k) acc = f(acc, uint64_t(values[k].i));
  return scalar::from_int(int64_t(acc));
}

// Wrapping commutes with sums and products, so it happens once.
Scalar fold_integer(Op op, Kind kind, Scalar state, const Scalar* values, int64_t count) {
  using U = uint64_t;
  const auto wrap = [&](Scalar s) { return scalar::from_int(scalar::wrapped(kind, s.i)); };
  switch (op) {
    case Op::Add: return wrap(fold_integers(state, values, count, [](U a, U b) { return a + b; }));
    case Op::Mul: return wrap(fold_integers(state, values, count, [](U a, U b) { return a * b; }));
    case Op::And: return fold_integers(state, values, count, [](U a, U b) { return a & b; });
    case Op::Or: return fold_integers(state, values, count, [](U a, U b) { return a | b; });
    case Op::Max:
      if (kind == Kind::U64) return fold_integers(state, values, count, [](U a, U b) { return std::max(a, b); });
      return fold_integers(state, values, count, [](U a, U b) { return U(std::max(int64_t(a), int64_t(b))); });
    default:
      if (kind == Kind::U64) return fold_integers(state, values, count, [](U a, U b) { return std::min(a, b); });
      return fold_integers(state, values, count, [](U a, U b) { return U(std::min(int64_t(a), int64_t(b))); });
  }
}

// The coordinates of a row-major position.
void decode(int64_t position, const std::vector<int64_t>& extents, std::vector<int64_t>& out) {
  out.resize(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    out[d] = position % extents[d];
    position /= extents[d];
  }
}

}  // namespace

bool precedes(Kind kind, bool smallest, Scalar a, int64_t i, Scalar b, int64_t j) {
  if (i < 0 || j < 0) return i >= 0;
  if (scalar::is_float(kind)) {
    const bool a_nan = std::isnan(a.f), b_nan = std::isnan(b.f);
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && a.f != b.f) return smallest ? a.f < b.f : a.f > b.f;
  } else if (a.i != b.i) {
    const bool less = kind == Kind::U64 ? uint64_t(a.i) < uint64_t(b.i) : a.i < b.i;
    return less == smallest;
  }
  return i < j;
}

void merge_top_k(Kind kind, int count, bool smallest, Slots left, Slots right, Scalar* values, Scalar* indices) {
  int l = 0, r = 0;
  for (int k = 0; k < count; ++k) {
    const bool from_right =
        precedes(kind, smallest, right.values[r], right.indices[r].i, left.values[l], left.indices[l].i);
    const Slots& from = from_right ? right : left;
    int& at = from_right ? r : l;
    values[k] = from.values[at];
    indices[k] = from.indices[at];
    ++at;
  }
}

Evaluator::Evaluator(MonoidRef monoid, const SizeValues& sizes, scalar::Arithmetic arithmetic)
    : monoid_(std::move(monoid)), sizes_(sizes), arithmetic_(arithmetic) {
  const Monoid& m = *monoid_;
  bool scalars = m.structure != Structure::TopK;
  for (const Component& c : m.components) {
    std::vector<int64_t> axes;
    int64_t count = 1;
    for (const view::Form& axis : c.axes) {
      axes.push_back(std::max<int64_t>(0, constant_of(axis, sizes)));
      count *= axes.back();
    }
    scalars = scalars && c.axes.empty();
    axes_.push_back(std::move(axes));
    offsets_.push_back(state_size_);
    counts_.push_back(count);
    state_size_ += count;
  }
  for (const Update& u : m.combine) scalars = scalars && u.sums.empty();
  columnar_ = scalars;
  plain_ = plain_operations(m);
  std::vector<int64_t> at;
  for (size_t c = 0; c < m.components.size(); ++c) {
    for (int64_t p = 0; p < counts_[c]; ++p) {
      decode(p, axes_[c], at);
      scalar::Leaves leaves;
      leaves.index = [&](int i) { return at[size_t(i)]; };
      leaves.size = sizes;
      identity_.push_back(scalar::evaluate(m.identity[c], leaves, arithmetic));
    }
  }
  if (columnar_) {
    std::vector<Expr> roots;
    for (size_t c = 0; c < m.components.size(); ++c) roots.push_back(elementwise_combine(m, c, *m.arena));
    columns_ = scalar::BatchProgram::compile(roots, arithmetic);
  } else if (m.structure != Structure::TopK) {
    for (size_t c = 0; c < m.components.size(); ++c) compile_step(c, sizes);
  }
}

void Evaluator::compile_step(size_t component, const SizeValues& sizes) {
  const Update& update = monoid_->combine[component];
  Step step;
  step.program = scalar::BatchProgram::compile({&update.body, 1}, arithmetic_);
  std::vector<int64_t> extents = axes_[component];
  for (const view::Form& sum : update.sums) {
    extents.push_back(std::max<int64_t>(0, constant_of(sum, sizes)));
    step.inner *= extents.back();
  }
  step.positions = counts_[component] * step.inner;
  step.indices.resize(extents.size());
  step.read_from.resize(update.reads.size());
  for (const StateRead& read : update.reads) step.read_right.push_back(read.right);
  std::vector<int64_t> at;
  for (int64_t p = 0; p < step.positions; ++p) {
    decode(p, extents, at);
    for (size_t d = 0; d < at.size(); ++d) step.indices[d].push_back(scalar::from_int(at[d]));
    for (size_t r = 0; r < update.reads.size(); ++r) {
      const StateRead& read = update.reads[r];
      const std::vector<int64_t>& axes = axes_[size_t(read.component)];
      int64_t position = 0;
      for (size_t d = 0; d < axes.size(); ++d) {
        const int64_t coord = read.coords[d].evaluate([&](const view::Atom& a) {
          return a.kind == view::AtomKind::Index ? at[size_t(a.id)] : sizes(a.id);
        });
        LEMMA_CHECK(coord >= 0 && coord < axes[d], "a monoid's combine reads outside its state");
        position = position * axes[d] + coord;
      }
      step.read_from[r].push_back(offsets_[size_t(read.component)] + position);
    }
  }
  steps_.push_back(std::move(step));
}

void Evaluator::identity(Scalar* state) const { std::copy(identity_.begin(), identity_.end(), state); }

void Evaluator::lift(const OperandAt& operands, Scalar* state) {
  const Monoid& m = *monoid_;
  std::vector<int64_t> at;
  for (size_t c = 0; c < m.components.size(); ++c) {
    for (int64_t p = 0; p < counts_[c]; ++p) {
      decode(p, axes_[c], at);
      scalar::Leaves leaves;
      leaves.arg = [&](int o) { return operands(o, int(c), p); };
      leaves.index = [&](int i) { return at[size_t(i)]; };
      leaves.size = sizes_;
      state[offsets_[c] + p] = scalar::evaluate(m.lift[c], leaves, arithmetic_);
    }
  }
}

void Evaluator::combine(Scalar* left, const Scalar* right) {
  const Monoid& m = *monoid_;
  scratch_.resize(size_t(state_size_));
  if (m.structure == Structure::TopK) {
    merge_top_k(m.components[0].kind, m.count, m.smallest, {left, left + m.count}, {right, right + m.count},
                scratch_.data(), scratch_.data() + m.count);
  } else if (!plain_.empty()) {
    const Segment one{0, 1, 0};
    for (size_t c = 0; c < plain_.size(); ++c) fold_plain(c, {&one, 1}, right + c, left + c);
    return;
  } else if (columnar_) {
    std::vector<Column> x, y;
    std::vector<Scalar*> out;
    for (int64_t c = 0; c < state_size_; ++c) {
      x.push_back({left + c, false});
      y.push_back({right + c, false});
      out.push_back(scratch_.data() + c);
    }
    combine_columns(x, y, 1, out);
  } else {
    std::vector<Column> columns;
    for (size_t c = 0; c < steps_.size(); ++c) {
      const Step& step = steps_[c];
      gathered_.resize(std::max(gathered_.size(), step.read_from.size()));
      for (size_t r = 0; r < step.read_from.size(); ++r) {
        const Scalar* from = step.read_right[r] ? right : left;
        gathered_[r].resize(size_t(step.positions));
        for (int64_t p = 0; p < step.positions; ++p) gathered_[r][size_t(p)] = from[step.read_from[r][size_t(p)]];
      }
      columns.clear();
      std::vector<Scalar> sizes;
      sizes.reserve(step.program.leaves().size());
      for (const auto& leaf : step.program.leaves()) {
        if (leaf.op == Op::Arg) columns.push_back({gathered_[size_t(leaf.which)].data(), false});
        if (leaf.op == Op::Index) columns.push_back({step.indices[size_t(leaf.which)].data(), false});
        if (leaf.op == Op::Size) {
          sizes.push_back(scalar::from_int(sizes_(leaf.which)));
          columns.push_back({&sizes.back(), true});
        }
      }
      Column result;
      if (step.positions > 0) step.program.run(columns, int(step.positions), workspace_, {&result, 1});
      const Update& update = m.combine[c];
      const Kind kind = m.components[c].kind;
      for (int64_t p = 0; p < counts_[c]; ++p) {
        const auto at = [&](int64_t k) { return result.broadcast ? result.data[0] : result.data[p * step.inner + k]; };
        Scalar value;
        if (update.sums.empty()) {
          value = at(0);
        } else {
          const MonoidRef folded = update.fold == Op::Mul   ? product(kind)
                                   : update.fold == Op::Max ? maximum(kind)
                                   : update.fold == Op::Min ? minimum(kind)
                                                            : sum(kind);
          value = scalar::value_of(folded->identity[0]);
          for (int64_t k = 0; k < step.inner; ++k) {
            const Scalar next = at(k);
            value = scalar::is_float(kind)
                        ? fold_float(update.fold, value, &next, 1,
                                     arithmetic_ == scalar::Arithmetic::Single && kind == Kind::F32)
                        : fold_integer(update.fold, kind, value, &next, 1);
          }
        }
        scratch_[size_t(offsets_[c] + p)] = value;
      }
    }
  }
  std::copy(scratch_.begin(), scratch_.end(), left);
}

std::vector<std::vector<Scalar>> Evaluator::finish(const Scalar* state) const {
  std::vector<std::vector<Scalar>> out;
  for (Expr result : monoid_->finish) {
    std::vector<int64_t> extents;
    int64_t positions = 1;
    for (Expr e : scalar::reachable({&result, 1})) {
      if (e.is(Op::Arg) && axes_[size_t(e.payload())].size() > extents.size()) {
        extents = axes_[size_t(e.payload())];
        positions = counts_[size_t(e.payload())];
      }
    }
    std::vector<Scalar> values;
    for (int64_t p = 0; p < positions; ++p) {
      scalar::Leaves leaves;
      leaves.arg = [&](int c) { return state[offset(c) + (count(c) == positions ? p : 0)]; };
      leaves.size = sizes_;
      values.push_back(scalar::evaluate(result, leaves, arithmetic_));
    }
    out.push_back(std::move(values));
  }
  return out;
}

void Evaluator::combine_columns(std::span<const Column> left, std::span<const Column> right, int count,
                                std::span<Scalar* const> out) {
  LEMMA_CHECK(columnar_, "states with axes are not columns");
  const int64_t n = int64_t(left.size());
  std::vector<Column> columns;
  std::vector<Scalar> sizes;
  sizes.reserve(columns_.leaves().size());
  for (const auto& leaf : columns_.leaves()) {
    if (leaf.op == Op::Arg) {
      columns.push_back(leaf.which < n ? left[size_t(leaf.which)] : right[size_t(leaf.which - n)]);
    } else {
      sizes.push_back(scalar::from_int(sizes_(leaf.which)));
      columns.push_back({&sizes.back(), true});
    }
  }
  std::vector<Column> results(columns_.root_count());
  columns_.run(columns, count, workspace_, results);
  for (size_t c = 0; c < results.size(); ++c) {
    for (int k = 0; k < count; ++k) out[c][k] = results[c].data[results[c].broadcast ? 0 : k];
  }
}

void Evaluator::fold_plain(size_t component, std::span<const Segment> segments, const Scalar* elements,
                           Scalar* states) const {
  const Kind kind = monoid_->components[component].kind;
  const Op op = plain_[component];
  const bool single = arithmetic_ == scalar::Arithmetic::Single && kind == Kind::F32;
  for (const Segment& s : segments) {
    Scalar& state = states[s.state];
    const Scalar* values = elements + s.begin;
    state = scalar::is_float(kind) ? fold_float(op, state, values, s.end - s.begin, single)
                                   : fold_integer(op, kind, state, values, s.end - s.begin);
  }
}

void Evaluator::fold_columns(std::span<Scalar* const> elements, std::span<const Segment> segments,
                             std::span<Scalar* const> states) {
  for (size_t c = 0; c < plain_.size(); ++c) fold_plain(c, segments, elements[c], states[c]);
  if (plain_.empty()) {
    fold_tree(elements, std::vector<Segment>(segments.begin(), segments.end()), states);
  }
}

// Combines neighbours until one element a segment is left, then combines it with its state.
void Evaluator::fold_tree(std::span<Scalar* const> elements, std::vector<Segment> segments,
                          std::span<Scalar* const> states) {
  const size_t n = elements.size();
  std::erase_if(segments, [](const Segment& s) { return s.begin >= s.end; });
  tree_.resize(2 * n);
  std::vector<Column> left(n), right(n);
  std::vector<Scalar*> out(n);
  while (true) {
    int64_t pairs = 0;
    for (const Segment& s : segments) pairs += (s.end - s.begin) / 2;
    if (pairs == 0) break;
    for (size_t c = 0; c < n; ++c) {
      std::vector<Scalar>&x = tree_[2 * c], &y = tree_[2 * c + 1];
      x.resize(size_t(pairs));
      y.resize(size_t(pairs));
      size_t k = 0;
      for (const Segment& s : segments) {
        for (int64_t e = s.begin; e + 1 < s.end; e += 2, ++k) {
          x[k] = elements[c][e];
          y[k] = elements[c][e + 1];
        }
      }
      left[c] = {x.data(), false};
      right[c] = {y.data(), false};
      out[c] = x.data();
    }
    std::vector<std::vector<Scalar>> combined(n, std::vector<Scalar>(size_t(pairs)));
    for (size_t c = 0; c < n; ++c) out[c] = combined[c].data();
    combine_columns(left, right, int(pairs), out);
    int64_t k = 0;
    for (Segment& s : segments) {
      const int64_t length = s.end - s.begin, half = length / 2;
      for (size_t c = 0; c < n; ++c) {
        std::copy_n(combined[c].begin() + k, half, elements[c] + s.begin);
        if (length % 2 == 1) elements[c][s.begin + half] = elements[c][s.end - 1];
      }
      k += half;
      s.end = s.begin + half + length % 2;
    }
  }
  const size_t count = segments.size();
  if (count == 0) return;
  std::vector<std::vector<Scalar>> combined(n, std::vector<Scalar>(count));
  for (size_t c = 0; c < n; ++c) {
    tree_[2 * c].resize(count);
    tree_[2 * c + 1].resize(count);
    for (size_t s = 0; s < count; ++s) {
      tree_[2 * c][s] = states[c][segments[s].state];
      tree_[2 * c + 1][s] = elements[c][segments[s].begin];
    }
    left[c] = {tree_[2 * c].data(), false};
    right[c] = {tree_[2 * c + 1].data(), false};
    out[c] = combined[c].data();
  }
  combine_columns(left, right, int(count), out);
  for (size_t c = 0; c < n; ++c) {
    for (size_t s = 0; s < count; ++s) states[c][segments[s].state] = combined[c][s];
  }
}

}  // namespace lemma::monoid
