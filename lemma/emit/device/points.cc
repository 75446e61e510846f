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

Box define_box(Text& text, const std::string& stem, const std::vector<Form>& extents, const Scope& scope) {
  Box box;
  for (const Form& e : extents) {
    box.extents.push_back(text.fresh(stem));
    text.define(text.index_type(), box.extents.back(), text.form(e, scope));
    box.count += (box.count.empty() ? "" : " * ") + box.extents.back();
  }
  if (box.count.empty()) box.count = index_literal(text.dialect, 1);
  return box;
}

std::vector<std::string> take_apart(Text& text, const Box& box, const std::string& number) {
  std::vector<std::string> out(box.extents.size());
  std::string rest = number;
  for (size_t i = out.size(); i-- > 0;) {
    out[i] = text.fresh("v");
    text.define(text.index_type(), out[i], i == 0 ? rest : rest + " % " + box.extents[i]);
    if (i == 0) break;
    const std::string next = text.fresh("q");
    text.define(text.index_type(), next, rest + " / " + box.extents[i]);
    rest = next;
  }
  return out;
}

int open_points(Text& text, const std::vector<Range>& points, Scope& scope, bool alone) {
  if (alone) {
    text.test("lm_tid == 0");
    return 1 + open_loops(text, points, scope);
  }
  const std::string tid = convert(text.dialect, text.index_type(), "lm_tid");
  const std::string step = std::to_string(text.threads);
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
  // The points go round among the threads.
  std::vector<Form> extents;
  for (const Range& r : points) extents.push_back(r.extent);
  const Box box = define_box(text, "n", extents, scope);
  const std::string p = text.fresh("p");
  text.loop(p, tid, box.count, step);
  const std::vector<std::string> at = take_apart(text, box, p);
  for (size_t i = 0; i < points.size(); ++i) scope.vars[points[i].var] = at[i];
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
