// Domains: Presburger-like formulas in disjunctive normal form over forms. A value exists only on its domain.
#pragma once

#include <string>
#include <vector>

#include "lemma/view/form.h"

namespace lemma::view {

enum class Relation : uint8_t { NonNegative, Zero };  // form >= 0, form == 0

struct Constraint {
  Form form;
  Relation relation = Relation::NonNegative;
  bool operator==(const Constraint&) const = default;
  friend std::strong_ordering operator<=>(const Constraint&, const Constraint&) = default;
};

using Conjunction = std::vector<Constraint>;          // sorted, each once; empty holds everywhere

class Formula {
 public:
  Formula() : cases_{Conjunction{}} {}                // true
  static Formula always() { return {}; }
  static Formula never();
  static Formula non_negative(Form form);             // form >= 0
  static Formula zero(Form form);
  static Formula less(const Form& a, const Form& b) { return non_negative(b - a - Form(1)); }
  static Formula less_equal(const Form& a, const Form& b) { return non_negative(b - a); }
  static Formula equal(const Form& a, const Form& b) { return zero(a - b); }
  static Formula within(const Form& a, const Form& extent);  // 0 <= a < extent

  const std::vector<Conjunction>& cases() const { return cases_; }
  bool is_always() const;                             // syntactically
  bool is_never() const { return cases_.empty(); }

  friend Formula operator&&(const Formula& a, const Formula& b);
  friend Formula operator||(const Formula& a, const Formula& b);
  Formula operator!() const;
  bool operator==(const Formula&) const = default;

  Formula substitute(const Form::Substitution& f) const;
  Formula map_indices(const std::function<Form(int)>& f) const;
  Formula map_data(const std::function<int(int)>& f) const;
  bool uses(AtomKind kind, int id) const;
  bool uses(AtomKind kind) const;
  std::vector<int> ids(AtomKind kind) const;
  bool evaluate(const Form::Lookup& f) const;

 private:
  std::vector<Conjunction> cases_;                    // sorted, each once, none subsumed by an empty one; none is false
};

std::string print(const Formula& formula, const Names& names);  // "j <= i and j > i - 4 or j == 0"

}  // namespace lemma::view
