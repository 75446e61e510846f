// Integer forms: polynomials with integer coefficients over atoms, in canonical form. Extents, view coordinates, domain
// constraints and addresses are all forms, so symbolic sizes need no second mechanism.
//
// An atom is an index (a loop variable of whoever owns the form), a size symbol, the value of an integer read
// (Data: a gathered coordinate, `j < len[b]`), or floor(a / b) of two forms. a mod b is a - b * floor(a / b).
// floor(a / 0) is 0 for a constant 0. **Other denominators are taken to be nonzero** (and those of ceil_div positive):
// floor((S*x + r) / S) becomes x + floor(r / S), though at S = 0 the left side is 0. A shape that divides by a zero size
// has no points, so nothing is read there; whoever makes forms of user text with other denominators (data, indices)
// must know or guard that they are not zero (view::from_expr refuses them).
//
// Equality is structural and, over indices and sizes, decides equality of polynomials. Floors are canonical as far as
// stated at floor_div, no further. Coefficients are exact; overflow of 64 bits is a bug check and walks recurse into
// nested floors, so whoever makes forms of user text goes through checked.h, which bounds both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lemma::view {

class Form;

enum class AtomKind : uint8_t { Size, Index, Data, Floor };

struct FloorParts;

struct Atom {
  AtomKind kind = AtomKind::Index;
  int id = 0;                                // which size, index or read
  std::shared_ptr<const FloorParts> floor;   // for Floor
  friend bool operator==(const Atom& a, const Atom& b);
  friend std::strong_ordering operator<=>(const Atom& a, const Atom& b);
};

struct Term {
  int64_t coefficient = 0;
  std::vector<Atom> factors;                 // sorted; empty for the constant term
  bool operator==(const Term&) const = default;
};

class Form {
 public:
  Form() = default;                          // 0
  Form(int64_t constant);                    // NOLINT: integers are forms
  static Form index(int id);
  static Form size(int id);
  static Form data(int read);
  // Canonical: multiples of a one-term denominator leave (of a constant one also the constant's), common factors
  // cancel, floor((floor(a/b) + c)/d) becomes one floor where b and d are constants or products of sizes.
  static Form floor_div(const Form& numerator, const Form& denominator);
  static Form mod(const Form& a, const Form& b);
  static Form ceil_div(const Form& a, const Form& b);

  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].factors.empty()); }
  std::optional<int64_t> constant() const;   // its value if it is a constant
  int64_t constant_term() const;
  bool is_index() const;                     // exactly one index with coefficient 1
  std::optional<int> as_index() const;
  std::optional<int> as_size() const;

  bool uses(AtomKind kind) const;            // anywhere, floors included
  bool uses(AtomKind kind, int id) const;
  std::vector<int> ids(AtomKind kind) const; // sorted, each once

  // f = coefficient * index + rest with rest free of the index; nothing if the index stands in a floor or a power.
  struct Split;
  std::optional<Split> split(int index) const;

  friend Form operator+(const Form& a, const Form& b);
  friend Form operator-(const Form& a, const Form& b);
  friend Form operator*(const Form& a, const Form& b);
  Form operator-() const;
  friend bool operator==(const Form& a, const Form& b) = default;
  friend std::strong_ordering operator<=>(const Form& a, const Form& b);

  // Replaces atoms (not Floor atoms, whose parts are substituted and which are rebuilt); nothing keeps the atom.
  using Substitution = std::function<std::optional<Form>(const Atom&)>;
  Form substitute(const Substitution& f) const;
  Form substitute_index(int id, const Form& by) const;
  Form map_indices(const std::function<Form(int)>& f) const;
  Form map_data(const std::function<int(int)>& f) const;  // renumbers reads

  using Lookup = std::function<int64_t(const Atom&)>;     // never asked about Floor
  int64_t evaluate(const Lookup& f) const;

 private:
  static Form of_atom(Atom atom);
  static std::optional<Form> leave_floor(const Form& numerator, const Form& denominator);
  static std::optional<Form> cancel_floor(const Form& numerator, const Form& denominator);
  static std::optional<Form> cancel_atom(const Form& numerator, const Form& denominator);
  static std::optional<Form> nest_floor(const Form& numerator, const Form& denominator);
  void add(Term term);
  std::vector<Term> terms_;                  // sorted by factors, no zero coefficients
};

struct Form::Split {
  Form coefficient;
  Form rest;
};

struct FloorParts {
  Form numerator;
  Form denominator;
  bool operator==(const FloorParts&) const = default;
};

// What a name prints as; owners of indices, sizes and reads supply it.
struct Names {
  std::function<std::string(int)> index;
  std::function<std::string(int)> size;
  std::function<std::string(int)> data;
};
std::string print(const Form& form, const Names& names);  // "2*i + r - 1", "f // B", "3*(f % B)"; see print.cc

// An interval of integers; a missing side is unbounded.
struct Range {
  std::optional<int64_t> low;
  std::optional<int64_t> high;               // inclusive
  bool operator==(const Range&) const = default;
};
using Ranges = std::function<Range(const Atom&)>;          // never asked about Floor
Range range(const Form& form, const Ranges& ranges);       // sound, not tight

// Removes floors that `ranges` decides: a floor whose range is one value, floor(r/d) = 0 for 0 <= r < d, and
// floor((g*x + r)/(g*d)) = floor(x/d) for 0 <= r < g.
Form simplify(const Form& form, const Ranges& ranges);

}  // namespace lemma::view
