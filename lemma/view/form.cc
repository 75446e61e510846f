#include "lemma/view/form.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "lemma/base/check.h"
#include "lemma/view/floor.h"

namespace lemma::view {
namespace {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  LEMMA_CHECK(!__builtin_add_overflow(a, b, &out), "a form's coefficient leaves 64 bits");
  return out;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out;
  LEMMA_CHECK(!__builtin_mul_overflow(a, b, &out), "a form's coefficient leaves 64 bits");
  return out;
}

}  // namespace

bool operator==(const Atom& a, const Atom& b) {
  if (a.kind != b.kind || a.id != b.id) return false;
  if (a.kind != AtomKind::Floor) return true;
  return a.floor == b.floor || *a.floor == *b.floor;
}

std::strong_ordering operator<=>(const Atom& a, const Atom& b) {
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind != AtomKind::Floor) return a.id <=> b.id;
  if (a.floor == b.floor) return std::strong_ordering::equal;
  if (auto c = a.floor->numerator <=> b.floor->numerator; c != 0) return c;
  return a.floor->denominator <=> b.floor->denominator;
}

namespace {
// std::lexicographical_compare_three_way over factors.
std::strong_ordering compare(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (auto c = a[i] <=> b[i]; c != 0) return c;
  }
  return a.size() <=> b.size();
}
}  // namespace

std::strong_ordering operator<=>(const Form& a, const Form& b) {
  for (size_t i = 0; i < a.terms_.size() && i < b.terms_.size(); ++i) {
    if (auto c = compare(a.terms_[i].factors, b.terms_[i].factors); c != 0) return c;
    if (auto c = a.terms_[i].coefficient <=> b.terms_[i].coefficient; c != 0) return c;
  }
  return a.terms_.size() <=> b.terms_.size();
}

Form::Form(int64_t constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

Form Form::of_atom(Atom atom) {
  Form f;
  f.terms_.push_back({1, {std::move(atom)}});
  return f;
}
Form Form::index(int id) { return of_atom({AtomKind::Index, id, nullptr}); }
Form Form::size(int id) { return of_atom({AtomKind::Size, id, nullptr}); }
Form Form::data(int read) { return of_atom({AtomKind::Data, read, nullptr}); }

void Form::add(Term term) {
  if (term.coefficient == 0) return;
  auto it = std::lower_bound(terms_.begin(), terms_.end(), term,
                             [](const Term& a, const Term& b) { return compare(a.factors, b.factors) < 0; });
  if (it == terms_.end() || it->factors != term.factors) {
    terms_.insert(it, std::move(term));
    return;
  }
  it->coefficient = checked_add(it->coefficient, term.coefficient);
  if (it->coefficient == 0) terms_.erase(it);
}

Form operator+(const Form& a, const Form& b) {
  Form out;
  out.terms_.reserve(a.terms_.size() + b.terms_.size());
  size_t i = 0, j = 0;
  while (i < a.terms_.size() || j < b.terms_.size()) {
    const auto order = i == a.terms_.size()   ? std::strong_ordering::greater
                       : j == b.terms_.size() ? std::strong_ordering::less
                                              : compare(a.terms_[i].factors, b.terms_[j].factors);
    if (order < 0) {
      out.terms_.push_back(a.terms_[i++]);
    } else if (order > 0) {
      out.terms_.push_back(b.terms_[j++]);
    } else {
      const int64_t sum = checked_add(a.terms_[i].coefficient, b.terms_[j].coefficient);
      if (sum != 0) out.terms_.push_back({sum, a.terms_[i].factors});
      ++i, ++j;
    }
  }
  return out;
}

Form Form::operator-() const {
  Form out = *this;
  for (Term& t : out.terms_) t.coefficient = checked_mul(t.coefficient, -1);
  return out;
}

Form operator-(const Form& a, const Form& b) { return a + (-b); }

Form operator*(const Form& a, const Form& b) {
  Form out;
  for (const Term& x : a.terms_) {
    for (const Term& y : b.terms_) {
      Term t{checked_mul(x.coefficient, y.coefficient), {}};
      t.factors.resize(x.factors.size() + y.factors.size());
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(), t.factors.begin(),
                 [](const Atom& p, const Atom& q) { return (p <=> q) < 0; });
      out.add(std::move(t));
    }
  }
  return out;
}

namespace {

// What divides what, for the canonical form of floors.
struct Parts {
  Form whole;  // multiples of the denominator, divided by it
  Form rest;
};

// The term divided by the product `by` (of coefficient and atoms), if by divides it.
std::optional<Term> quotient(const Term& term, const Term& by) {
  if (term.coefficient % by.coefficient != 0) return std::nullopt;
  Term out{term.coefficient / by.coefficient, term.factors};
  for (const Atom& f : by.factors) {
    auto it = std::find(out.factors.begin(), out.factors.end(), f);
    if (it == out.factors.end()) return std::nullopt;
    out.factors.erase(it);
  }
  return out;
}

// The greatest positive integer that divides every coefficient.
int64_t content(const Form& form) {
  uint64_t g = 0;
  for (const Term& t : form.terms()) {
    g = std::gcd(g, t.coefficient < 0 ? 0 - uint64_t(t.coefficient) : uint64_t(t.coefficient));
  }
  return g > uint64_t(INT64_MAX) ? 1 : int64_t(g);
}

// A product of sizes with a positive coefficient: never negative.
bool is_size_product(const Form& form) {
  if (form.terms().size() != 1 || form.terms()[0].coefficient < 0) return false;
  const std::vector<Atom>& factors = form.terms()[0].factors;
  return std::all_of(factors.begin(), factors.end(), [](const Atom& a) { return a.kind == AtomKind::Size; });
}

}  // namespace

// Multiples of the denominator leave a floor: floor((d*x + r)/d) = x + floor(r/d). So does the constant's multiple of a
// constant d, so that equal forms are equal however they were written.
std::optional<Form> Form::leave_floor(const Form& numerator, const Form& denominator) {
  if (denominator.terms_.size() != 1) return std::nullopt;
  const Term& d = denominator.terms_[0];
  Parts parts;
  for (const Term& t : numerator.terms_) {
    if (auto q = quotient(t, d)) {
      parts.whole.add(std::move(*q));
    } else if (t.factors.empty() && d.factors.empty()) {
      const int64_t q = floor_quotient(t.coefficient, d.coefficient);
      parts.whole.add({q, {}});
      parts.rest.add({t.coefficient - q * d.coefficient, {}});
    } else {
      parts.rest.add(t);
    }
  }
  if (d.factors.empty() && parts.rest.is_constant()) return parts.whole;  // 0 <= rest < d
  if (parts.whole.terms_.empty()) return std::nullopt;
  return parts.whole + floor_div(parts.rest, denominator);
}

// floor((g*x + c)/(g*d)) = floor((x + floor(c/g))/d) for a constant g > 0; c is 0 unless d is constant.
std::optional<Form> Form::cancel_floor(const Form& numerator, const Form& denominator) {
  Form variable = numerator;
  int64_t constant = 0;
  if (denominator.is_constant() && !numerator.terms_.empty() && numerator.terms_[0].factors.empty()) {
    constant = numerator.terms_[0].coefficient;
    variable.terms_.erase(variable.terms_.begin());
  }
  const int64_t g = std::gcd(content(variable), content(denominator));
  if (g <= 1) return cancel_atom(numerator, denominator);
  Form d = denominator;
  for (Term& t : variable.terms_) t.coefficient /= g;
  for (Term& t : d.terms_) t.coefficient /= g;
  return floor_div(variable + Form(floor_quotient(constant, g)), d);
}

// floor(s*x/(s*d)) = floor(x/d) for an atom s.
std::optional<Form> Form::cancel_atom(const Form& numerator, const Form& denominator) {
  if (denominator.terms_.size() != 1) return std::nullopt;
  for (const Atom& s : denominator.terms_[0].factors) {
    const Term by{1, {s}};
    Form n;
    for (const Term& t : numerator.terms_) {
      if (auto q = quotient(t, by)) n.add(std::move(*q));
    }
    if (n.terms_.size() != numerator.terms_.size()) continue;
    Form d;
    d.add(*quotient(denominator.terms_[0], by));
    return floor_div(n, d);
  }
  return std::nullopt;
}

// floor((floor(a/b) + c)/d) = floor((a + c*b)/(b*d)) for d >= 0 and, unless c = 0, a constant b > 0.
std::optional<Form> Form::nest_floor(const Form& numerator, const Form& denominator) {
  if (!is_size_product(denominator)) return std::nullopt;
  const int64_t c = numerator.constant_term();
  if (numerator.terms_.size() != (c == 0 ? 1u : 2u)) return std::nullopt;
  const Term& t = numerator.terms_.back();
  if (t.coefficient != 1 || t.factors.size() != 1 || t.factors[0].kind != AtomKind::Floor) return std::nullopt;
  const FloorParts& inner = *t.factors[0].floor;
  const std::optional<int64_t> b = inner.denominator.constant();
  if (c != 0 && !(b && *b > 0)) return std::nullopt;
  // Stay far from overflow.
  if (content(inner.denominator) > INT32_MAX || content(denominator) > INT32_MAX || std::llabs(c) > INT32_MAX ||
      inner.denominator.terms_.size() != 1) {
    return std::nullopt;
  }
  const Form shift = c == 0 ? Form() : Form(c * *b);
  if (std::llabs(inner.numerator.constant_term()) > INT64_MAX / 2 || std::llabs(shift.constant_term()) > INT64_MAX / 2) {
    return std::nullopt;
  }
  return floor_div(inner.numerator + shift, inner.denominator * denominator);
}

Form Form::floor_div(const Form& numerator, const Form& denominator) {
  const auto d = denominator.constant();
  const auto n = numerator.constant();
  if (d && *d == 0) return 0;
  if (d && n) return floor_quotient(*n, *d);
  if (d && *d == 1) return numerator;
  if (d && *d == -1) return -numerator;
  if (numerator.terms_.empty()) return 0;
  if (denominator.terms_.back().coefficient < 0) return floor_div(-numerator, -denominator);
  if (numerator == denominator) return 1;
  if (auto simpler = leave_floor(numerator, denominator)) return *std::move(simpler);
  if (auto simpler = cancel_floor(numerator, denominator)) return *std::move(simpler);
  if (auto simpler = nest_floor(numerator, denominator)) return *std::move(simpler);
  return of_atom({AtomKind::Floor, 0, std::make_shared<const FloorParts>(FloorParts{numerator, denominator})});
}

Form Form::mod(const Form& a, const Form& b) {
  if (auto d = b.constant(); d && *d == 0) return 0;
  return a - b * floor_div(a, b);
}

Form Form::ceil_div(const Form& a, const Form& b) {
  if (auto d = b.constant(); d && *d < 0) return -floor_div(a, -b);
  return floor_div(a + b - Form(1), b);
}

std::optional<int64_t> Form::constant() const {
  if (terms_.empty()) return 0;
  if (is_constant()) return terms_[0].coefficient;
  return std::nullopt;
}

int64_t Form::constant_term() const {
  return !terms_.empty() && terms_[0].factors.empty() ? terms_[0].coefficient : 0;
}

std::optional<int> Form::as_index() const {
  if (terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].factors.size() == 1 &&
      terms_[0].factors[0].kind == AtomKind::Index) {
    return terms_[0].factors[0].id;
  }
  return std::nullopt;
}
bool Form::is_index() const { return as_index().has_value(); }

std::optional<int> Form::as_size() const {
  if (terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].factors.size() == 1 &&
      terms_[0].factors[0].kind == AtomKind::Size) {
    return terms_[0].factors[0].id;
  }
  return std::nullopt;
}

namespace {
template <class F>
bool any_atom(const Form& form, const F& f) {
  for (const Term& t : form.terms()) {
    for (const Atom& a : t.factors) {
      if (a.kind == AtomKind::Floor) {
        if (any_atom(a.floor->numerator, f) || any_atom(a.floor->denominator, f)) return true;
      } else if (f(a)) {
        return true;
      }
    }
  }
  return false;
}
}  // namespace

bool Form::uses(AtomKind kind) const {
  if (kind == AtomKind::Floor) {
    for (const Term& t : terms_) {
      for (const Atom& a : t.factors) {
        if (a.kind == AtomKind::Floor) return true;
      }
    }
    return false;
  }
  return any_atom(*this, [&](const Atom& a) { return a.kind == kind; });
}

bool Form::uses(AtomKind kind, int id) const {
  return any_atom(*this, [&](const Atom& a) { return a.kind == kind && a.id == id; });
}

std::vector<int> Form::ids(AtomKind kind) const {
  std::vector<int> out;
  any_atom(*this, [&](const Atom& a) {
    if (a.kind == kind) out.push_back(a.id);
    return false;
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<Form::Split> Form::split(int index) const {
  Split out;
  for (const Term& t : terms_) {
    int power = 0;
    Term without{t.coefficient, {}};
    for (const Atom& a : t.factors) {
      if (a.kind == AtomKind::Index && a.id == index) {
        ++power;
      } else {
        if (a.kind == AtomKind::Floor &&
            (a.floor->numerator.uses(AtomKind::Index, index) || a.floor->denominator.uses(AtomKind::Index, index))) {
          return std::nullopt;
        }
        without.factors.push_back(a);
      }
    }
    if (power > 1) return std::nullopt;
    (power == 1 ? out.coefficient : out.rest).add(std::move(without));
  }
  return out;
}

Form Form::substitute(const Substitution& f) const {
  Form out;
  for (const Term& t : terms_) {
    Form product(t.coefficient);
    for (const Atom& a : t.factors) {
      if (a.kind == AtomKind::Floor) {
        product = product * floor_div(a.floor->numerator.substitute(f), a.floor->denominator.substitute(f));
      } else if (auto by = f(a)) {
        product = product * *by;
      } else {
        product = product * of_atom(a);
      }
    }
    out = out + product;
  }
  return out;
}

Form Form::substitute_index(int id, const Form& by) const {
  return substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index && a.id == id) return by;
    return std::nullopt;
  });
}

Form Form::map_indices(const std::function<Form(int)>& f) const {
  return substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index) return f(a.id);
    return std::nullopt;
  });
}

Form Form::map_data(const std::function<int(int)>& f) const {
  return substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Data) return Form::data(f(a.id));
    return std::nullopt;
  });
}

int64_t Form::evaluate(const Lookup& f) const {
  // Wraps like the machine does: bad data read at run time must not stop the process.
  uint64_t sum = 0;
  for (const Term& t : terms_) {
    uint64_t product = uint64_t(t.coefficient);
    for (const Atom& a : t.factors) {
      const int64_t v = a.kind == AtomKind::Floor
                            ? floor_quotient(a.floor->numerator.evaluate(f), a.floor->denominator.evaluate(f))
                            : f(a);
      product *= uint64_t(v);
    }
    sum += product;
  }
  return int64_t(sum);
}

}  // namespace lemma::view
