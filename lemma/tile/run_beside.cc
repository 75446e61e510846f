// Statements of the interpreter that go beyond the block: folds that blocks share, prints, text of a dialect.
#include <algorithm>
#include <cstdio>

#include "lemma/tile/machine.h"

namespace lemma::tile {

using scalar::Kind;
using scalar::Scalar;

bool Machine::statement(const Combine& s) {
  const Columns columns{variables_of(s.box), 0};
  LaneAccess from(s.from, columns), to(s.to, columns);
  from.begin(fixed_);
  to.begin(fixed_);
  const Kind from_kind = scalar::kind_of(storage(s.from.buffer).type()), kind = scalar::kind_of(storage(s.to.buffer).type());
  const Points points(extents(s.box));
  const std::vector<char> known(columns.variables.size(), 1);
  Lanes lanes;
  lanes.columns.resize(columns.variables.size());
  std::vector<int64_t> sources(kLanes), targets(kLanes);
  std::vector<char> take(kLanes), put(kLanes);
  for (int64_t begin = 0; begin < points.count(); begin += kLanes) {
    points.fill(lanes, 0, begin, int(std::min<int64_t>(kLanes, points.count() - begin)));
    from.locate(storage(s.from.buffer), lanes, sources.data());
    to.locate(storage(s.to.buffer), lanes, targets.data());
    from.guard.evaluate(lanes, known, take.data());
    to.guard.evaluate(lanes, known, put.data());
    for (size_t l = 0; l < size_t(lanes.count); ++l) {
      if (!put[l] || !take[l] || targets[l] < 0 || sources[l] < 0) continue;
      Scalar value;
      if (!read(from, sources[l], begin + int64_t(l), false, value, columns, lanes, l)) return false;
      Scalar both[2] = {storage(s.to.buffer).at(targets[l]), converted(value, from_kind, kind)};
      const Conflict c = storage(s.to.buffer).combine(targets[l], who_, scalar::apply(s.op, kind, kind, 0, both, options_.arithmetic), options_.rounding);
      if (c != Conflict::None) return conflict(c, to, true, columns, lanes, l);
    }
  }
  return true;
}

bool Machine::statement(const Print& s) {
  static const view::Formula kAlways;
  PointBody::Parts parts;
  parts.reads = &s.reads;
  parts.where = &kAlways;
  parts.roots = s.values;
  PointBody& body = body_of(&s, {}, parts);
  body.lanes().count = 1;
  if (!body.evaluate(*this, 0)) return false;
  if (!options_.print) return true;
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < s.text.size(); ++i) {
    if (s.text.compare(i, 2, "{}") != 0) {
      out += s.text[i];
      continue;
    }
    const Scalar v = body.value(next, 0);
    const Kind kind = s.values[next++].kind();
    char number[64];
    if (scalar::is_float(kind)) std::snprintf(number, sizeof number, "%.9g", v.f);
    else if (kind == Kind::U64) std::snprintf(number, sizeof number, "%llu", static_cast<unsigned long long>(v.i));
    else std::snprintf(number, sizeof number, "%lld", static_cast<long long>(v.i));
    out += number;
    ++i;
  }
  options_.print(out);
  return true;
}

bool Machine::statement(const Extern& s) {
  fault("text of the dialect " + s.dialect + " cannot be interpreted");
  error_->failure = base::Failure::Unsupported;
  error_->suggestion = "run the program through that dialect";
  return false;
}

}  // namespace lemma::tile
