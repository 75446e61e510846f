#include "lemma/scalar/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "lemma/base/check.h"

namespace lemma::scalar {
namespace {

constexpr int kMaxDepth = 90;     // of one printed text
constexpr int kMaxRepeated = 3;   // operations printed again at every use rather than named

struct Spelling {
  std::string_view text;          // of an infix operation; empty: a call of the operation's name
  Strength strength = Strength::Atom;
};

Spelling spelling(Op op, Kind kind) {
  const bool logical = kind == Kind::Bool;
  switch (op) {
    case Op::Add: return {"+", Strength::Sum};
    case Op::Sub: return {"-", Strength::Sum};
    case Op::Mul: return {"*", Strength::Product};
    case Op::Div: return {"/", Strength::Product};
    case Op::FloorDiv: return {"//", Strength::Product};
    case Op::Mod: return {"%", Strength::Product};
    case Op::And: return logical ? Spelling{"and", Strength::And} : Spelling{"&", Strength::BitAnd};
    case Op::Or: return logical ? Spelling{"or", Strength::Or} : Spelling{"|", Strength::BitOr};
    case Op::Xor: return logical ? Spelling{"!=", Strength::Compare} : Spelling{"^", Strength::BitXor};
    case Op::Shl: return {"<<", Strength::Shift};
    case Op::Shr: return {">>", Strength::Shift};
    case Op::Eq: return {"==", Strength::Compare};
    case Op::Ne: return {"!=", Strength::Compare};
    case Op::Lt: return {"<", Strength::Compare};
    case Op::Le: return {"<=", Strength::Compare};
    default: return {};
  }
}

template <class Float>
std::string shortest(Float value, bool decimal_point) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : decimal_point ? "0.0" : "0";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (decimal_point && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct Text {
  std::string text;
  Strength strength = Strength::Atom;
  int depth = 0;
  int operations = 0;
};

class Printer {
 public:
  explicit Printer(const LeafNames& names) : names_(names) {}

  Printed run(std::span<const Expr> roots, Strength outer) {
    const std::vector<Expr> order = reachable(roots);
    count_uses(order, roots);
    for (Expr e : order) {
      Text text = print_node(e);
      const bool repeated = uses_.at(e.index()) > 1 && text.operations > kMaxRepeated;
      if (repeated || text.depth >= kMaxDepth) text = name(e, std::move(text));
      texts_.emplace(e.index(), std::move(text));
      for (Expr a : e.args()) {  // a text leaves after its last use, so that long chains stay small
        if (--left_.at(a.index()) == 0) texts_.erase(a.index());
      }
    }
    for (Expr root : roots) printed_.roots.push_back(enclosed(texts_.at(root.index()), outer));
    return std::move(printed_);
  }

 private:
  void count_uses(const std::vector<Expr>& order, std::span<const Expr> roots) {
    for (Expr e : order) {
      for (Expr a : e.args()) ++uses_[a.index()];
    }
    for (Expr root : roots) ++uses_[root.index()];
    left_ = uses_;
  }

  Text name(Expr e, Text text) {
    const int nth = int(printed_.lets.size());
    const std::string let = names_.let ? names_.let(nth) : "t" + std::to_string(nth);
    printed_.lets.push_back({let, std::move(text.text), e});
    return {let, Strength::Atom, 0, 0};
  }

  static std::string enclosed(const Text& t, Strength least) {
    return t.strength < least ? "(" + t.text + ")" : t.text;
  }

  const Text& operand(Expr e, size_t i) const { return texts_.at(e.arg(i).index()); }

  Text print_leaf(Expr e) const {
    const int which = int(e.payload());
    switch (e.op()) {
      case Op::Arg: return {names_.arg(which)};
      case Op::Present: return {names_.present(which)};
      case Op::Index: return {names_.index(which)};
      case Op::Size: return {names_.size(which)};
      default: break;
    }
    std::string text = names_.exact ? print_exact(e) : print_constant(e, names_.decimal_point);
    const Strength strength = text[0] == '-' ? Strength::Sign : Strength::Atom;
    return {std::move(text), strength};
  }

  Text print_node(Expr e) const {
    if (shape(e.op()) == OpShape::Leaf) return print_leaf(e);
    Text out;
    out.operations = 1;
    for (size_t i = 0; i < e.args().size(); ++i) {
      out.depth = std::max(out.depth, operand(e, i).depth + 1);
      out.operations += operand(e, i).operations;
    }
    const bool call = names_.exact && e.is(Op::Xor) && e.kind() == Kind::Bool;  // `!=` of bools is Ne
    const Spelling infix = call ? Spelling() : spelling(e.op(), e.kind());
    if (!infix.text.empty()) {
      // Left operands may bind as strongly, except in comparisons; right ones must bind more strongly.
      const Strength tighter = Strength(int(infix.strength) + 1);
      const Strength left = infix.strength == Strength::Compare ? tighter : infix.strength;
      out.strength = infix.strength;
      out.text = enclosed(operand(e, 0), left) + " " + std::string(infix.text) + " " + enclosed(operand(e, 1), tighter);
      return out;
    }
    if (e.is(Op::Neg) || e.is(Op::Not)) return print_prefix(e, std::move(out));
    out.text = std::string(call_name(e)) + "(";
    for (size_t i = 0; i < e.args().size(); ++i) out.text += (i == 0 ? "" : ", ") + operand(e, i).text;
    out.text += ")";
    return out;
  }

  // A minus before a constant or another minus is parenthesised, so that `-2` stays the constant and `--x` never shows.
  Text print_prefix(Expr e, Text out) const {
    if (e.is(Op::Not) && e.kind() == Kind::Bool) {
      out.text = "not " + enclosed(operand(e, 0), Strength::Sign);
      out.strength = Strength::Not;
      return out;
    }
    const bool constant = e.arg(0).is_const();
    out.text = (e.is(Op::Neg) ? "-" : "~") + (constant ? "(" + operand(e, 0).text + ")" : enclosed(operand(e, 0), Strength::Atom));
    out.strength = Strength::Sign;
    return out;
  }

  static std::string call_name(Expr e) {
    switch (e.op()) {
      case Op::Cast: return std::string(lemma::scalar::name(e.kind()));
      case Op::RoundTo: return "round_to[" + std::string(lemma::scalar::name(DType(e.payload()))) + "]";
      case Op::Bits: return "bits[" + std::string(lemma::scalar::name(e.kind())) + "]";
      default: return std::string(lemma::scalar::name(e.op()));
    }
  }

  const LeafNames& names_;
  std::unordered_map<uint32_t, int> uses_, left_;
  std::unordered_map<uint32_t, Text> texts_;
  Printed printed_;
};

}  // namespace

std::string print_constant(Expr constant, bool decimal_point) {
  switch (constant.kind()) {
    case Kind::F64: return shortest(constant.as_float(), decimal_point);
    case Kind::F32: return shortest(float(constant.as_float()), decimal_point);
    case Kind::Bool: return constant.as_int() ? "true" : "false";
    case Kind::U64: return std::to_string(uint64_t(constant.as_int()));
    default: return std::to_string(constant.as_int());
  }
}

std::string print_exact(Expr constant) {
  const Kind kind = constant.kind();
  const std::string of_kind = "[" + std::string(name(kind)) + "](";
  if (kind == Kind::Bool) return print_constant(constant);
  bool plain = true;
  if (is_float(kind)) {
    // Of all nans only the quiet one without a payload is what the word means.
    const int64_t quiet = kind == Kind::F32 ? int64_t(0x7FC00000) : int64_t(0x7FF8000000000000);
    plain = !std::isnan(constant.as_float()) || constant.payload() == quiet;
  } else {
    plain = kind == Kind::U64 ? constant.as_int() >= 0 : constant.as_int() != std::numeric_limits<int64_t>::min();
  }
  if (!plain) {
    const uint64_t bits = uint64_t(constant.payload());
    return "const_bits" + of_kind + std::to_string(bits >> 32) + ", " + std::to_string(bits & 0xFFFFFFFF) + ")";
  }
  const std::string text = print_constant(constant, true);
  return kind == Kind::F32 || kind == Kind::I64 ? text : "const" + of_kind + text + ")";
}

Printed print_with_lets(std::span<const Expr> roots, const LeafNames& names, Strength outer) {
  return Printer(names).run(roots, outer);
}

std::string print(Expr root, const LeafNames& names, Strength outer) {
  Printed printed = print_with_lets({&root, 1}, names, outer);
  std::string text = std::move(printed.roots[0]);
  for (size_t i = 0; i < printed.lets.size(); ++i) {
    text += (i == 0 ? " where " : ", ") + printed.lets[i].name + " = " + printed.lets[i].text;
  }
  return text;
}

LeafNames plain_names() {
  const auto numbered = [](std::string stem) { return [stem](int which) { return stem + std::to_string(which); }; };
  LeafNames names;
  names.arg = numbered("arg");
  names.present = numbered("present");
  names.index = numbered("i");
  names.size = numbered("n");
  return names;
}

}  // namespace lemma::scalar
