// Points in lanes: where accesses lie, which reads are made, and what the expressions give.
#include "lemma/tile/machine.h"

#include <algorithm>

#include "lemma/tile/edit.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {

using scalar::Expr;
using scalar::Op;
using scalar::Scalar;

Points::Points(std::vector<int64_t> extents) : extents_(std::move(extents)) {
  for (int64_t e : extents_) count_ = e <= 0 ? 0 : count_ * e;
}

void Points::fill(Lanes& lanes, size_t first_column, int64_t begin, int n) const {
  lanes.count = n;
  int64_t inner = 1;
  for (size_t d = extents_.size(); d-- > 0;) {
    std::vector<int64_t>& column = lanes.columns[first_column + d];
    column.resize(size_t(n));
    int64_t run = begin % inner, at = begin / inner % extents_[d];
    for (int l = 0; l < n; ++l) {
      column[size_t(l)] = at;
      if (++run == inner) {
        run = 0;
        if (++at == extents_[d]) at = 0;
      }
    }
    inner *= extents_[d];
  }
}

int Columns::variable(Var v) const {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i] == v) return int(i);
  }
  return -1;
}

int Columns::of(const view::Atom& a) const {
  if (a.kind == view::AtomKind::Index) return variable(a.id);
  if (a.kind == view::AtomKind::Data) return int(variables.size()) + a.id;
  return -1;
}

LaneAccess::LaneAccess(const Access& access, const Columns& columns) : access_(&access) {
  const ColumnOf of = [columns](const view::Atom& a) { return columns.of(a); };
  guard = LaneFormula(access.guard, of);
  for (const view::Form& f : access.coords) coords_.emplace_back(f, of);
}

void LaneAccess::begin(const view::Form::Lookup& fixed) {
  guard.begin(fixed);
  for (LaneForm& f : coords_) f.begin(fixed);
}

void LaneAccess::locate(const Storage& storage, const Lanes& lanes, int64_t* element) {
  values_.resize(size_t(lanes.count));
  std::fill(element, element + lanes.count, 0);
  for (size_t d = 0; d < coords_.size(); ++d) {
    const int64_t extent = storage.extents()[d];
    coords_[d].evaluate(lanes, values_.data());
    for (int l = 0; l < lanes.count; ++l) {
      const int64_t x = values_[size_t(l)];
      const bool in = x >= 0 && x < extent && element[l] >= 0;
      element[l] = in ? element[l] * extent + x : -1;
    }
  }
}

namespace {

// The reads that `form` uses, closed under the reads that those use.
void mark_reads(const std::vector<int>& ids, const std::vector<Access>& reads, std::vector<char>& marked) {
  std::vector<int> todo = ids;
  while (!todo.empty()) {
    const int r = todo.back();
    todo.pop_back();
    if (marked[size_t(r)]) continue;
    marked[size_t(r)] = true;
    for (const view::Form& f : reads[size_t(r)].coords) {
      for (int q : f.ids(view::AtomKind::Data)) todo.push_back(q);
    }
    for (int q : reads[size_t(r)].guard.ids(view::AtomKind::Data)) todo.push_back(q);
  }
}

std::vector<int> reads_in(std::span<const Expr> roots) {
  std::vector<int> out;
  for (Expr e : scalar::reachable(roots)) {
    if (e.is(Op::Arg) || e.is(Op::Present)) out.push_back(int(e.payload()));
  }
  return out;
}

}  // namespace

PointBody::PointBody(const Program& program, std::vector<Var> variables, const Parts& parts,
                     scalar::Arithmetic arithmetic) {
  const std::vector<Access>& reads = *parts.reads;
  columns_ = {std::move(variables), reads.size()};
  const size_t count = reads.size();
  for (const Access& a : reads) {
    reads_.emplace_back(a, columns_);
    integral_.push_back(!scalar::is_float(program.buffers[size_t(a.buffer)].type));
  }
  where_ = LaneFormula(*parts.where, [columns = columns_](const view::Atom& a) { return columns.of(a); });
  in_where_.resize(count);
  off_domain_.resize(count);
  mark_reads(parts.where->ids(view::AtomKind::Data), reads, in_where_);
  mark_reads(reads_in(parts.off_domain), reads, off_domain_);
  skipped_.resize(count);
  if (parts.only_used) {
    std::vector<char> used = in_where_;
    std::vector<char> by_roots(count);
    mark_reads(reads_in(parts.roots), reads, by_roots);
    for (size_t r = 0; r < count; ++r) skipped_[r] = !used[r] && !by_roots[r];
  }
  program_ = scalar::BatchProgram::compile(parts.roots, arithmetic);
  results_.resize(program_.root_count());
  leaf_values_.resize(program_.leaves().size());
  leaf_columns_.resize(program_.leaves().size());
  lanes_.columns.resize(columns_.variables.size() + count);
  known_.resize(lanes_.columns.size());
  values_.resize(count);
  present_.resize(count);
}

bool PointBody::reads_buffer(int buffer) const {
  return std::any_of(reads_.begin(), reads_.end(), [&](const LaneAccess& a) { return a.buffer() == buffer; });
}

void PointBody::begin(Machine& machine) {
  where_.begin(machine.fixed());
  for (LaneAccess& a : reads_) a.begin(machine.fixed());
}

bool PointBody::load(Machine& machine, size_t r, int64_t first_point) {
  LaneAccess& access = reads_[r];
  const size_t count = size_t(lanes_.count);
  std::vector<int64_t>& integers = lanes_.columns[columns_.variables.size() + r];
  values_[r].assign(count, scalar::from_int(0));
  if (integral_[r]) integers.assign(count, 0);
  known_[columns_.variables.size() + r] = true;
  const Storage& storage = machine.storage(access.buffer());
  elements_.resize(count);
  access.locate(storage, lanes_, elements_.data());
  const bool watch = std::find(watched_.begin(), watched_.end(), access.buffer()) != watched_.end();
  for (size_t l = 0; l < count; ++l) {
    if (!mask_[l]) continue;
    if (!machine.read(access, elements_[l], first_point + int64_t(l), watch, values_[r][l], columns_, lanes_, l)) return false;
    if (integral_[r]) integers[l] = values_[r][l].i;
  }
  return true;
}

bool PointBody::evaluate(Machine& machine, int64_t first_point) {
  const size_t count = size_t(lanes_.count);
  std::fill(known_.begin(), known_.end(), char(0));
  std::fill(known_.begin(), known_.begin() + ptrdiff_t(columns_.variables.size()), char(1));
  where_mask_.resize(count);
  mask_.resize(count);
  guard_mask_.resize(count);
  auto guard = [&](size_t r) {
    reads_[r].guard.evaluate(lanes_, known_, guard_mask_.data());
    present_[r].resize(count);
    for (size_t l = 0; l < count; ++l) present_[r][l] = scalar::from_int(guard_mask_[l]);
  };
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (!in_where_[r]) continue;
    guard(r);
    where_.evaluate(lanes_, known_, mask_.data());
    for (size_t l = 0; l < count; ++l) mask_[l] = char(mask_[l] & guard_mask_[l]);
    if (!load(machine, r, first_point)) return false;
  }
  where_.evaluate(lanes_, known_, where_mask_.data());
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (in_where_[r]) continue;
    guard(r);
    const char everywhere = off_domain_[r];
    for (size_t l = 0; l < count; ++l) {
      mask_[l] = char(guard_mask_[l] & (where_mask_[l] | everywhere) & int(!skipped_[r]));
    }
    if (!load(machine, r, first_point)) return false;
  }
  fill_leaves(machine);
  program_.run(leaf_columns_, lanes_.count, workspace_, results_);
  return true;
}

void PointBody::fill_leaves(Machine& machine) {
  for (size_t i = 0; i < leaf_columns_.size(); ++i) {
    const scalar::BatchProgram::Leaf& leaf = program_.leaves()[i];
    std::vector<Scalar>& own = leaf_values_[i];
    if (leaf.op == Op::Arg) {
      leaf_columns_[i] = {values_[size_t(leaf.which)].data(), false};
      continue;
    }
    if (leaf.op == Op::Present) {
      leaf_columns_[i] = {present_[size_t(leaf.which)].data(), false};
      continue;
    }
    const int column = leaf.op == Op::Index ? columns_.variable(leaf.which) : -1;
    if (column >= 0) {
      const std::vector<int64_t>& from = lanes_.columns[size_t(column)];
      own.resize(size_t(lanes_.count));
      for (size_t l = 0; l < own.size(); ++l) own[l] = scalar::from_int(from[l]);
    } else {
      own.assign(1, scalar::from_int(leaf.op == Op::Size ? machine.size(leaf.which) : machine.variable(leaf.which)));
    }
    leaf_columns_[i] = {own.data(), column < 0};
  }
}

// ---- faults ----

bool Machine::fault(const std::string& message) {
  std::string text = kernel_ ? place_text(kernel_->name, path_, word_) + ": " + message : message;
  std::string values;
  for (Var v : scope_) {
    values += (values.empty() ? ", at " : ", ") + program_.variables[size_t(v)] + " = " + std::to_string(variables_[size_t(v)]);
  }
  error_ = base::invalid(text + values);
  return false;
}

bool Machine::cannot(const std::string& message) {
  fault(message);
  error_->failure = base::Failure::Unsupported;
  return false;
}

bool Machine::fault(const std::string& message, const Columns& columns, const Lanes& lanes, size_t lane) {
  const size_t depth = scope_.size();
  for (size_t i = 0; i < columns.variables.size(); ++i) {
    const Var v = columns.variables[i];
    variables_[size_t(v)] = lanes.columns[i][lane];
    scope_.push_back(v);
  }
  fault(message);
  scope_.resize(depth);
  return false;
}

namespace {

std::string list(const std::vector<int64_t>& values) {
  std::string out;
  for (int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return "[" + out + "]";
}

std::vector<int64_t> coordinates(const Access& a, const Columns& columns, const Lanes& lanes, size_t lane,
                                 const view::Form::Lookup& fixed) {
  std::vector<int64_t> out;
  for (const view::Form& f : a.coords) {
    out.push_back(f.evaluate([&](const view::Atom& atom) {
      const int c = columns.of(atom);
      return c < 0 ? fixed(atom) : lanes.columns[size_t(c)][lane];
    }));
  }
  return out;
}

}  // namespace

bool Machine::outside(const LaneAccess& access, bool writes, const Columns& columns, const Lanes& lanes, size_t lane) {
  const Access& a = access.access();
  return fault(std::string(writes ? "writes " : "reads ") + program_.buffers[size_t(a.buffer)].name +
                   list(coordinates(a, columns, lanes, lane, fixed_)) + ", outside its extents " +
                   list(storage(a.buffer).extents()),
               columns, lanes, lane);
}

bool Machine::conflict(Conflict c, const LaneAccess& access, bool writes, const Columns& columns, const Lanes& lanes,
                       size_t lane) {
  const Access& a = access.access();
  const std::string subject = std::string(writes ? "writes " : "reads ") + program_.buffers[size_t(a.buffer)].name +
                              list(coordinates(a, columns, lanes, lane, fixed_));
  switch (c) {
    case Conflict::None: return true;
    case Conflict::Unwritten: return fault(subject + ", which nothing has written", columns, lanes, lane);
    case Conflict::BlockRead: return fault(subject + ", which another block of the grid reads", columns, lanes, lane);
    case Conflict::BlockWrite: return fault(subject + ", which another block of the grid writes", columns, lanes, lane);
    case Conflict::PointRead: return fault(subject + ", which another point of the statement reads", columns, lanes, lane);
    case Conflict::PointWrite: return fault(subject + ", which another point of the statement writes", columns, lanes, lane);
  }
  return false;
}

bool Machine::read(LaneAccess& access, int64_t element, int64_t point, bool watch, Scalar& out, const Columns& columns,
                   const Lanes& lanes, size_t lane) {
  if (element < 0) return outside(access, false, columns, lanes, lane);
  who_.point = point;
  const Conflict c = storage(access.buffer()).read(element, who_, watch, out);
  return c == Conflict::None || conflict(c, access, false, columns, lanes, lane);
}

bool Machine::write(LaneAccess& access, int64_t element, int64_t point, bool watch, Scalar value,
                    const Columns& columns, const Lanes& lanes, size_t lane) {
  if (element < 0) return outside(access, true, columns, lanes, lane);
  who_.point = point;
  const Conflict c = storage(access.buffer()).write(element, who_, watch, value, options_.rounding);
  return c == Conflict::None || conflict(c, access, true, columns, lanes, lane);
}

}  // namespace lemma::tile
