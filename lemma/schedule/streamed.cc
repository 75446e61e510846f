#include "lemma/schedule/streamed.h"

#include <algorithm>

namespace lemma::schedule {

using tensor::Comprehension;
using tensor::Role;

Streamed take_apart(const tensor::Graph& graph, const Group& group) {
  Streamed out;
  out.stream = group.stream();
  for (const Member& m : group.members) {
    const Comprehension& node = std::get<Comprehension>(graph.node(m.node));
    const auto at = std::find(m.loops.begin(), m.loops.end(), out.stream);
    if (!node.monoid || at == m.loops.end()) continue;
    if (node.indices[size_t(at - m.loops.begin())].role == Role::Reduce) {
      out.reducing.push_back(&m);
    } else {
      out.member = &m;
      out.node = &node;
    }
  }
  out.contraction = *match_contraction(*out.node);
  const Contraction& c = out.contraction;
  const bool stream_is_m = std::any_of(c.m.begin(), c.m.end(), [&](int i) { return out.member->loops[size_t(i)] == out.stream; });
  out.stream_index = stream_is_m ? c.m[0] : c.n[0];
  out.point_factor = stream_is_m ? c.rhs : c.lhs;
  out.stream_factor = stream_is_m ? c.lhs : c.rhs;
  out.point_domain = stream_is_m ? c.rhs_domain : c.lhs_domain;
  out.stream_domain = stream_is_m ? c.lhs_domain : c.rhs_domain;
  out.row = out.member->loops[size_t((stream_is_m ? c.n : c.m).back())];
  return out;
}

std::vector<int> columns_of(const Group& group, const Member& member, const Comprehension& node, size_t component) {
  std::vector<int> out;
  for (int i : node.components[component]) {
    if (group.loops[size_t(member.loops[size_t(i)])].kind != LoopKind::Grid) out.push_back(i);
  }
  return out;
}

bool is_second_product(const Group& group, int row, const Member& member, const Comprehension& node, size_t component) {
  if (node.monoid->structure != monoid::Structure::RescaledSum || component == 0) return false;
  if (columns_of(group, member, node, component).empty()) return false;
  for (int i : used_indices(node, node.body[component])) {
    if (member.loops[size_t(i)] == row) return false;
  }
  return true;
}

}  // namespace lemma::schedule
