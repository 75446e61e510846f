// Schedules: how a graph is carried out, without touching what it computes. A schedule mentions nodes and sizes of
// tiles, never a body, so it cannot change the maths.
//
// Every node that computes belongs to one group; a group becomes one kernel (and, where a stored layout asks for it, a
// packing kernel before it). A group has a loop space: the union of its members' indices, unified through the reads
// between them. Grid loops are points of every member; their tiles run independently. The stream loop is reduced over
// tile by tile while what it produces stays on chip. Inner loops run whole inside the block.
#pragma once

#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"
#include "lemma/tile/target.h"

namespace lemma::schedule {

enum class Strategy : uint8_t {
  Rows,      // members in order on one tile of grid points; inner loops whole
  Product,   // one contraction by packed panels, then maps over its points while the tile is near
  Streamed,  // a contraction recomputed tile by tile along the stream loop, reduced as it comes
  Scatter,   // one scatter
};

enum class LoopKind : uint8_t { Grid, Inner, Stream };

struct Loop {
  std::string name;
  view::Form extent;
  LoopKind kind = LoopKind::Grid;
  bool operator==(const Loop&) const = default;
};

struct Member {
  tensor::Tensor node;
  std::vector<int> loops;  // per index of the node, the loop it is
  bool operator==(const Member&) const = default;
};

// Tile sizes; 0 means the default for the target. rows and columns are points of a product or streamed group.
struct Tiles {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;   // of a contraction's reduce loop
  int64_t stream = 0;
  bool operator==(const Tiles&) const = default;
};

struct Group {
  std::string name;        // of its last member
  Strategy strategy = Strategy::Rows;
  std::vector<Loop> loops;
  std::vector<Member> members;  // in dependency order
  Tiles tiles;
  bool operator==(const Group&) const = default;
  int stream() const;      // the stream loop, or -1
  const Member* member(tensor::Tensor node) const;
};

struct Schedule {
  std::vector<Group> groups;  // in launch order; every computing node stands in one
  bool operator==(const Schedule&) const = default;
};

// The default schedule: nodes are joined while the values between them stay on chip (defaults.cc). On devices a kernel
// binds few buffers and its tiles have constant extents; what that keeps apart is
// logged as the pass "device".
Schedule defaults(const tensor::Graph& graph, const rewrite::Context& context, const tile::Target& target = {});

// A kernel a node, plain loops over its points with whole reductions: what other schedules are checked against.
Schedule simple(const tensor::Graph& graph);

// The group these nodes (in any order) make, the last being its root, or why they cannot share a kernel.
base::Result<Group> make_group(const tensor::Graph& graph, std::vector<tensor::Tensor> nodes, const tile::Target& target = {});

std::string print(const Schedule& schedule, const tensor::Graph& graph);
// `file` is named by what is said of the text.
base::Result<Schedule> parse(const std::string& text, const tensor::Graph& graph, const tile::Target& target = {},
                             const std::string& file = "schedule");

}  // namespace lemma::schedule
