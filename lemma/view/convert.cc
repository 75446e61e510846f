#include "lemma/view/convert.h"

#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/view/checked.h"
#include "lemma/view/summands.h"

namespace lemma::view {
namespace {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;

// ---- To expressions ----

class Writer {
 public:
  Writer(Arena& arena, const ReadExpr& read) : arena_(arena), read_(read) {}

  Expr form(const Form& f) { return sum(summands(f)); }

  Expr sum(const std::vector<Summand>& all) {
    Expr out;
    for (const Summand& s : all) {
      if (!out.valid()) {
        out = s.is_constant() ? scalar::i64(arena_, s.coefficient) : scaled(s.coefficient, product(s));
      } else if (s.coefficient < 0 && s.coefficient != INT64_MIN) {
        out = out - magnitude(s, -s.coefficient);
      } else {
        out = out + magnitude(s, s.coefficient);
      }
    }
    return out.valid() ? out : scalar::i64(arena_, 0);
  }

  Expr constraint(const Constraint& k) {
    const Sides sides = k.relation == Relation::Zero ? equality_sides(k.form) : inequality_sides(k.form);
    if (k.relation == Relation::Zero) return scalar::binary(Op::Eq, sum(sides.left), sum(sides.right));
    return scalar::binary(sides.strict ? Op::Lt : Op::Le, sum(sides.right), sum(sides.left));
  }

 private:
  Expr magnitude(const Summand& s, int64_t coefficient) {
    return s.is_constant() ? scalar::i64(arena_, coefficient) : scaled(coefficient, product(s));
  }

  Expr scaled(int64_t coefficient, Expr e) {
    if (coefficient == 1) return e;
    if (coefficient == -1) return -e;
    return scalar::i64(arena_, coefficient) * e;
  }

  Expr product(const Summand& s) {
    if (s.modulus) return scalar::binary(Op::Mod, form(s.modulus->numerator), form(s.modulus->denominator));
    Expr out;
    for (const Atom& a : s.factors) out = out.valid() ? out * atom(a) : atom(a);
    return out;
  }

  Expr atom(const Atom& a) {
    switch (a.kind) {
      case AtomKind::Index: return scalar::index(arena_, a.id);
      case AtomKind::Size: return scalar::size(arena_, a.id);
      case AtomKind::Data:
        return scalar::cast(read_ ? read_(a.id) : scalar::arg(arena_, Kind::I64, a.id), Kind::I64);
      case AtomKind::Floor: break;
    }
    return scalar::binary(Op::FloorDiv, form(a.floor->numerator), form(a.floor->denominator));
  }

  Arena& arena_;
  const ReadExpr& read_;
};

// ---- From expressions ----

// What is known of a node: a form if it is an integer, a formula if it is a Bool.
struct Known {
  std::optional<Form> form;
  std::optional<Formula> formula;
};

std::optional<Formula> both(const std::optional<Formula>& a, const std::optional<Formula>& b) {
  if (!a || !b) return std::nullopt;
  return checked_and(*a, *b);
}
std::optional<Formula> either(const std::optional<Formula>& a, const std::optional<Formula>& b) {
  if (!a || !b) return std::nullopt;
  return checked_or(*a, *b);
}
std::optional<Formula> choose(const Formula& c, const Formula& a, const Formula& b) {
  const std::optional<Formula> off = checked_not(c);
  if (!off) return std::nullopt;
  return either(both(c, a), both(*off, b));
}

std::optional<Form> difference(const Known& a, const Known& b) {
  if (!a.form || !b.form) return std::nullopt;
  return checked_subtract(*a.form, *b.form);
}

class Reader {
 public:
  explicit Reader(const ArgForm& arg) : arg_(arg) {}

  Known read(Expr root) {
    for (Expr e : scalar::reachable({&root, 1})) known_[e.index()] = node(e);
    return known_.at(root.index());
  }

 private:
  const Known& at(Expr e, size_t i) const { return known_.at(e.arg(i).index()); }

  Known node(Expr e) const {
    if (e.kind() == Kind::Bool) return {std::nullopt, condition(e)};
    if (is_float(e.kind()) || e.kind() == Kind::U64) return {};
    return {integer(e), std::nullopt};
  }

  std::optional<Form> leaf(Expr e) const {
    if (!arg_) return std::nullopt;
    return arg_(e);
  }

  std::optional<Form> integer(Expr e) const {
    switch (e.op()) {
      case Op::Const: return std::abs(double(e.as_int())) < 0x1p60 ? std::optional(Form(e.as_int())) : std::nullopt;
      case Op::Index: return Form::index(int(e.payload()));
      case Op::Size: return Form::size(int(e.payload()));
      case Op::Arg: return leaf(e);
      case Op::Cast: return e.kind() == Kind::I64 ? widened(e) : std::nullopt;
      default: break;
    }
    if (e.kind() != Kind::I64 || e.args().empty() || !at(e, 0).form) return std::nullopt;
    const Form& a = *at(e, 0).form;
    if (e.is(Op::Neg)) return checked_subtract(Form(), a);
    if (e.args().size() != 2 || !at(e, 1).form) return std::nullopt;
    const Form& b = *at(e, 1).form;
    switch (e.op()) {
      case Op::Add: return checked_add(a, b);
      case Op::Sub: return checked_subtract(a, b);
      case Op::Mul: return checked_multiply(a, b);
      case Op::FloorDiv: return may_divide(b) ? checked_floor_div(a, b) : std::nullopt;
      case Op::Mod: return may_divide(b) ? checked_mod(a, b) : std::nullopt;
      default: return std::nullopt;
    }
  }

  // Values of I32, U32 and Bool are I64 values; a Bool only where it is read (a formula is no form).
  std::optional<Form> widened(Expr e) const {
    if (e.arg(0).kind() == Kind::Bool) return e.arg(0).is(Op::Arg) ? leaf(e.arg(0)) : std::nullopt;
    return at(e, 0).form;
  }

  static bool may_divide(const Form& b) {
    if (b.is_constant()) return true;
    if (b.terms().size() != 1) return false;
    for (const Atom& a : b.terms()[0].factors) {
      if (a.kind != AtomKind::Size) return false;
    }
    return true;
  }

  std::optional<Formula> comparison(Expr e) const {
    const auto d = difference(at(e, 1), at(e, 0));  // right - left
    if (!d) return std::nullopt;
    switch (e.op()) {
      case Op::Eq: return Formula::zero(*d);
      case Op::Ne: return checked_not(Formula::zero(*d));
      case Op::Lt: return Formula::non_negative(*d - Form(1));
      default: return Formula::non_negative(*d);
    }
  }

  std::optional<Formula> condition(Expr e) const {
    switch (e.op()) {
      case Op::Const: return e.as_int() ? Formula::always() : Formula::never();
      case Op::Arg: {
        const auto d = leaf(e);
        return d ? std::optional(Formula::equal(*d, 1)) : std::nullopt;
      }
      case Op::Cast: {
        const Known& a = at(e, 0);
        return a.form ? checked_not(Formula::zero(*a.form)) : std::nullopt;
      }
      default: break;
    }
    if (e.args().empty()) return std::nullopt;
    if (scalar::shape(e.op()) == scalar::OpShape::Compare && e.arg(0).kind() != Kind::Bool) return comparison(e);
    for (size_t i = 0; i < e.args().size(); ++i) {
      if (!at(e, i).formula) return std::nullopt;
    }
    return logic(e);
  }

  std::optional<Formula> logic(Expr e) const {
    const Formula& a = *at(e, 0).formula;
    if (e.is(Op::Not)) return checked_not(a);
    if (e.args().size() < 2) return std::nullopt;
    const Formula& b = *at(e, 1).formula;
    switch (e.op()) {
      case Op::And: case Op::Mul: case Op::Min: return both(a, b);
      case Op::Or: case Op::Max: return either(a, b);
      case Op::Select: return choose(a, b, *at(e, 2).formula);
      case Op::Eq: case Op::Ne: case Op::Xor: {
        const auto off = checked_not(b);
        if (!off) return std::nullopt;
        return e.is(Op::Eq) ? choose(a, b, *off) : choose(a, *off, b);
      }
      default: return std::nullopt;
    }
  }

  const ArgForm& arg_;
  std::unordered_map<uint32_t, Known> known_;
};

}  // namespace

Expr to_expr(const Form& form, Arena& arena, const ReadExpr& read) { return Writer(arena, read).form(form); }

Expr to_expr(const Formula& formula, Arena& arena, const ReadExpr& read) {
  Writer writer(arena, read);
  Expr any;
  for (const Conjunction& c : formula.cases()) {
    Expr all;
    for (const Constraint& k : c) {
      const Expr one = writer.constraint(k);
      all = all.valid() ? scalar::binary(Op::And, all, one) : one;
    }
    if (!all.valid()) return scalar::boolean(arena, true);
    any = any.valid() ? scalar::binary(Op::Or, any, all) : all;
  }
  return any.valid() ? any : scalar::boolean(arena, false);
}

std::optional<Form> from_expr(Expr integer, const ArgForm& arg) { return Reader(arg).read(integer).form; }

std::optional<Formula> formula_from_expr(Expr condition, const ArgForm& arg) { return Reader(arg).read(condition).formula; }

}  // namespace lemma::view
