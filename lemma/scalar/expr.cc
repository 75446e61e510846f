#include "lemma/scalar/expr.h"

#include <bit>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "lemma/base/check.h"
#include "lemma/base/hash.h"
#include "lemma/scalar/convert.h"

namespace lemma::scalar {
namespace {

struct OpRow {
  std::string_view text;
  int arity;
  OpShape shape;
};

constexpr OpRow kOps[] = {
#define LEMMA_OP(enumerator, text, arity, shape) {text, arity, OpShape::shape},
#include "lemma/scalar/ops.def"
#undef LEMMA_OP
};

struct NodeHash {
  size_t operator()(const Node* n) const {
    size_t h = base::mix(size_t(n->op) * 31 + size_t(n->kind), size_t(n->payload));
    for (int i = 0; i < n->count; ++i) h = base::mix(h, n->args[i].index());
    return h;
  }
};

struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    if (a->op != b->op || a->kind != b->kind || a->payload != b->payload || a->count != b->count) return false;
    for (int i = 0; i < a->count; ++i) {
      if (!(a->args[i] == b->args[i])) return false;
    }
    return true;
  }
};

void check_kinds(Op op, Kind kind, std::span<const Expr> args) {
  switch (shape(op)) {
    case OpShape::Leaf:
    case OpShape::Convert: return;
    case OpShape::Same:
      for (Expr a : args) LEMMA_CHECK(a.kind() == kind, "operand and result kinds differ");
      return;
    case OpShape::Compare:
      LEMMA_CHECK(kind == Kind::Bool && args[0].kind() == args[1].kind(), "comparison of unlike kinds");
      return;
    case OpShape::Choose:
      LEMMA_CHECK(args[0].kind() == Kind::Bool && args[1].kind() == kind && args[2].kind() == kind,
                  "select of unlike kinds");
      return;
  }
}

}  // namespace

std::string_view name(Op op) { return kOps[size_t(op)].text; }
int arity(Op op) { return kOps[size_t(op)].arity; }
OpShape shape(Op op) { return kOps[size_t(op)].shape; }

bool commutes(Op op) {
  switch (op) {
    case Op::Add: case Op::Mul: case Op::Min: case Op::Max: case Op::And: case Op::Or: case Op::Xor: case Op::Eq:
    case Op::Ne: return true;
    default: return false;
  }
}

struct Arena::State {
  std::deque<Node> nodes;  // stable addresses
  std::unordered_set<const Node*, NodeHash, NodeEqual> interned;
};

Arena::Arena() : state_(std::make_unique<State>()) {}
Arena::~Arena() = default;

size_t Arena::size() const { return state_->nodes.size(); }
Expr Arena::at(uint32_t index) const { return Expr(&state_->nodes[index]); }

Expr Arena::make(Op op, Kind kind, std::span<const Expr> args, int64_t payload) {
  LEMMA_CHECK(int(args.size()) == arity(op), "wrong number of operands");
  Node node{op, kind, uint8_t(args.size()), uint32_t(state_->nodes.size()), payload, this, {}};
  for (size_t i = 0; i < args.size(); ++i) {
    LEMMA_CHECK(args[i].valid() && &args[i].arena() == this, "operand of another arena");
    node.args[i] = args[i];
  }
  check_kinds(op, kind, args);
  if (auto it = state_->interned.find(&node); it != state_->interned.end()) return Expr(*it);
  state_->nodes.push_back(node);
  const Node* added = &state_->nodes.back();
  state_->interned.insert(added);
  return Expr(added);
}

Op Expr::op() const { return node_->op; }
Kind Expr::kind() const { return node_->kind; }
int64_t Expr::payload() const { return node_->payload; }
std::span<const Expr> Expr::args() const { return {node_->args, node_->count}; }
uint32_t Expr::index() const { return node_->index; }
Arena& Expr::arena() const { return *node_->arena; }

double Expr::as_float() const {
  LEMMA_CHECK(is_const() && is_float(kind()), "not a float constant");
  return kind() == Kind::F32 ? double(std::bit_cast<float>(int32_t(payload()))) : std::bit_cast<double>(payload());
}

int64_t Expr::as_int() const {
  LEMMA_CHECK(is_const() && !is_float(kind()), "not an integer constant");
  return payload();
}

Expr constant_bits(Arena& arena, Kind kind, int64_t bits) {
  // One payload for each value, so that equal constants are one node.
  const int64_t payload = kind == Kind::F32 ? int64_t(uint32_t(bits)) : kind == Kind::F64 ? bits : wrapped(kind, bits);
  return arena.make(Op::Const, kind, {}, payload);
}

Expr constant_int(Arena& arena, Kind kind, int64_t value) {
  LEMMA_CHECK(!is_float(kind), "integer constant of a float kind");
  return constant_bits(arena, kind, value);
}

Expr constant(Arena& arena, Kind kind, double value) {
  if (kind == Kind::F32) return constant_bits(arena, kind, int64_t(uint32_t(std::bit_cast<int32_t>(float(value)))));
  if (kind == Kind::F64) return constant_bits(arena, kind, std::bit_cast<int64_t>(value));
  LEMMA_CHECK(std::floor(value) == value && std::fabs(value) <= 0x1p64, "fractional constant of an integer kind");
  return constant_int(arena, kind, truncated(value < 0 ? Kind::I64 : Kind::U64, value));
}

Expr arg(Arena& arena, Kind kind, int which) { return arena.make(Op::Arg, kind, {}, which); }
Expr present(Arena& arena, int which) { return arena.make(Op::Present, Kind::Bool, {}, which); }
Expr index(Arena& arena, int which) { return arena.make(Op::Index, Kind::I64, {}, which); }
Expr size(Arena& arena, int which) { return arena.make(Op::Size, Kind::I64, {}, which); }

Expr unary(Op op, Expr a) { return a.arena().make(op, a.kind(), {&a, 1}); }
Expr binary(Op op, Expr a, Expr b) {
  const Expr args[] = {a, b};
  return a.arena().make(op, shape(op) == OpShape::Compare ? Kind::Bool : a.kind(), args);
}
Expr select(Expr condition, Expr a, Expr b) {
  const Expr args[] = {condition, a, b};
  return a.arena().make(Op::Select, a.kind(), args);
}
Expr cast(Expr a, Kind kind) { return a.kind() == kind ? a : a.arena().make(Op::Cast, kind, {&a, 1}); }
Expr round_to(Expr a, DType type) { return a.arena().make(Op::RoundTo, a.kind(), {&a, 1}, int64_t(type)); }
Expr operator+(Expr a, Expr b) { return binary(Op::Add, a, b); }
Expr operator-(Expr a, Expr b) { return binary(Op::Sub, a, b); }
Expr operator*(Expr a, Expr b) { return binary(Op::Mul, a, b); }
Expr operator/(Expr a, Expr b) { return binary(Op::Div, a, b); }
Expr operator-(Expr a) { return unary(Op::Neg, a); }

std::vector<Expr> reachable(std::span<const Expr> roots) {
  std::vector<Expr> order;
  std::unordered_set<uint32_t> seen;
  std::vector<std::pair<Expr, bool>> stack;
  for (Expr root : roots) {
    stack.push_back({root, false});
    while (!stack.empty()) {
      auto [e, expanded] = stack.back();
      stack.pop_back();
      if (expanded) {
        order.push_back(e);
        continue;
      }
      if (!seen.insert(e.index()).second) continue;
      stack.push_back({e, true});
      for (size_t i = e.args().size(); i-- > 0;) {
        if (!seen.count(e.arg(i).index())) stack.push_back({e.arg(i), false});
      }
    }
  }
  return order;
}

std::vector<Expr> rewrite_all(std::span<const Expr> roots, Arena& into, const Replace& replace) {
  std::unordered_map<uint32_t, Expr> memo;
  std::vector<Expr> args;
  for (Expr e : reachable(roots)) {
    args.clear();
    for (Expr a : e.args()) args.push_back(memo.at(a.index()));
    Expr next = replace(e, args);
    if (!next.valid()) next = into.make(e.op(), e.kind(), args, e.payload());
    memo.emplace(e.index(), next);
  }
  std::vector<Expr> out;
  for (Expr root : roots) out.push_back(memo.at(root.index()));
  return out;
}

Expr rewrite(Expr root, Arena& into, const Replace& replace) { return rewrite_all({&root, 1}, into, replace)[0]; }

Expr import(Expr root, Arena& into) {
  if (&root.arena() == &into) return root;
  return rewrite(root, into, [](Expr, std::span<const Expr>) { return Expr(); });
}

}  // namespace lemma::scalar
