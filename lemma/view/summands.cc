#include "lemma/view/summands.h"

#include <algorithm>

namespace lemma::view {
namespace {

Form form_of(const Term& t) {
  Form out(t.coefficient);
  for (const Atom& a : t.factors) {
    out = out * (a.kind == AtomKind::Index  ? Form::index(a.id)
                 : a.kind == AtomKind::Size ? Form::size(a.id)
                 : a.kind == AtomKind::Data ? Form::data(a.id)
                                            : Form::floor_div(a.floor->numerator, a.floor->denominator));
  }
  return out;
}

// The summand c*(a % b) that term -c*b*floor(a/b) of `form` completes: every variable term of c*a is there.
std::optional<Summand> modulus(const Form& form, const Term& term) {
  for (size_t i = 0; i < term.factors.size(); ++i) {
    if (term.factors[i].kind != AtomKind::Floor) continue;
    const FloorParts& floor = *term.factors[i].floor;
    if (floor.denominator.terms().size() != 1 || floor.numerator.is_constant()) continue;
    const Term& b = floor.denominator.terms()[0];
    std::vector<Atom> others = term.factors;
    others.erase(others.begin() + ptrdiff_t(i));
    if (others != b.factors || term.coefficient % b.coefficient != 0) continue;
    const int64_t c = -(term.coefficient / b.coefficient);
    bool all = true;
    for (const Term& t : floor.numerator.terms()) {
      const auto same = [&](const Term& u) { return u.factors == t.factors && u.coefficient == c * t.coefficient; };
      all = all && (t.factors.empty() || std::any_of(form.terms().begin(), form.terms().end(), same));
    }
    if (all) return Summand{c, {}, term.factors[i].floor};
  }
  return std::nullopt;
}

// 0: with an index, data or a floor; 1: sizes only; 2: the constant.
int rank(const Summand& s) {
  if (s.is_constant()) return 2;
  if (s.modulus) return 0;
  return std::all_of(s.factors.begin(), s.factors.end(), [](const Atom& a) { return a.kind == AtomKind::Size; }) ? 1 : 0;
}

Sides split_by_sign(const std::vector<Summand>& all) {
  Sides sides;
  for (Summand s : all) {
    std::vector<Summand>& side = s.coefficient > 0 ? sides.left : sides.right;
    if (s.coefficient < 0) s.coefficient = -s.coefficient;
    side.push_back(std::move(s));
  }
  return sides;
}

}  // namespace

std::vector<Summand> summands(const Form& form) {
  std::vector<Summand> out;
  Form rest = form;
  for (bool again = true; again;) {
    again = false;
    for (const Term& t : rest.terms()) {
      std::optional<Summand> m = modulus(rest, t);
      if (!m) continue;
      rest = rest - Form(m->coefficient) * m->modulus->numerator - form_of(t);
      out.push_back(std::move(*m));
      again = true;
      break;
    }
  }
  for (const Term& t : rest.terms()) out.push_back({t.coefficient, t.factors, nullptr});
  std::stable_sort(out.begin(), out.end(), [](const Summand& a, const Summand& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return a.coefficient > 0 && b.coefficient < 0;
  });
  return out;
}

Sides inequality_sides(const Form& form) {
  std::vector<Summand> all = summands(form);
  const bool strict = !all.empty() && all.back().is_constant() && all.back().coefficient == -1;
  if (strict) all.pop_back();
  Sides sides = split_by_sign(all);
  sides.strict = strict;
  return sides;
}

Sides equality_sides(const Form& form) {
  Sides sides = split_by_sign(summands(form));
  bool swap = sides.left.empty();
  for (const Term& t : form.terms()) {
    if (swap || sides.right.empty() || t.factors.empty() || t.factors[0].kind == AtomKind::Size) continue;
    swap = t.coefficient < 0;
    break;
  }
  if (swap) std::swap(sides.left, sides.right);
  return sides;
}

}  // namespace lemma::view
