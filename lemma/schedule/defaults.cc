// The default schedule: walking from the outputs back, every group takes in the producers that only its members read,
// as long as what passes between them stays on chip.

#include <algorithm>

#include "lemma/base/match.h"
#include "lemma/schedule/group.h"

namespace lemma::schedule {
namespace {

using tensor::Graph;
using tensor::Tensor;

// A kernel of more members gains nothing and takes longer to compile.
constexpr size_t kMaxMembers = 48;

bool computes(const tensor::Node& node) { return !std::holds_alternative<tensor::Input>(node); }

std::vector<std::vector<int>> readers_of(const Graph& graph) {
  std::vector<std::vector<int>> out(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (tensor::Value v : tensor::sources(graph.nodes[n])) {
      auto& list = out[size_t(v.node.index)];
      if (list.empty() || list.back() != int(n)) list.push_back(int(n));
    }
  }
  return out;
}

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const tensor::GraphOutput& o : graph.outputs) live[size_t(o.value.node.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (tensor::Value v : tensor::sources(graph.nodes[n])) live[size_t(v.node.index)] = true;
  }
  return live;
}

void explain_scans(const Graph& graph, const Group& group, const rewrite::Context& context) {
  for (const Member& m : group.members) {
    const auto* node = std::get_if<tensor::Comprehension>(&graph.node(m.node));
    if (!node || !node->scan) continue;
    const int along = node->with_role(tensor::Role::Scan)[0];
    context.declined("schedule", node->name, "not split along " + node->indices[size_t(along)].name +
                     ": threads share its points, in runs of 256 or more where memory lies along them, so fewer points keep one thread");
  }
}

}  // namespace

Schedule defaults(const Graph& graph, const rewrite::Context& context, const tile::Target& target) {
  const Limits limits{context.allow < rewrite::Claim::Finite, target};
  const auto readers = readers_of(graph);
  const auto live = live_nodes(graph);
  std::vector<bool> grouped(graph.nodes.size(), false);
  Schedule out;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!live[n] || grouped[n] || !computes(graph.nodes[n])) continue;
    GroupBuilder builder(graph, Tensor{int32_t(n)}, limits);
    grouped[n] = true;
    // Producers from the nearest back: a node is looked at after all of its readers.
    std::vector<int> refused;
    size_t members = 1;
    for (size_t p = n; p-- > 0 && members < kMaxMembers;) {
      if (!live[p] || grouped[p] || !computes(graph.nodes[p])) continue;
      const bool inside = !readers[p].empty() && std::all_of(readers[p].begin(), readers[p].end(), [&](int r) {
        return !live[size_t(r)] || builder.contains(Tensor{r});
      });
      if (!inside) continue;
      if (auto why = builder.absorb(Tensor{int32_t(p)})) {
        if (context.log) context.declined(builder.refused_by_device() ? "device" : "schedule", tensor::name(graph, {Tensor{int32_t(p)}, 0}),
                         "not in the kernel of " + tensor::name(graph, {Tensor{int32_t(n)}, 0}) + ": " + *why);
        continue;
      }
      grouped[p] = true;
      ++members;
    }
    out.groups.push_back(builder.finish());
    if (context.log) explain_scans(graph, out.groups.back(), context);
  }
  std::reverse(out.groups.begin(), out.groups.end());
  return out;
}

Schedule simple(const Graph& graph) {
  const auto live = live_nodes(graph);
  Schedule out;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!live[n] || !computes(graph.nodes[n])) continue;
    Group group = GroupBuilder(graph, Tensor{int32_t(n)}).finish();
    if (group.strategy != Strategy::Scatter) group.strategy = Strategy::Rows;
    for (Loop& loop : group.loops) {
      if (loop.kind == LoopKind::Stream) loop.kind = LoopKind::Inner;
    }
    out.groups.push_back(std::move(group));
  }
  return out;
}

base::Result<Group> make_group(const Graph& graph, std::vector<Tensor> nodes, const tile::Target& target) {
  if (nodes.empty()) return base::invalid("a kernel without members");
  std::sort(nodes.begin(), nodes.end());
  GroupBuilder builder(graph, nodes.back(), {false, target});
  for (size_t i = nodes.size() - 1; i-- > 0;) {
    if (auto why = builder.absorb(nodes[i])) {
      return base::unsupported(tensor::name(graph, {nodes[i], 0}) + " cannot be in the kernel of " +
                               tensor::name(graph, {nodes.back(), 0}) + ": " + *why);
    }
  }
  return builder.finish();
}

}  // namespace lemma::schedule
