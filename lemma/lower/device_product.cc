// One contraction by tiles of a device's workgroup memory.
//
//     kernel c grid (batch.., y < ceildiv(M, TM), x < ceildiv(N, TN)) order rows 8 {
//       shared a.tile T[TM, TK], b.tile T[TK, TN]       # or transposed, as memory runs
//       fragment acc f32[TM, TN] = 0
//       for k in 0 .. ceildiv(K, TK) pipelined 3 { copy a -> a.tile; copy b -> b.tile; gemm acc += a.tile * b.tile }
//       map (m < TM, n < TN) where y*TM + m < M and x*TN + n < N { c[..] = acc[m, n] ... and the maps that follow }
//     }
//
// All extents are constant; edges are guards. Several indices of a side run as one, and then, as where a factor is more
// than a read, a map evaluates the factor into its tile.

#include "lemma/lower/epilogue.h"
#include "lemma/lower/tile_operand.h"
#include "lemma/schedule/device.h"

namespace lemma::lower {
namespace {

using tensor::Comprehension;

constexpr int kDepth = 3;       // turns under way
constexpr int kOrderRows = 8;   // rows of blocks that share columns while they are near

struct DeviceProduct : ProductParts {
  DeviceProduct(Context& c, const schedule::Group& g) : ProductParts(c.graph, g), context(c), group(g) {}
  Context& context;
  const schedule::Group& group;
  schedule::ProductTiles tiles;
  std::vector<Form> base;       // batch indices' forms
  Form m0, n0;                  // of the block
  tile::Kernel kernel;
  int accumulator = -1;
};

void place_blocks(DeviceProduct& p) {
  Context& c = p.context;
  p.base.assign(p.node->indices.size(), Form(0));
  for (int i : p.contraction.batch) {
    const tensor::IndexInfo& info = p.node->indices[size_t(i)];
    if (info.extent == Form(1)) continue;
    const tile::Var v = c.variable(info.name);
    p.kernel.grid.push_back({v, info.extent, false});
    p.base[size_t(i)] = Form::index(v);
  }
  const tile::Var y = c.variable("y"), x = c.variable("x");
  p.kernel.grid.push_back({y, Form::ceil_div(p.m.extent, p.tiles.rows), false});
  p.kernel.grid.push_back({x, Form::ceil_div(p.n.extent, p.tiles.columns), false});
  p.m0 = Form::index(y) * Form(p.tiles.rows);
  p.n0 = Form::index(x) * Form(p.tiles.columns);
  p.kernel.hints.order_rows = kOrderRows;
}

void add_accumulator(DeviceProduct& p) {
  Context& c = p.context;
  tile::Buffer buffer;
  buffer.name = p.node->name + ".sum";
  buffer.type = scalar::dtype_of(p.contraction.lhs.kind());
  buffer.space = tile::Space::Fragment;
  buffer.extents = {p.tiles.rows, p.tiles.columns};
  p.accumulator = c.add_buffer(std::move(buffer));
  p.kernel.body.push_back(tile::Alloc{p.accumulator});
  tile::Map zero;
  const tile::Var mv = c.variable("m"), nv = c.variable("n");
  zero.points = {{mv, p.tiles.rows}, {nv, p.tiles.columns}};
  zero.stores.push_back({{p.accumulator, {Form::index(mv), Form::index(nv)}, {}},
                         scalar::constant(*c.program.arena, p.contraction.lhs.kind(), 0), {}, {}});
  p.kernel.body.push_back(std::move(zero));
}

tile::Gemm multiply(DeviceProduct& p, const TileOperand& left, const TileOperand& right) {
  Context& c = p.context;
  tile::Gemm g;
  const tile::Var mv = c.variable("m"), nv = c.variable("n"), kv = c.variable("k");
  g.m = {mv, p.tiles.rows};
  g.n = {nv, p.tiles.columns};
  g.k = {kv, p.tiles.depth};
  g.a = left.access(Form::index(mv), Form::index(kv));
  g.b = right.access(Form::index(nv), Form::index(kv));
  g.acc = {p.accumulator, {Form::index(mv), Form::index(nv)}, {}};
  g.comment = p.node->name;
  return g;
}

void multiply_slices(DeviceProduct& p) {
  Context& c = p.context;
  const schedule::Contraction& k = p.contraction;
  TileOperand left{p.node, k.lhs, k.lhs_domain, p.m, p.k, p.tiles.rows, p.tiles.depth, p.tiles.operand};
  TileOperand right{p.node, k.rhs, k.rhs_domain, p.n, p.k, p.tiles.columns, p.tiles.depth, p.tiles.operand};
  left = plan_operand(c, p.node->name + ".rows", left, false, p.kernel.body);
  right = plan_operand(c, p.node->name + ".columns", right, true, p.kernel.body);
  add_accumulator(p);
  tile::For slices;
  slices.var = c.variable("slice");
  slices.begin = c.constant(0);
  slices.end = size_ceil_div(c, c.expr(p.k.extent), c.constant(p.tiles.depth));
  slices.kind = tile::LoopKind::Pipelined;
  slices.depth = kDepth;
  const Form depth = Form::index(slices.var) * Form(p.tiles.depth);
  slices.body.push_back(load_operand(c, left, {p.base, p.m0, depth, {}}));
  slices.body.push_back(load_operand(c, right, {p.base, p.n0, depth, {}}));
  slices.body.push_back(multiply(p, left, right));
  p.kernel.body.push_back(std::move(slices));
}

void follow(DeviceProduct& p) {
  ProductTile tile{p.group, *p.member, *p.node, p.contraction,
                   [&p](const Form& row, const Form& column) {
                     std::vector<Form> forms = p.base;
                     place_flat(*p.node, p.m, p.m0 + row, forms);
                     place_flat(*p.node, p.n, p.n0 + column, forms);
                     return forms;
                   },
                   [&p](const Form& row, const Form& column) { return tile::Access{p.accumulator, {row, column}, {}}; }};
  tile.buffer = p.accumulator;
  tile.capacity_rows = p.tiles.rows;
  tile.capacity_columns = p.tiles.columns;
  tile.space = tile::Space::Fragment;
  tile.edges = [&p](tile::Var row, tile::Var column) {
    std::vector<Edge> out;
    if (!schedule::is_multiple(p.context.graph, p.m.extent, p.tiles.rows)) {
      out.push_back({row, view::Formula::less(p.m0 + Form::index(row), p.m.extent)});
    }
    if (!schedule::is_multiple(p.context.graph, p.n.extent, p.tiles.columns)) {
      out.push_back({column, view::Formula::less(p.n0 + Form::index(column), p.n.extent)});
    }
    return out;
  };
  lower_epilogue(p.context, tile, Form(0), p.tiles.rows, p.tiles.columns, p.kernel.body, p.kernel.body);
}

}  // namespace

base::Result<void> lower_device_product(Context& context, const schedule::Group& group) {
  DeviceProduct p(context, group);
  p.tiles = schedule::product_tiles(context.graph, *p.node, p.contraction, group.tiles, context.target);
  p.kernel.name = group.name;
  p.kernel.comment = "product: " + p.node->name;
  place_blocks(p);
  multiply_slices(p);
  follow(p);
  context.program.kernels.push_back(std::move(p.kernel));
  return {};
}

}  // namespace lemma::lower
