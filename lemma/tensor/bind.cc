// Substitutes values for sizes. Forms multiply exactly or stop the process, so every product a substitution would make
// is bounded first; what a user's sizes can cause is an error here and never an overflow there.
#include "lemma/tensor/bind.h"

#include <cmath>
#include <map>

#include "lemma/base/match.h"

namespace lemma::tensor {
namespace {

using scalar::Expr;
using view::Form;

constexpr double kLargest = 0x1p62;

class Bind {
 public:
  explicit Bind(Graph graph) : graph_(std::move(graph)) {}

  base::Result<Graph> run(std::span<const Binding> bindings) {
    LEMMA_TRY_VOID(take(bindings));
    return rewrite();
  }

 private:
  base::Result<void> take(std::span<const Binding> bindings) {
    for (const Binding& b : bindings) {
      Size* size = nullptr;
      for (Size& s : graph_.sizes) {
        if (s.name == b.name) size = &s;
      }
      if (!size) return unknown(b.name);
      if (size->value && *size->value != b.value) {
        return base::invalid("size " + b.name + " is given both " + std::to_string(*size->value) + " and " +
                                 std::to_string(b.value), size->span);
      }
      LEMMA_TRY_VOID(check(*size, b.value));
      size->value = b.value;
    }
    return {};
  }

  base::Diagnostic unknown(const std::string& name) const {
    std::string known;
    for (const Size& s : graph_.sizes) known += (known.empty() ? "" : ", ") + s.name;
    return base::invalid("no size is called " + name, {},
                         known.empty() ? "the program has no sizes" : "its sizes are " + known);
  }

  static base::Result<void> check(const Size& size, int64_t value) {
    const std::string given = "size " + size.name + " is " + std::to_string(value);
    if (value < size.low) {
      return base::invalid(given + " but must be at least " + std::to_string(size.low), size.span);
    }
    if (size.high && value > *size.high) {
      return base::invalid(given + " but must be at most " + std::to_string(*size.high), size.span);
    }
    if (size.divisor > 1 && value % size.divisor != 0) {
      return base::invalid(given + " but must be a multiple of " + std::to_string(size.divisor), size.span);
    }
    return {};
  }

  base::Result<Graph> rewrite() {
    for (Node& node : graph_.nodes) {
      base::match(
          node, [&](Input& n) { bind_input(n); }, [&](Comprehension& n) { bind_comprehension(n); },
          [&](Scatter& n) {
            bind_frame(n.indices, n.domain, n.reads);
            n.body = expression(n.body);
            forms(n.extents);
            forms(n.coords);
            bind_monoid(n.monoid);
          });
      if (failure_) return *failure_;
      LEMMA_TRY_VOID(check_counts(node));
    }
    return std::move(graph_);
  }

  void bind_input(Input& n) {
    forms(n.extents);
    if (n.low) *n.low = form(*n.low);
    if (n.high) *n.high = form(*n.high);
  }

  void bind_comprehension(Comprehension& n) {
    bind_frame(n.indices, n.domain, n.reads);
    for (Expr& e : n.body) e = expression(e);
    for (Expr& e : n.initial) e = expression(e);
    bind_monoid(n.monoid);
    if (!n.definition) return;
    Graph inner = n.definition->graph;
    for (size_t s = 0; s < inner.sizes.size() && s < graph_.sizes.size(); ++s) inner.sizes[s].value = graph_.sizes[s].value;
    base::Result<Graph> bound = Bind(std::move(inner)).rewrite();
    if (bound) {
      n.definition = std::make_shared<const Definition>(Definition{std::move(*bound)});
    } else {
      fail(bound.error());
    }
  }

  void bind_frame(std::vector<IndexInfo>& indices, view::Formula& domain, std::vector<Read>& reads) {
    for (IndexInfo& i : indices) i.extent = form(i.extent);
    domain = formula(domain);
    for (Read& r : reads) {
      forms(r.coords);
      r.guard = formula(r.guard);
    }
  }

  // One bound monoid for all nodes that share it.
  void bind_monoid(monoid::MonoidRef& monoid) {
    if (!monoid) return;
    monoid::MonoidRef& bound = monoids_[monoid];
    if (!bound) {
      monoid::Monoid m = *monoid;
      for (monoid::Component& c : m.components) forms(c.axes);
      for (monoid::Update& u : m.combine) {
        forms(u.sums);
        for (monoid::StateRead& r : u.reads) forms(r.coords);
        u.body = expression(u.body);
      }
      for (std::vector<Expr>* list : {&m.identity, &m.lift, &m.finish}) {
        for (Expr& e : *list) e = expression(e);
      }
      bound = std::make_shared<const monoid::Monoid>(std::move(m));
      if (monoid::same(*bound, *monoid)) bound = monoid;
    }
    monoid = bound;
  }

  std::optional<int64_t> value(int size) const { return graph_.sizes[size_t(size)].value; }

  // No more than the largest number its substitution can hold, over all indices at 1.
  double magnitude(const Form& f) const {
    double sum = 0;
    for (const view::Term& t : f.terms()) {
      double product = std::fabs(double(t.coefficient));
      for (const view::Atom& a : t.factors) {
        if (a.kind == view::AtomKind::Size) product *= std::fabs(double(value(a.id).value_or(1)));
        if (a.kind == view::AtomKind::Floor) {
          product *= std::max(1.0, std::max(magnitude(a.floor->numerator), magnitude(a.floor->denominator)));
        }
      }
      sum += product;
    }
    return sum;
  }

  Form form(const Form& f) {
    if (f.is_constant() || !f.uses(view::AtomKind::Size)) return f;
    if (magnitude(f) > kLargest) {
      fail(base::invalid("an extent or coordinate exceeds 2^62 at these sizes", {}, "bind smaller sizes"));
      return f;
    }
    return f.substitute(substitution());
  }

  Form::Substitution substitution() const {
    return [this](const view::Atom& a) -> std::optional<Form> {
      if (a.kind != view::AtomKind::Size || !value(a.id)) return std::nullopt;
      return Form(*value(a.id));
    };
  }

  void forms(std::vector<Form>& list) {
    for (Form& f : list) f = form(f);
  }

  view::Formula formula(const view::Formula& f) {
    if (!f.uses(view::AtomKind::Size)) return f;
    for (const view::Conjunction& c : f.cases()) {
      for (const view::Constraint& k : c) {
        if (magnitude(k.form) > kLargest) {
          fail(base::invalid("a condition exceeds 2^62 at these sizes", {}, "bind smaller sizes"));
          return f;
        }
      }
    }
    return f.substitute(substitution());
  }

  Expr expression(Expr e) {
    if (!e.valid()) return e;
    scalar::Arena& arena = e.arena();
    return scalar::rewrite(e, arena, [&](Expr node, std::span<const Expr>) {
      if (!node.is(scalar::Op::Size) || !value(int(node.payload()))) return Expr();
      return scalar::i64(arena, *value(int(node.payload())));
    });
  }

  base::Result<void> check_counts(const Node& node) const {
    return base::match(
        node, [&](const Input& n) { return count(n.name, n.extents, n.span); },
        [&](const Comprehension& n) { return count_space(n.name, n.indices, n.span); },
        [&](const Scatter& n) {
          auto space = count_space(n.name, n.indices, n.span);
          return space ? count(n.name, n.extents, n.span) : space;
        });
  }

  static base::Result<void> count_space(const std::string& name, const std::vector<IndexInfo>& indices,
                                        const base::Span& span) {
    std::vector<Form> extents;
    for (const IndexInfo& i : indices) {
      if (auto k = i.extent.constant(); k && *k < 0) {
        return base::invalid("index " + i.name + " of " + name + " has the extent " + std::to_string(*k), span,
                             "bind sizes that make every extent at least 0");
      }
      extents.push_back(i.extent);
    }
    return count(name, extents, span);
  }

  static base::Result<void> count(const std::string& name, const std::vector<Form>& extents, const base::Span& span) {
    double total = 1;
    bool empty = false;
    for (const Form& e : extents) {
      const auto k = e.constant();
      if (!k) continue;
      if (*k < 0) return base::invalid(name + " has the extent " + std::to_string(*k), span);
      empty = empty || *k == 0;
      total *= double(std::max<int64_t>(*k, 1));
    }
    if (!empty && total > kLargest) {
      return base::invalid(name + " has more than 2^62 elements at these sizes", span, "bind smaller sizes");
    }
    return {};
  }

  void fail(base::Diagnostic diagnostic) {
    if (!failure_) failure_ = std::move(diagnostic);
  }

  Graph graph_;
  std::map<monoid::MonoidRef, monoid::MonoidRef> monoids_;
  std::optional<base::Diagnostic> failure_;
};

}  // namespace

base::Result<Graph> bind(const Graph& graph, std::span<const Binding> bindings) { return Bind(graph).run(bindings); }

std::vector<std::string> unbound_sizes(const Graph& graph) {
  std::vector<std::string> out;
  for (const Size& s : graph.sizes) {
    if (!s.value) out.push_back(s.name);
  }
  return out;
}

}  // namespace lemma::tensor
