// One contraction by packed panels.
//
// A block computes rows x columns of the product. The right factor is packed, a slice of `depth` reduce points at a
// time, into panels as wide as the register tile; the left one is read where it lies if its reduce points are
// contiguous, else packed by rows. Partial products of the slices meet in the output itself or in a local tile; after
// the last slice the maps that follow run on it while it is near. Columns are split over threads before rows, since
// the left factor then need not be read twice from a packed copy.

#include "lemma/lower/epilogue.h"
#include "lemma/lower/operand.h"

namespace lemma::lower {
namespace {

using scalar::DType;
using scalar::Op;
using tensor::Comprehension;
using tensor::Role;
using tensor::Value;

struct Product : ProductParts {
  Product(Context& c, const schedule::Group& g) : ProductParts(c.graph, g), context(c), group(g) {}
  Context& context;
  const schedule::Group& group;
  std::vector<int> taps;        // reduce indices that `k` was relieved of: those along which the left factor is not contiguous
  std::vector<Form> tap_strides;
  Form tap_count = 1;
  DType operand = DType::F32;
  bool pack_lhs = true;
  std::optional<Window> window; // the left factor read in place
  bool direct = false;          // partial products meet in the output
  std::vector<Form> base;       // batch indices' forms; others are set per use
  tile::Kernel kernel;
  Form m0, rows, n0, columns;
  Form tile_m, tile_n, depth;
  int lhs_buffer = -1, rhs_buffer = -1, accumulator = -1;
};

constexpr int64_t kChunk = 180;       // rows of the left factor that stay near, a multiple of every tile
// Reduce points a slice: a panel of two vectors' width fits in half of the first cache; one of four is streamed from the
// second, and longer slices save passes over the result.
int64_t slice_depth(const tile::Target& target) { return target.vector_registers >= 32 ? 512 : 256; }
constexpr int64_t kFewRows = 16;
int64_t tap_depth(const tile::Target& target) { return target.vector_registers >= 32 ? 1152 : 384; }
constexpr int64_t kColumns = 2048;

std::vector<Form> forms_at(const Product& p, const Form& row, const Form& column, const Form& depth) {
  std::vector<Form> forms = p.base;
  place_flat(*p.node, p.m, row, forms);
  place_flat(*p.node, p.n, column, forms);
  place_flat(*p.node, p.k, depth, forms);
  return forms;
}

// Grid, block origin and extent.
void place_block(Product& p) {
  Context& c = p.context;
  for (int i : p.contraction.batch) {
    const tensor::IndexInfo& info = p.node->indices[size_t(i)];
    if (info.extent == Form(1)) continue;
    const tile::Var v = c.variable(info.name);
    p.kernel.grid.push_back({v, info.extent, false});
    p.base[size_t(i)] = Form::index(v);
  }
  const int64_t width = panel_width(c.target);
  Form batch(1);
  for (int i : p.contraction.batch) batch = batch * p.node->indices[size_t(i)].extent;
  const Expr m = c.expr(p.m.extent), n = c.expr(p.n.extent), threads = c.expr(c.threads());
  const Expr one = c.constant(1);
  // Blocks wanted from columns: as many as threads that the batch leaves idle.
  const Expr idle = size_max(c, one, size_ceil_div(c, threads, size_max(c, one, c.expr(batch))));
  Expr tile_n = size_round_up(c, size_ceil_div(c, size_max(c, one, n), idle), width);
  tile_n = size_min(c, tile_n, c.constant(p.group.tiles.columns > 0 ? p.group.tiles.columns : kColumns));
  p.tile_n = c.define_size(p.group.name + ".columns", tile_n);
  const Expr blocks_n = size_ceil_div(c, size_max(c, one, n), c.expr(p.tile_n));
  const Expr still_idle = size_max(c, one, size_ceil_div(c, idle, blocks_n));
  Expr tile_m = size_round_up(c, size_ceil_div(c, size_max(c, one, m), still_idle), tile_rows(c.target));
  if (!p.direct) tile_m = size_min(c, tile_m, c.constant(1080));
  if (p.group.tiles.rows > 0) tile_m = size_min(c, c.constant(p.group.tiles.rows), size_max(c, one, m));
  p.tile_m = c.define_size(p.group.name + ".rows", tile_m);

  auto place = [&](const char* name, const Form& extent, const Form& tile, Form& base, Form& count) {
    const tile::Var v = c.variable(std::string(name) + ".tile");
    p.kernel.grid.push_back({v, Form::ceil_div(extent, tile), false});
    base = let(c, p.kernel.body, std::string(name) + ".base", c.expr(Form::index(v)) * c.expr(tile));
    count = let(c, p.kernel.body, std::string(name) + ".count",
                scalar::min(c.expr(tile), c.expr(extent) - c.expr(base)));
  };
  place("rows", p.m.extent, p.tile_m, p.m0, p.rows);
  place("columns", p.n.extent, p.tile_n, p.n0, p.columns);

  const Expr k = c.expr(p.k.extent);
  const int64_t slice = slice_depth(c.target), whole = slice * 3 / 2;  // up to here one slice
  Expr depth;
  if (!p.taps.empty()) {
    // A panel of all taps counts as one slice; slices of one depth leave no short one at the end.
    const Expr fit = size_max(c, c.constant(16), size_floor_div(c, c.constant(tap_depth(c.target)),
                                                                size_max(c, one, c.expr(p.tap_count))));
    const Expr slices = size_max(c, one, size_ceil_div(c, k, fit));
    depth = size_max(c, one, size_ceil_div(c, k, slices));
  } else if (p.group.tiles.depth > 0) {
    depth = size_min(c, c.constant(p.group.tiles.depth), size_max(c, c.constant(2), size_round_up(c, k, 2)));
  } else if (k.is_const()) {
    depth = c.constant(k.as_int() <= whole ? std::max<int64_t>(2, (k.as_int() + 1) / 2 * 2) : slice);
  } else {
    depth = scalar::select(scalar::binary(Op::Le, k, c.constant(whole)),
                           size_max(c, c.constant(2), size_round_up(c, k, 2)), c.constant(slice));
  }
  p.depth = c.define_size(p.group.name + ".depth", depth);
}

int local(Product& p, const std::string& name, DType type, std::vector<Form> extents, tile::Layout layout,
          tile::Space space) {
  tile::Buffer buffer;
  buffer.name = name;
  buffer.type = type;
  buffer.space = space;
  buffer.extents = std::move(extents);
  buffer.layout = layout;
  const int id = p.context.add_buffer(std::move(buffer));
  p.kernel.body.push_back(tile::Alloc{id});
  return id;
}

// Finds how the left factor is read in place: with all reduce indices as one run, or with one of them contiguous and the
// others as taps.
void find_window(Product& p) {
  if (interleave_of(p.operand) > 1) return;  // pairs are packed
  auto window = match_window(p.context, *p.node, p.contraction.lhs, p.contraction.lhs_domain, p.operand);
  if (!window) return;
  const int row = 1 << 20, depth = row + 1;  // stand-ins for variables
  auto runs = [&](const Flat& k) {
    std::vector<Form> forms = p.base;
    for (int t : p.contraction.k) forms[size_t(t)] = Form(0);
    place_flat(*p.node, p.m, Form::index(row), forms);
    place_flat(*p.node, k, Form::index(depth), forms);
    const auto at = window->address(forms);
    const auto split = at.split(depth);
    return split && split->coefficient == Form(1);
  };
  const Flat all = flatten(*p.node, p.contraction.k);
  if (!window->padding && runs(all)) {
    p.window = std::move(window);
    return;
  }
  for (size_t i = p.contraction.k.size(); i-- > 0;) {
    const Flat one = flatten(*p.node, {p.contraction.k[i]});
    if (!runs(one) || p.contraction.k.size() == 1) continue;
    p.k = one;
    for (int t : p.contraction.k) {
      if (t != p.contraction.k[i]) p.taps.push_back(t);
    }
    p.tap_strides.assign(p.taps.size(), Form(1));
    for (size_t t = p.taps.size(); t-- > 0;) {
      p.tap_strides[t] = p.tap_count;
      p.tap_count = p.tap_count * p.node->indices[size_t(p.taps[t])].extent;
    }
    p.window = std::move(window);
    return;
  }
}

// Map that writes a factor into its packed buffer; off its domain and beyond the odd end it is 0.
tile::Map pack(Product& p, bool left, int buffer, const Form& row0, const Form& k0, const Form& rows,
               const Form& kc) {
  Context& c = p.context;
  const tile::Var v = c.variable(left ? "m" : "n"), kv = c.variable("k");
  const Form position = row0 + Form::index(v), depth = k0 + Form::index(kv);
  std::vector<Form> forms = left ? forms_at(p, position, Form(0), depth) : forms_at(p, Form(0), position, depth);
  // Taps stand outside: a panel holds tap after tap.
  tile::Map map;
  Form packed_depth = Form::index(kv);
  for (size_t i = 0; i < p.taps.size(); ++i) {
    const tensor::IndexInfo& info = p.node->indices[size_t(p.taps[i])];
    const tile::Var tv = c.variable(info.name);
    forms[size_t(p.taps[i])] = Form::index(tv);
    packed_depth = packed_depth + Form::index(tv) * p.tap_strides[i] * kc;
    map.points.push_back({tv, info.extent});
  }
  Translator t(c, *p.node, forms, {});
  map.comment = std::string(left ? "rows" : "panels") + " of " + p.node->name;
  const Expr value = scalar::cast(t.translate(left ? p.contraction.lhs : p.contraction.rhs), scalar::kind_of(p.operand));
  map.where = t.translate(left ? p.contraction.lhs_domain : p.contraction.rhs_domain);
  tile::Access to;
  to.buffer = buffer;
  to.coords = left ? std::vector<Form>{Form::index(v), Form::index(kv)}
                   : std::vector<Form>{packed_depth, Form::index(v)};
  const Expr zero = scalar::constant(*c.program.arena, value.kind(), 0);
  map.stores.push_back({to, value, map.where.is_always() ? Expr() : zero, {}});
  map.points.push_back(left ? tile::Range{v, rows} : tile::Range{kv, kc});
  map.points.push_back(left ? tile::Range{kv, kc} : tile::Range{v, rows});
  map.reads = t.reads;
  return map;
}

tile::Access product_access(Product& p, const Form& row, const Form& column) {
  tile::Access out;
  if (!p.direct) {
    out.buffer = p.accumulator;
    out.coords = {row, column};
    return out;
  }
  const std::vector<Form> forms = forms_at(p, p.m0 + row, p.n0 + column, Form(0));
  out.buffer = p.context.global_home({p.member->node, 0})->buffer;
  for (int d : p.node->outputs[0].dims) out.coords.push_back(forms[size_t(d)]);
  return out;
}

tile::Gemm gemm(Product& p, const Form& r0, const Form& rows, const Form& p0, const Form& kc, bool accumulate) {
  Context& c = p.context;
  tile::Gemm g;
  const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
  g.m = {mv, rows};
  g.n = {nv, p.columns};
  g.k = {kv, kc};
  g.accumulate = accumulate;
  g.comment = p.node->name;
  Form packed_depth = Form::index(kv);
  if (p.pack_lhs) {
    g.a.buffer = p.lhs_buffer;
    g.a.coords = {Form::index(mv), Form::index(kv)};
  } else {
    std::vector<Form> forms = forms_at(p, p.m0 + r0 + Form::index(mv), Form(0), p0 + Form::index(kv));
    for (size_t i = 0; i < p.taps.size(); ++i) {
      const tensor::IndexInfo& info = p.node->indices[size_t(p.taps[i])];
      const tile::Var tv = c.variable(info.name);
      forms[size_t(p.taps[i])] = Form::index(tv);
      packed_depth = packed_depth + Form::index(tv) * p.tap_strides[i] * kc;
      g.taps.push_back({tv, info.extent});
    }
    g.a = p.window->access(forms);
  }
  g.b.buffer = p.rhs_buffer;
  g.b.coords = {packed_depth, Form::index(nv)};
  g.acc = product_access(p, r0 + Form::index(mv), Form::index(nv));
  return g;
}

// The maps that follow, over rows r0 .. r0 + rows of the block.
void epilogue(Product& p, const Form& r0, const Form& rows, tile::Block& block) {
  ProductTile tile{p.group, *p.member, *p.node, p.contraction,
                   [&p](const Form& row, const Form& column) { return forms_at(p, p.m0 + row, p.n0 + column, Form(0)); },
                   [&p](const Form& row, const Form& column) { return product_access(p, row, column); }};
  tile.buffer = p.accumulator;
  tile.stored = p.direct;
  tile.capacity_rows = p.tile_m;
  tile.capacity_columns = p.tile_n;
  lower_epilogue(p.context, tile, r0, rows, p.columns, p.kernel.body, block);
}

// With a handful of rows packing costs more than the product: the right factor streams by once, as it lies. A version
// by size, where both factors can be read in place.
std::optional<tile::If> few_rows(Product& p) {
  Context& c = p.context;
  if (p.pack_lhs || !p.taps.empty()) return std::nullopt;
  if (const auto m = p.m.extent.constant(); m && *m > kFewRows) return std::nullopt;
  const auto right = match_window(c, *p.node, p.contraction.rhs, p.contraction.rhs_domain, p.operand);
  if (!right || right->padding) return std::nullopt;
  const tile::Var nv = c.variable("n"), kv = c.variable("k");
  const std::vector<Form> forms = forms_at(p, Form(0), p.n0 + Form::index(nv), Form::index(kv));
  const auto along = right->address(forms).split(nv);
  if (!along || !(along->coefficient == Form(1)) || !right->address(forms).split(kv)) return std::nullopt;
  tile::If out;
  out.condition = view::Formula::less_equal(p.m.extent, Form(kFewRows));
  tile::Gemm g = gemm(p, Form(0), p.rows, Form(0), p.k.extent, false);
  g.b = right->access(forms);
  for (Form& f : g.b.coords) {
    f = f.map_indices([&](int i) { return i == nv ? Form::index(g.n.var) : i == kv ? Form::index(g.k.var) : Form::index(i); });
  }
  out.then.push_back(std::move(g));
  epilogue(p, Form(0), p.rows, out.then);
  return out;
}

void fill_block(Product& p) {
  Context& c = p.context;
  const int width = panel_width(c.target);
  const int interleave = interleave_of(p.operand);
  p.rhs_buffer = local(p, p.node->name + ".panels", p.operand, {p.depth * p.tap_count, p.tile_n},
                       {tile::LayoutKind::Panels, 0, width, interleave}, tile::Space::Shared);
  if (p.pack_lhs) {
    p.lhs_buffer = local(p, p.node->name + ".rows", p.operand, {Form(kChunk), p.depth},
                         {tile::LayoutKind::RowMajor, row_pad(p.operand), 0, 1}, tile::Space::Shared);
  }
  if (!p.direct) {
    p.accumulator = local(p, p.node->name + ".tile", scalar::dtype_of(p.contraction.lhs.kind()),
                          {p.tile_m, p.tile_n}, {}, tile::Space::Local);
  }
  tile::For slices;
  slices.var = c.variable("slice");
  slices.begin = c.constant(0);
  // One slice even where there is nothing to sum: it writes the identity.
  slices.end = size_ceil_div(c, size_max(c, c.constant(1), c.expr(p.k.extent)), c.expr(p.depth));
  const Form p0 = Form::index(slices.var) * p.depth;
  const Form kc = let(c, slices.body, "k.count",
                      size_min(c, c.expr(p.depth), c.expr(p.k.extent) - c.expr(p0)));
  slices.body.push_back(pack(p, false, p.rhs_buffer, p.n0, p0, p.columns, kc));

  tile::For chunks;
  chunks.var = c.variable("chunk");
  chunks.begin = c.constant(0);
  chunks.end = size_ceil_div(c, c.expr(p.rows), c.constant(kChunk));
  const Form r0 = Form::index(chunks.var) * Form(kChunk);
  const Form rc = let(c, chunks.body, "m.count",
                      size_min(c, c.constant(kChunk), c.expr(p.rows) - c.expr(r0)));
  if (p.pack_lhs) chunks.body.push_back(pack(p, true, p.lhs_buffer, p.m0 + r0, p0, rc, kc));
  tile::If first;
  first.condition = view::Formula::equal(Form::index(slices.var), Form(0));
  first.then.push_back(gemm(p, r0, rc, p0, kc, false));
  first.otherwise.push_back(gemm(p, r0, rc, p0, kc, true));
  chunks.body.push_back(std::move(first));
  tile::If last;
  last.condition = view::Formula::less_equal(p.k.extent, p0 + p.depth);
  epilogue(p, r0, rc, last.then);
  if (!last.then.empty()) chunks.body.push_back(std::move(last));
  slices.body.push_back(std::move(chunks));
  if (auto few = few_rows(p)) {
    few->otherwise.push_back(std::move(slices));
    p.kernel.body.push_back(std::move(*few));
    return;
  }
  p.kernel.body.push_back(std::move(slices));
}

}  // namespace

base::Result<void> lower_product(Context& context, const schedule::Group& group) {
  Product p(context, group);
  p.operand = operand_type(context, *p.node, p.contraction);
  p.base.assign(p.node->indices.size(), Form(0));
  const std::optional<Home> global = context.global_home({p.member->node, 0});
  p.direct = group.members.size() == 1 && global && !p.contraction.scale.valid() &&
             context.program.buffers[size_t(global->buffer)].type == scalar::dtype_of(p.contraction.lhs.kind());
  p.kernel.name = group.name;
  p.kernel.comment = "product: " + p.node->name;
  find_window(p);
  p.pack_lhs = !p.window;
  if (p.window) p.window->materialise(context, p.kernel.name);
  place_block(p);
  fill_block(p);
  context.program.kernels.push_back(std::move(p.kernel));
  return {};
}

}  // namespace lemma::lower
