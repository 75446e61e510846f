// Statements over the same rows, row by row. Adjacent maps and reductions whose leading points agree share the loops over
// these points, so that a row is still in the nearest cache when the next statement reads it:
//
//     for i: m[i] = max over j of x[i, j]           for i:
//     for i: s[i] = sum over j of e(x[i, j], m[i])    m[i] = ..., s[i] = ..., y[i, :] = ...
//     for i, j: y[i, j] = ...                =>
//
// It holds where whatever one statement writes and another touches is found at a place of its own for every shared point:
// then statements of different points never meet. Within a row, what a reduction computes at a cost and a later statement
// computes again is stored on the way (see kept.cc).

#include <algorithm>

#include "lemma/emit/rows.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/value.h"
#include "lemma/tile/space.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Op;
using tile::Access;
using tile::Map;
using tile::Range;
using tile::Reduce;
using tile::Var;
using view::AtomKind;
using view::Form;

std::vector<Range>& points_of(tile::Stmt& stmt) {
  if (auto* map = std::get_if<Map>(&stmt)) return map->points;
  return std::get<Reduce>(stmt).points;
}

std::vector<const Access*> reads_of(const tile::Stmt& stmt) {
  std::vector<const Access*> out;
  const auto* map = std::get_if<Map>(&stmt);
  for (const Access& a : map ? map->reads : std::get<Reduce>(stmt).reads) out.push_back(&a);
  return out;
}

std::vector<const Access*> writes_of(const tile::Stmt& stmt) {
  std::vector<const Access*> out;
  if (const auto* map = std::get_if<Map>(&stmt)) {
    for (const tile::Store& s : map->stores) out.push_back(&s.to);
  } else {
    for (const Access& a : std::get<Reduce>(stmt).states) out.push_back(&a);
  }
  return out;
}

void edit_statement(Unit& unit, tile::Stmt& stmt, const std::function<Access(const Access&)>& access,
                    const std::function<view::Formula(const view::Formula&)>& formula,
                    const std::function<Form(const Form&)>& extent, const scalar::Replace& replace) {
  const auto expression = [&](Expr& e) {
    if (e.valid()) e = scalar::rewrite(e, unit.arena, replace);
  };
  const auto ranges = [&](std::vector<Range>& list) {
    for (Range& r : list) r.extent = extent(r.extent);
  };
  if (auto* map = std::get_if<Map>(&stmt)) {
    ranges(map->points);
    map->where = formula(map->where);
    for (Access& a : map->reads) a = access(a);
    for (tile::Store& s : map->stores) {
      s.to = access(s.to);
      expression(s.value);
      expression(s.otherwise);
    }
    return;
  }
  auto& reduce = std::get<Reduce>(stmt);
  ranges(reduce.points);
  ranges(reduce.reduces);
  reduce.where = formula(reduce.where);
  for (Access& a : reduce.reads) a = access(a);
  for (Access& a : reduce.states) a = access(a);
  for (Expr& e : reduce.body) expression(e);
}

void rename_variable(Unit& unit, tile::Stmt& stmt, Var from, Var to) {
  if (from == to) return;
  const auto index = [&](int v) { return Form::index(v == from ? to : v); };
  const auto form = [&](const Form& f) { return f.uses(AtomKind::Index, from) ? f.map_indices(index) : f; };
  const auto formula = [&](const view::Formula& f) { return f.uses(AtomKind::Index, from) ? f.map_indices(index) : f; };
  const auto access = [&](const Access& a) {
    Access out = a;
    for (Form& c : out.coords) c = form(c);
    out.guard = formula(a.guard);
    return out;
  };
  edit_statement(unit, stmt, access, formula, form, [&](Expr e, std::span<const Expr>) {
    return e.is(Op::Index) && int(e.payload()) == from ? scalar::index(unit.arena, to) : Expr();
  });
  const auto variable = [&](std::vector<Range>& ranges) {
    for (Range& r : ranges) if (r.var == from) r.var = to;
  };
  variable(points_of(stmt));
  if (auto* reduce = std::get_if<Reduce>(&stmt)) variable(reduce->reduces);
}

namespace {

// How many of the first points may become loops around several statements.
size_t leading_points(Unit& unit, const tile::Stmt& stmt) {
  std::optional<Var> lane;
  size_t loops = 0;
  const auto* map = std::get_if<Map>(&stmt);
  const auto* reduce = std::get_if<Reduce>(&stmt);
  if (map) {
    for (const tile::Store& s : map->stores) {
      if (unit.buffer(s.to.buffer).layout.kind == tile::LayoutKind::Panels) return 0;
    }
    lane = lane_variable(unit, *map);
    loops = map->points.size();
  } else if (reduce) {
    lane = lane_variable(unit, *reduce);
    loops = reduce->points.size() + reduce->reduces.size();
  }
  if (!lane) return 0;
  const std::vector<Range>& points = map ? map->points : reduce->points;
  size_t n = 0;
  for (; n < points.size() && points[n].var != *lane && n + 1 < loops; ++n) {
    if (!reduce) continue;
    for (const Access& a : reduce->states) {
      bool used = false;
      for (const Form& c : a.coords) used = used || c.uses(AtomKind::Index, points[n].var);
      if (!used) return n;  // it is folded once, not once for each
    }
  }
  return n;
}

// Whether the accesses lie apart wherever the value of `v` differs.
bool apart(const Access& a, const Access& b, Var v, const std::vector<Range>& shared) {
  for (size_t d = 0; d < a.coords.size(); ++d) {
    if (!(a.coords[d] == b.coords[d]) || a.coords[d].uses(AtomKind::Data)) continue;
    const auto split = a.coords[d].split(v);
    const auto c = split ? split->coefficient.constant() : std::nullopt;
    if (!c || *c == 0) continue;
    // What else the coordinate holds must not change inside the loops: variables from outside only.
    bool fixed = !split->rest.uses(AtomKind::Floor);
    for (int other : split->rest.ids(AtomKind::Index)) {
      for (const Range& r : shared) fixed = fixed && r.var != other;
    }
    if (fixed) return true;
  }
  return false;
}

bool independent(const tile::Stmt& a, const tile::Stmt& b, const std::vector<Range>& shared) {
  const auto meets = [&](const std::vector<const Access*>& left, const std::vector<const Access*>& right) {
    for (const Access* x : left) {
      for (const Access* y : right) {
        if (x->buffer != y->buffer) continue;
        for (const Range& r : shared) {
          if (!apart(*x, *y, r.var, shared)) return true;
        }
      }
    }
    return false;
  };
  return !meets(writes_of(a), reads_of(b)) && !meets(reads_of(a), writes_of(b)) && !meets(writes_of(a), writes_of(b));
}

// Renames the first points of `stmt` to those of `first` as far as they agree; how many do, at most `most`.
size_t unify(Unit& unit, tile::Stmt& first, tile::Stmt& stmt, size_t most) {
  size_t n = 0;
  for (; n < most; ++n) {
    const Range to = points_of(first)[n];
    if (!(points_of(stmt)[n].extent == to.extent)) break;
    rename_variable(unit, stmt, points_of(stmt)[n].var, to.var);
  }
  return n;
}

// Reads that move on with the row, so that the next one can be fetched while this one is computed: by the costliest
// reduction but the first statement, which fetches its own.
void look_ahead(const Unit& unit, const std::vector<tile::Stmt>& row, Var v, std::vector<RowPart>& parts) {
  size_t chosen = 0;
  int most = -1;
  for (size_t k = 1; k < row.size(); ++k) {
    const auto* reduce = std::get_if<Reduce>(&row[k]);
    if (!reduce || reduce->reduces.size() != 1 || !reduce->points.empty() || cost(reduce->body) <= most) continue;
    most = cost(reduce->body);
    chosen = k;
  }
  if (chosen == 0) return;
  const auto& reduce = std::get<Reduce>(row[chosen]);
  for (const Access& a : reduce.reads) {
    const tile::Buffer& buffer = unit.buffer(a.buffer);
    if (!is_global(buffer.space) || scalar::bits(buffer.type) < 8 || !a.guard.is_always()) continue;
    const Form place = unit.offset(a.buffer, a.coords);
    if (place.uses(AtomKind::Data) || lane_score(unit, a, reduce.reduces[0].var, false) < 3) continue;
    const auto split = unit.simplify(place).split(v);
    if (split && !(split->coefficient == Form(0))) parts[chosen].ahead.push_back({a, split->coefficient});
  }
}

}  // namespace

size_t emit_rows(Unit& unit, const tile::Block& block, size_t start) {
  std::vector<tile::Stmt> members;
  size_t fused = 0, end = start;
  for (size_t next = start; next < block.size(); ++next) {
    if (std::holds_alternative<tile::Alloc>(block[next])) continue;
    size_t most = leading_points(unit, block[next]);
    if (most == 0) break;
    tile::Stmt stmt = block[next];
    if (!members.empty()) {
      most = unify(unit, members[0], stmt, std::min(most, fused));
      for (; most > 0; --most) {
        const std::vector<Range> shared(points_of(members[0]).begin(), points_of(members[0]).begin() + long(most));
        if (std::all_of(members.begin(), members.end(), [&](const tile::Stmt& m) { return independent(m, stmt, shared); })) break;
      }
      if (most == 0 || (members.size() > 1 && most < fused)) break;
    }
    fused = most;
    members.push_back(std::move(stmt));
    end = next + 1;
  }
  if (members.size() < 2) return 0;
  for (size_t k = start; k < end; ++k) {
    if (const auto* alloc = std::get_if<tile::Alloc>(&block[k])) unit.used_buffers.insert(alloc->buffer);
  }
  const std::vector<Range> shared(points_of(members[0]).begin(), points_of(members[0]).begin() + long(fused));
  for (const Range& r : shared) open_loop(unit, r);
  for (tile::Stmt& m : members) points_of(m).erase(points_of(m).begin(), points_of(m).begin() + long(fused));
  std::vector<RowPart> parts = keep_values(unit, members);
  look_ahead(unit, members, shared.back().var, parts);
  for (size_t k = 0; k < members.size(); ++k) {
    unit.out.open("");
    if (const auto* map = std::get_if<Map>(&members[k])) emit_map(unit, *map);
    else emit_reduce(unit, std::get<Reduce>(members[k]), parts[k]);
    unit.out.close();
  }
  unit.out.close(int(shared.size()));
  return end - start;
}

}  // namespace lemma::emit
