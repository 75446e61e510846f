#include "lemma/rewrite/one_pass_moments.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lemma/rewrite/align.h"
#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/edits.h"
#include "lemma/rewrite/expand.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;

constexpr char kPass[] = "one_pass_moments";

// (element - mean)^2 with mean = sum / count.
struct Moments {
  Tensor sum;                // the node of the sum
  Comprehension second;      // the second moment, seen through maps
  std::vector<int> index;    // per index of the sum's node, that of the second moment
  Expr element;              // x, over `second`
};

// The difference that is squared.
std::optional<Expr> squared(Expr e) {
  Expr base;
  if (e.is(Op::Mul) && e.arg(0) == e.arg(1)) base = e.arg(0);
  if (e.is(Op::Pow) && e.arg(1).is_const() && e.arg(1).as_float() == 2) base = e.arg(0);
  if (!base.valid() || !base.is(Op::Sub)) return std::nullopt;
  return base;
}

// Whether the expression is the read `sum` divided by the number of reduced points.
bool is_mean(Expr e, int sum, const Comprehension& node) {
  Form count(1);
  for (int i : node.with_role(Role::Reduce)) count = count * node.indices[size_t(i)].extent;
  bool read = false, divided = false;
  for (const Factor& f : factorise(e).factors) {
    const bool times = f.kind == Factor::Kind::Times;
    if (times && f.expr.is(Op::Arg) && f.expr.payload() == sum && !read) {
      read = true;
    } else if (f.kind != Factor::Kind::Gate && !divided && f.expr.is_const() && count.constant()) {
      const double value = f.expr.as_float(), wanted = double(*count.constant());
      divided = times ? std::fabs(value * wanted - 1) < 1e-12 : value == wanted;
      if (!divided) return false;
    } else if (f.kind == Factor::Kind::Over && !divided && f.expr.is(Op::Cast)) {
      const auto form = view::from_expr(f.expr.arg(0));
      divided = form && *form == count;
      if (!divided) return false;
    } else {
      return false;
    }
  }
  return read && (divided || count == Form(1));
}

class Search {
 public:
  explicit Search(const Graph& graph, const Context& context)
      : graph_(graph), context_(context), edits_(graph), taken_(graph.nodes.size(), false) {}

  Graph run() {
    bool any = false;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto* node = std::get_if<Comprehension>(&graph_.nodes[n]);
      if (!node || !folds_with(*node, Op::Add) || !scalar::is_float(node->body[0].kind())) continue;
      const auto found = match(*node);
      if (!found) continue;
      if (context_.allow < Claim::Finite) {
        context_.declined(kPass, node->name, "infinite elements would give nan in other places");
        continue;
      }
      if (taken_[size_t(found->sum.index)]) continue;
      taken_[size_t(found->sum.index)] = true;
      build(Tensor{int32_t(n)}, *found);
      any = true;
    }
    return any ? settle(std::move(edits_)) : graph_;
  }

 private:
  std::optional<Moments> match(const Comprehension& node) const {
    // Only the small maps that lead to a mean are seen through.
    const Choose means = [&](const Comprehension& owner, int r) {
      const auto* map = map_behind(graph_, owner.reads[size_t(r)]);
      return map && map->reads.size() <= 2 && operations_in(map->body) <= 4;
    };
    for (const bool through : {false, true}) {
      auto second = through ? expand(graph_, node, means) : std::optional(node);
      if (!second) continue;
      const auto difference = squared(second->body[0]);
      if (!difference) {
        if (!through) continue;
        return std::nullopt;
      }
      for (const bool swapped : {false, true}) {
        if (auto found = match(*second, difference->arg(swapped ? 1 : 0), difference->arg(swapped ? 0 : 1))) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<Moments> match(const Comprehension& second, Expr element, Expr mean) const {
    if (!second.domain.is_always()) return std::nullopt;
    for (Expr e : scalar::reachable({&mean, 1})) {
      if (!e.is(Op::Arg)) continue;
      const Value source = second.reads[size_t(e.payload())].source;
      const auto* sum = std::get_if<Comprehension>(&graph_.node(source.node));
      if (!sum || !folds_with(*sum, Op::Add) || !sum->domain.is_always() || sum->definition) continue;
      const auto read = read_at_points(second, source);
      if (!read || !is_mean(mean, *read, second)) continue;
      if (auto found = same_elements(*sum, source.node, second, *read, element)) return found;
    }
    return std::nullopt;
  }

  std::optional<Moments> same_elements(const Comprehension& sum, Tensor id, const Comprehension& second, int read,
                                       Expr element) const {
    const std::vector<int> folded = sum.with_role(Role::Reduce), order = second.with_role(Role::Reduce);
    // Points of the second moment that the sum lacks would make one sum stand for many.
    if (folded.size() != order.size() || sum.indices.size() != second.indices.size()) return std::nullopt;
    std::vector<int> index = points_seen(sum, 0, second, read);
    for (size_t k = 0; k < folded.size(); ++k) {
      if (sum.indices[size_t(folded[k])].extent != second.indices[size_t(order[k])].extent) return std::nullopt;
      index[size_t(folded[k])] = order[k];
    }
    const auto aligned = align(sum, second, index);
    if (!aligned || aligned->body[0] != element) return std::nullopt;
    return Moments{id, second, std::move(index), element};
  }

  void build(Tensor second, const Moments& m) {
    const auto& sum = std::get<Comprehension>(graph_.node(m.sum));
    Comprehension node = m.second;
    node.name = sum.name + "_moments";
    node.monoid = monoid::welford(m.element.kind());
    node.body = {m.element};
    node.components.assign(3, node.components[0]);
    tensor::Output total = sum.outputs[0], centred = m.second.outputs[0];
    for (int& d : total.dims) d = m.index[size_t(d)];
    total.result = 1;
    centred.result = 2;
    node.outputs = {total, centred};
    tidy_reads(node);
    node.definition_inputs.clear();
    node.definition = nullptr;
    context_.applied(kPass, node.name, "one pass computes " + sum.name + " and " + m.second.name);
    const Tensor added = edits_.graph.add(std::move(node));
    edits_.redirect[{m.sum, 0}] = {added, 0};
    edits_.redirect[{second, 0}] = {added, 1};
  }

  const Graph& graph_;
  const Context& context_;
  Edits edits_;
  std::vector<bool> taken_;
};

}  // namespace

Graph one_pass_moments(const Graph& graph, const Context& context) { return Search(graph, context).run(); }

}  // namespace lemma::rewrite
