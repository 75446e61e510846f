// One pass over the expression, operands before users; what is used twice and is no leaf, and what nests too deeply,
// gets a let.
#include "lemma/tensor/print_body.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

namespace lemma::tensor {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;

// Loosest first, as the parser has them.
enum Strength { Or, And, Not, Compare, BitOr, BitXor, BitAnd, Shift, Sum, Product, Sign, Atom };
constexpr int deepest = 12;   // each level may cost the parser several of its own
constexpr size_t longest = 2000;

struct Piece {
  std::string text;
  Strength strength = Atom;
  int depth = 0;
  bool constant = false;      // a bare literal, which takes the kind of what it meets
};

std::string shortest(double value, bool single) {
  char buffer[64];
  const auto end = single ? std::to_chars(buffer, buffer + sizeof buffer, float(value)).ptr : std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string out(buffer, end);
  const double back = std::strtod(out.c_str(), nullptr);
  if (single ? float(back) != float(value) : back != value) {
    const auto hex = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::hex).ptr;
    out = (std::signbit(value) ? "-0x" : "0x") + std::string(buffer, hex);
  }
  if (out.find_first_of(".ep") == std::string::npos) out += ".0";
  return out;
}

Piece literal(Expr e) {
  Piece p;
  p.constant = true;
  if (e.kind() == Kind::Bool) {
    p.constant = false;
    p.text = e.as_int() ? "true" : "false";
  } else if (scalar::is_float(e.kind())) {
    const double v = e.as_float();
    p.text = std::isnan(v) ? "nan" : std::isinf(v) ? (v > 0 ? "inf" : "-inf") : shortest(v, e.kind() == Kind::F32);
  } else if (e.kind() == Kind::U64) {
    p.text = std::to_string(uint64_t(e.as_int()));
  } else {
    p.text = std::to_string(e.as_int());
  }
  if (p.text[0] == '-') p.strength = Sign;
  return p;
}

struct Infix {
  const char* text;
  Strength strength;
};
bool infix(Op op, bool is_bool, Infix& out) {
  switch (op) {
    case Op::Add: out = {" + ", Sum}; return true;
    case Op::Sub: out = {" - ", Sum}; return true;
    case Op::Mul: out = {"*", Product}; return true;
    case Op::Div: out = {" / ", Product}; return true;
    case Op::FloorDiv: out = {" // ", Product}; return true;
    case Op::Mod: out = {" % ", Product}; return true;
    case Op::Shl: out = {" << ", Shift}; return true;
    case Op::Shr: out = {" >> ", Shift}; return true;
    case Op::And: out = is_bool ? Infix{" and ", And} : Infix{" & ", BitAnd}; return true;
    case Op::Or: out = is_bool ? Infix{" or ", Or} : Infix{" | ", BitOr}; return true;
    case Op::Xor: out = {" ^ ", BitXor}; return true;
    case Op::Lt: out = {" < ", Compare}; return true;
    case Op::Le: out = {" <= ", Compare}; return true;
    case Op::Eq: out = {" == ", Compare}; return true;
    case Op::Ne: out = {" != ", Compare}; return true;
    default: return false;
  }
}

class Printer {
 public:
  Printer(const std::vector<Expr>& roots, const BodyNames& names) : names_(names), roots_(roots) {}

  PrintedBody run() {
    const std::vector<Expr> order = scalar::reachable(roots_);
    std::unordered_map<uint32_t, int> uses;
    for (Expr e : order) {
      for (Expr a : e.args()) ++uses[a.index()];
    }
    for (Expr e : order) {
      Piece p = piece(e);
      const bool leaf = e.args().empty();
      const bool shared = uses[e.index()] > 1 && (p.text.size() > 40 || (e.args().size() > 0 && p.depth > 1));
      if (!leaf && (shared || p.depth > deepest || p.text.size() > longest)) {
        const std::string name = names_.let();
        out_.lets.emplace_back(name, p.text);
        p = {name, Atom, 0, false};
      }
      pieces_[e.index()] = std::move(p);
    }
    for (Expr root : roots_) {
      Piece p = pieces_.at(root.index());
      if (p.constant) p = cast(root, p);
      out_.roots.push_back(p.strength < Product ? "(" + p.text + ")" : p.text);
    }
    return std::move(out_);
  }

 private:
  static Piece cast(Expr e, const Piece& p) { return {std::string(scalar::name(e.kind())) + "(" + p.text + ")", Atom, p.depth + 1, false}; }

  // An operand whose kind nothing beside it tells.
  Piece stated(Expr e) const {
    const Piece& p = pieces_.at(e.index());
    return p.constant ? cast(e, p) : p;
  }

  std::string within(const Piece& p, Strength least) const { return p.strength < least ? "(" + p.text + ")" : p.text; }

  Piece call(const std::string& name, std::vector<Piece> args) const {
    Piece out;
    out.text = name + "(";
    for (size_t i = 0; i < args.size(); ++i) {
      out.text += (i == 0 ? "" : ", ") + args[i].text;
      out.depth = std::max(out.depth, args[i].depth + 1);
    }
    out.text += ")";
    return out;
  }

  // Two operands of one kind: a constant may stand bare beside something that is none. Integers of kind i64 always may.
  std::pair<Piece, Piece> both(Expr a, Expr b) const {
    Piece x = pieces_.at(a.index()), y = pieces_.at(b.index());
    if (x.constant && y.constant && a.kind() != Kind::I64) x = cast(a, x);
    return {x, y};
  }

  Piece piece(Expr e) const {
    switch (e.op()) {
      case Op::Const: return literal(e);
      case Op::Arg: return {names_.arg(int(e.payload())), Atom, 0, false};
      case Op::Present: return {names_.present(int(e.payload())), Atom, 0, false};
      case Op::Index: return {names_.index(int(e.payload())), Atom, 0, false};
      case Op::Size: return {names_.size(int(e.payload())), Atom, 0, false};
      case Op::Select: return select(e);
      case Op::Cast: return call(std::string(scalar::name(e.kind())), {stated(e.arg(0))});
      case Op::Bits: return call("bits[" + std::string(scalar::name(e.kind())) + "]", {stated(e.arg(0))});
      case Op::RoundTo: return call("round_to[" + std::string(scalar::name(scalar::DType(e.payload()))) + "]", {stated(e.arg(0))});
      case Op::Neg: {
        const Piece a = pieces_.at(e.arg(0).index());
        if (a.constant) return call("neg", {e.kind() == Kind::I64 ? a : cast(e.arg(0), a)});
        return {"-" + within(a, Atom), Sign, a.depth + 1, false};
      }
      case Op::Not: {
        const Piece a = stated(e.arg(0));
        if (e.kind() == Kind::Bool) return {"not " + within(a, Compare), Not, a.depth + 1, false};
        return {"~" + within(a, Atom), Sign, a.depth + 1, false};
      }
      default: break;
    }
    Infix op{};
    if (infix(e.op(), e.kind() == Kind::Bool, op)) {
      auto [x, y] = both(e.arg(0), e.arg(1));
      // A bare 0 is refused there, as nobody means it; a derived graph may hold one.
      const bool divides = e.is(Op::FloorDiv) || e.is(Op::Mod);
      if (divides && y.constant && e.arg(1).as_int() == 0) y = cast(e.arg(1), y);
      // Chains of sums and products need no parentheses on the left; comparisons do not chain.
      const bool chains = op.strength != Compare;
      Piece out;
      out.strength = op.strength;
      out.text = within(x, chains ? op.strength : Strength(op.strength + 1)) + op.text + within(y, Strength(op.strength + 1));
      // A chain is one level for the parser.
      const bool flat = chains && x.strength == op.strength;
      out.depth = std::max(flat ? x.depth : x.depth + 1, y.depth + 1);
      return out;
    }
    if (e.args().size() == 2) {
      const auto [x, y] = both(e.arg(0), e.arg(1));
      return call(std::string(scalar::name(e.op())), {x, y});
    }
    const Piece a = pieces_.at(e.arg(0).index());
    return call(std::string(scalar::name(e.op())), {a.constant ? cast(e.arg(0), a) : a});
  }

  Piece select(Expr e) const {
    const auto [x, y] = both(e.arg(1), e.arg(2));
    if (e.arg(0).is(Op::Present) && e.arg(1).is(Op::Arg) && e.arg(0).payload() == e.arg(1).payload()) {
      const std::string read = names_.optional_read(int(e.arg(1).payload()));
      if (!read.empty()) {
        const std::string fallback = within(y, Sign);
        return {"(" + read + " else " + (y.strength == Sign && !y.constant ? "(" + y.text + ")" : fallback) + ")", Atom, y.depth + 1, false};
      }
    }
    return call("select", {pieces_.at(e.arg(0).index()), x, y});
  }

  const BodyNames& names_;
  const std::vector<Expr>& roots_;
  std::unordered_map<uint32_t, Piece> pieces_;
  PrintedBody out_;
};

}  // namespace

PrintedBody print_body(const std::vector<Expr>& roots, const BodyNames& names) { return Printer(roots, names).run(); }

}  // namespace lemma::tensor
