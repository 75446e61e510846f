#include "lemma/schedule/group.h"

#include <algorithm>
#include <map>

#include "lemma/base/check.h"
#include "lemma/schedule/device.h"

namespace lemma::schedule {
namespace {

using tensor::Comprehension;
using tensor::Graph;
using tensor::Tensor;

const Comprehension& comprehension(const Graph& graph, Tensor t) { return std::get<Comprehension>(graph.node(t)); }

bool is_output(const Graph& graph, Tensor node) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const tensor::GraphOutput& o) { return o.value.node == node; });
}

bool is_point(tensor::Role role) { return role == tensor::Role::Point || role == tensor::Role::Axis; }

}  // namespace

int Group::stream() const {
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].kind == LoopKind::Stream) return int(i);
  }
  return -1;
}

const Member* Group::member(Tensor node) const {
  for (const Member& m : members) {
    if (m.node == node) return &m;
  }
  return nullptr;
}

std::optional<Contraction> product_of(const Graph& graph, Tensor node, const Limits& limits) {
  const auto* c = std::get_if<Comprehension>(&graph.node(node));
  if (!c) return std::nullopt;
  auto match = match_contraction(*c);
  if (!match || match->m.empty() || match->n.empty()) return std::nullopt;
  if (limits.strict && !(match->lhs_domain.is_always() && match->rhs_domain.is_always())) return std::nullopt;
  if (limits.target.device && is_small_product(graph, *c, *match)) return std::nullopt;
  return match;
}

GroupBuilder::GroupBuilder(const Graph& graph, Tensor root, Limits limits) : graph_(graph), limits_(std::move(limits)) {
  nodes_.insert(root.index);
  Member member{root, {}};
  if (const auto* c = std::get_if<Comprehension>(&graph.node(root))) {
    for (const tensor::IndexInfo& i : c->indices) member.loops.push_back(add_loop(i.name, i.extent));
    group_.name = c->name;
    if (product_of(graph, root, limits_)) group_.strategy = Strategy::Product;
  } else {
    const auto& s = std::get<tensor::Scatter>(graph.node(root));
    for (const tensor::IndexInfo& i : s.indices) member.loops.push_back(add_loop(i.name, i.extent));
    group_.name = s.name;
    group_.strategy = Strategy::Scatter;
  }
  group_.members.push_back(std::move(member));
}

int GroupBuilder::add_loop(const std::string& name, const view::Form& extent) {
  group_.loops.push_back({name, extent, LoopKind::Inner});
  return int(group_.loops.size()) - 1;
}

// The loops of the node's indices as its readers see them; -1 where no reader looks. Two loops met by one index are to
// be merged.
std::optional<std::string> GroupBuilder::map_reads(Tensor node, std::vector<int>& loops,
                                                   std::vector<std::pair<int, int>>& merge) const {
  const Comprehension& producer = comprehension(graph_, node);
  loops.assign(producer.indices.size(), -1);
  for (const Member& m : group_.members) {
    const auto* reader = std::get_if<Comprehension>(&graph_.node(m.node));
    if (!reader) return "a scatter reads it";
    for (const tensor::Read& r : reader->reads) {
      if (!(r.source.node == node)) continue;
      const std::vector<int>& dims = producer.outputs[size_t(r.source.output)].dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        const auto pick = r.coords[d].as_index();
        if (!pick) return reader->name + " reads it at more than its own indices";
        const tensor::IndexInfo& seen = reader->indices[size_t(*pick)];
        if (!(seen.extent == producer.indices[size_t(dims[d])].extent)) return reader->name + " reads only part of it";
        const int loop = m.loops[size_t(*pick)];
        int& mine = loops[size_t(dims[d])];
        if (mine < 0) mine = loop;
        else if (mine != loop) merge.push_back({mine, loop});
      }
    }
  }
  // Two indices of one node cannot run on one loop.
  for (size_t i = 0; i < loops.size(); ++i) {
    for (size_t j = i + 1; j < loops.size(); ++j) {
      if (loops[i] >= 0 && loops[i] == loops[j]) return "it is read along a diagonal";
    }
  }
  return std::nullopt;
}

namespace {

// Loops that are points of every member may be tiled over the grid.
std::set<int> common_points(const Graph& graph, const Group& group) {
  std::set<int> common;
  for (size_t i = 0; i < group.loops.size(); ++i) common.insert(int(i));
  for (const Member& m : group.members) {
    const auto* c = std::get_if<Comprehension>(&graph.node(m.node));
    if (!c) return {};
    std::set<int> points;
    for (size_t i = 0; i < c->indices.size(); ++i) {
      if (c->indices[i].role == tensor::Role::Point) points.insert(m.loops[i]);
    }
    // A point that only some components of a state have is not a point of all it computes.
    for (const std::vector<int>& own : c->components) {
      std::set<int> some;
      for (int i : own) some.insert(m.loops[size_t(i)]);
      std::set<int> both;
      std::set_intersection(points.begin(), points.end(), some.begin(), some.end(), std::inserter(both, both.end()));
      points = both;
    }
    std::set<int> both;
    std::set_intersection(common.begin(), common.end(), points.begin(), points.end(),
                          std::inserter(both, both.end()));
    common = both;
  }
  return common;
}

void replace_loop(Group& group, int from, int to) {
  for (Member& m : group.members) {
    for (int& l : m.loops) {
      if (l == from) l = to;
    }
  }
}

bool has_loop(const Member& m, int loop) {
  return std::find(m.loops.begin(), m.loops.end(), loop) != m.loops.end();
}

// A reduction over the loop.
bool reduces_over(const Graph& graph, const Member& m, int loop) {
  const auto* c = std::get_if<Comprehension>(&graph.node(m.node));
  if (!c || !c->monoid) return false;
  for (size_t i = 0; i < c->indices.size(); ++i) {
    if (m.loops[i] == loop && c->indices[i].role == tensor::Role::Reduce) return true;
  }
  return false;
}

// The loop can be streamed if whatever runs along it feeds its reductions and reads none of them.
std::optional<std::string> check_stream(const Graph& graph, const Group& group, int stream) {
  std::set<int> after;  // nodes that depend on a reduction over the stream
  for (const Member& m : group.members) {
    const auto& c = comprehension(graph, m.node);
    bool depends = false;
    for (const tensor::Read& r : c.reads) depends = depends || after.count(r.source.node.index) > 0;
    if (has_loop(m, stream)) {
      if (depends) return c.name + " runs along " + group.loops[size_t(stream)].name + " and needs its reduction";
      if (reduces_over(graph, m, stream)) {
        if (c.scan) return c.name + " is a scan";
        if (c.with_role(tensor::Role::Reduce).size() != 1) return c.name + " reduces over more than the stream";
        if (c.monoid->structure == monoid::Structure::General || !c.monoid->commutative) {
          return "the monoid of " + c.name + " keeps its elements in order";
        }
        after.insert(m.node.index);
      }
    }
    if (depends) after.insert(m.node.index);
  }
  return std::nullopt;
}

// With grid loops named, and without loops that were merged away.
Group finished(const Graph& graph, Group out) {
  for (int loop : common_points(graph, out)) {
    if (out.loops[size_t(loop)].kind == LoopKind::Inner) out.loops[size_t(loop)].kind = LoopKind::Grid;
  }
  std::vector<int> renumber(out.loops.size(), -1);
  std::vector<Loop> loops;
  for (size_t l = 0; l < out.loops.size(); ++l) {
    const bool used = std::any_of(out.members.begin(), out.members.end(),
                                  [&](const Member& m) { return has_loop(m, int(l)); });
    if (!used) continue;
    renumber[l] = int(loops.size());
    loops.push_back(out.loops[l]);
  }
  for (Member& m : out.members) {
    for (int& l : m.loops) l = renumber[size_t(l)];
  }
  out.loops = std::move(loops);
  return out;
}

}  // namespace

std::optional<std::string> GroupBuilder::absorb(Tensor node) {
  refused_by_device_ = false;
  const auto* producer = std::get_if<Comprehension>(&graph_.node(node));
  if (!producer) return "it is not computed by index notation";
  if (group_.strategy == Strategy::Scatter) return "a scatter takes in nothing";
  std::vector<int> loops;
  std::vector<std::pair<int, int>> merge;
  if (auto why = map_reads(node, loops, merge)) return why;

  Group grown = group_;
  for (auto [keep, drop] : merge) {
    for (auto& [a, b] : merge) {
      if (a == drop) a = keep;
      if (b == drop) b = keep;
    }
    if (keep == drop) continue;
    if (!(grown.loops[size_t(keep)].extent == grown.loops[size_t(drop)].extent)) return "its loops differ in extent";
    for (const Member& m : grown.members) {
      if (has_loop(m, keep) && has_loop(m, drop)) return "one reader uses two of its loops apart";
    }
    replace_loop(grown, drop, keep);
    for (int& l : loops) {
      if (l == drop) l = keep;
    }
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] >= 0) continue;
    grown.loops.push_back({producer->indices[i].name, producer->indices[i].extent, LoopKind::Inner});
    loops[i] = int(grown.loops.size()) - 1;
  }
  const std::set<int> before = common_points(graph_, group_);
  const Member joining{node, loops};
  auto at = std::find_if(grown.members.begin(), grown.members.end(),
                         [&](const Member& m) { return node < m.node; });
  grown.members.insert(at, joining);

  if (const auto product = product_of(graph_, node, limits_)) {
    const bool only_maps = std::all_of(group_.members.begin(), group_.members.end(), [&](const Member& m) {
      return !comprehension(graph_, m.node).monoid;
    });
    if (only_maps && group_.strategy == Strategy::Rows) {
      // Every map must run over the product's points and nothing else, so that it is an epilogue.
      for (const Member& m : group_.members) {
        std::set<int> a(m.loops.begin(), m.loops.end()), b;
        for (size_t i = 0; i < loops.size(); ++i) {
          if (is_point(producer->indices[i].role)) b.insert(loops[i]);
        }
        if (a != b) return comprehension(graph_, m.node).name + " does not run over exactly its points";
      }
      grown.strategy = Strategy::Product;
    } else if (group_.strategy == Strategy::Rows) {
      if (is_output(graph_, node)) return "it is an output and must be written";
      int stream = -1;
      for (const std::vector<int>& side : {product->m, product->n}) {
        for (int i : side) {
          for (const Member& m : grown.members) {
            if (!(m.node == node) && reduces_over(graph_, m, loops[size_t(i)])) {
              if (stream >= 0 && stream != loops[size_t(i)]) return "it would be reduced over two of its loops";
              stream = loops[size_t(i)];
            }
          }
        }
      }
      if (stream < 0) return "a product takes a kernel of its own unless it is streamed";
      for (const std::vector<int>& side : {product->m, product->n}) {
        const bool has = std::any_of(side.begin(), side.end(), [&](int i) { return loops[size_t(i)] == stream; });
        if (has && side.size() != 1) return "its streamed side has more than one index";
      }
      if (auto why = check_stream(graph_, grown, stream)) return why;
      for (const Member& m : grown.members) {
        const Comprehension& c = comprehension(graph_, m.node);
        if (limits_.strict && reduces_over(graph_, m, stream) && !c.domain.is_always()) {
          return "absent terms of " + c.name + " would be multiplied by 0, which only holds where they are finite";
        }
      }
      const std::set<int> common = common_points(graph_, grown);
      for (size_t i = 0; i < loops.size(); ++i) {
        if (is_point(producer->indices[i].role) && loops[i] != stream && !common.count(loops[i])) {
          return "its point " + producer->indices[i].name + " is not one of the whole kernel";
        }
      }
      grown.loops[size_t(stream)].kind = LoopKind::Stream;
      grown.strategy = Strategy::Streamed;
    } else {
      return "the group has its product already";
    }
  } else {
    if (group_.strategy == Strategy::Product) return "a product's kernel takes in no more";
    if (group_.strategy == Strategy::Streamed) {
      const int stream = group_.stream();
      if (!has_loop(joining, stream)) return "a streamed kernel takes in only what runs along its stream";
      if (auto why = check_stream(graph_, grown, stream)) return why;
    }
    const std::set<int> after = common_points(graph_, grown);
    if (!before.empty() && after.empty()) return "no common points would be left to run in parallel";
  }
  if (limits_.target.device) {
    if (auto why = device_refusal(graph_, finished(graph_, grown), limits_.target)) {
      refused_by_device_ = true;
      return why;
    }
  }
  group_ = std::move(grown);
  nodes_.insert(node.index);
  return std::nullopt;
}

Group GroupBuilder::finish() const { return finished(graph_, group_); }

}  // namespace lemma::schedule
