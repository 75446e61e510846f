// Computes one node of a bound graph from its stored sources, for the slabs that are needed of it.
#pragma once

#include <vector>

#include "lemma/tensor/batch.h"
#include "lemma/tensor/demand.h"

namespace lemma::tensor {

using StoredNodes = std::vector<std::vector<Stored>>;  // per node, per output

// One Stored an output.
base::Result<std::vector<Stored>> compute(const Graph& graph, const Comprehension& node, const Demand& demand,
                                          const StoredNodes& sources, scalar::Arithmetic arithmetic);
base::Result<Stored> compute(const Graph& graph, const Scatter& node, const StoredNodes& sources,
                             scalar::Arithmetic arithmetic);

// ---- shared by both ----

// What a node's loops and reads come to.
Frame frame_of(const std::string& name, const std::vector<IndexInfo>& indices, const base::Span& span);
std::vector<ReadPlan> plan_reads(const Graph& graph, const std::vector<IndexInfo>& indices,
                                 const std::vector<Read>& reads, const StoredNodes& sources);
std::vector<int64_t> size_values(const Graph& graph);
std::vector<int64_t> constant_extents(const std::vector<IndexInfo>& indices);
// The affine constraints of a formula of one case; true for others.
view::Formula affine_part(const view::Formula& formula);
// A value of the type's kind as it is stored: integers keep the type's bits; floats are rounded in Arithmetic::Single.
scalar::Scalar stored_value(scalar::DType type, scalar::Scalar value, scalar::Arithmetic arithmetic);
// Room for a whole value, all elements present.
Stored dense(scalar::DType type, std::vector<int64_t> extents);

}  // namespace lemma::tensor
