// Scatters: the target starts from its base or the monoid's identity, then the points of the domain are folded in, in
// row-major order. One block, since any two points may meet.

#include "lemma/lower/groups.h"

namespace lemma::lower {

using scalar::Op;
using tensor::Scatter;

namespace {

// Reads of a scatter, translated like a comprehension's whose indices are all points.
tensor::Comprehension as_map(const Scatter& s) {
  tensor::Comprehension c;
  c.name = s.name;
  c.indices = s.indices;
  c.domain = s.domain;
  c.reads = s.reads;
  return c;
}

}  // namespace

base::Result<void> lower_scatter(Context& context, const schedule::Group& group) {
  const tensor::Tensor node = group.members.front().node;
  const Scatter& scatter = std::get<Scatter>(context.graph.node(node));
  const Home target = *context.global_home({node, 0});
  const scalar::Kind kind = scalar::kind_of(scatter.type);
  scalar::Arena& arena = *context.program.arena;

  // Start. A target that takes over its base's storage has it already.
  const std::optional<Home> base = scatter.base ? context.global_home(*scatter.base) : std::nullopt;
  if (!base || base->buffer != target.buffer) {
    tile::Kernel kernel;
    kernel.name = scatter.name + ".start";
    tile::Map map;
    tile::Access to, from;
    to.buffer = target.buffer;
    for (const Form& e : scatter.extents) {
      const tile::Var v = context.variable("i");
      map.points.push_back({v, e});
      to.coords.push_back(Form::index(v));
    }
    Expr value;
    if (base) {
      from.buffer = base->buffer;
      from.coords = to.coords;
      map.reads.push_back(from);
      const scalar::Kind stored = scalar::kind_of(context.program.buffers[size_t(base->buffer)].type);
      value = scalar::cast(scalar::arg(arena, stored, 0), kind);
    } else if (scatter.monoid) {
      value = scalar::import(scatter.monoid->identity[0], arena);
    }
    if (value.valid()) {
      map.stores.push_back({to, value, {}, {}});
      kernel.body.push_back(std::move(map));
      context.program.kernels.push_back(std::move(kernel));
    }
  }

  tile::Kernel kernel;
  kernel.name = scatter.name;
  kernel.comment = "scatter: " + scatter.name;
  const tensor::Comprehension c = as_map(scatter);
  std::vector<Form> index_forms;
  std::vector<tile::Range> points;
  for (const tensor::IndexInfo& i : scatter.indices) {
    const tile::Var v = context.variable(i.name);
    index_forms.push_back(Form::index(v));
    points.push_back({v, i.extent});
  }
  Translator t(context, c, index_forms, {});
  const Expr body = scalar::cast(t.translate(scatter.body), kind);
  view::Formula where = t.translate(scatter.domain);
  tile::Access at;
  at.buffer = target.buffer;
  for (size_t d = 0; d < scatter.coords.size(); ++d) {
    at.coords.push_back(t.translate(scatter.coords[d]));
    where = where && view::Formula::within(at.coords[d], scatter.extents[d]);
  }
  if (scatter.monoid) {
    // A fold that is one operation combines in place; elements of a buffer narrower than its kind would round at
    // every step, so the store is to the value's own kind.
    const Expr combined = monoid::elementwise_combine(*scatter.monoid, 0, arena);
    if (!(combined.args().size() == 2 && combined.arg(0).is(Op::Arg) && combined.arg(1).is(Op::Arg))) {
      return base::unsupported("the monoid of scatter `" + scatter.name + "` is more than one operation",
                               scatter.span, "use sum, prod, max, min, any or all");
    }
    tile::Map map;
    map.points = points;
    map.where = where;
    map.reads = t.reads;
    map.stores.push_back({at, body, {}, combined.op()});
    kernel.body.push_back(std::move(map));
  } else {
    tile::Map map;
    map.points = points;
    map.where = where;
    map.reads = t.reads;
    map.stores.push_back({at, body, {}, {}});
    kernel.body.push_back(std::move(map));
  }
  context.program.kernels.push_back(std::move(kernel));
  return {};
}

}  // namespace lemma::lower
