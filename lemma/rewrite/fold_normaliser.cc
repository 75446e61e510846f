#include "lemma/rewrite/fold_normaliser.h"

#include <cmath>
#include <limits>
#include <optional>

#include "lemma/rewrite/align.h"
#include "lemma/rewrite/body.h"
#include "lemma/rewrite/linear.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Tensor;
using tensor::Value;

constexpr char kPass[] = "fold_normaliser";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A map's body exp(scale*(score - max)) / sum * rest.
struct Weight {
  Value max, sum;
  int max_read = 0, sum_read = 0;
  double scale = 1;
  Linear score;                // scale * score
  std::vector<Factor> rest;
};

bool is_number(Expr e, double v) { return e.is_const() && scalar::is_float(e.kind()) && e.as_float() == v; }

// The output of the rescaled sum that counts its elements' weights.
bool is_plain_sum(const Comprehension& node, int output) {
  const int result = node.outputs[size_t(output)].result;
  return result > 0 && is_number(node.body[size_t(result)], 1) && node.components[size_t(result)] == node.components[0];
}

// A gate that asks no more than that the sum is not 0 or a score not -inf.
bool implied(Expr gate, int sum_read) {
  Expr compared;
  if (gate.is(Op::Ne)) compared = gate;
  if (gate.is(Op::Not) && gate.arg(0).is(Op::Eq)) compared = gate.arg(0);
  if (!compared.valid()) return false;
  for (int side = 0; side < 2; ++side) {
    const Expr constant = compared.arg(size_t(side)), other = compared.arg(size_t(1 - side));
    if (is_number(constant, -kInfinity)) return true;
    if (is_number(constant, 0) && other.is(Op::Arg) && other.payload() == sum_read) return true;
  }
  return false;
}

std::optional<Weight> match_weight(const Graph& graph, const Comprehension& map) {
  const std::vector<Factor> factors = factorise(map.body[0]).factors;
  for (const Factor& over : factors) {
    if (over.kind != Factor::Kind::Over || !over.expr.is(Op::Arg)) continue;
    Weight out;
    out.sum_read = int(over.expr.payload());
    out.sum = map.reads[size_t(out.sum_read)].source;
    const auto* node = std::get_if<Comprehension>(&graph.node(out.sum.node));
    if (!node || !node->monoid || node->monoid->structure != monoid::Structure::RescaledSum) continue;
    if (!is_plain_sum(*node, out.sum.output)) continue;
    for (size_t o = 0; o < node->outputs.size(); ++o) {
      if (node->outputs[o].result == 0) out.max = {out.sum.node, int(o)};
    }
    const auto max_read = read_at_points(map, out.max), sum_read = read_at_points(map, out.sum);
    if (!max_read || !sum_read || node->outputs[size_t(out.max.output)].dims != node->outputs[size_t(out.sum.output)].dims ||
        map.reads[size_t(*max_read)].coords != map.reads[size_t(*sum_read)].coords) {
      continue;
    }
    out.max_read = *max_read;
    out.scale = node->monoid->scale;
    const Expr max = scalar::arg(*graph.arena, map.body[0].kind(), out.max_read);
    bool exponential = false;
    for (const Factor& f : factors) {
      if (f == over || (f.kind == Factor::Kind::Gate && implied(f.expr, out.sum_read))) continue;
      auto exponent = !exponential && f.kind == Factor::Kind::Times && f.expr.is(Op::Exp) ? linear(f.expr.arg(0)) : std::nullopt;
      if (exponent && std::fabs(exponent->of(max) + out.scale) <= 1e-12 * out.scale) {
        exponential = true;
        exponent->add(max, -exponent->of(max));
        out.score = std::move(*exponent);
      } else {
        out.rest.push_back(f);
      }
    }
    if (exponential) return out;
  }
  return std::nullopt;
}

// L over the points of the rescaled sum.
Value add_logarithm(tensor::Rebuild& build, const Weight& w) {
  const auto& node = std::get<Comprehension>(build.graph().node(w.sum.node));
  const std::vector<int>& dims = node.outputs[size_t(w.max.output)].dims;
  std::vector<tensor::IndexInfo> points;
  std::vector<int> place;
  for (int d : dims) {
    place.push_back(int(points.size()));
    points.push_back(node.indices[size_t(d)]);
  }
  const Kind kind = node.body[0].kind();
  Comprehension map = make_map(node.outputs[size_t(w.max.output)].name + "_log_sum", points, scalar::dtype_of(kind));
  map.reads = {read_at(w.max, place), read_at(w.sum, place)};
  scalar::Arena& arena = *build.graph().arena;
  const Expr m = scalar::arg(arena, kind, 0), l = scalar::arg(arena, kind, 1);
  const Expr scaled = w.scale == 1 ? m : scalar::constant(arena, kind, w.scale) * m;
  map.body = {scalar::select(scalar::binary(Op::Eq, l, scalar::constant(arena, kind, 0)),
                             scalar::constant(arena, kind, kInfinity), scaled + scalar::unary(Op::Log, l))};
  return {build.add(std::move(map)), 0};
}

Expr expression(scalar::Arena& arena, Kind kind, const Linear& sum) {
  Expr out;
  const auto join = [&](Expr e) { out = out.valid() ? out + e : e; };
  for (const auto& term : sum.terms) {
    if (term.second == 0) continue;
    join(term.second == 1 ? term.first : scalar::constant(arena, kind, term.second) * term.first);
  }
  if (sum.constant != 0 || !out.valid()) join(scalar::constant(arena, kind, sum.constant));
  return out;
}

}  // namespace

Graph fold_normaliser(const Graph& graph, const Context& context) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, Tensor, tensor::Node& old) -> tensor::Replaced {
    auto* map = std::get_if<Comprehension>(&old);
    if (!map || !is_map(*map) || !small(*map) || map->body.size() != 1 || !scalar::is_float(map->body[0].kind())) return {};
    const auto weight = match_weight(build.graph(), *map);
    if (!weight) return {};
    if (context.allow < Claim::Finite) {
      context.declined(kPass, map->name, "infinite scores would show elsewhere");
      return {};
    }
    const Value logarithm = add_logarithm(build, *weight);
    tensor::Read read = map->reads[size_t(weight->max_read)];
    read.source = logarithm;
    scalar::Arena& arena = *build.graph().arena;
    const Kind kind = map->body[0].kind();
    const Expr shift = scalar::arg(arena, kind, add_read(*map, read));
    std::vector<Factor> factors = weight->rest;
    factors.push_back({Factor::Kind::Times, scalar::exp(expression(arena, kind, weight->score) - shift)});
    map->body = {multiply(arena, kind, factors)};
    tidy_reads(*map);
    context.applied(kPass, map->name, "the max and the sum are read as one logarithm");
    return {};
  });
}

}  // namespace lemma::rewrite
