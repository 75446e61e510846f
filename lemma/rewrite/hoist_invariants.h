// Moves factors that do not depend on the reduced indices out of a sum, and added terms and positive factors out of a
// max or min.
//
//     y = [i<n | sum j<m] x[i, j] * c[i] / 8      =>     t = [i<n | sum j<m] x[i, j]
//                                                        y = [i<n] t[i] * c[i] / 8
//     y = [i<n | max j<m] x[i, j] + c[i]          =>     t = [i<n | max j<m] x[i, j]
//                                                        y = [i<n] select(t[i] == -inf, t[i], t[i] + c[i])
//
//     y = [i<n | sum j<m] c[i]                    =>      y = [i<n] select(m == 0, 0, c[i] * m)
//
// A factor stays inside where its value exists only for some points of the domain. A sum of equal terms becomes their
// number times one where nothing restricts it, and stays under a domain.
// Over nothing a sum is 0 whatever the factor is (1 / 0 among others), so a factor that is not proved finite is guarded by
// the condition that there is something to sum; where that condition cannot be stated the factor stays.
//
// Claim: real, where every factor that moves is proved finite (constants; integers); else finite.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph hoist_invariants(const tensor::Graph& graph, const Context& context);

// ---- Also of use to other rewrites. ----

// Whether the read may happen at every point of the node's index space, whatever the node's domain.
bool total_read(const tensor::Graph& graph, const tensor::Comprehension& node, size_t read);

// A product's factors: those that do not depend on `folded` and may be computed at every point, and the others.
struct Split {
  std::vector<Factor> outer;
  std::vector<Factor> inner;
};
Split split_product(const tensor::Graph& graph, const tensor::Comprehension& node, std::span<const Factor> factors,
                    IndexSet folded);

// Where the reduction has something to reduce, as a condition on its points, without what their ranges imply; nothing
// where it cannot be stated.
std::optional<view::Formula> not_empty(const tensor::Graph& graph, const tensor::Comprehension& node);

// Whether all factors are finite whatever is read.
bool proved_finite(std::span<const Factor> factors);

// A map over the points of the reduction `node` with its name and output, its body `make(arg)` where arg reads `value`
// at the output's dimensions (`value` has exactly those) and other leaves are the node's own. The map reads what of the
// node's reads the body uses. Further values are read the same way; their Args follow the first one's.
tensor::Comprehension map_after(const tensor::Graph& graph, const tensor::Comprehension& node, tensor::Value value,
                                const std::function<scalar::Expr(scalar::Expr)>& make,
                                std::span<const std::pair<tensor::Value, bool>> further = {});

}  // namespace lemma::rewrite
