// Scalar expressions as text of the language: `exp(s[i, j] - m[i]) * 2`, with no more parentheses than it needs.
//
// What leaves are called is the caller's business. An expression is a graph: a node that is used twice and is more than
// a few operations, or that closes a long chain, is given a name and a definition of its own (a let), so the text grows
// with the graph and its nesting stays below a hundred levels. Without lets in the caller's text, `print` writes
// `root where t0 = ..., t1 = ...`.
//
// Floats print as the shortest decimal that reads back (`2` for a whole number, `-0.0`, `inf`, `-inf`, `nan`), casts by
// their kind (`i32(x)`), Select as `select(c, a, b)`, operations of Bool as `and`, `or`, `not` and `!=`, of integers as
// `&`, `|`, `^`, `~`; rounding and bit patterns as `round_to[bf16](x)` and `bits[i32](x)`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lemma/scalar/expr.h"

namespace lemma::scalar {

// Binding strength, loosest first. Comparisons do not chain.
enum class Strength : uint8_t { Any, Or, And, Not, Compare, BitOr, BitXor, BitAnd, Shift, Sum, Product, Sign, Atom };

struct LeafNames {
  std::function<std::string(int which)> arg;      // must print as an atom: a name, a call, a subscript
  std::function<std::string(int which)> present;
  std::function<std::string(int which)> index;
  std::function<std::string(int which)> size;
  std::function<std::string(int nth)> let;        // names of lets, from 0; "t0" if missing
  bool decimal_point = false;                     // whole floats as `2.0`
  bool exact = false;                             // reads back as the very same expression: see print_exact
};

struct Let {
  std::string name;
  std::string text;
  Expr value;
};

struct Printed {
  std::vector<Let> lets;           // each may use those before it
  std::vector<std::string> roots;
};

// `outer`: the roots are parenthesised where they bind more loosely.
Printed print_with_lets(std::span<const Expr> roots, const LeafNames& names, Strength outer = Strength::Any);
std::string print(Expr root, const LeafNames& names, Strength outer = Strength::Any);

// arg0, present0, i0, n0.
LeafNames plain_names();

// A constant with its kind: `2` is an i64, `2.0` an f32, all others are `const[f64](2.0)`, `const[i32](2)`; what decimal
// digits cannot say is `const_bits[f32](high, low)`, 32 bits each. In an exact text xor of bools is a call as well.
std::string print_exact(Expr constant);

// One constant.
std::string print_constant(Expr constant, bool decimal_point = false);

}  // namespace lemma::scalar
