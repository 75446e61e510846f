#include "lemma/rewrite/split_reduction.h"

#include <algorithm>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using monoid::MonoidRef;
using monoid::Structure;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::IndexInfo;
using tensor::Output;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;
using view::Formula;

constexpr char kPass[] = "split_reduction";

// Whether folding a monoid's results again by the monoid itself combines its states: elements are states already (sum,
// max), or a state lifts to itself when its parts are taken for score and weights (a rescaled sum), or for elements (top-k).
bool folds_its_results(const monoid::Monoid& m) {
  return fold_of(m).has_value() || m.structure == Structure::RescaledSum || m.structure == Structure::TopK;
}

bool rounds(const monoid::Monoid& m) {
  if (m.structure == Structure::TopK) return false;
  for (const monoid::Update& u : m.combine) {
    for (Expr e : scalar::reachable({&u.body, 1})) {
      const bool moves = e.is(Op::Select) || e.is(Op::Min) || e.is(Op::Max);
      if (!e.args().empty() && scalar::is_float(e.kind()) && !moves) return true;
    }
  }
  return false;
}

// The monoid with its states for elements or results.
MonoidRef with_states(const monoid::Monoid& m, bool elements, bool results) {
  monoid::Monoid out = m;
  scalar::Arena& arena = *out.arena;
  const auto state = [&](size_t c) { return scalar::arg(arena, out.components[c].kind, int(c)); };
  if (elements) {
    out.operands.clear();
    out.lift.clear();
    for (size_t c = 0; c < out.components.size(); ++c) {
      out.operands.push_back(out.components[c].kind);
      out.lift.push_back(state(c));
    }
  }
  if (results) {
    out.finish.clear();
    for (size_t c = 0; c < out.components.size(); ++c) out.finish.push_back(state(c));
  }
  return std::make_shared<const monoid::Monoid>(std::move(out));
}

struct Blocks {
  Form count;
  Form size;
};

// Inserts a point after the last one, shifting later indices.
int insert_point(Comprehension& node, IndexInfo info) {
  int at = 0;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (node.indices[i].role == Role::Point) at = int(i) + 1;
  }
  std::vector<int> to;
  for (size_t i = 0; i < node.indices.size(); ++i) to.push_back(int(i) + (int(i) >= at ? 1 : 0));
  rename_indices(node, to);
  node.indices.insert(node.indices.begin() + at, std::move(info));
  return at;
}

// Index `j` of the node becomes `form`, in everything but the index list.
void substitute_index(const Graph& graph, Comprehension& node, int j, const Form& form) {
  const auto by = [&](int i) { return i == j ? form : Form::index(i); };
  node.domain = node.domain.map_indices(by);
  for (tensor::Read& r : node.reads) {
    r.guard = r.guard.map_indices(by);
    for (Form& c : r.coords) c = c.map_indices(by);
  }
  const Expr value = expr_of(form, graph, node);
  node.body = replace_leaves(node.body, *graph.arena, [&](Expr e) {
    return e.is(Op::Index) && e.payload() == j ? value : Expr();
  });
}

// The partial reductions: one output a state component.
Comprehension partials(const Graph& graph, const Comprehension& node, int reduced, const Blocks& blocks, bool strided) {
  Comprehension out = node;
  out.name += "_blocks";
  out.definition = nullptr;
  out.definition_inputs.clear();
  const Form extent = node.indices[size_t(reduced)].extent;
  const std::string name = node.indices[size_t(reduced)].name;
  const int block = insert_point(out, {name + "_block", blocks.count, Role::Point});
  const int r = reduced + 1;
  const Form j = strided ? Form::index(r) * blocks.count + Form::index(block)
                         : Form::index(block) * blocks.size + Form::index(r);
  substitute_index(graph, out, r, j);
  out.indices[size_t(r)].extent = blocks.size;
  const auto whole = extent.constant(), part = (blocks.count * blocks.size).constant();
  if (!whole || whole != part) out.domain = out.domain && Formula::less(j, extent);
  out.outputs.clear();
  for (size_t c = 0; c < out.components.size(); ++c) {
    std::vector<int>& set = out.components[c];
    set.push_back(block);
    std::sort(set.begin(), set.end());
    Output o;
    o.name = out.name + (out.components.size() > 1 ? "_" + node.monoid->components[c].name : "");
    o.type = scalar::dtype_of(node.monoid->components[c].kind);
    o.result = int(c);
    o.dims = set;
    out.outputs.push_back(std::move(o));
  }
  if (!folds_its_results(*node.monoid)) out.monoid = with_states(*node.monoid, false, true);
  return out;
}

// The reduction over the blocks, with the node's name and outputs.
Comprehension combined(const Graph& graph, const Comprehension& node, Tensor part, int reduced, const Blocks& blocks) {
  Comprehension out;
  out.name = node.name;
  out.span = node.span;
  out.components = node.components;
  out.outputs = node.outputs;
  out.definition = node.definition;
  out.definition_inputs = node.definition_inputs;
  out.monoid = folds_its_results(*node.monoid) ? node.monoid : with_states(*node.monoid, true, false);
  for (const IndexInfo& i : node.indices) {
    if (i.role != Role::Reduce) out.indices.push_back(i);
  }
  const int block = int(out.indices.size());
  out.indices.push_back({node.indices[size_t(reduced)].name + "_block", blocks.count, Role::Reduce});
  // The best elements of the best of each block: slots are elements.
  int slot = -1, axis = -1;
  if (node.monoid->structure == Structure::TopK) {
    axis = out.components[0].back();
    slot = int(out.indices.size());
    out.indices.push_back({out.indices[size_t(axis)].name + "_of_block", out.indices[size_t(axis)].extent, Role::Reduce});
  }
  const auto& partial = std::get<Comprehension>(graph.node(part));
  for (size_t c = 0; c < partial.outputs.size(); ++c) {
    tensor::Read read;
    read.source = {part, int(c)};
    // Points keep their numbers; the block stands after the last point in the partials, and axes one later.
    for (int d : partial.outputs[c].dims) {
      const bool is_block = partial.indices[size_t(d)].role == Role::Point && partial.indices[size_t(d)].name == out.indices[size_t(block)].name &&
                            d == int(partial.with_role(Role::Point).back());
      const bool is_axis = partial.indices[size_t(d)].role == Role::Axis;
      read.coords.push_back(Form::index(is_block ? block : is_axis ? slot : d));
    }
    out.reads.push_back(std::move(read));
    out.body.push_back(scalar::arg(*graph.arena, node.monoid->components[c].kind, int(c)));
  }
  if (slot >= 0) out.domain = Formula::non_negative(Form::data(1));
  return out;
}

// The reduced index to split, or a sentence why none.
struct Choice {
  int index = -1;
  std::string reason;
};
Choice choose(const Comprehension& node, const SplitOptions& options) {
  const std::vector<int> reduced = node.with_role(Role::Reduce);
  if (reduced.empty()) return {-1, "it reduces over nothing"};
  int index = -1;
  for (int i : reduced) {
    if (index < 0 && (options.index.empty() || node.indices[size_t(i)].name == options.index)) index = i;
  }
  if (index < 0) return {-1, "it reduces over no index " + options.index};
  if (!node.monoid->commutative && (options.strided || index != reduced[0])) {
    return {-1, "its monoid keeps the order of its elements, which this split would change"};
  }
  const bool axes = std::any_of(node.monoid->components.begin(), node.monoid->components.end(),
                                [](const monoid::Component& c) { return !c.axes.empty(); });
  if (axes && node.monoid->structure != Structure::TopK) return {-1, "its states have axes, which an element has not"};
  return {index, {}};
}

}  // namespace

Graph split_reduction(const Graph& graph, const SplitOptions& options, const Context& context) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, Tensor, tensor::Node& old) -> tensor::Replaced {
    const auto* node = std::get_if<Comprehension>(&old);
    if (!node || !is_reduction(*node) || !small(*node) || (!options.node.empty() && node->name != options.node)) return {};
    if (!options.count && !options.size) return {};
    const auto no = [&](std::string why) -> tensor::Replaced {
      context.declined(kPass, node->name, std::move(why));
      return {};
    };
    const Choice choice = choose(*node, options);
    if (choice.index < 0) return no(choice.reason);
    if (context.allow == Claim::Exact && rounds(*node->monoid)) return no("another order of its sums rounds differently");
    const Form extent = node->indices[size_t(choice.index)].extent;
    const Blocks blocks = options.count ? Blocks{Form(*options.count), Form::ceil_div(extent, Form(*options.count))}
                                        : Blocks{Form::ceil_div(extent, Form(*options.size)), Form(*options.size)};
    if (auto n = extent.constant(); n && (options.count ? *n < *options.count : *n <= *options.size)) {
      return no("its " + std::to_string(*n) + " elements are too few to split");
    }
    const Tensor part = build.add(partials(build.graph(), *node, choice.index, blocks, options.strided));
    Comprehension whole = combined(build.graph(), *node, part, choice.index, blocks);
    context.applied(kPass, node->name, "partial results of blocks are combined");
    old = std::move(whole);
    return {};
  });
}

}  // namespace lemma::rewrite
