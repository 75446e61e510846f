// Recognising one sum of exponentials shifted by a max: the two comprehensions are brought to one set of indices and
// reads, the body is taken apart into factors, and the exponent is compared with the score term by term.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lemma/rewrite/align.h"
#include "lemma/rewrite/hoist_invariants.h"
#include "lemma/rewrite/linear.h"
#include "lemma/rewrite/stabilize_exp_sums.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Role;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// exp of scale*(score - max): the scale.
std::optional<double> shifted_score(Expr factor, Expr score, Expr max) {
  if (!factor.is(Op::Exp) && !factor.is(Op::Exp2)) return std::nullopt;
  auto exponent = linear(factor.arg(0), factor.is(Op::Exp) ? 1 : std::log(2.0));
  auto of_score = linear(score);
  if (!exponent || !of_score) return std::nullopt;
  const double scale = -exponent->of(max);
  if (!(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  exponent->add(max, scale);
  of_score->add(max, 0);
  if (!proportional(*exponent, *of_score, scale)) return std::nullopt;
  return scale;
}

// A gate that holds just where the score is not -inf.
bool gate_of_score(Expr gate, Expr score) {
  const auto least = [](Expr e) { return e.is_const() && scalar::is_float(e.kind()) && e.as_float() == -kInfinity; };
  Expr compared;
  if (gate.is(Op::Not) && gate.arg(0).is(Op::Eq)) compared = gate.arg(0);
  if (gate.is(Op::Ne)) compared = gate;
  if (gate.is(Op::Lt) && least(gate.arg(0))) return gate.arg(1) == score;
  if (!compared.valid()) return false;
  return (least(compared.arg(0)) && compared.arg(1) == score) || (least(compared.arg(1)) && compared.arg(0) == score);
}

// The sum's factors sorted into the exponential, its guard, and the rest.
std::optional<ExpSum> take_apart(const Graph& graph, const Comprehension& sum, Expr score, int max_read) {
  const Expr max = scalar::arg(*graph.arena, score.kind(), max_read);
  const Product product = factorise(sum.body[0]);
  ExpSum out;
  std::vector<Factor> rest;
  bool weighted = false;
  for (const Factor& f : product.factors) {
    const auto scale = f.kind == Factor::Kind::Times && !weighted ? shifted_score(f.expr, score, max) : std::nullopt;
    if (scale) {
      out.scale = *scale;
      weighted = true;
    } else if (f.kind == Factor::Kind::Gate && gate_of_score(f.expr, score)) {
      out.guarded = true;
    } else {
      rest.push_back(f);
    }
  }
  if (!weighted) return std::nullopt;
  Split split = split_product(graph, sum, rest, with_role(sum, Role::Reduce));
  out.outer = std::move(split.outer);
  out.inner = std::move(split.inner);
  return out;
}

}  // namespace

Match match_exp_sum(const Graph& graph, const Comprehension& max, tensor::Value max_value, tensor::Tensor sum_id,
                    const Comprehension& sum) {
  const std::vector<int> folded = max.with_role(Role::Reduce);
  std::vector<int> order = sum.with_role(Role::Reduce);
  if (sum.body[0].kind() != max.body[0].kind()) return {{}, "its max is of another kind"};
  if (folded.size() != order.size()) return {{}, "its max runs over other indices"};
  const auto max_read = read_at_points(sum, max_value);
  if (!max_read) return {{}, "the max is not read at one point of the sum's"};
  std::vector<int> index = points_seen(max, 0, sum, *max_read);
  std::string reason = "its max runs over other indices";
  do {
    bool fits = true;
    for (size_t k = 0; k < folded.size(); ++k) {
      index[size_t(folded[k])] = order[k];
      fits = fits && max.indices[size_t(folded[k])].extent == sum.indices[size_t(order[k])].extent;
    }
    if (!fits) continue;
    const auto aligned = align(max, sum, index);
    if (!aligned) {
      reason = "the max is taken over other values";
      continue;
    }
    if (aligned->domain != sum.domain) {
      reason = "the max is taken over another domain";
      continue;
    }
    auto found = take_apart(graph, sum, aligned->body[0], *max_read);
    if (!found) {
      reason = "it holds no exponential of the score less its max";
      continue;
    }
    const std::vector<Factor>& g = found->inner;
    for (const Factor& f : g) {
      for (Expr e : scalar::reachable({&f.expr, 1})) {
        if (e.is(Op::Arg) && e.payload() == *max_read) return {{}, "another factor of the sum depends on the max"};
      }
    }
    found->sum = sum_id;
    found->node = sum;
    found->index = index;
    found->max_read = *max_read;
    return {std::move(found), {}};
  } while (order.size() <= 4 && std::next_permutation(order.begin(), order.end()));
  return {{}, reason};
}

}  // namespace lemma::rewrite
