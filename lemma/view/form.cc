#include "lemma/view/form.h"

#include <algorithm>

#include "lemma/base/check.h"

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

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return -a;
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// Divides every coefficient by d where all are divisible; d > 0.
bool divisible(const Term& t, int64_t d) { return t.coefficient % d == 0; }

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
  Form out = a;
  for (const Term& t : b.terms_) out.add(t);
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

Form Form::floor_div(const Form& numerator, const Form& denominator) {
  const auto d = denominator.constant();
  const auto n = numerator.constant();
  if (d && *d == 0) return 0;
  if (d && n) return floor_quotient(*n, *d);
  if (d && *d == 1) return numerator;
  if (d && *d == -1) return -numerator;
  if (numerator.terms_.empty()) return 0;
  if (d && *d < 0) return floor_div(-numerator, -*d);
  if (d) {
    // Terms whose coefficient d divides leave the floor: floor((d*x + r)/d) = x + floor(r/d). The constant leaves its
    // multiple of d, so that equal forms are equal however they were written.
    Form whole, rest;
    for (const Term& t : numerator.terms_) {
      if (divisible(t, *d)) {
        whole.add({t.coefficient / *d, t.factors});
      } else if (t.factors.empty()) {
        const int64_t q = floor_quotient(t.coefficient, *d);
        whole.add({q, {}});
        rest.add({t.coefficient - q * *d, {}});
      } else {
        rest.add(t);
      }
    }
    if (rest.is_constant()) return whole;  // 0 <= rest < d
    if (!whole.terms_.empty()) return whole + floor_div(rest, denominator);
    // floor(floor(a/b)/d) = floor(a/(b*d)) for constants b, d > 0.
    if (rest.terms_.size() == 1 && rest.terms_[0].coefficient == 1 && rest.terms_[0].factors.size() == 1 &&
        rest.terms_[0].factors[0].kind == AtomKind::Floor) {
      const FloorParts& inner = *rest.terms_[0].factors[0].floor;
      if (auto b = inner.denominator.constant(); b && *b > 0) {
        return floor_div(inner.numerator, Form(checked_mul(*b, *d)));
      }
    }
  } else {
    // A symbolic denominator d that is a single atom or product: multiples of it leave the floor. d != 0 is not known,
    // and floor(x/0) is 0, so the rule is right only where the size is not zero; a zero size has no points to read.
    if (denominator.terms_.size() == 1 && denominator.terms_[0].coefficient == 1) {
      const std::vector<Atom>& factors = denominator.terms_[0].factors;
      Form whole, rest;
      for (const Term& t : numerator.terms_) {
        std::vector<Atom> left = t.factors;
        bool all = true;
        for (const Atom& f : factors) {
          auto it = std::find(left.begin(), left.end(), f);
          if (it == left.end()) { all = false; break; }
          left.erase(it);
        }
        if (all) whole.add({t.coefficient, left});
        else rest.add(t);
      }
      if (rest.terms_.empty()) return whole;
      if (!whole.terms_.empty()) return whole + floor_div(rest, denominator);
    }
    if (numerator == denominator) return 1;
  }
  Atom atom{AtomKind::Floor, 0, std::make_shared<const FloorParts>(FloorParts{numerator, denominator})};
  return of_atom(std::move(atom));
}

Form Form::mod(const Form& a, const Form& b) {
  if (auto d = b.constant(); d && *d == 0) return 0;
  return a - b * floor_div(a, b);
}

Form Form::ceil_div(const Form& a, const Form& b) { return floor_div(a + b - Form(1), b); }

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

namespace {

std::string print_sum(const Form& form, const Names& names);

std::string print_atom(const Atom& a, const Names& names) {
  switch (a.kind) {
    case AtomKind::Index: return names.index(a.id);
    case AtomKind::Size: return names.size(a.id);
    case AtomKind::Data: return names.data(a.id);
    case AtomKind::Floor: break;
  }
  auto operand = [&](const Form& f) {
    const std::string text = print_sum(f, names);
    const bool simple = f.is_index() || f.as_size() || (f.is_constant() && f.constant_term() >= 0) ||
                        (f.terms().size() == 1 && f.terms()[0].coefficient == 1 && f.terms()[0].factors.size() == 1 &&
                         f.terms()[0].factors[0].kind == AtomKind::Data);
    return simple ? text : "(" + text + ")";
  };
  return "(" + operand(a.floor->numerator) + " // " + operand(a.floor->denominator) + ")";
}

std::string print_sum(const Form& form, const Names& names) {
  // Sizes sort first and the constant before them; people expect indices first and the constant last.
  std::vector<const Term*> order;
  for (const Term& t : form.terms()) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const Term* a, const Term* b) {
    auto rank = [](const Term* t) {
      if (t->factors.empty()) return 2;
      for (const Atom& f : t->factors) {
        if (f.kind != AtomKind::Size) return 0;
      }
      return 1;
    };
    const bool negative_a = a->coefficient < 0, negative_b = b->coefficient < 0;
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return !negative_a && negative_b;
  });
  std::string out;
  for (const Term* t : order) {
    int64_t c = t->coefficient;
    if (out.empty()) {
      if (c < 0) out += "-";
    } else {
      out += c < 0 ? " - " : " + ";
    }
    const uint64_t magnitude = c < 0 ? 0 - uint64_t(c) : uint64_t(c);
    std::string product;
    if (magnitude != 1 || t->factors.empty()) product = std::to_string(magnitude);
    for (const Atom& a : t->factors) product += (product.empty() ? "" : "*") + print_atom(a, names);
    out += product;
  }
  return out.empty() ? "0" : out;
}

}  // namespace

std::string print(const Form& form, const Names& names) { return print_sum(form, names); }

namespace {

using Bound = std::optional<int64_t>;

Bound add_bound(Bound a, Bound b) {
  int64_t out;
  if (!a || !b || __builtin_add_overflow(*a, *b, &out)) return std::nullopt;
  return out;
}

Range multiply(const Range& a, const Range& b) {
  // Without all four ends only the signs can be used.
  if (a.low && a.high && b.low && b.high) {
    Range out;
    bool first = true;
    for (int64_t x : {*a.low, *a.high}) {
      for (int64_t y : {*b.low, *b.high}) {
        int64_t p;
        if (__builtin_mul_overflow(x, y, &p)) return {};
        out.low = first ? p : std::min(*out.low, p);
        out.high = first ? p : std::max(*out.high, p);
        first = false;
      }
    }
    return out;
  }
  if ((a.low == Bound(0) && a.high == Bound(0)) || (b.low == Bound(0) && b.high == Bound(0))) return {0, 0};
  const bool positive_a = a.low && *a.low >= 0, positive_b = b.low && *b.low >= 0;
  if (positive_a && positive_b) {
    int64_t low;
    return {__builtin_mul_overflow(*a.low, *b.low, &low) ? 0 : low, std::nullopt};
  }
  const bool negative_a = a.high && *a.high <= 0, negative_b = b.high && *b.high <= 0;
  if ((positive_a && negative_b) || (negative_a && positive_b)) {
    const int64_t x = positive_a ? *a.low : *a.high, y = positive_b ? *b.low : *b.high;
    int64_t high;
    return {std::nullopt, __builtin_mul_overflow(x, y, &high) ? 0 : high};
  }
  return {};
}

}  // namespace

Range range(const Form& form, const Ranges& ranges) {
  Range sum{0, 0};
  for (const Term& t : form.terms()) {
    Range product{t.coefficient, t.coefficient};
    for (size_t i = 0; i < t.factors.size(); ++i) {
      const Atom& a = t.factors[i];
      Range r;
      if (a.kind == AtomKind::Floor) {
        const Range n = range(a.floor->numerator, ranges), d = range(a.floor->denominator, ranges);
        if (d.low && *d.low > 0) {
          if (n.low) r.low = *n.low >= 0 ? (d.high ? floor_quotient(*n.low, *d.high) : 0) : floor_quotient(*n.low, *d.low);
          if (n.high) r.high = *n.high >= 0 ? Bound(floor_quotient(*n.high, *d.low))
                                            : (d.high ? Bound(floor_quotient(*n.high, *d.high)) : Bound(-1));
        }
      } else {
        r = ranges(a);
      }
      product = multiply(product, r);
    }
    sum = {add_bound(sum.low, product.low), add_bound(sum.high, product.high)};
  }
  return sum;
}

Form simplify(const Form& form, const Ranges& ranges) {
  Form out;
  for (const Term& t : form.terms()) {
    Form product(t.coefficient);
    for (const Atom& a : t.factors) {
      Form factor;
      if (a.kind == AtomKind::Floor) {
        const Form n = simplify(a.floor->numerator, ranges), d = simplify(a.floor->denominator, ranges);
        factor = Form::floor_div(n, d);
        // 0 <= n < d decides the floor; d - n may be simpler to bound than n and d apart.
        const Range low = range(n, ranges), gap = range(d - n, ranges);
        if (low.low && *low.low >= 0 && gap.low && *gap.low >= 1) factor = 0;
      } else {
        factor = a.kind == AtomKind::Index  ? Form::index(a.id)
                 : a.kind == AtomKind::Size ? Form::size(a.id)
                                            : Form::data(a.id);
      }
      product = product * factor;
    }
    out = out + product;
  }
  return out;
}

}  // namespace lemma::view
