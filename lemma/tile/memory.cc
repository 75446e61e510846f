#include "lemma/tile/memory.h"

#include <algorithm>

namespace lemma::tile {

Storage::Storage(scalar::DType type, std::vector<int64_t> extents, bool global)
    : type_(type), extents_(std::move(extents)), global_(global) {
  int64_t count = 1;
  for (int64_t e : extents_) count *= e;
  values_.resize(size_t(count), scalar::from_int(0));
  written_.resize(size_t(count));
  if (global_) blocks_.resize(size_t(count));
}

void Storage::forget() { std::fill(written_.begin(), written_.end(), 0); }

bool Storage::read_meets(Marks& m, int64_t group, int64_t who) {
  if (m.writer_group == group && m.writer != who) return true;
  if (m.reader_group != group) {
    m.reader_group = group;
    m.reader = who;
  } else if (m.reader != who) {
    m.reader = -1;
  }
  return false;
}

int Storage::write_meets(Marks& m, int64_t group, int64_t who) {
  if (m.writer_group == group && m.writer != who) return 2;
  if (m.reader_group == group && m.reader != who) return 1;
  m.writer_group = group;
  m.writer = who;
  return 0;
}

Conflict Storage::read(int64_t element, const Toucher& who, bool watch_points, scalar::Scalar& value) {
  const size_t e = size_t(element);
  if (global_ && read_meets(blocks_[e], who.kernel, who.block)) return Conflict::BlockWrite;
  if (!written_[e]) return Conflict::Unwritten;
  if (watch_points) {
    if (points_.empty()) points_.resize(values_.size());
    if (read_meets(points_[e], who.statement, who.point)) return Conflict::PointWrite;
  }
  value = values_[e];
  return Conflict::None;
}

Conflict Storage::write(int64_t element, const Toucher& who, bool watch_points, scalar::Scalar value,
                        Rounding rounding) {
  const size_t e = size_t(element);
  if (global_) {
    const int met = write_meets(blocks_[e], who.kernel, who.block);
    if (met) return met == 1 ? Conflict::BlockRead : Conflict::BlockWrite;
  }
  if (watch_points) {
    if (points_.empty()) points_.resize(values_.size());
    const int met = write_meets(points_[e], who.statement, who.point);
    if (met) return met == 1 ? Conflict::PointRead : Conflict::PointWrite;
  }
  keep(element, value, rounding);
  return Conflict::None;
}

Conflict Storage::combine(int64_t element, const Toucher& who, scalar::Scalar value, Rounding rounding) {
  const size_t e = size_t(element);
  if (global_) {
    Marks& m = blocks_[e];
    const bool written = m.writer_group == who.kernel, read = m.reader_group == who.kernel;
    if (written && m.writer != kCombined && m.writer != who.block) return Conflict::BlockWrite;
    if (read && m.reader != who.block) return Conflict::BlockRead;
    m.writer = written && m.writer == who.block ? who.block : kCombined;
    m.writer_group = who.kernel;
  }
  if (!written_[e]) return Conflict::Unwritten;
  keep(element, value, rounding);
  return Conflict::None;
}

void Storage::keep(int64_t element, scalar::Scalar value, Rounding rounding) {
  if (!scalar::is_float(type_)) {
    value.i = scalar::wrapped(type_, value.i);
  } else if (type_ != scalar::DType::F64 && rounding != Rounding::None) {
    if (rounding == Rounding::All || scalar::bits(type_) < 32) value.f = scalar::rounded(type_, value.f);
  }
  put(element, value);
}

void Storage::put(int64_t element, scalar::Scalar value) {
  values_[size_t(element)] = value;
  written_[size_t(element)] = 1;
}

}  // namespace lemma::tile
