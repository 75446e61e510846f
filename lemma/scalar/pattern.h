// Rules made ready to apply: their text parsed into patterns that match expressions and build new ones.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lemma/scalar/expr.h"
#include "lemma/scalar/rule.h"

namespace lemma::scalar {

struct Pattern {
  enum class Kind : uint8_t { Variable, Number, Truth, Operation };
  Kind kind = Kind::Variable;
  int variable = 0;       // Variable: which
  double number = 0;      // Number; Truth: 0 or 1
  Op op = Op::Const;      // Operation
  std::vector<Pattern> args;
};

// A condition of a rule: a predicate on a variable, or on the whole match (variable < 0).
struct Condition {
  int variable = -1;
  std::string predicate;
};

struct ParsedRule {
  const Rule* row = nullptr;
  std::vector<std::string> variables;
  Pattern from, to;
  std::vector<Condition> conditions;
};
// A malformed row is a bug.
ParsedRule parse_rule(const Rule& row);

using Bindings = std::vector<Expr>;  // by variable; invalid while unbound

// What the variables stand for if the rule applies to e, conditions included.
std::optional<Bindings> match(const ParsedRule& rule, Expr e);

// Builds the right side in place of `e` through `make`, which may simplify.
using Make = std::function<Expr(Op op, Kind kind, std::span<const Expr> args, int64_t payload)>;
Expr build(const ParsedRule& rule, const Bindings& bindings, Expr e, const Make& make);

}  // namespace lemma::scalar
