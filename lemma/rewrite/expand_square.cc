#include "lemma/rewrite/expand_square.h"

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/edits.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Role;
using tensor::Value;

constexpr char kPass[] = "expand_square";

// body = (left - right)^2 with a point on each side that the other lacks.
struct Square {
  Expr left, right;
  IndexSet left_points = 0, right_points = 0;
};

// The base of e = base * base or pow(base, 2).
std::optional<Expr> base_of_square(Expr e) {
  if (e.is(Op::Mul) && e.arg(0) == e.arg(1)) return e.arg(0);
  if (e.is(Op::Pow) && is_float(e.kind()) && e.arg(1).is_const() && e.arg(1).as_float() == 2) return e.arg(0);
  return std::nullopt;
}

std::optional<Square> match_square(const Comprehension& node) {
  if (!folds_with(node, Op::Add) || node.body[0].kind() == Kind::Bool || !with_role(node, Role::Reduce)) return std::nullopt;
  auto base = base_of_square(node.body[0]);
  if (!base) return std::nullopt;
  while (base->is(Op::Neg) || base->is(Op::Abs)) base = base->arg(0);
  if (!base->is(Op::Sub)) return std::nullopt;
  Square out{base->arg(0), base->arg(1), 0, 0};
  const std::vector<IndexSet> reads = read_indices(node);
  const IndexSet points = with_role(node, Role::Point), folded = with_role(node, Role::Reduce);
  const IndexSet left = indices_of(out.left, reads), right = indices_of(out.right, reads);
  out.left_points = left & points;
  out.right_points = right & points;
  if (!(out.left_points & ~out.right_points) || !(out.right_points & ~out.left_points)) return std::nullopt;
  if (!(left & folded) || !(right & folded)) return std::nullopt;
  return out;
}

// The sum of `body` over the node's reduced indices, for some of its points.
Value add_sum(tensor::Rebuild& build, const Comprehension& node, const std::string& suffix, Expr body, IndexSet points) {
  Comprehension out = node;
  out.name += suffix;
  out.outputs[0].name += suffix;
  out.outputs[0].type = scalar::dtype_of(body.kind());
  out.body = {body};
  out.definition = nullptr;
  out.definition_inputs.clear();
  std::vector<int> dims;
  for (int i : out.with_role(Role::Point)) {
    if (has(points, i)) dims.push_back(i);
  }
  out.outputs[0].dims = dims;
  out.components = {dims};
  tidy_reads(out);
  drop_indices(out, points | with_role(node, Role::Reduce));
  return {build.add(std::move(out)), 0};
}

// The read of a value at those of the node's points that it has, in order.
int read_points(Comprehension& map, Value value, IndexSet points) {
  std::vector<int> dims;
  for (size_t i = 0; i < map.indices.size(); ++i) {
    if (has(points, int(i))) dims.push_back(int(i));
  }
  return add_read(map, read_at(value, dims));
}

}  // namespace

Graph expand_square(const Graph& graph, const Context& context) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor, tensor::Node& old) -> tensor::Replaced {
    const auto* node = std::get_if<Comprehension>(&old);
    if (!node) return {};
    const auto square = match_square(*node);
    if (!square) return {};
    if (!node->domain.is_always()) {
      context.declined(kPass, node->name, "its squares are summed over a domain that may tie the two sides");
      return {};
    }
    const bool exact = !scalar::is_float(node->body[0].kind());  // integers wrap, and rings do not mind
    if (!exact && context.allow < Claim::Finite) {
      context.declined(kPass, node->name, "an infinite distance might become nan");
      return {};
    }
    const IndexSet points = with_role(*node, Role::Point);
    const Value product = add_sum(build, *node, "_product", square->left * square->right, points);
    const Value left = add_sum(build, *node, "_left", square->left * square->left, square->left_points);
    const Value right = add_sum(build, *node, "_right", square->right * square->right, square->right_points);

    Comprehension map;
    map.name = node->name;
    map.span = node->span;
    map.indices = node->indices;
    map.outputs = node->outputs;
    scalar::Arena& arena = *build.graph().arena;
    const Kind kind = node->body[0].kind();
    const auto value = [&](Value v, IndexSet at) { return scalar::arg(arena, kind, read_points(map, v, at)); };
    const Expr x = value(left, square->left_points), y = value(right, square->right_points), p = value(product, points);
    const Expr distance = x + y - scalar::constant(arena, kind, 2) * p;
    map.body = {exact ? distance : scalar::max(distance, scalar::constant(arena, kind, 0))};
    drop_indices(map, points);
    context.applied(kPass, node->name, "the square is expanded, so that a product of matrices does the work");
    return std::vector<Value>{{build.add(std::move(map)), 0}};
  });
}

}  // namespace lemma::rewrite
