// Forms and formulas as text.
#include "lemma/view/formula.h"
#include "lemma/view/summands.h"

namespace lemma::view {
namespace {

// A form as an operand of // or %.
std::string operand(const Form& f, const Names& names) {
  const bool name = f.terms().size() == 1 && f.terms()[0].coefficient == 1 && f.terms()[0].factors.size() == 1;
  const std::string text = print(f, names);
  return name || (f.is_constant() && f.constant_term() >= 0) ? text : "(" + text + ")";
}

std::string division(const FloorParts& parts, const char* sign, const Names& names) {
  return operand(parts.numerator, names) + sign + operand(parts.denominator, names);
}

std::string print_atom(const Atom& a, const Names& names) {
  switch (a.kind) {
    case AtomKind::Index: return names.index(a.id);
    case AtomKind::Size: return names.size(a.id);
    case AtomKind::Data: return names.data(a.id);
    case AtomKind::Floor: break;
  }
  return "(" + division(*a.floor, " // ", names) + ")";
}

// The summand without its coefficient; `bare` leaves out parentheses that stand around it all.
std::string print_product(const Summand& s, bool bare, const Names& names) {
  if (s.modulus) {
    const std::string text = division(*s.modulus, " % ", names);
    return bare ? text : "(" + text + ")";
  }
  if (bare && s.factors.size() == 1 && s.factors[0].kind == AtomKind::Floor) {
    return division(*s.factors[0].floor, " // ", names);
  }
  std::string out;
  for (const Atom& a : s.factors) out += (out.empty() ? "" : "*") + print_atom(a, names);
  return out;
}

std::string print_sum(const std::vector<Summand>& sum, const Names& names) {
  std::string out;
  for (const Summand& s : sum) {
    const bool negative = s.coefficient < 0;
    if (out.empty()) out += negative ? "-" : "";
    else out += negative ? " - " : " + ";
    const uint64_t magnitude = negative ? 0 - uint64_t(s.coefficient) : uint64_t(s.coefficient);
    if (magnitude != 1 || s.is_constant()) out += std::to_string(magnitude) + (s.is_constant() ? "" : "*");
    out += print_product(s, sum.size() == 1 && s.coefficient == 1, names);
  }
  return out.empty() ? "0" : out;
}

std::string print_constraint(const Constraint& k, const Names& names) {
  if (k.relation == Relation::Zero) {
    const Sides sides = equality_sides(k.form);
    return print_sum(sides.left, names) + " == " + print_sum(sides.right, names);
  }
  const Sides sides = inequality_sides(k.form);
  return print_sum(sides.right, names) + (sides.strict ? " < " : " <= ") + print_sum(sides.left, names);
}

}  // namespace

std::string print(const Form& form, const Names& names) { return print_sum(summands(form), names); }

std::string print(const Formula& formula, const Names& names) {
  if (formula.is_never()) return "false";
  if (formula.is_always()) return "true";
  std::string out;
  for (const Conjunction& c : formula.cases()) {
    std::string all;
    for (const Constraint& k : c) all += (all.empty() ? "" : " and ") + print_constraint(k, names);
    out += (out.empty() ? "" : " or ") + all;
  }
  return out;
}

}  // namespace lemma::view
