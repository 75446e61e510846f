// Recognising one sum of exponentials shifted by a max: the two comprehensions are brought to one set of indices and
// reads, the body is taken apart into factors, and the exponent is compared with the score term by term.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lemma/rewrite/hoist_invariants.h"
#include "lemma/rewrite/linear.h"
#include "lemma/rewrite/stabilize_exp_sums.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using tensor::Role;
using view::Form;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The one read of the max, at points of the sum.
std::optional<int> read_of_max(const Comprehension& sum, tensor::Value max_value) {
  std::optional<int> found;
  for (size_t r = 0; r < sum.reads.size(); ++r) {
    if (sum.reads[r].source != max_value) continue;
    if (found || !sum.reads[r].guard.is_always()) return std::nullopt;
    IndexSet seen = 0;
    for (const Form& c : sum.reads[r].coords) {
      const auto i = c.as_index();
      if (!i || sum.indices[size_t(*i)].role != Role::Point || has(seen, *i)) return std::nullopt;
      seen |= one(*i);
    }
    found = int(r);
  }
  return found;
}

// The max's node in the sum's indices and reads: the positions of its reads in the sum; nothing if one is missing.
struct Aligned {
  Expr score;
  view::Formula domain;
};
std::optional<Aligned> align(const Comprehension& max, const Comprehension& sum, const std::vector<int>& index) {
  std::vector<int> position;
  const auto form = [&](const Form& f) {
    return f.substitute([&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind == view::AtomKind::Index) return Form::index(index[size_t(a.id)]);
      if (a.kind == view::AtomKind::Data) return Form::data(position[size_t(a.id)]);
      return std::nullopt;
    });
  };
  const auto formula = [&](const view::Formula& f) {
    return f.map_indices([&](int i) { return Form::index(index[size_t(i)]); }).map_data([&](int r) {
      return position[size_t(r)];
    });
  };
  for (const Read& r : max.reads) {
    Read moved{r.source, {}, formula(r.guard)};
    for (const Form& c : r.coords) moved.coords.push_back(form(c));
    const auto it = std::find(sum.reads.begin(), sum.reads.end(), moved);
    if (it == sum.reads.end()) return std::nullopt;
    position.push_back(int(it - sum.reads.begin()));
  }
  Aligned out;
  out.domain = formula(max.domain);
  out.score = replace_leaves(max.body[0], max.body[0].arena(), [&](Expr e) -> Expr {
    const size_t which = size_t(e.payload());
    if (e.is(Op::Index)) return scalar::index(e.arena(), index[which]);
    if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), position[which]);
    if (e.is(Op::Present)) return scalar::present(e.arena(), position[which]);
    return {};
  });
  return out;
}

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
  const auto max_read = read_of_max(sum, max_value);
  if (!max_read) return {{}, "the max is not read at one point of the sum's"};
  std::vector<int> index(max.indices.size(), -1);
  for (size_t d = 0; d < max.outputs[0].dims.size(); ++d) {
    index[size_t(max.outputs[0].dims[d])] = *sum.reads[size_t(*max_read)].coords[d].as_index();
  }
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
    auto found = take_apart(graph, sum, aligned->score, *max_read);
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
