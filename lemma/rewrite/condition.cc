#include "lemma/rewrite/condition.h"

#include <unordered_map>

#include "lemma/base/check.h"

namespace lemma::rewrite {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::AtomKind;
using view::Form;
using view::Formula;

Expr expr_of(const Form& form, Arena& arena, const ToExpr& index, const ToExpr& data) {
  Expr sum;
  for (const view::Term& t : form.terms()) {
    Expr product;
    const int64_t magnitude = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    if (magnitude != 1 || t.factors.empty()) product = scalar::i64(arena, magnitude);
    for (const view::Atom& a : t.factors) {
      Expr atom;
      switch (a.kind) {
        case AtomKind::Size: atom = scalar::size(arena, a.id); break;
        case AtomKind::Index: atom = index(a.id); break;
        case AtomKind::Data: atom = scalar::cast(data(a.id), Kind::I64); break;
        case AtomKind::Floor:  // floors nest as deep as the text that wrote them
          atom = scalar::binary(Op::FloorDiv, expr_of(a.floor->numerator, arena, index, data),
                                expr_of(a.floor->denominator, arena, index, data));
          break;
      }
      product = product.valid() ? product * atom : atom;
    }
    if (!sum.valid()) {
      sum = t.coefficient < 0 ? -product : product;
    } else {
      sum = t.coefficient < 0 ? sum - product : sum + product;
    }
  }
  return sum.valid() ? sum : scalar::i64(arena, 0);
}

Expr expr_of(const Formula& formula, Arena& arena, const ToExpr& index, const ToExpr& data) {
  if (formula.is_never()) return scalar::boolean(arena, false);
  const Expr zero = scalar::i64(arena, 0);
  Expr any;
  for (const view::Conjunction& c : formula.cases()) {
    Expr all;
    for (const view::Constraint& k : c) {
      const Expr value = expr_of(k.form, arena, index, data);
      const Expr holds = k.relation == view::Relation::Zero ? scalar::binary(Op::Eq, value, zero)
                                                            : scalar::binary(Op::Le, zero, value);
      all = all.valid() ? scalar::binary(Op::And, all, holds) : holds;
    }
    if (!all.valid()) return scalar::boolean(arena, true);
    any = any.valid() ? scalar::binary(Op::Or, any, all) : all;
  }
  return any;
}

namespace {

template <class T>
Expr over_node(const T& what, const tensor::Graph& graph, const tensor::Comprehension& node) {
  Arena& arena = *graph.arena;
  return expr_of(
      what, arena, [&](int i) { return scalar::index(arena, i); },
      [&](int r) { return scalar::arg(arena, tensor::kind(graph, node.reads[size_t(r)].source), r); });
}

// One node of an expression as a form, over its operands' forms.
std::optional<Form> form_of_node(Expr e, const std::unordered_map<uint32_t, Form>& forms) {
  const auto operand = [&](size_t i) -> const Form* {
    const auto it = forms.find(e.arg(i).index());
    return it == forms.end() ? nullptr : &it->second;
  };
  if (scalar::is_float(e.kind()) || e.kind() == Kind::U64) return std::nullopt;
  switch (e.op()) {
    case Op::Const: return Form(e.as_int());
    case Op::Index: return Form::index(int(e.payload()));
    case Op::Size: return Form::size(int(e.payload()));
    case Op::Arg: return Form::data(int(e.payload()));
    case Op::Cast:
      // Widening keeps the value.
      if (e.kind() == Kind::I64 && operand(0)) return *operand(0);
      return std::nullopt;
    default: break;
  }
  if (e.kind() != Kind::I64) return std::nullopt;  // narrower kinds wrap
  for (size_t i = 0; i < e.args().size(); ++i) {
    if (!operand(i)) return std::nullopt;
  }
  switch (e.op()) {
    case Op::Neg: return -*operand(0);
    case Op::Add: return *operand(0) + *operand(1);
    case Op::Sub: return *operand(0) - *operand(1);
    case Op::Mul: return *operand(0) * *operand(1);
    case Op::FloorDiv: return Form::floor_div(*operand(0), *operand(1));
    case Op::Mod:
      // x % 0 is 0 in an expression and x in a form.
      if (auto d = operand(1)->constant(); !d || *d == 0) return std::nullopt;
      return Form::mod(*operand(0), *operand(1));
    default: return std::nullopt;
  }
}

// Coefficients far enough from overflow that any one operation over forms stays exact.
bool bounded(const Form& form) {
  constexpr int64_t kLimit = int64_t(1) << 28;
  if (form.terms().size() > 16) return false;
  for (const view::Term& t : form.terms()) {
    if (t.coefficient > kLimit || t.coefficient < -kLimit) return false;
  }
  return true;
}

std::optional<Formula> formula_of_node(Expr e, const std::unordered_map<uint32_t, Form>& forms,
                                       const std::unordered_map<uint32_t, Formula>& formulas) {
  constexpr size_t kCases = 16;
  const auto form = [&](size_t i) -> const Form* {
    const auto it = forms.find(e.arg(i).index());
    return it == forms.end() ? nullptr : &it->second;
  };
  const auto formula = [&](size_t i) -> const Formula* {
    const auto it = formulas.find(e.arg(i).index());
    return it == formulas.end() ? nullptr : &it->second;
  };
  if (e.kind() != Kind::Bool) return std::nullopt;
  switch (e.op()) {
    case Op::Const: return e.as_int() ? Formula::always() : Formula::never();
    case Op::Arg: return Formula::zero(Form::data(int(e.payload())) - Form(1));
    case Op::Not: {
      if (e.arg(0).is(Op::Arg)) return Formula::zero(Form::data(int(e.arg(0).payload())));
      if (!formula(0)) return std::nullopt;
      size_t cases = 1;
      for (const view::Conjunction& c : formula(0)->cases()) cases *= 2 * c.size();
      if (cases > kCases) return std::nullopt;
      return !*formula(0);
    }
    case Op::And:
      if (!formula(0) || !formula(1) || formula(0)->cases().size() * formula(1)->cases().size() > kCases) return std::nullopt;
      return *formula(0) && *formula(1);
    case Op::Or:
      if (!formula(0) || !formula(1) || formula(0)->cases().size() + formula(1)->cases().size() > kCases) return std::nullopt;
      return *formula(0) || *formula(1);
    case Op::Eq: case Op::Ne: case Op::Lt: case Op::Le: {
      if (e.arg(0).kind() == Kind::Bool || !form(0) || !form(1)) return std::nullopt;
      const Form &a = *form(0), &b = *form(1);
      if (e.is(Op::Eq)) return Formula::equal(a, b);
      if (e.is(Op::Ne)) return !Formula::equal(a, b);
      return e.is(Op::Lt) ? Formula::less(a, b) : Formula::less_equal(a, b);
    }
    default: return std::nullopt;
  }
}

}  // namespace

Expr expr_of(const Form& form, const tensor::Graph& graph, const tensor::Comprehension& node) {
  return over_node(form, graph, node);
}

Expr expr_of(const Formula& formula, const tensor::Graph& graph, const tensor::Comprehension& node) {
  return over_node(formula, graph, node);
}

std::optional<Form> form_of(Expr expr) {
  std::unordered_map<uint32_t, Form> forms;
  for (Expr e : scalar::reachable({&expr, 1})) {
    auto f = form_of_node(e, forms);
    if (!f || !bounded(*f)) return std::nullopt;
    forms.emplace(e.index(), std::move(*f));
  }
  return forms.at(expr.index());
}

std::optional<Formula> formula_of(Expr condition) {
  std::unordered_map<uint32_t, Form> forms;
  std::unordered_map<uint32_t, Formula> formulas;
  for (Expr e : scalar::reachable({&condition, 1})) {
    if (e.kind() == Kind::Bool) {
      if (auto f = formula_of_node(e, forms, formulas)) formulas.emplace(e.index(), std::move(*f));
    } else if (auto f = form_of_node(e, forms); f && bounded(*f)) {
      forms.emplace(e.index(), std::move(*f));
    }
  }
  const auto it = formulas.find(condition.index());
  if (it == formulas.end()) return std::nullopt;
  return it->second;
}

}  // namespace lemma::rewrite
