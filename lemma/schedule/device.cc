#include "lemma/schedule/device.h"

#include <algorithm>
#include <set>

namespace lemma::schedule {
namespace {

using scalar::DType;
using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using view::AtomKind;
using view::Form;

constexpr int64_t kLeast = 16;      // side of a tile
constexpr int64_t kWidest = 256;    // columns, or reduce points, that a block holds whole
constexpr int64_t kFewResults = 256;

int64_t power_of_two(int64_t least) {
  int64_t out = kLeast;
  while (out < least) out *= 2;
  return out;
}

Form extent_of(const Comprehension& node, const std::vector<int>& indices) {
  Form out(1);
  for (int i : indices) out = out * node.indices[size_t(i)].extent;
  return out;
}

// A tile no larger than what there is.
int64_t at_most(const Graph& graph, int64_t tile, const Form& extent) {
  const auto most = bound(graph, extent);
  return most && *most < tile ? std::min(tile, power_of_two(*most)) : tile;
}

view::Range range_of(const Graph& graph, const Form& extent) {
  return view::range(extent, [&](const view::Atom& a) -> view::Range {
    if (a.kind != AtomKind::Size) return {};
    const tensor::Size& s = graph.sizes[size_t(a.id)];
    return s.value ? view::Range{*s.value, *s.value} : view::Range{s.low, s.high};
  });
}

bool is_narrow(DType type) { return scalar::bits(type) < 32; }

}  // namespace

std::optional<int64_t> bound(const Graph& graph, const Form& extent) { return range_of(graph, extent).high; }

bool fills_tiles(const Graph& graph, const Form& extent, int64_t tile) {
  return range_of(graph, extent).low.value_or(0) > 0 && is_multiple(graph, extent, tile);
}

bool is_multiple(const Graph& graph, const Form& extent, int64_t tile) {
  for (const view::Term& t : extent.terms()) {
    int64_t known = t.coefficient % tile;
    for (const view::Atom& a : t.factors) {
      if (a.kind != AtomKind::Size) continue;
      const tensor::Size& s = graph.sizes[size_t(a.id)];
      known = known * ((s.value ? *s.value : s.divisor) % tile) % tile;
    }
    if (known != 0) return false;
  }
  return true;
}

DType tile_type(const Graph& graph, const Comprehension& node, Expr factor, const tile::Target& target) {
  const DType own = scalar::dtype_of(factor.kind());
  if (!target.matrix_units || !factor.is(Op::Arg)) return own;
  const DType stored = tensor::type(graph, node.reads[size_t(factor.payload())].source);
  return stored == DType::BF16 || stored == DType::F16 || stored == DType::I8 ? stored : own;
}

bool is_small_product(const Graph& graph, const Comprehension& node, const Contraction& contraction) {
  const auto m = bound(graph, extent_of(node, contraction.m)), n = bound(graph, extent_of(node, contraction.n));
  if ((m && *m <= 1) || (n && *n <= 1)) return true;
  return m && n && *m * *n <= kFewResults;
}

ProductTiles product_tiles(const Graph& graph, const Comprehension& node, const Contraction& contraction, const Tiles& wanted,
                           const tile::Target& target) {
  ProductTiles out;
  const DType left = tile_type(graph, node, contraction.lhs, target), right = tile_type(graph, node, contraction.rhs, target);
  out.operand = left == right ? left : scalar::dtype_of(contraction.lhs.kind());
  const int64_t part = target.matrix_units && !is_narrow(out.operand) ? 2 : 1;
  const auto choose = [&](int64_t given, int64_t usual, const std::vector<int>& indices) {
    return given > 0 ? given : at_most(graph, usual / part, extent_of(node, indices));
  };
  out.rows = choose(wanted.rows, target.tile_rows, contraction.m);
  out.columns = choose(wanted.columns, target.tile_columns, contraction.n);
  out.depth = choose(wanted.depth, target.tile_depth, contraction.k);
  return out;
}

std::optional<StreamTiles> stream_tiles(const Graph& graph, const Group& group, const Streamed& parts, const tile::Target& target,
                                        std::string* reason) {
  const auto decline = [&](std::string why) -> std::optional<StreamTiles> {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  StreamTiles out;
  const DType left = tile_type(graph, *parts.node, parts.point_factor, target),
              right = tile_type(graph, *parts.node, parts.stream_factor, target);
  out.operand = left == right ? left : scalar::dtype_of(parts.point_factor.kind());
  const Form k = extent_of(*parts.node, parts.contraction.k);
  const auto most = bound(graph, k);
  out.whole_depth = most && power_of_two(*most) <= kWidest;
  out.depth = out.whole_depth ? power_of_two(*most) : at_most(graph, target.tile_depth, k);
  int64_t column_bits = 0;
  for (const Member* m : parts.reducing) {
    const Comprehension& node = std::get<Comprehension>(graph.node(m->node));
    for (size_t c = 0; c < node.components.size(); ++c) {
      if (!is_second_product(group, parts.row, *m, node, c)) continue;
      const std::vector<int> columns = columns_of(group, *m, node, c);
      const std::string name = node.indices[size_t(columns[0])].name;
      if (columns.size() != 1) return decline("its columns are more than one index");
      const auto width = bound(graph, node.indices[size_t(columns[0])].extent);
      if (!width) return decline("its columns " + name + " have no known bound, and a device's tiles have constant extents");
      if (power_of_two(*width) > kWidest) return decline("its " + std::to_string(*width) + " columns " + name + " are more than " + std::to_string(kWidest));
      out.columns[m->loops[size_t(columns[0])]] = power_of_two(*width);
      column_bits += power_of_two(*width) * scalar::bits(tile_type(graph, node, node.body[c], target));
    }
  }
  out.rows = group.tiles.rows > 0 ? group.tiles.rows : at_most(graph, target.stream_rows, group.loops[size_t(parts.row)].extent);
  out.stream = group.tiles.stream > 0 ? group.tiles.stream : at_most(graph, target.stream_columns, group.loops[size_t(parts.stream)].extent);
  // Two turns of the stream are under way.
  const auto bytes = [&] {
    const int64_t turn = out.stream * (out.depth * scalar::bits(out.operand) + column_bits) / 8;
    return out.rows * out.depth * scalar::bits(out.operand) / 8 + (target.matrix_units ? 2 : 1) * turn;
  };
  while (bytes() > target.shared_bytes && out.stream > kLeast && group.tiles.stream == 0) out.stream /= 2;
  while (bytes() > target.shared_bytes && out.rows > kLeast && group.tiles.rows == 0) out.rows /= 2;
  if (bytes() > target.shared_bytes) {
    return decline("its tiles take " + std::to_string(bytes()) + " bytes of the " + std::to_string(target.shared_bytes) + " that a workgroup has");
  }
  return out;
}

namespace {

// Buffers that the kernel binds: what it reads from elsewhere, what it writes, and a place for what does not fit in
// workgroup memory.
int buffers_of(const Graph& graph, const Group& group) {
  std::set<tensor::Value> bound;
  for (const Member& m : group.members) {
    for (tensor::Value v : tensor::sources(graph.node(m.node))) {
      if (!group.member(v.node)) bound.insert(v);
    }
    for (const tensor::GraphOutput& o : graph.outputs) {
      if (o.value.node == m.node) bound.insert(o.value);
    }
  }
  // What others read of the last member, whose readers are not inside.
  const tensor::Tensor root = group.members.back().node;
  for (const tensor::Node& n : graph.nodes) {
    for (tensor::Value v : tensor::sources(n)) {
      if (v.node == root) bound.insert(v);
    }
  }
  return int(bound.size()) + 1;
}

// Operands of products come from memory: no member of the kernel computes them.
std::optional<std::string> operand_refusal(const Graph& graph, const Group& group, const Streamed& parts) {
  const auto computed = [&](const Comprehension& node, Expr factor) {
    for (Expr e : scalar::reachable({&factor, 1})) {
      if (e.is(Op::Arg) && group.member(node.reads[size_t(e.payload())].source.node)) return true;
    }
    return false;
  };
  if (computed(*parts.node, parts.point_factor) || computed(*parts.node, parts.stream_factor)) {
    return "a factor of " + parts.node->name + " is computed in the kernel";
  }
  for (const Member* m : parts.reducing) {
    const Comprehension& node = std::get<Comprehension>(graph.node(m->node));
    for (size_t c = 0; c < node.components.size(); ++c) {
      if (is_second_product(group, parts.row, *m, node, c) && computed(node, node.body[c])) {
        return "the columns of " + node.name + " are computed in the kernel";
      }
    }
  }
  return std::nullopt;
}

// The emitter folds the components of a state on from earlier ones where they have all points and no axes.
std::optional<std::string> fold_refusal(const Comprehension& node) {
  if (node.monoid->structure == monoid::Structure::RescaledSum || node.monoid->structure == monoid::Structure::TopK) return std::nullopt;
  const size_t points = node.with_role(tensor::Role::Point).size();
  for (size_t c = 0; c < node.components.size(); ++c) {
    if (!node.monoid->components[c].axes.empty()) return "the state of " + node.name + " has axes";
    if (node.components[c].size() != points) return "the components of " + node.name + " have index sets of their own";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> device_refusal(const Graph& graph, const Group& group, const tile::Target& target) {
  if (const int n = buffers_of(graph, group); group.members.size() > 1 && target.max_buffers > 0 && n > target.max_buffers) {
    return "its kernel would bind " + std::to_string(n) + " buffers, and the device binds at most " + std::to_string(target.max_buffers);
  }
  if (group.strategy != Strategy::Streamed) return std::nullopt;
  const Streamed parts = take_apart(graph, group);
  for (const Member* m : parts.reducing) {
    if (auto why = fold_refusal(std::get<Comprehension>(graph.node(m->node)))) return why;
  }
  if (group.loops[size_t(parts.row)].kind != LoopKind::Grid) return "its rows are not points of the whole kernel";
  if (auto why = operand_refusal(graph, group, parts)) return why;
  std::string why;
  if (!stream_tiles(graph, group, parts, target, &why)) return why;
  return std::nullopt;
}

}  // namespace lemma::schedule
