// Maps and copies: loops over points. The last loop runs over the variable whose neighbours lie side by side in memory
// and takes LM_LANES of them at a time.

#include <algorithm>

#include "lemma/emit/body.h"
#include "lemma/emit/pack.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/space.h"

namespace lemma::emit {

using scalar::Expr;
using tile::Access;
using tile::Range;
using tile::Var;
using view::Form;

void note_range(Unit& unit, const Range& range) {
  view::Range r{0, std::nullopt};
  const auto alone = range.extent.as_index();
  const view::Range n = alone ? unit.range_of(view::Atom{view::AtomKind::Index, *alone, nullptr})
                              : view::range(range.extent, [&](const view::Atom& a) { return unit.range_of(a); });
  if (n.high) r.high = std::max<int64_t>(0, *n.high - 1);
  unit.set_range(range.var, r);
}

void open_loop(Unit& unit, const Range& range, const Frame& frame) {
  note_range(unit, range);
  const std::string& v = unit.var_name(range.var);
  unit.out.open("for (int64_t " + v + " = 0; " + v + " < " + unit.form_text(range.extent, frame) + "; ++" + v + ")");
}

int lane_score(const Unit& unit, const Access& access, Var v, bool store) {
  const Form place = unit.simplify(unit.offset(access.buffer, access.coords));
  Frame frame;
  frame.lane_var = v;
  if (!place.uses(view::AtomKind::Index, v)) return store ? -8 : 1;
  const auto split = place.split(v);
  if (split && split->coefficient == Form(1) && !varies(split->rest, frame)) return store ? 4 : 3;
  return store ? -5 : -4;
}

namespace {

struct MapPlan {
  std::vector<Range> outer;
  std::optional<Range> lanes;
};

bool stores_allow(const Unit& unit, const tile::Map& map, Var v) {
  for (const tile::Store& s : map.stores) {
    if (scalar::is_wide(scalar::kind_of(unit.buffer(s.to.buffer).type))) return false;
    if (!s.combine) continue;
    // Lanes that meet in one element would lose all but one.
    const auto split = unit.offset(s.to.buffer, s.to.coords).split(v);
    const auto c = split ? split->coefficient.constant() : std::nullopt;
    if (!c || *c == 0) return false;
  }
  return true;
}

// A trip count short of half a vector is not worth lanes.
bool too_short(const Unit& unit, const Range& r) {
  const auto n = r.extent.constant();
  return n && *n < std::max(2, unit.lanes() / 4);
}

MapPlan plan_map(const Unit& unit, const tile::Map& map, const BodyText& body) {
  MapPlan plan;
  int best = -1;
  size_t chosen = map.points.size();
  for (size_t i = 0; unit.lanes() > 1 && i < map.points.size(); ++i) {
    const Var v = map.points[i].var;
    if (too_short(unit, map.points[i]) || !stores_allow(unit, map, v) || !lanes_possible(unit, body, v)) continue;
    int score = 0;
    for (const tile::Store& s : map.stores) score += lane_score(unit, s.to, v, true);
    for (const Access& a : map.reads) score += lane_score(unit, a, v, false);
    if (score >= best) {
      best = score;
      chosen = i;
    }
  }
  for (size_t i = 0; i < map.points.size(); ++i) {
    if (i == chosen) plan.lanes = map.points[i];
    else plan.outer.push_back(map.points[i]);
  }
  return plan;
}

void map_stores(Unit& unit, Frame& frame, const tile::Map& map, const std::vector<Expr>& values) {
  const std::vector<Value> v = emit_values(unit, frame, values);
  for (size_t i = 0; i < map.stores.size(); ++i) {
    store_scalar(unit, frame, map.stores[i].to, v[i], values[i].kind(), map.stores[i].combine);
  }
}

struct MapText {
  const tile::Map& map;
  std::vector<Expr> values, otherwise;  // in the unit's arena; otherwise may hold invalid ones
  BodyText body;
};

void outside_stores(Unit& unit, Frame& frame, const MapText& text) {
  for (size_t i = 0; i < text.map.stores.size(); ++i) {
    if (!text.otherwise[i].valid()) continue;
    const Value v = emit_value(unit, frame, text.otherwise[i]);
    store_scalar(unit, frame, text.map.stores[i].to, v, text.otherwise[i].kind(), text.map.stores[i].combine);
  }
}

void scalar_map(Unit& unit, const MapText& text, const MapPlan& plan) {
  for (const Range& r : plan.outer) open_loop(unit, r);
  bool outside = false;
  for (Expr e : text.otherwise) outside = outside || e.valid();
  scalar_body(
      unit, Frame{}, text.body, [&](Frame& frame) { map_stores(unit, frame, text.map, text.values); },
      outside ? std::function<void(Frame&)>([&](Frame& frame) { outside_stores(unit, frame, text); }) : nullptr);
  unit.out.close(int(plan.outer.size()));
}

void lane_stores(Unit& unit, Frame& frame, const MapText& text, const LaneMask& mask) {
  const std::vector<Value> values = emit_values(unit, frame, text.values);
  for (size_t i = 0; i < text.map.stores.size(); ++i) {
    const tile::Store& s = text.map.stores[i];
    const scalar::Kind kind = text.values[i].kind();
    if (mask.mask.empty() || !text.otherwise[i].valid()) {
      store_lanes(unit, frame, s.to, values[i], kind, s.combine, mask);
      continue;
    }
    const Value other = emit_value(unit, frame, text.otherwise[i]);
    const std::string blend = std::string("lm_sel_") + vector_suffix(kind) + "(" + mask.mask + ", " +
                              as_vector(values[i], kind) + ", " + as_vector(other, kind) + ")";
    store_lanes(unit, frame, s.to, {blend, true}, kind, s.combine, {"", mask.count});
  }
}

// Elements off the interval of `where`.
void lane_outside(Unit& unit, const MapText& text, const Range& lanes, const std::string& from, const std::string& to) {
  const std::string& v = unit.var_name(lanes.var);
  unit.out.open("for (int64_t " + v + " = " + from + "; " + v + " < " + to + "; ++" + v + ")");
  Frame frame;
  outside_stores(unit, frame, text);
  unit.out.close();
}

void lane_map(Unit& unit, const MapText& text, const MapPlan& plan) {
  for (const Range& r : plan.outer) open_loop(unit, r);
  const Range& lanes = *plan.lanes;
  note_range(unit, lanes);
  const std::string& v = unit.var_name(lanes.var);
  Frame row;
  row.lane_var = lanes.var;
  const std::string extent = unit.form_text(lanes.extent, row);
  unit.out.open("");
  LaneBody body(unit, row, text.body, extent, true);
  body.row();
  bool outside = false;
  for (Expr e : text.otherwise) outside = outside || e.valid();
  const bool cut = body.low() != "0" || body.high() != extent;
  const auto inside = [&](Frame& frame, const LaneMask& mask) { lane_stores(unit, frame, text, mask); };
  if (outside && cut) {
    unit.out.line("if (" + body.low() + " > " + body.high() + ") " + body.low() + " = " + body.high() + " = " + extent + ";");
    lane_outside(unit, text, lanes, "0", body.low());
  }
  unit.out.line("int64_t " + v + " = " + body.low() + ";");
  unit.out.open("for (; " + v + " + LM_LANES <= " + body.high() + "; " + v + " += LM_LANES)");
  body.lanes({}, "", inside);
  unit.out.close();
  const auto n = lanes.extent.constant();
  if (cut || !n || *n % unit.lanes() != 0) {
    unit.out.open("if (" + v + " < " + body.high() + ")");
    const std::string count = unit.fresh("n");
    unit.out.line("const int64_t " + count + " = " + body.high() + " - " + v + ";");
    body.lanes({}, count, inside);
    unit.out.close();
  }
  if (outside && cut) lane_outside(unit, text, lanes, body.high(), extent);
  unit.out.close();
  unit.out.close(int(plan.outer.size()));
}

// Whether the store's columns may still be split into panels: a column variable as wide as a panel already has been.
bool unpacked(const tile::Map& map, const Unit& unit) {
  if (map.stores.size() != 1 || map.stores[0].to.coords.empty()) return false;
  const Access& to = map.stores[0].to;
  const tile::Buffer& buffer = unit.buffer(to.buffer);
  if (buffer.layout.kind != tile::LayoutKind::Panels) return false;
  const Form panel = unit.simplify(Form::floor_div(to.coords.back(), Form(buffer.layout.width)));
  return panel.uses(view::AtomKind::Floor) || panel.is_constant();
}

}  // namespace

namespace {

MapText map_text(Unit& unit, const tile::Map& map) {
  MapText text{map, {}, {}, {}};
  for (const tile::Store& s : map.stores) {
    text.values.push_back(scalar::import(s.value, unit.arena));
    text.otherwise.push_back(s.otherwise.valid() ? scalar::import(s.otherwise, unit.arena) : Expr());
  }
  text.body = {&map.where, &map.reads, text.values, {}};
  for (const tile::Store& s : map.stores) {
    for (const Form& c : s.to.coords) {
      for (int q : c.ids(view::AtomKind::Data)) text.body.coords.push_back(q);
    }
  }
  for (Expr e : text.otherwise) {
    if (e.valid()) text.body.roots.push_back(e);
  }
  for (const Range& r : map.points) note_range(unit, r);
  return text;
}

}  // namespace

std::optional<Var> lane_variable(Unit& unit, const tile::Map& map) {
  const MapPlan plan = plan_map(unit, map, map_text(unit, map).body);
  return plan.lanes ? plan.lanes->var : -1;
}

namespace {

// A map that only moves narrow floats to where they have the same type moves their bits, rather than each through f32.
std::optional<tile::Map> as_bits(Unit& unit, const tile::Map& map) {
  if (map.stores.size() != 1 || map.stores[0].combine || !map.stores[0].value.is(scalar::Op::Arg)) return std::nullopt;
  const tile::Store& store = map.stores[0];
  const int from = map.reads[size_t(store.value.payload())].buffer;
  const scalar::DType type = unit.buffer(store.to.buffer).type;
  if (!scalar::is_float(type) || unit.buffer(from).type != type || scalar::bits(type) > 16 || scalar::bits(type) < 8) return std::nullopt;
  if (store.otherwise.valid() && !(store.otherwise.is_const() && store.otherwise.payload() == 0)) return std::nullopt;
  const scalar::DType word = scalar::bits(type) == 16 ? scalar::DType::U16 : scalar::DType::U8;
  tile::Map out = map;
  out.reads[size_t(store.value.payload())].buffer = unit.add_alias(from, word);
  out.stores[0].to.buffer = unit.add_alias(store.to.buffer, word);
  out.stores[0].value = scalar::arg(unit.arena, scalar::Kind::U32, int(store.value.payload()));
  if (store.otherwise.valid()) out.stores[0].otherwise = scalar::constant_int(unit.arena, scalar::Kind::U32, 0);
  return out;
}

}  // namespace

void emit_map(Unit& unit, const tile::Map& map) {
  if (const auto bits = as_bits(unit, map)) return emit_map(unit, *bits);
  const MapText text = map_text(unit, map);
  if (!map.comment.empty()) unit.out.line("/* " + map.comment + " */");
  if (unpacked(map, unit) && emit_packing(unit, map)) return;
  const MapPlan plan = plan_map(unit, map, text.body);
  if (plan.lanes) lane_map(unit, text, plan);
  else scalar_map(unit, text, plan);
}

namespace {

// Whether 0 <= coordinate < extent holds for all points, by what is known of the variables.
view::Formula inside(const Unit& unit, const Access& access) {
  view::Formula out = access.guard;
  const auto ranges = [&](const view::Atom& a) { return unit.range_of(a); };
  const tile::Buffer& buffer = unit.buffer(access.buffer);
  for (size_t d = 0; d < access.coords.size(); ++d) {
    const Form& c = access.coords[d];
    const view::Range low = view::range(c, ranges), gap = view::range(buffer.extents[d] - c, ranges);
    if (!low.low || *low.low < 0) out = out && view::Formula::non_negative(c);
    if (!gap.low || *gap.low < 1) out = out && view::Formula::less(c, buffer.extents[d]);
  }
  return out;
}

}  // namespace

void emit_combine(Unit& unit, const tile::Combine& combine) {
  for (const Range& r : combine.box) note_range(unit, r);
  tile::Map map;
  map.points = combine.box;
  map.where = inside(unit, combine.to) && inside(unit, combine.from);
  map.reads = {combine.from};
  map.reads[0].guard = {};
  const scalar::Kind from = scalar::kind_of(unit.buffer(combine.from.buffer).type);
  const scalar::Kind to = scalar::kind_of(unit.buffer(combine.to.buffer).type);
  Access target = combine.to;
  target.guard = {};
  map.stores.push_back({target, scalar::cast(scalar::arg(unit.arena, from, 0), to), {}, combine.op});
  const bool shared = is_global(unit.buffer(combine.to.buffer).space) && unit.options.openmp;
  unit.combined.insert(combine.to.buffer);
  if (shared) {
    unit.out.line("#if defined(_OPENMP)");
    unit.out.line("#pragma omp critical(lm_combine)");
    unit.out.line("#endif");
  }
  unit.out.open("");
  emit_map(unit, map);
  unit.out.close();
}

bool ordered(const tile::Kernel& kernel) {
  bool out = false;
  tile::visit(kernel.body, [&](const tile::Stmt& s) {
    const auto* combine = std::get_if<tile::Combine>(&s);
    out = out || (combine && combine->ordered);
  });
  return out;
}

// A copy is a map that reads where the source has an element and stores where the target has one.
void emit_copy(Unit& unit, const tile::Copy& copy) {
  for (const Range& r : copy.box) note_range(unit, r);
  tile::Map map;
  map.points = copy.box;
  map.where = inside(unit, copy.to);
  map.reads = {copy.from};
  map.reads[0].guard = inside(unit, copy.from);
  const scalar::Kind from = scalar::kind_of(unit.buffer(copy.from.buffer).type);
  const scalar::Kind to = scalar::kind_of(unit.buffer(copy.to.buffer).type);
  Expr value = scalar::cast(scalar::arg(unit.arena, from, 0), to);
  if (!map.reads[0].guard.is_always()) {
    // A read that is not made gives zero bits, so a fill of zero needs no choice.
    const bool zero = !copy.fill.valid() || (copy.fill.is_const() && copy.fill.payload() == 0);
    const Expr fill = copy.fill.valid() ? scalar::cast(scalar::import(copy.fill, unit.arena), to)
                                        : scalar::constant(unit.arena, to, 0);
    if (!zero) value = scalar::select(scalar::present(unit.arena, 0), value, fill);
  }
  Access target = copy.to;
  target.guard = {};
  map.stores.push_back({target, value, {}, std::nullopt});
  emit_map(unit, map);
}

}  // namespace lemma::emit
