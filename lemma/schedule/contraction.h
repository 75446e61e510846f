// A sum of products seen as a product of matrices: C[b, m, n] = scale * sum over k of L[b, m, k] * R[b, n, k].
//
// The indices fall into batch (b), rows (m), columns (n) and depth (k) by which factor of the body depends on them. The
// factors are ordinary expressions over the node's reads and indices, so a factor may be a masked or padded read
// (`select(present, x, 0)`), a gathered one, a product or a function of several reads: whoever packs an operand tile
// evaluates the factor at each element. Conditions of the domain that concern one factor's indices only have become part
// of that factor (absent terms are 0); one that couples both sides is reported and must be masked in the product.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::schedule {

// One side: its expression and what it depends on.
struct Operand {
  scalar::Expr expr;                 // over Arg/Present of `reads` positions of the node, Index of the node, Size
  std::vector<int> reads;            // positions in the node's reads that the expression or its condition uses, with keys
  view::Formula condition;           // over the node's indices and reads: where it does not hold the operand is 0
};

struct Contraction {
  std::vector<int> batch;            // point indices that both sides depend on, or neither
  std::vector<int> rows;             // point indices of the left side only
  std::vector<int> columns;          // point indices of the right side only
  std::vector<int> depth;            // reduced indices that both sides depend on
  std::vector<int> left_depth;       // reduced indices of one side only (they may be summed before the product)
  std::vector<int> right_depth;
  Operand left, right;
  scalar::Expr scale;                // free of reduced indices and of rows and columns; invalid: 1
  view::Formula coupling;            // what of the domain concerns both sides; true for most

  bool has_rows() const { return !rows.empty(); }
  bool has_columns() const { return !columns.empty(); }
};

// The contraction a body is, or a sentence why it is none.
struct Recognised {
  std::optional<Contraction> contraction;
  std::string reason;
};

// For a sum: its only body. A product of a row vector and a matrix (no rows, or no columns) counts; a sum of a product
// whose sides share all their points (a dot product per point) does not.
Recognised recognise_contraction(const tensor::Graph& graph, const tensor::Comprehension& node);

// For one operand of a reduction by several sums (a rescaled sum's weighted columns, a product of monoids): body element
// `which`, multiplied by an outside weight that depends on `weight_indices` (empty for none). The weight is taken as the
// left side's factor: left.expr is what else of the body belongs to it (1 if nothing).
Recognised recognise_weighted(const tensor::Graph& graph, const tensor::Comprehension& node, size_t which,
                              const std::vector<int>& weight_indices);

}  // namespace lemma::schedule
