// Monoids: what a reduction or a scan folds with, as data.
//
// A state has components; each may have axes of its own. An element (the operands) is lifted into a state, states are
// combined in order, and finish turns the final state into results. The identity is what a reduction over nothing
// gives. Nothing here knows what the monoid is used for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lemma/scalar/expr.h"
#include "lemma/view/form.h"

namespace lemma::monoid {

// A property of the combine that evaluators, rewrites and lowering may use. General promises nothing.
enum class Structure : uint8_t {
  Elementwise,  // every update reads x.c and y.c at its own axes, no inner sums: one Expr per component
  RescaledSum,  // component 0 is a running max of scores, the others are sums scaled by exp(scale * (score - max))
  TopK,         // components value[K] and index[K]: the K best, sorted; ties by the smaller index; nan above all
  General,
};

struct Component {
  std::string name;
  scalar::Kind kind = scalar::Kind::F32;
  std::vector<view::Form> axes;  // extents of the state axes (constants or sizes); empty for a scalar
  bool operator==(const Component&) const = default;
};

// A read of the left (x, earlier) or right (y, later) state. Coordinates are forms over the update's indices:
// Form::index(0..axes-1) are the axes of the updated component, the following ones its inner sums.
struct StateRead {
  bool right = false;
  int component = 0;
  std::vector<view::Form> coords;
  bool operator==(const StateRead&) const = default;
};

// new.c[axes] = fold over the inner indices of body; body is over Arg(i) = reads[i] and Index(i) as in StateRead.
struct Update {
  std::vector<view::Form> sums;           // extents of the inner indices
  scalar::Op fold = scalar::Op::Add;      // Add, Mul, Min or Max; used where sums is not empty
  std::vector<StateRead> reads;
  scalar::Expr body;
};

struct Monoid {
  std::string name;                       // as printed: "sum", "topk[8]", or the user's
  scalar::ArenaRef arena;
  Structure structure = Structure::General;
  std::vector<scalar::Kind> operands;     // kinds of the element's operands
  std::vector<Component> components;
  std::vector<scalar::Expr> identity;     // per component, over Index(axis)
  std::vector<scalar::Expr> lift;         // per component, over Arg(operand) and Index(axis)
  std::vector<Update> combine;            // per component
  std::vector<scalar::Expr> finish;       // per result, over Arg(component); results have their components' axes
  bool commutative = false;
  bool idempotent = false;
  double scale = 1;                       // RescaledSum
  int count = 0;                          // TopK: K
  bool smallest = false;                  // TopK: the K smallest
};

using MonoidRef = std::shared_ptr<const Monoid>;

// For an Elementwise monoid: the combine of component c as one expression over Arg(i) = x.i and Arg(n + i) = y.i,
// n the number of components.
scalar::Expr elementwise_combine(const Monoid& monoid, size_t component, scalar::Arena& into);

// Equal definitions (names apart), and a hash that agrees with it.
bool same(const Monoid& a, const Monoid& b);
size_t hash(const Monoid& monoid);

// ---- library.cc. `kind` is the element's kind. ----
MonoidRef sum(scalar::Kind kind);
MonoidRef product(scalar::Kind kind);
MonoidRef maximum(scalar::Kind kind);     // identity -inf or the kind's least; nan wins
MonoidRef minimum(scalar::Kind kind);
MonoidRef any();
MonoidRef all();
// Operands (value, index: I64); result the index (I64): the first nan, else the first best; of nothing -1.
MonoidRef arg_maximum(scalar::Kind kind);
MonoidRef arg_minimum(scalar::Kind kind);
// Operands (value, index: I64); results value[count] and index[count] (slot is a state axis); missing slots hold the
// identity of max (or min) and -1.
MonoidRef top_k(scalar::Kind kind, int count, bool smallest);
// Operand x; state (n, sum, m2); results (n, sum, m2): Chan's merge of unequal counts, n == 0 is the identity.
MonoidRef welford(scalar::Kind kind);
// Operands (score, g_1 .. g_sums); components (m, a_1 .. a_sums), all scalar (index sets are the comprehension's).
// lift: score == -inf gives the identity (-inf, 0...), else (s, e*g...) with e = exp(scale*(s - s)), so nan and +inf
// show. combine: m = max; a side whose max equals m has factor 1, else exp(scale*(m_side - m)). See design 3.
MonoidRef rescaled_sum(scalar::Kind kind, int sums, double scale);
// Scan of h -> a*h + b: operands (a, b), components (a, b).
MonoidRef affine(scalar::Kind kind);
// The product of monoids: components, operands and results side by side. Elementwise if all are. Both must be pairable:
// all but top-k, whose merge no update states, are.
bool pairable(const Monoid& monoid);
MonoidRef pair(const MonoidRef& a, const MonoidRef& b);

}  // namespace lemma::monoid
