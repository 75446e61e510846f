// Maps and copies: the points go round among the threads.
#include <algorithm>

#include "lemma/emit/device/registers.h"
#include "lemma/emit/device/statements.h"
#include "lemma/emit/device/vectors.h"
#include "lemma/tile/fragments.h"
#include "lemma/view/formula.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Range;
using tile::Store;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

// Why the points may not be visited at once; empty if they may.
std::string hazard(const Text& text, const tile::Map& map) {
  for (const Store& s : map.stores) {
    const scalar::DType type = text.buffer(s.to.buffer).type;
    if (scalar::bits(type) == 4) return "two elements of 4 bits share a byte";
    if (s.combine && text.held.at(s.to.buffer) == Held::Slice) return "what it combines into lies in a slice";
    if (s.combine && scalar::bits(type) != 32) return "elements that are not 32 bits wide cannot be combined at once";
    for (const Access& r : map.reads) {
      if (r.buffer == s.to.buffer && !(r.coords == s.to.coords)) return "it reads other elements of what it writes";
    }
  }
  return {};
}

// The point along which memory runs, last: neighbouring threads then touch neighbouring elements.
std::vector<Range> ordered(const Text& text, const tile::Map& map) {
  std::vector<Range> points = map.points;
  int best = 0;
  size_t chosen = points.empty() ? 0 : points.size() - 1;
  for (size_t i = 0; i < points.size(); ++i) {
    int score = 0;
    const auto add = [&](const Access& a, int weight) {
      const auto split = text.offset(a.buffer, a.coords).split(points[i].var);
      if (split && split->coefficient == Form(1)) score += weight;
    };
    for (const Store& s : map.stores) add(s.to, 2);
    for (const Access& r : map.reads) add(r, 1);
    if (score >= best) {
      best = score;
      chosen = i;
    }
  }
  if (!points.empty()) std::rotate(points.begin() + ptrdiff_t(chosen), points.begin() + ptrdiff_t(chosen) + 1, points.end());
  return points;
}

// Values of 16 bits for a packed fragment, two at a time. False if the map is more than that; then nothing was written.
bool write_pairs(Text& text, const tile::Map& map, const std::shared_ptr<const Round>& round, const Scope& outer) {
  if (map.stores.size() != 1 || !map.where.is_always()) return false;
  const Store& store = map.stores[0];
  const tile::Buffer& to = text.buffer(store.to.buffer);
  if (text.held.at(store.to.buffer) != Held::Registers || !is_packed(to) || store.combine || !store.to.guard.is_always()) return false;
  if (to.type != scalar::DType::BF16 && to.type != scalar::DType::F16) return false;
  const auto dimensions = tile::point_dimensions(store.to, map.points);
  const std::vector<int> bits = dimensions ? tile::projected_registers(round->points, *dimensions) : std::vector<int>();
  if (bits.empty() || bits[0] != 0) return false;  // neighbouring registers are not a pair
  Scope scope = outer;
  const int opened = open_round(text, round, scope, false, 2);
  const std::string place = text.register_place(store.to, scope), type(scalar::name(to.type));
  std::string both[2];
  for (int half = 0; half < 2; ++half) {
    Scope at = scope;
    if (half) next_register(text, at);
    const Expr value = scalar::import(store.value, text.arena);
    text.reads(map.reads, at, needed(map.reads, {&value, 1}, {}));
    both[half] = text.value(value, at);
  }
  text.out.line(text.buffer_names.at(store.to.buffer) + "[" + place + " >> 1] = lm_pack(lm_to_" + type + "(" + both[0] + "), lm_to_" + type + "(" + both[1] + "));");
  text.out.close(opened);
  return true;
}

// Neighbouring registers that go to neighbouring places in memory, two at a time where both exist and the first place is
// even. Only of what registers hold, since both values are made before it is known which exist. False if the map is more
// than that; then nothing was written.
bool write_memory_pairs(Text& text, const tile::Map& map, const std::shared_ptr<const Round>& round, const Scope& outer) {
  if (map.stores.size() != 1 || map.points.empty() || map.where.uses(AtomKind::Data)) return false;
  const Store& store = map.stores[0];
  const scalar::DType type = text.buffer(store.to.buffer).type;
  const auto& registers = round->points[layout::Axis::Register];
  const size_t last = map.points.size() - 1;
  bool pairs = text.held.at(store.to.buffer) == Held::Global && !text.atomic_buffers.count(store.to.buffer) && !store.combine && !store.otherwise.valid() &&
               store.to.guard.is_always() && (scalar::bits(type) == 16 || scalar::bits(type) == 32) && !registers.empty();
  for (size_t d = 0; pairs && d < map.points.size(); ++d) pairs = registers[0].step[d] == (d == last ? 1 : 0);
  for (const Access& r : map.reads) pairs = pairs && text.held.at(r.buffer) == Held::Registers;
  if (!pairs) return false;
  // The first of two is even if everything else is.
  Form at = text.offset(store.to.buffer, store.to.coords);
  const auto along = at.split(map.points[last].var);
  if (!along || !(along->coefficient == Form(1))) return false;
  std::string all;
  at = at.substitute_index(map.points[last].var, Form(0));
  for (size_t d = 0; d < last; ++d) {
    const auto split = at.split(map.points[d].var);
    if (!split) return false;
    all += text.form(split->coefficient, outer) + " | ";
    at = at.substitute_index(map.points[d].var, Form(0));
  }
  const std::string even = text.fresh("p"), stored(storage_name(text.dialect, type)), q = text.fresh("q");
  text.define("bool", even, "((" + all + text.form(at, outer) + ") & 1) == 0");
  Scope scopes[2] = {outer, {}};
  const int opened = open_round(text, round, scopes[0], true, 2);
  scopes[1] = scopes[0];
  next_register(text, scopes[1]);
  const Expr value = scalar::import(store.value, text.arena);
  std::string values[2], there[2];
  for (int half = 0; half < 2; ++half) {
    text.reads(map.reads, scopes[half], needed(map.reads, {&value, 1}, {}));
    values[half] = text.fresh("x");
    text.define(text.type(value.kind()), values[half], text.value(value, scopes[half]));
    there[half] = text.fresh("p");
    text.define("bool", there[half], map.where.is_always() ? "true" : text.condition(map.where, scopes[half]));
  }
  text.test(even + " && " + there[0] + " && " + there[1]);
  text.out.line("lm_vec<" + stored + ", 2> " + q + ";");
  for (int half = 0; half < 2; ++half) {
    const std::string narrow = text.stored_value(store.to.buffer, values[half], value.kind());
    text.out.line(q + "[" + std::to_string(half) + "] = " + (scalar::bits(type) < 32 ? convert(text.dialect, stored, narrow) : narrow) + ";");
  }
  text.out.line("lm_store(" + text.buffer_names.at(store.to.buffer) + ", " + text.place(store.to, scopes[0]) + ", " + q + ");");
  text.out.otherwise();
  for (int half = 0; half < 2; ++half) {
    text.test(there[half]);
    text.store(store.to, values[half], value.kind(), scopes[half]);
    text.out.close();
  }
  text.out.close();
  text.out.close(opened);
  return true;
}

// Neighbouring elements of the last index 16 bytes at a time, where all begin at whole vectors; the text goes on with what is
// done where they do not. False if nothing runs along it.
bool write_vectors(Text& text, const tile::Map& map, const Scope& outer) {
  std::vector<Expr> values;
  std::vector<const Access*> stores;
  for (const Store& s : map.stores) {
    if (s.combine || s.otherwise.valid()) return false;
    values.push_back(scalar::import(s.value, text.arena));
    stores.push_back(&s.to);
  }
  if (map.points.empty() || !map.where.is_always() || stores.empty()) return false;
  const std::vector<Range> points = ordered(text, map);
  const std::vector<bool> which = needed(map.reads, values, {}, stores);
  auto vectors = Vectors::find(text, map.reads, which, stores, points.back().var);
  if (!vectors) return false;
  Scope scope = outer;
  std::vector<tile::Var> others;
  std::vector<Form> extents;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    others.push_back(points[i].var);
    extents.push_back(points[i].extent);
  }
  const std::string width = std::to_string(vectors->width()), n = text.fresh("n");
  text.define(text.index_type(), n, text.form(points.back().extent, scope));
  text.test(vectors->aligned(scope, others) + " && (" + n + " & " + std::to_string(vectors->width() - 1) + ") == 0");
  const Box box = define_box(text, "n", extents, scope);
  const std::string per = text.fresh("n"), p = text.fresh("p"), at = text.fresh("v");
  text.define(text.index_type(), per, n + " / " + width);
  const std::string tid = convert(text.dialect, text.index_type(), "lm_tid");
  int opened = 1;
  const std::string by = text.fresh("n");
  if (others.empty()) {
    text.out.line("LM_UNROLL_4");
    text.loop(p, tid, per, std::to_string(text.threads));
  } else {
    // Rows of at least a warp's vectors go to warps, or one after another to all; what a row needs once is then known
    // before its vectors. Shorter rows are taken together.
    const std::string warps = std::to_string(text.threads / 32), q = text.fresh("q"), row = text.fresh("n"), rows = text.fresh("n"), first = text.fresh("n"), step = text.fresh("n");
    text.define("int", by, per + " < 32 ? 0 : " + box.count + " >= " + warps + " ? 1 : 2");
    text.define("int", first, by + " == 1 ? lm_lane : lm_tid");
    text.define("int", step, by + " == 1 ? 32 : " + std::to_string(text.threads));
    text.define(text.index_type(), rows, by + " == 0 ? 1 : " + box.count);
    text.define(text.index_type(), row, by + " == 0 ? " + per + " * " + box.count + " : " + per);
    text.loop(q, by + " == 1 ? lm_warp : 0", rows, "(" + by + " == 1 ? " + warps + " : 1)");
    text.out.line("LM_UNROLL_4");
    text.loop(p, first, row, step);
    const std::string outer = text.fresh("q");
    text.define(text.index_type(), outer, by + " == 0 ? " + p + " / " + per + " : " + q);
    const std::vector<std::string> apart = take_apart(text, box, outer);
    for (size_t k = 0; k < others.size(); ++k) scope.vars[others[k]] = apart[k];
    opened = 2;
  }
  text.define(text.index_type(), at, others.empty() ? p + " * " + width : "(" + by + " == 0 ? " + p + " % " + per + " : " + p + ") * " + width);
  scope.vars[points.back().var] = at;
  vectors->load(scope);
  vectors->begin_stores();
  const std::string u = text.fresh("u"), v = text.fresh("v");
  text.out.line("LM_UNROLL");
  text.out.open("for (int " + u + " = 0; " + u + " < " + width + "; ++" + u + ")");
  Scope inside = scope;
  text.define(text.index_type(), v, at + " + " + u);
  inside.vars[points.back().var] = v;
  vectors->element(inside, u);
  text.reads(map.reads, inside, which);
  const std::vector<std::string> found = text.values(values, inside);
  for (size_t i = 0; i < found.size(); ++i) vectors->set(i, u, found[i], values[i].kind());
  text.out.close();
  vectors->end_stores(scope);
  text.out.close(opened);
  text.out.otherwise();
  return true;
}

void write_points(Text& text, const tile::Map& map, const std::shared_ptr<const Round>& round, const std::string& alone, const Scope& outer);

}  // namespace

base::Result<void> write_map(Text& text, const tile::Map& map, Scope& outer, std::vector<std::string>& notes) {
  std::vector<const Access*> all;
  for (const Access& r : map.reads) all.push_back(&r);
  for (const Store& s : map.stores) all.push_back(&s.to);
  const auto round = round_of(text, map.points, all);
  const std::string why = round ? "" : hazard(text, map);
  if (!why.empty()) notes.push_back((map.comment.empty() ? "a map" : map.comment) + ": on one thread, as " + why);
  if (!map.comment.empty()) text.out.line("/* " + map.comment + " */");
  if (round && (write_pairs(text, map, round, outer) || write_memory_pairs(text, map, round, outer))) return {};
  if (!round && why.empty() && text.synchronised && write_vectors(text, map, outer)) {
    write_points(text, map, round, why, outer);
    text.out.close();
  } else {
    write_points(text, map, round, why, outer);
  }
  return {};
}

namespace {

// A point a thread, or a register after another, or all on one thread where `alone` says why.
void write_points(Text& text, const tile::Map& map, const std::shared_ptr<const Round>& round, const std::string& alone, const Scope& outer) {
  Scope scope = outer;
  const bool once = std::any_of(map.stores.begin(), map.stores.end(), [&](const Store& s) { return text.held.at(s.to.buffer) != Held::Registers; });
  const int opened = round ? open_round(text, round, scope, once) : open_points(text, ordered(text, map), scope, !alone.empty());
  std::vector<Expr> inside, outside;
  std::vector<const Access*> stores;
  for (const Store& s : map.stores) {
    inside.push_back(scalar::import(s.value, text.arena));
    stores.push_back(&s.to);
    outside.push_back(s.otherwise.valid() ? scalar::import(s.otherwise, text.arena) : Expr());
  }
  const auto write = [&](const std::vector<Expr>& roots, Scope& at) {
    std::vector<Expr> valid;
    for (Expr e : roots) if (e.valid()) valid.push_back(e);
    const std::vector<std::string> values = text.values(valid, at);
    size_t v = 0;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (!roots[i].valid()) continue;
      const Store& s = map.stores[i];
      if (s.combine) text.combine(s.to, values[v++], roots[i].kind(), *s.combine, at, !alone.empty());
      else text.store(s.to, values[v++], roots[i].kind(), at);
    }
  };
  const bool others = std::any_of(outside.begin(), outside.end(), [](Expr e) { return e.valid(); });
  if (!map.where.is_always()) {
    // What the condition reads is read first.
    text.reads(map.reads, scope, needed(map.reads, {}, map.where));
    text.test(text.condition(map.where, scope));
  }
  Scope within = scope;
  text.reads(map.reads, within, needed(map.reads, inside, map.where, stores));
  write(inside, within);
  if (!map.where.is_always()) {
    if (others) {
      text.out.otherwise();
      std::vector<Expr> valid;
      for (Expr e : outside) if (e.valid()) valid.push_back(e);
      Scope beyond = scope;
      text.reads(map.reads, beyond, needed(map.reads, valid, map.where, stores));
      write(outside, beyond);
    }
    text.out.close();
  }
  text.out.close(opened);
}

}  // namespace

namespace {
// A box's own index, in a dimension at least as long.
bool lies_inside(const Form& coordinate, const Form& extent, const std::vector<Range>& box) {
  const auto var = coordinate.as_index();
  const auto at = std::find_if(box.begin(), box.end(), [&](const Range& r) { return r.var == var; });
  if (!var || at == box.end()) return false;
  const auto room = (extent - at->extent).constant();
  return room && *room >= 0;
}

Formula inside(const Text& text, const Access& access, const std::vector<Range>& box) {
  Formula out = access.guard;
  const tile::Buffer& buffer = text.buffer(access.buffer);
  for (size_t d = 0; d < access.coords.size(); ++d) {
    if (!lies_inside(access.coords[d], buffer.extents[d], box)) out = out && Formula::within(access.coords[d], buffer.extents[d]);
  }
  return out;
}
}  // namespace

namespace {
base::Result<void> write_elements(Text& text, const tile::Copy& copy, Scope& scope, std::vector<std::string>& notes) {
  tile::Map map;
  map.points = copy.box;
  map.where = inside(text, copy.to, copy.box);
  map.reads = {copy.from};
  map.reads[0].guard = inside(text, copy.from, copy.box);
  const Kind from = scalar::kind_of(text.buffer(copy.from.buffer).type), to = scalar::kind_of(text.buffer(copy.to.buffer).type);
  Expr value = scalar::cast(scalar::arg(text.arena, from, 0), to);
  if (copy.fill.valid()) value = scalar::select(scalar::present(text.arena, 0), value, scalar::cast(scalar::import(copy.fill, text.arena), to));
  Access target = copy.to;
  target.guard = {};
  map.stores.push_back({target, value, {}, std::nullopt});
  return write_map(text, map, scope, notes);
}
}  // namespace

base::Result<void> write_copy(Text& text, const tile::Copy& copy, Scope& scope, std::vector<std::string>& notes) {
  if (text.synchronised && write_tile_copy(text, copy, scope)) {
    LEMMA_TRY_VOID(write_elements(text, copy, scope, notes));
    text.out.close();
    return {};
  }
  return write_elements(text, copy, scope, notes);
}

// Blocks meet in the target, so each element is folded atomically.
base::Result<void> write_combine(Text& text, const tile::Combine& combine, Scope& scope, std::vector<std::string>& notes) {
  if (combine.ordered) return base::unsupported("an ordered `combine` has no form for devices yet", {}, "leave the order open");
  if (scalar::bits(text.buffer(combine.to.buffer).type) != 32) return base::unsupported("`combine` into elements that are not 32 bits wide has no form for devices yet");
  tile::Map map;
  map.points = combine.box;
  map.where = inside(text, combine.to, combine.box) && inside(text, combine.from, combine.box);
  map.reads = {combine.from};
  const Kind from = scalar::kind_of(text.buffer(combine.from.buffer).type), to = scalar::kind_of(text.buffer(combine.to.buffer).type);
  Access target = combine.to;
  target.guard = {};
  map.stores.push_back({target, scalar::cast(scalar::arg(text.arena, from, 0), to), {}, combine.op});
  return write_map(text, map, scope, notes);
}

}  // namespace lemma::emit::device
