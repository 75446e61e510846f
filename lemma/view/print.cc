// Forms and formulas as text. A form prints indices first and its constant last; b*floor(a/b) beside a prints as a % b.
#include <algorithm>

#include "lemma/view/form.h"
#include "lemma/view/formula.h"

namespace lemma::view {
namespace {

// A summand as text: coefficient times product ("" for the constant).
struct Piece {
  int64_t coefficient = 0;
  std::string product;
  int rank = 0;  // 0: indices, data and floors; 1: sizes; 2: the constant
};

std::string print_sum(const std::vector<Piece>& pieces);
std::vector<Piece> pieces_of(Form form, const Names& names);

// A form as an operand of // or %.
std::string operand(const Form& f, const Names& names) {
  const bool name = f.terms().size() == 1 && f.terms()[0].coefficient == 1 && f.terms()[0].factors.size() == 1;
  const std::string text = print(f, names);
  return name || (f.is_constant() && f.constant_term() >= 0) ? text : "(" + text + ")";
}

std::string print_atom(const Atom& a, const Names& names) {
  switch (a.kind) {
    case AtomKind::Index: return names.index(a.id);
    case AtomKind::Size: return names.size(a.id);
    case AtomKind::Data: return names.data(a.id);
    case AtomKind::Floor: break;
  }
  return "(" + operand(a.floor->numerator, names) + " // " + operand(a.floor->denominator, names) + ")";
}

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

// The multiple c of (a mod b) that term -c*b*floor(a/b) of `form` completes: every variable term of c*a is there.
struct Modulus {
  int64_t multiple = 0;
  const FloorParts* floor = nullptr;
};

std::optional<Modulus> modulus(const Form& form, const Term& term) {
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
    if (all) return Modulus{c, &floor};
  }
  return std::nullopt;
}

std::vector<Piece> pieces_of(Form form, const Names& names) {
  std::vector<Piece> pieces;
  for (bool again = true; again;) {
    again = false;
    for (const Term& t : form.terms()) {
      const std::optional<Modulus> m = modulus(form, t);
      if (!m) continue;
      const std::string text = operand(m->floor->numerator, names) + " % " + operand(m->floor->denominator, names);
      pieces.push_back({m->multiple, "(" + text + ")", 0});
      form = form - Form(m->multiple) * m->floor->numerator - form_of(t);
      again = true;
      break;
    }
  }
  for (const Term& t : form.terms()) {
    Piece p{t.coefficient, "", t.factors.empty() ? 2 : 1};
    for (const Atom& a : t.factors) {
      p.product += (p.product.empty() ? "" : "*") + print_atom(a, names);
      if (a.kind != AtomKind::Size) p.rank = 0;
    }
    pieces.push_back(std::move(p));
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.coefficient > 0 && b.coefficient < 0;
  });
  return pieces;
}

// One pair of parentheses around it all: a lone (a // b) or (a % b) needs none.
bool is_enclosed(const std::string& text) {
  if (text.empty() || text.front() != '(') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

std::string print_sum(const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& p : pieces) {
    const bool negative = p.coefficient < 0;
    if (out.empty()) out += negative ? "-" : "";
    else out += negative ? " - " : " + ";
    const uint64_t magnitude = negative ? 0 - uint64_t(p.coefficient) : uint64_t(p.coefficient);
    if (magnitude != 1 || p.product.empty()) out += std::to_string(magnitude) + (p.product.empty() ? "" : "*");
    const bool bare = pieces.size() == 1 && magnitude == 1 && !negative && is_enclosed(p.product);
    out += bare ? p.product.substr(1, p.product.size() - 2) : p.product;
  }
  return out.empty() ? "0" : out;
}

std::string print_constraint(const Constraint& k, const Names& names) {
  // Pieces with negative coefficients go to the right, so that i - j >= 0 reads j <= i; a difference of one makes the
  // relation strict: i - j - 1 >= 0 reads j < i.
  std::vector<Piece> left, right;
  bool strict = false;
  for (Piece p : pieces_of(k.form, names)) {
    if (k.relation == Relation::NonNegative && p.product.empty() && p.coefficient == -1) {
      strict = true;
      continue;
    }
    if (p.coefficient > 0) {
      left.push_back(std::move(p));
    } else {
      p.coefficient = -p.coefficient;
      right.push_back(std::move(p));
    }
  }
  if (k.relation == Relation::Zero) {
    // The first index stands on the left, a lone 0 on the right.
    bool swap = left.empty();
    for (const Term& t : k.form.terms()) {
      if (swap || right.empty() || t.factors.empty() || t.factors[0].kind == AtomKind::Size) continue;
      swap = t.coefficient < 0;
      break;
    }
    if (swap) std::swap(left, right);
    return print_sum(left) + " == " + print_sum(right);
  }
  return print_sum(right) + (strict ? " < " : " <= ") + print_sum(left);
}

}  // namespace

std::string print(const Form& form, const Names& names) { return print_sum(pieces_of(form, names)); }

std::string print(const Formula& formula, const Names& names) {
  if (formula.is_never()) return "false";
  if (formula.is_always()) return "true";
  std::string out;
  for (const Conjunction& c : formula.cases()) {
    std::string all;
    for (const Constraint& k : c) all += (all.empty() ? "" : " and ") + print_constraint(k, names);
    out += (out.empty() ? "" : " or ") + all;
  }
  return out;
}

}  // namespace lemma::view
