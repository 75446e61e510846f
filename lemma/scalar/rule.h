// Rewrite rules as data: a row says what becomes what, when, and how far it keeps values.
#pragma once

#include <span>

namespace lemma::scalar {

// How far a rewrite keeps values (docs/ir.md): bit for bit; over the reals with inf and nan; wherever inputs are finite
// or -inf scores; or not at all.
enum class Claim : unsigned char { Exact, Real, Finite, Loose };

// `from` and `to` are patterns: ?a stands for any expression (the same at each place), numbers for constants of the
// kind their place has (0 is not -0.0), operations for themselves: infix + - * / // % == != < <= and unary minus, calls
// by the names of ops.def for all others. Operands of commuting operations match in either order. `when` lists
// conditions by blanks, all of which must hold: `a:int` on what ?a matched, `value_kept` on the whole (pattern.cc lists
// them).
struct Rule {
  const char* name;
  const char* from;
  const char* to;
  const char* when;
  Claim claim;
};

// The library, in order of preference (rules.cc).
std::span<const Rule> library_rules();

}  // namespace lemma::scalar
