// A contraction recomputed tile by tile along the stream loop and reduced as it comes, by tiles of a device's workgroup
// memory (streamed.cc is the same by packed panels).
//
// A block owns a tile of rows; their side of the product stays in shared memory, the states in fragments. For each tile
// of the stream: the product, then, for a rescaled sum, one map that makes scores of it, the new max, the factor by which
// older sums shrink, the weights, and what they weigh: plain sums, and products of weights and columns.
//
// All extents are constant; edges are guards. Stream points that no row of the tile reads must not reach the second
// product (0 * nan is nan): columns are 0 from the stream's end on, and where bounds do not tell who is read, a vote does,
// in turns that do not lie inside the domain as a whole.

#include <algorithm>

#include "lemma/lower/device_streamed.h"

namespace lemma::lower {
namespace {

using scalar::Kind;
using schedule::LoopKind;
using schedule::Member;
using tensor::Comprehension;
using tensor::Role;
using tensor::Value;

constexpr int kDepth = 2;  // turns under way

const Comprehension& comprehension(const DeviceStreamed& s, const Member& m) {
  return std::get<Comprehension>(s.context.graph.node(m.node));
}

bool runs_along(const Member& m, int loop) { return std::find(m.loops.begin(), m.loops.end(), loop) != m.loops.end(); }

}  // namespace

std::vector<Form> bases(const DeviceStreamed& s, const Member& m) {
  std::vector<Form> out;
  for (int l : m.loops) out.push_back(s.places[size_t(l)].base);
  return out;
}

namespace {

LoopPlace tiled(const DeviceStreamed& s, int loop, const Form& base, int64_t tile) {
  LoopPlace out{base, Form(tile), Form(tile), true, Form(0)};
  const Form& extent = s.group.loops[size_t(loop)].extent;
  if (!schedule::is_multiple(s.context.graph, extent, tile)) out.limit = extent;
  return out;
}

// Grid and tiles of every loop but the stream.
void place_loops(DeviceStreamed& s) {
  Context& c = s.context;
  s.places.resize(s.group.loops.size());
  // The row loop is the outermost of the grid, so that the longest blocks of every batch start first.
  const schedule::Loop& rows = s.group.loops[size_t(s.parts.row)];
  const tile::Var y = c.variable(rows.name + ".tile");
  s.kernel.grid.push_back({y, Form::ceil_div(rows.extent, s.tiles.rows), false});
  s.places[size_t(s.parts.row)] = tiled(s, s.parts.row, Form::index(y) * Form(s.tiles.rows), s.tiles.rows);
  for (size_t l = 0; l < s.group.loops.size(); ++l) {
    const schedule::Loop& loop = s.group.loops[l];
    if (int(l) == s.parts.row || int(l) == s.parts.stream) continue;
    if (loop.kind == LoopKind::Grid) {
      s.places[l] = tile_grid_loop(c, s.kernel, loop, Form(1));
    } else if (const auto width = s.tiles.columns.find(int(l)); width != s.tiles.columns.end()) {
      s.places[l] = tiled(s, int(l), Form(0), width->second);
      if (!schedule::fills_tiles(c.graph, loop.extent, width->second)) s.places[l].limit = loop.extent;  // one tile, of nothing too
    } else {
      s.places[l] = {Form(0), loop.extent, loop.extent, !(loop.extent == Form(1)) || is_state_axis(c, s.group, int(l)), Form(0)};
    }
  }
}

// j <= i and nothing else, over loops of one extent: what the rows of a block read ends with the rows, and a stream point
// that its first row reads exists.
bool is_diagonal(const DeviceStreamed& s) {
  if (!(s.group.loops[size_t(s.parts.row)].extent == s.group.loops[size_t(s.parts.stream)].extent)) return false;
  return std::all_of(s.parts.reducing.begin(), s.parts.reducing.end(), [&](const Member* m) {
    int row = -1, stream = -1;
    for (size_t i = 0; i < m->loops.size(); ++i) {
      if (m->loops[i] == s.parts.row) row = int(i);
      if (m->loops[i] == s.parts.stream) stream = int(i);
    }
    return row >= 0 && comprehension(s, *m).domain == view::Formula::less_equal(Form::index(stream), Form::index(row));
  });
}

// The stream's ends for this block, and up to where columns may be read.
void bound_stream(DeviceStreamed& s) {
  Context& c = s.context;
  const schedule::Loop& stream = s.group.loops[size_t(s.parts.stream)];
  s.bounded = std::any_of(s.parts.reducing.begin(), s.parts.reducing.end(),
                          [&](const Member* m) { return !comprehension(s, *m).domain.is_always(); });
  if (!s.bounded) {
    s.bounds.begin = Form(0);
    s.bounds.end = stream.extent;
    return;
  }
  s.diagonal = is_diagonal(s);
  const bool whole_tiles = s.diagonal && s.tiles.rows % s.tiles.stream == 0;
  std::vector<LoopPlace> places = s.places;
  LoopPlace& row = places[size_t(s.parts.row)];
  if (row.limit && !whole_tiles) {
    row.count = let(c, s.kernel.body, s.group.loops[size_t(s.parts.row)].name + ".count",
                    scalar::min(c.expr(row.count), c.expr(*row.limit) - c.expr(row.base)));
  }
  s.bounds = stream_bounds(c, s.group, s.parts.reducing, s.parts.stream, s.parts.row, places, s.kernel.body);
  if (s.bounds.upper_follows_row) s.kernel.grid[0].descending = true;
  s.columns_begin = s.bounds.begin;
  if (!whole_tiles) s.columns_end = s.bounds.end;
}

// The place of the stream in one turn, and whether all of its points are there.
void place_turn(DeviceStreamed& s, const Form& turn) {
  Context& c = s.context;
  s.stream_base = turn * Form(s.tiles.stream);
  LoopPlace& place = s.places[size_t(s.parts.stream)];
  place = tiled(s, s.parts.stream, s.stream_base, s.tiles.stream);
  if (s.bounded) {
    s.bounds.place_tile(c, s.stream_base, place.count);
    if (!s.bounds.inside) return;
    s.inside = s.bounds.inside;
  } else {
    s.inside = view::Formula();
  }
  if (place.limit && !s.diagonal) s.inside = *s.inside && view::Formula::less_equal(s.stream_base + place.count, *place.limit);
}

// Shared tiles of the product's sides and of columns, fragments of the product and the states.
void declare(DeviceStreamed& s) {
  Context& c = s.context;
  tile::Block& body = s.kernel.body;
  const std::string& name = s.parts.node->name;
  const auto side = [&](const std::string& what, Expr factor, const view::Formula& domain, int index, int64_t tile) {
    return plan_operand(c, name + what, {s.parts.node, factor, domain, flatten(*s.parts.node, {index}), s.k, tile, s.tiles.depth, s.tiles.operand},
                        false, body);
  };
  int row_index = -1;
  for (size_t i = 0; i < s.parts.member->loops.size(); ++i) {
    if (s.parts.member->loops[i] == s.parts.row) row_index = int(i);
  }
  s.points = side(".rows", s.parts.point_factor, s.parts.point_domain, row_index, s.tiles.rows);
  s.stream = side("." + s.group.loops[size_t(s.parts.stream)].name, s.parts.stream_factor, s.parts.stream_domain, s.parts.stream_index, s.tiles.stream);
  for (const Member* m : s.parts.reducing) {
    const Comprehension& node = comprehension(s, *m);
    for (size_t k = 1; k < node.components.size(); ++k) {
      if (!schedule::is_second_product(s.group, s.parts.row, *m, node, k)) continue;
      SecondProduct second;
      second.component = k;
      const int index = schedule::columns_of(s.group, *m, node, k)[0];
      second.column = m->loops[size_t(index)];
      std::vector<int> along;
      for (size_t i = 0; i < m->loops.size(); ++i) {
        if (m->loops[i] == s.parts.stream) along.push_back(int(i));
      }
      TileOperand columns{&node, node.body[k], {}, flatten(node, {index}), flatten(node, along), s.tiles.columns.at(second.column),
                          s.tiles.stream, schedule::tile_type(c.graph, node, node.body[k], c.target)};
      second.columns = plan_operand(c, node.name + ".columns", columns, true, body);
      s.second[m->node.index].push_back(std::move(second));
    }
  }
  Scope scope{s.places, &body, tile::Space::Fragment};
  s.product = add_local(c, name, s.parts.point_factor.kind(), {s.parts.row, s.parts.stream}, scope);
}

// Identities.
void start_states(DeviceStreamed& s, const Member& m) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Scope scope{s.places, &s.kernel.body, tile::Space::Fragment};
  const std::vector<Home> homes = s.states[m.node.index] = add_states(c, m, scope);
  for (size_t k = 0; k < homes.size(); ++k) {
    const MemberPlace place = place_member(c, s.group, m, scope);
    tile::Map map;
    map.comment = node.name + ": identity";
    map.points = place.variables.ranges(homes[k].axes, s.places);
    map.stores.push_back({local_access(homes[k], place.local_forms), scalar::import(node.monoid->identity[k], *c.program.arena), {}, {}});
    s.kernel.body.push_back(std::move(map));
  }
}

// ---- the product ----

tile::Gemm product_slice(DeviceStreamed& s, bool accumulate) {
  Context& c = s.context;
  tile::Gemm g;
  const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
  g.m = {mv, s.tiles.rows};
  g.n = {nv, s.tiles.stream};
  g.k = {kv, s.tiles.depth};
  g.a = s.points.access(Form::index(mv), Form::index(kv));
  g.b = s.stream.access(Form::index(nv), Form::index(kv));
  g.acc = {s.product.buffer, {Form::index(mv), Form::index(nv)}, {}};
  g.accumulate = accumulate;
  g.comment = s.parts.node->name;
  return g;
}

tile::Stmt load_points(DeviceStreamed& s, const Form& depth) {
  return load_operand(s.context, s.points, {bases(s, *s.parts.member), s.places[size_t(s.parts.row)].base, depth, {}});
}

void multiply(DeviceStreamed& s, tile::Block& block) {
  Context& c = s.context;
  const auto load_stream = [&](const Form& depth) {
    return load_operand(c, s.stream, {bases(s, *s.parts.member), s.stream_base, depth, {}});
  };
  if (s.tiles.whole_depth) {
    block.push_back(product_slice(s, false));
    return;
  }
  tile::Map zero;
  const tile::Var mv = c.variable("m"), nv = c.variable("n");
  zero.points = {{mv, s.tiles.rows}, {nv, s.tiles.stream}};
  zero.stores.push_back({{s.product.buffer, {Form::index(mv), Form::index(nv)}, {}},
                         scalar::constant(*c.program.arena, s.parts.point_factor.kind(), 0), {}, {}});
  block.push_back(std::move(zero));
  tile::For slices;
  slices.var = c.variable("slice");
  slices.begin = c.constant(0);
  slices.end = size_ceil_div(c, c.expr(s.k.extent), c.constant(s.tiles.depth));
  slices.kind = tile::LoopKind::Pipelined;
  slices.depth = kDepth;
  const Form depth = Form::index(slices.var) * Form(s.tiles.depth);
  slices.body.push_back(load_points(s, depth));
  slices.body.push_back(load_stream(depth));
  slices.body.push_back(product_slice(s, true));
  block.push_back(std::move(slices));
}

// The product's scale where it is read: with the score if only the score reads it.
void scale_product(DeviceStreamed& s, tile::Block& block) {
  Context& c = s.context;
  if (!s.parts.contraction.scale.valid()) return;
  Scope scope{s.places, &block, tile::Space::Fragment};
  const MemberPlace place = place_member(c, s.group, *s.parts.member, scope);
  Translator t(c, *s.parts.node, place.index_forms, place.local_forms);
  tile::Map map;
  map.comment = s.parts.node->name + ": scale";
  const Expr factor = t.translate(s.parts.contraction.scale);
  keep_inside(c, t.reads, {}, {}, place.edges_of({s.parts.row, s.parts.stream}));
  const int at = int(t.reads.size());
  t.reads.push_back(local_access(s.product, place.local_forms));
  map.points = place.variables.ranges(s.product.axes, s.places);
  map.stores.push_back({local_access(s.product, place.local_forms), scalar::arg(*c.program.arena, factor.kind(), at) * factor, {}, {}});
  map.reads = t.reads;
  block.push_back(std::move(map));
}

// ---- any other commutative monoid ----

void fold_plain(DeviceStreamed& s, const Member& m, tile::Block& block) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Scope scope{s.places, &block, tile::Space::Fragment};
  const MemberPlace place = place_member(c, s.group, m, scope);
  const std::vector<int> points = loops_of(m, node.with_role(Role::Point)), axes = loops_of(m, node.with_role(Role::Axis));
  Translator t(c, node, place.index_forms, place.local_forms);
  tile::Reduce reduce;
  reduce.comment = node.name;
  reduce.monoid = node.monoid;
  for (Expr e : node.body) reduce.body.push_back(t.translate(e));
  const view::Formula domain = t.translate(node.domain);
  const std::vector<Edge> own = place.edges_of({s.parts.stream});
  keep_inside(c, t.reads, domain, own, place.edges_of(points));
  reduce.where = all_of(own) && domain;
  reduce.points = place.variables.ranges(points, s.places);
  reduce.axes = place.variables.ranges(axes, s.places);
  reduce.reduces = place.variables.ranges({s.parts.stream}, s.places);
  for (const Home& h : s.states.at(m.node.index)) reduce.states.push_back(local_access(h, place.local_forms));
  reduce.accumulate = true;
  reduce.reads = t.reads;
  block.push_back(std::move(reduce));
}

}  // namespace

int vote(DeviceStreamed& s, const Member& m, tile::Block& block) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Scope scope{s.places, &block, tile::Space::Shared};
  const Home used = add_local(c, node.name + ".read", Kind::Bool, {s.parts.stream}, scope);
  const MemberPlace place = place_member(c, s.group, m, scope);
  Translator t(c, node, place.index_forms, place.local_forms);
  tile::Reduce any;
  any.comment = node.name + ": which points have a reader";
  any.monoid = monoid::any();
  const view::Formula domain = t.translate(node.domain);
  const std::vector<Edge> own = place.edges_of({s.parts.row, s.parts.stream});
  keep_inside(c, t.reads, domain, own);
  any.where = all_of(own) && domain;
  any.points = place.variables.ranges({s.parts.stream}, s.places);
  any.reduces = place.variables.ranges({s.parts.row}, s.places);
  any.body = {scalar::boolean(*c.program.arena, true)};
  any.states = {local_access(used, place.local_forms)};
  any.reads = t.reads;
  block.push_back(std::move(any));
  return used.buffer;
}

namespace {

// ---- columns of second products ----

void load_columns(DeviceStreamed& s, const Member& m, tile::Block& block) {
  Context& c = s.context;
  for (SecondProduct& p : s.second[m.node.index]) {
    TilePlace place{bases(s, m), Form(0), s.stream_base, {}};
    if (!s.bounded || s.bounds.exact || s.bounds.contiguous) {
      if (s.bounded) place.depth_end = s.columns_end;
      if (s.bounded && !s.bounds.exact) place.depth_begin = s.columns_begin;
      block.push_back(load_operand(c, p.columns, place));
    } else if (p.columns.plain) {
      p.unread = true;
      block.push_back(load_operand(c, p.columns, place));
    } else {
      // What is computed may only be computed where it is read.
      const int used = vote(s, m, block);
      block.push_back(evaluate_operand(c, p.columns, place, used));
    }
  }
}

// ---- the kernel ----

void stream(DeviceStreamed& s) {
  Context& c = s.context;
  tile::For loop;
  loop.var = c.variable(s.group.loops[size_t(s.parts.stream)].name + ".tile");
  loop.begin = size_floor_div(c, c.expr(s.bounds.begin), c.constant(s.tiles.stream));
  loop.end = size_ceil_div(c, c.expr(s.bounds.end), c.constant(s.tiles.stream));
  loop.kind = tile::LoopKind::Pipelined;
  loop.depth = kDepth;
  place_turn(s, Form::index(loop.var));
  if (s.tiles.whole_depth) {
    loop.body.push_back(load_operand(c, s.stream, {bases(s, *s.parts.member), s.stream_base, Form(0), {}}));
  }
  for (const Member* m : s.parts.reducing) load_columns(s, *m, loop.body);
  multiply(s, loop.body);
  c.homes[{s.parts.member->node, 0}].push_back(s.product);
  if (!s.scale_with_score) scale_product(s, loop.body);
  for (const Member& m : s.group.members) {
    if (!runs_along(m, s.parts.stream) || &m == s.parts.member) continue;
    if (std::find(s.parts.reducing.begin(), s.parts.reducing.end(), &m) == s.parts.reducing.end()) {
      Scope scope{s.places, &loop.body, tile::Space::Fragment};
      lower_member(c, s.group, m, scope);
    } else if (comprehension(s, m).monoid->structure == monoid::Structure::RescaledSum) {
      fold_rescaled(s, m, loop.body);
    } else {
      fold_plain(s, m, loop.body);
    }
  }
  s.kernel.body.push_back(std::move(loop));
}

}  // namespace

base::Result<void> lower_device_streamed(Context& context, const schedule::Group& group) {
  DeviceStreamed s(context, group);
  std::string why;
  const auto tiles = schedule::stream_tiles(context.graph, group, s.parts, context.target, &why);
  if (!tiles) return base::unsupported("the kernel '" + group.name + "' has no form for devices: " + why);
  s.tiles = *tiles;
  s.k = flatten(*s.parts.node, s.parts.contraction.k);
  s.kernel.name = group.name;
  s.kernel.comment = "streamed: " + s.parts.node->name + " is recomputed along " + group.loops[size_t(s.parts.stream)].name;
  place_loops(s);
  s.places[size_t(s.parts.stream)] = tiled(s, s.parts.stream, Form(0), s.tiles.stream);
  bound_stream(s);
  declare(s);
  match_score(s);
  std::vector<const Member*> before, after;
  for (const Member& m : group.members) {
    if (runs_along(m, s.parts.stream)) continue;
    bool depends = false;
    for (Value v : tensor::sources(context.graph.node(m.node))) {
      for (const Member* r : s.parts.reducing) depends = depends || v.node == r->node;
      for (const Member* r : after) depends = depends || v.node == r->node;
    }
    (depends ? after : before).push_back(&m);
  }
  Scope scope{s.places, &s.kernel.body, tile::Space::Fragment};
  for (const Member* m : before) lower_member(context, group, *m, scope);
  for (const Member* m : s.parts.reducing) start_states(s, *m);
  if (s.tiles.whole_depth) s.kernel.body.push_back(load_points(s, Form(0)));
  stream(s);
  scope.places = s.places;
  for (const Member* m : s.parts.reducing) finish_states(context, group, *m, s.states.at(m->node.index), scope);
  for (const Member* m : after) lower_member(context, group, *m, scope);
  context.program.kernels.push_back(std::move(s.kernel));
  return {};
}

}  // namespace lemma::lower
