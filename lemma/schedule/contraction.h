// Contractions: sums of a product of two factors that share reduce indices but not all points.
//
//     c = [b, m, n | sum k] f(b, m, k) * g(b, k, n) * scale
//
// Seen from its index use alone: which factor of the body uses which points. A contraction can be carried out by a
// register-blocked product whatever f and g are, because packing evaluates them.
//
// A domain becomes zeros: where no point of one side is present the other side is packed as 0, and the side's own absent
// terms are 0. A row that is present for some points of a tile must be finite for the others, since 0 * nan is nan:
// claim finite. --strict keeps products with a domain off the register tiles.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::schedule {

struct Contraction {
  std::vector<int> batch, m, n, k;     // index ids of the comprehension, in its order
  scalar::Expr lhs;                    // uses batch, m and k
  scalar::Expr rhs;                    // uses batch, n and k
  scalar::Expr scale;                  // uses points only; invalid if there is none
  view::Formula lhs_domain;            // the domain's constraints, by the side whose indices they use
  view::Formula rhs_domain;
};

// Nothing, with a reason, where the comprehension is not one.
std::optional<Contraction> match_contraction(const tensor::Comprehension& node, std::string* reason = nullptr);

// The index ids an expression of the node uses: through Index, and through the coordinates and guards of its reads.
std::vector<int> used_indices(const tensor::Comprehension& node, scalar::Expr expr);
std::vector<int> used_indices(const tensor::Comprehension& node, const view::Formula& formula);

}  // namespace lemma::schedule
