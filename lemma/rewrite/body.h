// Facts about the bodies of comprehensions and small edits of them, shared by the rewrites: which indices an expression
// depends on, a body as a product of factors, what evaluating it costs, and adding and dropping reads.
//
// A set of indices is 64 bits; a comprehension with more indices is left alone by every rewrite (`small`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

using IndexSet = uint64_t;
inline IndexSet one(int index) { return IndexSet(1) << index; }
inline bool has(IndexSet set, int index) { return (set >> index) & 1; }
inline bool meets(IndexSet a, IndexSet b) { return (a & b) != 0; }

bool small(const tensor::Comprehension& node);
IndexSet with_role(const tensor::Comprehension& node, tensor::Role role);

// The indices each read depends on: through its coordinates and guard, and through the keys these use.
std::vector<IndexSet> read_indices(const tensor::Comprehension& node);
IndexSet indices_of(const view::Form& form, std::span<const IndexSet> reads);
IndexSet indices_of(const view::Formula& formula, std::span<const IndexSet> reads);
IndexSet indices_of(scalar::Expr expr, std::span<const IndexSet> reads);

// The one operation a monoid of one scalar component folds with (Add, Mul, Min, Max, Or, And), lift and finish being
// the identity; nothing for others.
std::optional<scalar::Op> fold_of(const monoid::Monoid& monoid);
inline bool is_map(const tensor::Comprehension& node) { return !node.monoid; }
inline bool is_reduction(const tensor::Comprehension& node) { return node.monoid && !node.scan; }
// A reduction by one operation with one output of the plain kind.
bool folds_with(const tensor::Comprehension& node, scalar::Op op);

// body = product of the Times over the product of the Over, where every Gate holds; 0 where one does not.
struct Factor {
  enum class Kind : uint8_t { Times, Over, Gate };
  Kind kind = Kind::Times;
  scalar::Expr expr;
  bool operator==(const Factor&) const = default;
};
// Splits through products, quotients, reciprocals, negations and selects with a branch 0. Of an integer body only
// products and selects split. A factor of 1 is left out. `gates_outside`: every gate covers the whole product, so that
// moving a factor under the gate, or out of it, changes nothing.
struct Product {
  std::vector<Factor> factors;
  bool gates_outside = true;
};
Product factorise(scalar::Expr body);
// The product again: select(gates, times / over, 0); 1 without factors.
scalar::Expr multiply(scalar::Arena& arena, scalar::Kind kind, std::span<const Factor> factors);

// What evaluating the expressions once costs, in additions; leaves are free.
int64_t cost_of(std::span<const scalar::Expr> roots);
// How many operations they hold.
int64_t operations_in(std::span<const scalar::Expr> roots);
// A value that is finite whatever is read: constants, sizes, indices, integers and what keeps them so.
bool proved_finite(scalar::Expr expr);
// The same, and above zero; sizes and indices are not (they may be 0).
bool proved_positive(scalar::Expr expr);

// The expressions with other leaves; an invalid result keeps a leaf.
using LeafMap = std::function<scalar::Expr(scalar::Expr leaf)>;
std::vector<scalar::Expr> replace_leaves(std::span<const scalar::Expr> roots, scalar::Arena& arena, const LeafMap& map);
scalar::Expr replace_leaves(scalar::Expr root, scalar::Arena& arena, const LeafMap& map);

// The position of the read, appended if it is not there.
int add_read(tensor::Comprehension& node, const tensor::Read& read);
// Whether expressions (Arg, Present) and forms (Data) use each read; keys of used reads are used.
struct ReadUse {
  bool value = false;  // by an expression
  bool key = false;    // by a form
};
std::vector<ReadUse> read_use(const tensor::Comprehension& node);
// Drops unused reads; positions change throughout.
void tidy_reads(tensor::Comprehension& node);

// The node with its indices renumbered: index i becomes to[i], which is a permutation or an injection into `indices`.
// The caller has set the new index list; everything else is renamed here.
void rename_indices(tensor::Comprehension& node, const std::vector<int>& to);

// The indices (other than `keep`) removed from the list, which nothing may use any longer.
void drop_indices(tensor::Comprehension& node, IndexSet keep);

// One map's or one fold's node.
tensor::Comprehension make_map(std::string name, std::vector<tensor::IndexInfo> points, scalar::DType type);
tensor::Comprehension make_fold(std::string name, std::vector<tensor::IndexInfo> indices, monoid::MonoidRef monoid,
                                scalar::DType type);

// The read of a value at plain indices: coordinate k is index dims[k].
tensor::Read read_at(tensor::Value source, const std::vector<int>& dims);

}  // namespace lemma::rewrite
