// Scalar expressions from surface expressions. Numbers take the kind of what they meet; every other change of kind is
// written.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lemma/scalar/eval.h"
#include "lemma/tile/parse_terms.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using syntax::Node;
using syntax::NodeId;
using syntax::NodeKind;

namespace {

std::string text_of(Kind kind) { return std::string(scalar::name(kind)); }

std::optional<Kind> parse_kind(const std::string& text) {
  for (Kind k : {Kind::F64, Kind::F32, Kind::I64, Kind::I32, Kind::U64, Kind::U32, Kind::Bool}) {
    if (scalar::name(k) == text) return k;
  }
  return std::nullopt;
}

// Whether an operation has a meaning for operands of a kind.
bool has_meaning(Op op, Kind kind) {
  const bool floats = scalar::is_float(kind);
  switch (op) {
    case Op::Recip: case Op::Sqrt: case Op::Rsqrt: case Op::Exp: case Op::Exp2: case Op::Log: case Op::Log2:
    case Op::Sin: case Op::Cos: case Op::Tan: case Op::Tanh: case Op::Erf: case Op::Sigmoid: case Op::Div:
    case Op::Atan2: return floats;
    case Op::And: case Op::Or: case Op::Xor: case Op::Not: return !floats;
    case Op::Shl: case Op::Shr: return scalar::is_integer(kind);
    case Op::Eq: case Op::Ne: case Op::Lt: case Op::Le: return true;
    default: return kind != Kind::Bool;
  }
}

std::optional<Op> parse_op(const std::string& text) {
  static constexpr struct { std::string_view text; Op op; } kOps[] = {
#define LEMMA_OP(enumerator, text, arity, shape) {text, Op::enumerator},
#include "lemma/scalar/ops.def"
#undef LEMMA_OP
  };
  for (const auto& row : kOps) {
    if (row.text == text && scalar::shape(row.op) != scalar::OpShape::Leaf && scalar::shape(row.op) != scalar::OpShape::Convert && row.op != Op::RoundTo) return row.op;
  }
  return std::nullopt;
}

}  // namespace

Kind Terms::read_kind(int read) const {
  return scalar::kind_of(program_.buffers[size_t((*reads)[size_t(read)].buffer)].type);
}

Result<Expr> Terms::adapt(NodeId id, Typed value, Kind kind) {
  if (value.value.kind() == kind) return value.value;
  if (!value.literal) {
    return error(id, "found a value of kind " + text_of(value.value.kind()) + ", expected " + text_of(kind),
                 "write " + text_of(kind) + "(...) around it");
  }
  const Kind from = value.value.kind();
  if (scalar::is_float(from) && !scalar::is_float(kind)) return error(id, "found a real number, expected " + text_of(kind));
  if (kind == Kind::Bool) return error(id, "found a number, expected true or false");
  if (scalar::is_float(kind)) return scalar::constant(*arena, kind, value.number);
  return scalar::constant_int(*arena, kind, value.value.as_int());
}

Result<void> Terms::agree(NodeId id, Typed& a, Typed& b) {
  if (a.value.kind() == b.value.kind()) return {};
  // A real literal beside an integer literal makes both real.
  const bool change_a = a.literal && (!b.literal || scalar::is_float(b.value.kind()));
  if (!change_a && !b.literal) {
    return error(id, "found operands of kinds " + text_of(a.value.kind()) + " and " + text_of(b.value.kind()),
                 "convert one of them, as in " + text_of(a.value.kind()) + "(...)");
  }
  Typed& from = change_a ? a : b;
  const Kind kind = (change_a ? b : a).value.kind();
  LEMMA_TRY(from.value, adapt(id, from, kind));
  return {};
}

Result<Expr> Terms::expression(NodeId id, Kind expected) {
  LEMMA_TRY(const Typed t, typed(id));
  return adapt(id, t, expected);
}

Result<Expr> Terms::expression(NodeId id) {
  LEMMA_TRY(const Typed t, typed(id));
  return t.value;
}

Result<Terms::Typed> Terms::typed(NodeId id) {
  const Node& node = tree_[id];
  switch (node.kind) {
    case NodeKind::Number: {
      if (!node.integer_literal) return Typed{scalar::constant(*arena, Kind::F32, node.real), true, node.real};
      if (node.oversized || uint64_t(node.integer) > uint64_t(std::numeric_limits<int64_t>::max())) {
        return error(id, "the integer `" + node.text + "` does not fit in 63 bits");
      }
      return Typed{scalar::i64(*arena, int64_t(node.integer)), true, double(int64_t(node.integer))};
    }
    case NodeKind::Name: return name(id);
    case NodeKind::Read: {
      LEMMA_TRY(const int read, inline_read(id));
      return Typed{scalar::arg(*arena, read_kind(read), read)};
    }
    case NodeKind::Call: return call(id);
    case NodeKind::Chain: return chain(id);
    case NodeKind::Compare: return compare(id);
    case NodeKind::Negate: return negate(id);
    case NodeKind::Not:
    case NodeKind::Flip: {
      const bool logical = node.kind == NodeKind::Not;
      LEMMA_TRY(const Typed a, typed(node.items[0]));
      if ((a.value.kind() == Kind::Bool) != logical) return error(id, logical ? "`not` takes a bool" : "`~` takes an integer");
      return apply(id, Op::Not, a);
    }
    case NodeKind::Else: return error(id, "`else` stands after a comma here, as in `c[i] = a, else b`");
    case NodeKind::Tuple: return error(id, "found a tuple, expected one value");
  }
  return error(id, "expected an expression");
}

Result<Terms::Typed> Terms::name(NodeId id) {
  const std::string& text = tree_[id].text;
  const Meaning* m = scope.find(text);
  if (!m) {
    if (text == "true" || text == "false") return Typed{scalar::boolean(*arena, text == "true")};
    if (text == "inf" || text == "nan") {
      const double value = text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      return Typed{scalar::constant(*arena, Kind::F32, value), true, value};
    }
    return unknown(id, "an index, a size, a read or a definition");
  }
  if (const auto* s = std::get_if<SizeName>(m)) return Typed{scalar::size(*arena, s->size)};
  if (const auto* v = std::get_if<VariableName>(m)) return Typed{scalar::index(*arena, v->variable)};
  if (const auto* r = std::get_if<ReadName>(m)) return Typed{scalar::arg(*arena, read_kind(r->read), r->read)};
  if (const auto* d = std::get_if<DefinitionName>(m)) return Typed{d->value};
  LEMMA_TRY(const std::optional<Access> tile, bare_tile(id));
  if (tile) {
    LEMMA_TRY(const int read, add_read(id, *tile));
    return Typed{scalar::arg(*arena, read_kind(read), read)};
  }
  return error(id, "`" + text + "` is not a value", "a buffer is read by coordinates, as in " + text + "[i]");
}

Result<Terms::Typed> Terms::apply(NodeId id, Op op, Typed a) {
  if (!has_meaning(op, a.value.kind())) return error(id, "`" + std::string(scalar::name(op)) + "` has no meaning for " + text_of(a.value.kind()));
  return Typed{scalar::unary(op, a.value)};
}

Result<Terms::Typed> Terms::apply(NodeId id, Op op, Typed a, Typed b) {
  LEMMA_TRY_VOID(agree(id, a, b));
  const Kind kind = a.value.kind();
  if (op == Op::Div && !scalar::is_float(kind)) return error(id, "`/` is real division, and these are of kind " + text_of(kind), "write `//` for the floor of a quotient");
  if (!has_meaning(op, kind)) return error(id, "`" + std::string(scalar::name(op)) + "` has no meaning for " + text_of(kind));
  return Typed{scalar::binary(op, a.value, b.value)};
}

Result<Terms::Typed> Terms::negate(NodeId id) {
  const NodeId inner = tree_[id].items[0];
  const Node& node = tree_[inner];
  const bool literal = !node.parenthesised && (node.kind == NodeKind::Number || (node.kind == NodeKind::Name && (node.text == "inf") && !scope.find("inf")));
  LEMMA_TRY(const Typed a, typed(inner));
  if (!literal) return apply(id, Op::Neg, a);
  if (scalar::is_float(a.value.kind())) return Typed{scalar::constant(*arena, Kind::F32, -a.number), true, -a.number};
  return Typed{scalar::i64(*arena, -a.value.as_int()), true, -a.number};
}

Result<Terms::Typed> Terms::chain(NodeId id) {
  const std::vector<NodeId> items = tree_[id].items;
  const std::vector<std::string> operators = tree_[id].operators;
  static constexpr struct { std::string_view text; Op op; } kInfix[] = {
      {"+", Op::Add}, {"-", Op::Sub}, {"*", Op::Mul}, {"/", Op::Div}, {"//", Op::FloorDiv}, {"%", Op::Mod},
      {"and", Op::And}, {"or", Op::Or}, {"&", Op::And}, {"|", Op::Or}, {"^", Op::Xor}, {"<<", Op::Shl}, {">>", Op::Shr}};
  LEMMA_TRY(Typed out, typed(items[0]));
  for (size_t i = 0; i < operators.size(); ++i) {
    LEMMA_TRY(const Typed next, typed(items[i + 1]));
    const auto row = std::find_if(std::begin(kInfix), std::end(kInfix), [&](const auto& r) { return r.text == operators[i]; });
    if (row == std::end(kInfix)) return error(id, "found the operator `" + operators[i] + "`, which no expression has");
    const bool logical = operators[i] == "and" || operators[i] == "or";
    if (logical && (out.value.kind() != Kind::Bool || next.value.kind() != Kind::Bool)) return error(id, "`" + operators[i] + "` joins bools");
    LEMMA_TRY(out, apply(id, row->op, out, next));
  }
  return out;
}

Result<Terms::Typed> Terms::compare(NodeId id) {
  const std::vector<NodeId> items = tree_[id].items;
  const std::vector<std::string> operators = tree_[id].operators;
  Expr all;
  LEMMA_TRY(Typed left, typed(items[0]));
  for (size_t i = 0; i < operators.size(); ++i) {
    LEMMA_TRY(Typed right, typed(items[i + 1]));
    const std::string& op = operators[i];
    Result<Typed> one = Typed{};
    if (op == "<") one = apply(id, Op::Lt, left, right);
    else if (op == "<=") one = apply(id, Op::Le, left, right);
    else if (op == ">") one = apply(id, Op::Lt, right, left);
    else if (op == ">=") one = apply(id, Op::Le, right, left);
    else one = apply(id, op == "==" ? Op::Eq : Op::Ne, left, right);
    if (!one.ok()) return one.error();
    all = all.valid() ? scalar::binary(Op::And, all, one->value) : one->value;
    left = right;
  }
  return Typed{all};
}

Result<Terms::Typed> Terms::constant_call(NodeId id, Kind kind) {
  const std::vector<NodeId> items = tree_[id].items;
  if (tree_[id].text == "const_bits") {
    uint64_t parts[2] = {};
    for (size_t i = 0; i < 2; ++i) {
      const bool good = items.size() == 2 && tree_[items[i]].kind == NodeKind::Number && tree_[items[i]].integer_literal && !tree_[items[i]].oversized && uint64_t(tree_[items[i]].integer) <= 0xFFFFFFFFu;
      if (!good) return error(id, "const_bits takes two integers of 32 bits, the high ones first");
      parts[i] = uint64_t(tree_[items[i]].integer);
    }
    int64_t bits = int64_t(parts[0] << 32 | parts[1]);
    if (kind == Kind::F32 || kind == Kind::U32) bits = int64_t(parts[1]);
    if (kind == Kind::I32) bits = int32_t(uint32_t(parts[1]));
    if (kind == Kind::Bool) bits = bits != 0;
    return Typed{scalar::constant_bits(*arena, kind, bits)};
  }
  if (items.size() != 1) return error(id, "const takes one number");
  LEMMA_TRY(const Typed value, typed(items[0]));
  if (!value.literal) return error(id, "const takes a number");
  LEMMA_TRY(const Expr e, adapt(items[0], value, kind));
  return Typed{e};
}

Result<Terms::Typed> Terms::convert_call(NodeId id, scalar::DType type) {
  const std::string text = tree_[id].text;
  const std::vector<NodeId> items = tree_[id].items;
  if (items.size() != 1) return error(id, "`" + text + "` takes one value");
  LEMMA_TRY(const Typed a, typed(items[0]));
  const Kind kind = a.value.kind();
  if (text == "round_to") {
    if (!scalar::is_float(kind) || !scalar::is_float(type)) return error(id, "round_to rounds floats to a float type");
    return Typed{scalar::round_to(a.value, type)};
  }
  const Kind to = scalar::kind_of(type);
  if (scalar::dtype_of(to) != type) return error(id, "`" + std::string(scalar::name(type)) + "` is a storage type, expected a kind to compute in");
  if (text != "bits") return Typed{scalar::cast(a.value, to)};
  if (scalar::bits(scalar::dtype_of(to)) != scalar::bits(scalar::dtype_of(kind))) return error(id, "bits takes a value of the same width");
  return Typed{arena->make(Op::Bits, to, {&a.value, 1})};
}

// The number in `state(2)`.
Result<int> Terms::number(NodeId id, size_t below) {
  const Node& node = tree_[id];
  const Node* inner = node.items.size() == 1 ? &tree_[node.items[0]] : nullptr;
  const bool good = inner && inner->kind == NodeKind::Number && inner->integer_literal && !inner->oversized && uint64_t(inner->integer) < below;
  if (!good) return error(id, "`" + node.text + "` takes a number below " + std::to_string(below));
  return int(inner->integer);
}

Result<Terms::Typed> Terms::leaf(NodeId id) {
  const std::string& text = tree_[id].text;
  if (text == "state") {
    if (!states) return error(id, "`state` has no meaning here");
    LEMMA_TRY(const int n, number(id, states->size()));
    return Typed{scalar::arg(*arena, (*states)[size_t(n)], n)};
  }
  if (!leaves) return error(id, "`" + text + "` stands in the definition of a monoid only");
  if (text == "operand" || text == "read") {
    const std::vector<Kind>& kinds = text == "operand" ? leaves->operands : leaves->reads;
    LEMMA_TRY(const int n, number(id, kinds.size()));
    return Typed{scalar::arg(*arena, kinds[size_t(n)], n)};
  }
  LEMMA_TRY(const int n, number(id, size_t(text == "axis" ? leaves->axes : leaves->inner)));
  return Typed{scalar::index(*arena, *index_leaf(text, n))};
}

std::optional<int> Terms::index_leaf(const std::string& text, int number) const {
  if (text == "axis") return number;
  if (text == "inner") return leaves->axes + number;
  return std::nullopt;
}

Result<Terms::Typed> Terms::call(NodeId id) {
  const Node node = tree_[id];
  // `ceildiv(n, 2) pipeline 3`: a word where the expression should have ended.
  if (node.body >= 0 && tree_[node.body].kind == NodeKind::Name && (node.text == "ceildiv" || parse_op(node.text) || scalar::parse_dtype(node.text))) {
    const std::string near = syntax::nearest(tree_[node.body].text, {"step", "unrolled", "serial", "pipelined", "where", "stage", "order", "fill", "async"});
    return error(node.body, "found `" + tree_[node.body].text + "`, expected an operator or the end of the expression", near.empty() ? "" : "did you mean `" + near + "`?");
  }
  if (node.body >= 0 || node.condition >= 0 || node.scan) return error(id, "found a fold in an expression; a tile program folds by reduce and scan");
  for (const std::string& label : node.labels) {
    if (!label.empty()) return error(id, "found `" + label + " =`, expected a value");
  }
  if (!node.params.empty()) {
    const bool known = node.text == "const" || node.text == "const_bits" || node.text == "round_to" || node.text == "bits";
    const auto type = node.params.size() == 1 ? scalar::parse_dtype(tree_[node.params[0]].text) : std::nullopt;
    if (!known || !type) return error(id, "found `" + node.text + "[...]`, expected const, const_bits, round_to or bits with a type");
    if (node.text == "round_to" || node.text == "bits") return convert_call(id, *type);
    const auto kind = parse_kind(tree_[node.params[0]].text);
    if (!kind) return error(id, "`" + tree_[node.params[0]].text + "` is a storage type, expected a kind to compute in");
    return constant_call(id, *kind);
  }
  for (const char* word : {"state", "operand", "read", "axis", "inner"}) {
    if (node.text == word) return leaf(id);
  }
  if (node.text == "present") {
    const Node* inner = node.items.size() == 1 ? &tree_[node.items[0]] : nullptr;
    const Meaning* m = inner && inner->kind == NodeKind::Name ? scope.find(inner->text) : nullptr;
    const auto* read = m ? std::get_if<ReadName>(m) : nullptr;
    if (!read) return error(id, "present takes a read by its name", "give the read a line `read r = a[i] if ...` first");
    return Typed{scalar::present(*arena, read->read)};
  }
  if (const auto type = scalar::parse_dtype(node.text)) return convert_call(id, *type);
  if (node.text == "select") {
    if (node.items.size() != 3) return error(id, "select takes a condition and two values");
    LEMMA_TRY(const Expr condition, expression(node.items[0], Kind::Bool));
    LEMMA_TRY(Typed a, typed(node.items[1]));
    LEMMA_TRY(Typed b, typed(node.items[2]));
    LEMMA_TRY_VOID(agree(id, a, b));
    return Typed{scalar::select(condition, a.value, b.value)};
  }
  if (node.text == "ceildiv" && node.items.size() == 2) {
    LEMMA_TRY(const Expr a, expression(node.items[0], Kind::I64));
    LEMMA_TRY(const Expr b, expression(node.items[1], Kind::I64));
    return Typed{scalar::binary(Op::FloorDiv, a + b - scalar::i64(*arena, 1), b)};
  }
  const auto op = parse_op(node.text);
  if (!op) return error(id, "found the unknown function `" + node.text + "`", "buffers are read in brackets, as in a[i]");
  if (int(node.items.size()) != scalar::arity(*op)) return error(id, "`" + node.text + "` takes " + std::to_string(scalar::arity(*op)) + " values, found " + std::to_string(node.items.size()));
  LEMMA_TRY(const Typed a, typed(node.items[0]));
  if (node.items.size() == 1) return apply(id, *op, a);
  LEMMA_TRY(const Typed b, typed(node.items[1]));
  return apply(id, *op, a, b);
}

}  // namespace lemma::tile
