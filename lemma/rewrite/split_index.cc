#include "lemma/rewrite/split_index.h"

#include <optional>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/edits.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using tensor::Role;
using tensor::Tensor;
using view::Form;

constexpr char kPass[] = "split_index";

enum class Places : uint8_t { Halves, Pairs };

// Dimension `dim` of the node's output is read at both places of every element of half its extent.
struct Coupled {
  size_t dim = 0;
  Places places = Places::Halves;
  Form half;
};

// Which of the two places a coordinate reads, and the coordinate in half the extent; nothing if it is none.
struct Place {
  int part = 0;
  Form coordinate;
};
std::optional<Place> place_of(const Form& coordinate, const Coupled& c, const Comprehension& reader) {
  const auto inside = [&](const Form& f) {
    const auto i = f.as_index();
    return i && reader.indices[size_t(*i)].extent == c.half;
  };
  for (int part = 0; part < 2; ++part) {
    if (c.places == Places::Halves) {
      const Form at = coordinate - Form(part) * c.half;
      if (inside(at)) return Place{part, at};
    } else {
      const Form twice = coordinate - Form(part);
      const Form at = Form::floor_div(twice, Form(2));
      if (at + at == twice && inside(at)) return Place{part, at};
    }
  }
  return std::nullopt;
}

bool couples(const Graph& graph, Tensor node, const Coupled& c, const std::vector<int>& readers) {
  bool both[2] = {false, false};
  for (int u : readers) {
    const auto* reader = std::get_if<Comprehension>(&graph.nodes[size_t(u)]);
    if (!reader) return false;
    for (const Read& r : reader->reads) {
      if (r.source.node != node) continue;
      const auto at = place_of(r.coords[c.dim], c, *reader);
      if (!at) return false;
      both[at->part] = true;
    }
  }
  return both[0] && both[1];
}

std::optional<Coupled> match_coupled(const Graph& graph, Tensor id, const Comprehension& node, const std::vector<int>& readers) {
  if (node.outputs.size() != 1 || node.scan || node.definition || readers.empty() || !small(node)) return std::nullopt;
  if (node.monoid) {
    if (node.monoid->structure != monoid::Structure::Elementwise || node.monoid->components.size() != 1) return std::nullopt;
    if (!node.monoid->components[0].axes.empty()) return std::nullopt;
  }
  for (const tensor::GraphOutput& o : graph.outputs) {
    if (o.value.node == id) return std::nullopt;
  }
  const std::vector<int>& dims = node.outputs[0].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const Form& extent = node.indices[size_t(dims[d])].extent;
    const Form half = Form::floor_div(extent, Form(2));
    if (half + half != extent || extent == Form(0)) continue;
    for (Places places : {Places::Halves, Places::Pairs}) {
      const Coupled c{d, places, half};
      if (couples(graph, id, c, readers)) return c;
    }
  }
  return std::nullopt;
}

// The node with index `which` at one of its places.
void fix_place(const Graph& graph, Comprehension& node, int which, const Form& at) {
  const auto by = [&](int i) { return i == which ? at : Form::index(i); };
  node.domain = node.domain.map_indices(by);
  for (Read& r : node.reads) {
    r.guard = r.guard.map_indices(by);
    for (Form& c : r.coords) c = c.map_indices(by);
  }
  const Expr value = expr_of(at, graph, node);
  node.body = replace_leaves(node.body, *graph.arena, [&](Expr e) {
    return e.is(Op::Index) && e.payload() == which ? value : Expr();
  });
}

std::optional<Comprehension> split(const Graph& graph, const Comprehension& node, const Coupled& c) {
  const int which = node.outputs[0].dims[c.dim];
  const Form f = Form::index(which);
  Comprehension parts[2] = {node, node};
  for (int p = 0; p < 2; ++p) {
    fix_place(graph, parts[p], which, c.places == Places::Halves ? f + Form(p) * c.half : Form(2) * f + Form(p));
  }
  if (parts[0].domain != parts[1].domain || parts[0].domain.uses(view::AtomKind::Data)) return std::nullopt;
  Comprehension out = parts[0];
  out.indices[size_t(which)].extent = c.half;
  std::vector<int> position;
  const auto renumber = [&](int r) { return position[size_t(r)]; };
  for (const Read& r : parts[1].reads) {
    Read moved{r.source, {}, r.guard.map_data(renumber)};
    for (const Form& coord : r.coords) moved.coords.push_back(coord.map_data(renumber));
    position.push_back(add_read(out, moved));
  }
  const size_t result = size_t(node.outputs[0].result);
  const Expr second = replace_leaves(parts[1].body[node.monoid ? 0 : result], *graph.arena, [&](Expr e) -> Expr {
    if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), renumber(int(e.payload())));
    if (e.is(Op::Present)) return scalar::present(e.arena(), renumber(int(e.payload())));
    return {};
  });
  out.body = {out.body[node.monoid ? 0 : result], second};
  if (node.monoid) {
    if (node.body.size() != 1) return std::nullopt;
    out.monoid = monoid::pair(node.monoid, node.monoid);
    out.components.push_back(out.components[0]);
  }
  out.outputs.push_back(out.outputs[0]);
  for (int p = 0; p < 2; ++p) {
    out.outputs[size_t(p)].result = p;
    out.outputs[size_t(p)].name += std::to_string(p);
  }
  tidy_reads(out);
  return out;
}

}  // namespace

Graph split_index(const Graph& graph, const Context& context) {
  const std::vector<std::vector<int>> users = users_of(graph);
  std::vector<bool> defines(graph.nodes.size(), false);  // what a definition stands on keeps its shape
  for (const tensor::Node& n : graph.nodes) {
    const auto* c = std::get_if<Comprehension>(&n);
    for (size_t v = 0; c && v < c->definition_inputs.size(); ++v) defines[size_t(c->definition_inputs[v].node.index)] = true;
  }
  Graph out = graph;
  bool any = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* node = std::get_if<Comprehension>(&out.nodes[n]);
    if (!node || defines[n]) continue;
    const Tensor id{int32_t(n)};
    const auto coupled = match_coupled(out, id, *node, users[n]);
    if (!coupled) continue;
    auto both = split(out, *node, *coupled);
    if (!both) {
      context.declined(kPass, node->name, "its domain differs between the two places");
      continue;
    }
    context.applied(kPass, node->name, "its two coupled parts are computed together");
    out.nodes[n] = std::move(*both);
    for (int u : users[n]) {
      auto& reader = std::get<Comprehension>(out.nodes[size_t(u)]);
      for (Read& r : reader.reads) {
        if (r.source.node != id) continue;
        const Place at = *place_of(r.coords[coupled->dim], *coupled, reader);
        r.source.output = at.part;
        r.coords[coupled->dim] = at.coordinate;
      }
    }
    any = true;
  }
  return any ? tensor::rebuild(out, {}) : graph;
}

}  // namespace lemma::rewrite
