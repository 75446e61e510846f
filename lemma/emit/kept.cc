// Costly values computed once a row:
//
//     s = sum over j of e(x[j])         s = sum over j of (t[j] = e(x[j]))
//     for j: y[j] = e(x[j]) / s    =>   for j: y[j] = t[j] / s
//
// t is the later statement's own result where it has the right type and nobody else looks at it, else a row of memory.
// It holds where nothing that e reads is written in between, and the reduction visits every point the later one does.

#include <algorithm>

#include "lemma/emit/body.h"
#include "lemma/emit/rows.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Map;
using tile::Range;
using tile::Reduce;
using tile::Var;
using view::AtomKind;
using view::Form;

namespace {

constexpr int kCostly = 15;

// The one variable a statement of a row runs over.
const Range* along(const tile::Stmt& stmt) {
  if (const auto* map = std::get_if<Map>(&stmt)) return map->points.size() == 1 ? &map->points[0] : nullptr;
  const auto& reduce = std::get<Reduce>(stmt);
  return reduce.points.empty() && reduce.reduces.size() == 1 ? &reduce.reduces[0] : nullptr;
}

const view::Formula& where_of(const tile::Stmt& stmt) {
  const auto* map = std::get_if<Map>(&stmt);
  return map ? map->where : std::get<Reduce>(stmt).where;
}

std::vector<Access>& read_list(tile::Stmt& stmt) {
  auto* map = std::get_if<Map>(&stmt);
  return map ? map->reads : std::get<Reduce>(stmt).reads;
}

std::vector<Expr> roots_of(const tile::Stmt& stmt) {
  std::vector<Expr> out;
  if (const auto* map = std::get_if<Map>(&stmt)) {
    for (const tile::Store& s : map->stores) out.push_back(s.value);
  } else {
    out = std::get<Reduce>(stmt).body;
  }
  return out;
}

// `later` with its reads renumbered: those of `earlier` come first, as they are.
tile::Stmt with_reads_of(Unit& unit, const tile::Stmt& earlier, const tile::Stmt& later) {
  tile::Stmt out = later;
  std::vector<Access> reads;
  for (const Access* a : reads_of(earlier)) reads.push_back(*a);
  std::vector<int> number;
  const auto renumber = [&](int r) { return number[size_t(r)]; };
  const auto access = [&](const Access& a) {
    Access moved = a;
    for (Form& c : moved.coords) if (c.uses(AtomKind::Data)) c = c.map_data(renumber);
    if (moved.guard.uses(AtomKind::Data)) moved.guard = moved.guard.map_data(renumber);
    return moved;
  };
  for (const Access* a : reads_of(later)) {
    const Access moved = access(*a);
    const auto at = std::find(reads.begin(), reads.end(), moved);
    number.push_back(int(at - reads.begin()));
    if (at == reads.end()) reads.push_back(moved);
  }
  edit_statement(
      unit, out, access, [&](const view::Formula& f) { return f.uses(AtomKind::Data) ? f.map_data(renumber) : f; },
      [](const Form& f) { return f; },
      [&](Expr e, std::span<const Expr>) {
        if (e.is(Op::Arg)) return scalar::arg(unit.arena, e.kind(), renumber(int(e.payload())));
        if (e.is(Op::Present)) return scalar::present(unit.arena, renumber(int(e.payload())));
        return Expr();
      });
  read_list(out) = std::move(reads);
  return out;
}

// The costliest f32 value that both compute.
Expr common_value(std::span<const Expr> earlier, std::span<const Expr> later) {
  std::vector<uint32_t> known;
  for (Expr e : scalar::reachable(earlier)) known.push_back(e.index());
  std::sort(known.begin(), known.end());
  Expr best;
  int most = kCostly - 1;
  for (Expr e : scalar::reachable(later)) {
    if (e.kind() != Kind::F32 || !std::binary_search(known.begin(), known.end(), e.index())) continue;
    if (const int c = cost({&e, 1}); c > most) {
      most = c;
      best = e;
    }
  }
  return best;
}

bool writes(const tile::Stmt& stmt, int buffer) {
  for (const Access* a : writes_of(stmt)) if (a->buffer == buffer) return true;
  return false;
}

// Whether what `value` reads stays as it is from statement `a` until the end of statement `b`.
bool unchanged(const std::vector<tile::Stmt>& row, size_t a, size_t b, const std::vector<Access>& reads, Expr value) {
  const view::Formula always;
  const std::vector<bool> used = used_reads({&always, &reads, {value}});
  for (size_t r = 0; r < used.size(); ++r) {
    for (size_t k = a; used[r] && k <= b; ++k) if (writes(row[k], reads[r].buffer)) return false;
  }
  return true;
}

// A store of statement `b` whose place can hold the value until `b` overwrites it.
std::optional<Access> own_place(const Unit& unit, const std::vector<tile::Stmt>& row, size_t a, size_t b, Var v) {
  const auto* map = std::get_if<Map>(&row[b]);
  const bool same_points = where_of(row[a]) == where_of(row[b]);
  if (!map) return std::nullopt;
  for (const tile::Store& s : map->stores) {
    if (unit.buffer(s.to.buffer).type != scalar::DType::F32 || s.combine || !s.to.guard.is_always()) continue;
    if (!same_points && !s.otherwise.valid()) continue;  // it would leave the value where nobody overwrites it
    if (lane_score(unit, s.to, v, true) <= 0) continue;
    int touched = 0;
    for (const tile::Stmt& stmt : row) {
      for (const Access* x : reads_of(stmt)) touched += x->buffer == s.to.buffer;
      for (const Access* x : writes_of(stmt)) touched += x->buffer == s.to.buffer;
    }
    if (touched == 1) return s.to;
  }
  return std::nullopt;
}

std::optional<Access> row_of_memory(Unit& unit, const Range& range) {
  if (range.extent.uses(AtomKind::Index) || range.extent.uses(AtomKind::Data)) return std::nullopt;
  tile::Buffer buffer;
  buffer.name = "kept";
  buffer.space = tile::Space::Local;
  buffer.extents = {range.extent};
  const int b = unit.add_buffer(buffer);
  unit.temporaries.push_back({unit.raw_buffer_name(b), buffer.type, range.extent});
  return Access{b, {Form::index(range.var)}, {}};
}

std::optional<Kept> keep(Unit& unit, std::vector<tile::Stmt>& row, size_t a, size_t b) {
  const Range* first = along(row[a]);
  const Range* second = along(row[b]);
  if (!std::holds_alternative<Reduce>(row[a]) || !first || !second || !(first->extent == second->extent)) return std::nullopt;
  tile::Stmt later = row[b];
  rename_variable(unit, later, second->var, first->var);
  later = with_reads_of(unit, row[a], later);
  if (!where_of(row[a]).is_always() && !(where_of(row[a]) == where_of(later))) return std::nullopt;
  std::vector<Expr> earlier = roots_of(row[a]);
  for (Expr& e : earlier) e = scalar::import(e, unit.arena);
  const Expr value = common_value(earlier, roots_of(later));
  if (!value.valid() || !unchanged(row, a, b, read_list(later), value)) return std::nullopt;
  row[b] = later;
  std::optional<Access> place = own_place(unit, row, a, b, first->var);
  if (!place) place = row_of_memory(unit, *first);
  if (!place) return std::nullopt;
  const int read = int(read_list(later).size());
  edit_statement(
      unit, later, [](const Access& x) { return x; }, [](const view::Formula& f) { return f; },
      [](const Form& f) { return f; },
      [&](Expr e, std::span<const Expr>) { return e == value ? scalar::arg(unit.arena, Kind::F32, read) : Expr(); });
  read_list(later).push_back(*place);
  row[b] = std::move(later);
  return Kept{*place, value};
}

}  // namespace

std::vector<RowPart> keep_values(Unit& unit, std::vector<tile::Stmt>& row) {
  std::vector<RowPart> out(row.size());
  for (size_t b = 1; b < row.size(); ++b) {
    for (size_t a = b; a-- > 0;) {
      if (auto kept = keep(unit, row, a, b)) {
        out[a].kept.push_back(*kept);
        break;
      }
    }
  }
  return out;
}

}  // namespace lemma::emit
