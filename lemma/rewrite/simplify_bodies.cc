#include "lemma/rewrite/simplify_bodies.h"

#include "lemma/rewrite/body.h"
#include "lemma/scalar/simplify.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;

std::vector<Expr> simplified(scalar::Simplifier& simplifier, const std::vector<tensor::Read>& reads, std::vector<Expr> roots) {
  if (roots.empty()) return roots;
  roots = replace_leaves(roots, roots[0].arena(), [&](Expr e) -> Expr {
    const bool sure = e.is(Op::Present) && reads[size_t(e.payload())].guard.is_always();
    return sure ? scalar::boolean(e.arena(), true) : Expr();
  });
  return simplifier.simplify(std::span<const Expr>(roots));
}

}  // namespace

Graph simplify_bodies(const Graph& graph, const Context& context) {
  scalar::Simplifier simplifier(context.allow);
  int changed = 0;
  Graph out = tensor::rebuild(graph, [&](tensor::Rebuild&, tensor::Tensor, tensor::Node& node) -> tensor::Replaced {
    if (auto* c = std::get_if<Comprehension>(&node)) {
      const std::vector<Expr> body = simplified(simplifier, c->reads, c->body);
      const std::vector<Expr> initial = simplified(simplifier, c->reads, c->initial);
      if (body == c->body && initial == c->initial) return {};
      ++changed;
      c->body = body;
      c->initial = initial;
      tidy_reads(*c);
    } else if (auto* s = std::get_if<tensor::Scatter>(&node)) {
      s->body = simplified(simplifier, s->reads, {s->body})[0];
    }
    return {};
  });
  if (changed > 0) context.applied("simplify_bodies", graph.name, std::to_string(changed) + " bodies became simpler");
  return out;
}

}  // namespace lemma::rewrite
