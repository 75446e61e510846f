#include "lemma/view/solve.h"

#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/local_space.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <algorithm>
#include <map>
#include <memory>

#include "lemma/view/checked.h"

namespace lemma::view {
namespace {

constexpr unsigned long kMaxOperations = 300000;
constexpr size_t kMaxFacts = 200;
constexpr size_t kMaxFactors = 4;

// ---- Intervals answer most questions ----

// Whether a constraint holds everywhere (Yes), nowhere (No), or is undecided.
Answer decide(const Constraint& k, const Ranges& ranges) {
  const Range r = range(k.form, ranges);
  if (k.relation == Relation::NonNegative) {
    if (r.low && *r.low >= 0) return Answer::Yes;
    if (r.high && *r.high < 0) return Answer::No;
    return Answer::Unknown;
  }
  if ((r.low && *r.low > 0) || (r.high && *r.high < 0)) return Answer::No;
  return r.low == std::optional<int64_t>(0) && r.high == r.low ? Answer::Yes : Answer::Unknown;
}

// ---- What isl sees: one dimension for each atom and each opaque product ----

using Product = std::vector<Atom>;  // sorted factors
struct ProductLess {
  bool operator()(const Product& a, const Product& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const Atom& x, const Atom& y) { return (x <=> y) < 0; });
  }
};

bool is_affine_floor(const Atom& a) {
  if (a.kind != AtomKind::Floor) return false;
  const auto d = a.floor->denominator.constant();
  return d && *d > 0;
}

Form form_of(const Product& p) {
  Form out(1);
  for (const Atom& a : p) {
    out = out * (a.kind == AtomKind::Index  ? Form::index(a.id)
                 : a.kind == AtomKind::Size ? Form::size(a.id)
                 : a.kind == AtomKind::Data ? Form::data(a.id)
                                            : Form::floor_div(a.floor->numerator, a.floor->denominator));
  }
  return out;
}

class Dimensions {
 public:
  // Enters every atom and opaque product of a form.
  void enter(const Form& form) {
    for (const Term& t : form.terms()) {
      if (t.factors.empty()) continue;
      if (t.factors.size() == 1 && is_affine_floor(t.factors[0])) enter(t.factors[0].floor->numerator);
      else add(t.factors);
    }
  }
  void enter(const Formula& f) {
    for (const Conjunction& c : f.cases()) {
      for (const Constraint& k : c) enter(k.form);
    }
  }
  void add(const Product& p) {
    if (position_.emplace(p, int(products_.size())).second) products_.push_back(p);
  }
  // Whether a form needs no dimension that is not there.
  bool covers(const Form& form) const {
    for (const Term& t : form.terms()) {
      if (t.factors.empty()) continue;
      if (t.factors.size() == 1 && is_affine_floor(t.factors[0])) {
        if (!covers(t.factors[0].floor->numerator)) return false;
      } else if (!position_.count(t.factors)) {
        return false;
      }
    }
    return true;
  }
  int position(const Product& p) const { return position_.at(p); }
  const std::vector<Product>& all() const { return products_; }
  bool opaque() const {
    return std::any_of(products_.begin(), products_.end(),
                       [](const Product& p) { return p.size() > 1 || p[0].kind == AtomKind::Floor; });
  }

 private:
  std::vector<Product> products_;
  std::map<Product, int, ProductLess> position_;
};

// Enters what the facts about opaque dimensions speak of: the parts of floors and the divisors of products.
void enter_parts(Dimensions& dimensions) {
  for (size_t i = 0; i < dimensions.all().size(); ++i) {
    const Product p = dimensions.all()[i];
    for (const Atom& a : p) {
      if (a.kind != AtomKind::Floor) continue;
      dimensions.enter(a.floor->numerator);
      dimensions.enter(a.floor->denominator);
      if (auto product = checked_multiply(a.floor->denominator, form_of({a}))) dimensions.enter(*product);
    }
    if (p.size() > kMaxFactors) continue;
    for (unsigned subset = 1; subset + 1 < 1u << p.size(); ++subset) {
      Product part;
      for (size_t f = 0; f < p.size(); ++f) {
        if (subset >> f & 1) part.push_back(p[f]);
      }
      if (part.size() > 1 || !is_affine_floor(part[0])) dimensions.add(part);
    }
  }
}

// Sound facts about opaque dimensions.
std::vector<Constraint> facts_about(const Dimensions& dimensions, const Ranges& ranges) {
  std::vector<Constraint> facts;
  for (const Product& p : dimensions.all()) {
    if (p.size() != 1 || p[0].kind != AtomKind::Floor) continue;
    const Form &n = p[0].floor->numerator, &d = p[0].floor->denominator;
    const Range range_d = range(d, ranges), range_n = range(n, ranges);
    if (!range_d.low || *range_d.low < 1) continue;
    const Form left = n - d * form_of(p);  // n mod d
    facts.push_back({left, Relation::NonNegative});
    facts.push_back({d - left - Form(1), Relation::NonNegative});
    if (range_n.low && *range_n.low >= 0) facts.push_back({n - form_of(p), Relation::NonNegative});
  }
  return facts;
}

// The constraints times each non-negative size (and once more), as far as no new product arises.
void multiply_by_sizes(const Conjunction& given, const Dimensions& dimensions, const Ranges& ranges, Conjunction& out) {
  std::vector<Form> sizes;
  for (const Product& p : dimensions.all()) {
    if (p.size() != 1 || p[0].kind != AtomKind::Size) continue;
    const Range r = ranges(p[0]);
    if (r.low && *r.low >= 0) sizes.push_back(form_of(p));
  }
  Conjunction last = given;
  // The ranges of indices are given too.
  for (const Product& p : dimensions.all()) {
    if (p.size() != 1 || p[0].kind == AtomKind::Floor) continue;
    const Range r = ranges(p[0]);
    if (r.low) last.push_back({form_of(p) - Form(*r.low), Relation::NonNegative});
    if (r.high) last.push_back({Form(*r.high) - form_of(p), Relation::NonNegative});
  }
  for (int round = 0; round < 2; ++round) {
    Conjunction next;
    for (const Constraint& k : last) {
      for (const Form& s : sizes) {
        const auto product = checked_multiply(k.form, s);
        if (next.size() < kMaxFacts && product) next.push_back({*product, k.relation});
      }
    }
    for (const Constraint& k : next) {
      if (dimensions.covers(k.form)) out.push_back(k);
    }
    last = std::move(next);
  }
}

// ---- isl ----

template <class T, T* (*Free)(T*)>
struct Freer {
  void operator()(T* p) const { Free(p); }
};
using Aff = std::unique_ptr<isl_aff, Freer<isl_aff, isl_aff_free>>;
using Set = std::unique_ptr<isl_set, Freer<isl_set, isl_set_free>>;

class Isl {
 public:
  Isl(const Dimensions& dimensions, const Ranges& ranges, const Divisors& divisors)
      : context_(isl_ctx_alloc()), dimensions_(dimensions) {
    isl_options_set_on_error(context_, ISL_ON_ERROR_CONTINUE);
    isl_ctx_set_max_operations(context_, kMaxOperations);
    space_ = isl_space_set_alloc(context_, 0, unsigned(dimensions.all().size()));
    box_ = universe();
    for (const Product& p : dimensions.all()) {
      const Form f = form_of(p);
      const Range r = range(f, ranges);
      if (r.low) restrict_to(f, *r.low, 1);
      if (r.high) restrict_to(f, *r.high, -1);
      if (p.size() == 1 && p[0].kind == AtomKind::Size && divisors) {
        const int64_t d = divisors(p[0].id);
        if (d > 1) intersect(box_, {Form::mod(f, d), Relation::Zero});
      }
    }
  }
  ~Isl() {
    box_.reset();
    isl_space_free(space_);
    isl_ctx_free(context_);
  }
  Isl(const Isl&) = delete;
  Isl& operator=(const Isl&) = delete;

  Set universe() const { return Set(isl_set_universe(isl_space_copy(space_))); }
  Set box() const { return Set(isl_set_copy(box_.get())); }

  void intersect(Set& set, const Constraint& k) const {
    isl_aff* a = affine(k.form).release();
    // A negative aff is all isl 0.25 offers: f >= 0 is -f - 1 < 0.
    isl_basic_set* one = k.relation == Relation::Zero
                             ? isl_aff_zero_basic_set(a)
                             : isl_aff_neg_basic_set(isl_aff_add_constant_si(isl_aff_neg(a), -1));
    set.reset(isl_set_intersect(set.release(), isl_set_from_basic_set(one)));
  }
  void intersect(Set& set, const Conjunction& c) const {
    for (const Constraint& k : c) intersect(set, k);
  }
  // A bound was too large to state, so the box is larger than what is meant.
  bool relaxed() const { return relaxed_; }
  static void unite(Set& set, Set other) { set.reset(isl_set_union(set.release(), other.release())); }
  Set nothing() const { return Set(isl_set_empty(isl_space_copy(space_))); }

  static Answer answer(isl_bool b) {
    return b == isl_bool_error ? Answer::Unknown : b == isl_bool_true ? Answer::Yes : Answer::No;
  }
  static Answer is_empty(const Set& set) { return set ? answer(isl_set_is_empty(set.get())) : Answer::Unknown; }
  static Answer is_subset(const Set& a, const Set& b) {
    return a && b ? answer(isl_set_is_subset(a.get(), b.get())) : Answer::Unknown;
  }

 private:
  // sign * (f - bound) >= 0.
  void restrict_to(const Form& f, int64_t bound, int64_t sign) {
    if (std::abs(double(bound)) >= 0x1p60) relaxed_ = true;
    else intersect(box_, {Form(sign) * (f - Form(bound)), Relation::NonNegative});
  }

  isl_val* value(int64_t v) const { return isl_val_int_from_si(context_, long(v)); }

  // Recurses into floors; forms of user text are shallow (checked.h).
  Aff affine(const Form& form) const {
    isl_local_space* local = isl_local_space_from_space(isl_space_copy(space_));
    isl_aff* sum = isl_aff_zero_on_domain(isl_local_space_copy(local));
    for (const Term& t : form.terms()) {
      if (t.factors.empty()) {
        sum = isl_aff_add_constant_val(sum, value(t.coefficient));
        continue;
      }
      isl_aff* one;
      if (t.factors.size() == 1 && is_affine_floor(t.factors[0])) {
        const FloorParts& floor = *t.factors[0].floor;
        one = isl_aff_scale_down_val(affine(floor.numerator).release(), value(floor.denominator.constant_term()));
        one = isl_aff_floor(one);
      } else {
        one = isl_aff_var_on_domain(isl_local_space_copy(local), isl_dim_set, unsigned(dimensions_.position(t.factors)));
      }
      sum = isl_aff_add(sum, isl_aff_scale_val(one, value(t.coefficient)));
    }
    isl_local_space_free(local);
    return Aff(sum);
  }

  isl_ctx* context_;
  isl_space* space_;
  const Dimensions& dimensions_;
  Set box_;
  bool relaxed_ = false;
};

Conjunction all_facts(const Conjunction& given, const Dimensions& dimensions, const Ranges& ranges) {
  Conjunction facts;
  if (!dimensions.opaque()) return facts;
  for (Constraint& k : facts_about(dimensions, ranges)) {
    if (dimensions.covers(k.form)) facts.push_back(std::move(k));
  }
  Conjunction base = given;
  base.insert(base.end(), facts.begin(), facts.end());
  multiply_by_sizes(base, dimensions, ranges, facts);
  return facts;
}

bool syntactic(const Formula& given, const Formula& claim) {
  return std::all_of(given.cases().begin(), given.cases().end(), [&](const Conjunction& g) {
    return std::any_of(claim.cases().begin(), claim.cases().end(), [&](const Conjunction& c) {
      return std::includes(g.begin(), g.end(), c.begin(), c.end());
    });
  });
}

}  // namespace

Formula simplify(const Formula& formula, const Ranges& ranges) {
  Formula out = Formula::never();
  for (const Conjunction& c : formula.cases()) {
    Formula all;
    for (const Constraint& k : c) {
      const Form form = simplify(k.form, ranges);
      const Answer a = decide({form, k.relation}, ranges);
      if (a == Answer::Yes) continue;
      if (a == Answer::No) all = Formula::never();
      else all = all && (k.relation == Relation::Zero ? Formula::zero(form) : Formula::non_negative(form));
      if (all.is_never()) break;
    }
    out = out || all;
  }
  return out;
}

Answer implies(const Formula& given, const Formula& claim, const Ranges& ranges, const Divisors& divisors) {
  if (given.is_never() || claim.is_always() || syntactic(given, claim)) return Answer::Yes;
  const Formula g = simplify(given, ranges), c = simplify(claim, ranges);
  if (g.is_never() || c.is_always() || syntactic(g, c)) return Answer::Yes;

  Dimensions dimensions;
  dimensions.enter(g);
  dimensions.enter(c);
  enter_parts(dimensions);
  const Isl isl(dimensions, ranges, divisors);
  Set claimed = isl.nothing();
  for (const Conjunction& one : c.cases()) {
    Set set = isl.universe();
    isl.intersect(set, one);
    Isl::unite(claimed, std::move(set));
  }
  Answer all = Answer::Yes;
  for (const Conjunction& one : g.cases()) {
    Set set = isl.box();
    isl.intersect(set, one);
    isl.intersect(set, all_facts(one, dimensions, ranges));
    const Answer a = Isl::is_subset(set, claimed);
    if (a == Answer::No && !dimensions.opaque() && !isl.relaxed()) return Answer::No;
    if (a != Answer::Yes) all = Answer::Unknown;
  }
  return all;
}

Answer empty(const Formula& formula, const Ranges& ranges, const Divisors& divisors) {
  return implies(formula, Formula::never(), ranges, divisors);
}

// ---- Bounds and equalities ----

namespace {

void add_once(std::vector<Form>& forms, Form form) {
  if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(std::move(form));
}

// c * index + rest of a constraint that mentions the index only so, with a constant c.
struct Linear {
  int64_t coefficient;
  Form rest;
};
std::optional<Linear> linear_in(const Form& form, int index) {
  const auto split = form.split(index);
  if (!split) return std::nullopt;
  const auto c = split->coefficient.constant();
  if (!c || *c == 0) return std::nullopt;
  return Linear{*c, split->rest};
}

}  // namespace

Formula without_data(const Formula& formula) {
  if (!formula.uses(AtomKind::Data)) return formula;
  Formula out = Formula::never();
  for (const Conjunction& c : formula.cases()) {
    Formula all;
    for (const Constraint& k : c) {
      if (k.form.uses(AtomKind::Data)) continue;
      all = all && (k.relation == Relation::Zero ? Formula::zero(k.form) : Formula::non_negative(k.form));
    }
    out = out || all;
  }
  return out;
}

IndexBounds bounds(const Conjunction& conjunction, int index) {
  IndexBounds out;
  for (const Constraint& k : conjunction) {
    const auto linear = linear_in(k.form, index);
    if (!linear) {
      out.exact = out.exact && !k.form.uses(AtomKind::Index, index);
      out.rest.push_back(k);
      continue;
    }
    // c*v + r >= 0: v >= ceil(-r / c) for c > 0, v <= floor(r / -c) for c < 0; an equality is both.
    const auto& [c, r] = *linear;
    const bool equality = k.relation == Relation::Zero;
    const Form over = c > 0 ? -r : r, by = c > 0 ? c : -c;  // v >= or <= over / by
    if (equality || c > 0) add_once(out.lower, Form::ceil_div(over, by));
    if (equality || c < 0) add_once(out.upper, Form::floor_div(over, by) + Form(1));
  }
  return out;
}

std::optional<IndexBounds> bounds(const Formula& formula, int index) {
  if (formula.cases().size() != 1) return std::nullopt;
  return bounds(formula.cases()[0], index);
}

std::optional<Solution> solve_equality(const Form& form, int index, const Form& extent) {
  const auto linear = linear_in(form, index);
  if (!linear) return std::nullopt;
  const Form over = linear->coefficient > 0 ? -linear->rest : linear->rest;
  const int64_t by = linear->coefficient > 0 ? linear->coefficient : -linear->coefficient;
  const Form value = Form::floor_div(over, by);
  return Solution{value, Formula::zero(Form::mod(over, by)) && Formula::within(value, extent)};
}

}  // namespace lemma::view
