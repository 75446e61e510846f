// Walks and reads. Affine coordinates are followed along a run by their step; what hangs on data or floors is evaluated
// position by position. A read that is not possible is an error that names node, read and point, except while a domain
// is being decided: there it counts only if nothing else rules the point out.
#include "lemma/tensor/batch.h"

#include <algorithm>
#include <limits>

#include "lemma/base/check.h"

namespace lemma::tensor {

using scalar::Scalar;
using view::AtomKind;
using view::Form;

namespace {

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return int64_t(0 - uint64_t(a));
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_quotient(-a, b); }

void join(std::vector<int>& into, const std::vector<int>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

int64_t Stored::slab(int64_t key) const {
  if (!fixed) return 0;
  if (!slab_of_key.empty()) return slab_of_key[size_t(key)];
  const auto it = slab_of_far_key.find(key);
  return it == slab_of_far_key.end() ? -1 : it->second;
}

Coordinate::Coordinate(const Form& form) {
  for (const view::Term& t : form.terms()) {
    if (t.factors.empty()) {
      constant_ = t.coefficient;
    } else if (t.factors.size() == 1 && t.factors[0].kind == AtomKind::Index) {
      linear_.push_back({t.factors[0].id, t.coefficient});
    } else {
      affine_ = false;
      Product p{t.coefficient, {}};
      for (const view::Atom& a : t.factors) {
        Factor f{a.kind, a.id};
        if (a.kind == AtomKind::Floor) {
          f.id = int(floors_.size() / 2);
          floors_.push_back(Coordinate(a.floor->numerator));
          floors_.push_back(Coordinate(a.floor->denominator));
        }
        p.factors.push_back(f);
      }
      products_.push_back(std::move(p));
    }
  }
  data_ = form.ids(AtomKind::Data);
}

int64_t Coordinate::coefficient(int id) const {
  for (const auto& [i, c] : linear_) {
    if (i == id) return c;
  }
  return 0;
}

int64_t Coordinate::at(const int64_t* indices, const Batch& batch, int64_t position) const {
  uint64_t sum = uint64_t(constant_);  // wraps: data may be anything
  for (const auto& [id, c] : linear_) sum += uint64_t(c) * uint64_t(indices[id]);
  for (const Product& p : products_) {
    uint64_t product = uint64_t(p.coefficient);
    for (const Factor& f : p.factors) {
      switch (f.kind) {
        case AtomKind::Index: product *= uint64_t(indices[f.id]); break;
        case AtomKind::Data: product *= uint64_t(batch.value(f.id, position).i); break;
        case AtomKind::Floor:
          product *= uint64_t(floor_quotient(floors_[size_t(2 * f.id)].at(indices, batch, position),
                                             floors_[size_t(2 * f.id + 1)].at(indices, batch, position)));
          break;
        case AtomKind::Size: LEMMA_CHECK(false, "a size that is not bound");
      }
    }
    sum += product;
  }
  return int64_t(sum);
}

Condition::Condition(const view::Formula& formula) : always_(formula.is_always()) {
  for (const view::Conjunction& c : formula.cases()) {
    std::vector<Part> parts;
    for (const view::Constraint& k : c) {
      parts.push_back({Coordinate(k.form), k.relation == view::Relation::Zero});
      join(data_, parts.back().form.data());
    }
    // What hangs on data comes last, so that it is asked only where the rest holds.
    std::stable_partition(parts.begin(), parts.end(), [](const Part& p) { return p.form.data().empty(); });
    cases_.push_back(std::move(parts));
  }
  trims_ = cases_.size() == 1;
  for (const auto& c : cases_) {
    for (const Part& p : c) trims_ = trims_ && p.form.is_affine();
  }
}

void Condition::trim(int64_t* indices, int inner, int64_t& low, int64_t& high) const {
  for (const Part& p : cases_[0]) {
    const int64_t slope = inner < 0 ? 0 : p.form.coefficient(inner);
    if (inner >= 0) indices[inner] = 0;
    const int64_t base = p.form.at(indices);
    if (slope == 0) {
      if (p.zero ? base != 0 : base < 0) high = low;
    } else if (p.zero) {
      if (base % slope != 0) {
        high = low;
      } else {
        const int64_t only = -base / slope;
        low = std::max(low, only);
        high = std::min(high, only + 1);
      }
    } else if (slope > 0) {
      low = std::max(low, ceil_quotient(-base, slope));
    } else {
      high = std::min(high, floor_quotient(base, -slope) + 1);
    }
    if (low >= high) {
      high = low;
      return;
    }
  }
}

Condition::Truth Condition::at(const int64_t* indices, const Batch& batch, int64_t position) const {
  bool unknown = false;
  for (const auto& parts : cases_) {
    Truth truth = Truth::Yes;
    for (const Part& p : parts) {
      bool usable = true, impossible = false;
      for (int r : p.form.data()) {
        usable = usable && batch.is_usable(r, position);
        impossible = impossible || batch.was_impossible(r, position);
      }
      if (!usable) {
        if (impossible) {
          truth = Truth::Unknown;
          continue;
        }
        truth = Truth::No;  // an absent value makes no condition hold
        break;
      }
      const int64_t v = p.form.at(indices, batch, position);
      if (p.zero ? v != 0 : v < 0) {
        truth = Truth::No;
        break;
      }
    }
    if (truth == Truth::Yes) return truth;
    unknown = unknown || truth == Truth::Unknown;
  }
  return unknown ? Truth::Unknown : Truth::No;
}

Walker::Walker(const Space& space) : space_(space), indices_(space.extents.size(), 0) {
  if (!space.loops.empty()) {
    inner_ = space.loops.back();
    inner_extent_ = space.extents[size_t(inner_)];
    inner_is_point_ = space.point_loops == space.loops.size();
    outer_.assign(space.loops.begin(), space.loops.end() - 1);
    if (space.reversed == inner_) inner_step_ = -1;
  }
  done_ = space.keys->empty();
  for (int id : space.loops) done_ = done_ || space.extents[size_t(id)] == 0;
  for (size_t k = 0; k < space.point_loops; ++k) points_per_key_ *= space.extents[size_t(space.loops[k])];
  points_ = points_per_key_ * int64_t(space.keys->size());
  at_.assign(outer_.size(), 0);
  if (!done_) set_outer();
}

void Walker::set_outer() {
  int64_t rest = (*space_.keys)[key_];
  for (size_t k = space_.fixed.size(); k-- > 0;) {
    indices_[size_t(space_.fixed[k])] = rest % space_.fixed_extents[k];
    rest /= space_.fixed_extents[k];
  }
  for (size_t k = 0; k < outer_.size(); ++k) {
    const int id = outer_[k];
    indices_[size_t(id)] = id == space_.reversed ? space_.extents[size_t(id)] - 1 - at_[k] : at_[k];
  }
  low_ = 0;
  high_ = inner_extent_;
  if (space_.trim.trims()) space_.trim.trim(indices_.data(), inner_, low_, high_);
}

bool Walker::advance() {
  for (size_t k = outer_.size(); k-- > 0;) {
    if (++at_[k] < space_.extents[size_t(outer_[k])]) return true;
    at_[k] = 0;
  }
  return ++key_ < space_.keys->size();
}

bool Walker::next(int64_t most, Run& run, std::vector<int64_t>& indices) {
  while (!done_ && low_ >= high_) {
    done_ = !advance();
    if (!done_) set_outer();
  }
  if (done_) return false;
  run.count = std::min(most, high_ - low_);
  run.slab = int64_t(key_);
  int64_t point = 0;
  for (size_t k = 0; k < space_.point_loops && k < outer_.size(); ++k) {
    point = point * space_.extents[size_t(outer_[k])] + at_[k];
  }
  if (inner_is_point_) point = point * inner_extent_ + low_;
  run.point = int64_t(key_) * points_per_key_ + point;
  if (inner_step_ > 0) {
    run.first = low_;
    low_ += run.count;
  } else {
    run.first = high_ - 1;
    high_ -= run.count;
  }
  indices = indices_;
  return true;
}

Batch::Batch(const Frame& frame, std::vector<ReadPlan> reads, std::vector<int64_t> sizes)
    : frame_(frame), reads_(std::move(reads)) {
  for (int64_t s : sizes) sizes_.push_back(scalar::from_int(s));
  const size_t indices = frame.indices.size();
  current_.resize(indices);
  values_.resize(reads_.size());
  states_.resize(reads_.size());
  filled_.assign(reads_.size(), 0);
  index_columns_.resize(indices);
  present_columns_.resize(reads_.size());
}

void Batch::start(const Walker& walker) {
  runs_.clear();
  outer_values_.clear();
  mask_.clear();
  size_ = 0;
  inner_ = walker.inner();
  step_ = walker.inner_step();
  std::fill(filled_.begin(), filled_.end(), 0);
}

void Batch::add(const Run& run, const std::vector<int64_t>& indices) {
  runs_.push_back(run);
  runs_.back().begin = size_;
  size_ += run.count;
  outer_values_.insert(outer_values_.end(), indices.begin(), indices.end());
}

int64_t* Batch::indices_at(const Run& run, int64_t k) {
  const size_t r = size_t(&run - runs_.data());
  const size_t n = current_.size();
  std::copy_n(outer_values_.begin() + ptrdiff_t(r * n), n, current_.begin());
  if (inner_ >= 0) current_[size_t(inner_)] = run.first + k * step_;
  return current_.data();
}

std::string Batch::point_text(const Run& run, int64_t k) {
  const int64_t* at = indices_at(run, k);
  std::string out;
  for (size_t i = 0; i < frame_.indices.size(); ++i) {
    out += (i == 0 ? "" : ", ") + frame_.indices[i].name + " = " + std::to_string(at[i]);
  }
  return out.empty() ? "its only point" : out;
}

base::Result<void> Batch::filter(const Condition& condition) {
  if (condition.always()) return {};
  for (int r : condition.data()) LEMMA_TRY_VOID(fill(r, true));
  std::vector<uint8_t> mask(size_t(size_), 0);
  bool all = true;
  for (const Run& run : runs_) {
    int64_t* at = indices_at(run, 0);
    for (int64_t k = 0; k < run.count; ++k) {
      if (inner_ >= 0) at[inner_] = run.first + k * step_;
      if (!active(run.begin + k)) {
        all = false;
        continue;
      }
      const Condition::Truth truth = condition.at(at, *this, run.begin + k);
      if (truth == Condition::Truth::Unknown) {
        for (int r : condition.data()) {
          if (!was_impossible(r, run.begin + k)) continue;
          return base::invalid("the domain of " + frame_.name + " hangs on a read of " + reads_[size_t(r)].name +
                                   " that is not possible at " + point_text(run, k),
                               frame_.span, "guard the read");
        }
      }
      mask[size_t(run.begin + k)] = truth == Condition::Truth::Yes;
      all = all && truth == Condition::Truth::Yes;
    }
  }
  if (!all) mask_ = std::move(mask);
  // What was read tolerantly is read again, strictly, where an expression needs it.
  for (char& f : filled_) f = f == 2 && !all ? 0 : f;
  return {};
}

base::Result<void> Batch::fill(int read, bool tolerant) {
  const size_t r = size_t(read);
  if (filled_[r] == 1 || (filled_[r] == 2 && tolerant)) return {};
  for (int d : reads_[r].guard.data()) LEMMA_TRY_VOID(fill(d, tolerant));
  for (const Coordinate& c : reads_[r].coords) {
    for (int d : c.data()) LEMMA_TRY_VOID(fill(d, tolerant));
  }
  values_[r].resize(size_t(std::max(size_, kCapacity)));
  states_[r].assign(size_t(size_), kRead);
  const bool simple = reads_[r].affine && mask_.empty() && (reads_[r].guard.always() || reads_[r].guard.trims());
  for (const Run& run : runs_) {
    if (simple && fill_fast(r, run)) continue;
    LEMMA_TRY_VOID(fill_run(r, run, tolerant));
  }
  filled_[r] = tolerant ? 2 : 1;
  return {};
}

namespace {

// Shows wherever it is used by mistake.
Scalar poison(scalar::Kind kind) {
  return scalar::is_float(kind) ? scalar::from_float(std::numeric_limits<double>::quiet_NaN()) : scalar::from_int(0);
}

}  // namespace

// Follows affine coordinates along a run. False, with nothing done, if the run needs care: it may leave the source, meets
// absent elements, or moves along a fixed dimension.
bool Batch::fill_fast(size_t r, const Run& run) {
  const ReadPlan& read = reads_[r];
  const Stored& source = *read.source;
  int64_t* at = indices_at(run, 0);
  int64_t from = 0, to = run.count;
  if (!read.guard.always()) {
    if (step_ < 0) return false;
    int64_t low = run.first, high = run.first + run.count;
    read.guard.trim(at, inner_, low, high);
    if (inner_ < 0) {
      if (low >= high) to = from;
    } else {
      // A guard that holds nowhere here may have been trimmed to nothing beyond the run's end.
      from = std::clamp<int64_t>(low - run.first, 0, run.count);
      to = std::clamp(high - run.first, from, run.count);
      at[inner_] = run.first;
    }
  }
  Scalar* out = values_[r].data() + run.begin;
  if (from < to) {
    int64_t offset = 0, slope = 0, key = 0;
    for (size_t d = 0; d < read.coords.size(); ++d) {
      const Coordinate& c = read.coords[d];
      const int64_t start = c.at(at);
      const int64_t step = inner_ < 0 ? 0 : c.coefficient(inner_) * step_;
      if (!read.proved[d]) {
        const int64_t a = start + step * from, b = start + step * (to - 1);
        if (std::min(a, b) < 0 || std::max(a, b) >= source.extents[d]) return false;
      }
      if (source.key_strides[d] != 0 && step != 0) return false;
      offset += start * source.strides[d];
      slope += step * source.strides[d];
      key += start * source.key_strides[d];
    }
    const int64_t slab = source.slab(key);
    LEMMA_CHECK(slab >= 0, "a read of an element that no demand asked for");
    offset += slab * source.slab_size;
    if (!source.present.empty()) {
      for (int64_t k = from; k < to; ++k) {
        if (!source.present[size_t(offset + slope * k)]) return false;
      }
    }
    if (source.raw) {
      for (int64_t k = from; k < to; ++k) out[k] = source.load(offset + slope * k);
    } else {
      const Scalar* data = source.values.data() + offset;
      if (slope == 1) {
        std::copy(data + from, data + to, out + from);
      } else {
        for (int64_t k = from; k < to; ++k) out[k] = data[slope * k];
      }
    }
  }
  if (from > 0 || to < run.count) {
    const Scalar absent = poison(read.kind);
    uint8_t* states = states_[r].data() + run.begin;
    for (int64_t k = 0; k < run.count; ++k) {
      if (k >= from && k < to) continue;
      out[k] = absent;
      states[k] = kAbsent;
    }
  }
  return true;
}

base::Result<void> Batch::fill_run(size_t r, const Run& run, bool tolerant) {
  const ReadPlan& read = reads_[r];
  const Stored& source = *read.source;
  const Scalar absent = poison(read.kind);
  int64_t* at = indices_at(run, 0);
  std::vector<int64_t> coords(read.coords.size());
  for (int64_t k = 0; k < run.count; ++k) {
    const int64_t position = run.begin + k;
    Scalar& out = values_[r][size_t(position)];
    uint8_t& state = states_[r][size_t(position)];
    out = absent;
    state = kAbsent;
    if (!active(position)) continue;
    if (inner_ >= 0) at[inner_] = run.first + k * step_;
    if (!read.guard.always()) {
      const Condition::Truth truth = read.guard.at(at, *this, position);
      if (truth == Condition::Truth::No) continue;
      if (truth == Condition::Truth::Unknown) {
        state = kImpossible;
        continue;
      }
    }
    bool inside = true, possible = true;
    int64_t offset = 0, key = 0;
    for (size_t d = 0; d < coords.size(); ++d) {
      for (int data : read.coords[d].data()) possible = possible && is_usable(data, position);
      coords[d] = read.coords[d].at(at, *this, position);
      inside = inside && coords[d] >= 0 && coords[d] < source.extents[d];
      if (!inside) break;
      offset += coords[d] * source.strides[d];
      key += coords[d] * source.key_strides[d];
    }
    if (!inside || !possible) {
      state = kImpossible;
      if (tolerant) continue;
      if (!possible) {
        return base::invalid("the coordinates of a read of " + read.name + " by " + frame_.name +
                                 " hang on an absent value at " + point_text(run, k),
                             frame_.span, "guard the read by the condition of the value it hangs on");
      }
      return outside(r, run, k, coords);
    }
    const int64_t slab = source.slab(key);
    LEMMA_CHECK(slab >= 0, "a read of an element that no demand asked for");
    offset += slab * source.slab_size;
    if (!source.is_present(offset)) {
      state = kImpossible;
      if (tolerant) continue;
      return off_domain(r, run, k, coords);
    }
    out = source.load(offset);
    state = kRead;
  }
  return {};
}

namespace {

std::string list(const std::vector<int64_t>& values) {
  std::string out;
  for (int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return out;
}

}  // namespace

base::Diagnostic Batch::outside(size_t r, const Run& run, int64_t k, const std::vector<int64_t>& coords) {
  // Coordinates after the first that leaves were not computed; all are asked again for the message.
  std::vector<int64_t> all = coords;
  const std::string point = point_text(run, k);
  const int64_t* at = indices_at(run, k);
  for (size_t d = 0; d < all.size(); ++d) all[d] = reads_[r].coords[d].at(at, *this, run.begin + k);
  return base::invalid(frame_.name + " reads " + reads_[r].name + "[" + list(all) + "], outside its extents [" +
                           list(reads_[r].source->extents) + "], at " + point,
                       frame_.span, "guard the read, or narrow the domain of " + frame_.name);
}

base::Diagnostic Batch::off_domain(size_t r, const Run& run, int64_t k, const std::vector<int64_t>& coords) {
  return base::invalid(frame_.name + " reads " + reads_[r].name + "[" + list(coords) +
                           "], which is off the domain of " + reads_[r].name + ", at " + point_text(run, k),
                       frame_.span, "guard the read, or give " + reads_[r].name + " a value there with else");
}

base::Result<void> Batch::columns(const scalar::BatchProgram& program, std::vector<scalar::Column>& out) {
  out.clear();
  for (const auto& leaf : program.leaves()) {
    if (leaf.op == scalar::Op::Arg || leaf.op == scalar::Op::Present) LEMMA_TRY_VOID(fill(leaf.which, false));
  }
  for (const auto& leaf : program.leaves()) {
    const size_t which = size_t(leaf.which);
    switch (leaf.op) {
      case scalar::Op::Arg: out.push_back({values_[which].data(), false}); break;
      case scalar::Op::Size: out.push_back({&sizes_[which], true}); break;
      case scalar::Op::Present: {
        std::vector<Scalar>& column = present_columns_[which];
        column.resize(size_t(size_));
        for (int64_t k = 0; k < size_; ++k) column[size_t(k)] = scalar::from_int(is_usable(int(which), k));
        out.push_back({column.data(), false});
        break;
      }
      default: {
        std::vector<Scalar>& column = index_columns_[which];
        column.resize(size_t(size_));
        for (size_t n = 0; n < runs_.size(); ++n) {
          const Run& run = runs_[n];
          Scalar* to = column.data() + run.begin;
          if (int(which) == inner_) {
            for (int64_t k = 0; k < run.count; ++k) to[k].i = run.first + k * step_;
          } else {
            std::fill_n(to, run.count, scalar::from_int(outer_values_[n * current_.size() + which]));
          }
        }
        out.push_back({column.data(), false});
      }
    }
  }
  return {};
}

}  // namespace lemma::tensor
