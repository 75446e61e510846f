#include "lemma/view/formula.h"

#include <algorithm>
#include <numeric>

namespace lemma::view {
namespace {

int64_t gcd_of_coefficients(const Form& f) {
  int64_t g = 0;
  for (const Term& t : f.terms()) {
    if (!t.factors.empty()) g = std::gcd(g, t.coefficient);
  }
  return g;
}

// Canonical form: common factors leave, equalities have a positive leading coefficient. Nothing if it is false, an
// empty conjunction if it holds everywhere.
std::optional<Conjunction> normalise(Constraint c) {
  if (auto k = c.form.constant()) {
    const bool holds = c.relation == Relation::Zero ? *k == 0 : *k >= 0;
    return holds ? std::optional(Conjunction{}) : std::nullopt;
  }
  const int64_t g = gcd_of_coefficients(c.form);
  if (g > 1) {
    const int64_t k = c.form.constant_term();
    if (c.relation == Relation::Zero && k % g != 0) return std::nullopt;
    // g*x + k >= 0  <=>  x + floor(k/g) >= 0 over the integers; floor_div leaves exactly that.
    c.form = Form::floor_div(c.form, Form(g));
  }
  if (c.relation == Relation::Zero && c.form.terms().back().coefficient < 0) c.form = -c.form;
  return Conjunction{std::move(c)};
}

// Whether b, which holds, leaves anything to say of a: nothing if both cannot hold, false if b implies a.
std::optional<bool> needed_beside(const Constraint& a, const Constraint& b) {
  const std::optional<int64_t> difference = (a.form - b.form).constant();
  const std::optional<int64_t> sum = difference ? std::nullopt : (a.form + b.form).constant();
  if (!difference && !sum) return true;
  if (b.relation == Relation::Zero) {  // a.form is the constant difference or sum
    const int64_t value = difference ? *difference : *sum;
    if (a.relation == Relation::Zero ? value != 0 : value < 0) return std::nullopt;
    return false;
  }
  if (a.relation == Relation::Zero) return true;  // decided from the other side
  if (difference) return *difference < 0;
  if (*sum < 0) return std::nullopt;
  return true;
}

// Adds to a each constraint of b. Constraints whose forms differ, up to sign, by a constant: contradictions show,
// weaker ones leave.
std::optional<Conjunction> join(const Conjunction& a, const Conjunction& b) {
  Conjunction out = a;
  for (const Constraint& added : b) {
    bool needed = true;
    for (size_t i = 0; i < out.size() && needed; ++i) {
      const std::optional<bool> beside = out[i] == added ? std::optional(false) : needed_beside(added, out[i]);
      if (!beside) return std::nullopt;
      needed = *beside;
    }
    if (!needed) continue;
    Conjunction kept;
    for (Constraint& k : out) {
      const std::optional<bool> beside = needed_beside(k, added);
      if (!beside) return std::nullopt;
      if (*beside) kept.push_back(std::move(k));
    }
    kept.insert(std::lower_bound(kept.begin(), kept.end(), added), added);
    out = std::move(kept);
  }
  return out;
}

bool subsumes(const Conjunction& weak, const Conjunction& strong) {
  return std::includes(strong.begin(), strong.end(), weak.begin(), weak.end());
}

std::vector<Conjunction> tidy(std::vector<Conjunction> cases) {
  std::sort(cases.begin(), cases.end(), [](const Conjunction& a, const Conjunction& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  });
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  std::vector<Conjunction> out;
  for (size_t i = 0; i < cases.size(); ++i) {
    bool needed = true;
    for (size_t j = 0; j < cases.size() && needed; ++j) {
      if (i != j && subsumes(cases[j], cases[i])) needed = false;
    }
    if (needed) out.push_back(cases[i]);
  }
  return out;
}

}  // namespace

Formula Formula::never() {
  Formula f;
  f.cases_.clear();
  return f;
}

Formula Formula::non_negative(Form form) {
  Formula f = never();
  if (auto c = normalise({std::move(form), Relation::NonNegative})) f.cases_.push_back(std::move(*c));
  return f;
}

Formula Formula::zero(Form form) {
  Formula f = never();
  if (auto c = normalise({std::move(form), Relation::Zero})) f.cases_.push_back(std::move(*c));
  return f;
}

Formula Formula::within(const Form& a, const Form& extent) { return non_negative(a) && less(a, extent); }

bool Formula::is_always() const { return cases_.size() == 1 && cases_[0].empty(); }

Formula operator&&(const Formula& a, const Formula& b) {
  Formula out = Formula::never();
  for (const Conjunction& x : a.cases_) {
    for (const Conjunction& y : b.cases_) {
      if (auto c = join(x, y)) out.cases_.push_back(std::move(*c));
    }
  }
  out.cases_ = tidy(std::move(out.cases_));
  return out;
}

Formula operator||(const Formula& a, const Formula& b) {
  Formula out;
  out.cases_ = a.cases_;
  out.cases_.insert(out.cases_.end(), b.cases_.begin(), b.cases_.end());
  out.cases_ = tidy(std::move(out.cases_));
  return out;
}

Formula Formula::operator!() const {
  Formula out;  // true
  for (const Conjunction& c : cases_) {
    Formula any = never();
    for (const Constraint& k : c) {
      // not (f >= 0) is -f - 1 >= 0; not (f == 0) is f >= 1 or f <= -1.
      if (k.relation == Relation::NonNegative) any = any || non_negative(-k.form - Form(1));
      else any = any || non_negative(k.form - Form(1)) || non_negative(-k.form - Form(1));
    }
    out = out && any;
  }
  return out;
}

Formula Formula::substitute(const Form::Substitution& f) const {
  Formula out = never();
  for (const Conjunction& c : cases_) {
    Formula all;
    for (const Constraint& k : c) {
      const Form form = k.form.substitute(f);
      all = all && (k.relation == Relation::Zero ? zero(form) : non_negative(form));
    }
    out = out || all;
  }
  return out;
}

Formula Formula::map_indices(const std::function<Form(int)>& f) const {
  return substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index) return f(a.id);
    return std::nullopt;
  });
}

Formula Formula::map_data(const std::function<int(int)>& f) const {
  return substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Data) return Form::data(f(a.id));
    return std::nullopt;
  });
}

bool Formula::uses(AtomKind kind, int id) const {
  for (const Conjunction& c : cases_) {
    for (const Constraint& k : c) {
      if (k.form.uses(kind, id)) return true;
    }
  }
  return false;
}

bool Formula::uses(AtomKind kind) const {
  for (const Conjunction& c : cases_) {
    for (const Constraint& k : c) {
      if (k.form.uses(kind)) return true;
    }
  }
  return false;
}

std::vector<int> Formula::ids(AtomKind kind) const {
  std::vector<int> out;
  for (const Conjunction& c : cases_) {
    for (const Constraint& k : c) {
      const std::vector<int> some = k.form.ids(kind);
      out.insert(out.end(), some.begin(), some.end());
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Formula::evaluate(const Form::Lookup& f) const {
  for (const Conjunction& c : cases_) {
    bool all = true;
    for (const Constraint& k : c) {
      const int64_t v = k.form.evaluate(f);
      if (k.relation == Relation::Zero ? v != 0 : v < 0) { all = false; break; }
    }
    if (all) return true;
  }
  return false;
}

}  // namespace lemma::view
