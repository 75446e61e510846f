#include "tests/property/reduce.h"

#include <algorithm>

#include "lemma/tensor/validate.h"

namespace lemma::property {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Input;
using tensor::Node;
using tensor::Read;
using tensor::Role;
using tensor::Scatter;
using tensor::Tensor;
using tensor::Value;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

std::vector<Read>* reads_of(Node& node) {
  if (auto* c = std::get_if<Comprehension>(&node)) return &c->reads;
  if (auto* s = std::get_if<Scatter>(&node)) return &s->reads;
  return nullptr;
}

// Without the nodes, inputs included, that no output hangs on.
Graph without_unused(const Graph& graph) {
  std::vector<char> live(graph.nodes.size());
  for (const tensor::GraphOutput& o : graph.outputs) {
    live[size_t(o.value.node.index)] = 1;
    if (o.updates) live[size_t(o.updates->index)] = 1;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (Value v : tensor::sources(graph.nodes[n])) live[size_t(v.node.index)] = 1;
  }
  Graph out = graph;
  out.nodes.clear();
  std::vector<int> place(graph.nodes.size(), -1);
  const auto moved = [&](Tensor& t) { t.index = place[size_t(t.index)]; };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!live[n]) continue;
    place[n] = int(out.nodes.size());
    out.nodes.push_back(graph.nodes[n]);
    if (auto* reads = reads_of(out.nodes.back())) {
      for (Read& r : *reads) moved(r.source.node);
    }
    if (auto* s = std::get_if<Scatter>(&out.nodes.back()); s && s->base) moved(s->base->node);
  }
  for (tensor::GraphOutput& o : out.outputs) {
    moved(o.value.node);
    if (o.updates) moved(*o.updates);
  }
  return out;
}

// Without the reads that nothing uses.
void drop_reads(Comprehension& node) {
  std::vector<char> used(node.reads.size());
  for (int r : node.domain.ids(AtomKind::Data)) used[size_t(r)] = 1;
  std::vector<Expr> roots = node.body;
  roots.insert(roots.end(), node.initial.begin(), node.initial.end());
  for (Expr e : scalar::reachable(roots)) {
    if (e.is(Op::Arg) || e.is(Op::Present)) used[size_t(e.payload())] = 1;
  }
  for (size_t r = node.reads.size(); r-- > 0;) {
    if (!used[r]) continue;
    for (int q : node.reads[r].guard.ids(AtomKind::Data)) used[size_t(q)] = 1;
    for (const Form& c : node.reads[r].coords) {
      for (int q : c.ids(AtomKind::Data)) used[size_t(q)] = 1;
    }
  }
  std::vector<int> place(node.reads.size());
  std::vector<Read> kept;
  for (size_t r = 0; r < node.reads.size(); ++r) {
    place[r] = int(kept.size());
    if (used[r]) kept.push_back(node.reads[r]);
  }
  const auto renumber = [&](int r) { return place[size_t(r)]; };
  for (Read& r : kept) {
    r.guard = r.guard.map_data(renumber);
    for (Form& c : r.coords) c = c.map_data(renumber);
  }
  node.domain = node.domain.map_data(renumber);
  node.reads = std::move(kept);
  for (std::vector<Expr>* list : {&node.body, &node.initial}) {
    for (Expr& root : *list) {
      root = scalar::rewrite(root, root.arena(), [&](Expr e, std::span<const Expr>) {
        if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), renumber(int(e.payload())));
        if (e.is(Op::Present)) return scalar::present(e.arena(), renumber(int(e.payload())));
        return Expr();
      });
    }
  }
}

// Whether no value is used of a read that did not happen: its guard follows from the domain, or a select stands over it.
bool reads_happen(const Comprehension& node) {
  std::vector<Expr> roots = node.body;
  roots.insert(roots.end(), node.initial.begin(), node.initial.end());
  for (Expr& root : roots) {
    root = scalar::rewrite(root, root.arena(), [](Expr e, std::span<const Expr> args) {
      if (!e.is(Op::Select) || !e.arg(0).is(Op::Present) || !e.arg(1).is(Op::Arg)) return Expr();
      return e.arg(0).payload() == e.arg(1).payload() ? args[2] : Expr();
    });
  }
  for (Expr e : scalar::reachable(roots)) {
    if (e.is(Op::Arg) && !((node.domain && node.reads[size_t(e.payload())].guard) == node.domain)) return false;
  }
  return true;
}

class Reducer {
 public:
  Reducer(const Case& c, const Check& check, int most) : check_(check), most_(most) {
    best_.c = c;
    best_.failure = check(c);
  }

  Reduced run() {
    bool changed = true;
    while (changed && best_.attempts < most_) {
      changed = false;
      for (const auto step : {&Reducer::outputs, &Reducer::cuts, &Reducer::sizes, &Reducer::nodes}) {
        while (best_.attempts < most_ && (this->*step)()) changed = true;
      }
    }
    return best_;
  }

 private:
  // Takes the candidate if it is valid and fails in the same stage.
  bool take(Case candidate) {
    if (best_.attempts >= most_) return false;
    candidate.symbolic = without_unused(candidate.symbolic);
    if (!tensor::validate(candidate.symbolic).ok()) return false;
    for (const Node& n : candidate.symbolic.nodes) {
      if (const auto* c = std::get_if<Comprehension>(&n); c && !reads_happen(*c)) return false;
    }
    ++best_.attempts;
    Failure f = check_(candidate);
    if (f.ok() || f.stage != best_.failure.stage || f.unsupported != best_.failure.unsupported) return false;
    best_.c = std::move(candidate);
    best_.failure = std::move(f);
    return true;
  }

  // One output, or what it is computed from.
  bool outputs() {
    const Graph& graph = best_.c.symbolic;
    if (graph.outputs.size() < 2) {
      for (int32_t n = 0; n < graph.outputs[0].value.node.index; ++n) {
        if (std::holds_alternative<Input>(graph.nodes[size_t(n)])) continue;
        Case next = best_.c;
        const Value value{Tensor{n}, 0};
        next.symbolic.outputs = {{graph.outputs[0].name, value, tensor::type(graph, value), std::nullopt}};
        if (take(std::move(next))) return true;
      }
      return false;
    }
    for (size_t o = 0; o < best_.c.symbolic.outputs.size(); ++o) {
      Case next = best_.c;
      next.symbolic.outputs = {best_.c.symbolic.outputs[o]};
      if (take(std::move(next))) return true;
    }
    return false;
  }

  // A node becomes an input.
  bool cuts() {
    const Graph& graph = best_.c.symbolic;
    for (size_t n = graph.nodes.size(); n-- > 0;) {
      if (std::holds_alternative<Input>(graph.nodes[n]) || tensor::output_count(graph.nodes[n]) != 1) continue;
      Case next = best_.c;
      const Value v{Tensor{int32_t(n)}, 0};
      Input input;
      input.name = tensor::name(graph, v) + "_cut";
      input.extents = tensor::extents(graph, v);
      input.type = tensor::type(graph, v);
      next.symbolic.nodes[n] = std::move(input);
      if (take(std::move(next))) return true;
    }
    return false;
  }

  bool sizes() {
    for (size_t s = 0; s < best_.c.sizes.size(); ++s) {
      const int64_t now = best_.c.sizes[s].value;
      for (const int64_t less : {int64_t(0), int64_t(1), int64_t(2), now / 2, now - 1}) {
        if (less >= now || less < 0) continue;
        Case next = best_.c;
        next.sizes[s].value = less;
        if (take(std::move(next))) return true;
      }
    }
    if (best_.c.special) {
      Case next = best_.c;
      next.special = false;
      if (take(std::move(next))) return true;
    }
    return false;
  }

  template <class Edit>
  bool edit(size_t n, const Edit& change) {
    Case next = best_.c;
    change(std::get<Comprehension>(next.symbolic.nodes[n]), next.symbolic);
    return take(std::move(next));
  }

  bool nodes() {
    for (size_t n = best_.c.symbolic.nodes.size(); n-- > 0;) {
      if (auto* input = std::get_if<Input>(&best_.c.symbolic.nodes[n]); input && (input->strided || input->low)) {
        Case next = best_.c;
        auto& plain = std::get<Input>(next.symbolic.nodes[n]);
        plain.strided = false;
        if (take(std::move(next))) return true;
      }
      if (!std::holds_alternative<Comprehension>(best_.c.symbolic.nodes[n])) continue;
      if (formulas(n) || bodies(n) || folds(n) || coordinates(n) || results(n)) return true;
    }
    return false;
  }

  const Comprehension& at(size_t n) const { return std::get<Comprehension>(best_.c.symbolic.nodes[n]); }

  bool formulas(size_t n) {
    if (!at(n).domain.is_always()) {
      if (edit(n, [](Comprehension& c, Graph&) { c.domain = Formula::always(); })) return true;
      const size_t cases = at(n).domain.cases().size();
      for (size_t k = 0; k < cases; ++k) {
        const size_t constraints = at(n).domain.cases()[k].size();
        if (cases == 1 && constraints == 1) break;
        for (size_t drop = 0; drop <= constraints; ++drop) {
          if (drop == constraints && cases == 1) continue;
          if (edit(n, [&](Comprehension& c, Graph&) {
                Formula kept;
                const view::Conjunction all = c.domain.cases()[k];
                for (size_t i = 0; i < all.size(); ++i) {
                  if (i == drop) continue;
                  kept = kept && (all[i].relation == view::Relation::Zero ? Formula::zero(all[i].form) : Formula::non_negative(all[i].form));
                }
                c.domain = kept;
              })) return true;
        }
      }
    }
    for (size_t r = 0; r < at(n).reads.size(); ++r) {
      if (at(n).reads[r].guard.is_always()) continue;
      if (edit(n, [&](Comprehension& c, Graph&) { c.reads[r].guard = Formula::always(); })) return true;
    }
    return false;
  }

  // A subexpression gives way to one of its operands, or to a constant.
  bool bodies(size_t n) {
    for (size_t b = 0; b < at(n).body.size(); ++b) {
      const std::vector<Expr> all = scalar::reachable({&at(n).body[b], 1});
      for (size_t i = all.size(); i-- > 0;) {
        std::vector<Expr> simpler(all[i].args().begin(), all[i].args().end());
        if (!all[i].is_const()) simpler.push_back(scalar::constant(all[i].arena(), all[i].kind(), 1));
        for (const Expr by : simpler) {
          if (by.kind() != all[i].kind()) continue;
          if (edit(n, [&](Comprehension& c, Graph&) {
                c.body[b] = scalar::rewrite(c.body[b], c.body[b].arena(), [&](Expr e, std::span<const Expr>) { return e == all[i] ? by : Expr(); });
                drop_reads(c);
              })) return true;
        }
      }
    }
    return false;
  }

  bool folds(size_t n) {
    const Comprehension& node = at(n);
    if (!node.monoid) return false;
    if (!node.initial.empty() && edit(n, [](Comprehension& c, Graph&) { c.initial.clear(); })) return true;
    if (node.scan && (node.scan->exclusive || node.scan->reverse) && edit(n, [](Comprehension& c, Graph&) { c.scan = tensor::Scan{}; })) return true;
    const bool simple = node.monoid->operands.size() == 1 && node.monoid->components.size() == 1 && node.monoid->components[0].axes.empty();
    if (simple && node.monoid->name != "sum" && node.monoid->operands[0] != scalar::Kind::Bool &&
        edit(n, [](Comprehension& c, Graph&) { c.monoid = monoid::sum(c.monoid->operands[0]); })) return true;
    // A reduce index becomes 0.
    for (size_t i = 0; i < at(n).indices.size(); ++i) {
      if (at(n).indices[i].role != Role::Reduce || at(n).with_role(Role::Reduce).size() < 2) continue;
      if (edit(n, [&](Comprehension& c, Graph&) { fix_index(c, int(i)); })) return true;
    }
    return false;
  }

  // Index `id`, after all points, leaves the node with the value 0.
  static void fix_index(Comprehension& c, int id) {
    const auto form = [&](int i) { return i == id ? Form(0) : Form::index(i > id ? i - 1 : i); };
    c.domain = c.domain.map_indices(form);
    for (Read& r : c.reads) {
      r.guard = r.guard.map_indices(form);
      for (Form& f : r.coords) f = f.map_indices(form);
    }
    for (Expr& root : c.body) {
      root = scalar::rewrite(root, root.arena(), [&](Expr e, std::span<const Expr>) {
        if (!e.is(Op::Index)) return Expr();
        return e.payload() == id ? scalar::i64(e.arena(), 0) : scalar::index(e.arena(), int(e.payload() > id ? e.payload() - 1 : e.payload()));
      });
    }
    c.indices.erase(c.indices.begin() + id);
  }

  bool coordinates(size_t n) {
    for (size_t r = 0; r < at(n).reads.size(); ++r) {
      for (size_t d = 0; d < at(n).reads[r].coords.size(); ++d) {
        const Form now = at(n).reads[r].coords[d];
        if (now.is_constant() || now.is_index()) continue;
        std::vector<Form> simpler{Form(0)};
        for (int i : now.ids(AtomKind::Index)) simpler.push_back(Form::index(i));
        for (const Form& by : simpler) {
          if (edit(n, [&](Comprehension& c, Graph&) { c.reads[r].coords[d] = by, drop_reads(c); })) return true;
        }
      }
    }
    return false;
  }

  // Narrow storage, and outputs that nobody reads.
  bool results(size_t n) {
    for (size_t o = 0; o < at(n).outputs.size(); ++o) {
      const scalar::DType wide = scalar::dtype_of(scalar::kind_of(at(n).outputs[o].type));
      if (at(n).outputs[o].type != wide && edit(n, [&](Comprehension& c, Graph&) { c.outputs[o].type = wide; })) return true;
      if (at(n).outputs.size() < 2) continue;
      bool read = false;
      Case next = best_.c;
      const auto renumber = [&](Value& v) {
        if (size_t(v.node.index) != n) return;
        read = read || size_t(v.output) == o;
        if (size_t(v.output) > o) --v.output;
      };
      for (Node& node : next.symbolic.nodes) {
        if (auto* reads = reads_of(node)) for (Read& each : *reads) renumber(each.source);
        if (auto* s = std::get_if<Scatter>(&node); s && s->base) renumber(*s->base);
      }
      for (tensor::GraphOutput& out : next.symbolic.outputs) renumber(out.value);
      if (read) continue;
      auto& outputs = std::get<Comprehension>(next.symbolic.nodes[n]).outputs;
      outputs.erase(outputs.begin() + std::ptrdiff_t(o));
      if (take(std::move(next))) return true;
    }
    return false;
  }

  const Check& check_;
  const int most_;
  Reduced best_;
};

}  // namespace

Reduced reduce(const Case& c, const Check& check, int most_attempts) { return Reducer(c, check, most_attempts).run(); }

}  // namespace lemma::property
