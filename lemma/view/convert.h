// Between forms and integer expressions, formulas and Bool expressions.
//
// Forms are integers without bound, so only what cannot wrap converts back: arithmetic of kind I64 (index arithmetic is
// taken not to leave 64 bits), constants and reads of any integer kind but U64, and widening casts to I64. Denominators
// must be constants or products of sizes (see form.h). Anything else, and anything too large (checked.h), is nothing.
#pragma once

#include <functional>
#include <optional>

#include "lemma/scalar/expr.h"
#include "lemma/view/formula.h"

namespace lemma::view {

// The expression for a data read, of any integer kind or Bool; it is cast to I64. Default: Arg(read) of kind I64.
using ReadExpr = std::function<scalar::Expr(int read)>;
scalar::Expr to_expr(const Form& form, scalar::Arena& arena, const ReadExpr& read = {});      // I64
scalar::Expr to_expr(const Formula& formula, scalar::Arena& arena, const ReadExpr& read = {});  // Bool

// What an Arg means as a form: Form::data of some read, or nothing where it is no integer the owner tracks. Default:
// nothing.
using ArgForm = std::function<std::optional<Form>(scalar::Expr arg)>;
std::optional<Form> from_expr(scalar::Expr integer, const ArgForm& arg = {});
std::optional<Formula> formula_from_expr(scalar::Expr condition, const ArgForm& arg = {});

}  // namespace lemma::view
