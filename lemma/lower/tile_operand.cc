#include "lemma/lower/tile_operand.h"

#include "lemma/schedule/device.h"

namespace lemma::lower {
namespace {

using scalar::Op;
using tensor::Comprehension;
using view::AtomKind;

// The only index of the run that has more than one point.
std::optional<int> single(const Comprehension& node, const Flat& flat) {
  std::optional<int> out;
  for (int i : flat.indices) {
    if (node.indices[size_t(i)].extent == Form(1)) continue;
    if (out) return std::nullopt;
    out = i;
  }
  return out;
}

// A read whose coordinates are the two indices themselves, over whole dimensions, so that the ends of the buffer are the
// ends of the loops; the others are fixed for the block.
std::optional<int> match_plain(const Context& context, const TileOperand& o, bool& side_last) {
  const auto which = plain_read(*o.node, o.factor, o.domain);
  const auto side = single(*o.node, o.side), depth = single(*o.node, o.depth);
  if (!which || !side || !depth) return std::nullopt;
  const tensor::Read& read = o.node->reads[size_t(*which)];
  const std::optional<Home> home = context.global_home(read.source);
  if (!home) return std::nullopt;
  const tile::Buffer& buffer = context.program.buffers[size_t(home->buffer)];
  int side_at = -1, depth_at = -1;
  for (size_t d = 0; d < read.coords.size(); ++d) {
    const Form& c = read.coords[d];
    if (c.uses(AtomKind::Data)) return std::nullopt;
    for (const auto& [index, at] : {std::pair{*side, &side_at}, std::pair{*depth, &depth_at}}) {
      if (!c.uses(AtomKind::Index, index)) continue;
      if (!(c == Form::index(index)) || *at >= 0) return std::nullopt;
      if (!(buffer.extents[d] == o.node->indices[size_t(index)].extent)) return std::nullopt;
      *at = int(d);
    }
  }
  if (side_at < 0 || depth_at < 0) return std::nullopt;
  side_last = side_at > depth_at;
  return which;
}

// Whether the last coordinate of some read of the factor goes up by one with the index.
bool memory_runs_along(const TileOperand& o, const Flat& flat) {
  if (flat.indices.empty()) return false;
  for (Expr e : scalar::reachable({&o.factor, 1})) {
    if (!e.is(Op::Arg)) continue;
    const tensor::Read& read = o.node->reads[size_t(e.payload())];
    if (read.coords.empty()) continue;
    const auto split = read.coords.back().split(flat.indices.back());
    if (split && split->coefficient == Form(1)) return true;
  }
  return false;
}

}  // namespace

tile::Access TileOperand::access(const Form& side_at, const Form& depth_at) const {
  return {buffer, side_last ? std::vector<Form>{depth_at, side_at} : std::vector<Form>{side_at, depth_at}, {}};
}

TileOperand plan_operand(Context& context, const std::string& name, TileOperand o, bool side_last, tile::Block& block) {
  o.side_last = side_last;
  o.plain = match_plain(context, o, o.side_last);
  if (!o.plain && memory_runs_along(o, o.side) != memory_runs_along(o, o.depth)) o.side_last = memory_runs_along(o, o.side);
  tile::Buffer buffer;
  buffer.name = name;
  if (o.plain) buffer.name = tensor::name(context.graph, o.node->reads[size_t(*o.plain)].source) + ".tile";
  buffer.type = o.type;
  buffer.space = tile::Space::Shared;
  buffer.extents = o.side_last ? std::vector<Form>{o.depth_tile, o.side_tile} : std::vector<Form>{o.side_tile, o.depth_tile};
  o.buffer = context.add_buffer(std::move(buffer));
  block.push_back(tile::Alloc{o.buffer});
  return o;
}

namespace {

// The tile's two variables, in the order in which it lies.
struct Points {
  tile::Var side, depth;
  std::vector<tile::Range> ranges;
};

Points tile_points(Context& context, const TileOperand& o) {
  const auto name = [&](const Flat& flat, const char* other) {
    const auto one = single(*o.node, flat);
    return one ? o.node->indices[size_t(*one)].name : std::string(other);
  };
  Points out;
  out.side = context.variable(name(o.side, "n"));
  out.depth = context.variable(name(o.depth, "k"));
  const tile::Range side{out.side, o.side_tile}, depth{out.depth, o.depth_tile};
  out.ranges = o.side_last ? std::vector<tile::Range>{depth, side} : std::vector<tile::Range>{side, depth};
  return out;
}

}  // namespace

tile::Map evaluate_operand(Context& context, const TileOperand& o, const TilePlace& place, std::optional<int> used) {
  const Points points = tile_points(context, o);
  const Form side = place.side_base + Form::index(points.side), depth = place.depth_base + Form::index(points.depth);
  std::vector<Form> forms = place.forms;
  place_flat(*o.node, o.side, side, forms);
  place_flat(*o.node, o.depth, depth, forms);
  std::vector<Edge> edges;
  if (!schedule::fills_tiles(context.graph, o.side.extent, o.side_tile)) {
    edges.push_back({points.side, view::Formula::less(side, o.side.extent)});
  }
  if (!schedule::fills_tiles(context.graph, o.depth.extent, o.depth_tile)) {
    edges.push_back({points.depth, view::Formula::less(depth, o.depth.extent)});
  }
  if (place.depth_begin) edges.push_back({points.depth, view::Formula::less_equal(*place.depth_begin, depth)});
  if (place.depth_end) edges.push_back({points.depth, view::Formula::less(depth, *place.depth_end)});
  Translator t(context, *o.node, forms, {});
  tile::Map map;
  map.points = points.ranges;
  const Expr value = scalar::cast(t.translate(o.factor), scalar::kind_of(o.type));
  view::Formula domain = t.translate(o.domain);
  keep_inside(context, t.reads, domain, edges);
  map.where = all_of(edges) && domain;
  if (used) {
    t.reads.push_back({*used, {Form::index(points.depth)}, {}});
    map.where = map.where && view::Formula::less_equal(Form(1), Form::data(int(t.reads.size()) - 1));
  }
  const Expr zero = scalar::constant(*context.program.arena, value.kind(), 0);
  map.stores.push_back({o.access(Form::index(points.side), Form::index(points.depth)), value, map.where.is_always() ? Expr() : zero, {}});
  map.reads = std::move(t.reads);
  map.comment = "operand of " + o.node->name;
  return map;
}

tile::Stmt load_operand(Context& context, const TileOperand& o, const TilePlace& place) {
  if (!o.plain) return evaluate_operand(context, o, place);
  const Points points = tile_points(context, o);
  std::vector<Form> forms = place.forms;
  const Form depth = place.depth_base + Form::index(points.depth);
  place_flat(*o.node, o.side, place.side_base + Form::index(points.side), forms);
  place_flat(*o.node, o.depth, depth, forms);
  const tensor::Read& read = o.node->reads[size_t(*o.plain)];
  tile::Copy copy;
  copy.box = points.ranges;
  copy.from.buffer = context.global_home(read.source)->buffer;
  for (const Form& c : read.coords) copy.from.coords.push_back(c.map_indices([&](int i) { return forms[size_t(i)]; }));
  if (place.depth_begin) copy.from.guard = view::Formula::less_equal(*place.depth_begin, depth);
  if (place.depth_end) copy.from.guard = copy.from.guard && view::Formula::less(depth, *place.depth_end);
  copy.to = o.access(Form::index(points.side), Form::index(points.depth));
  copy.fill = scalar::constant(*context.program.arena, scalar::kind_of(o.type), 0);
  return copy;
}

}  // namespace lemma::lower
