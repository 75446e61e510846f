// One member of a group as statements over the current tile.
#pragma once

#include "lemma/lower/context.h"

namespace lemma::lower {

// The statements of a member (a map, a reduction over loops that lie in the tile, or a scan), appended to the block.
// Its values get local homes where another member reads them, and are stored where the program does.
void lower_member(Context& context, const schedule::Group& group, const schedule::Member& member, Scope& scope);

// ---- pieces that streamed and product kernels share ----

struct MemberPlace {
  const tensor::Comprehension* node = nullptr;
  Variables variables;             // one per loop with an axis
  std::vector<Form> index_forms;   // per index of the node
  std::map<int, Form> local_forms; // per loop
  std::map<int, Edge> edges;       // of loops whose tile may stick out
  std::vector<Edge> edges_of(const std::vector<int>& loops) const;
};
MemberPlace place_member(Context& context, const schedule::Group& group, const schedule::Member& member,
                         const Scope& scope);

// What a store into a buffer of this type takes: it rounds by itself.
Expr stored_as(Expr value, scalar::DType type);

std::vector<int> loops_of(const schedule::Member& member, const std::vector<int>& indices);

// A block-local buffer with an axis for every loop that has one, declared and brought to life in the block. A fragment
// only where its extents are constant and registers may hold it.
Home add_local(Context& context, const std::string& name, scalar::Kind kind, const std::vector<int>& loops,
               Scope& scope);

// Whether another member of the group reads the value.
bool read_inside(const tensor::Graph& graph, const schedule::Group& group, tensor::Value value);

// The states of a reduction: local buffers over each component's own index set.
std::vector<Home> add_states(Context& context, const schedule::Member& member, Scope& scope);

// Gives the outputs their homes from the states: aliases where a result is a component, a map where it is not; stores
// what the program keeps.
void finish_states(Context& context, const schedule::Group& group, const schedule::Member& member,
                   const std::vector<Home>& states, Scope& scope, bool final_only = false);

}  // namespace lemma::lower
