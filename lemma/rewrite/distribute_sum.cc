#include "lemma/rewrite/distribute_sum.h"

#include <unordered_map>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/hoist_invariants.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;

constexpr char kPass[] = "distribute_sum";

struct Term {
  Expr expr;
  bool negative = false;
};

std::vector<Term> terms_of(Expr body) {
  std::vector<Term> out, stack{{body, false}};
  while (!stack.empty()) {
    const Term t = stack.back();
    stack.pop_back();
    if (t.expr.is(Op::Add) || t.expr.is(Op::Sub)) {
      stack.push_back({t.expr.arg(1), t.expr.is(Op::Sub) ? !t.negative : t.negative});
      stack.push_back({t.expr.arg(0), t.negative});
    } else {
      out.push_back(t);
    }
  }
  return out;
}

Expr add(Expr sum, Expr term, bool negative) {
  if (!sum.valid()) return negative ? -term : term;
  return negative ? sum - term : sum + term;
}

// The node with one term as its body.
Comprehension sum_of(const Comprehension& node, const std::string& suffix, Expr body) {
  Comprehension out = node;
  out.name += suffix;
  out.outputs[0].name += suffix;
  out.outputs[0].type = scalar::dtype_of(body.kind());
  out.body = {body};
  out.definition = nullptr;
  out.definition_inputs.clear();
  tidy_reads(out);
  return out;
}

// Sums of the new graph by structure, so that a term's sum is found without building it.
class Known {
 public:
  void add(const Graph& graph, Tensor t) { by_hash_.emplace(tensor::hash(graph.node(t)), t); }
  bool holds(const Graph& graph, const Comprehension& node) const {
    const tensor::Node wanted = node;
    const auto [begin, end] = by_hash_.equal_range(tensor::hash(wanted));
    for (auto it = begin; it != end; ++it) {
      if (tensor::same(graph.node(it->second), wanted)) return true;
    }
    return false;
  }

 private:
  std::unordered_multimap<size_t, Tensor> by_hash_;
};

struct Division {
  std::vector<Term> free;   // leave the sum
  std::vector<Term> known;  // have their sum in the graph
  std::vector<Term> rest;
};

Division divide(const Graph& graph, const Comprehension& node, const Known& known) {
  Division out;
  const std::vector<IndexSet> reads = read_indices(node);
  const IndexSet folded = with_role(node, Role::Reduce);
  for (const Term& t : terms_of(node.body[0])) {
    const Factor factor{Factor::Kind::Times, t.expr};
    const bool leaves = node.domain.is_always() && !meets(indices_of(t.expr, reads), folded) &&
                        split_product(graph, node, {&factor, 1}, folded).inner.empty();
    if (leaves) out.free.push_back(t);
    else if (known.holds(graph, sum_of(node, "", t.expr))) out.known.push_back(t);
    else out.rest.push_back(t);
  }
  return out;
}

tensor::Replaced distribute(tensor::Rebuild& build, const Comprehension& node, const Known& known, const Context& context) {
  Division terms = divide(build.graph(), node, known);
  if (terms.free.empty() && terms.known.empty()) return {};
  if (terms.free.size() + terms.known.size() + terms.rest.size() < 2) return {};
  if (terms.free.empty() && terms.rest.size() > 1) return {};  // no less work: what is left needs a pass anyway
  bool finite = !scalar::is_float(node.body[0].kind());
  if (!finite) {
    finite = terms.known.empty() && terms.rest.size() <= 1;
    for (const Term& t : terms.free) finite = finite && proved_finite(t.expr);
  }
  if (context.allow == Claim::Exact || (context.allow == Claim::Real && !finite)) {
    context.declined(kPass, node.name, "its terms are not proved finite");
    return {};
  }
  scalar::Arena& arena = *build.graph().arena;
  const Kind kind = node.body[0].kind();
  std::vector<std::pair<Value, bool>> sums;
  int part = 0;
  for (const Term& t : terms.known) sums.push_back({{build.add(sum_of(node, "_" + std::to_string(part++), t.expr)), 0}, t.negative});
  Expr rest;
  for (const Term& t : terms.rest) rest = add(rest, t.expr, t.negative);
  if (rest.valid()) sums.push_back({{build.add(sum_of(node, "_rest", rest)), 0}, false});
  if (sums.empty()) {
    context.declined(kPass, node.name, "nothing would be left to sum");
    return {};
  }

  Comprehension map = map_after(build.graph(), node, sums[0].first, [&](Expr first) {
    Expr out = sums[0].second ? -first : first;
    const int base = int(first.payload());
    for (size_t s = 1; s < sums.size(); ++s) out = add(out, scalar::arg(arena, kind, base + int(s)), sums[s].second);
    Expr count;
    Form total(1);
    for (int i : node.with_role(Role::Reduce)) total = total * node.indices[size_t(i)].extent;
    const Expr counted = expr_of(total, build.graph(), node);
    count = scalar::cast(counted, kind);
    for (const Term& t : terms.free) {
      const Expr nothing = scalar::binary(Op::Eq, counted, scalar::i64(arena, 0));
      const Expr zero = scalar::cast(scalar::i64(arena, 0), kind);
      const Expr times = count * t.expr;
      out = add(out, total.constant().value_or(0) > 0 ? times : scalar::select(nothing, zero, times), t.negative);
    }
    return out;
  }, std::span(sums).subspan(1));
  context.applied(kPass, node.name, "terms that are free of the summed indices, or summed already, leave the sum");
  return std::vector<Value>{{build.add(std::move(map)), 0}};
}

}  // namespace

Graph distribute_sum(const Graph& graph, const Context& context) {
  Known known;
  size_t seen = 0;
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, Tensor, tensor::Node& old) -> tensor::Replaced {
    for (; seen < build.graph().nodes.size(); ++seen) {
      const auto* done = std::get_if<Comprehension>(&build.graph().nodes[seen]);
      if (done && folds_with(*done, Op::Add)) known.add(build.graph(), Tensor{int32_t(seen)});
    }
    const auto* node = std::get_if<Comprehension>(&old);
    if (!node || !folds_with(*node, Op::Add) || !with_role(*node, Role::Reduce)) return {};
    return distribute(build, *node, known, context);
  });
}

}  // namespace lemma::rewrite
