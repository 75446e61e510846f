// A contraction recomputed tile by tile along the stream loop and reduced as it comes, so that it is never written.
//
// A block owns a tile of the contraction's other points (the row loop). For each tile of the stream: the product, by
// packed panels; the members between it and the reductions; then each reduction folds the tile into its state. Rescaled
// sums keep a running max: a tile's weights are taken against the new max and the old sums are scaled when it moves; a
// sum whose factor has columns of its own is a second product, weights times columns.
//
// Two orientations. If a second product follows, the row loop gives the rows of the first, since the weights are then
// its left factor with contiguous reduce points. Else the row loop lies along the vector lanes, and every fold is
// lane by lane.
//
// The domain enters in two ways. Bounds of the stream that hold for the whole tile clip its loop; what remains is one
// map that turns absent scores into -inf, skipped for tiles that lie inside the domain. Stream points that no row of
// the tile reads must not reach the second product (0 * nan is nan): where bounds do not exclude them, the columns are
// packed per tile with zeros at points without a reader.

#include <algorithm>
#include <limits>

#include "lemma/lower/operand.h"
#include "lemma/lower/stream_bounds.h"
#include "lemma/schedule/streamed.h"

namespace lemma::lower {
namespace {

using scalar::DType;
using scalar::Kind;
using scalar::Op;
using schedule::LoopKind;
using tensor::Comprehension;
using tensor::Role;
using tensor::Value;

constexpr int64_t kRows = 96;
// A tile of scores, and the panels it is made from and goes into (for 64 columns or so), take half of the second cache.
int64_t stream_tile(const tile::Target& target) {
  int64_t tile = 128;
  while (2 * tile * (kRows + 128) * 4 <= target.l2_bytes / 2 && tile < 512) tile *= 2;
  return tile;
}
constexpr int64_t kLaneColumns = 192;
constexpr int64_t kLaneStream = 96;

struct Streamed {
  Streamed(Context& c, const schedule::Group& g) : context(c), group(g) {}
  Context& context;
  const schedule::Group& group;
  schedule::Streamed parts;
  const schedule::Member* member = nullptr;  // the contraction
  const Comprehension* node = nullptr;
  int stream = -1, row = -1;        // loops
  bool lanes = false;
  DType operand = DType::F32;
  Flat k;
  tile::Kernel kernel;
  std::vector<LoopPlace> places;
  int64_t row_tile = 0, stream_tile = 0;
  Home product;                     // the contraction's tile
  int point_buffer = -1;            // the row side, packed once a block
  int stream_buffer = -1;           // the stream side: panels packed beforehand, or rows packed per tile
  bool stream_in_place = false;
  bool score_in_place = false;      // the product's tile is the score itself, its factor applied to the row side
  Expr score_factor;                // of that score; may be invalid
  std::map<int, std::vector<Home>> states;  // of reducing members, by node
};

bool has(const std::vector<int>& list, int x) { return std::find(list.begin(), list.end(), x) != list.end(); }

bool runs_along(const schedule::Member& m, int loop) { return has(m.loops, loop); }

const Comprehension& comprehension(const Streamed& s, const schedule::Member& m) {
  return std::get<Comprehension>(s.context.graph.node(m.node));
}

// Index forms of the contraction at the current places, with its flat reduce position.
std::vector<Form> forms_at(const Streamed& s, const Form& row, const Form& stream, const Form& depth) {
  std::vector<Form> forms(s.node->indices.size(), Form(0));
  for (size_t i = 0; i < forms.size(); ++i) {
    const int loop = s.member->loops[i];
    forms[i] = loop == s.row ? row : loop == s.stream ? stream : s.places[size_t(loop)].base;
  }
  place_flat(*s.node, s.k, depth, forms);
  return forms;
}

int add_buffer(Streamed& s, const std::string& name, DType type, tile::Space space, std::vector<Form> extents,
               tile::Layout layout, tile::Block* block) {
  tile::Buffer b;
  b.name = name;
  b.type = type;
  b.space = space;
  b.extents = std::move(extents);
  b.layout = layout;
  const int id = s.context.add_buffer(std::move(b));
  if (block) block->push_back(tile::Alloc{id});
  return id;
}

tile::Layout panels(const Streamed& s, DType type) {
  return {tile::LayoutKind::Panels, 0, panel_width(s.context.target), interleave_of(type)};
}

// A kernel that writes value(positions) as panels [batch.., depth, width] into scratch. `batch` are index ids of `node`
// that the value depends on; `depth` and `width` are flat runs of others.
struct Packed {
  int buffer = -1;
  std::vector<int> batch_loops;
};

Packed pack_beforehand(Streamed& s, const std::string& name, const schedule::Member& m, const Comprehension& node,
                       Expr value, const view::Formula& domain, const Flat& depth, const Flat& width, DType type) {
  Context& c = s.context;
  std::vector<int> used = schedule::used_indices(node, value);
  for (int i : schedule::used_indices(node, domain)) used.push_back(i);
  Packed out;
  std::vector<Form> forms(node.indices.size(), Form(0)), extents;
  tile::Kernel kernel;
  kernel.name = name;
  kernel.comment = "packed panels of " + node.name;
  tile::Access to;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (!has(used, int(i)) || has(depth.indices, int(i)) || has(width.indices, int(i))) continue;
    if (node.indices[i].extent == Form(1)) continue;
    const tile::Var v = c.variable(node.indices[i].name);
    kernel.grid.push_back({v, node.indices[i].extent, false});
    forms[i] = Form::index(v);
    extents.push_back(node.indices[i].extent);
    to.coords.push_back(forms[i]);
    out.batch_loops.push_back(m.loops[i]);
  }
  // Chunks of the width, whole panels each, run in parallel.
  const Form chunk(int64_t(panel_width(c.target)) * 4);
  const tile::Var g = c.variable("chunk");
  kernel.grid.push_back({g, Form::ceil_div(width.extent, chunk), false});
  const Form w0 = Form::index(g) * chunk;
  const Form count = let(c, kernel.body, "count", size_min(c, c.expr(chunk), c.expr(width.extent) - c.expr(w0)));
  const tile::Var kv = c.variable("k"), wv = c.variable("n");
  place_flat(node, depth, Form::index(kv), forms);
  place_flat(node, width, w0 + Form::index(wv), forms);
  Translator t(c, node, forms, {});
  tile::Map map;
  map.comment = kernel.comment;
  const Expr body = scalar::cast(t.translate(value), scalar::kind_of(type));
  map.where = t.translate(domain);
  const Expr zero = scalar::constant(*c.program.arena, body.kind(), 0);
  to.coords.push_back(Form::index(kv));
  to.coords.push_back(w0 + Form::index(wv));
  extents.push_back(depth.extent);
  extents.push_back(width.extent);
  out.buffer = add_buffer(s, name, type, tile::Space::Scratch, extents, panels(s, type), nullptr);
  to.buffer = out.buffer;
  map.stores.push_back({to, body, map.where.is_always() ? Expr() : zero, {}});
  map.points = {{kv, depth.extent}, {wv, count}};
  map.reads = t.reads;
  kernel.body.push_back(std::move(map));
  c.program.kernels.push_back(std::move(kernel));
  return out;
}

// Grid and tiles of every loop but the stream.
void place_loops(Streamed& s) {
  Context& c = s.context;
  s.places.resize(s.group.loops.size());
  const int64_t width = panel_width(c.target);
  s.row_tile = s.group.tiles.rows > 0 ? s.group.tiles.rows : s.lanes ? kLaneColumns : kRows;
  s.stream_tile = s.group.tiles.stream > 0 ? s.group.tiles.stream : s.lanes ? kLaneStream : stream_tile(c.target);
  int64_t& across = s.lanes ? s.row_tile : s.stream_tile;  // runs along panels
  across = (across + width - 1) / width * width;
  if (s.stream_tile % 2) ++s.stream_tile;
  // The row loop is the outermost of the grid, so that the longest blocks of every batch start first.
  const LoopPlace row = tile_grid_loop(c, s.kernel, s.group.loops[size_t(s.row)], Form(s.row_tile));
  s.places[size_t(s.row)] = row;
  s.places[size_t(s.row)].axis = true;  // even a single row keeps its axis: products have two
  for (size_t l = 0; l < s.group.loops.size(); ++l) {
    const schedule::Loop& loop = s.group.loops[l];
    if (int(l) == s.row || int(l) == s.stream) continue;
    if (loop.kind == LoopKind::Grid) s.places[l] = tile_grid_loop(c, s.kernel, loop, Form(1));
    else s.places[l] = {Form(0), loop.extent, loop.extent,
                        !(loop.extent == Form(1)) || is_state_axis(c, s.group, int(l)), Form(0)};
  }
}

// A map that packs one factor of the contraction: rows [count, k] or panels [k, count].
void pack_tile(Streamed& s, Expr factor, const view::Formula& domain, bool along_stream, bool as_panels, int buffer,
               const Form& base, const Form& count, Expr scale, tile::Block& block) {
  Context& c = s.context;
  const tile::Var v = c.variable(along_stream ? s.group.loops[size_t(s.stream)].name : s.group.loops[size_t(s.row)].name);
  const tile::Var kv = c.variable("k");
  const Form position = base + Form::index(v);
  const std::vector<Form> forms = along_stream ? forms_at(s, Form(0), position, Form::index(kv))
                                               : forms_at(s, position, Form(0), Form::index(kv));
  Translator t(c, *s.node, forms, {});
  tile::Map map;
  Expr value = t.translate(factor);
  if (scale.valid()) value = value * t.translate(scale);
  value = scalar::cast(value, scalar::kind_of(s.operand));
  map.where = t.translate(domain);
  const Expr zero = scalar::constant(*c.program.arena, value.kind(), 0);
  tile::Access to;
  to.buffer = buffer;
  to.coords = as_panels ? std::vector<Form>{Form::index(kv), Form::index(v)}
                        : std::vector<Form>{Form::index(v), Form::index(kv)};
  map.stores.push_back({to, value, map.where.is_always() ? Expr() : zero, {}});
  if (as_panels) map.points = {{kv, s.k.extent}, {v, count}};
  else map.points = {{v, count}, {kv, s.k.extent}};
  map.reads = t.reads;
  map.comment = "operand of " + s.node->name;
  block.push_back(std::move(map));
}

// The stream side can be read where it lies (rows of a product along the lanes).
bool stream_rows_in_place(Streamed& s) {
  if (interleave_of(s.operand) > 1) return false;
  const auto read = plain_read(*s.node, s.parts.stream_factor, s.parts.stream_domain);
  if (!read) return false;
  const tensor::Read& r = s.node->reads[size_t(*read)];
  if (tensor::type(s.context.graph, r.source) != s.operand) return false;
  const std::optional<Home> home = s.context.global_home(r.source);
  if (!home) return false;
  const int sv = 1 << 20, kv = sv + 1;
  const std::vector<Form> forms = forms_at(s, Form(0), Form::index(sv), Form::index(kv));
  tile::Access access;
  access.buffer = home->buffer;
  for (const Form& f : r.coords) {
    if (f.uses(view::AtomKind::Data)) return false;
    access.coords.push_back(f.map_indices([&](int i) { return forms[size_t(i)]; }));
  }
  const auto at = address(s.context, access);
  const auto split = at ? at->split(kv) : std::nullopt;
  return split && split->coefficient == Form(1);
}

// The contraction's scale can be applied to the row side before the product if it does not use the stream.
bool scale_on_points(const Streamed& s) {
  if (!s.parts.contraction.scale.valid()) return false;
  for (int i : schedule::used_indices(*s.node, s.parts.contraction.scale)) {
    if (i == s.parts.stream_index) return false;
  }
  return interleave_of(s.operand) == 1;
}

// A score that is the product times a constant needs no tile of its own: the constant goes to the row side.
void match_score(Streamed& s, const std::vector<const schedule::Member*>& reducing) {
  if (reducing.size() != 1 || interleave_of(s.operand) > 1) return;
  const Comprehension& node = comprehension(s, *reducing[0]);
  if (node.monoid->structure != monoid::Structure::RescaledSum) return;
  if (s.parts.contraction.scale.valid() && !scale_on_points(s)) return;
  auto is_product = [&](Expr e) {
    return e.is(Op::Arg) && node.reads[size_t(e.payload())].source.node == s.member->node &&
           node.reads[size_t(e.payload())].guard.is_always();
  };
  for (size_t k = 1; k < node.body.size(); ++k) {
    for (Expr e : scalar::reachable({&node.body[k], 1})) {
      if (is_product(e)) return;
    }
  }
  for (const schedule::Member& m : s.group.members) {
    if (&m == reducing[0]) continue;
    for (Value v : tensor::sources(s.context.graph.node(m.node))) {
      if (v.node == s.member->node) return;
    }
  }
  // product * f, or select(c, product * f, 0), with f and c over sizes only.
  auto only_sizes = [](Expr e) {
    for (Expr x : scalar::reachable({&e, 1})) {
      if (x.is(Op::Arg) || x.is(Op::Present) || x.is(Op::Index)) return false;
    }
    return true;
  };
  Expr score = node.body[0], condition;
  if (score.is(Op::Select) && only_sizes(score.arg(0)) && score.arg(2).is_const() && score.arg(2).payload() == 0) {
    condition = score.arg(0);
    score = score.arg(1);
  }
  if (is_product(score)) {
    if (condition.valid()) return;
    s.score_in_place = true;
  } else if (score.is(Op::Mul)) {
    const bool left = only_sizes(score.arg(0)) && is_product(score.arg(1));
    if (!left && !(only_sizes(score.arg(1)) && is_product(score.arg(0)))) return;
    s.score_in_place = true;
    s.score_factor = left ? score.arg(0) : score.arg(1);
    if (condition.valid()) {
      s.score_factor = scalar::select(condition, s.score_factor,
                                      scalar::constant(score.arena(), score.kind(), 0));
    }
  }
}

void emit_product(Streamed& s, const Packed& packed, const Form& j0, const Form& jc, tile::Block& block) {
  Context& c = s.context;
  tile::Gemm g;
  const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
  const Form m = Form::index(mv), n = Form::index(nv), k = Form::index(kv);
  g.k = {kv, s.k.extent};
  g.accumulate = false;
  g.comment = s.node->name;
  const LoopPlace& row = s.places[size_t(s.row)];
  if (!s.lanes) {
    g.m = {mv, row.count};
    g.n = {nv, jc};
    g.a = {s.point_buffer, {m, k}, {}};
    g.b.buffer = packed.buffer;
    for (int l : packed.batch_loops) g.b.coords.push_back(s.places[size_t(l)].base);
    g.b.coords.push_back(k);
    g.b.coords.push_back(j0 + n);
    g.acc = {s.product.buffer, {m, n}, {}};
  } else {
    g.m = {mv, jc};
    g.n = {nv, row.count};
    if (s.stream_in_place) {
      const tensor::Read& r = s.node->reads[size_t(s.parts.stream_factor.payload())];
      const std::vector<Form> forms = forms_at(s, Form(0), j0 + m, k);
      g.a.buffer = c.global_home(r.source)->buffer;
      for (const Form& f : r.coords) g.a.coords.push_back(f.map_indices([&](int i) { return forms[size_t(i)]; }));
    } else {
      g.a = {s.stream_buffer, {m, k}, {}};
    }
    g.b = {s.point_buffer, {k, n}, {}};
    g.acc = {s.product.buffer, {m, n}, {}};
  }
  block.push_back(std::move(g));
}

// Folds a tile into the states of a rescaled sum.
void fold_rescaled(Streamed& s, const schedule::Member& m, const std::vector<Packed>& value_panels,
                   const std::vector<int>& value_tiles, const Form& j0, const Form& jc, const StreamBounds& bounds,
                   tile::Block& block) {
  Context& c = s.context;
  scalar::Arena& arena = *c.program.arena;
  const Comprehension& node = comprehension(s, m);
  const monoid::Monoid& monoid = *node.monoid;
  const Kind kind = monoid.components[0].kind;
  const Expr minus_inf = scalar::constant(arena, kind, -std::numeric_limits<double>::infinity());
  const Expr zero = scalar::constant(arena, kind, 0), one = scalar::constant(arena, kind, 1);
  const std::vector<Home>& states = s.states.at(m.node.index);

  // Weights are kept in the operand type of the second product; the factor of a moved max has a place per row.
  bool any_product = false;
  for (size_t k = 1; k < monoid.components.size(); ++k) any_product = any_product || schedule::is_second_product(s.group, s.row, m, node, k);
  Scope outer{s.places, &block};
  const std::vector<int> top_loops = loops_of(m, node.components[0]);
  const Home scores = s.score_in_place ? s.product
                                       : add_local(c, node.name + ".score", kind,
                                                   s.lanes ? std::vector<int>{s.stream, s.row}
                                                           : std::vector<int>{s.row, s.stream},
                                                   outer);
  const Home factor = add_local(c, node.name + ".factor", kind, {s.row}, outer);
  const bool narrow = any_product && !value_tiles.empty() && c.program.buffers[size_t(value_tiles.front() >= 0 ? value_tiles.front() : value_panels.front().buffer)].type == DType::BF16;
  Home weights = scores;
  if (narrow) {
    weights = add_local(c, node.name + ".weight", kind, {s.row, s.stream}, outer);
    c.program.buffers[size_t(weights.buffer)].type = DType::BF16;
    c.program.buffers[size_t(weights.buffer)].layout.pad = 32;
  }
  if (!s.lanes) c.program.buffers[size_t(scores.buffer)].layout.pad = 16;

  // Scores: the body's own expression of the product, -inf off the domain.
  {
    const MemberPlace place = place_member(c, s.group, m, outer);
    auto score_map = [&](bool masked) {
      Translator t(c, node, place.index_forms, place.local_forms);
      tile::Map map;
      map.comment = node.name + ": scores" + (masked ? " within the domain" : "");
      Expr score;
      if (s.score_in_place) {
        score = scalar::arg(arena, kind, 0);
        t.reads.push_back(local_access(scores, place.local_forms));
      } else {
        score = t.translate(node.body[0]);
      }
      if (masked) map.where = t.translate(node.domain);
      map.stores.push_back({local_access(scores, place.local_forms), score, masked ? minus_inf : Expr(), {}});
      map.points = place.variables.ranges(scores.axes, s.places);
      map.reads = t.reads;
      return map;
    };
    if (node.domain.is_always()) {
      if (!s.score_in_place) block.push_back(score_map(false));
    } else if (!bounds.inside) {
      block.push_back(score_map(true));
    } else {
      tile::If inside;
      inside.reads = bounds.inside_reads;
      if (s.score_in_place) {
        inside.condition = !*bounds.inside;
        inside.then.push_back(score_map(true));
      } else {
        inside.condition = *bounds.inside;
        inside.then.push_back(score_map(false));
        inside.otherwise.push_back(score_map(true));
      }
      block.push_back(std::move(inside));
    }
  }

  // Row by row, so that a row of scores stays in the nearest cache between its three passes; lane by lane otherwise.
  Scope rows{s.places, &block};
  tile::For each;
  if (!s.lanes) {
    each.var = c.variable(s.group.loops[size_t(s.row)].name);
    each.begin = c.constant(0);
    each.end = c.expr(s.places[size_t(s.row)].count);
    LoopPlace& place = rows.places[size_t(s.row)];
    place.axis = false;
    place.offset = Form::index(each.var);
    place.base = place.base + place.offset;
    rows.block = &each.body;
  }
  auto statement = [&](auto&& fill) {
    const MemberPlace place = place_member(c, s.group, m, rows);
    fill(place, *rows.block);
  };
  statement([&](const MemberPlace& place, tile::Block& to) {  // remember the old max
    tile::Map map;
    map.points = place.variables.ranges(top_loops, rows.places);
    map.reads = {local_access(states[0], place.local_forms)};
    map.stores.push_back({local_access(factor, place.local_forms), scalar::arg(arena, kind, 0), {}, {}});
    to.push_back(std::move(map));
  });
  statement([&](const MemberPlace& place, tile::Block& to) {
    tile::Reduce top;
    top.comment = node.name + ": running max";
    top.monoid = monoid::maximum(kind);
    top.points = place.variables.ranges(top_loops, rows.places);
    top.reduces = place.variables.ranges({s.stream}, rows.places);
    top.reads = {local_access(scores, place.local_forms)};
    top.body = {scalar::arg(arena, kind, 0)};
    top.states = {local_access(states[0], place.local_forms)};
    top.accumulate = true;
    to.push_back(std::move(top));
  });
  const Expr scale = monoid.scale == 1 ? Expr() : scalar::constant(arena, kind, monoid.scale);
  auto scaled = [&](Expr gap) { return scale.valid() ? gap * scale : gap; };
  statement([&](const MemberPlace& place, tile::Block& to) {
    tile::Map map;
    map.comment = node.name + ": factor of the old sums";
    map.points = place.variables.ranges(top_loops, rows.places);
    map.reads = {local_access(factor, place.local_forms), local_access(states[0], place.local_forms)};
    const Expr old = scalar::arg(arena, kind, 0), now = scalar::arg(arena, kind, 1);
    map.stores.push_back({local_access(factor, place.local_forms),
                          scalar::select(scalar::binary(Op::Eq, old, now), one, scalar::exp(scaled(old - now))), {}, {}});
    to.push_back(std::move(map));
  });
  statement([&](const MemberPlace& place, tile::Block& to) {
    tile::Map map;
    map.comment = node.name + ": weights";
    std::vector<int> both = weights.axes;
    map.points = place.variables.ranges(both, rows.places);
    map.reads = {local_access(scores, place.local_forms), local_access(states[0], place.local_forms)};
    const Expr score = scalar::arg(arena, kind, 0), now = scalar::arg(arena, kind, 1);
    const Expr w = scalar::select(scalar::binary(Op::Eq, score, minus_inf), zero, scalar::exp(scaled(score - now)));
    map.stores.push_back({local_access(weights, place.local_forms), w, {}, {}});
    to.push_back(std::move(map));
  });
  for (size_t k = 1; k < monoid.components.size(); ++k) {
    if (schedule::is_second_product(s.group, s.row, m, node, k)) continue;
    statement([&](const MemberPlace& place, tile::Block& to) {
      const std::vector<int> own = loops_of(m, node.components[k]);
      tile::Map rescale;
      rescale.points = place.variables.ranges(own, rows.places);
      rescale.reads = {local_access(states[k], place.local_forms), local_access(factor, place.local_forms)};
      rescale.stores.push_back({local_access(states[k], place.local_forms),
                                scalar::arg(arena, kind, 0) * scalar::arg(arena, kind, 1), {}, {}});
      to.push_back(std::move(rescale));
    });
    statement([&](const MemberPlace& place, tile::Block& to) {
      Translator t(c, node, place.index_forms, place.local_forms);
      tile::Reduce sum;
      sum.comment = node.name + ": sum " + std::to_string(k);
      sum.monoid = monoid::sum(kind);
      const Expr g = t.translate(node.body[k]);
      const int at = int(t.reads.size());
      t.reads.push_back(local_access(weights, place.local_forms));
      const Expr w = scalar::arg(arena, kind, at);
      // Factors of absent terms are not read: their weight is 0, but 0 * nan is not.
      sum.body = {g == one ? w : w * g};
      if (!(g == one)) sum.where = t.translate(node.domain);
      sum.points = place.variables.ranges(loops_of(m, node.components[k]), rows.places);
      sum.reduces = place.variables.ranges({s.stream}, rows.places);
      sum.states = {local_access(states[k], place.local_forms)};
      sum.accumulate = true;
      sum.reads = t.reads;
      to.push_back(std::move(sum));
    });
  }
  if (each.var >= 0) block.push_back(std::move(each));

  // Second products.
  size_t which = 0;
  for (size_t k = 1; k < monoid.components.size(); ++k) {
    if (!schedule::is_second_product(s.group, s.row, m, node, k)) continue;
    const MemberPlace place = place_member(c, s.group, m, outer);
    tile::Map rescale;
    rescale.comment = node.name + ": rescale sum " + std::to_string(k);
    rescale.points = place.variables.ranges(states[k].axes, s.places);
    rescale.reads = {local_access(states[k], place.local_forms), local_access(factor, place.local_forms)};
    rescale.stores.push_back({local_access(states[k], place.local_forms),
                              scalar::arg(arena, kind, 0) * scalar::arg(arena, kind, 1), {}, {}});
    block.push_back(std::move(rescale));

    const Flat columns = flatten(node, schedule::columns_of(s.group, m, node, k));
    tile::Gemm g;
    const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
    g.m = {mv, s.places[size_t(s.row)].count};
    g.n = {nv, columns.extent};
    g.k = {kv, jc};
    g.comment = node.name + ": sum " + std::to_string(k);
    g.a = {weights.buffer, {Form::index(mv), Form::index(kv)}, {}};
    const int tile_buffer = value_tiles[which];
    if (tile_buffer >= 0) {
      g.b = {tile_buffer, {Form::index(kv), Form::index(nv)}, {}};
    } else {
      const Packed& p = value_panels[which];
      g.b.buffer = p.buffer;
      for (int l : p.batch_loops) g.b.coords.push_back(s.places[size_t(l)].base);
      g.b.coords.push_back(j0 + Form::index(kv));
      g.b.coords.push_back(Form::index(nv));
    }
    std::vector<Form> column_forms(node.indices.size());
    place_flat(node, columns, Form::index(nv), column_forms);
    g.acc.buffer = states[k].buffer;
    for (int l : states[k].axes) {
      if (l == s.row) {
        g.acc.coords.push_back(Form::index(mv));
        continue;
      }
      for (size_t i = 0; i < node.indices.size(); ++i) {
        if (m.loops[i] == l) g.acc.coords.push_back(column_forms[i]);
      }
    }
    block.push_back(std::move(g));
    ++which;
  }
}

// Folds a tile into the states of any other commutative monoid.
void fold_plain(Streamed& s, const schedule::Member& m, tile::Block& block) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Scope scope{s.places, &block};
  const MemberPlace place = place_member(c, s.group, m, scope);
  Translator t(c, node, place.index_forms, place.local_forms);
  tile::Reduce reduce;
  reduce.comment = node.name;
  reduce.monoid = node.monoid;
  for (Expr e : node.body) reduce.body.push_back(t.translate(e));
  reduce.where = t.translate(node.domain);
  reduce.points = place.variables.ranges(loops_of(m, node.with_role(Role::Point)), s.places);
  reduce.axes = place.variables.ranges(loops_of(m, node.with_role(Role::Axis)), s.places);
  reduce.reduces = place.variables.ranges({s.stream}, s.places);
  for (const Home& h : s.states.at(m.node.index)) reduce.states.push_back(local_access(h, place.local_forms));
  reduce.accumulate = true;
  reduce.reads = t.reads;
  block.push_back(std::move(reduce));
}

// Identities.
void start_states(Streamed& s, const schedule::Member& m) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Scope scope{s.places, &s.kernel.body};
  s.states[m.node.index] = add_states(c, m, scope);
  for (size_t k = 0; k < node.components.size(); ++k) {
    const Home& home = s.states[m.node.index][k];
    const MemberPlace place = place_member(c, s.group, m, scope);
    tile::Map map;
    map.comment = node.name + ": identity";
    map.points = place.variables.ranges(home.axes, s.places);
    map.stores.push_back({local_access(home, place.local_forms),
                          scalar::import(node.monoid->identity[k], *c.program.arena), {}, {}});
    s.kernel.body.push_back(std::move(map));
  }
}

// The columns of a second product packed for one tile, zero at stream points that no row of the tile reads.
int pack_columns(Streamed& s, const schedule::Member& m, size_t component, DType type, const Form& j0, const Form& jc,
                 tile::Block& block) {
  Context& c = s.context;
  scalar::Arena& arena = *c.program.arena;
  const Comprehension& node = comprehension(s, m);
  const Flat columns = flatten(node, schedule::columns_of(s.group, m, node, component));
  Scope scope{s.places, &block};
  const Home used = add_local(c, node.name + ".read", Kind::Bool, {s.stream}, scope);
  {
    const MemberPlace place = place_member(c, s.group, m, scope);
    Translator t(c, node, place.index_forms, place.local_forms);
    tile::Reduce vote;
    vote.comment = node.name + ": which points have a reader";
    vote.monoid = monoid::any();
    vote.where = t.translate(node.domain);
    vote.points = place.variables.ranges({s.stream}, s.places);
    vote.reduces = place.variables.ranges({s.row}, s.places);
    vote.body = {scalar::boolean(arena, true)};
    vote.states = {local_access(used, place.local_forms)};
    vote.reads = t.reads;
    block.push_back(std::move(vote));
  }
  const int buffer = add_buffer(s, node.name + ".columns", type, tile::Space::Shared,
                                {Form(s.stream_tile), columns.extent}, panels(s, type), &block);
  const tile::Var jv = c.variable(s.group.loops[size_t(s.stream)].name), nv = c.variable("n");
  std::vector<Form> forms(node.indices.size());
  for (size_t i = 0; i < forms.size(); ++i) {
    const int loop = m.loops[i];
    forms[i] = loop == s.stream ? j0 + Form::index(jv) : s.places[size_t(loop)].base;
  }
  place_flat(node, columns, Form::index(nv), forms);
  Translator t(c, node, forms, {{s.stream, Form::index(jv)}});
  tile::Map map;
  map.comment = node.name + ": columns";
  const Expr value = t.translate(node.body[component]);
  const int vote = int(t.reads.size());
  t.reads.push_back(local_access(used, {{s.stream, Form::index(jv)}}));
  map.where = view::Formula::less_equal(Form(1), Form::data(vote));
  map.points = {{jv, jc}, {nv, columns.extent}};
  map.stores.push_back({{buffer, {Form::index(jv), Form::index(nv)}, {}}, value,
                        scalar::constant(arena, value.kind(), 0), {}});
  map.reads = t.reads;
  block.push_back(std::move(map));
  return buffer;
}

DType column_type(const Streamed& s, const Comprehension& node, size_t component) {
  const Expr g = node.body[component];
  const bool bf16 = g.is(Op::Arg) &&
                    tensor::type(s.context.graph, node.reads[size_t(g.payload())].source) == DType::BF16;
  return bf16 && s.context.target.bf16_dot ? DType::BF16 : scalar::dtype_of(g.kind());
}

}  // namespace

base::Result<void> lower_streamed(Context& context, const schedule::Group& group) {
  Streamed s(context, group);
  s.parts = schedule::take_apart(context.graph, group);
  s.member = s.parts.member;
  s.node = s.parts.node;
  s.stream = s.parts.stream;
  s.row = s.parts.row;
  s.operand = operand_type(context, *s.node, s.parts.contraction);
  s.k = flatten(*s.node, s.parts.contraction.k);
  s.kernel.name = group.name;
  const std::vector<const schedule::Member*>& reducing = s.parts.reducing;
  s.lanes = true;
  for (const schedule::Member* m : reducing) {
    const Comprehension& node = comprehension(s, *m);
    for (size_t k = 0; k < node.components.size(); ++k) s.lanes = s.lanes && !schedule::is_second_product(group, s.row, *m, node, k);
  }
  s.kernel.comment = "streamed: " + s.node->name + " is recomputed along " + group.loops[size_t(s.stream)].name;

  // What is packed beforehand: the stream side of the product, and the columns of second products.
  Packed stream_panels;
  std::vector<std::vector<Packed>> value_panels(reducing.size());
  place_loops(s);
  StreamBounds bounds = stream_bounds(context, group, reducing, s.stream, s.row, s.places, s.kernel.body);
  if (bounds.upper_follows_row && !s.kernel.grid.empty()) s.kernel.grid[0].descending = true;
  if (!s.lanes) {
    const Flat width = flatten(*s.node, {s.parts.stream_index});
    stream_panels = pack_beforehand(s, s.node->name + ".panels", *s.member, *s.node, s.parts.stream_factor, s.parts.stream_domain,
                                    s.k, width, s.operand);
  } else {
    s.stream_in_place = stream_rows_in_place(s);
  }
  for (size_t r = 0; r < reducing.size(); ++r) {
    const Comprehension& node = comprehension(s, *reducing[r]);
    for (size_t k = 0; k < node.components.size(); ++k) {
      if (!schedule::is_second_product(group, s.row, *reducing[r], node, k)) continue;
      if (!bounds.exact) {
        value_panels[r].push_back({});
        continue;
      }
      std::vector<int> along;
      for (size_t i = 0; i < node.indices.size(); ++i) {
        if (reducing[r]->loops[i] == s.stream) along.push_back(int(i));
      }
      value_panels[r].push_back(pack_beforehand(s, node.name + ".columns", *reducing[r], node, node.body[k], {},
                                                flatten(node, along),
                                                flatten(node, schedule::columns_of(group, *reducing[r], node, k)),
                                                column_type(s, node, k)));
    }
  }

  // Before the stream: operands of the block, members that the stream reads, identities.
  tile::Block& body = s.kernel.body;
  const LoopPlace& row = s.places[size_t(s.row)];
  const bool scale_points = scale_on_points(s);
  match_score(s, reducing);
  Expr scale = scale_points ? s.parts.contraction.scale : Expr();
  if (s.score_factor.valid()) scale = scale.valid() ? scale * s.score_factor : s.score_factor;
  if (s.lanes) {
    s.point_buffer = add_buffer(s, s.node->name + ".points", s.operand, tile::Space::Shared, {s.k.extent, Form(s.row_tile)},
                                panels(s, s.operand), &body);
  } else {
    s.point_buffer = add_buffer(s, s.node->name + ".points", s.operand, tile::Space::Shared, {Form(s.row_tile), s.k.extent},
                                {tile::LayoutKind::RowMajor, row_pad(s.operand), 0, 1}, &body);
  }
  pack_tile(s, s.parts.point_factor, s.parts.point_domain, false, s.lanes, s.point_buffer, row.base, row.count, scale, body);
  std::vector<const schedule::Member*> before, along, after;
  for (const schedule::Member& m : group.members) {
    bool depends = false;
    for (Value v : tensor::sources(context.graph.node(m.node))) {
      for (const schedule::Member* r : reducing) depends = depends || v.node == r->node;
      for (const schedule::Member* r : after) depends = depends || v.node == r->node;
    }
    if (runs_along(m, s.stream)) along.push_back(&m);
    else (depends ? after : before).push_back(&m);
  }
  {
    Scope scope{s.places, &body};
    for (const schedule::Member* m : before) lower_member(context, group, *m, scope);
  }
  for (const schedule::Member* m : reducing) start_states(s, *m);

  // The stream.
  tile::For loop;
  const std::string name = group.loops[size_t(s.stream)].name;
  loop.var = context.variable(name + ".tile");
  loop.begin = size_floor_div(context, context.expr(bounds.begin), context.constant(s.stream_tile));
  loop.end = size_ceil_div(context, context.expr(bounds.end), context.constant(s.stream_tile));
  const Form j0 = Form::index(loop.var) * Form(s.stream_tile);
  const Form jc = let(context, loop.body, name + ".count",
                      scalar::min(context.constant(s.stream_tile), context.expr(bounds.end) - context.expr(j0)));
  s.places[size_t(s.stream)] = {j0, jc, Form(s.stream_tile), true, Form(0)};
  bounds.place_tile(context, j0, jc);
  if (s.lanes && !s.stream_in_place) {
    s.stream_buffer = add_buffer(s, s.node->name + ".stream", s.operand, tile::Space::Shared,
                                 {Form(s.stream_tile), s.k.extent},
                                 {tile::LayoutKind::RowMajor, row_pad(s.operand), 0, 1}, &loop.body);
    pack_tile(s, s.parts.stream_factor, s.parts.stream_domain, true, false, s.stream_buffer, j0, jc, Expr(), loop.body);
  }
  {
    Scope scope{s.places, &loop.body};
    s.product = add_local(context, s.node->name, s.parts.contraction.lhs.kind(),
                          s.lanes ? std::vector<int>{s.stream, s.row} : std::vector<int>{s.row, s.stream}, scope);
    tile::Buffer& tile_buffer = context.program.buffers[size_t(s.product.buffer)];
    tile_buffer.layout.pad = 16;
  }
  emit_product(s, stream_panels, j0, jc, loop.body);
  context.homes[{s.member->node, 0}].push_back(s.product);
  if (s.parts.contraction.scale.valid() && !scale_points) {
    Scope scope{s.places, &loop.body};
    const MemberPlace place = place_member(context, group, *s.member, scope);
    Translator t(context, *s.node, place.index_forms, place.local_forms);
    tile::Map map;
    map.comment = s.node->name + ": scale";
    const Expr factor = t.translate(s.parts.contraction.scale);
    const int at = int(t.reads.size());
    t.reads.push_back(local_access(s.product, place.local_forms));
    map.points = place.variables.ranges(s.product.axes, s.places);
    map.stores.push_back({local_access(s.product, place.local_forms),
                          scalar::arg(*context.program.arena, factor.kind(), at) * factor, {}, {}});
    map.reads = t.reads;
    loop.body.push_back(std::move(map));
  }
  for (const schedule::Member* m : along) {
    if (m == s.member) continue;
    const auto r = std::find(reducing.begin(), reducing.end(), m);
    if (r == reducing.end()) {
      Scope scope{s.places, &loop.body};
      lower_member(context, group, *m, scope);
      continue;
    }
    const Comprehension& node = comprehension(s, *m);
    if (node.monoid->structure != monoid::Structure::RescaledSum) {
      fold_plain(s, *m, loop.body);
      continue;
    }
    std::vector<int> tiles;
    for (size_t k = 0; k < node.components.size(); ++k) {
      if (!schedule::is_second_product(group, s.row, *m, node, k)) continue;
      tiles.push_back(bounds.exact ? -1 : pack_columns(s, *m, k, column_type(s, node, k), j0, jc, loop.body));
    }
    fold_rescaled(s, *m, value_panels[size_t(r - reducing.begin())], tiles, j0, jc, bounds, loop.body);
  }
  body.push_back(std::move(loop));

  // After it.
  Scope scope{s.places, &body};
  for (const schedule::Member* m : reducing) {
    finish_states(context, group, *m, s.states.at(m->node.index), scope);
  }
  for (const schedule::Member* m : after) lower_member(context, group, *m, scope);
  context.program.kernels.push_back(std::move(s.kernel));
  return {};
}

}  // namespace lemma::lower
