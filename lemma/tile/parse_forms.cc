// Integer forms and domains from surface expressions. The text may come from anywhere, so sizes of coefficients,
// polynomials and formulas are bounded here: what view's forms check as bugs cannot be reached.
#include <algorithm>
#include <limits>

#include "lemma/tile/parse_terms.h"

namespace lemma::tile {

using base::Result;
using syntax::Node;
using syntax::NodeId;
using syntax::NodeKind;
using view::Form;
using view::Formula;

namespace {

constexpr int64_t kLargest = int64_t(1) << 58;   // of a coefficient
constexpr size_t kMostTerms = 256;               // of a form
constexpr size_t kMostCases = 256;               // of a formula

int64_t magnitude(const Form& f) {
  int64_t out = 0;
  for (const view::Term& t : f.terms()) out = std::max(out, std::abs(t.coefficient));
  return out;
}

// The largest product of the denominators of floors nested in `f`, saturating: nested floors merge.
int64_t denominators(const Form& f) {
  int64_t out = 1;
  for (const view::Term& t : f.terms()) {
    for (const view::Atom& a : t.factors) {
      if (a.kind != view::AtomKind::Floor) continue;
      const int64_t inner = std::max<int64_t>(magnitude(a.floor->denominator), 1);
      int64_t product;
      if (__builtin_mul_overflow(inner, denominators(a.floor->numerator), &product)) return std::numeric_limits<int64_t>::max();
      out = std::max(out, product);
    }
  }
  return out;
}

}  // namespace

base::Diagnostic Terms::error(NodeId id, std::string message, std::string suggestion) const {
  return source_.error(tree_[id].place, std::move(message), std::move(suggestion));
}

base::Diagnostic Terms::unknown(NodeId id, const std::string& what) const {
  const std::string& name = tree_[id].text;
  const std::string near = syntax::nearest(name, scope.names());
  return error(id, "found the unknown name `" + name + "`, expected " + what,
               near.empty() ? "" : "did you mean `" + near + "`?");
}

Result<Form> Terms::bounded(NodeId id, const Form& form) const {
  if (magnitude(form) > kLargest) return error(id, "a coefficient here exceeds 2^58");
  if (form.terms().size() > kMostTerms) return error(id, "this integer form has more than " + std::to_string(kMostTerms) + " terms");
  return form;
}

Result<Form> Terms::multiply(NodeId id, const Form& a, const Form& b) const {
  int64_t largest;
  const bool overflow = __builtin_mul_overflow(magnitude(a), magnitude(b), &largest) ||
                        __builtin_mul_overflow(largest, int64_t(std::min(a.terms().size(), b.terms().size()) + 1), &largest);
  if (overflow || largest > kLargest) return error(id, "a coefficient here exceeds 2^58");
  if (a.terms().size() * b.terms().size() > kMostTerms) return error(id, "this integer form has more than " + std::to_string(kMostTerms) + " terms");
  size_t degree = 0;
  for (const Form* f : {&a, &b}) {
    size_t most = 0;
    for (const view::Term& t : f->terms()) most = std::max(most, t.factors.size());
    degree += most;
  }
  if (degree > 32) return error(id, "this integer form multiplies more than 32 factors");
  return a * b;
}

Result<Form> Terms::divide(NodeId id, const Form& a, const Form& b) const {
  int64_t merged;
  if (__builtin_mul_overflow(denominators(a), std::max<int64_t>(magnitude(b), 1), &merged) || merged > kLargest) {
    return error(id, "the denominators here exceed 2^58");
  }
  return bounded(id, Form::floor_div(a, b));
}

Result<Form> Terms::form(NodeId id) {
  const Node& node = tree_[id];
  switch (node.kind) {
    case NodeKind::Number:
      if (!node.integer_literal) return error(id, "found `" + node.text + "`, expected an integer");
      if (node.oversized || uint64_t(node.integer) > uint64_t(kLargest)) return error(id, "the integer `" + node.text + "` exceeds 2^58");
      return Form(int64_t(node.integer));
    case NodeKind::Negate: {
      LEMMA_TRY(const Form f, form(node.items[0]));
      return -f;
    }
    case NodeKind::Name: {
      const Meaning* m = scope.find(node.text);
      if (!m) return unknown(id, "an index or a size");
      if (const auto* s = std::get_if<SizeName>(m)) return Form::size(s->size);
      if (const auto* v = std::get_if<VariableName>(m)) return Form::index(v->variable);
      if (const auto* r = std::get_if<ReadName>(m)) return Form::data(r->read);
      return error(id, "found `" + node.text + "`, expected an index, a size or a read of integers");
    }
    case NodeKind::Read: {
      LEMMA_TRY(const int read, inline_read(id));
      return Form::data(read);
    }
    case NodeKind::Call: {
      if (leaves && (node.text == "axis" || node.text == "inner")) {
        LEMMA_TRY(const int n, number(id, size_t(node.text == "axis" ? leaves->axes : leaves->inner)));
        return Form::index(*index_leaf(tree_[id].text, n));
      }
      if (node.text != "ceildiv" || node.items.size() != 2 || node.body >= 0) {
        return error(id, "found the call `" + node.text + "`, and an integer form knows ceildiv(a, b) only");
      }
      const std::vector<NodeId> items = node.items;
      LEMMA_TRY(const Form a, form(items[0]));
      LEMMA_TRY(const Form b, form(items[1]));
      LEMMA_TRY(const Form up, bounded(id, a + b - Form(1)));
      return divide(id, up, b);
    }
    case NodeKind::Chain: break;
    default: return error(id, "expected an integer form: indices, sizes, + - * // %");
  }
  const std::vector<NodeId> items = node.items;
  const std::vector<std::string> operators = node.operators;
  LEMMA_TRY(Form out, form(items[0]));
  for (size_t i = 0; i < operators.size(); ++i) {
    LEMMA_TRY(const Form next, form(items[i + 1]));
    const std::string& op = operators[i];
    Result<Form> by = Form();
    if (op == "+") by = bounded(id, out + next);
    else if (op == "-") by = bounded(id, out - next);
    else if (op == "*") by = multiply(id, out, next);
    else if (op == "//") by = divide(id, out, next);
    else if (op == "%") {
      LEMMA_TRY(const Form quotient, divide(id, out, next));
      LEMMA_TRY(const Form whole, multiply(id, next, quotient));
      by = bounded(id, out - whole);
    } else return error(id, "found `" + op + "` in an integer form, expected + - * // or %");
    if (!by.ok()) return by.error();
    out = *std::move(by);
  }
  return out;
}

Result<Formula> Terms::both(NodeId id, const Formula& a, const Formula& b) const {
  if (a.cases().size() * b.cases().size() > kMostCases) return error(id, "this domain has more than " + std::to_string(kMostCases) + " cases");
  return a && b;
}

Result<Formula> Terms::comparison(NodeId id) {
  const std::vector<NodeId> items = tree_[id].items;
  const std::vector<std::string> operators = tree_[id].operators;
  Formula out;
  LEMMA_TRY(Form left, form(items[0]));
  for (size_t i = 0; i < operators.size(); ++i) {
    LEMMA_TRY(Form right, form(items[i + 1]));
    LEMMA_TRY_VOID([&]() -> Result<void> {
      if (auto b = bounded(id, left - right); !b.ok()) return b.error();
      return {};
    }());
    const std::string& op = operators[i];
    Formula one;
    if (op == "<") one = Formula::less(left, right);
    else if (op == "<=") one = Formula::less_equal(left, right);
    else if (op == ">") one = Formula::less(right, left);
    else if (op == ">=") one = Formula::less_equal(right, left);
    else if (op == "==") one = Formula::equal(left, right);
    else one = !Formula::equal(left, right);
    LEMMA_TRY(out, both(id, out, one));
    left = std::move(right);
  }
  return out;
}

Result<Formula> Terms::formula(NodeId id) {
  const Node& node = tree_[id];
  if (node.kind == NodeKind::Compare) return comparison(id);
  if (node.kind == NodeKind::Name && node.text == "true") return Formula::always();
  if (node.kind == NodeKind::Name && node.text == "false") return Formula::never();
  if (node.kind == NodeKind::Not) {
    LEMMA_TRY(const Formula f, formula(node.items[0]));
    size_t cases = 1;
    for (const view::Conjunction& c : f.cases()) {
      cases *= c.size() * 2 + 1;
      if (cases > kMostCases) return error(id, "the negation of this domain has more than " + std::to_string(kMostCases) + " cases");
    }
    return !f;
  }
  const bool joined = node.kind == NodeKind::Chain && (node.operators[0] == "and" || node.operators[0] == "or");
  if (!joined) return error(id, "expected a condition on indices: comparisons joined by and, or, not");
  const std::vector<NodeId> items = node.items;
  const bool any = node.operators[0] == "or";
  LEMMA_TRY(Formula out, formula(items[0]));
  for (size_t i = 1; i < items.size(); ++i) {
    LEMMA_TRY(const Formula next, formula(items[i]));
    if (any) {
      if (out.cases().size() + next.cases().size() > kMostCases) return error(id, "this domain has more than " + std::to_string(kMostCases) + " cases");
      out = out || next;
    } else {
      LEMMA_TRY(out, both(id, out, next));
    }
  }
  return out;
}

Result<Access> Terms::access(NodeId id) {
  const Node& node = tree_[id];
  if (node.kind != NodeKind::Read) return error(id, "expected an element of a buffer, as in a[i, j]");
  if (node.maybe || node.condition >= 0) return error(id, "a read takes coordinates only here", "write its guard after `if`");
  const std::vector<NodeId> items = node.items;
  const Meaning* m = scope.find(node.text);
  if (!m) return unknown(id, "a buffer");
  const auto* buffer = std::get_if<BufferName>(m);
  const auto* part = std::get_if<RegionName>(m);
  if (!buffer && !part) return error(id, "`" + node.text + "` is not a buffer");
  const Region region = part ? part->region : whole(buffer->buffer, program_);
  const size_t rank = region.axes.size();
  if (items.size() - 1 != rank) {
    return error(id, "`" + node.text + "` has " + std::to_string(rank) + " dimensions, found " + std::to_string(items.size() - 1) + " coordinates");
  }
  std::vector<Form> positions;
  for (size_t i = 1; i < items.size(); ++i) {
    LEMMA_TRY(Form f, form(items[i]));
    positions.push_back(std::move(f));
  }
  return region.at(positions);
}

// A tile's name alone, under `map y = x`; nothing where no element is under way or the name is no tile's.
Result<std::optional<Access>> Terms::bare_tile(NodeId id) {
  const Meaning* m = scope.find(tree_[id].text);
  const auto* buffer = m ? std::get_if<BufferName>(m) : nullptr;
  const auto* part = m ? std::get_if<RegionName>(m) : nullptr;
  if (!element || (!buffer && !part)) return std::optional<Access>();
  const Region region = part ? part->region : whole(buffer->buffer, program_);
  if (region.axes.size() != element->size()) {
    return error(id, "`" + tree_[id].text + "` has " + std::to_string(region.axes.size()) + " dimensions, and the tile that is written has " + std::to_string(element->size()),
                 "name the indices: map (i < n, j < m) { ... }");
  }
  for (size_t i = 0; written && i < region.axes.size(); ++i) {
    if (region.axes[i].extent == written->axes[i].extent) continue;
    view::Names names;
    names.index = [this](int v) { return program_.variables[size_t(v)]; };
    names.size = [this](int s) { return program_.sizes[size_t(s)].name; };
    names.data = [](int) { return std::string("?"); };
    return error(id, "`" + tree_[id].text + "` has the extent " + view::print(region.axes[i].extent, names) + " in dimension " + std::to_string(i) + ", the tile that is written " + view::print(written->axes[i].extent, names),
                 "name the indices, or a part: let u = x[0 +: n]");
  }
  return std::optional<Access>(region.at(*element));
}

Result<int> Terms::inline_read(NodeId id) {
  LEMMA_TRY(Access a, access(id));
  return add_read(id, std::move(a));
}

Result<int> Terms::add_read(NodeId id, Access a) {
  if (!reads) return error(id, "`" + tree_[id].text + "` cannot be read here");
  for (size_t r = named_reads; r < reads->size(); ++r) {
    if ((*reads)[r] == a) return int(r);
  }
  if (reads->size() >= 4096) return error(id, "this statement makes more than 4096 reads");
  reads->push_back(std::move(a));
  return int(reads->size()) - 1;
}

}  // namespace lemma::tile
