#include "lemma/rewrite/hoist_invariants.h"

#include <algorithm>
#include <limits>
#include <string>

#include "lemma/rewrite/condition.h"
#include "lemma/tensor/rebuild.h"
#include "lemma/view/solve.h"

namespace lemma::rewrite {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;
using view::Formula;

bool total_read(const Graph& graph, const Comprehension& node, size_t read) {
  const Read& r = node.reads[read];
  if (!r.guard.is_always() || !tensor::domain_of(graph, r.source).is_always()) return false;
  const std::vector<Form> extents = tensor::extents(graph, r.source);
  for (size_t d = 0; d < r.coords.size(); ++d) {
    const auto index = r.coords[d].as_index();
    const auto constant = r.coords[d].constant();
    const auto extent = extents[d].constant();
    const bool inside = index ? node.indices[size_t(*index)].extent == extents[d]
                              : constant && extent && *constant >= 0 && *constant < *extent;
    if (!inside) return false;
  }
  return true;
}

Split split_product(const Graph& graph, const Comprehension& node, std::span<const Factor> factors, IndexSet folded) {
  const std::vector<IndexSet> reads = read_indices(node);
  const bool everywhere = node.domain.is_always();
  Split out;
  for (const Factor& f : factors) {
    bool leaves = !meets(indices_of(f.expr, reads), folded);
    for (Expr e : scalar::reachable({&f.expr, 1})) {
      if (!leaves) break;
      if (e.is(Op::Arg) || e.is(Op::Present)) leaves = everywhere || total_read(graph, node, size_t(e.payload()));
    }
    (leaves ? out.outer : out.inner).push_back(f);
  }
  return out;
}

namespace {

// The condition's constraints that ranges of points and sizes do not imply.
Formula without_implied(const Graph& graph, const Comprehension& node, const Formula& condition) {
  if (condition.cases().size() != 1) return condition;
  const view::Ranges ranges = [&](const view::Atom& a) {
    view::Range out;
    if (a.kind == view::AtomKind::Size) out = {graph.sizes[size_t(a.id)].low, graph.sizes[size_t(a.id)].high};
    if (a.kind == view::AtomKind::Index) {
      out.low = 0;
      if (const auto extent = node.indices[size_t(a.id)].extent.constant()) out.high = *extent - 1;
    }
    return out;
  };
  Formula out;
  for (const view::Constraint& k : condition.cases()[0]) {
    if (k.relation == view::Relation::Zero) {
      out = out && Formula::zero(k.form);
    } else if (const view::Range r = view::range(k.form, ranges); !r.low || *r.low < 0) {
      out = out && Formula::non_negative(k.form);
    }
  }
  return out;
}

}  // namespace

std::optional<Formula> not_empty(const Graph& graph, const Comprehension& node) {
  const std::vector<int> folded = node.with_role(Role::Reduce);
  Formula out;
  if (node.domain.is_always()) {
    for (int i : folded) out = out && Formula::less(Form(0), node.indices[size_t(i)].extent);
  } else {
    if (folded.size() != 1 || node.domain.uses(view::AtomKind::Data)) return std::nullopt;
    auto bounds = view::bounds(node.domain, folded[0]);
    if (!bounds || !bounds->exact) return std::nullopt;
    bounds->lower.push_back(Form(0));
    bounds->upper.push_back(node.indices[size_t(folded[0])].extent);
    for (const Form& low : bounds->lower) {
      for (const Form& high : bounds->upper) out = out && Formula::less(low, high);
    }
    for (const view::Constraint& k : bounds->rest) {
      out = out && (k.relation == view::Relation::Zero ? Formula::zero(k.form) : Formula::non_negative(k.form));
    }
  }
  return without_implied(graph, node, out);
}

bool proved_finite(std::span<const Factor> factors) {
  return std::all_of(factors.begin(), factors.end(), [](const Factor& f) {
    return f.kind == Factor::Kind::Over ? proved_positive(f.expr) : f.kind == Factor::Kind::Gate || proved_finite(f.expr);
  });
}

Comprehension map_after(const Graph& graph, const Comprehension& node, Value value,
                        const std::function<Expr(Expr)>& make, std::span<const std::pair<Value, bool>> further) {
  Comprehension out;
  out.name = node.name;
  out.span = node.span;
  out.indices = node.indices;
  out.reads = node.reads;
  out.outputs = {node.outputs[0]};
  out.outputs[0].result = 0;
  const Kind kind = scalar::kind_of(node.outputs[0].type);
  out.reads.push_back(read_at(value, node.outputs[0].dims));
  const int first = int(out.reads.size()) - 1;
  for (const auto& more : further) out.reads.push_back(read_at(more.first, node.outputs[0].dims));
  out.body = {make(scalar::arg(*graph.arena, kind, first))};
  tidy_reads(out);
  IndexSet points = 0;
  for (int d : node.outputs[0].dims) points |= one(d);
  drop_indices(out, points);
  return out;
}

namespace {

constexpr char kPass[] = "hoist_invariants";

// The reduction of what is left, appended; its output has the old one's dimensions, held as it is computed.
Value add_inner(tensor::Rebuild& build, Comprehension node, Expr body) {
  const std::string suffix = "_" + std::string(node.monoid->name);
  node.name += suffix;
  node.outputs[0].name += suffix;
  node.outputs[0].type = scalar::dtype_of(body.kind());
  node.body = {body};
  node.definition = nullptr;
  node.definition_inputs.clear();
  tidy_reads(node);
  return {build.add(std::move(node)), 0};
}

// A sum over a box of what does not depend on the summed indices: the number of points times it.
tensor::Replaced count_terms(tensor::Rebuild& build, const Comprehension& node, std::vector<Factor> factors) {
  scalar::Arena& arena = *build.graph().arena;
  const Kind kind = node.body[0].kind();
  Form count(1);
  for (int i : node.with_role(Role::Reduce)) count = count * node.indices[size_t(i)].extent;
  Comprehension out = node;
  out.monoid = nullptr;
  out.components.clear();
  out.definition = nullptr;
  out.definition_inputs.clear();
  out.outputs[0].result = 0;
  const Expr points = expr_of(count, build.graph(), node);
  const auto number = [&](int64_t n) {
    return scalar::is_float(kind) ? scalar::constant(arena, kind, double(n)) : scalar::constant_int(arena, kind, n);
  };
  factors.push_back({Factor::Kind::Times, count.constant() ? number(*count.constant()) : scalar::cast(points, kind)});
  const Expr product = multiply(arena, kind, factors);
  const bool never_empty = count.constant().value_or(0) > 0 || factors.size() == 1;
  out.body = {never_empty ? product
                          : scalar::select(scalar::binary(Op::Eq, points, scalar::i64(arena, 0)), number(0), product)};
  tidy_reads(out);
  drop_indices(out, with_role(node, Role::Point));
  return std::vector<Value>{{build.add(std::move(out)), 0}};
}

// A sum: the factors that leave.
tensor::Replaced hoist_factors(tensor::Rebuild& build, const Comprehension& node, const Context& context) {
  const Kind kind = node.body[0].kind();
  const Product product = factorise(node.body[0]);
  const IndexSet folded = with_role(node, Role::Reduce);
  Split split = split_product(build.graph(), node, product.factors, folded);
  if (split.inner.empty()) {
    if (node.domain.is_always() && context.allow != Claim::Exact) {
      context.applied(kPass, node.name, "its terms are equal, so it is their number times one");
      return count_terms(build, node, std::move(split.outer));
    }
    if (!split.outer.empty()) context.declined(kPass, node.name, "nothing would be left to sum");
    return {};
  }
  if (split.outer.empty()) return {};
  const bool exact = !scalar::is_float(kind);
  const bool finite = exact || proved_finite(split.outer);
  const bool real = exact || (finite && product.gates_outside);
  if (context.allow == Claim::Exact ? !exact : context.allow == Claim::Real && !real) {
    context.declined(kPass, node.name, "a factor free of the summed indices is not proved finite");
    return {};
  }
  const auto something = finite ? std::optional(Formula::always()) : not_empty(build.graph(), node);
  if (!something) {
    context.declined(kPass, node.name, "its domain may be empty where a factor free of the summed indices is not finite");
    return {};
  }
  const Value inner = add_inner(build, node, multiply(*build.graph().arena, kind, split.inner));
  Comprehension after = map_after(build.graph(), node, inner, [&](Expr sum) {
    if (!something->is_always()) split.outer.insert(split.outer.begin(), {Factor::Kind::Gate, expr_of(*something, build.graph(), node)});
    split.outer.insert(split.outer.begin(), {Factor::Kind::Times, sum});
    return multiply(*build.graph().arena, kind, split.outer);
  });
  context.applied(kPass, node.name, "factors free of the summed indices leave the sum");
  return std::vector<Value>{{build.add(std::move(after)), 0}};
}

// The terms of a sum of two or more, left to right.
std::vector<std::pair<Expr, bool>> terms_of(Expr e) {
  std::vector<std::pair<Expr, bool>> out, stack{{e, false}};
  while (!stack.empty()) {
    const auto [t, negative] = stack.back();
    stack.pop_back();
    if (t.is(Op::Add) || t.is(Op::Sub)) {
      stack.push_back({t.arg(1), t.is(Op::Sub) ? !negative : negative});
      stack.push_back({t.arg(0), negative});
    } else {
      out.push_back({t, negative});
    }
  }
  return out;
}

// A max or min: positive constant factors, then added terms, leave.
tensor::Replaced hoist_shift(tensor::Rebuild& build, const Comprehension& node, const Context& context) {
  const Kind kind = node.body[0].kind();
  if (!scalar::is_float(kind)) return {};
  const std::vector<IndexSet> reads = read_indices(node);
  const IndexSet folded = with_role(node, Role::Reduce);
  const auto leaves = [&](Expr e) {
    const Factor f{Factor::Kind::Times, e};
    return !meets(indices_of(e, reads), folded) && split_product(build.graph(), node, {&f, 1}, folded).inner.empty();
  };
  std::vector<Factor> scale;
  std::vector<Factor> rest;
  const Product product = factorise(node.body[0]);
  for (const Factor& f : product.factors) {
    const bool moves = f.kind != Factor::Kind::Gate && leaves(f.expr) && proved_positive(f.expr) && proved_finite(f.expr);
    (moves ? scale : rest).push_back(f);
  }
  if (rest.empty()) return {};
  Expr inner = scale.empty() ? node.body[0] : multiply(*build.graph().arena, kind, rest);
  Expr shift, kept;
  bool real = true;
  if (scale.empty()) {
    for (const auto& term : terms_of(node.body[0])) {
      const bool moves = leaves(term.first);
      Expr& into = moves ? shift : kept;
      if (!into.valid()) into = term.second ? -term.first : term.first;
      else into = term.second ? into - term.first : into + term.first;
      if (moves && !proved_finite(term.first)) real = false;
    }
    if (!shift.valid() || !kept.valid()) return {};
    inner = kept;
  }
  if (context.allow == Claim::Exact || (context.allow == Claim::Real && !real)) {
    context.declined(kPass, node.name, "a term free of the reduced indices is not proved finite");
    return {};
  }
  const bool maximum = *fold_of(*node.monoid) == Op::Max;
  const Value result = add_inner(build, node, inner);
  Comprehension after = map_after(build.graph(), node, result, [&](Expr best) {
    if (!shift.valid()) {
      scale.insert(scale.begin(), {Factor::Kind::Times, best});
      return multiply(*build.graph().arena, kind, scale);
    }
    const double inf = std::numeric_limits<double>::infinity();
    const Expr nothing = scalar::constant(*build.graph().arena, kind, maximum ? -inf : inf);
    return scalar::select(scalar::binary(Op::Eq, best, nothing), best, best + shift);
  });
  context.applied(kPass, node.name, "what is free of the reduced indices leaves the " + node.monoid->name);
  return std::vector<Value>{{build.add(std::move(after)), 0}};
}

}  // namespace

Graph hoist_invariants(const Graph& graph, const Context& context) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, Tensor, tensor::Node& old) -> tensor::Replaced {
    const auto* node = std::get_if<Comprehension>(&old);
    if (!node || !with_role(*node, Role::Reduce)) return {};
    if (folds_with(*node, Op::Add)) return hoist_factors(build, *node, context);
    if (folds_with(*node, Op::Max) || folds_with(*node, Op::Min)) return hoist_shift(build, *node, context);
    return {};
  });
}

}  // namespace lemma::rewrite
