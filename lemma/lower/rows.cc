// Groups without a product: the members in order over one tile of the grid's points, everything between them local.
//
// The tile is sized so that what a block touches stays in the near caches: the work of a grid point is what its inner
// loops span, and points are added, the last grid loop first, until a budget is reached. Where memory runs along the
// last grid loop the tile keeps enough of it for whole vectors.

#include <algorithm>

#include "lemma/lower/groups.h"
#include "lemma/lower/member.h"

namespace lemma::lower {
namespace {

using schedule::LoopKind;
using scalar::Op;
using tensor::Comprehension;

constexpr int64_t kBudget = 16384;     // elements a block works on
constexpr int64_t kMinimumRun = 256;   // of the loop along which memory runs
constexpr int64_t kScanRun = 2048;     // of a scan's points, whose states stay in the nearest cache while rows stream by

Expr constant_of(Context& context, int64_t v) { return context.constant(v); }

// The largest number of elements a member spans at one grid point.
Expr inner_work(Context& context, const schedule::Group& group) {
  Expr most = constant_of(context, 1);
  for (const schedule::Member& m : group.members) {
    Expr work = constant_of(context, 1);
    for (int l : m.loops) {
      const schedule::Loop& loop = group.loops[size_t(l)];
      if (loop.kind != LoopKind::Grid) work = size_mul(context, work, context.expr(loop.extent));
    }
    most = size_max(context, most, work);
  }
  return most;
}

// Rows of a workgroup whose inner loops memory runs along: a warp each while they are short, else one for all, so that
// what all workgroups read a second time is still near.
constexpr int64_t kWarps = 8;
constexpr int64_t kWarpRow = 2048;
Form warp_rows(Context& context, const schedule::Group& group) {
  const Expr work = inner_work(context, group);
  if (work.is_const()) return Form(work.as_int() <= kWarpRow ? kWarps : 1);
  const Expr short_rows = scalar::binary(Op::Le, work, constant_of(context, kWarpRow));
  return context.define_size(group.name + ".rows", scalar::select(short_rows, constant_of(context, kWarps), constant_of(context, 1)));
}

// Whether some member that has inner loops reads memory along this grid loop.
bool memory_runs_along(const Context& context, const schedule::Group& group, int grid_loop) {
  for (const schedule::Member& m : group.members) {
    const auto& node = std::get<Comprehension>(context.graph.node(m.node));
    bool inner = false;
    for (int l : m.loops) inner = inner || group.loops[size_t(l)].kind != LoopKind::Grid;
    if (!inner) continue;
    for (const tensor::Read& r : node.reads) {
      if (r.coords.empty()) continue;
      // On a device what members pass on is near, and a value a row is read once: what is read along inner loops counts.
      bool again = !context.target.device;
      if (!again && group.member(r.source.node)) continue;
      for (size_t i = 0; i < node.indices.size(); ++i) {
        const bool within = group.loops[size_t(m.loops[i])].kind != LoopKind::Grid;
        for (const Form& c : r.coords) again = again || (within && c.uses(view::AtomKind::Index, int(i)));
      }
      if (!again) continue;
      for (size_t i = 0; i < node.indices.size(); ++i) {
        if (m.loops[i] != grid_loop) continue;
        const auto split = r.coords.back().split(int(i));
        if (split && split->coefficient == Form(1)) return true;
      }
    }
  }
  return false;
}

bool has_scan(const Context& context, const schedule::Group& group) {
  return std::any_of(group.members.begin(), group.members.end(), [&](const schedule::Member& m) {
    return std::get<Comprehension>(context.graph.node(m.node)).scan.has_value();
  });
}

// The least run of the last grid loop. A scan cannot be split along itself, so its points are shared out among the threads
// that the other grid loops leave idle; threads that alternate in runs shorter than kMinimumRun hinder one another.
Expr minimum_run(Context& context, const schedule::Group& group, const std::vector<int>& grid) {
  if (!has_scan(context, group)) return context.constant(kMinimumRun);
  Expr wanted = context.expr(context.threads());
  for (size_t i = 0; i + 1 < grid.size(); ++i) {
    const Expr extent = context.expr(group.loops[size_t(grid[i])].extent);
    wanted = size_ceil_div(context, wanted, size_max(context, context.constant(1), extent));
  }
  const Expr points = context.expr(group.loops[size_t(grid.back())].extent);
  const Expr share = size_round_up(context, size_ceil_div(context, points, size_max(context, context.constant(1), wanted)), 16);
  return size_min(context, size_max(context, context.constant(kMinimumRun), share), context.constant(kScanRun));
}

}  // namespace

namespace {
std::optional<std::pair<int64_t, int64_t>> both(Expr a, Expr b) {
  if (a.is_const() && b.is_const()) return std::pair{a.as_int(), b.as_int()};
  return std::nullopt;
}
}  // namespace

bool is_state_axis(const Context& context, const schedule::Group& group, int loop) {
  for (const schedule::Member& m : group.members) {
    const auto* node = std::get_if<Comprehension>(&context.graph.node(m.node));
    if (!node) continue;
    for (size_t i = 0; i < node->indices.size(); ++i) {
      if (m.loops[i] == loop && node->indices[i].role == tensor::Role::Axis) return true;
    }
  }
  return false;
}

Expr size_min(Context& context, Expr a, Expr b) {
  if (auto v = both(a, b)) return context.constant(std::min(v->first, v->second));
  return a == b ? a : scalar::min(a, b);
}
Expr size_max(Context& context, Expr a, Expr b) {
  if (auto v = both(a, b)) return context.constant(std::max(v->first, v->second));
  return a == b ? a : scalar::max(a, b);
}
Expr size_mul(Context& context, Expr a, Expr b) {
  if (auto v = both(a, b)) return context.constant(v->first * v->second);
  if (a.is_const() && a.as_int() == 1) return b;
  if (b.is_const() && b.as_int() == 1) return a;
  return a * b;
}
Expr size_floor_div(Context& context, Expr a, Expr b) {
  if (auto v = both(a, b); v && v->second > 0) return context.constant(v->first / v->second);
  if (b.is_const() && b.as_int() == 1) return a;
  return scalar::binary(Op::FloorDiv, a, b);
}
Expr size_ceil_div(Context& context, Expr a, Expr b) {
  if (auto v = both(a, b); v && v->second > 0) return context.constant((v->first + v->second - 1) / v->second);
  return scalar::binary(Op::FloorDiv, a + b - context.constant(1), b);
}
Expr size_round_up(Context& context, Expr a, int64_t multiple) {
  return size_mul(context, size_ceil_div(context, a, context.constant(multiple)), context.constant(multiple));
}

Form let(Context& context, tile::Block& block, const std::string& name, Expr value) {
  if (value.is_const()) return Form(value.as_int());
  const tile::Var v = context.variable(name);
  block.push_back(tile::Let{v, {}, value});
  return Form::index(v);
}

LoopPlace tile_grid_loop(Context& context, tile::Kernel& kernel, const schedule::Loop& loop, const Form& tile) {
  LoopPlace place;
  if (loop.extent == Form(1)) {
    place.axis = false;
    place.count = place.capacity = 1;
    return place;
  }
  const tile::Var v = context.variable(tile == Form(1) ? loop.name : loop.name + ".tile");
  kernel.grid.push_back({v, Form::ceil_div(loop.extent, tile), false});
  if (tile == Form(1)) {
    place.base = Form::index(v);
    place.count = place.capacity = 1;
    place.axis = false;
    return place;
  }
  place.base = let(context, kernel.body, loop.name + ".base",
                   context.expr(Form::index(v)) * context.expr(tile));
  place.count = let(context, kernel.body, loop.name + ".count",
                    scalar::min(context.expr(tile), context.expr(loop.extent) - context.expr(place.base)));
  place.capacity = tile;
  return place;
}

base::Result<void> lower_rows(Context& context, const schedule::Group& group) {
  tile::Kernel kernel;
  kernel.name = group.name;
  Scope scope;
  scope.places.resize(group.loops.size());
  std::vector<int> grid;
  bool inner = false;
  for (size_t l = 0; l < group.loops.size(); ++l) {
    const schedule::Loop& loop = group.loops[l];
    if (loop.kind == LoopKind::Grid) {
      grid.push_back(int(l));
      continue;
    }
    inner = true;
    const bool axis = !(loop.extent == Form(1)) || is_state_axis(context, group, int(l));
    scope.places[l] = {Form(0), loop.extent, loop.extent, axis, Form(0)};
  }
  // Tiles from the last grid loop on, while the budget lasts.
  std::vector<Form> tiles(group.loops.size(), Form(1));
  Expr left = size_max(context, context.constant(1),
                       size_floor_div(context, context.constant(kBudget), inner_work(context, group)));
  for (size_t i = grid.size(); i-- > 0;) {
    const int l = grid[i];
    const Expr extent = size_max(context, context.constant(1), context.expr(group.loops[size_t(l)].extent));
    Expr size = group.tiles.rows > 0 && i + 1 == grid.size() ? context.constant(group.tiles.rows) : left;
    const bool along = i + 1 == grid.size() && memory_runs_along(context, group, l);
    if (inner && along) size = size_max(context, size, minimum_run(context, group, grid));
    // The threads of a workgroup share a row, or have a point each where neighbours lie side by side.
    if (context.target.device && group.tiles.rows == 0) {
      if (i + 1 == grid.size() && (along || !inner)) tiles[size_t(l)] = Form(inner ? kMinimumRun : 8 * kMinimumRun);
      else if (i + 1 == grid.size() && inner && context.target.warps) tiles[size_t(l)] = warp_rows(context, group);
      continue;
    }
    size = size_min(context, extent, size);
    tiles[size_t(l)] = context.define_size(group.name + "." + group.loops[size_t(l)].name + ".tile", size);
    left = size_max(context, context.constant(1), size_floor_div(context, left, size));
  }
  for (int l : grid) {
    scope.places[size_t(l)] = tile_grid_loop(context, kernel, group.loops[size_t(l)], tiles[size_t(l)]);
    if (context.target.device && !tiles[size_t(l)].is_constant()) scope.places[size_t(l)].capacity = Form(kWarps);
  }
  if (context.target.warps && inner) kernel.hints.threads = int(kWarps) * 32;
  scope.block = &kernel.body;
  for (const schedule::Member& m : group.members) {
    kernel.comment += (kernel.comment.empty() ? "rows: " : ", ") + tensor::name(context.graph, {m.node, 0});
    lower_member(context, group, m, scope);
  }
  context.program.kernels.push_back(std::move(kernel));
  return {};
}

}  // namespace lemma::lower
