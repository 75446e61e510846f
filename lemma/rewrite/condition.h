// Forms and formulas of a node as expressions of its body, and back (view/convert.h): a read is its value.
#pragma once

#include <optional>

#include "lemma/scalar/expr.h"
#include "lemma/tensor/graph.h"
#include "lemma/view/convert.h"

namespace lemma::rewrite {

inline view::ReadExpr values_of(const tensor::Graph& graph, const std::vector<tensor::Read>& reads) {
  return [&graph, &reads](int r) {
    return scalar::arg(*graph.arena, tensor::kind(graph, reads[size_t(r)].source), r);
  };
}

inline scalar::Expr expr_of(const view::Form& form, const tensor::Graph& graph, const tensor::Comprehension& node) {
  return view::to_expr(form, *graph.arena, values_of(graph, node.reads));
}
inline scalar::Expr expr_of(const view::Formula& formula, const tensor::Graph& graph, const tensor::Comprehension& node) {
  return view::to_expr(formula, *graph.arena, values_of(graph, node.reads));
}

// A condition as a formula over the indices, sizes and the values of integer or bool reads; nothing where it says more
// than a formula can.
inline std::optional<view::Formula> formula_of(scalar::Expr condition) {
  return view::formula_from_expr(condition, [](scalar::Expr arg) -> std::optional<view::Form> {
    if (scalar::is_float(arg.kind()) || arg.kind() == scalar::Kind::U64) return std::nullopt;
    return view::Form::data(int(arg.payload()));
  });
}

}  // namespace lemma::rewrite
