// What is known of a form whose atoms lie in intervals: its own interval, and the floors this decides.
#include <algorithm>
#include <numeric>

#include "lemma/view/floor.h"
#include "lemma/view/form.h"

namespace lemma::view {
namespace {

using Bound = std::optional<int64_t>;

Bound add_bound(Bound a, Bound b) {
  int64_t out;
  if (!a || !b || __builtin_add_overflow(*a, *b, &out)) return std::nullopt;
  return out;
}

// An end of an interval in products: a value, or without one -inf or +inf. 0 * inf is 0: the other factor can be 0.
struct End {
  Bound value;
  int infinite = 0;  // sign
  int sign() const { return value ? (*value > 0) - (*value < 0) : infinite; }
};

End times(const End& a, const End& b) {
  const int sign = a.sign() * b.sign();
  if (sign == 0) return {0, 0};
  int64_t out;
  if (a.value && b.value && !__builtin_mul_overflow(*a.value, *b.value, &out)) return {out, 0};
  return {std::nullopt, sign};
}

bool before(const End& a, const End& b) {
  const int x = a.value ? 0 : a.infinite, y = b.value ? 0 : b.infinite;
  return x != y ? x < y : x == 0 && *a.value < *b.value;
}

Range multiply(const Range& a, const Range& b) {
  const End ends_a[] = {{a.low, -1}, {a.high, 1}}, ends_b[] = {{b.low, -1}, {b.high, 1}};
  End low{std::nullopt, 1}, high{std::nullopt, -1};
  for (const End& x : ends_a) {
    for (const End& y : ends_b) {
      const End p = times(x, y);
      if (before(p, low)) low = p;
      if (before(high, p)) high = p;
    }
  }
  return {low.value, high.value};
}

// Of floor(n / d) with d >= 1 (d.low may be less; those d are not meant).
Range divide(const Range& n, const Range& d) {
  const int64_t least = d.low && *d.low > 1 ? *d.low : 1;
  Range r;
  if (n.low) r.low = *n.low < 0 ? floor_quotient(*n.low, least) : d.high ? floor_quotient(*n.low, std::max(*d.high, least)) : 0;
  if (n.high) {
    r.high = *n.high >= 0 ? floor_quotient(*n.high, least)
             : d.high     ? floor_quotient(*n.high, std::max(*d.high, least))
                          : -1;
  }
  return r;
}

Range floor_range(const FloorParts& floor, const Ranges& ranges) {
  const Range n = range(floor.numerator, ranges), d = range(floor.denominator, ranges);
  if (!d.low || *d.low < 0) return {};
  Range r = divide(n, d);
  if (*d.low == 0) {  // x // 0 is 0
    if (r.low) r.low = std::min<int64_t>(*r.low, 0);
    if (r.high) r.high = std::max<int64_t>(*r.high, 0);
  }
  return r;
}

Form leaf(const Atom& a) {
  switch (a.kind) {
    case AtomKind::Index: return Form::index(a.id);
    case AtomKind::Size: return Form::size(a.id);
    case AtomKind::Data: return Form::data(a.id);
    case AtomKind::Floor: break;
  }
  return Form::floor_div(a.floor->numerator, a.floor->denominator);
}

Form product_of(const Term& t) {
  Form out(t.coefficient);
  for (const Atom& a : t.factors) out = out * leaf(a);
  return out;
}

// floor((g*x + r)/(g*d)) = floor(x/d) for 0 <= r < g: tries as g what each term's coefficient shares with d.
std::optional<Form> drop_small_part(const Form& n, int64_t d, const Ranges& ranges) {
  for (const Term& candidate : n.terms()) {
    const int64_t g = std::gcd(candidate.coefficient, d);
    if (g <= 1 || candidate.factors.empty()) continue;
    Form multiples, rest;
    for (const Term& t : n.terms()) {
      const bool whole = t.coefficient % g == 0;
      (whole ? multiples : rest) = (whole ? multiples : rest) + product_of(t);
    }
    const Range r = range(rest, ranges);
    if (rest == Form() || !r.low || !r.high || *r.low < 0 || *r.high >= g) continue;
    return Form::floor_div(Form::floor_div(multiples, Form(g)), Form(d / g));
  }
  return std::nullopt;
}

Form simplify_floor(const FloorParts& floor, const Ranges& ranges) {
  const Form n = simplify(floor.numerator, ranges), d = simplify(floor.denominator, ranges);
  // 0 <= n < d decides the floor; d - n may be simpler to bound than n and d apart.
  const Range low = range(n, ranges), gap = range(d - n, ranges);
  if (low.low && *low.low >= 0 && gap.low && *gap.low >= 1) return 0;
  const Range all = floor_range({n, d}, ranges);
  if (all.low && all.low == all.high) return *all.low;
  if (auto c = d.constant(); c && *c > 1) {
    if (auto simpler = drop_small_part(n, *c, ranges)) return simplify(*simpler, ranges);
  }
  const Form out = Form::floor_div(n, d);
  // The parts changed: what left the floor may let the rest be decided.
  const bool changed = !(n == floor.numerator && d == floor.denominator);
  return changed ? simplify(out, ranges) : out;
}

}  // namespace

Range range(const Form& form, const Ranges& ranges) {
  Range sum{0, 0};
  for (const Term& t : form.terms()) {
    Range product{t.coefficient, t.coefficient};
    for (const Atom& a : t.factors) {
      product = multiply(product, a.kind == AtomKind::Floor ? floor_range(*a.floor, ranges) : ranges(a));
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
      product = product * (a.kind == AtomKind::Floor ? simplify_floor(*a.floor, ranges) : leaf(a));
    }
    out = out + product;
  }
  return out;
}

}  // namespace lemma::view
