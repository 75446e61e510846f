// Which elements of every value an evaluation needs: the backward half of the oracle.
//
// What is needed of a node is a set of slabs. A slab fixes some of the node's point indices (the same ones for all
// slabs) and runs over all values of the others; with none fixed the one slab is the whole. A reader's slabs give its
// sources' by the coordinates it reads at: a coordinate over fixed indices is fixed, any other runs. Small windows
// (`i + r` with few r) are enumerated rather than widened to the whole. Beside the slabs a filter bounds where anything
// is read at all: the union of the readers' domains.
#pragma once

#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

struct Demand {
  bool needed = false;
  std::vector<int> fixed;                // index ids, ascending
  std::vector<int64_t> extents;          // theirs
  std::vector<int64_t> keys;             // row-major positions over `extents`, ascending, each once
  view::Formula filter = view::Formula::never();  // over the node's indices: where some reader reads
};

// Points asked of one value; without points, all of it.
struct Request {
  Value value;
  std::vector<std::vector<int64_t>> points;
  bool whole = true;
};

// One demand a node. The graph is bound and the requested points lie inside their values.
std::vector<Demand> find_demands(const Graph& graph, const std::vector<Request>& requests);

// Removes all but the point indices that every needed result of the node has.
void restrict_to_shared(const Comprehension& node, Demand& demand);

}  // namespace lemma::tensor
