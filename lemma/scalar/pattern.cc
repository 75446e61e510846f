#include "lemma/scalar/pattern.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "lemma/base/check.h"
#include "lemma/scalar/convert.h"
#include "lemma/scalar/eval.h"

namespace lemma::scalar {
namespace {

// ---- Text to patterns. Rows are ours and short, so descending by recursion is fine. ----

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& variables) : text_(text), variables_(variables) {}

  Pattern parse() {
    Pattern p = comparison();
    skip();
    LEMMA_CHECK(at_ == text_.size(), "a rule's text goes on after its pattern");
    return p;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void need(std::string_view token) { LEMMA_CHECK(take(token), "a rule's text misses a token"); }
  static Pattern operation(Op op, std::vector<Pattern> args) {
    return {Pattern::Kind::Operation, 0, 0, op, std::move(args)};
  }

  Pattern comparison() {
    Pattern left = sum();
    for (const auto& [token, op] : {std::pair{"==", Op::Eq}, {"!=", Op::Ne}, {"<=", Op::Le}, {"<", Op::Lt}}) {
      if (take(token)) return operation(op, {std::move(left), sum()});
    }
    return left;
  }
  Pattern sum() {
    Pattern left = product();
    for (;;) {
      if (take("+")) left = operation(Op::Add, {std::move(left), product()});
      else if (take("-")) left = operation(Op::Sub, {std::move(left), product()});
      else return left;
    }
  }
  Pattern product() {
    Pattern left = sign();
    for (;;) {
      if (take("*")) left = operation(Op::Mul, {std::move(left), sign()});
      else if (take("//")) left = operation(Op::FloorDiv, {std::move(left), sign()});
      else if (take("/")) left = operation(Op::Div, {std::move(left), sign()});
      else if (take("%")) left = operation(Op::Mod, {std::move(left), sign()});
      else return left;
    }
  }
  Pattern sign() {
    if (!take("-")) return primary();
    Pattern p = sign();
    if (p.kind == Pattern::Kind::Number) {
      p.number = -p.number;
      return p;
    }
    return operation(Op::Neg, {std::move(p)});
  }
  Pattern primary() {
    if (take("(")) {
      Pattern p = comparison();
      need(")");
      return p;
    }
    if (take("?")) return {Pattern::Kind::Variable, variable(word()), 0, Op::Const, {}};
    skip();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      double value = 0;
      const auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      at_ = size_t(result.ptr - text_.data());
      return {Pattern::Kind::Number, 0, value, Op::Const, {}};
    }
    return named(word());
  }
  Pattern named(const std::string& name) {
    if (name == "inf") return {Pattern::Kind::Number, 0, std::numeric_limits<double>::infinity(), Op::Const, {}};
    if (name == "true" || name == "false") return {Pattern::Kind::Truth, 0, name == "true" ? 1.0 : 0.0, Op::Const, {}};
    for (int op = 0; op <= int(Op::Bits); ++op) {
      if (scalar::name(Op(op)) != name) continue;
      std::vector<Pattern> args;
      need("(");
      do args.push_back(comparison()); while (take(","));
      need(")");
      LEMMA_CHECK(int(args.size()) == arity(Op(op)), "a rule's call has the wrong number of operands");
      return operation(Op(op), std::move(args));
    }
    base::bug("a rule names an unknown operation", __FILE__, __LINE__);
  }
  std::string word() {
    skip();
    const size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    LEMMA_CHECK(at_ > first, "a rule's text misses a word");
    return std::string(text_.substr(first, at_ - first));
  }
  int variable(const std::string& name) {
    const auto it = std::find(variables_.begin(), variables_.end(), name);
    if (it != variables_.end()) return int(it - variables_.begin());
    variables_.push_back(name);
    return int(variables_.size()) - 1;
  }

  std::string_view text_;
  std::vector<std::string>& variables_;
  size_t at_ = 0;
};

// ---- Conditions ----

// Whether every value of `from` is a value of `to`.
bool holds_values(Kind to, Kind from) {
  if (to == from || from == Kind::Bool) return true;
  switch (to) {
    case Kind::F64: return from == Kind::F32 || from == Kind::I32 || from == Kind::U32;
    case Kind::I64: return from == Kind::I32 || from == Kind::U32;
    case Kind::U64: return from == Kind::U32;
    default: return false;
  }
}

// Of cast(cast(a)): the inner cast changes nothing that the outer one shows.
bool value_kept(Kind outer, Kind inner, Kind a) {
  const auto width = [](Kind k) { return is_wide(k) ? 64 : 32; };
  if (is_float(a)) return holds_values(inner, a);
  if (is_float(inner)) return holds_values(inner, a) && (is_float(outer) || holds_values(outer, a));
  if (inner == Kind::Bool) return a == Kind::Bool;
  if (holds_values(inner, a)) return true;
  if (outer == Kind::Bool) return width(inner) >= width(a);
  return is_integer(outer) && width(inner) >= width(outer);
}

bool is_power_of_two(Expr e) {
  if (!e.is_const() || !is_float(e.kind())) return false;
  int exponent;
  const double mantissa = std::frexp(e.as_float(), &exponent);
  const int limit = e.kind() == Kind::F32 ? 120 : 1000;  // its reciprocal is normal too
  return std::fabs(mantissa) == 0.5 && std::abs(exponent) < limit;
}

// Far from overflow, so that a product of a few stays a normal number.
bool is_moderate(Expr e) {
  if (!e.is_const() || !is_float(e.kind())) return false;
  const double v = std::fabs(e.as_float());
  return v >= 0x1p-30 && v <= 0x1p30;
}

bool holds_of(const std::string& predicate, Expr e) {
  if (predicate == "int") return is_integer(e.kind());
  if (predicate == "whole") return !is_float(e.kind());  // an integer or Bool
  if (predicate == "float") return is_float(e.kind());
  if (predicate == "number") return e.kind() != Kind::Bool;
  if (predicate == "signed") return is_float(e.kind()) || is_signed(e.kind());
  if (predicate == "bool") return e.kind() == Kind::Bool;
  if (predicate == "const") return e.is_const();
  if (predicate == "power_of_two") return is_power_of_two(e);
  if (predicate == "moderate") return is_moderate(e);
  base::bug("a rule names an unknown predicate", __FILE__, __LINE__);
}

bool holds_of_whole(const std::string& predicate, Expr e) {
  if (predicate == "value_kept") return value_kept(e.kind(), e.arg(0).kind(), e.arg(0).arg(0).kind());
  if (predicate == "same_type") return e.payload() == e.arg(0).payload();
  base::bug("a rule names an unknown condition", __FILE__, __LINE__);
}

// ---- Matching ----

bool is_constant_like(const Pattern& p, Expr e) {
  if (!e.is_const()) return false;
  if (p.kind == Pattern::Kind::Truth) return e.kind() == Kind::Bool && e.as_int() == int64_t(p.number);
  if (is_float(e.kind())) return constant(e.arena(), e.kind(), p.number) == e;
  const bool whole = std::fabs(p.number) < 0x1p62 && std::floor(p.number) == p.number;
  if (!whole || std::signbit(p.number) != (p.number < 0)) return false;
  return e.as_int() == wrapped(e.kind(), int64_t(p.number)) && (e.kind() != Kind::Bool || p.number == 0 || p.number == 1);
}

struct Goal {
  const Pattern* pattern;
  Expr e;
};

// Solves the goals from the last on, trying both orders of commuting operands.
bool solve(std::vector<Goal> goals, Bindings& bindings) {
  while (!goals.empty()) {
    const auto [p, e] = goals.back();
    goals.pop_back();
    switch (p->kind) {
      case Pattern::Kind::Variable: {
        Expr& bound = bindings[size_t(p->variable)];
        if (bound.valid() && !(bound == e)) return false;
        bound = e;
        continue;
      }
      case Pattern::Kind::Number: case Pattern::Kind::Truth:
        if (!is_constant_like(*p, e)) return false;
        continue;
      case Pattern::Kind::Operation: break;
    }
    if (!e.is(p->op)) return false;
    if (commutes(p->op) && !(e.arg(0) == e.arg(1))) {
      std::vector<Goal> other = goals;
      other.push_back({&p->args[0], e.arg(0)});
      other.push_back({&p->args[1], e.arg(1)});
      Bindings trial = bindings;
      if (solve(std::move(other), trial)) {
        bindings = std::move(trial);
        return true;
      }
      goals.push_back({&p->args[0], e.arg(1)});
      goals.push_back({&p->args[1], e.arg(0)});
      continue;
    }
    for (size_t i = 0; i < p->args.size(); ++i) goals.push_back({&p->args[i], e.arg(i)});
  }
  return true;
}

// Whether an operand could match at its root: refuses most rules at once.
bool may_match(const Pattern& p, Expr e) {
  switch (p.kind) {
    case Pattern::Kind::Variable: return true;
    case Pattern::Kind::Number: case Pattern::Kind::Truth: return e.is_const();
    case Pattern::Kind::Operation: break;
  }
  return e.is(p.op);
}

bool operands_may_match(const Pattern& p, Expr e) {
  for (size_t i = 0; i < p.args.size(); ++i) {
    const bool other = commutes(p.op) && may_match(p.args[i], e.arg(1 - i));
    if (!other && !may_match(p.args[i], e.arg(i))) return false;
  }
  return true;
}

// ---- Building ----

std::optional<Kind> kind_of(const Pattern& p, const Bindings& bindings) {
  switch (p.kind) {
    case Pattern::Kind::Variable: return bindings[size_t(p.variable)].kind();
    case Pattern::Kind::Number: return std::nullopt;
    case Pattern::Kind::Truth: return Kind::Bool;
    case Pattern::Kind::Operation: break;
  }
  if (shape(p.op) == OpShape::Compare) return Kind::Bool;
  if (shape(p.op) == OpShape::Convert) return std::nullopt;
  for (size_t i = p.op == Op::Select ? 1 : 0; i < p.args.size(); ++i) {
    if (auto kind = kind_of(p.args[i], bindings)) return kind;
  }
  return std::nullopt;
}

Kind operand_kind(const Pattern& p, const Bindings& bindings) {
  for (const Pattern& a : p.args) {
    if (auto kind = kind_of(a, bindings)) return *kind;
  }
  base::bug("a rule's right side leaves a kind open", __FILE__, __LINE__);
}

Expr build_pattern(const Pattern& p, Kind kind, const Bindings& bindings, Expr place, const Make& make) {
  switch (p.kind) {
    case Pattern::Kind::Variable: return bindings[size_t(p.variable)];
    case Pattern::Kind::Number: return constant(place.arena(), kind, p.number);
    case Pattern::Kind::Truth: return boolean(place.arena(), p.number != 0);
    case Pattern::Kind::Operation: break;
  }
  std::vector<Expr> args;
  for (size_t i = 0; i < p.args.size(); ++i) {
    Kind of = kind;
    if (p.op == Op::Select && i == 0) of = Kind::Bool;
    if (shape(p.op) == OpShape::Compare || shape(p.op) == OpShape::Convert) of = operand_kind(p, bindings);
    args.push_back(build_pattern(p.args[i], of, bindings, place, make));
  }
  if (p.op == Op::Cast && args[0].kind() == kind) return args[0];
  const int64_t payload = p.op == Op::RoundTo ? place.payload() : 0;
  return make(p.op, shape(p.op) == OpShape::Compare ? Kind::Bool : kind, args, payload);
}

}  // namespace

ParsedRule parse_rule(const Rule& row) {
  ParsedRule out;
  out.row = &row;
  out.from = Parser(row.from, out.variables).parse();
  const size_t bound = out.variables.size();
  out.to = Parser(row.to, out.variables).parse();
  LEMMA_CHECK(out.variables.size() == bound, "a rule's right side has a variable of its own");
  LEMMA_CHECK(out.from.kind == Pattern::Kind::Operation, "a rule's left side is no operation");
  std::istringstream words(row.when);
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    if (colon == std::string::npos) {
      out.conditions.push_back({-1, word});
      continue;
    }
    const auto it = std::find(out.variables.begin(), out.variables.end(), word.substr(0, colon));
    LEMMA_CHECK(it != out.variables.end(), "a rule's condition is about an unknown variable");
    out.conditions.push_back({int(it - out.variables.begin()), word.substr(colon + 1)});
  }
  return out;
}

std::optional<Bindings> match(const ParsedRule& rule, Expr e) {
  if (!e.is(rule.from.op) || !operands_may_match(rule.from, e)) return std::nullopt;
  Bindings bindings(rule.variables.size());
  if (!solve({{&rule.from, e}}, bindings)) return std::nullopt;
  for (const Condition& c : rule.conditions) {
    const bool holds = c.variable < 0 ? holds_of_whole(c.predicate, e) : holds_of(c.predicate, bindings[size_t(c.variable)]);
    if (!holds) return std::nullopt;
  }
  return bindings;
}

Expr build(const ParsedRule& rule, const Bindings& bindings, Expr e, const Make& make) {
  return build_pattern(rule.to, e.kind(), bindings, e, make);
}

}  // namespace lemma::scalar
