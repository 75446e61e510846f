#include "lemma/lower/operand.h"

namespace lemma::lower {

using scalar::DType;
using scalar::Op;
using tensor::Comprehension;

Flat flatten(const Comprehension& node, const std::vector<int>& indices) {
  Flat out{indices, Form(1)};
  for (int i : indices) out.extent = out.extent * node.indices[size_t(i)].extent;
  return out;
}

ProductParts::ProductParts(const tensor::Graph& graph, const schedule::Group& group) {
  for (const schedule::Member& candidate : group.members) {
    const auto* found = std::get_if<Comprehension>(&graph.node(candidate.node));
    if (!found || !found->monoid) continue;
    member = &candidate;
    node = found;
  }
  contraction = *schedule::match_contraction(*node);
  m = flatten(*node, contraction.m);
  n = flatten(*node, contraction.n);
  k = flatten(*node, contraction.k);
}

void place_flat(const Comprehension& node, const Flat& flat, const Form& position, std::vector<Form>& forms) {
  Form stride(1);
  for (size_t k = flat.indices.size(); k-- > 0;) {
    const size_t i = size_t(flat.indices[k]);
    const Form& extent = node.indices[i].extent;
    if (extent == Form(1)) {
      forms[i] = Form(0);
      continue;
    }
    Form f = Form::floor_div(position, stride);
    // The outermost index needs no modulus.
    bool outer = true;
    for (size_t o = 0; o < k; ++o) outer = outer && node.indices[size_t(flat.indices[o])].extent == Form(1);
    forms[i] = outer ? f : Form::mod(f, extent);
    stride = stride * extent;
  }
}

std::optional<Form> address(const Context& context, const tile::Access& access) {
  const tile::Buffer& buffer = context.program.buffers[size_t(access.buffer)];
  if (!buffer.strides.empty() || buffer.layout.kind != tile::LayoutKind::RowMajor || buffer.layout.pad) {
    return std::nullopt;
  }
  Form out(0), stride(1);
  for (size_t d = access.coords.size(); d-- > 0;) {
    out = out + access.coords[d] * stride;
    stride = stride * buffer.extents[d];
  }
  return out;
}

std::optional<int> plain_read(const Comprehension& node, Expr factor, const view::Formula& domain) {
  if (!factor.is(Op::Arg) || !domain.is_always()) return std::nullopt;
  const tensor::Read& r = node.reads[size_t(factor.payload())];
  if (!r.guard.is_always()) return std::nullopt;
  return int(factor.payload());
}

namespace {

// The read behind `x` or `x else 0`.
std::optional<int> read_or_zero(Expr factor) {
  if (factor.is(Op::Arg)) return int(factor.payload());
  if (!factor.is(Op::Select)) return std::nullopt;
  const Expr c = factor.arg(0), value = factor.arg(1), zero = factor.arg(2);
  if (!c.is(Op::Present) || !value.is(Op::Arg) || c.payload() != value.payload() || !zero.is_const()) return std::nullopt;
  if (zero.payload() != 0) return std::nullopt;  // +0 by bits
  return int(value.payload());
}

// Least and greatest value of an affine form over the node's indices.
std::optional<std::pair<Form, Form>> ends(const Comprehension& node, const Form& form) {
  Form low = form, high = form;
  for (int i : form.ids(view::AtomKind::Index)) {
    const auto split = form.split(i);
    const auto c = split ? split->coefficient.constant() : std::nullopt;
    if (!c) return std::nullopt;
    const Form last = node.indices[size_t(i)].extent - Form(1);
    low = low.substitute_index(i, *c > 0 ? Form(0) : last);
    high = high.substitute_index(i, *c > 0 ? last : Form(0));
  }
  return std::pair{low, high};
}

// Every constraint of the guard is one of the source's bounds.
bool only_bounds(const view::Formula& guard, const std::vector<Form>& coords, const std::vector<Form>& extents) {
  if (guard.cases().size() != 1) return false;
  view::Formula bounds;
  for (size_t d = 0; d < coords.size(); ++d) bounds = bounds && view::Formula::within(coords[d], extents[d]);
  return (bounds && guard) == bounds;
}

}  // namespace

Form Window::address(const std::vector<Form>& index_forms) const {
  Form out(0), stride(1);
  for (size_t d = coords.size(); d-- > 0;) {
    out = out + coords[d].map_indices([&](int i) { return index_forms[size_t(i)]; }) * stride;
    stride = stride * extents[d];
  }
  return out;
}

tile::Access Window::access(const std::vector<Form>& index_forms) const {
  tile::Access out;
  out.buffer = buffer;
  for (const Form& c : coords) out.coords.push_back(c.map_indices([&](int i) { return index_forms[size_t(i)]; }));
  return out;
}

std::optional<Window> match_window(const Context& context, const Comprehension& node, Expr factor,
                                   const view::Formula& domain, DType type) {
  const auto which = read_or_zero(factor);
  if (!which) return std::nullopt;
  const tensor::Read& read = node.reads[size_t(*which)];
  const std::optional<Home> home = context.global_home(read.source);
  if (!home) return std::nullopt;
  const tile::Buffer& buffer = context.program.buffers[size_t(home->buffer)];
  Window out;
  out.buffer = home->buffer;
  out.coords = read.coords;
  out.extents = buffer.extents;
  out.type = type;
  for (const Form& c : read.coords) {
    if (c.uses(view::AtomKind::Data) || c.uses(view::AtomKind::Floor)) return std::nullopt;
  }
  if (!buffer.strides.empty()) return std::nullopt;
  // Absent points count as zeros: off the domain, and off the guard where the text says so.
  const view::Formula present = read.guard && domain;
  if (present.is_always()) {
    if (buffer.type != type) return std::nullopt;
    return out;
  }
  if (factor.is(Op::Arg) && !(present == domain)) return std::nullopt;
  if (!only_bounds(present, read.coords, buffer.extents)) return std::nullopt;
  out.padding = true;
  for (size_t d = 0; d < read.coords.size(); ++d) {
    const auto e = ends(node, read.coords[d]);
    if (!e) return std::nullopt;
    out.low.push_back(e->first);
    out.extents[d] = e->second - e->first + Form(1);
    out.coords[d] = read.coords[d] - e->first;
  }
  return out;
}

void Window::materialise(Context& context, const std::string& name) {
  if (!padding) return;
  const tile::Buffer& source = context.program.buffers[size_t(buffer)];
  tile::Kernel kernel;
  kernel.name = name + ".border";
  kernel.comment = source.name + " with a border of zeros";
  tile::Map map;
  tile::Access from, to;
  from.buffer = buffer;
  for (size_t d = 0; d < extents.size(); ++d) {
    const tile::Var v = context.variable("i" + std::to_string(d));
    map.points.push_back({v, extents[d]});
    to.coords.push_back(Form::index(v));
    from.coords.push_back(Form::index(v) + low[d]);
    if (!(low[d] == Form(0)) || !(extents[d] == source.extents[d])) {
      map.where = map.where && view::Formula::within(from.coords[d], source.extents[d]);
    }
  }
  const scalar::Kind kind = scalar::kind_of(source.type);
  tile::Buffer copy;
  copy.name = source.name + ".border";
  copy.type = type;
  copy.space = tile::Space::Scratch;
  copy.extents = extents;
  // The outer dimensions are the grid.
  while (map.points.size() > 2) {
    kernel.grid.push_back({map.points[0].var, map.points[0].extent, false});
    map.points.erase(map.points.begin());
  }
  to.buffer = context.add_buffer(std::move(copy));
  map.reads = {from};
  scalar::Arena& arena = *context.program.arena;
  const scalar::Kind stored = scalar::kind_of(type);
  map.stores.push_back({to, scalar::cast(scalar::arg(arena, kind, 0), stored), scalar::constant(arena, stored, 0), {}});
  kernel.body.push_back(std::move(map));
  context.program.kernels.push_back(std::move(kernel));
  buffer = to.buffer;
}

DType operand_type(const Context& context, const Comprehension& node, const schedule::Contraction& c) {
  auto is_bf16 = [&](Expr factor) {
    if (!factor.is(Op::Arg)) return false;
    return tensor::type(context.graph, node.reads[size_t(factor.payload())].source) == DType::BF16;
  };
  if (context.target.bf16_dot && is_bf16(c.lhs) && is_bf16(c.rhs)) return DType::BF16;
  auto is_short = [&](Expr factor) {
    while (factor.is(Op::Cast)) factor = factor.arg(0);
    if (!factor.is(Op::Arg)) return false;
    switch (tensor::type(context.graph, node.reads[size_t(factor.payload())].source)) {
      case DType::I16: case DType::I8: case DType::U8: case DType::I4: case DType::U4: return true;
      default: return false;
    }
  };
  const bool word = c.lhs.kind() == scalar::Kind::I32 || c.lhs.kind() == scalar::Kind::U32;
  if (word && context.target.lanes() > 1 && is_short(c.lhs) && is_short(c.rhs)) return DType::I16;
  return scalar::dtype_of(c.lhs.kind());
}

int interleave_of(DType operand) { return operand == DType::BF16 || operand == DType::I16 ? 2 : 1; }
int row_pad(DType operand) { return interleave_of(operand) == 2 ? 32 : 16; }

int tile_rows(const tile::Target&) { return 6; }

int panel_width(const tile::Target& target) { return target.lanes() * (target.vector_registers >= 32 ? 4 : 2); }

}  // namespace lemma::lower
