// A rescaled sum over a turn of the stream:
//
//     map s = the score, -inf off the domain and beyond the stream's end
//     reduce top = max s
//     map next = max(m, top), factor = m == next ? 1 : exp(m - next), m = next
//     map base = m == -inf ? 0 : m
//     map p = exp2((s - base) * log2(e))
//     a plain sum:       map l = l * factor;     reduce l += sum p * g
//     a second product:  map acc = acc * factor; gemm acc += p * columns

#include <algorithm>
#include <limits>

#include "lemma/lower/device_streamed.h"

namespace lemma::lower {
namespace {

using scalar::DType;
using scalar::Kind;
using scalar::Op;
using schedule::Member;
using tensor::Comprehension;
using tensor::Value;

const Comprehension& comprehension(const DeviceStreamed& s, const Member& m) {
  return std::get<Comprehension>(s.context.graph.node(m.node));
}

struct Rescaled {
  DeviceStreamed& s;
  const Member& member;
  const Comprehension& node;
  tile::Block& block;
  Kind kind;
  Scope scope;
  std::vector<int> points;       // loops of the max
  Home scores, weights, top, factor, base;
  double unit = 1;               // scores are kept divided by this positive number

  Context& context() { return s.context; }
  scalar::Arena& arena() { return *s.context.program.arena; }
  const std::vector<Home>& states() { return s.states.at(member.node.index); }
  MemberPlace place() { return place_member(s.context, s.group, member, scope); }
  Expr arg(int i) { return scalar::arg(arena(), kind, i); }
  Expr number(double v) { return scalar::constant(arena(), kind, v); }
  double powers() const { return node.monoid->scale * 1.4426950408889634; }
  Expr scaled(Expr gap) { return node.monoid->scale == 1 ? gap : gap * number(node.monoid->scale); }
};

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// read * c or read / c with a positive and finite c: the largest product makes the largest score.
struct Scaled {
  Expr product;
  double factor = 1;
};
std::optional<Scaled> scaled_product(Expr score) {
  if ((!score.is(Op::Mul) && !score.is(Op::Div)) || !scalar::is_float(score.kind())) return std::nullopt;
  for (size_t side = 0; side < 2; ++side) {
    const Expr c = score.arg(side);
    if (!c.is_const() || !score.arg(1 - side).is(Op::Arg) || (score.is(Op::Div) && side == 0)) continue;
    const double value = c.as_float();
    if (value > 1e-20 && value < 1e20) return Scaled{score.arg(1 - side), score.is(Op::Div) ? 1 / value : value};
  }
  return std::nullopt;
}

// Scores: the body's own expression of the product, -inf off the domain and beyond the stream's end.
tile::Map score_map(Rescaled& r, bool masked) {
  Context& c = r.context();
  const MemberPlace place = r.place();
  tile::Map map;
  map.comment = r.node.name + ": scores" + (masked ? " within the domain" : "");
  Expr scale;
  if (r.s.scale_with_score) {
    std::vector<Form> forms = bases(r.s, *r.s.parts.member);
    for (size_t i = 0; i < forms.size(); ++i) {
      const int loop = r.s.parts.member->loops[i];
      if (loop == r.s.parts.row || loop == r.s.parts.stream) forms[i] = forms[i] + place.local_forms.at(loop);
    }
    scale = Translator(c, *r.s.parts.node, forms, {}).translate(r.s.parts.contraction.scale);
  }
  Translator t(c, r.node, place.index_forms, place.local_forms);
  Expr score = t.translate(r.node.body[0]);
  const view::Formula domain = masked ? t.translate(r.node.domain) : view::Formula();
  std::vector<Edge> own;
  if (masked) own = place.edges_of({r.s.parts.stream});
  keep_inside(c, t.reads, domain, own, place.edges_of(r.points));
  map.where = all_of(own) && domain;
  if (scale.valid()) {
    score = scalar::rewrite(score, r.arena(), [&](Expr e, std::span<const Expr>) {
      const bool product = e.is(Op::Arg) && t.reads[size_t(e.payload())].buffer == r.s.product.buffer;
      return product ? e * scale : Expr();
    });
  }
  if (const auto found = r.s.score_in_place ? scaled_product(score) : std::nullopt) {
    r.unit = found->factor;
    score = found->product;
  }
  map.stores.push_back({local_access(r.scores, place.local_forms), score, map.where.is_always() ? Expr() : r.number(kMinusInfinity), {}});
  map.points = place.variables.ranges(r.scores.axes, r.scope.places);
  map.reads = t.reads;
  return map;
}

void make_scores(Rescaled& r) {
  const bool always = r.s.inside && r.s.inside->is_always();
  if (always) {
    tile::Map map = score_map(r, false);
    const bool same = r.s.score_in_place && map.stores[0].value.is(Op::Arg);
    if (!same) r.block.push_back(std::move(map));
  } else if (!r.s.inside) {
    r.block.push_back(score_map(r, true));
  } else {
    tile::If inside;
    inside.reads = r.s.bounds.inside_reads;
    tile::Map whole = score_map(r, false);
    const bool same = r.s.score_in_place && whole.stores[0].value.is(Op::Arg);
    inside.condition = same ? !*r.s.inside : *r.s.inside;
    inside.then.push_back(same ? score_map(r, true) : std::move(whole));
    if (!same) inside.otherwise.push_back(score_map(r, true));
    r.block.push_back(std::move(inside));
  }
}

// The new max, the factor of older sums, and the weights under it.
void make_weights(Rescaled& r) {
  {
    const MemberPlace place = r.place();
    tile::Reduce top;
    top.comment = r.node.name + ": max";
    top.monoid = monoid::maximum(r.kind);
    top.points = place.variables.ranges(r.points, r.scope.places);
    top.reduces = place.variables.ranges({r.s.parts.stream}, r.scope.places);
    top.reads = {local_access(r.scores, place.local_forms)};
    top.body = {r.arg(0)};
    top.states = {local_access(r.top, place.local_forms)};
    r.block.push_back(std::move(top));
  }
  {
    const MemberPlace place = r.place();
    tile::Map map;
    map.comment = r.node.name + ": running max, and the factor of older sums";
    map.points = place.variables.ranges(r.points, r.scope.places);
    map.reads = {local_access(r.states()[0], place.local_forms), local_access(r.top, place.local_forms)};
    const Expr old = r.arg(0), now = scalar::max(r.arg(0), r.unit == 1 ? r.arg(1) : r.arg(1) * r.number(r.unit));
    map.stores.push_back({local_access(r.factor, place.local_forms),
                          scalar::select(scalar::binary(Op::Eq, old, now), r.number(1), scalar::exp(r.scaled(old - now))), {}, {}});
    map.stores.push_back({local_access(r.states()[0], place.local_forms), now, {}, {}});
    r.block.push_back(std::move(map));
  }
  // exp(s - m) by a power of two: what the product's rounding costs is small where the weight is not. A row without a
  // point has base 0, and its weights are exp2(-inf).
  {
    const MemberPlace place = r.place();
    tile::Map map;
    map.comment = r.node.name + ": what weights are taken against";
    map.points = place.variables.ranges(r.points, r.scope.places);
    map.reads = {local_access(r.states()[0], place.local_forms)};
    map.stores.push_back({local_access(r.base, place.local_forms),
                          scalar::select(scalar::binary(Op::Eq, r.arg(0), r.number(kMinusInfinity)), r.number(0), r.unit == 1 ? r.arg(0) : r.arg(0) * r.number(1 / r.unit)), {}, {}});
    r.block.push_back(std::move(map));
  }
  const MemberPlace place = r.place();
  tile::Map map;
  map.comment = r.node.name + ": weights";
  map.points = place.variables.ranges(r.scores.axes, r.scope.places);
  map.reads = {local_access(r.scores, place.local_forms), local_access(r.base, place.local_forms)};
  map.stores.push_back({local_access(r.scores, place.local_forms), scalar::unary(Op::Exp2, (r.arg(0) - r.arg(1)) * r.number(r.powers() * r.unit)), {}, {}});
  r.block.push_back(std::move(map));
  if (r.weights.buffer == r.scores.buffer) return;
  // As the second product takes them.
  const MemberPlace narrow = r.place();
  tile::Copy copy;
  copy.box = narrow.variables.ranges(r.weights.axes, r.scope.places);
  copy.from = local_access(r.scores, narrow.local_forms);
  copy.to = local_access(r.weights, narrow.local_forms);
  copy.fill = scalar::constant(r.arena(), scalar::kind_of(r.context().program.buffers[size_t(r.weights.buffer)].type), 0);
  r.block.push_back(std::move(copy));
}

void rescale(Rescaled& r, size_t component) {
  const MemberPlace place = r.place();
  const Home& state = r.states()[component];
  tile::Map map;
  map.comment = r.node.name + ": rescale sum " + std::to_string(component);
  map.points = place.variables.ranges(state.axes, r.scope.places);
  map.reads = {local_access(state, place.local_forms), local_access(r.factor, place.local_forms)};
  map.stores.push_back({local_access(state, place.local_forms), r.arg(0) * r.arg(1), {}, {}});
  r.block.push_back(std::move(map));
}

void add_sum(Rescaled& r, size_t component) {
  Context& c = r.context();
  const MemberPlace place = r.place();
  const std::vector<int> points = loops_of(r.member, r.node.components[component]);
  Translator t(c, r.node, place.index_forms, place.local_forms);
  tile::Reduce sum;
  sum.comment = r.node.name + ": sum " + std::to_string(component);
  sum.monoid = monoid::sum(r.kind);
  const Expr g = t.translate(r.node.body[component]);
  const bool counts = g == r.number(1);
  // Factors of absent terms are not read: their weight is 0, but 0 * nan is not.
  if (!counts) {
    const view::Formula domain = t.translate(r.node.domain);
    const std::vector<Edge> own = place.edges_of({r.s.parts.stream});
    keep_inside(c, t.reads, domain, own, place.edges_of(points));
    sum.where = all_of(own) && domain;
  }
  const Expr w = r.arg(int(t.reads.size()));
  t.reads.push_back(local_access(r.scores, place.local_forms));
  sum.body = {counts ? w : w * g};
  sum.points = place.variables.ranges(points, r.scope.places);
  sum.reduces = place.variables.ranges({r.s.parts.stream}, r.scope.places);
  sum.states = {local_access(r.states()[component], place.local_forms)};
  sum.accumulate = true;
  sum.reads = t.reads;
  r.block.push_back(std::move(sum));
}

// Columns at stream points without a reader become 0.
void clear_unread(Rescaled& r, const SecondProduct& second) {
  Context& c = r.context();
  tile::Block careful;
  const int used = vote(r.s, r.member, careful);
  tile::Map clear;
  clear.comment = r.node.name + ": columns that no row reads";
  const tile::Var n = c.variable("n"), k = c.variable("k");
  const tile::Range side{n, second.columns.side_tile}, depth{k, second.columns.depth_tile};
  clear.points = second.columns.side_last ? std::vector<tile::Range>{depth, side} : std::vector<tile::Range>{side, depth};
  clear.reads = {{used, {Form::index(k)}, {}}};
  clear.where = view::Formula::less(Form::data(0), Form(1));
  clear.stores.push_back({second.columns.access(Form::index(n), Form::index(k)),
                          scalar::constant(r.arena(), scalar::kind_of(second.columns.type), 0), {}, {}});
  careful.push_back(std::move(clear));
  if (!r.s.inside) {
    r.block.insert(r.block.end(), careful.begin(), careful.end());
    return;
  }
  tile::If partial;
  partial.reads = r.s.bounds.inside_reads;
  partial.condition = !*r.s.inside;
  partial.then = std::move(careful);
  r.block.push_back(std::move(partial));
}

void add_product(Rescaled& r, const SecondProduct& second) {
  Context& c = r.context();
  if (second.unread) clear_unread(r, second);
  tile::Gemm g;
  const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
  g.m = {mv, r.s.tiles.rows};
  g.n = {nv, second.columns.side_tile};
  g.k = {kv, r.s.tiles.stream};
  g.comment = r.node.name + ": sum " + std::to_string(second.component);
  g.a = {r.weights.buffer, {Form::index(mv), Form::index(kv)}, {}};
  g.b = second.columns.access(Form::index(nv), Form::index(kv));
  const Home& state = r.states()[second.component];
  g.acc.buffer = state.buffer;
  for (int l : state.axes) g.acc.coords.push_back(Form::index(l == r.s.parts.row ? mv : nv));
  r.block.push_back(std::move(g));
}

}  // namespace

void match_score(DeviceStreamed& s) {
  int readers = 0;
  for (const Member& m : s.group.members) {
    for (Value v : tensor::sources(s.context.graph.node(m.node))) readers += v.node == s.parts.member->node;
  }
  if (readers != 1 || s.parts.reducing.size() != 1) return;
  const Comprehension& node = comprehension(s, *s.parts.reducing[0]);
  if (node.monoid->structure != monoid::Structure::RescaledSum) return;
  const auto looks_at = [&](Expr e) {
    const std::vector<Expr> all = scalar::reachable({&e, 1});
    return std::any_of(all.begin(), all.end(), [&](Expr x) {
      return (x.is(Op::Arg) || x.is(Op::Present)) && node.reads[size_t(x.payload())].source.node == s.parts.member->node;
    });
  };
  for (size_t k = 1; k < node.body.size(); ++k) {
    if (looks_at(node.body[k])) return;
  }
  s.score_in_place = looks_at(node.body[0]);
  const Expr scale = s.parts.contraction.scale;
  if (!s.score_in_place || !scale.valid()) return;
  const std::vector<Expr> all = scalar::reachable({&scale, 1});
  s.scale_with_score = std::none_of(all.begin(), all.end(), [](Expr x) { return x.is(Op::Arg) || x.is(Op::Present); });
}

void fold_rescaled(DeviceStreamed& s, const Member& m, tile::Block& block) {
  Context& c = s.context;
  const Comprehension& node = comprehension(s, m);
  Rescaled r{s, m, node, block, node.monoid->components[0].kind, {s.places, &s.kernel.body, tile::Space::Fragment}, loops_of(m, node.components[0]), {}, {}, {}, {}, {}};
  const std::vector<int> both{s.parts.row, s.parts.stream};
  r.scores = s.score_in_place ? s.product : add_local(c, node.name + ".score", r.kind, both, r.scope);
  r.top = add_local(c, node.name + ".top", r.kind, {s.parts.row}, r.scope);
  r.factor = add_local(c, node.name + ".factor", r.kind, {s.parts.row}, r.scope);
  r.base = add_local(c, node.name + ".base", r.kind, {s.parts.row}, r.scope);
  const std::vector<SecondProduct>& second = s.second[m.node.index];
  r.weights = r.scores;
  if (!second.empty()) {
    const DType columns = second[0].columns.type;
    if (columns != c.program.buffers[size_t(r.scores.buffer)].type) {
      r.weights = add_local(c, node.name + ".weight", r.kind, both, r.scope);
      c.program.buffers[size_t(r.weights.buffer)].type = columns;
    }
  }
  make_scores(r);
  make_weights(r);
  for (size_t k = 1; k < node.components.size(); ++k) {
    rescale(r, k);
    const auto product = std::find_if(second.begin(), second.end(), [&](const SecondProduct& p) { return p.component == k; });
    if (product != second.end()) add_product(r, *product);
    else add_sum(r, k);
  }
}

}  // namespace lemma::lower
