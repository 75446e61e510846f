// The structural half of validity. Each check states what was found and what was expected.
#include "lemma/tensor/validate.h"

#include <algorithm>

#include "lemma/base/match.h"

namespace lemma::tensor {
namespace {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::AtomKind;
using view::Form;
using view::Formula;

std::string text(int n) { return std::to_string(n); }
std::string text(size_t n) { return std::to_string(n); }
std::string text(Kind kind) { return std::string(scalar::name(kind)); }

bool holds(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

void join(std::vector<int>& into, const std::vector<int>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

class Validate {
 public:
  explicit Validate(const Graph& graph) : graph_(graph) {}

  Result<void> run() {
    for (at_ = 0; at_ < graph_.nodes.size(); ++at_) {
      LEMMA_TRY_VOID(base::match(
          graph_.nodes[at_], [&](const Input& n) { return input(n); },
          [&](const Comprehension& n) { return comprehension(n); }, [&](const Scatter& n) { return scatter(n); }));
    }
    for (const GraphOutput& o : graph_.outputs) LEMMA_TRY_VOID(output(o));
    return {};
  }

  std::vector<const Graph*> definitions;  // found on the way

 private:
  base::Diagnostic wrong(const std::string& message) const { return base::invalid(node_ + ": " + message, span_); }

  Result<void> input(const Input& n) {
    node_ = "input " + n.name;
    span_ = n.span;
    for (const Form& f : n.extents) LEMMA_TRY_VOID(over_sizes(f, "an extent"));
    if ((n.low || n.high) && scalar::is_float(n.type)) return wrong("a range is stated of floats");
    if (n.low) LEMMA_TRY_VOID(over_sizes(*n.low, "the range"));
    if (n.high) LEMMA_TRY_VOID(over_sizes(*n.high, "the range"));
    return {};
  }

  Result<void> over_sizes(const Form& f, const std::string& what) {
    if (f.uses(AtomKind::Index) || f.uses(AtomKind::Data)) return wrong(what + " hangs on indices or data");
    return sizes_exist(f);
  }

  Result<void> sizes_exist(const Form& f) {
    for (int s : f.ids(AtomKind::Size)) {
      if (s < 0 || size_t(s) >= graph_.sizes.size()) return wrong("size " + text(s) + " does not exist");
    }
    return {};
  }

  // A form over the node's indices and the first `reads` reads.
  Result<void> form(const Form& f, size_t reads, const std::string& what) {
    LEMMA_TRY_VOID(sizes_exist(f));
    for (int i : f.ids(AtomKind::Index)) {
      if (i < 0 || size_t(i) >= indices_->size()) return wrong(what + " uses index " + text(i) + " of " + text(indices_->size()));
    }
    for (int r : f.ids(AtomKind::Data)) {
      if (r < 0 || size_t(r) >= reads) return wrong(what + " uses read " + text(r) + " but may use the first " + text(reads));
      const Kind k = kind(graph_, (*reads_)[size_t(r)].source);
      if (scalar::is_float(k)) return wrong(what + " uses read " + text(r) + " of kind " + text(k) + " as an integer");
    }
    return {};
  }

  Result<void> formula(const Formula& f, size_t reads, const std::string& what) {
    for (const view::Conjunction& c : f.cases()) {
      for (const view::Constraint& k : c) LEMMA_TRY_VOID(form(k.form, reads, what));
    }
    return {};
  }

  Result<void> value(Value v) {
    if (!v.node.valid() || size_t(v.node.index) >= at_) return wrong("it reads node " + text(v.node.index) + ", which does not precede it");
    if (v.output < 0 || v.output >= output_count(graph_.node(v.node))) return wrong("it reads output " + text(v.output) + " of a node that lacks it");
    return {};
  }

  Result<void> frame(const std::vector<IndexInfo>& indices, const Formula& domain, const std::vector<Read>& reads) {
    indices_ = &indices;
    reads_ = &reads;
    int stage = 0;
    for (const IndexInfo& i : indices) {
      LEMMA_TRY_VOID(over_sizes(i.extent, "the extent of " + i.name));
      if (auto k = i.extent.constant(); k && *k < 0) return wrong("the extent of " + i.name + " is " + std::to_string(*k));
      const int place = i.role == Role::Scan ? 1 : i.role == Role::Reduce ? 2 : 0;
      if (place < stage) return wrong("index " + i.name + " stands after one of a later role");
      stage = place;
    }
    for (size_t r = 0; r < reads.size(); ++r) {
      LEMMA_TRY_VOID(value(reads[r].source));
      const size_t rank = extents(graph_, reads[r].source).size();
      if (reads[r].coords.size() != rank) {
        return wrong("its read of " + name(graph_, reads[r].source) + " has " + text(reads[r].coords.size()) +
                     " coordinates but the source has " + text(rank) + " dimensions");
      }
      for (const Form& f : reads[r].coords) LEMMA_TRY_VOID(form(f, r, "a coordinate of read " + text(r)));
      LEMMA_TRY_VOID(formula(reads[r].guard, r, "the guard of read " + text(r)));
    }
    return formula(domain, reads.size(), "the domain");
  }

  Result<void> expression(Expr e, const std::string& what) {
    if (!e.valid()) return wrong(what + " is missing");
    for (Expr x : scalar::reachable({&e, 1})) {
      const int64_t p = x.payload();
      if (x.is(Op::Arg) || x.is(Op::Present)) {
        if (p < 0 || size_t(p) >= reads_->size()) return wrong(what + " uses read " + std::to_string(p) + " of " + text(reads_->size()));
        const Kind k = kind(graph_, (*reads_)[size_t(p)].source);
        if (x.is(Op::Arg) && k != x.kind()) {
          return wrong(what + " uses read " + std::to_string(p) + " as " + text(x.kind()) + " but it is " + text(k));
        }
      }
      if (x.is(Op::Index) && (p < 0 || size_t(p) >= indices_->size())) return wrong(what + " uses index " + std::to_string(p) + " of " + text(indices_->size()));
      if (x.is(Op::Size) && (p < 0 || size_t(p) >= graph_.sizes.size())) return wrong(what + " uses a size that does not exist");
    }
    return {};
  }

  // The indices that a read hangs on, through others too. Reads come in order, so one pass does.
  std::vector<std::vector<int>> indices_of_reads() const {
    std::vector<std::vector<int>> out;
    for (const Read& r : *reads_) {
      std::vector<int> ids = r.guard.ids(AtomKind::Index), data = r.guard.ids(AtomKind::Data);
      for (const Form& f : r.coords) {
        join(ids, f.ids(AtomKind::Index));
        join(data, f.ids(AtomKind::Data));
      }
      for (int d : data) join(ids, out[size_t(d)]);
      out.push_back(std::move(ids));
    }
    return out;
  }

  static std::vector<int> indices_of(const Formula& f, const std::vector<std::vector<int>>& reads) {
    std::vector<int> out = f.ids(AtomKind::Index);
    for (int d : f.ids(AtomKind::Data)) join(out, reads[size_t(d)]);
    return out;
  }

  static std::vector<int> indices_of(Expr e, const std::vector<std::vector<int>>& reads) {
    std::vector<int> out;
    for (Expr x : scalar::reachable({&e, 1})) {
      if (x.is(Op::Index)) join(out, {int(x.payload())});
      if (x.is(Op::Arg) || x.is(Op::Present)) join(out, reads[size_t(x.payload())]);
    }
    return out;
  }

  Result<void> comprehension(const Comprehension& n) {
    node_ = n.name.empty() && !n.outputs.empty() ? n.outputs[0].name : n.name;
    span_ = n.span;
    LEMMA_TRY_VOID(frame(n.indices, n.domain, n.reads));
    if (n.outputs.empty()) return wrong("it has no outputs");
    for (size_t b = 0; b < n.body.size(); ++b) LEMMA_TRY_VOID(expression(n.body[b], "body " + text(b)));
    for (const Output& o : n.outputs) {
      std::vector<int> seen = o.dims;
      for (int d : o.dims) {
        if (d < 0 || size_t(d) >= n.indices.size()) return wrong("output " + o.name + " has dimension " + text(d) + " of " + text(n.indices.size()) + " indices");
        if (n.indices[size_t(d)].role == Role::Reduce) return wrong("output " + o.name + " has the reduce index " + n.indices[size_t(d)].name);
      }
      std::sort(seen.begin(), seen.end());
      if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return wrong("output " + o.name + " has an index twice");
    }
    LEMMA_TRY_VOID(n.monoid ? folded(n) : mapped(n));
    if (!n.definition) return {};
    definitions.push_back(&n.definition->graph);
    size_t inputs = 0;
    for (const Node& d : n.definition->graph.nodes) inputs += std::holds_alternative<Input>(d);
    if (inputs != n.definition_inputs.size()) return wrong("its definition has " + text(inputs) + " inputs but stands on " + text(n.definition_inputs.size()) + " values");
    if (n.definition->graph.outputs.size() != n.outputs.size()) return wrong("its definition has " + text(n.definition->graph.outputs.size()) + " outputs but the node has " + text(n.outputs.size()));
    for (Value v : n.definition_inputs) LEMMA_TRY_VOID(value(v));
    return {};
  }

  Result<void> mapped(const Comprehension& n) {
    if (n.scan || !n.initial.empty() || !n.components.empty()) return wrong("a map has no scan, initial state or components");
    for (const IndexInfo& i : n.indices) {
      if (i.role != Role::Point) return wrong("a map has the index " + i.name + ", which is no point");
    }
    const std::vector<std::vector<int>> reads = indices_of_reads();
    const std::vector<int> domain = indices_of(n.domain, reads);
    for (const Output& o : n.outputs) {
      if (o.final_state) return wrong("a map has no final state");
      if (o.result < 0 || size_t(o.result) >= n.body.size()) return wrong("output " + o.name + " names body " + text(o.result) + " of " + text(n.body.size()));
      LEMMA_TRY_VOID(same_kind(o, n.body[size_t(o.result)].kind()));
      std::vector<int> used = indices_of(n.body[size_t(o.result)], reads);
      join(used, domain);
      for (int id : used) {
        if (!holds(o.dims, id)) return wrong("output " + o.name + " hangs on the index " + n.indices[size_t(id)].name + " but lacks it");
      }
    }
    return {};
  }

  Result<void> same_kind(const Output& o, Kind kind) {
    if (scalar::kind_of(o.type) == kind) return {};
    return wrong("output " + o.name + " is stored as " + std::string(scalar::name(o.type)) + " but its value is " + text(kind));
  }

  Result<void> monoid_shape(const monoid::Monoid& m) {
    const size_t c = m.components.size();
    const bool updates = m.structure == monoid::Structure::TopK ? m.combine.empty() : m.combine.size() == c;
    if (m.identity.size() != c || m.lift.size() != c || !updates) return wrong("monoid " + m.name + " does not state every component");
    for (const monoid::Component& k : m.components) {
      for (const Form& f : k.axes) LEMMA_TRY_VOID(over_sizes(f, "a state axis"));
    }
    for (const monoid::Update& u : m.combine) {
      for (const monoid::StateRead& r : u.reads) {
        if (r.component < 0 || size_t(r.component) >= c || r.coords.size() != m.components[size_t(r.component)].axes.size()) {
          return wrong("monoid " + m.name + " reads a component wrongly in its combine");
        }
      }
    }
    for (Expr f : m.finish) {
      for (Expr e : scalar::reachable({&f, 1})) {
        if (e.is(Op::Arg) && size_t(e.payload()) >= c) return wrong("monoid " + m.name + " finishes from a component it lacks");
        if (e.is(Op::Index)) return wrong("monoid " + m.name + " uses an index in its finish");
      }
    }
    return {};
  }

  Result<void> folded(const Comprehension& n) {
    const monoid::Monoid& m = *n.monoid;
    LEMMA_TRY_VOID(monoid_shape(m));
    if (n.body.size() != m.operands.size()) return wrong("monoid " + m.name + " takes " + text(m.operands.size()) + " operands but the body has " + text(n.body.size()));
    for (size_t b = 0; b < n.body.size(); ++b) {
      if (n.body[b].kind() != m.operands[b]) return wrong("operand " + text(b) + " is " + text(n.body[b].kind()) + " but " + m.name + " takes " + text(m.operands[b]));
    }
    const size_t scans = n.with_role(Role::Scan).size();
    if (scans != (n.scan ? 1u : 0u)) return wrong("a scan has one scan index and nothing else has, but there are " + text(scans));
    if (n.components.size() != m.components.size()) return wrong(text(n.components.size()) + " components have index sets but " + m.name + " has " + text(m.components.size()));
    const std::vector<std::vector<int>> reads = indices_of_reads();
    const std::vector<int> domain = indices_of(n.domain, reads);
    for (size_t c = 0; c < n.components.size(); ++c) LEMMA_TRY_VOID(component(n, c, reads, domain));
    if (!n.initial.empty()) LEMMA_TRY_VOID(initial(n, reads));
    for (const Output& o : n.outputs) LEMMA_TRY_VOID(folded_output(n, o));
    return {};
  }

  Result<void> component(const Comprehension& n, size_t c, const std::vector<std::vector<int>>& reads,
                         const std::vector<int>& domain) {
    const monoid::Component& component = n.monoid->components[c];
    const std::vector<int>& ids = n.components[c];
    const std::string what = "component " + component.name;
    if (ids.size() < component.axes.size()) return wrong(what + " lacks its axes");
    for (size_t k = 0; k < ids.size(); ++k) {
      if (ids[k] < 0 || size_t(ids[k]) >= n.indices.size()) return wrong(what + " has index " + text(ids[k]) + " of " + text(n.indices.size()));
      const IndexInfo& index = n.indices[size_t(ids[k])];
      const size_t first_axis = ids.size() - component.axes.size();
      if (index.role != (k < first_axis ? Role::Point : Role::Axis)) return wrong(what + " has " + index.name + " where it expects " + (k < first_axis ? "a point" : "an axis"));
      if (k >= first_axis && index.extent != component.axes[k - first_axis]) return wrong("the extent of " + index.name + " is not that of its axis in " + n.monoid->name);
    }
    std::vector<int> used = domain;
    for (Expr e : scalar::reachable({&n.monoid->lift[c], 1})) {
      if (e.is(Op::Arg)) join(used, indices_of(n.body[size_t(e.payload())], reads));
    }
    for (int id : used) {
      const IndexInfo& index = n.indices[size_t(id)];
      if (index.role == Role::Axis && holds(domain, id)) return wrong("the domain hangs on the state axis " + index.name);
      if ((index.role == Role::Point || index.role == Role::Axis) && !holds(ids, id)) return wrong(what + " hangs on the index " + index.name + " but lacks it");
    }
    return {};
  }

  Result<void> initial(const Comprehension& n, const std::vector<std::vector<int>>& reads) {
    if (!n.scan) return wrong("only a scan has an initial state");
    if (n.initial.size() != n.components.size()) return wrong("it has " + text(n.initial.size()) + " initial values for " + text(n.components.size()) + " components");
    for (size_t c = 0; c < n.initial.size(); ++c) {
      LEMMA_TRY_VOID(expression(n.initial[c], "an initial value"));
      if (n.initial[c].kind() != n.monoid->components[c].kind) return wrong("initial value " + text(c) + " is " + text(n.initial[c].kind()) + " but its component is " + text(n.monoid->components[c].kind));
      for (int id : indices_of(n.initial[c], reads)) {
        if (!holds(n.components[c], id)) return wrong("initial value " + text(c) + " hangs on the index " + n.indices[size_t(id)].name + ", which its component lacks");
      }
    }
    return {};
  }

  Result<void> folded_output(const Comprehension& n, const Output& o) {
    if (o.result < 0 || size_t(o.result) >= n.monoid->finish.size()) return wrong("output " + o.name + " names result " + text(o.result) + " of " + text(n.monoid->finish.size()));
    LEMMA_TRY_VOID(same_kind(o, n.monoid->finish[size_t(o.result)].kind()));
    if (o.final_state && !n.scan) return wrong("only a scan has a final state");
    for (int scan : n.with_role(Role::Scan)) {
      if (holds(o.dims, scan) == o.final_state) return wrong("output " + o.name + (o.final_state ? " is a final state but has the scan index" : " lacks the scan index"));
    }
    for (Expr e : scalar::reachable({&n.monoid->finish[size_t(o.result)], 1})) {
      if (!e.is(Op::Arg)) continue;
      for (int id : n.components[size_t(e.payload())]) {
        if (!holds(o.dims, id)) return wrong("output " + o.name + " lacks the index " + n.indices[size_t(id)].name + " of a component it is finished from");
      }
    }
    return {};
  }

  Result<void> scatter(const Scatter& n) {
    node_ = n.name;
    span_ = n.span;
    LEMMA_TRY_VOID(frame(n.indices, n.domain, n.reads));
    for (const IndexInfo& i : n.indices) {
      if (i.role != Role::Point) return wrong("a scatter has the index " + i.name + ", which is no point");
    }
    LEMMA_TRY_VOID(expression(n.body, "the body"));
    if (n.coords.size() != n.extents.size()) return wrong("it has " + text(n.coords.size()) + " coordinates for " + text(n.extents.size()) + " dimensions");
    for (const Form& f : n.coords) LEMMA_TRY_VOID(form(f, n.reads.size(), "a target coordinate"));
    for (const Form& f : n.extents) LEMMA_TRY_VOID(over_sizes(f, "an extent"));
    Kind stored = n.body.kind();
    if (n.monoid) {
      const monoid::Monoid& m = *n.monoid;
      LEMMA_TRY_VOID(monoid_shape(m));
      if (m.structure != monoid::Structure::Elementwise || m.components.size() != 1 || m.operands.size() != 1 || m.finish.size() != 1 || !m.components[0].axes.empty()) {
        return wrong("it combines by " + m.name + ", which has not one scalar component");
      }
      if (m.operands[0] != n.body.kind()) return wrong("its body is " + text(n.body.kind()) + " but " + m.name + " takes " + text(m.operands[0]));
      stored = m.finish[0].kind();
    }
    if (scalar::kind_of(n.type) != stored) return wrong("it is stored as " + std::string(scalar::name(n.type)) + " but its value is " + text(stored));
    if (!n.base) return {};
    LEMMA_TRY_VOID(value(*n.base));
    if (extents(graph_, *n.base) != n.extents) return wrong("its base has other extents");
    if (kind(graph_, *n.base) != scalar::kind_of(n.type)) return wrong("its base has another kind");
    return {};
  }

  Result<void> output(const GraphOutput& o) {
    node_ = "output " + o.name;
    span_ = {};
    LEMMA_TRY_VOID(value(o.value));
    if (kind(graph_, o.value) != scalar::kind_of(o.type)) return wrong("it is stored as " + std::string(scalar::name(o.type)) + " but its value is " + text(kind(graph_, o.value)));
    if (!o.updates) return {};
    const auto* target = o.updates->valid() && size_t(o.updates->index) < graph_.nodes.size() ? std::get_if<Input>(&graph_.node(*o.updates)) : nullptr;
    if (!target) return wrong("it updates what is no input");
    if (target->type != o.type || target->extents != extents(graph_, o.value)) return wrong("it updates input " + target->name + " of another type or shape");
    return {};
  }

  const Graph& graph_;
  size_t at_ = 0;
  std::string node_;
  base::Span span_;
  const std::vector<IndexInfo>* indices_ = nullptr;
  const std::vector<Read>* reads_ = nullptr;
};

}  // namespace

Result<void> validate(const Graph& graph) {
  std::vector<const Graph*> work = {&graph};
  while (!work.empty()) {
    const Graph* next = work.back();
    work.pop_back();
    Validate v(*next);
    LEMMA_TRY_VOID(v.run());
    work.insert(work.end(), v.definitions.begin(), v.definitions.end());
  }
  return {};
}

}  // namespace lemma::tensor
