// The two ways to write an integer or a condition, and the ways between them: scalar expressions (a body's) and forms
// and formulas (a view's or a domain's).
#pragma once

#include <functional>
#include <optional>

#include "lemma/scalar/expr.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

// What stands for an index, or for the integer value of a read.
using ToExpr = std::function<scalar::Expr(int)>;

// The form as an I64 expression.
scalar::Expr expr_of(const view::Form& form, scalar::Arena& arena, const ToExpr& index, const ToExpr& data);
// The formula as a Bool expression.
scalar::Expr expr_of(const view::Formula& formula, scalar::Arena& arena, const ToExpr& index, const ToExpr& data);

// The same over a node's own indices and reads.
scalar::Expr expr_of(const view::Form& form, const tensor::Graph& graph, const tensor::Comprehension& node);
scalar::Expr expr_of(const view::Formula& formula, const tensor::Graph& graph, const tensor::Comprehension& node);

// An integer expression as a form, a condition as a formula: over indices, sizes, constants and the values of integer
// or bool reads, arithmetic in I64. Nothing where the expression says more than a form can, or has too many cases.
std::optional<view::Form> form_of(scalar::Expr expr);
std::optional<view::Formula> formula_of(scalar::Expr condition);

}  // namespace lemma::rewrite
