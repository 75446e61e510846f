#include "lemma/tile/expression_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/tile/monoid_text.h"

namespace lemma::tile {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;

constexpr int kDeepest = 12;  // operations in one line of text; far below what the parser allows

// How tightly the text of an operation binds; operands of a looser one are put in parentheses.
enum Binding { kOr = 1, kAnd, kNot, kCompare, kSum, kProduct, kUnary, kAtom };

struct Infix {
  const char* text = nullptr;
  Binding binding = kAtom;
};

Infix infix(Expr e) {
  const bool logical = e.kind() == Kind::Bool;
  switch (e.op()) {
    case Op::Add: return {" + ", kSum};
    case Op::Sub: return {" - ", kSum};
    case Op::Mul: return {" * ", kProduct};
    case Op::Div: return {" / ", kProduct};
    case Op::FloorDiv: return {" // ", kProduct};
    case Op::Mod: return {" % ", kProduct};
    case Op::Eq: return {" == ", kCompare};
    case Op::Ne: return {" != ", kCompare};
    case Op::Lt: return {" < ", kCompare};
    case Op::Le: return {" <= ", kCompare};
    case Op::And: return logical ? Infix{" and ", kAnd} : Infix{};
    case Op::Or: return logical ? Infix{" or ", kOr} : Infix{};
    default: return {};
  }
}

// The function an operation is written as where it is not infix.
std::string function_name(Expr e) {
  switch (e.op()) {
    case Op::And: return "bit_and";
    case Op::Or: return "bit_or";
    case Op::Not: return "bit_not";
    case Op::Xor: return "bit_xor";
    default: return std::string(scalar::name(e.op()));
  }
}

struct Piece {
  std::string text;
  Binding binding = kAtom;
};

std::string inside(const Piece& p, Binding needed) { return p.binding >= needed ? p.text : "(" + p.text + ")"; }

Piece operation(Expr e, const std::vector<const Piece*>& args) {
  if (const Infix i = infix(e); i.text) {
    // Left-associative; comparisons do not chain.
    const Binding left = i.binding == kCompare ? kSum : i.binding;
    return {inside(*args[0], left) + i.text + inside(*args[1], Binding(i.binding + 1)), i.binding};
  }
  const bool literal = !args.empty() && e.arg(0).is_const();
  if (e.is(Op::Neg) && !literal) return {"-" + inside(*args[0], kAtom), kUnary};
  if (e.is(Op::Not) && e.kind() == Kind::Bool) return {"not " + inside(*args[0], kNot), kNot};
  const std::string kind(scalar::name(e.kind()));
  if (e.is(Op::Cast)) return {literal ? "cast(" + kind + ", " + args[0]->text + ")" : kind + "(" + args[0]->text + ")"};
  if (e.is(Op::Bits)) return {"bits(" + kind + ", " + args[0]->text + ")"};
  if (e.is(Op::RoundTo)) {
    return {"round_to(" + std::string(scalar::name(scalar::DType(e.payload()))) + ", " + args[0]->text + ")"};
  }
  std::string text = function_name(e) + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i]->text;
  return {text + ")"};
}

Piece leaf(Expr e, const LeafNames& names) {
  const int which = int(e.payload());
  switch (e.op()) {
    case Op::Const: {
      std::string text = constant_text(e);
      const Binding binding = text[0] == '-' ? kUnary : kAtom;
      return {std::move(text), binding};
    }
    case Op::Arg: return {names.arg(which)};
    case Op::Present: return {names.present(which)};
    case Op::Index: return {names.index(which)};
    case Op::Size: return {names.size(which)};
    default: LEMMA_CHECK(false, "not a leaf"); return {};
  }
}

// Tells `order` of the reads under `root` as its text shows them: left to right, stopping at definitions.
void walk_reads(Expr root, const std::vector<char>& defined, const std::function<void(int)>& order) {
  std::vector<Expr> stack{root};
  bool first = true;
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (!first && defined[e.index()]) continue;
    first = false;
    if (e.is(Op::Arg)) order(int(e.payload()));
    for (size_t i = e.args().size(); i-- > 0;) stack.push_back(e.arg(i));
  }
}

// A constant by its bits, as hexadecimal digits.
std::string bits_text(Expr c) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, uint64_t(c.payload()), 16);
  return "const_bits(" + std::string(scalar::name(c.kind())) + ", \"" + std::string(buffer, end.ptr) + "\")";
}

}  // namespace

std::string constant_text(Expr c) {
  const std::string kind(scalar::name(c.kind()));
  if (scalar::is_float(c.kind())) {
    const double value = c.as_float();
    const bool single = c.kind() == Kind::F32;
    // Only the quiet nan with no payload has a spelling of its own.
    const int64_t plain = single ? int64_t(0x7FC00000) : int64_t(0x7FF8000000000000);
    if (std::isnan(value) && c.payload() != plain) return bits_text(c);
    const std::string text = number_text(value, single);
    return single ? text : "f64(" + text + ")";
  }
  if (c.kind() == Kind::Bool) return c.as_int() ? "true" : "false";
  // What a literal cannot say: beyond 63 bits, or below the negative of what it can.
  if (c.kind() == Kind::U64 && c.as_int() < 0) return bits_text(c);
  if (c.as_int() == std::numeric_limits<int64_t>::min()) return bits_text(c);
  const std::string text = std::to_string(c.as_int());
  return c.kind() == Kind::I64 ? text : kind + "(" + text + ")";
}

ExpressionText expression_text(std::span<const Expr> roots, const LeafNames& names,
                               const std::function<void(int)>& order) {
  const std::vector<Expr> nodes = scalar::reachable(roots);
  uint32_t bound = 0;
  for (Expr e : nodes) bound = std::max(bound, e.index() + 1);
  std::vector<int> uses(bound), height(bound);
  std::vector<char> defined(bound);
  for (Expr e : nodes) {
    for (Expr a : e.args()) ++uses[a.index()];
  }
  for (Expr root : roots) ++uses[root.index()];

  ExpressionText out;
  std::unordered_map<uint32_t, Piece> pieces;
  for (Expr e : nodes) {
    if (e.args().empty()) {
      pieces.emplace(e.index(), leaf(e, names));
      continue;
    }
    std::vector<const Piece*> args;
    for (Expr a : e.args()) {
      args.push_back(&pieces.at(a.index()));
      height[e.index()] = std::max(height[e.index()], height[a.index()] + 1);
    }
    Piece piece = operation(e, args);
    if (uses[e.index()] > 1 || height[e.index()] >= kDeepest) {
      if (order) walk_reads(e, defined, order);
      out.definitions.push_back({names.definition(), std::move(piece.text)});
      piece = {out.definitions.back().name};
      defined[e.index()] = true;
      height[e.index()] = 0;
    }
    pieces.emplace(e.index(), std::move(piece));
  }
  for (Expr root : roots) {
    out.roots.push_back(pieces.at(root.index()).text);
    if (order && !defined[root.index()]) walk_reads(root, defined, order);
  }
  return out;
}

}  // namespace lemma::tile
