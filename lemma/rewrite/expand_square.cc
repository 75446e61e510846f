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
using view::Form;

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

// What both sides are measured from, so that what all have in common cancels before it is squared: the right side where
// its own points are 0, or 0 where there are none. A sum over at most one term, which no reader takes in. Nothing where
// that place hangs on data or guards.
std::optional<Value> add_origin(tensor::Rebuild& build, const Comprehension& node, const Square& square) {
  const IndexSet own = square.right_points & ~square.left_points, folded = with_role(node, Role::Reduce);
  const IndexSet keep = (square.right_points & square.left_points) | folded;
  Comprehension out = node;
  out.name += "_origin";
  out.definition = nullptr;
  out.definition_inputs.clear();
  out.body = {square.right};
  tidy_reads(out);
  for (const tensor::Read& r : out.reads) {
    if (!r.guard.is_always()) return std::nullopt;
    for (const Form& f : r.coords) {
      if (f.uses(view::AtomKind::Data)) return std::nullopt;
    }
  }
  std::vector<tensor::IndexInfo> indices;
  std::vector<int> to(node.indices.size()), dims;
  for (const IndexSet part : {keep, own, ~(keep | own)}) {
    for (size_t i = 0; i < node.indices.size(); ++i) {
      if (!has(part, int(i))) continue;
      to[i] = int(indices.size());
      indices.push_back(node.indices[i]);
      const Form& extent = node.indices[i].extent;
      if (part == keep) {
        dims.push_back(to[i]);
        indices.back().role = Role::Point;
      } else if (part == own) {
        if (!(extent.constant() && *extent.constant() > 0)) out.domain = out.domain && view::Formula::less(Form::index(int(i)), extent);
        indices.back().role = Role::Reduce;
        indices.back().extent = 1;
      }
    }
  }
  out.indices = std::move(indices);
  rename_indices(out, to);
  out.outputs = {{out.name, scalar::dtype_of(square.right.kind()), 0, dims, false}};
  out.components = {dims};
  IndexSet left = 0;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (has(keep | own, int(i))) left |= one(to[i]);
  }
  drop_indices(out, left);
  return Value{build.add(std::move(out)), 0};
}

// The square's sides less their origin, over a node that reads it.
void move_to_origin(Comprehension& node, Square& square, Value origin, scalar::Arena& arena) {
  const IndexSet keep = (square.right_points & square.left_points) | with_role(node, Role::Reduce);
  std::vector<int> dims;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (has(keep, int(i))) dims.push_back(int(i));
  }
  const Expr o = scalar::arg(arena, square.right.kind(), add_read(node, read_at(origin, dims)));
  square.left = square.left - o;
  square.right = square.right - o;
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
    auto square = match_square(*node);
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
    Comprehension moved = *node;
    std::optional<Value> origin;
    if (!exact) origin = add_origin(build, *node, *square);
    if (origin) move_to_origin(moved, *square, *origin, *build.graph().arena);
    const Value product = add_sum(build, moved, "_product", square->left * square->right, points);
    const Value left = add_sum(build, moved, "_left", square->left * square->left, square->left_points);
    const Value right = add_sum(build, moved, "_right", square->right * square->right, square->right_points);

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
    context.applied(kPass, node->name, origin || exact
        ? "the square is expanded, so that a product of matrices does the work"
        : "the square is expanded, so that a product of matrices does the work; what both sides have in common loses digits");
    return std::vector<Value>{{build.add(std::move(map)), 0}};
  });
}

}  // namespace lemma::rewrite
