#include "lemma/rewrite/stabilize_exp_sums.h"

#include <algorithm>
#include <limits>
#include <set>

#include "lemma/base/check.h"
#include "lemma/rewrite/condition.h"
#include "lemma/rewrite/edits.h"
#include "lemma/rewrite/expand.h"
#include "lemma/rewrite/hoist_invariants.h"

namespace lemma::rewrite {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::IndexInfo;
using tensor::Read;
using tensor::Role;
using tensor::Tensor;
using tensor::Value;
using view::Form;

constexpr char kPass[] = "stabilize_exp_sums";
constexpr int64_t kMaxOperations = 2048;  // of one body seen through maps

// The max and the sums that read it through maps.
struct Group {
  Tensor max;
  Comprehension max_node;      // as it stands, or seen through maps where the sums are
  std::vector<ExpSum> sums;
};

// The rescaled sum under construction: the max's points, then the sums' own points, then the max's reduced indices.
class Merge {
 public:
  Merge(Edits& edits, const Graph& graph, const Group& group) : edits_(edits), graph_(graph), group_(group) {}

  void run() {
    plan_indices();
    const Comprehension& max = group_.max_node;
    node_.name = max.name + "_sums";
    node_.span = max.span;
    node_.indices = indices_;
    node_.reads = max.reads;
    node_.domain = max.domain;
    node_.body = max.body;
    node_.outputs = max.outputs;
    node_.outputs[0].result = 0;
    rename_indices(node_, max_index_);
    node_.components = {points_of_max()};
    for (size_t s = 0; s < group_.sums.size(); ++s) operand_.push_back(add_sum(group_.sums[s], index_[s]));
    const Kind kind = node_.body[0].kind();
    node_.monoid = monoid::rescaled_sum(kind, int(node_.body.size()) - 1, group_.sums[0].scale);
    tidy_reads(node_);
    for (const Read& r : node_.reads) {
      if (std::find(node_.definition_inputs.begin(), node_.definition_inputs.end(), r.source) ==
          node_.definition_inputs.end()) {
        node_.definition_inputs.push_back(r.source);
      }
    }
    node_.definition = definition();
    replace(edits_.graph.add(node_));
  }

 private:
  std::vector<int> points_of_max() const {
    std::vector<int> out = group_.max_node.outputs[0].dims;
    for (int& i : out) i = max_index_[size_t(i)];
    std::sort(out.begin(), out.end());
    return out;
  }

  // Where each index of the max and of each sum goes. Sums share their own points where the extents agree.
  void plan_indices() {
    const Comprehension& max = group_.max_node;
    max_index_.assign(max.indices.size(), -1);
    for (int i : max.with_role(Role::Point)) {
      max_index_[size_t(i)] = int(indices_.size());
      indices_.push_back(max.indices[size_t(i)]);
    }
    const size_t shared = indices_.size();
    for (const ExpSum& s : group_.sums) {
      std::vector<int> to(s.node.indices.size(), -1);
      for (int i : max.with_role(Role::Point)) to[size_t(s.index[size_t(i)])] = max_index_[size_t(i)];
      std::set<int> taken;
      for (int p : s.node.with_role(Role::Point)) {
        if (to[size_t(p)] < 0) to[size_t(p)] = own_point(s.node.indices[size_t(p)], shared, taken);
      }
      index_.push_back(std::move(to));
    }
    for (int i : max.with_role(Role::Reduce)) {
      max_index_[size_t(i)] = int(indices_.size());
      indices_.push_back(max.indices[size_t(i)]);
    }
    for (size_t s = 0; s < group_.sums.size(); ++s) {
      for (int i : max.with_role(Role::Reduce)) index_[s][size_t(group_.sums[s].index[size_t(i)])] = max_index_[size_t(i)];
    }
  }

  int own_point(const IndexInfo& info, size_t shared, std::set<int>& taken) {
    for (size_t i = shared; i < indices_.size(); ++i) {
      if (indices_[i].extent == info.extent && taken.insert(int(i)).second) return int(i);
    }
    taken.insert(int(indices_.size()));
    indices_.push_back(info);
    return int(indices_.size()) - 1;
  }

  // Adds g as an operand, or finds it; the operand's position.
  int add_sum(const ExpSum& s, const std::vector<int>& to) {
    Comprehension part = s.node;
    part.body = {multiply(*graph_.arena, node_.body[0].kind(), s.inner)};
    tidy_reads(part);
    part.indices = indices_;
    rename_indices(part, to);
    const Expr g = take_over(part);
    std::vector<int> set = part.outputs[0].dims;
    std::sort(set.begin(), set.end());
    for (size_t b = 1; b < node_.body.size(); ++b) {
      if (node_.body[b] == g && node_.components[b] == set) return int(b);
    }
    node_.body.push_back(g);
    node_.components.push_back(std::move(set));
    tensor::Output output = part.outputs[0];
    output.result = int(node_.body.size()) - 1;
    if (!s.outer.empty()) {
      output.name += "_sum";
      output.type = scalar::dtype_of(g.kind());
    }
    node_.outputs.push_back(std::move(output));
    return int(node_.body.size()) - 1;
  }

  // The part's body over the node's reads; the domain is the node's already.
  Expr take_over(const Comprehension& part) {
    std::vector<int> position;
    const auto renumber = [&](int r) { return position[size_t(r)]; };
    for (const Read& r : part.reads) {
      Read moved{r.source, {}, r.guard.map_data(renumber)};
      for (const Form& c : r.coords) moved.coords.push_back(c.map_data(renumber));
      position.push_back(add_read(node_, moved));
    }
    return replace_leaves(part.body[0], *graph_.arena, [&](Expr e) -> Expr {
      if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), renumber(int(e.payload())));
      if (e.is(Op::Present)) return scalar::present(e.arena(), renumber(int(e.payload())));
      return {};
    });
  }

  // m by the max; each sum by exp(scale*(s - m))*g, 0 where s is -inf.
  std::shared_ptr<const tensor::Definition> definition() const {
    tensor::Definition out;
    Graph& g = out.graph;
    g.name = node_.name;
    g.arena = graph_.arena;
    g.sizes = graph_.sizes;
    for (Value v : node_.definition_inputs) {
      tensor::Input input;
      input.name = tensor::name(graph_, v);
      for (int n = 2; std::any_of(g.nodes.begin(), g.nodes.end(),
                                  [&](const tensor::Node& o) { return std::get<tensor::Input>(o).name == input.name; });
           ++n) {
        input.name = tensor::name(graph_, v) + std::to_string(n);
      }
      input.extents = tensor::extents(graph_, v);
      input.type = tensor::type(graph_, v);
      g.add(std::move(input));
    }
    std::vector<Value> values;
    for (size_t o = 0; o < node_.outputs.size(); ++o) {
      values.push_back({g.add(component(o, values.empty() ? Value{} : values[0])), 0});
      g.outputs.push_back({node_.outputs[o].name, values.back(), node_.outputs[o].type, std::nullopt});
    }
    return std::make_shared<const tensor::Definition>(std::move(out));
  }

  Comprehension component(size_t output, Value max) const {
    Comprehension out = node_;
    const size_t result = size_t(node_.outputs[output].result);
    const Kind kind = node_.body[0].kind();
    out.name = node_.outputs[output].name;
    out.outputs = {node_.outputs[output]};
    out.outputs[0].result = 0;
    out.components = {node_.components[result]};
    out.definition_inputs.clear();
    out.monoid = output == 0 ? monoid::maximum(kind) : monoid::sum(kind);
    for (Read& r : out.reads) {
      const auto& in = node_.definition_inputs;
      const auto it = std::find(in.begin(), in.end(), r.source);
      r.source = {Tensor{int32_t(it - in.begin())}, 0};
    }
    out.body = {node_.body[0]};
    if (output > 0) out.body = {term(out, result, max)};
    tidy_reads(out);
    IndexSet keep = with_role(out, Role::Reduce);
    for (int i : out.components[0]) keep |= one(i);
    drop_indices(out, keep);
    return out;
  }

  Expr term(Comprehension& out, size_t result, Value max) const {
    scalar::Arena& arena = *graph_.arena;
    const Expr score = node_.body[0];
    const Expr m = scalar::arg(arena, score.kind(), add_read(out, read_at(max, node_.outputs[0].dims)));
    Expr exponent = score - m;
    if (node_.monoid->scale != 1) exponent = scalar::constant(arena, score.kind(), node_.monoid->scale) * exponent;
    const Expr nothing = scalar::constant(arena, score.kind(), -std::numeric_limits<double>::infinity());
    const std::vector<Factor> factors{{Factor::Kind::Times, scalar::exp(exponent)}, {Factor::Kind::Times, node_.body[result]}};
    const bool counts = node_.body[result] == scalar::constant(arena, score.kind(), 1);
    return scalar::select(scalar::binary(Op::Eq, score, nothing), scalar::constant(arena, score.kind(), 0),
                          multiply(arena, score.kind(), std::span(factors).first(counts ? 1 : 2)));
  }

  int output_of(int result) const {
    for (size_t o = 0; o < node_.outputs.size(); ++o) {
      if (node_.outputs[o].result == result) return int(o);
    }
    LEMMA_CHECK(false, "an operand without an output");
    return -1;
  }

  // The old max and sums become outputs of the node, through a map where factors left the sum.
  void replace(Tensor merged) {
    edits_.redirect[{group_.max, 0}] = {merged, 0};
    for (size_t s = 0; s < group_.sums.size(); ++s) {
      const ExpSum& sum = group_.sums[s];
      Value value{merged, output_of(operand_[s])};
      // An operand found twice has the first one's order of dimensions and type.
      const tensor::Output& have = node_.outputs[size_t(value.output)];
      std::vector<int> dims = sum.node.outputs[0].dims;
      for (int& d : dims) d = index_[s][size_t(d)];
      const bool plain = sum.guarded && sum.outer.empty() && have.dims == dims && have.type == sum.node.outputs[0].type;
      if (!plain) value = finishing_map(sum, value, have.dims, index_[s]);
      edits_.redirect[{sum.sum, 0}] = value;
    }
  }

  Value finishing_map(const ExpSum& sum, Value value, const std::vector<int>& dims, const std::vector<int>& to) {
    Comprehension node = sum.node;
    std::vector<int> order = node.outputs[0].dims;  // the sum's own index behind each dimension of the value
    std::vector<int> at;
    for (int d : dims) {
      const auto it = std::find(to.begin(), to.end(), d);
      at.push_back(int(it - to.begin()));
    }
    node.outputs[0].dims = at;
    // exp(-inf - -inf) of text without a guard is nan.
    Expr nothing, some;
    if (!sum.guarded) some = something(sum, node);
    if (!sum.guarded && !takes_a_nan(sum)) nothing = scalar::binary(Op::And, scalar::binary(Op::Eq, max_of(sum), least()), some);
    Comprehension out = map_after(edits_.graph, node, value, [&](Expr read) {
      if (nothing.valid()) read = scalar::select(nothing, nan_of(read.kind()), read);
      std::vector<Factor> factors{{Factor::Kind::Times, read}};
      factors.insert(factors.end(), sum.outer.begin(), sum.outer.end());
      if (const Expr guard = guard_of(sum, some); guard.valid()) factors.push_back({Factor::Kind::Gate, guard});
      return multiply(*graph_.arena, read.kind(), factors);
    });
    // map_after drops the reduced indices, which stand last: points keep their numbers.
    out.outputs[0].dims = order;
    return {edits_.graph.add(std::move(out)), 0};
  }

  // Over nothing the sum was 0 whatever left it. A gate of the text (its sum is not 0) says so already; else the
  // condition that there is something to sum (`some`), or that the max found something.
  Expr guard_of(const ExpSum& sum, Expr some) const {
    if (proved_finite(sum.outer)) return {};
    for (const Factor& f : sum.outer) {
      if (f.kind == Factor::Kind::Gate && says_not_zero(sum, f.expr)) return {};
    }
    if (const auto something = not_empty(graph_, sum.node)) {
      return something->is_always() ? Expr() : expr_of(*something, graph_, sum.node);
    }
    return some.valid() ? some : scalar::binary(Op::Ne, max_of(sum), least());
  }

  // Whether it is multiplied or divided by a sum of the group that is nan wherever this one is.
  bool takes_a_nan(const ExpSum& sum) const {
    return std::any_of(sum.outer.begin(), sum.outer.end(), [&](const Factor& f) {
      if (f.kind == Factor::Kind::Gate || !f.expr.is(Op::Arg)) return false;
      const Tensor source = sum.node.reads[size_t(f.expr.payload())].source.node;
      return std::any_of(group_.sums.begin(), group_.sums.end(), [&](const ExpSum& s) {
        return s.sum == source && !s.guarded && s.outer.empty();
      });
    });
  }

  Expr max_of(const ExpSum& sum) const { return scalar::arg(*graph_.arena, node_.body[0].kind(), sum.max_read); }
  Expr least() const {
    return scalar::constant(*graph_.arena, node_.body[0].kind(), -std::numeric_limits<double>::infinity());
  }
  Expr nan_of(Kind kind) const {
    return scalar::constant(*graph_.arena, kind, std::numeric_limits<double>::quiet_NaN());
  }

  // That the sum has terms: a condition where the domain's shape gives one, else a reduction of its own, which `node`
  // then reads where it reads the max.
  Expr something(const ExpSum& sum, Comprehension& node) {
    scalar::Arena& arena = *graph_.arena;
    if (const auto known = not_empty(graph_, sum.node)) {
      return known->is_always() ? scalar::constant_int(arena, Kind::Bool, 1) : expr_of(*known, graph_, sum.node);
    }
    if (!some_) some_ = add_any();
    Read read = node.reads[size_t(sum.max_read)];
    read.source = *some_;
    node.reads.push_back(std::move(read));
    return scalar::arg(arena, Kind::Bool, int(node.reads.size()) - 1);
  }

  Value add_any() {
    Comprehension any = group_.max_node;
    any.name += "_some";
    any.outputs[0].name = any.name;
    any.outputs[0].type = scalar::DType::Bool;
    any.monoid = monoid::any();
    any.body = {scalar::constant_int(*graph_.arena, Kind::Bool, 1)};
    any.definition = nullptr;
    any.definition_inputs.clear();
    tidy_reads(any);
    return {edits_.graph.add(std::move(any)), 0};
  }

  // Whether the gate says that one of the group's sums of weights is not 0.
  bool says_not_zero(const ExpSum& of, Expr gate) const {
    const Expr compared = gate.is(Op::Not) && gate.arg(0).is(Op::Eq) ? gate.arg(0) : gate.is(Op::Ne) ? gate : Expr();
    if (!compared.valid() || !scalar::is_float(compared.arg(0).kind())) return false;
    for (int side = 0; side < 2; ++side) {
      const Expr sum = compared.arg(size_t(side)), zero = compared.arg(size_t(1 - side));
      if (!sum.is(Op::Arg) || !zero.is_const() || zero.as_float() != 0) continue;
      const Tensor source = of.node.reads[size_t(sum.payload())].source.node;
      for (const ExpSum& s : group_.sums) {
        if (s.sum == source && s.inner.empty()) return true;
      }
    }
    return false;
  }

  Edits& edits_;
  const Graph& graph_;
  const Group& group_;
  std::vector<IndexInfo> indices_;
  std::vector<int> max_index_;
  std::vector<std::vector<int>> index_;  // per sum
  std::vector<int> operand_;             // per sum
  std::optional<Value> some_;                    // whether the max's domain has points, where a reduction must tell
  Comprehension node_;
};

class Stabilize {
 public:
  Stabilize(const Graph& graph, const Context& context)
      : graph_(graph), context_(context), users_(users_of(graph)), edits_(graph), taken_(graph.nodes.size(), false),
        through_maps_(graph.nodes.size(), false) {}

  Graph run() {
    bool any = false;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto* node = std::get_if<Comprehension>(&graph_.nodes[n]);
      if (!node || !folds_with(*node, Op::Max) || !scalar::is_float(node->body[0].kind())) continue;
      Group group = find(Tensor{int32_t(n)}, *node);
      if (group.sums.empty()) continue;
      if (!streams(group)) {
        context_.declined(kPass, node->name, "the score is at hand and its sums have no columns: passes over a row in "
                                             "cache are cheaper than a max that rescales");
        continue;
      }
      Merge(edits_, graph_, group).run();
      std::string names;
      for (const ExpSum& s : group.sums) {
        taken_[size_t(s.sum.index)] = true;
        names += (names.empty() ? "" : ", ") + s.node.name;
      }
      context_.applied(kPass, node->name, "one pass computes the max and the sums " + names + " rescaled when it moves");
      any = true;
    }
    return any ? settle(std::move(edits_)) : graph_;
  }

 private:
  // One pass pays where the score is itself a reduction, so that its tiles need not be kept, or where a sum has points
  // of its own.
  bool streams(const Group& group) const {
    const size_t points = group.max_node.with_role(Role::Point).size();
    for (const ExpSum& s : group.sums) {
      if (s.node.with_role(Role::Point).size() > points) return true;
    }
    std::set<int> seen;
    std::vector<int> work;
    for (const Read& r : group.max_node.reads) work.push_back(r.source.node.index);
    while (!work.empty()) {
      const int n = work.back();
      work.pop_back();
      const auto* node = std::get_if<Comprehension>(&graph_.nodes[size_t(n)]);
      if (!node || !seen.insert(n).second) continue;
      if (node->monoid && !node->scan && !tensor::extents(graph_, {Tensor{n}, 0}).empty()) return true;
      for (const Read& r : node->reads) work.push_back(r.source.node.index);
    }
    return false;
  }

  // The maps that lead from the max to other nodes, and the sums they lead to.
  void reach(Tensor max, std::vector<int>& sums) {
    std::set<int> seen;
    std::vector<int> work{max.index};
    while (!work.empty()) {
      const int n = work.back();
      work.pop_back();
      for (int u : users_[size_t(n)]) {
        if (!seen.insert(u).second) continue;
        const auto* node = std::get_if<Comprehension>(&graph_.nodes[size_t(u)]);
        if (!node) continue;
        if (is_map(*node)) {
          through_maps_[size_t(u)] = true;
          through_.push_back(u);
          work.push_back(u);
        } else if (folds_with(*node, Op::Add) && scalar::is_float(node->body[0].kind())) {
          sums.push_back(u);
        }
      }
    }
    std::sort(sums.begin(), sums.end());
  }

  Group find(Tensor max, const Comprehension& max_node) {
    Group group{max, max_node, {}};
    through_.clear();
    std::vector<int> sums;
    reach(max, sums);
    const Choose some = [&](const Comprehension& owner, int r) {
      return bool(through_maps_[size_t(owner.reads[size_t(r)].source.node.index)]);
    };
    const Choose all = [](const Comprehension&, int) { return true; };
    collect(group, sums, some);
    if (group.sums.empty() && !sums.empty()) {
      // The texts may have spelled the score out differently often: compare with every map spliced.
      auto spliced = seen_through(max_node, all);
      if (spliced) {
        group.max_node = std::move(*spliced);
        collect(group, sums, all);
      }
    }
    for (int n : through_) through_maps_[size_t(n)] = false;
    report(group, sums);
    return group;
  }

  std::optional<Comprehension> seen_through(const Comprehension& node, const Choose& choose) const {
    auto out = expand(graph_, node, choose);
    if (out && operations_in(out->body) > kMaxOperations) return std::nullopt;
    return out;
  }

  void collect(Group& group, const std::vector<int>& sums, const Choose& choose) {
    reasons_.assign(sums.size(), {});
    for (size_t i = 0; i < sums.size(); ++i) {
      const Tensor sum{int32_t(sums[i])};
      if (taken_[size_t(sums[i])]) continue;
      const auto& node = std::get<Comprehension>(graph_.node(sum));
      const auto expanded = seen_through(node, choose);
      if (!expanded) {
        reasons_[i] = "its body is too large to see through";
        continue;
      }
      Match match = match_exp_sum(graph_, group.max_node, {group.max, 0}, sum, *expanded);
      if (match.found) reasons_[i] = refusal(group, *match.found);
      else reasons_[i] = match.reason;
      if (match.found && reasons_[i].empty()) group.sums.push_back(std::move(*match.found));
    }
  }

  // Why a matching sum cannot join the group; empty if it can.
  std::string refusal(const Group& group, const ExpSum& sum) const {
    if (!group.sums.empty() && group.sums[0].scale != sum.scale) return "another sum scales the score differently";
    bool real = sum.inner.empty();
    for (const Factor& f : sum.outer) {
      if (f.kind == Factor::Kind::Over) continue;
      real = real && (f.kind == Factor::Kind::Gate || proved_finite(f.expr));
    }
    if (context_.allow < Claim::Finite && !real) {
      return "a term under a score of -inf would leave instead of counting 0 times its value";
    }
    Comprehension rest = sum.node;
    rest.body = {multiply(*graph_.arena, rest.body[0].kind(), sum.inner)};
    tidy_reads(rest);
    for (const Read& r : rest.reads) {
      if (depends_on(graph_, r.source, group.max)) return "a factor of the sum depends on the max";
    }
    return {};
  }

  void report(const Group& group, const std::vector<int>& sums) const {
    for (size_t i = 0; i < sums.size() && i < reasons_.size(); ++i) {
      if (reasons_[i].empty()) continue;
      context_.declined(kPass, std::get<Comprehension>(graph_.nodes[size_t(sums[i])]).name,
                        "not one pass with " + group.max_node.name + ": " + reasons_[i]);
    }
  }

  const Graph& graph_;
  const Context& context_;
  std::vector<std::vector<int>> users_;
  Edits edits_;
  std::vector<bool> taken_;
  std::vector<bool> through_maps_;         // the maps that lead from the max at hand to sums
  std::vector<int> through_;               // those set
  std::vector<std::string> reasons_;       // per sum reached, why it stays out
};

}  // namespace

Graph stabilize_exp_sums(const Graph& graph, const Context& context) {
  if (context.allow < Claim::Real) return graph;
  return Stabilize(graph, context).run();
}

}  // namespace lemma::rewrite
