// Copies a graph node by node into a new one, interning as it goes. Equality of nodes is structural; expressions are
// interned in the graph's one arena, so a body compares by identity and hashing a node costs what writing it costs.
#include "lemma/tensor/rebuild.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/base/hash.h"
#include "lemma/base/match.h"

namespace lemma::tensor {
namespace {

using base::mix;
using scalar::Expr;
using view::Form;

size_t hash_of(const Form& form) {
  size_t out = form.terms().size();
  for (const view::Term& t : form.terms()) {
    out = mix(out, size_t(t.coefficient));
    for (const view::Atom& a : t.factors) {
      out = mix(out, size_t(a.kind) * 64 + size_t(a.id));
      if (a.floor) out = mix(mix(out, hash_of(a.floor->numerator)), hash_of(a.floor->denominator));
    }
  }
  return out;
}

size_t hash_of(const view::Formula& formula) {
  size_t out = formula.cases().size();
  for (const view::Conjunction& c : formula.cases()) {
    out = mix(out, c.size());
    for (const view::Constraint& k : c) out = mix(mix(out, size_t(k.relation)), hash_of(k.form));
  }
  return out;
}

size_t hash_of(const std::vector<Form>& forms) {
  size_t out = forms.size();
  for (const Form& f : forms) out = mix(out, hash_of(f));
  return out;
}

size_t hash_of(Value v) { return mix(size_t(v.node.index), size_t(v.output)); }

size_t hash_of(const std::vector<Expr>& exprs) {
  size_t out = exprs.size();
  for (Expr e : exprs) out = mix(out, e.index());
  return out;
}

size_t hash_frame(const std::vector<IndexInfo>& indices, const view::Formula& domain, const std::vector<Read>& reads) {
  size_t out = indices.size();
  for (const IndexInfo& i : indices) out = mix(mix(out, size_t(i.role)), hash_of(i.extent));
  out = mix(out, hash_of(domain));
  for (const Read& r : reads) out = mix(mix(mix(out, hash_of(r.source)), hash_of(r.coords)), hash_of(r.guard));
  return out;
}

bool same_frame(const std::vector<IndexInfo>& a, const std::vector<IndexInfo>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].role != b[i].role || a[i].extent != b[i].extent) return false;
  }
  return true;
}

bool same_monoid(const monoid::MonoidRef& a, const monoid::MonoidRef& b) {
  return a == b || (a && b && monoid::same(*a, *b));
}

bool same_outputs(const std::vector<Output>& a, const std::vector<Output>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].type != b[i].type || a[i].result != b[i].result || a[i].dims != b[i].dims ||
        a[i].final_state != b[i].final_state) {
      return false;
    }
  }
  return true;
}

bool same_comprehension(const Comprehension& a, const Comprehension& b) {
  return same_frame(a.indices, b.indices) && a.domain == b.domain && a.reads == b.reads && a.body == b.body &&
         a.components == b.components && a.scan == b.scan && a.initial == b.initial &&
         same_outputs(a.outputs, b.outputs) && same_monoid(a.monoid, b.monoid);
}

bool same_scatter(const Scatter& a, const Scatter& b) {
  return same_frame(a.indices, b.indices) && a.domain == b.domain && a.reads == b.reads && a.body == b.body &&
         a.extents == b.extents && a.coords == b.coords && a.base == b.base && a.type == b.type &&
         same_monoid(a.monoid, b.monoid);
}

// Nodes that some output reaches through reads; inputs always.
std::vector<char> live_nodes(const Graph& graph) {
  std::vector<char> live(graph.nodes.size(), 0);
  for (const GraphOutput& o : graph.outputs) live[size_t(o.value.node.index)] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (std::holds_alternative<Input>(graph.nodes[i])) live[i] = 1;
    if (!live[i]) continue;
    for (Value v : sources(graph.nodes[i])) live[size_t(v.node.index)] = 1;
  }
  return live;
}

template <class F>
void map_values(Node& node, const F& f) {
  base::match(
      node, [](Input&) {},
      [&](Comprehension& n) {
        for (Read& r : n.reads) r.source = f(r.source);
        for (Value& v : n.definition_inputs) v = f(v);
      },
      [&](Scatter& n) {
        for (Read& r : n.reads) r.source = f(r.source);
        if (n.base) n.base = f(*n.base);
      });
}

void import_expressions(Node& node, scalar::Arena& arena) {
  base::match(
      node, [](Input&) {},
      [&](Comprehension& n) {
        for (Expr& e : n.body) e = scalar::import(e, arena);
        for (Expr& e : n.initial) e = scalar::import(e, arena);
      },
      [&](Scatter& n) { n.body = scalar::import(n.body, arena); });
}

// A definition being rebuilt so that it stands on live values only.
class Absorb {
 public:
  Absorb(const Graph& graph, const std::vector<char>& live, const Comprehension& node)
      : graph_(graph), live_(live), old_(node.definition->graph), stands_on_(node.definition_inputs) {}

  void run(Comprehension& node) {
    new_.name = old_.name;
    new_.arena = old_.arena;
    new_.sizes = old_.sizes;
    const std::vector<Tensor> dead = find_dead();
    for (Value v : boundary_) inputs_.emplace(v, add_input(v));
    for (Tensor t : dead) copies_.emplace(t, copy(graph_.node(t), [&](Value v) { return of_outer(v); }));
    size_t next_input = 0;
    std::vector<Value> first;  // of each old node of the definition
    for (const Node& n : old_.nodes) {
      if (std::holds_alternative<Input>(n)) {
        first.push_back(of_outer(stands_on_[next_input++]));
      } else {
        first.push_back({copy(n, [&](Value v) { return within(first, v); }), 0});
      }
    }
    for (GraphOutput o : old_.outputs) {
      o.value = within(first, o.value);
      new_.outputs.push_back(std::move(o));
    }
    node.definition = std::make_shared<const Definition>(Definition{std::move(new_)});
    node.definition_inputs = std::vector<Value>(boundary_.begin(), boundary_.end());
  }

 private:
  // The dead producers the definition needs, in order, and the live values they and it stand on.
  std::vector<Tensor> find_dead() {
    std::set<Tensor> dead;
    std::vector<Value> work = stands_on_;
    while (!work.empty()) {
      const Value v = work.back();
      work.pop_back();
      if (live_[size_t(v.node.index)]) {
        boundary_.insert(v);
      } else if (dead.insert(v.node).second) {
        for (Value s : sources(graph_.node(v.node))) work.push_back(s);
        if (const auto* c = std::get_if<Comprehension>(&graph_.node(v.node))) {
          work.insert(work.end(), c->definition_inputs.begin(), c->definition_inputs.end());
        }
      }
    }
    return {dead.begin(), dead.end()};
  }

  Value add_input(Value v) {
    Input input;
    input.name = lemma::tensor::name(graph_, v);
    for (int n = 2; !names_.insert(input.name).second; ++n) {
      input.name = lemma::tensor::name(graph_, v) + std::to_string(n);
    }
    input.extents = extents(graph_, v);
    input.type = type(graph_, v);
    return {new_.add(std::move(input)), 0};
  }

  Value of_outer(Value v) const {
    if (auto it = inputs_.find(v); it != inputs_.end()) return it->second;
    return {copies_.at(v.node), v.output};
  }

  // An input of the definition may now be any output of a copied node; other nodes keep their output numbers.
  Value within(const std::vector<Value>& first, Value v) const {
    const Value by = first[size_t(v.node.index)];
    return std::holds_alternative<Input>(old_.node(v.node)) ? by : Value{by.node, v.output};
  }

  template <class F>
  Tensor copy(Node node, const F& f) {
    map_values(node, f);
    import_expressions(node, *new_.arena);
    return new_.add(std::move(node));
  }

  const Graph& graph_;
  const std::vector<char>& live_;
  const Graph& old_;
  std::vector<Value> stands_on_;
  Graph new_;
  std::set<Value> boundary_;
  std::map<Value, Value> inputs_;
  std::map<Tensor, Tensor> copies_;
  std::set<std::string> names_;
};

// Makes the node's definition stand on live values.
void absorb_dead(const Graph& graph, const std::vector<char>& live, Node& node) {
  auto* c = std::get_if<Comprehension>(&node);
  if (!c || !c->definition) return;
  bool all_live = true;
  for (Value v : c->definition_inputs) all_live = all_live && live[size_t(v.node.index)];
  if (!all_live) Absorb(graph, live, *c).run(*c);
}

}  // namespace

bool same(const Node& a, const Node& b) {
  if (a.index() != b.index()) return false;
  return base::match(
      a, [](const Input&) { return false; },
      [&](const Comprehension& n) { return same_comprehension(n, std::get<Comprehension>(b)); },
      [&](const Scatter& n) { return same_scatter(n, std::get<Scatter>(b)); });
}

size_t hash(const Node& node) {
  return base::match(
      node, [](const Input& n) { return std::hash<std::string>{}(n.name); },
      [](const Comprehension& n) {
        size_t out = mix(hash_frame(n.indices, n.domain, n.reads), hash_of(n.body));
        out = mix(out, n.monoid ? monoid::hash(*n.monoid) : 0);
        if (n.scan) out = mix(out, 1 + size_t(n.scan->exclusive) * 2 + size_t(n.scan->reverse));
        out = mix(out, hash_of(n.initial));
        for (const Output& o : n.outputs) {
          out = mix(mix(out, size_t(o.type)), size_t(o.result) * 2 + size_t(o.final_state));
          for (int d : o.dims) out = mix(out, size_t(d));
        }
        return out;
      },
      [](const Scatter& n) {
        size_t out = mix(hash_frame(n.indices, n.domain, n.reads), n.body.index());
        out = mix(mix(out, hash_of(n.extents)), hash_of(n.coords));
        out = mix(out, n.monoid ? monoid::hash(*n.monoid) : 0);
        return mix(mix(out, n.base ? hash_of(*n.base) : 0), size_t(n.type));
      });
}

struct Rebuild::Interned {
  std::unordered_multimap<size_t, Tensor> by_hash;
  std::vector<char> live;  // of the old graph
};

Rebuild::Rebuild(const Graph& old) : old_(old), interned_(std::make_unique<Interned>()) {
  graph_.name = old.name;
  graph_.arena = old.arena;
  graph_.sizes = old.sizes;
  values_.resize(old.nodes.size());
  interned_->live = live_nodes(old);
}

Rebuild::~Rebuild() = default;

Tensor Rebuild::add(Node node) {
  import_expressions(node, *graph_.arena);
  for (Value v : sources(node)) {
    LEMMA_CHECK(v.node.valid() && size_t(v.node.index) < graph_.nodes.size(), "a node reads one that does not precede it");
  }
  if (std::holds_alternative<Input>(node)) return graph_.add(std::move(node));
  const size_t key = hash(node);
  const auto [begin, end] = interned_->by_hash.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    if (same(graph_.node(it->second), node)) return it->second;
  }
  const Tensor added = graph_.add(std::move(node));
  interned_->by_hash.emplace(key, added);
  return added;
}

Value Rebuild::value(Value old) const {
  const std::vector<Value>& values = values_[size_t(old.node.index)];
  LEMMA_CHECK(size_t(old.output) < values.size(), "a value of a node that was not visited");
  return values[size_t(old.output)];
}

void Rebuild::visit(Tensor old, const Replace& f) {
  Node node = old_.node(old);
  absorb_dead(old_, interned_->live, node);
  map_values(node, [&](Value v) { return value(v); });
  Replaced replaced = f ? f(*this, old, node) : std::nullopt;
  std::vector<Value>& values = values_[size_t(old.index)];
  if (replaced) {
    LEMMA_CHECK(int(replaced->size()) >= output_count(old_.node(old)), "too few values for a node's outputs");
    values = std::move(*replaced);
    return;
  }
  const int outputs = std::max(output_count(node), output_count(old_.node(old)));
  const Tensor added = add(std::move(node));
  for (int o = 0; o < outputs; ++o) values.push_back({added, o});
}

Graph Rebuild::finish() {
  for (GraphOutput o : old_.outputs) {
    o.value = value(o.value);
    if (o.updates) o.updates = value({*o.updates, 0}).node;
    graph_.outputs.push_back(std::move(o));
  }
  return std::move(graph_);
}

Graph rebuild(const Graph& graph, const Replace& f) {
  Rebuild build(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (build.interned_->live[i]) build.visit(Tensor{int32_t(i)}, f);
  }
  return remove_dead(build.finish());
}

Graph remove_dead(const Graph& graph) {
  const std::vector<char> live = live_nodes(graph);
  Graph out;
  out.name = graph.name;
  out.arena = graph.arena;
  out.sizes = graph.sizes;
  std::vector<Tensor> moved(graph.nodes.size());
  const auto map_value = [&](Value v) { return Value{moved[size_t(v.node.index)], v.output}; };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!live[i]) continue;
    Node node = graph.nodes[i];
    absorb_dead(graph, live, node);
    map_values(node, map_value);
    moved[i] = out.add(std::move(node));
  }
  for (GraphOutput o : graph.outputs) {
    o.value = map_value(o.value);
    if (o.updates) o.updates = moved[size_t(o.updates->index)];
    out.outputs.push_back(std::move(o));
  }
  return out;
}

}  // namespace lemma::tensor
