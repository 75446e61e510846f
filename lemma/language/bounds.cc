// The prover: floors are replaced by their bounds (d * floor(a/d) is a less a remainder in [0, d)), then indices by the
// end of their range that makes the form least, then sizes by their least values; what stays must be non-negative.
#include "lemma/language/bounds.h"

#include <algorithm>
#include <cmath>

namespace lemma::language {
namespace {

using view::Atom;
using view::AtomKind;
using view::Conjunction;
using view::Constraint;
using view::Form;
using view::Formula;
using view::Relation;
using view::Term;

constexpr double largest_weight = 0x1p60;
constexpr size_t most_terms = 64;
constexpr int deepest_floor = 16;
constexpr size_t most_cases = 64;
constexpr size_t most_constraints = 64;
constexpr size_t most_factors = 8;

double weight(const Form& f) {
  double out = 0;
  for (const Term& t : f.terms()) out += std::fabs(double(t.coefficient));
  return out;
}

int depth(const Form& f) {
  int out = 0;
  for (const Term& t : f.terms()) {
    for (const Atom& a : t.factors) {
      if (a.kind == AtomKind::Floor) out = std::max(out, 1 + std::max(depth(a.floor->numerator), depth(a.floor->denominator)));
    }
  }
  return out;
}

size_t most_factors_of(const Form& f) {
  size_t out = 0;
  for (const Term& t : f.terms()) out = std::max(out, t.factors.size());
  return out;
}

// A bound on the weight after a substitution, and on what happens inside.
double weight_after(const Form& form, const Form::Substitution& f) {
  double out = 0;
  for (const Term& t : form.terms()) {
    double product = std::fabs(double(t.coefficient));
    for (const Atom& a : t.factors) {
      if (a.kind == AtomKind::Floor) {
        // The numerator's multiples leave the floor; denominators multiply.
        product *= 1 + weight_after(a.floor->numerator, f) * std::max(1.0, weight_after(a.floor->denominator, f));
      } else if (auto by = f(a)) {
        product *= std::max(1.0, weight(*by));
      }
    }
    out += product;
  }
  return out;
}

}  // namespace

MaybeForm add(const Form& a, const Form& b) {
  if (weight(a) + weight(b) > largest_weight || a.terms().size() + b.terms().size() > most_terms) return std::nullopt;
  return a + b;
}

MaybeForm subtract(const Form& a, const Form& b) { return add(a, -b); }

MaybeForm multiply(const Form& a, const Form& b) {
  if (weight(a) * weight(b) > largest_weight || a.terms().size() * b.terms().size() > most_terms ||
      most_factors_of(a) + most_factors_of(b) > most_factors) {
    return std::nullopt;
  }
  return a * b;
}

MaybeForm floor_div(const Form& a, const Form& b) {
  if (weight(a) * std::max(1.0, weight(b)) > largest_weight || depth(a) >= deepest_floor) return std::nullopt;
  // floor(floor(x/c)/d) becomes floor(x/(c*d)).
  for (const Term& t : a.terms()) {
    for (const Atom& atom : t.factors) {
      if (atom.kind == AtomKind::Floor && weight(atom.floor->denominator) * weight(b) > largest_weight) return std::nullopt;
    }
  }
  return Form::floor_div(a, b);
}

MaybeForm modulo(const Form& a, const Form& b) {
  const MaybeForm q = floor_div(a, b);
  if (!q) return std::nullopt;
  if (auto d = b.constant(); d && *d == 0) return Form(0);
  const MaybeForm whole = multiply(b, *q);
  return whole ? subtract(a, *whole) : std::nullopt;
}

MaybeForm substitute(const Form& form, const Form::Substitution& f) {
  if (weight_after(form, f) > largest_weight) return std::nullopt;
  double terms = 0;
  for (const Term& t : form.terms()) {
    double product = 1;
    for (const Atom& a : t.factors) {
      if (auto by = a.kind == AtomKind::Floor ? std::nullopt : f(a)) product *= double(std::max<size_t>(1, by->terms().size()));
    }
    terms += product;
  }
  if (terms > double(most_terms)) return std::nullopt;
  Form out = form.substitute(f);
  if (depth(out) > deepest_floor || out.terms().size() > most_terms || most_factors_of(out) > most_factors) return std::nullopt;
  return out;
}

namespace {
bool fits(const Formula& f) {
  if (f.cases().size() > most_cases) return false;
  for (const Conjunction& c : f.cases()) {
    if (c.size() > most_constraints) return false;
  }
  return true;
}
}  // namespace

MaybeFormula both(const Formula& a, const Formula& b) {
  if (a.is_always()) return b;
  if (b.is_always() || a == b) return a;
  if (a.cases().size() * b.cases().size() > most_cases * 4) return std::nullopt;
  Formula out = a && b;
  if (!fits(out)) return std::nullopt;
  return out;
}

MaybeFormula either(const Formula& a, const Formula& b) {
  if (a.is_always() || b.is_always()) return Formula();
  Formula out = a || b;
  if (!fits(out)) return std::nullopt;
  return out;
}

MaybeFormula negation(const Formula& a) {
  Formula out;
  for (const Conjunction& c : a.cases()) {
    Formula any = Formula::never();
    for (const Constraint& k : c) {
      if (k.relation == Relation::NonNegative) any = any || Formula::non_negative(-k.form - Form(1));
      else any = any || Formula::non_negative(k.form - Form(1)) || Formula::non_negative(-k.form - Form(1));
    }
    if (any.cases().size() > most_cases || any.cases().size() * out.cases().size() > most_cases * 4) return std::nullopt;
    out = out && any;
    if (!fits(out)) return std::nullopt;
  }
  return out;
}

MaybeFormula substitute(const Formula& formula, const Form::Substitution& f) {
  if (formula.is_always()) return formula;
  for (const Conjunction& c : formula.cases()) {
    for (const Constraint& k : c) {
      if (!substitute(k.form, f)) return std::nullopt;
    }
  }
  return formula.substitute(f);
}

namespace {
MaybeFormula non_negative_difference(const Form& a, const Form& b, int64_t less) {
  const MaybeForm d = subtract(a, b);
  const MaybeForm e = d ? subtract(*d, Form(less)) : std::nullopt;
  if (!e) return std::nullopt;
  return Formula::non_negative(*e);
}
}  // namespace

MaybeFormula less(const Form& a, const Form& b) { return non_negative_difference(b, a, 1); }
MaybeFormula less_equal(const Form& a, const Form& b) { return non_negative_difference(b, a, 0); }
MaybeFormula equal(const Form& a, const Form& b) {
  const MaybeForm d = subtract(a, b);
  if (!d) return std::nullopt;
  return Formula::zero(*d);
}

bool implies(const Formula& a, const Formula& b) {
  if (b.is_always()) return true;
  for (const Conjunction& strong : a.cases()) {
    bool held = false;
    for (const Conjunction& weak : b.cases()) {
      if (std::includes(strong.begin(), strong.end(), weak.begin(), weak.end())) held = true;
    }
    if (!held) return false;
  }
  return true;
}

namespace {

// The sign of a form over sizes, each at least its low: +1 where it is >= 0, -1 where it is <= 0, 0 where unknown.
// `strict`: extents of the box are at least 1.
struct Prover {
  const Box& box;
  std::vector<int> positive_sizes;  // sizes that stand alone as an extent of an index in use

  int64_t low(int size) const {
    const int64_t stated = std::max<int64_t>(0, box.size_low(size));
    const bool positive = std::find(positive_sizes.begin(), positive_sizes.end(), size) != positive_sizes.end();
    return positive ? std::max<int64_t>(1, stated) : stated;
  }

  // >= slack for all sizes: shift each size by its low; every coefficient but the constant's must be >= 0.
  bool at_least(const Form& f, int64_t slack) const {
    const MaybeForm shifted = substitute(f, [&](const Atom& a) -> std::optional<Form> {
      if (a.kind == AtomKind::Size) return Form::size(a.id) + Form(low(a.id));
      return std::nullopt;
    });
    if (!shifted) return false;
    for (const Term& t : shifted->terms()) {
      if (t.factors.empty()) continue;
      for (const Atom& a : t.factors) {
        if (a.kind != AtomKind::Size) return false;
      }
      if (t.coefficient < 0) return false;
    }
    return shifted->constant_term() >= slack;
  }

  // A floor atom of the form, innermost last.
  static const Atom* floor_of(const Form& f) {
    for (const Term& t : f.terms()) {
      for (const Atom& a : t.factors) {
        if (a.kind == AtomKind::Floor) return &a;
      }
    }
    return nullptr;
  }

  // f = c * atom + rest; nothing if the atom stands in a product with itself.
  static bool split(const Form& f, const Atom& atom, Form& coefficient, Form& rest) {
    Form c, r;
    for (const Term& t : f.terms()) {
      Form term(t.coefficient);
      int power = 0;
      for (const Atom& a : t.factors) {
        if (a == atom) {
          ++power;
          continue;
        }
        const Form factor = a.kind == AtomKind::Index  ? Form::index(a.id)
                            : a.kind == AtomKind::Size ? Form::size(a.id)
                            : a.kind == AtomKind::Data ? Form::data(a.id)
                                                       : Form::floor_div(a.floor->numerator, a.floor->denominator);
        const MaybeForm product = multiply(term, factor);
        if (!product) return false;
        term = *product;
      }
      if (power > 1) return false;
      const MaybeForm sum = add(power == 1 ? c : r, term);
      if (!sum) return false;
      (power == 1 ? c : r) = *sum;
    }
    coefficient = c;
    rest = r;
    return true;
  }

  // A lower bound, times a positive scale, free of floors, data and indices; `slack` is what it must reach.
  bool non_negative(Form f) const {
    int64_t slack = 0;
    for (int step = 0; step < 24; ++step) {
      if (const Atom* found = floor_of(f)) {
        const Atom atom = *found;
        const Form d = atom.floor->denominator;
        Form c, rest;
        if (!split(f, atom, c, rest) || !at_least(d, 1)) return false;
        // d*f = d*rest + c*(numerator - r), 0 <= r <= d - 1.
        const bool up = at_least(c, 0), down = at_least(-c, 0);
        if (!up && !down) return false;
        const MaybeForm scaled = multiply(d, rest), moved = multiply(c, atom.floor->numerator);
        const MaybeForm remainder = up ? multiply(c, d - Form(1)) : MaybeForm(Form(0));
        if (!scaled || !moved || !remainder) return false;
        const MaybeForm sum = add(*scaled, *moved);
        const MaybeForm all = sum ? subtract(*sum, *remainder) : std::nullopt;
        if (!all) return false;
        // f is an integer, so d*f >= 1 - d is enough for a constant d.
        const auto constant = d.constant();
        if (step == 0 && constant) slack = 1 - *constant;
        else slack = 0;
        f = *all;
        continue;
      }
      if (const auto data = f.ids(AtomKind::Data); !data.empty()) {
        const auto stated = box.data(data.front());
        if (!stated || !replace(f, {AtomKind::Data, data.front(), nullptr}, stated->first, stated->second - Form(1))) return false;
        continue;
      }
      if (const auto indices = f.ids(AtomKind::Index); !indices.empty()) {
        if (!replace(f, {AtomKind::Index, indices.front(), nullptr}, Form(0), box.extent(indices.front()) - Form(1))) return false;
        continue;
      }
      return at_least(f, slack);
    }
    return false;
  }

  // Puts the end of [first, last] in the atom's place at which the form is least.
  bool replace(Form& f, const Atom& atom, const Form& first, const Form& last) const {
    Form c, rest;
    if (!split(f, atom, c, rest)) return false;
    const bool up = at_least(c, 0), down = !up && at_least(-c, 0);
    if (!up && !down) return false;
    const MaybeForm product = multiply(c, up ? first : last);
    const MaybeForm sum = product ? add(*product, rest) : std::nullopt;
    if (!sum) return false;
    f = *sum;
    return true;
  }
};

Prover prover(const Form& form, const Box& box) {
  Prover p{box, {}};
  for (int i : form.ids(AtomKind::Index)) {
    if (const auto s = box.extent(i).as_size()) p.positive_sizes.push_back(*s);
  }
  return p;
}

}  // namespace

bool always_non_negative(const Form& form, const Formula& given, const Box& box) {
  if (auto c = form.constant()) return *c >= 0;
  const Prover p = prover(form, box);
  if (p.non_negative(form)) return true;
  if (given.is_always() || given.cases().size() > 16) return false;
  for (const Conjunction& c : given.cases()) {
    bool proved = false;
    for (size_t i = 0; i < c.size() && i < 16 && !proved; ++i) {
      for (const int64_t sign : {1, -1}) {
        if (proved || (sign < 0 && c[i].relation == Relation::NonNegative)) continue;
        const MaybeForm signed_form = multiply(c[i].form, Form(sign));
        const MaybeForm less = signed_form ? subtract(form, *signed_form) : std::nullopt;
        if (!less) continue;
        Prover with = prover(form, box);
        for (int index : c[i].form.ids(AtomKind::Index)) {
          if (const auto s = box.extent(index).as_size()) with.positive_sizes.push_back(*s);
        }
        if (with.non_negative(*less)) proved = true;
        for (size_t j = i + 1; j < c.size() && j < 16 && !proved; ++j) {
          const MaybeForm twice = subtract(*less, c[j].form);
          if (twice && with.non_negative(*twice)) proved = true;
        }
      }
    }
    if (!proved) return false;
  }
  return true;
}

bool always(const Formula& formula, const Formula& given, const Box& box) {
  if (implies(given, formula)) return true;
  for (const Conjunction& c : formula.cases()) {
    bool all = true;
    for (const Constraint& k : c) {
      if (!always_non_negative(k.form, given, box) ||
          (k.relation == Relation::Zero && !always_non_negative(-k.form, given, box))) {
        all = false;
        break;
      }
    }
    if (all) return true;
  }
  // Two cases that share all but one constraint, of which one or the other holds: x >= k or x <= k - 1.
  if (formula.cases().size() >= 2 && formula.cases().size() <= 8) {
    if (const MaybeFormula not_held = negation(formula)) {
      bool none = true;
      for (const Conjunction& c : not_held->cases()) {
        bool refuted = false;
        for (const Constraint& k : c) {
          if (always_non_negative(-k.form - Form(1), given, box)) refuted = true;
        }
        if (!refuted) none = false;
      }
      return none;
    }
  }
  return false;
}

bool sometimes_negative(const Form& form, const Box& box) {
  if (auto c = form.constant()) return *c < 0;
  Form f = form;
  Prover p = prover(form, box);
  if (f.uses(AtomKind::Floor) || f.uses(AtomKind::Data)) return false;
  for (int i : form.ids(AtomKind::Index)) {
    const Form extent = box.extent(i);
    if (!p.at_least(extent, 1) && !extent.as_size()) return false;
    if (!p.replace(f, {AtomKind::Index, i, nullptr}, Form(0), extent - Form(1))) return false;
  }
  return p.at_least(-f, 1);
}

}  // namespace lemma::language
