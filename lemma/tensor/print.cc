// Nodes as equations. What a node needs beyond its coordinates (guards, domains, index sets of components) is written
// out, so that reading it back adds nothing and leaves nothing out.
#include "lemma/tensor/print.h"

#include <algorithm>
#include <map>
#include <set>

#include "lemma/base/check.h"
#include "lemma/base/match.h"
#include "lemma/tensor/print_body.h"

namespace lemma::tensor {
namespace {

using monoid::Monoid;
using monoid::MonoidRef;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::AtomKind;
using view::Form;
using view::Formula;

bool is_word(const std::string& name) {
  static const std::set<std::string> keywords = {"and", "or", "not", "else", "inf", "nan", "true", "false", "scan",
                                                 "final", "where", "onto", "nothing", "injective", "in", "like", "return"};
  if (name.empty() || keywords.count(name)) return false;
  bool start = true;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (c == '.' ? start : !(letter || (digit && !start))) return false;
    start = c == '.';
  }
  return !start;
}

std::string quote(const std::string& name) {
  if (is_word(name)) return name;
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Hands out names of which no two are equal.
class Names {
 public:
  std::string take(const std::string& wish) {
    std::string name = wish.empty() ? "t" : wish;
    for (int n = 2; !taken_.insert(name).second; ++n) name = (wish.empty() ? "t" : wish) + "_" + std::to_string(n);
    return name;
  }
  bool has(const std::string& name) const { return taken_.count(name) != 0; }

 private:
  std::set<std::string> taken_;
};

std::string list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    for (const Size& s : graph_.sizes) sizes_.push_back(quote(names_.take(s.name)));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (std::holds_alternative<Input>(graph_.nodes[i])) name(Value{{int32_t(i)}, 0}, std::get<Input>(graph_.nodes[i]).name);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Tensor t{int32_t(i)};
      if (const auto* c = std::get_if<Comprehension>(&graph_.nodes[i])) {
        for (size_t o = 0; o < c->outputs.size(); ++o) name(Value{t, int(o)}, c->outputs[o].name);
      } else if (const auto* s = std::get_if<Scatter>(&graph_.nodes[i])) {
        name(Value{t, 0}, s->name);
      }
    }
    for (const Size& s : graph_.sizes) size(s);
    std::string body;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Tensor t{int32_t(i)};
      body += base::match(
          graph_.nodes[i], [&](const Input& n) { return input(n); }, [&](const Comprehension& n) { return comprehension(t, n); },
          [&](const Scatter& n) { return scatter(t, n); });
    }
    for (const GraphOutput& o : graph_.outputs) body += output(o);
    return out_ + definitions_ + body;
  }

 private:
  void name(Value v, const std::string& wish) { values_[v] = quote(names_.take(wish)); }

  void size(const Size& s) {
    out_ += "dim " + quote(s.name);
    if (s.value) {
      out_ += " = " + std::to_string(*s.value) + "\n";
      return;
    }
    if (s.low != 0 || s.high) out_ += " in " + std::to_string(s.low) + ".." + (s.high ? std::to_string(*s.high) : "");
    if (s.divisor != 1) out_ += ", " + std::to_string(s.divisor) + " | " + quote(s.name);
    if (s.typical) out_ += ", like " + std::to_string(*s.typical);
    out_ += "\n";
  }

  std::string form(const Form& f) const {
    view::Names n;
    n.index = [](int i) { return "i" + std::to_string(i); };
    n.size = [this](int s) { return sizes_[size_t(s)]; };
    n.data = n.index;
    return view::print(f, n);
  }

  std::string input(const Input& n) const {
    std::string out = "input " + quote(n.name);
    std::vector<std::string> extents;
    for (const Form& f : n.extents) extents.push_back(form(f));
    if (!extents.empty()) out += "[" + list(extents) + "]";
    out += " : " + std::string(scalar::name(n.type));
    if (n.low && n.high) out += " in " + form(*n.low) + " .. " + form(*n.high);
    if (n.sorted) out += " sorted";
    if (n.strided) out += " strided";
    return out + "\n";
  }

  std::string output(const GraphOutput& o) const {
    const std::string value = values_.at(o.value);
    if (o.updates) return "update " + values_.at(Value{*o.updates, 0}) + " = " + value + "\n";
    std::string out = "output " + quote(o.name);
    if (o.type != type(graph_, o.value)) out += " : " + std::string(scalar::name(o.type));
    return out + (value == quote(o.name) ? "" : " = " + value) + "\n";
  }

  // ---- one node's own scope ----

  struct Scope {
    std::vector<std::string> indices;
    std::vector<Form> extents;
    const std::vector<Read>* reads = nullptr;
    const Formula* domain = nullptr;
    bool plain_coordinates_only = false;  // a branch could add to the guard of another read
    std::set<int> as_data;
    Names local;
  };

  Scope scope(const std::vector<IndexInfo>& indices, const std::vector<Read>& reads, const Formula& domain, const std::vector<Expr>& exprs) {
    Scope s;
    s.reads = &reads;
    s.domain = &domain;
    for (const IndexInfo& i : indices) {
      std::string wish = i.name;
      while (names_.has(wish)) wish += "_";
      s.indices.push_back(quote(s.local.take(wish)));
      s.extents.push_back(i.extent);
    }
    for (Expr e : scalar::reachable(exprs)) {
      if (e.is(Op::Select) || ((e.is(Op::And) || e.is(Op::Or)) && e.kind() == Kind::Bool)) s.plain_coordinates_only = true;
    }
    const auto note = [&](const std::vector<int>& ids) { s.as_data.insert(ids.begin(), ids.end()); };
    note(domain.ids(AtomKind::Data));
    for (const Read& r : reads) {
      note(r.guard.ids(AtomKind::Data));
      for (const Form& f : r.coords) note(f.ids(AtomKind::Data));
    }
    return s;
  }

  view::Names view_names(const Scope& s) const {
    view::Names n;
    n.index = [&s](int i) { return s.indices[size_t(i)]; };
    n.size = [this](int i) { return sizes_[size_t(i)]; };
    n.data = [this, &s](int r) {
      const Kind k = kind(graph_, (*s.reads)[size_t(r)].source);
      const std::string text = value(s, r);
      return k == Kind::I32 || k == Kind::I64 ? text : "i64(" + text + ")";
    };
    return n;
  }

  std::string form(const Scope& s, const Form& f) const { return view::print(f, view_names(s)); }
  std::string formula(const Scope& s, const Formula& f) const { return view::print(f, view_names(s)); }

  // A read of which x[...] says everything: read back, it adds no guard and nothing to the domain.
  bool is_plain(const Scope& s, int id) const {
    const Read& r = (*s.reads)[size_t(id)];
    const std::vector<Form> extents = tensor::extents(graph_, r.source);
    bool identity = true;
    for (size_t d = 0; d < r.coords.size(); ++d) {
      if (r.coords[d].uses(AtomKind::Data)) return false;
      const auto i = r.coords[d].as_index();
      if (!i || s.extents[size_t(*i)] != extents[d]) identity = false;
    }
    if (!identity && (s.plain_coordinates_only || s.as_data.count(id))) return false;
    const auto* node = std::get_if<Comprehension>(&graph_.node(r.source.node));
    if (!node || node->monoid || node->domain.is_always()) return true;
    if (node->domain.uses(AtomKind::Data) || s.as_data.count(id)) return false;
    const Formula there = domain_of(graph_, r.source).map_indices([&](int d) { return r.coords[size_t(d)]; });
    for (const view::Conjunction& strong : s.domain->cases()) {
      const auto& cases = there.cases();
      if (std::none_of(cases.begin(), cases.end(), [&](const view::Conjunction& weak) {
            return std::includes(strong.begin(), strong.end(), weak.begin(), weak.end());
          })) {
        return false;
      }
    }
    return true;
  }

  std::string subscripted(const Scope& s, int id, bool exact) const {
    const Read& r = (*s.reads)[size_t(id)];
    std::vector<std::string> coords;
    for (const Form& f : r.coords) coords.push_back(form(s, f));
    std::string out = values_.at(r.source);
    if (!coords.empty() || exact) {
      out += "[" + list(coords);
      if (exact) out += (coords.empty() ? ": " : " : ") + formula(s, r.guard);
      out += "]";
    }
    return out;
  }

  std::string value(const Scope& s, int id) const {
    if (!(*s.reads)[size_t(id)].guard.is_always()) return "raw(" + subscripted(s, id, true) + ")";
    return subscripted(s, id, !is_plain(s, id));
  }

  PrintedBody body(Scope& s, const std::vector<Expr>& exprs) {
    BodyNames n;
    n.arg = [&](int r) { return value(s, r); };
    n.present = [&](int r) { return "present(" + subscripted(s, r, true) + ")"; };
    n.index = [&](int i) { return s.indices[size_t(i)]; };
    n.size = [this](int i) { return sizes_[size_t(i)]; };
    n.optional_read = [&](int r) { return (*s.reads)[size_t(r)].guard.is_always() ? std::string() : subscripted(s, r, true); };
    n.let = [&]() {
      std::string wish = "t" + std::to_string(lets_++);
      while (names_.has(wish)) wish = "t" + std::to_string(lets_++);
      return s.local.take(wish);
    };
    lets_ = 0;
    return print_body(exprs, n);
  }

  static std::string where(const PrintedBody& b) {
    std::string out;
    for (const auto& [name, text] : b.lets) out += (out.empty() ? " where " : ",\n    ") + name + " = " + text;
    return out;
  }

  std::string bound(const Scope& s, int i) const { return s.indices[size_t(i)] + " < " + form(s.extents[size_t(i)]); }

  std::string left(const Scope& s, const std::string& name, const std::vector<int>& dims, const Formula* condition) const {
    std::vector<std::string> items;
    for (int d : dims) items.push_back(bound(s, d));
    std::string out = name;
    const bool stated = condition && !condition->is_always();
    if (items.empty() && !stated) return out;
    return out + "[" + list(items) + (stated ? (items.empty() ? ": " : " : ") + formula(s, *condition) : "") + "]";
  }

  static std::string stored(DType type, Kind kind) {
    return type == scalar::dtype_of(kind) ? "" : " : " + std::string(scalar::name(type));
  }

  // ---- comprehensions ----

  std::string comprehension(Tensor t, const Comprehension& n) {
    std::vector<Expr> exprs = n.body;
    exprs.insert(exprs.end(), n.initial.begin(), n.initial.end());
    Scope s = scope(n.indices, n.reads, n.domain, exprs);
    const PrintedBody b = body(s, exprs);
    if (!n.monoid) {
      std::string out;
      for (size_t o = 0; o < n.outputs.size(); ++o) {
        const Output& x = n.outputs[o];
        out += left(s, values_.at(Value{t, int(o)}), x.dims, &n.domain) + stored(x.type, n.body[size_t(x.result)].kind()) + " = " + b.roots[size_t(x.result)] + where(b) + "\n";
      }
      return out;
    }
    const std::string fold = folded(s, n, b);
    std::string targets = results(s, t, n);
    if (n.outputs.size() == 1 && !n.outputs[0].final_state && n.monoid->finish.size() == 1 && varies_with_all(n, exprs)) targets = targets.substr(1, targets.size() - 2);
    return targets + " = " + fold + where(b) + "\n";
  }

  // Whether every point of the one output is used by what is folded; else the fold is broadcast, which a parenthesis
  // on the left says is its own node's business.
  static bool varies_with_all(const Comprehension& n, const std::vector<Expr>& exprs) {
    std::set<int> used;
    const auto note = [&](const std::vector<int>& ids) { used.insert(ids.begin(), ids.end()); };
    note(n.domain.ids(AtomKind::Index));
    for (const Read& r : n.reads) {
      note(r.guard.ids(AtomKind::Index));
      for (const Form& f : r.coords) note(f.ids(AtomKind::Index));
    }
    for (Expr e : scalar::reachable(exprs)) {
      if (e.is(Op::Index)) used.insert(int(e.payload()));
    }
    return std::all_of(n.outputs[0].dims.begin(), n.outputs[0].dims.end(), [&](int d) { return used.count(d) || n.indices[size_t(d)].role != Role::Point; });
  }

  // The left side of a fold: every result in order, then the final states; `_` for what is not kept.
  std::string results(const Scope& s, Tensor t, const Comprehension& n) const {
    const size_t count = n.monoid->finish.size();
    std::vector<std::string> items;
    const auto show = [&](bool final_state) {
      bool any = false;
      for (const Output& o : n.outputs) any = any || o.final_state == final_state;
      if (!any) return;
      for (size_t r = 0; r < count; ++r) {
        std::string item;
        for (size_t o = 0; o < n.outputs.size(); ++o) {
          const Output& x = n.outputs[o];
          if (x.result != int(r) || x.final_state != final_state || !item.empty()) continue;
          item = left(s, values_.at(Value{t, int(o)}), x.dims, nullptr) + stored(x.type, n.monoid->finish[r].kind());
        }
        if (item.empty()) {
          std::vector<int> dims;
          if (count == n.components.size()) dims = n.components[r];
          item = left(s, "_", dims, nullptr);
        }
        items.push_back((final_state ? "final " : "") + item);
      }
    };
    show(false);
    show(true);
    return "(" + list(items) + ")";
  }

  std::string folded(Scope& s, const Comprehension& n, const PrintedBody& b) {
    std::vector<std::string> binders;
    for (size_t i = 0; i < n.indices.size(); ++i) {
      if (n.indices[i].role == Role::Reduce || n.indices[i].role == Role::Scan) binders.push_back(bound(s, int(i)));
    }
    std::string inside = list(binders);
    if (!n.domain.is_always()) inside += " : " + formula(s, n.domain);
    if (n.scan && n.scan->exclusive) inside += ", exclusive";
    if (n.scan && n.scan->reverse) inside += ", reverse";
    const size_t operands = n.body.size();
    if (!n.initial.empty()) {
      const std::vector<std::string> initial(b.roots.begin() + std::ptrdiff_t(operands), b.roots.end());
      inside += ", initial = " + (initial.size() == 1 ? initial[0] : "(" + list(initial) + ")");
    }
    const std::vector<std::string> texts(b.roots.begin(), b.roots.begin() + std::ptrdiff_t(operands));
    const bool sign = operands == 1 && texts[0][0] == '-';
    const std::string element = operands == 1 && !sign ? texts[0] : "(" + list(texts) + ")";
    return (n.scan ? "scan " : "") + monoid_text(n.monoid) + "(" + inside + ") " + element;
  }

  // ---- scatters ----

  std::string scatter(Tensor t, const Scatter& n) {
    Scope s = scope(n.indices, n.reads, n.domain, {n.body});
    for (const Form& f : n.coords) {
      const std::vector<int> ids = f.ids(AtomKind::Data);
      s.as_data.insert(ids.begin(), ids.end());
    }
    const PrintedBody b = body(s, {n.body});
    std::vector<std::string> coords, binders;
    for (size_t d = 0; d < n.coords.size(); ++d) coords.push_back(form(s, n.coords[d]) + " < " + form(n.extents[d]));
    for (size_t i = 0; i < n.indices.size(); ++i) binders.push_back(bound(s, int(i)));
    std::string out = values_.at(Value{t, 0}) + "[" + list(coords) + "]" + stored(n.type, n.body.kind());
    out += " " + (n.monoid ? monoid_text(n.monoid) : std::string("injective")) + "(" + list(binders);
    if (!n.domain.is_always()) out += " : " + formula(s, n.domain);
    out += ") = " + b.roots[0] + where(b);
    if (n.base) out += " onto " + values_.at(*n.base);
    else if (!n.monoid) out += " onto nothing";
    return out + "\n";
  }

  // ---- monoids ----

  // A library monoid by its name, any other by a definition printed once.
  std::string monoid_text(const MonoidRef& m) {
    if (const auto it = monoids_.find(m.get()); it != monoids_.end()) return it->second;
    for (const auto& [other, text] : defined_) {
      if (monoid::same(*other, *m)) return monoids_[m.get()] = text;
    }
    std::string text = library_name(*m);
    if (text.empty()) text = define(*m);
    defined_.emplace_back(m, text);
    return monoids_[m.get()] = text;
  }

  std::string define(const Monoid& m) {
    LEMMA_CHECK(m.structure == monoid::Structure::Elementwise || m.structure == monoid::Structure::General, "a monoid of special structure that the library lacks");
    LEMMA_CHECK(m.combine.size() == m.components.size(), "a monoid without a combine cannot be written");
    std::string wish = is_word(m.name) ? m.name : "m" + std::to_string(defined_.size());
    const std::string name = names_.take(library_names().count(wish) ? "m" + std::to_string(defined_.size()) : wish);
    Names local;
    std::vector<std::string> components, operands;
    for (const monoid::Component& c : m.components) components.push_back(local.take(is_word(c.name) && c.name.find('.') == std::string::npos && !names_.has(c.name) ? c.name : "c"));
    for (size_t i = 0; i < m.operands.size(); ++i) operands.push_back(local.take("a" + std::to_string(i)));
    std::string out = "monoid " + quote(name) + "(" + list(operands) + ") {\n";
    const auto axis = [](size_t a) { return "i" + std::to_string(a); };
    const auto axes = [&](size_t c, bool bounds) {
      std::vector<std::string> items;
      for (size_t a = 0; a < m.components[c].axes.size(); ++a) items.push_back(axis(a) + (bounds ? " < " + form(m.components[c].axes[a]) : ""));
      return components[c] + (items.empty() ? "" : "[" + list(items) + "]");
    };
    int lets = 0;
    BodyNames n;
    n.index = [&](int i) { return axis(size_t(i)); };
    n.size = [this](int i) { return sizes_[size_t(i)]; };
    n.present = [](int) { return std::string("true"); };
    n.optional_read = [](int) { return std::string(); };
    n.let = [&]() { return local.take("t" + std::to_string(lets++)); };
    const auto clause = [&](const std::string& head, Expr e) {
      const PrintedBody b = print_body({e}, n);
      out += "  " + head + b.roots[0] + where(b) + "\n";
    };
    for (size_t c = 0; c < components.size(); ++c) out += "  state " + axes(c, true) + " : " + std::string(scalar::name(m.components[c].kind)) + "\n";
    for (size_t c = 0; c < components.size(); ++c) clause("identity " + axes(c, false) + " = ", m.identity[c]);
    n.arg = [&](int i) { return operands[size_t(i)]; };
    for (size_t c = 0; c < components.size(); ++c) clause("lift " + axes(c, false) + " = ", m.lift[c]);
    for (size_t c = 0; c < components.size(); ++c) {
      const monoid::Update& u = m.combine[c];
      view::Names view;
      view.index = [&](int i) { return axis(size_t(i)); };
      view.size = n.size;
      view.data = view.index;
      n.arg = [&](int i) {
        const monoid::StateRead& r = u.reads[size_t(i)];
        std::vector<std::string> coords;
        for (const Form& f : r.coords) coords.push_back(view::print(f, view));
        return std::string(r.right ? "y." : "x.") + components[size_t(r.component)] + (coords.empty() ? "" : "[" + list(coords) + "]");
      };
      std::string head = "combine " + axes(c, false) + " = ";
      if (!u.sums.empty()) {
        std::vector<std::string> inner;
        for (size_t k = 0; k < u.sums.size(); ++k) inner.push_back(axis(m.components[c].axes.size() + k) + " < " + form(u.sums[k]));
        const char* fold = u.fold == Op::Mul ? "prod" : u.fold == Op::Min ? "min" : u.fold == Op::Max ? "max" : "sum";
        head += std::string(fold) + "(" + list(inner) + ") ";
      }
      clause(head, u.body);
    }
    n.arg = [&](int i) { return components[size_t(i)]; };
    for (Expr e : m.finish) clause("finish ", e);
    if (m.commutative) out += "  commutative\n";
    if (m.idempotent) out += "  idempotent\n";
    definitions_ += out + "}\n";
    return quote(name);
  }

  static const std::set<std::string>& library_names() {
    static const std::set<std::string> names = {"sum", "prod", "max", "min", "argmax", "argmin", "topk", "bottomk", "any",
                                                "all", "count", "rescaled_sum", "welford", "affine", "pair"};
    return names;
  }

  const Graph& graph_;
  Names names_;
  std::vector<std::string> sizes_;
  std::map<Value, std::string> values_;
  std::string out_, definitions_;
  int lets_ = 0;
  std::map<const Monoid*, std::string> monoids_;
  std::vector<std::pair<MonoidRef, std::string>> defined_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace lemma::tensor
