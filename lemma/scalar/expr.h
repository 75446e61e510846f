// Scalar expressions: one uniform node, interned in an arena; the handle is one pointer and == is identity.
//
// An expression says what happens to one element. Its leaves are constants, the values a comprehension (or a tile
// statement) reads (Arg), whether a read is present (Present), index values and sizes. Constants compare by bit
// pattern, so nan equals itself and -0 differs from 0. Nodes are numbered densely, operands before users, so that a
// side table is a vector and a walk is a loop; nothing recurses. ops.def states the meaning of each operation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lemma/scalar/type.h"

namespace lemma::scalar {

enum class Op : uint8_t {
#define LEMMA_OP(enumerator, text, arity, shape) enumerator,
#include "lemma/scalar/ops.def"
#undef LEMMA_OP
};

enum class OpShape : uint8_t { Leaf, Same, Compare, Choose, Convert };

std::string_view name(Op op);
int arity(Op op);
OpShape shape(Op op);
bool commutes(Op op);  // over the reals and bit for bit, nan payloads apart

class Arena;
struct Node;

class Expr {
 public:
  Expr() = default;
  bool valid() const { return node_ != nullptr; }
  Op op() const;
  Kind kind() const;
  int64_t payload() const;            // see ops.def; 0 where an op has none
  std::span<const Expr> args() const;
  Expr arg(size_t i) const { return args()[i]; }
  uint32_t index() const;             // dense in the arena; operands come before users
  Arena& arena() const;

  bool is(Op o) const { return op() == o; }
  bool is_const() const { return is(Op::Const); }
  double as_float() const;            // of a constant of float kind
  int64_t as_int() const;             // of a constant of integer kind or Bool

  friend bool operator==(Expr, Expr) = default;

 private:
  friend class Arena;
  explicit Expr(const Node* node) : node_(node) {}
  const Node* node_ = nullptr;
};

struct Node {
  Op op;
  Kind kind;
  uint8_t count;
  uint32_t index;
  int64_t payload;
  Arena* arena;
  Expr args[3];
};

// Append-only; owned by shared_ptr by the graphs and programs that use its expressions. Not thread-safe.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The interned node. Checks arity and kinds (a mismatch is a bug). No simplification happens here.
  Expr make(Op op, Kind kind, std::span<const Expr> args, int64_t payload = 0);
  size_t size() const;
  Expr at(uint32_t index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using ArenaRef = std::shared_ptr<Arena>;

// Leaves.
Expr constant(Arena& arena, Kind kind, double value);      // an integer kind takes integral values
Expr constant_int(Arena& arena, Kind kind, int64_t value);
Expr constant_bits(Arena& arena, Kind kind, int64_t bits);
inline Expr f32(Arena& arena, double value) { return constant(arena, Kind::F32, value); }
inline Expr i64(Arena& arena, int64_t value) { return constant_int(arena, Kind::I64, value); }
inline Expr boolean(Arena& arena, bool value) { return constant_int(arena, Kind::Bool, value); }
Expr arg(Arena& arena, Kind kind, int which);
Expr present(Arena& arena, int which);
Expr index(Arena& arena, int which);
Expr size(Arena& arena, int which);

// Operations; operands share an arena and, where ops.def says so, a kind.
Expr unary(Op op, Expr a);
Expr binary(Op op, Expr a, Expr b);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(Expr a, Kind kind);  // the same expression where the kind is already right
Expr round_to(Expr a, DType type);
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
inline Expr min(Expr a, Expr b) { return binary(Op::Min, a, b); }
inline Expr max(Expr a, Expr b) { return binary(Op::Max, a, b); }
inline Expr exp(Expr a) { return unary(Op::Exp, a); }

// The nodes reachable from `roots`, operands before users, each once.
std::vector<Expr> reachable(std::span<const Expr> roots);

// Rebuilds `root` bottom-up: `replace(node, new_args)` gives the node that stands for `node`; an invalid Expr means
// "the same operation over the new operands". Memoised; `into` receives the nodes.
using Replace = std::function<Expr(Expr node, std::span<const Expr> args)>;
Expr rewrite(Expr root, Arena& into, const Replace& replace);

// The same, with one memo for many roots.
std::vector<Expr> rewrite_all(std::span<const Expr> roots, Arena& into, const Replace& replace);

// Copies into another arena.
Expr import(Expr root, Arena& into);

}  // namespace lemma::scalar

template <>
struct std::hash<lemma::scalar::Expr> {
  size_t operator()(lemma::scalar::Expr e) const { return e.valid() ? e.index() : ~size_t(0); }
};
