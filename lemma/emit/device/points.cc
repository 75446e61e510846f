#include <algorithm>

#include "lemma/emit/device/statements.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Op;
using tile::Access;
using tile::Range;
using view::AtomKind;
using view::Form;

int open_loops(Text& text, const std::vector<Range>& ranges, Scope& scope) {
  for (const Range& r : ranges) {
    const std::string v = text.fresh("v");
    text.loop(v, index_literal(text.dialect, 0), text.form(r.extent, scope), "1");
    scope.vars[r.var] = v;
  }
  return int(ranges.size());
}

int open_points(Text& text, const std::vector<Range>& points, Scope& scope, bool alone) {
  if (alone) {
    text.test("lm_tid == 0");
    return 1 + open_loops(text, points, scope);
  }
  const std::string tid = convert(text.dialect, text.index_type(), "lm_tid");
  const std::string step = std::to_string(text.options.threads);
  if (points.empty()) {
    text.test("lm_tid == 0");
    return 1;
  }
  if (points.size() == 1) {
    const std::string v = text.fresh("v");
    text.loop(v, tid, text.form(points[0].extent, scope), step);
    scope.vars[points[0].var] = v;
    return 1;
  }
  // Points in row-major order go round among the threads, the last variable fastest.
  std::vector<std::string> extents;
  std::string total;
  for (const Range& r : points) {
    const std::string e = text.fresh("n");
    text.define(text.index_type(), e, text.form(r.extent, scope));
    extents.push_back(e);
    total += (total.empty() ? "" : " * ") + e;
  }
  const std::string p = text.fresh("p");
  text.loop(p, tid, total, step);
  std::string rest = p;
  for (size_t i = points.size(); i-- > 0;) {
    const std::string v = text.fresh("v");
    if (i == 0) {
      text.define(text.index_type(), v, rest);
    } else {
      text.define(text.index_type(), v, rest + " % " + extents[i]);
      const std::string next = text.fresh("q");
      text.define(text.index_type(), next, rest + " / " + extents[i]);
      rest = next;
    }
    scope.vars[points[i].var] = v;
  }
  return 1;
}

std::vector<bool> needed(const std::vector<Access>& reads, std::span<const Expr> roots, const view::Formula& where,
                         const std::vector<const Access*>& stores) {
  std::vector<bool> out(reads.size(), false);
  const auto form = [&](const Form& f) { for (int q : f.ids(AtomKind::Data)) out[size_t(q)] = true; };
  for (int q : where.ids(AtomKind::Data)) out[size_t(q)] = true;
  for (const Access* a : stores) {
    for (const Form& c : a->coords) form(c);
    for (int q : a->guard.ids(AtomKind::Data)) out[size_t(q)] = true;
  }
  for (Expr e : scalar::reachable(roots)) {
    if ((e.is(Op::Arg) || e.is(Op::Present)) && size_t(e.payload()) < out.size()) out[size_t(e.payload())] = true;
  }
  for (size_t r = reads.size(); r-- > 0;) {
    if (!out[r]) continue;
    for (const Form& c : reads[r].coords) form(c);
    for (int q : reads[r].guard.ids(AtomKind::Data)) out[size_t(q)] = true;
  }
  return out;
}

}  // namespace lemma::emit::device
