// Simplification: constants are folded, rules (rules.cc) applied from the leaves up until none fires. Idempotent.
//
// Folding an operation gives what evaluation in Arithmetic::Single gives, for the operations whose f32 result is the
// rounding of the exact one; functions such as exp are folded only where their value is exact (exp(0), log2(8)).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lemma/scalar/expr.h"
#include "lemma/scalar/rule.h"

namespace lemma::scalar {

// The constant that an operation over constants is, if it may be folded.
std::optional<Expr> fold(Arena& arena, Op op, Kind kind, std::span<const Expr> constants, int64_t payload);

// Rules are parsed once and kept; use one Simplifier for many expressions.
class Simplifier {
 public:
  explicit Simplifier(Claim allow, std::span<const Rule> rules = library_rules());
  ~Simplifier();
  Simplifier(const Simplifier&) = delete;
  Simplifier& operator=(const Simplifier&) = delete;

  // In the roots' own arena. Nodes that several roots share stay shared.
  Expr simplify(Expr root);
  std::vector<Expr> simplify(std::span<const Expr> roots);

  // How often each rule fired so far, by its place among the rules given.
  const std::vector<int>& fired() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Expr simplify(Expr root, Claim allow);

}  // namespace lemma::scalar
