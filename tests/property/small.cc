#include "tests/property/small.h"

#include "lemma/tensor/builder.h"

namespace lemma::property {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Builder;
using tensor::Draft;
using tensor::Value;
using view::Form;
using view::Formula;

namespace {

enum Fold { kMap, kSum, kMax, kMin, kProduct, kPlace, kFolds };
constexpr int kReads = 5, kDomains = 3, kSeconds = 4;

// The digits of a number, the least first.
struct Digits {
  uint64_t rest;
  int take(int radix) {
    const int digit = int(rest % uint64_t(radix));
    rest /= uint64_t(radix);
    return digit;
  }
};

Expr read(Builder& b, Draft& d, Value x, int how, Form i, Form j, const Form& rows, const Form& columns) {
  if (how == 0) return d.read(x, {i, j});
  if (how == 1) return d.read(x, {rows - Form(1) - i, j});
  const Form row = how == 2 ? j : how == 3 ? i - Form(1) : Form(2) * i;
  const Form column = how == 2 ? i : how == 3 ? j : Form::floor_div(j, Form(2));
  const Expr value = d.read(x, {row, column}, Formula::within(row, rows) && Formula::within(column, columns));
  return scalar::select(Draft::present(value), value, b.f32(0.5));
}

monoid::MonoidRef monoid_of(int fold) {
  switch (fold) {
    case kSum: return monoid::sum(Kind::F32);
    case kMax: return monoid::maximum(Kind::F32);
    case kMin: return monoid::minimum(Kind::F32);
    default: return monoid::product(Kind::F32);
  }
}

}  // namespace

uint64_t small_count() { return uint64_t(4 * 4 * kReads * kFolds * kDomains * kSeconds); }

Case small_case(uint64_t number) {
  Case out;
  out.family = Family::Small;
  out.seed = number;
  Digits digits{number};
  const int second = digits.take(kSeconds), fold = digits.take(kFolds), how = digits.take(kReads), where = digits.take(kDomains);
  out.sizes = {{"A", digits.take(4)}, {"B", digits.take(4)}};
  if (number % 3 == 0) out.constant = {"A", "B"};
  Builder b("small");
  const Form rows = b.size("A"), columns = b.size("B");
  const Value x = b.input("x", {rows, columns}), w = b.input("w", {columns, rows});
  Draft d = b.draft("y");
  const Form i = d.point("i", rows), j = fold == kMap ? d.point("j", columns) : d.reduce("j", columns);
  if (fold != kMap && where == 1) d.where(Formula::less_equal(j, i));
  if (fold != kMap && where == 2) d.where(Formula::equal(j, i));
  Expr e = read(b, d, x, how, i, j, rows, columns);
  if (fold == kMap && where > 0) e = scalar::select(scalar::binary(where == 1 ? Op::Le : Op::Eq, d.index(j), d.index(i)), e, b.f32(0));
  const Value y = fold == kMap ? d.map({e})
                : fold == kPlace ? d.fold(monoid::arg_maximum(Kind::F32), {e, d.index(j)})
                                 : d.fold(monoid_of(fold), {e});
  b.output("y", y);
  const auto of_y = [&](Draft& draft, const Form& i, const Form& j) {
    const Expr value = draft.read(y, fold == kMap ? std::vector<Form>{i, j} : std::vector<Form>{i});
    return scalar::cast(value, Kind::F32);
  };
  Draft z = b.draft("z");
  if (second == 1) {
    const Form p = z.point("p", rows), q = z.point("q", columns);
    const Expr a = of_y(z, p, q);
    b.output("z", z.map({a * b.f32(0.5) + z.read(x, {p, q})}));
  } else if (second == 2) {
    const Form q = z.point("q", columns), p = z.reduce("p", rows);
    const Expr a = of_y(z, p, q);
    b.output("z", z.fold(monoid::maximum(Kind::F32), {a - z.read(x, {p, q})}));
  } else if (second == 3) {
    const Form p = z.point("p", rows), r = z.point("r", rows), q = z.reduce("q", columns);
    const Expr a = of_y(z, p, q);
    b.output("z", z.fold(monoid::sum(Kind::F32), {scalar::max(a, b.f32(-100)) * z.read(w, {q, r})}));
  }
  out.symbolic = b.finish();
  return out;
}

}  // namespace lemma::property
