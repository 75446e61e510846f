// Walks both graphs from their outputs; pairs of nodes are compared once. Reads are matched by what they read, in the
// order in which they are met.
#include "lemma/tensor/equal.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace lemma::tensor {
namespace {

using scalar::Expr;
using scalar::Op;
using view::Atom;
using view::AtomKind;
using view::Form;
using view::Formula;

// The monoid with the reads of each update in one order, each once, as they do not matter otherwise.
monoid::Monoid in_order(const monoid::Monoid& m) {
  monoid::Monoid out = m;
  for (monoid::Update& u : out.combine) {
    const auto key = [](const monoid::StateRead& r) { return std::tuple(r.right, r.component, r.coords); };
    std::vector<monoid::StateRead> sorted = u.reads;
    std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    u.body = scalar::rewrite(u.body, *out.arena, [&](Expr node, std::span<const Expr>) {
      if (!node.is(Op::Arg)) return Expr();
      const auto at = std::find(sorted.begin(), sorted.end(), u.reads[size_t(node.payload())]);
      return scalar::arg(*out.arena, node.kind(), int(at - sorted.begin()));
    });
    u.reads = std::move(sorted);
  }
  return out;
}

bool same_monoid(const monoid::MonoidRef& a, const monoid::MonoidRef& b) {
  if (a == b) return true;
  return a && b && (monoid::same(*a, *b) || monoid::same(in_order(*a), in_order(*b)));
}

class Comparer {
 public:
  Comparer(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  std::string run() {
    if (a_.sizes.size() != b_.sizes.size()) return "one graph has " + std::to_string(a_.sizes.size()) + " sizes, the other " + std::to_string(b_.sizes.size());
    for (size_t i = 0; i < a_.sizes.size(); ++i) {
      const Size &x = a_.sizes[i], &y = b_.sizes[i];
      const bool alike = x.value || (x.low == y.low && x.high == y.high && x.divisor == y.divisor && x.typical == y.typical);
      if (x.name != y.name || x.value != y.value || !alike) {
        return "the size " + x.name + " differs";
      }
    }
    if (a_.outputs.size() != b_.outputs.size()) return "one graph has " + std::to_string(a_.outputs.size()) + " outputs, the other " + std::to_string(b_.outputs.size());
    for (size_t i = 0; i < a_.outputs.size(); ++i) {
      const GraphOutput &x = a_.outputs[i], &y = b_.outputs[i];
      if (x.name != y.name || x.type != y.type || x.updates.has_value() != y.updates.has_value()) return "the output " + x.name + " differs";
      if (x.updates && !pair(*x.updates, *y.updates)) return "the output " + x.name + " updates another input";
      if (x.value.output != y.value.output || !pair(x.value.node, y.value.node)) return "the output " + x.name + " is of another node";
    }
    // Inputs are part of what a graph is, read or not.
    std::vector<int32_t> left, right;
    for (size_t i = 0; i < a_.nodes.size(); ++i) if (std::holds_alternative<Input>(a_.nodes[i])) left.push_back(int32_t(i));
    for (size_t i = 0; i < b_.nodes.size(); ++i) if (std::holds_alternative<Input>(b_.nodes[i])) right.push_back(int32_t(i));
    if (left.size() != right.size()) return "one graph has " + std::to_string(left.size()) + " inputs, the other " + std::to_string(right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      if (!pair({left[i]}, {right[i]})) return "the inputs stand in another order";
    }
    while (!work_.empty()) {
      const auto [x, y] = work_.back();
      work_.pop_back();
      std::string d = nodes(a_.node(x), b_.node(y));
      if (!d.empty()) return tensor::name(a_, {x, 0}) + ": " + d;
    }
    return "";
  }

 private:
  bool pair(Tensor x, Tensor y) {
    const auto [it, added] = matched_.emplace(x, y);
    if (added) work_.emplace_back(x, y);
    return it->second == y;
  }

  std::string nodes(const Node& x, const Node& y) {
    if (x.index() != y.index()) return "the nodes are of two kinds";
    if (const auto* in = std::get_if<Input>(&x)) {
      const Input& other = std::get<Input>(y);
      const bool same = in->name == other.name && in->extents == other.extents && in->type == other.type && in->low == other.low &&
                        in->high == other.high && in->sorted == other.sorted && in->strided == other.strided;
      return same ? "" : "the inputs differ";
    }
    reads_.clear();
    backwards_.clear();
    exprs_.clear();
    if (const auto* c = std::get_if<Comprehension>(&x)) return comprehensions(*c, std::get<Comprehension>(y));
    return scatters(std::get<Scatter>(x), std::get<Scatter>(y));
  }

  static bool same_indices(const std::vector<IndexInfo>& x, const std::vector<IndexInfo>& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].extent != y[i].extent || x[i].role != y[i].role) return false;
    }
    return true;
  }

  std::string comprehensions(const Comprehension& x, const Comprehension& y) {
    left_ = &x.reads;
    right_ = &y.reads;
    if (!same_indices(x.indices, y.indices)) return "the indices differ";
    if (!same_monoid(x.monoid, y.monoid)) return "the monoids differ";
    if (x.scan != y.scan) return "the scans differ";
    if (x.components != y.components) return "the index sets of the components differ";
    if (x.body.size() != y.body.size() || x.initial.size() != y.initial.size()) return "the bodies differ in number";
    for (size_t i = 0; i < x.body.size(); ++i) {
      if (!exprs(x.body[i], y.body[i])) return "the bodies differ";
    }
    for (size_t i = 0; i < x.initial.size(); ++i) {
      if (!exprs(x.initial[i], y.initial[i])) return "the initial states differ";
    }
    if (!formulas(x.domain, y.domain)) return "the domains differ";
    if (x.outputs.size() != y.outputs.size()) return "the outputs differ in number";
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      const Output &o = x.outputs[i], &p = y.outputs[i];
      if (o.type != p.type || o.result != p.result || o.dims != p.dims || o.final_state != p.final_state) return "the output " + o.name + " differs";
    }
    return "";
  }

  std::string scatters(const Scatter& x, const Scatter& y) {
    left_ = &x.reads;
    right_ = &y.reads;
    if (!same_indices(x.indices, y.indices) || x.extents != y.extents || x.type != y.type) return "the scatters differ in shape";
    if (!same_monoid(x.monoid, y.monoid)) return "the monoids differ";
    if (x.base.has_value() != y.base.has_value() || (x.base && (x.base->output != y.base->output || !pair(x.base->node, y.base->node)))) return "the bases differ";
    if (!exprs(x.body, y.body)) return "the bodies differ";
    if (x.coords.size() != y.coords.size()) return "the coordinates differ in number";
    for (size_t i = 0; i < x.coords.size(); ++i) {
      if (!forms(x.coords[i], y.coords[i])) return "the coordinates differ";
    }
    return formulas(x.domain, y.domain) ? "" : "the domains differ";
  }

  // Read r of the left stands for read s of the right.
  bool same_read(int r, int s) {
    const auto [it, added] = reads_.emplace(r, s);
    if (!added) return it->second == s;
    if (!backwards_.emplace(s, r).second) return false;
    const Read &x = (*left_)[size_t(r)], &y = (*right_)[size_t(s)];
    if (x.source.output != y.source.output || x.coords.size() != y.coords.size() || !pair(x.source.node, y.source.node)) return false;
    for (size_t i = 0; i < x.coords.size(); ++i) {
      if (!forms(x.coords[i], y.coords[i])) return false;
    }
    return formulas(x.guard, y.guard);
  }

  // Matches the reads of a form or formula by trying: few stand in one, and each choice is checked by substitution.
  bool find_reads(const std::vector<int>& left, const std::vector<int>& right) {
    if (left.size() != right.size()) return false;
    for (int r : left) {
      if (reads_.count(r)) continue;
      bool found = false;
      for (int s : right) {
        if (backwards_.count(s)) continue;
        const auto reads = reads_, backwards = backwards_;
        if (same_read(r, s)) {
          found = true;
          break;
        }
        reads_ = reads;
        backwards_ = backwards;
      }
      if (!found) return false;
    }
    return true;
  }

  bool forms(const Form& x, const Form& y) {
    if (!find_reads(x.ids(AtomKind::Data), y.ids(AtomKind::Data))) return false;
    return x.map_data([&](int r) { return reads_.at(r); }) == y;
  }

  bool formulas(const Formula& x, const Formula& y) {
    if (!find_reads(x.ids(AtomKind::Data), y.ids(AtomKind::Data))) return false;
    return x.map_data([&](int r) { return reads_.at(r); }) == y;
  }

  bool exprs(Expr root, Expr other) {
    std::vector<std::pair<Expr, Expr>> stack = {{root, other}};
    while (!stack.empty()) {
      const auto [x, y] = stack.back();
      stack.pop_back();
      if (!exprs_.insert({x.index(), y.index()}).second) continue;
      if (x.op() != y.op() || x.kind() != y.kind() || x.args().size() != y.args().size()) return false;
      if (x.is(Op::Arg) || x.is(Op::Present)) {
        if (!same_read(int(x.payload()), int(y.payload()))) return false;
      } else if (x.payload() != y.payload()) {
        return false;
      }
      for (size_t i = x.args().size(); i-- > 0;) stack.emplace_back(x.arg(i), y.arg(i));
    }
    return true;
  }

  const Graph &a_, &b_;
  std::map<Tensor, Tensor> matched_;
  std::vector<std::pair<Tensor, Tensor>> work_;
  const std::vector<Read> *left_ = nullptr, *right_ = nullptr;
  std::map<int, int> reads_, backwards_;
  std::set<std::pair<uint32_t, uint32_t>> exprs_;
};

}  // namespace

std::string difference(const Graph& a, const Graph& b) { return Comparer(a, b).run(); }

}  // namespace lemma::tensor
