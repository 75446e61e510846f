#include "lemma/rewrite/recognise_domain.h"

#include <algorithm>
#include <cmath>

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
using view::AtomKind;
using view::Formula;

constexpr char kPass[] = "recognise_domain";
constexpr size_t kMaxCases = 16;

// What a term's value of `identity` means: the term is absent.
struct Absent {
  Expr identity;
  bool least = false;      // identity is -inf of a max or a score: an added -inf absorbs the rest
  bool loose = false;      // stand-ins count
  bool matches(Expr e) const {
    if (e == identity) return true;
    if (!e.is_const() || e.kind() != identity.kind()) return false;
    if (!scalar::is_float(e.kind())) return false;
    if (e.as_float() == identity.as_float()) return true;
    return least && loose && e.as_float() <= -1e4;
  }
};

// Conditions found, and the term without them.
struct Peeled {
  Formula domain;
  Expr body;
  bool found = false;
  bool covers_all = true;  // every condition covered the whole term
};

Expr both(Expr a, Expr b) { return a.valid() ? scalar::binary(Op::And, a, b) : b; }

// Takes out of a condition what a formula can say; returns what is left (invalid: nothing).
Expr take(Expr condition, Peeled& out) {
  if (auto f = formula_of(condition); f && f->cases().size() * out.domain.cases().size() <= kMaxCases) {
    out.domain = out.domain && *f;
    out.found = true;
    return {};
  }
  if (!condition.is(Op::And)) return condition;
  Expr left;
  std::vector<Expr> work{condition.arg(1), condition.arg(0)};
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    if (auto f = formula_of(e); f && f->cases().size() * out.domain.cases().size() <= kMaxCases) {
      out.domain = out.domain && *f;
      out.found = true;
    } else if (e.is(Op::And)) {
      work.push_back(e.arg(1));
      work.push_back(e.arg(0));
    } else {
      left = both(left, e);
    }
  }
  return left;
}

// select(c, x, absent) at the root, repeatedly.
void peel_root(const Absent& absent, Peeled& out) {
  while (out.body.is(Op::Select)) {
    const bool when = absent.matches(out.body.arg(2)), unless = absent.matches(out.body.arg(1));
    if (when == unless) return;
    const Expr condition = when ? out.body.arg(0) : scalar::unary(Op::Not, out.body.arg(0));
    const Expr inner = when ? out.body.arg(1) : out.body.arg(2);
    const bool before = out.found;
    out.found = false;
    const Expr left = take(condition, out);
    const bool took = out.found;
    out.found = before || took;
    if (!took) return;
    out.body = left.valid() ? scalar::select(left, inner, absent.identity) : inner;
    if (left.valid()) return;
  }
}

// Gates among the factors of a sum's term.
void peel_factors(Peeled& out) {
  const Product product = factorise(out.body);
  std::vector<Factor> kept;
  bool any = false;
  for (const Factor& f : product.factors) {
    if (f.kind != Factor::Kind::Gate) {
      kept.push_back(f);
      continue;
    }
    const bool before = out.found;
    out.found = false;
    const Expr left = take(f.expr, out);
    any = any || out.found;
    out.found = out.found || before;
    if (left.valid()) kept.push_back({Factor::Kind::Gate, left});
  }
  if (!any) return;
  out.covers_all = out.covers_all && product.gates_outside;
  out.body = multiply(out.body.arena(), out.body.kind(), kept);
}

// s + select(c, a, -inf) of a max's term or a score.
void peel_added(const Absent& absent, Peeled& out) {
  std::vector<std::pair<Expr, bool>> stack{{out.body, false}}, terms;
  while (!stack.empty()) {
    const auto [t, negative] = stack.back();
    stack.pop_back();
    if (t.is(Op::Add) || t.is(Op::Sub)) {
      stack.push_back({t.arg(1), t.is(Op::Sub) ? !negative : negative});
      stack.push_back({t.arg(0), negative});
    } else {
      terms.push_back({t, negative});
    }
  }
  if (terms.size() < 2) return;
  bool any = false;
  for (auto& term : terms) {
    if (term.second || !term.first.is(Op::Select)) continue;
    Peeled part{out.domain, term.first, false, true};
    peel_root(absent, part);
    if (!part.found) continue;
    out.domain = part.domain;
    term.first = part.body;
    any = true;
  }
  if (!any) return;
  Expr sum;
  for (const auto& term : terms) {
    const bool zero = term.first.is_const() && scalar::is_float(term.first.kind()) && term.first.as_float() == 0;
    if (zero) continue;
    if (!sum.valid()) sum = term.second ? -term.first : term.first;
    else sum = term.second ? sum - term.first : sum + term.first;
  }
  out.body = sum.valid() ? sum : terms[0].first;
  out.found = true;
  out.covers_all = false;
}

// not c or x under all, c and x under any.
void peel_logic(Op op, Peeled& out) {
  const Op joined = op == Op::And ? Op::Or : Op::And;
  std::vector<Expr> work{out.body}, kept;
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    if (e.is(joined)) {
      work.push_back(e.arg(1));
      work.push_back(e.arg(0));
      continue;
    }
    const Expr holds = op == Op::And ? (e.is(Op::Not) ? e.arg(0) : scalar::unary(Op::Not, e)) : e;
    auto f = e.is(Op::Arg) ? std::nullopt : formula_of(holds);
    if (f && f->cases().size() * out.domain.cases().size() <= kMaxCases) {
      out.domain = out.domain && *f;
      out.found = true;
    } else {
      kept.push_back(e);
    }
  }
  if (!out.found) return;
  Expr body;
  for (Expr e : kept) body = body.valid() ? scalar::binary(joined, body, e) : e;
  out.body = body.valid() ? body : scalar::boolean(out.body.arena(), op == Op::Or);
}

std::optional<Peeled> peel(const Comprehension& node, const Context& context) {
  Peeled out{node.domain, node.body[0], false, true};
  const bool loose = context.allow == Claim::Loose;
  const bool score = node.monoid->structure == monoid::Structure::RescaledSum;
  const auto op = fold_of(*node.monoid);
  if (!score && !op) return std::nullopt;
  if (op == Op::And || op == Op::Or) {
    peel_logic(*op, out);
  } else {
    const bool least = scalar::is_float(out.body.kind()) && (score || op == Op::Max);
    const Absent absent{scalar::import(node.monoid->identity[0], out.body.arena()), least, loose};
    peel_root(absent, out);
    if (op == Op::Add && context.allow >= Claim::Finite) peel_factors(out);
    if (least && context.allow >= Claim::Finite) peel_added(absent, out);
  }
  if (!out.found) return std::nullopt;
  return out;
}

// Reads that now decide the domain are evaluated before it is known to hold: they must be possible everywhere, or be
// guarded by what held before.
bool make_keys_safe(const Graph& graph, Comprehension& node, const Formula& before) {
  if (before.is_always()) return true;
  for (size_t r = 0; r < node.reads.size(); ++r) {
    if (!node.domain.uses(AtomKind::Data, int(r)) || before.uses(AtomKind::Data, int(r))) continue;
    if (total_read(graph, node, r)) continue;
    for (int key : before.ids(AtomKind::Data)) {
      if (key >= int(r)) return false;
    }
    node.reads[r].guard = node.reads[r].guard && before;
  }
  return true;
}

}  // namespace

Graph recognise_domain(const Graph& graph, const Context& context) {
  if (context.allow < Claim::Real) return graph;
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor, tensor::Node& old) -> tensor::Replaced {
    auto* node = std::get_if<Comprehension>(&old);
    if (!node || !is_reduction(*node) || !small(*node)) return {};
    if (node->monoid->structure == monoid::Structure::TopK || (!fold_of(*node->monoid) && node->body.size() > 1 &&
                                                               node->monoid->structure != monoid::Structure::RescaledSum)) {
      if (node->body[0].is(Op::Select) && formula_of(node->body[0].arg(0))) {
        context.declined(kPass, node->name, "it may take a masked element, so the mask stays a value");
      }
      return {};
    }
    const auto peeled = peel(*node, context);
    if (!peeled) return {};
    Comprehension changed = *node;
    changed.domain = peeled->domain;
    changed.body[0] = peeled->body;
    if (!make_keys_safe(build.graph(), changed, node->domain)) {
      context.declined(kPass, node->name, "the mask's reads are possible only where the domain already holds");
      return {};
    }
    tidy_reads(changed);
    context.applied(kPass, node->name, "terms that a condition replaces by the identity leave the domain");
    *node = std::move(changed);
    return {};
  });
}

}  // namespace lemma::rewrite
