#include "lemma/lower/member.h"

#include <algorithm>
#include <limits>

#include "lemma/schedule/contraction.h"

namespace lemma::lower {

using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Role;
using tensor::Value;

namespace {

// Elements of a block's tile that the registers of its threads may hold; what has no constant extents is in none.
constexpr int64_t kMostInFragment = 128 * 256;

const Comprehension& comprehension(const Context& context, const schedule::Member& member) {
  return std::get<Comprehension>(context.graph.node(member.node));
}

// Where an output's element lives globally, as an access over the member's index forms.
tile::Access global_access(const Home& home, const tensor::Output& output, const std::vector<Form>& index_forms) {
  tile::Access out;
  out.buffer = home.buffer;
  for (int d : output.dims) out.coords.push_back(index_forms[size_t(d)]);
  return out;
}

tile::Store store(const Context& context, tile::Access to, Expr value) {
  const scalar::DType type = context.program.buffers[size_t(to.buffer)].type;
  return {std::move(to), stored_as(value, type), {}, {}};
}

std::vector<int> with_axis(const std::vector<int>& loops, const Scope& scope) {
  std::vector<int> out;
  for (int l : loops) {
    if (scope.places[size_t(l)].axis) out.push_back(l);
  }
  return out;
}

std::vector<int> all_points(const Comprehension& node) {
  std::vector<int> out = node.with_role(Role::Point);
  for (int a : node.with_role(Role::Axis)) out.push_back(a);
  return out;
}

// x / y with y free of the last point becomes x * (1 / y): the reciprocal is taken once where y is, and multiplying is
// many times cheaper than dividing. A y whose reciprocal would overflow is scaled by a power of two first. Real: one more
// rounding.
Expr share_reciprocals(const Comprehension& node, Expr body) {
  const std::vector<int> points = all_points(node);
  if (points.empty()) return body;
  const auto uses_last = [&](Expr e) {
    const std::vector<int> used = schedule::used_indices(node, e);
    return std::find(used.begin(), used.end(), points.back()) != used.end();
  };
  return scalar::rewrite(body, body.arena(), [&](Expr e, std::span<const Expr> args) {
    if (!e.is(Op::Div) || e.arg(1).is_const() || uses_last(e.arg(1)) || !uses_last(e.arg(0))) return Expr();
    const bool wide = e.kind() == Kind::F64;
    const auto number = [&](double v) { return scalar::constant(e.arena(), e.kind(), v); };
    const Expr tiny = scalar::binary(Op::Lt, scalar::unary(Op::Abs, args[1]), number(wide ? 0x1p-900 : 0x1p-100));
    const Expr scale = scalar::select(tiny, number(wide ? 0x1p512 : 0x1p64), number(1));
    return args[0] * scalar::unary(Op::Recip, args[1] * scale) * scale;
  });
}

void lower_map(Context& context, const schedule::Group& group, const schedule::Member& member, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  const MemberPlace place = place_member(context, group, member, scope);
  Translator translator(context, node, place.index_forms, place.local_forms);
  tile::Map map;
  map.comment = node.name;
  const std::vector<Edge> edges = place.edges_of(loops_of(member, all_points(node)));
  const view::Formula domain = translator.translate(node.domain);
  map.where = all_of(edges) && domain;
  map.points = place.variables.ranges(loops_of(member, all_points(node)), scope.places);
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const tensor::Output& output = node.outputs[o];
    const Value value{member.node, int(o)};
    const Expr body = translator.translate(share_reciprocals(node, node.body[size_t(output.result)]));
    if (const std::optional<Home> global = context.global_home(value)) {
      map.stores.push_back(store(context, global_access(*global, output, place.index_forms), body));
    }
    if (read_inside(context.graph, group, value)) {
      const Home local = add_local(context, output.name, body.kind(), loops_of(member, output.dims), scope);
      // What sticks out is read by folds of whole tiles.
      const Expr beyond = edges.empty() ? Expr() : scalar::constant(*context.program.arena, body.kind(), 0);
      map.stores.push_back({local_access(local, place.local_forms), body, beyond, {}});
      context.homes[value].push_back(local);
    }
  }
  keep_inside(context, translator.reads, domain, edges);
  map.reads = translator.reads;
  scope.block->push_back(std::move(map));
}

// A fold's domain: what is folded over exists. Its points need not: what sticks out is folded and never read, so only
// reads are kept inside. Called when all of the body is translated.
view::Formula fold_domain(const Context& context, const MemberPlace& place, Translator& t, const Comprehension& node,
                          const std::vector<int>& points, const std::vector<int>& folded) {
  const view::Formula domain = t.translate(node.domain);
  const std::vector<Edge> own = place.edges_of(folded);
  keep_inside(context, t.reads, domain, own, place.edges_of(points));
  return all_of(own) && domain;
}

// The running max and its rescaled sums over reduce loops that lie whole in the tile: max, weights, sums.
void lower_rescaled(Context& context, const schedule::Group& group, const schedule::Member& member,
                    const std::vector<Home>& states, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  const monoid::Monoid& m = *node.monoid;
  const Kind kind = m.components[0].kind;
  scalar::Arena& arena = *context.program.arena;
  const std::vector<int> reduces = loops_of(member, node.with_role(Role::Reduce));
  const std::vector<int> max_loops = loops_of(member, node.components[0]);
  std::vector<int> weight_loops = max_loops;
  weight_loops.insert(weight_loops.end(), reduces.begin(), reduces.end());

  {
    const MemberPlace place = place_member(context, group, member, scope);
    Translator t(context, node, place.index_forms, place.local_forms);
    tile::Reduce top;
    top.comment = node.name + ": running max";
    top.monoid = monoid::maximum(kind);
    top.body = {t.translate(node.body[0])};
    top.where = fold_domain(context, place, t, node, max_loops, reduces);
    top.points = place.variables.ranges(max_loops, scope.places);
    top.reduces = place.variables.ranges(reduces, scope.places);
    top.states = {local_access(states[0], place.local_forms)};
    top.reads = t.reads;
    scope.block->push_back(std::move(top));
  }
  const Home weights = add_local(context, node.name + ".weight", kind, weight_loops, scope);
  {
    const MemberPlace place = place_member(context, group, member, scope);
    Translator t(context, node, place.index_forms, place.local_forms);
    tile::Map map;
    map.comment = node.name + ": weights";
    const Expr s = t.translate(node.body[0]);
    map.where = fold_domain(context, place, t, node, max_loops, reduces);
    const int max_read = int(t.reads.size());
    t.reads.push_back(local_access(states[0], place.local_forms));
    const Expr top = scalar::arg(arena, kind, max_read);
    const Expr minus_inf = scalar::constant(arena, kind, -std::numeric_limits<double>::infinity());
    const Expr zero = scalar::constant(arena, kind, 0);
    Expr gap = s - top;
    if (m.scale != 1) gap = gap * scalar::constant(arena, kind, m.scale);
    const Expr weight = scalar::select(scalar::binary(Op::Eq, s, minus_inf), zero, scalar::exp(gap));
    map.points = place.variables.ranges(weight_loops, scope.places);
    map.stores.push_back({local_access(weights, place.local_forms), weight, zero, {}});
    map.reads = t.reads;
    scope.block->push_back(std::move(map));
  }
  for (size_t c = 1; c < m.components.size(); ++c) {
    const MemberPlace place = place_member(context, group, member, scope);
    Translator t(context, node, place.index_forms, place.local_forms);
    tile::Reduce sum;
    sum.comment = node.name + ": sum " + std::to_string(c);
    sum.monoid = monoid::sum(kind);
    const Expr factor = t.translate(node.body[c]);
    const int weight_read = int(t.reads.size());
    t.reads.push_back(local_access(weights, place.local_forms));
    const Expr w = scalar::arg(arena, kind, weight_read);
    sum.body = {factor == scalar::constant(arena, kind, 1) ? w : w * factor};
    sum.where = fold_domain(context, place, t, node, loops_of(member, node.components[c]), reduces);
    sum.points = place.variables.ranges(loops_of(member, node.components[c]), scope.places);
    sum.reduces = place.variables.ranges(reduces, scope.places);
    sum.states = {local_access(states[c], place.local_forms)};
    sum.reads = t.reads;
    scope.block->push_back(std::move(sum));
  }
}

void lower_reduce(Context& context, const schedule::Group& group, const schedule::Member& member, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  const std::vector<Home> states = add_states(context, member, scope);
  if (node.monoid->structure == monoid::Structure::RescaledSum) {
    lower_rescaled(context, group, member, states, scope);
  } else {
    const MemberPlace place = place_member(context, group, member, scope);
    Translator t(context, node, place.index_forms, place.local_forms);
    tile::Reduce reduce;
    reduce.comment = node.name;
    reduce.monoid = node.monoid;
    for (Expr e : node.body) reduce.body.push_back(t.translate(e));
    reduce.where = fold_domain(context, place, t, node, loops_of(member, all_points(node)),
                               loops_of(member, node.with_role(Role::Reduce)));
    reduce.points = place.variables.ranges(loops_of(member, node.with_role(Role::Point)), scope.places);
    reduce.axes = place.variables.ranges(loops_of(member, node.with_role(Role::Axis)), scope.places);
    reduce.reduces = place.variables.ranges(loops_of(member, node.with_role(Role::Reduce)), scope.places);
    for (const Home& s : states) reduce.states.push_back(local_access(s, place.local_forms));
    reduce.reads = t.reads;
    scope.block->push_back(std::move(reduce));
  }
  finish_states(context, group, member, states, scope);
}

void lower_scan(Context& context, const schedule::Group& group, const schedule::Member& member, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  scalar::Arena& arena = *context.program.arena;
  const std::vector<Home> states = add_states(context, member, scope);
  const std::vector<int> points = loops_of(member, node.with_role(Role::Point));
  if (!node.initial.empty()) {
    const MemberPlace place = place_member(context, group, member, scope);
    Translator t(context, node, place.index_forms, place.local_forms);
    // Components with unlike index sets start in maps of their own.
    for (size_t c = 0; c < states.size(); ++c) {
      Translator own(context, node, place.index_forms, place.local_forms);
      tile::Map map;
      map.comment = node.name + ": initial state";
      map.stores.push_back({local_access(states[c], place.local_forms), own.translate(node.initial[c]), {}, {}});
      map.points = place.variables.ranges(loops_of(member, node.components[c]), scope.places);
      keep_inside(context, own.reads, {}, {}, place.edges_of(loops_of(member, node.components[c])));
      map.reads = own.reads;
      scope.block->push_back(std::move(map));
    }
  }
  const MemberPlace place = place_member(context, group, member, scope);
  Translator t(context, node, place.index_forms, place.local_forms);
  tile::Scan scan;
  scan.comment = node.name;
  scan.monoid = node.monoid;
  scan.reverse = node.scan->reverse;
  scan.exclusive = node.scan->exclusive;
  scan.accumulate = !node.initial.empty();
  for (Expr e : node.body) scan.body.push_back(t.translate(e));
  scan.where = fold_domain(context, place, t, node, loops_of(member, all_points(node)),
                           loops_of(member, node.with_role(Role::Scan)));
  scan.points = place.variables.ranges(points, scope.places);
  scan.axes = place.variables.ranges(loops_of(member, node.with_role(Role::Axis)), scope.places);
  const int scan_loop = member.loops[size_t(node.with_role(Role::Scan)[0])];
  if (auto it = place.variables.of_loop.find(scan_loop); it != place.variables.of_loop.end()) {
    scan.along = {it->second, scope.places[size_t(scan_loop)].count};
  } else {
    scan.along = {context.variable("step"), Form(1)};
  }
  for (const Home& s : states) scan.states.push_back(local_access(s, place.local_forms));
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const tensor::Output& output = node.outputs[o];
    if (output.final_state) continue;
    const Value value{member.node, int(o)};
    const Expr result = scalar::import(node.monoid->finish[size_t(output.result)], arena);
    if (const std::optional<Home> global = context.global_home(value)) {
      scan.stores.push_back(store(context, global_access(*global, output, place.index_forms), result));
      scan.stores.back().to.guard = all_of(place.edges_of(loops_of(member, output.dims)));
    }
    if (read_inside(context.graph, group, value)) {
      const Home local = add_local(context, output.name, result.kind(), loops_of(member, output.dims), scope);
      scan.stores.push_back({local_access(local, place.local_forms), result, {}, {}});
      context.homes[value].push_back(local);
    }
  }
  scan.reads = t.reads;
  scope.block->push_back(std::move(scan));
  finish_states(context, group, member, states, scope, true);
}

}  // namespace

Expr stored_as(Expr value, scalar::DType type) {
  const Kind kind = scalar::kind_of(type);
  const bool rounds = value.is(Op::RoundTo) && scalar::DType(value.payload()) == type && value.kind() == kind;
  return scalar::cast(rounds ? value.arg(0) : value, kind);
}

std::vector<int> loops_of(const schedule::Member& member, const std::vector<int>& indices) {
  std::vector<int> out;
  for (int i : indices) out.push_back(member.loops[size_t(i)]);
  return out;
}

MemberPlace place_member(Context& context, const schedule::Group& group, const schedule::Member& member,
                         const Scope& scope) {
  MemberPlace out;
  out.node = &comprehension(context, member);
  for (size_t i = 0; i < out.node->indices.size(); ++i) {
    const int loop = member.loops[i];
    const LoopPlace& place = scope.places[size_t(loop)];
    Form local = place.offset;
    if (place.axis) {
      const tile::Var v = context.variable(group.loops[size_t(loop)].name);
      out.variables.of_loop[loop] = v;
      local = Form::index(v);
      if (place.limit) out.edges[loop] = {v, view::Formula::less(place.base + local, *place.limit)};
    }
    out.local_forms[loop] = local;
    out.index_forms.push_back(place.axis ? place.base + local : place.base);
  }
  return out;
}

std::vector<Edge> MemberPlace::edges_of(const std::vector<int>& loops) const {
  std::vector<Edge> out;
  for (int l : loops) {
    if (const auto at = edges.find(l); at != edges.end()) out.push_back(at->second);
  }
  return out;
}

Home add_local(Context& context, const std::string& name, Kind kind, const std::vector<int>& loops, Scope& scope) {
  Home home;
  home.local = true;
  home.axes = with_axis(loops, scope);
  tile::Buffer buffer;
  buffer.name = name;
  buffer.type = scalar::dtype_of(kind);
  buffer.space = scope.space;
  int64_t elements = 1;
  for (int l : home.axes) {
    buffer.extents.push_back(scope.places[size_t(l)].capacity);
    elements *= std::clamp<int64_t>(buffer.extents.back().constant().value_or(kMostInFragment + 1), 1, kMostInFragment + 1);
    elements = std::min(elements, kMostInFragment + 1);
  }
  if (buffer.space == tile::Space::Fragment && elements > kMostInFragment) buffer.space = tile::Space::Local;
  home.buffer = context.add_buffer(std::move(buffer));
  scope.block->push_back(tile::Alloc{home.buffer});
  return home;
}

bool read_inside(const tensor::Graph& graph, const schedule::Group& group, Value value) {
  for (const schedule::Member& m : group.members) {
    for (Value v : tensor::sources(graph.node(m.node))) {
      if (v == value) return true;
    }
  }
  return false;
}

std::vector<Home> add_states(Context& context, const schedule::Member& member, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  std::vector<Home> out;
  for (size_t c = 0; c < node.components.size(); ++c) {
    const monoid::Component& component = node.monoid->components[c];
    out.push_back(add_local(context, node.name + "." + component.name, component.kind,
                            loops_of(member, node.components[c]), scope));
  }
  return out;
}

void finish_states(Context& context, const schedule::Group& group, const schedule::Member& member,
                   const std::vector<Home>& states, Scope& scope, bool final_only) {
  const Comprehension& node = comprehension(context, member);
  scalar::Arena& arena = *context.program.arena;
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const tensor::Output& output = node.outputs[o];
    if (final_only && !output.final_state) continue;
    const Value value{member.node, int(o)};
    const Expr finish = node.monoid->finish[size_t(output.result)];
    const bool inside = read_inside(context.graph, group, value);
    const std::optional<Home> global = context.global_home(value);
    const bool plain = finish.is(Op::Arg);
    if (inside && plain) context.homes[value].push_back(states[size_t(finish.payload())]);
    if (!global && (!inside || plain)) continue;

    const MemberPlace place = place_member(context, group, member, scope);
    tile::Map map;
    map.comment = output.name;
    std::map<int, int> read_of;
    const Expr result = scalar::rewrite(finish, arena, [&](Expr e, std::span<const Expr>) {
      if (!e.is(Op::Arg)) return Expr();
      auto [it, added] = read_of.emplace(int(e.payload()), int(map.reads.size()));
      if (added) map.reads.push_back(local_access(states[size_t(e.payload())], place.local_forms));
      return scalar::arg(arena, e.kind(), it->second);
    });
    map.points = place.variables.ranges(loops_of(member, output.dims), scope.places);
    const std::vector<Edge> edges = place.edges_of(loops_of(member, output.dims));
    map.where = all_of(edges);
    if (global) map.stores.push_back(store(context, global_access(*global, output, place.index_forms), result));
    if (inside && !plain) {
      const Home local = add_local(context, output.name, result.kind(), loops_of(member, output.dims), scope);
      const Expr beyond = edges.empty() ? Expr() : scalar::constant(arena, result.kind(), 0);
      map.stores.push_back({local_access(local, place.local_forms), result, beyond, {}});
      context.homes[value].push_back(local);
    }
    scope.block->push_back(std::move(map));
  }
}

void lower_member(Context& context, const schedule::Group& group, const schedule::Member& member, Scope& scope) {
  const Comprehension& node = comprehension(context, member);
  if (!node.monoid) return lower_map(context, group, member, scope);
  if (node.scan) return lower_scan(context, group, member, scope);
  lower_reduce(context, group, member, scope);
}

}  // namespace lemma::lower
