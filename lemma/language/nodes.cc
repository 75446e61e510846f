// Nodes: folds, maps and scatters from cores.
#include <algorithm>
#include <set>

#include "lemma/language/build.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::language {

using scalar::Expr;
using scalar::Kind;
using tensor::Comprehension;
using tensor::Role;
using view::Form;
using view::Formula;

void Nodes::clear_equation() {
  folds_.clear();
  maps_.clear();
}

std::string Nodes::fresh(const std::string& stem) {
  std::string name = stem;
  for (int n = 2; c_.globals.count(name) || c_.later.count(name) || c_.taken.count(name); ++n) name = stem + "." + std::to_string(n);
  c_.taken.insert(name);
  return name;
}

tensor::Tensor Nodes::intern(Comprehension node) {
  const tensor::Node whole = node;
  const size_t h = tensor::hash(whole);
  const auto [begin, end] = interned_.equal_range(h);
  for (auto it = begin; it != end; ++it) {
    if (tensor::same(c_.graph.node(it->second), whole)) return it->second;
  }
  node.name = fresh(node.name);
  for (tensor::Output& o : node.outputs) o.name = node.name;
  const tensor::Tensor t = c_.graph.add(std::move(node));
  interned_.emplace(h, t);
  return t;
}

std::vector<int> Nodes::free_vars(const std::vector<CoreId>& roots) const {
  std::vector<int> out;
  std::set<int> bound, met;
  std::vector<bool> seen(c_.cores.size(), false);
  // Depth is that of cores, which is bounded; an explicit stack keeps first use first.
  std::vector<CoreId> stack(roots.rbegin(), roots.rend());
  while (!stack.empty()) {
    const CoreId id = stack.back();
    stack.pop_back();
    if (id < 0 || seen[size_t(id)]) continue;
    seen[size_t(id)] = true;
    const Core& core = c_.cores[size_t(id)];
    if (core.kind == CoreKind::Var) {
      if (met.insert(core.var).second) out.push_back(core.var);
      continue;
    }
    std::vector<CoreId> below = core.args;
    if (core.guard >= 0) below.push_back(core.guard);
    if (core.kind == CoreKind::Fold) {
      const Fold& f = c_.folds[size_t(core.fold)];
      if (!f.scan) bound.insert(f.vars.begin(), f.vars.end());
      else below.push_back(-1);
      below.insert(below.end(), f.operands.begin(), f.operands.end());
      below.push_back(f.condition);
      below.insert(below.end(), f.initial.begin(), f.initial.end());
      if (f.scan && met.insert(f.vars[0]).second) out.push_back(f.vars[0]);
    }
    stack.insert(stack.end(), below.rbegin(), below.rend());
  }
  out.erase(std::remove_if(out.begin(), out.end(), [&](int v) { return bound.count(v) != 0; }), out.end());
  return out;
}

Result<scalar::DType> Nodes::storage(const Wanted& wanted, Kind kind, bool weak, CoreId core) const {
  if (!wanted.type) return scalar::dtype_of(kind);
  const Kind stored = scalar::kind_of(*wanted.type);
  const auto refuse = [&](const std::string& suggestion) {
    return c_.fail(c_.cores[size_t(core)], "`" + wanted.name + "` is stored as " + std::string(scalar::name(*wanted.type)) + ", its value is " + (weak && scalar::is_float(kind) ? "a float" : "of kind " + std::string(scalar::name(kind))), suggestion);
  };
  const std::string as = std::string(scalar::name(stored)) + "(...)";
  if (stored == kind) return *wanted.type;
  if (stored == Kind::Bool) return refuse("write a comparison, such as x != 0");
  if (kind == Kind::Bool) return refuse("write select(c, 1, 0)");
  if (scalar::is_float(kind) && scalar::is_integer(stored)) return refuse("cast it: " + as);
  if (scalar::is_integer(kind) && scalar::is_integer(stored) && !weak) return refuse("cast it: " + as);
  return *wanted.type;
}

namespace {

Comprehension skeleton(const Context& c, const std::string& name, const std::vector<int>& vars, base::Span span) {
  Comprehension node;
  node.name = name;
  node.span = std::move(span);
  for (int v : vars) {
    tensor::IndexInfo info;
    info.name = c.vars[size_t(v)].name;
    info.extent = *c.vars[size_t(v)].extent;
    node.indices.push_back(std::move(info));
  }
  return node;
}

}  // namespace

// ---- folds ----

Result<Nodes::Operands> Nodes::operands(NodeBuilder& builder, const Fold& f, CoreId at) {
  Operands out;
  if (f.condition >= 0) {
    LEMMA_TRY(out.domain, builder.condition(f.condition));
    builder.assume(out.domain);
  }
  const std::string& name = f.monoid.name;
  const bool library = !f.monoid.definition;
  const Core core = c_.cores[size_t(at)];
  std::vector<Term> terms;
  for (CoreId operand : f.operands) {
    LEMMA_TRY(Term t, builder.term(operand));
    const MaybeFormula domain = both(out.domain, t.where);
    if (!domain) return c_.fail(core, "the domain of this fold falls into too many cases", "compute the condition in an equation of its own, as a bool tensor");
    out.domain = *domain;
    terms.push_back(std::move(t));
  }
  std::vector<Kind> kinds;
  if (library && name == "count") {
    kinds = {Kind::I64};
    out.exprs = {scalar::i64(*c_.graph.arena, 1)};
  } else {
    const bool arg = library && (name == "argmax" || name == "argmin" || name == "topk" || name == "bottomk");
    std::vector<const Term*> numbers;
    for (size_t i = 0; i < terms.size() && !(arg && i > 0); ++i) {
      if (terms[i].expr.kind() != Kind::Bool || library) numbers.push_back(&terms[i]);
    }
    Kind kind = Kind::F32;
    if (!numbers.empty() && !(library && name == "pair")) {
      LEMMA_TRY(const NodeBuilder::Common common, builder.common(numbers, at, "`" + name + "`"));
      kind = common.weak && scalar::is_float(common.kind) ? Kind::F32 : common.kind;
    }
    const bool logic = library && (name == "any" || name == "all");
    if (logic != (kind == Kind::Bool) && library && name != "pair") {
      return c_.fail(core, "`" + name + "` folds " + (logic ? "bools" : "numbers") + ", found " + (kind == Kind::Bool ? "bools" : "numbers"),
                     logic ? "write a comparison, such as x != 0" : "write count(j : c) 1, or select(c, 1, 0)");
    }
    const bool floats = library && (name == "rescaled_sum" || name == "welford" || name == "affine");
    if (floats && !scalar::is_float(kind)) kind = Kind::F32;
    for (size_t i = 0; i < terms.size(); ++i) {
      Kind want = kind;
      if (arg && i > 0) want = Kind::I64;
      else if (name == "pair" && library) want = builder.settled(terms[i]);
      else if (!library && terms[i].expr.kind() == Kind::Bool) want = Kind::Bool;
      LEMMA_TRY(Expr e, builder.convert(terms[i], want, f.operands[i]));
      out.exprs.push_back(e);
      kinds.push_back(want);
    }
    if (arg && terms.size() == 1) {
      // The index picked: of several, the place in row-major order.
      Expr flat;
      for (int v : f.vars) {
        const Expr i = scalar::index(*c_.graph.arena, builder.local(v));
        if (!flat.valid()) {
          flat = i;
          continue;
        }
        const Form extent = *c_.vars[size_t(v)].extent;
        Expr e;
        if (const auto k = extent.constant()) e = scalar::i64(*c_.graph.arena, *k);
        else if (const auto s = extent.as_size()) e = scalar::size(*c_.graph.arena, *s);
        else return c_.fail(core, "the last index of `" + name + "` over several indices needs an extent that is one size");
        flat = flat * e + i;
      }
      out.exprs.push_back(flat);
      kinds.push_back(Kind::I64);
    }
  }
  LEMMA_TRY(out.monoid, instantiate(c_, f.monoid, kinds, f.frame, f.ast));
  return out;
}

Result<Nodes::Made> Nodes::fold(int id) {
  if (const auto it = folds_.find(id); it != folds_.end()) return it->second;
  const Fold f = c_.folds[size_t(id)];
  Core at;
  at.kind = CoreKind::Fold;
  at.frame = f.frame;
  at.ast = f.ast;
  at.fold = id;
  const CoreId core = c_.add(at);
  std::vector<CoreId> roots = f.operands;
  if (f.condition >= 0) roots.push_back(f.condition);
  roots.insert(roots.end(), f.initial.begin(), f.initial.end());
  Wanted wanted;
  wanted.name = (c_.defining ? *c_.defining : std::string("t")) + "." + (f.scan ? "scan" : f.monoid.name);
  wanted.vars = free_vars(roots);
  if (f.scan) {
    if (std::find(wanted.vars.begin(), wanted.vars.end(), f.vars[0]) == wanted.vars.end()) wanted.vars.push_back(f.vars[0]);
  } else {
    wanted.vars.erase(std::remove_if(wanted.vars.begin(), wanted.vars.end(), [&](int v) { return std::find(f.vars.begin(), f.vars.end(), v) != f.vars.end(); }), wanted.vars.end());
  }
  (void)core;
  const size_t before = c_.graph.nodes.size();
  LEMMA_TRY(const tensor::Tensor made, fold_equation(id, {wanted}));
  tensor::Tensor t = made;
  if (made.index == int32_t(c_.graph.nodes.size()) - 1 && size_t(made.index) >= before) {
    // Found again in another guise?
    Comprehension node = std::get<Comprehension>(std::move(c_.graph.nodes.back()));
    c_.graph.nodes.pop_back();
    t = intern(std::move(node));
  }
  const Made out{{t, 0}, wanted.vars};
  folds_.emplace(id, out);
  return out;
}

Result<tensor::Tensor> Nodes::fold_equation(int id, const std::vector<Wanted>& wanted) {
  const Fold f = c_.folds[size_t(id)];
  if (nesting_ > 16) return c_.fail(f.frame, f.ast, "folds nest deeper than 16 levels here", "name the inner ones in equations of their own");
  ++nesting_;
  Result<tensor::Tensor> out = fold_node(id, f, wanted);
  --nesting_;
  return out;
}

Result<tensor::Tensor> Nodes::fold_node(int id, const Fold& f, const std::vector<Wanted>& wanted) {
  CoreId at = -1;
  {
    Core core;
    core.kind = CoreKind::Fold;
    core.frame = f.frame;
    core.ast = f.ast;
    core.fold = id;
    at = c_.add(std::move(core));
  }
  const auto is_reduced = [&](int v) { return std::find(f.vars.begin(), f.vars.end(), v) != f.vars.end(); };
  // Which variables are axes, and each component's own.
  std::vector<std::vector<int>> axes(f.shape.components.size());
  std::set<int> axis_vars;
  for (const Wanted& w : wanted) {
    const size_t count = f.shape.results[size_t(w.result)].size();
    std::vector<int> own(w.vars.end() - std::ptrdiff_t(std::min(count, w.vars.size())), w.vars.end());
    axis_vars.insert(own.begin(), own.end());
    // A result shows the axes of a component of like axes; results and components side by side are the rule.
    if (f.shape.results.size() == f.shape.components.size()) axes[size_t(w.result)] = own;
    else {
      for (size_t c = 0; c < axes.size(); ++c) {
        if (axes[c].empty() && f.shape.components[c] == f.shape.results[size_t(w.result)]) axes[c] = own;
      }
    }
  }
  // Axes that no result shows have variables of their own.
  for (size_t c = 0; c < axes.size(); ++c) {
    if (axes[c].size() == f.shape.components[c].size()) continue;
    axes[c].clear();
    for (const Form& extent : f.shape.components[c]) {
      int found = -1;
      for (int v : axis_vars) {
        const bool taken = std::find(axes[c].begin(), axes[c].end(), v) != axes[c].end();
        if (!taken && found < 0 && c_.vars[size_t(v)].extent == extent) found = v;
      }
      if (found < 0) {
        Var v;
        v.name = "axis" + std::to_string(axes[c].size());
        v.extent = extent;
        found = int(c_.vars.size());
        c_.vars.push_back(std::move(v));
        axis_vars.insert(found);
      }
      axes[c].push_back(found);
    }
  }
  std::vector<int> points;
  for (const Wanted& w : wanted) {
    for (int v : w.vars) {
      if (!axis_vars.count(v) && !(f.scan && is_reduced(v)) && std::find(points.begin(), points.end(), v) == points.end()) points.push_back(v);
    }
  }
  std::vector<CoreId> roots = f.operands;
  if (f.condition >= 0) roots.push_back(f.condition);
  roots.insert(roots.end(), f.initial.begin(), f.initial.end());
  for (int v : free_vars(roots)) {
    if (is_reduced(v) || axis_vars.count(v) || std::find(points.begin(), points.end(), v) != points.end()) continue;
    return c_.fail(f.frame, f.ast, "this fold varies with the index `" + c_.vars[size_t(v)].name + "`, which no result has", "add it to the left side");
  }
  std::vector<int> order = points;
  order.insert(order.end(), axis_vars.begin(), axis_vars.end());
  if (order.size() > points.size()) {
    // Axes in the order in which results show them.
    std::vector<int> shown;
    for (const auto& own : axes) {
      for (int v : own) {
        if (std::find(shown.begin(), shown.end(), v) == shown.end()) shown.push_back(v);
      }
    }
    order.resize(points.size());
    order.insert(order.end(), shown.begin(), shown.end());
  }
  const size_t bound_at = order.size();
  order.insert(order.end(), f.vars.begin(), f.vars.end());

  NodeBuilder builder(c_, *this, order, c_.graph.arena);
  LEMMA_TRY(Operands parts, operands(builder, f, at));
  Comprehension node = skeleton(c_, wanted[0].name, order, c_.span(f.frame, f.ast));
  for (size_t i = 0; i < order.size(); ++i) {
    node.indices[i].role = i >= bound_at ? (f.scan ? Role::Scan : Role::Reduce) : axis_vars.count(order[i]) ? Role::Axis : Role::Point;
  }
  node.domain = parts.domain;
  node.body = std::move(parts.exprs);
  node.monoid = parts.monoid;
  if (f.scan) node.scan = tensor::Scan{f.exclusive, f.reverse};
  for (size_t i = 0; i < f.initial.size(); ++i) {
    LEMMA_TRY(const Term t, builder.term(f.initial[i]));
    if (!t.where.is_always()) return c_.fail(c_.cores[size_t(f.initial[i])], "the initial state of a scan must exist everywhere", "give it a value with `else`");
    LEMMA_TRY(const Expr e, builder.convert(t, node.monoid->components[i].kind, f.initial[i]));
    node.initial.push_back(e);
  }
  node.reads = builder.finish(node.domain);
  // Index sets: a component that a result shows has the result's; else all points.
  const bool side_by_side = f.shape.results.size() == f.shape.components.size();
  for (size_t c = 0; c < f.shape.components.size(); ++c) {
    std::vector<int> own;
    const Wanted* shows = nullptr;
    for (const Wanted& w : wanted) {
      if (side_by_side && size_t(w.result) == c) shows = &w;
    }
    for (int p : points) {
      if (!shows || std::find(shows->vars.begin(), shows->vars.end(), p) != shows->vars.end()) own.push_back(builder.local(p));
    }
    for (int v : axes[c]) own.push_back(builder.local(v));
    node.components.push_back(std::move(own));
  }
  for (const Wanted& w : wanted) {
    if (w.dropped) continue;
    tensor::Output out;
    out.name = w.name;
    out.result = w.result;
    out.final_state = w.final_state;
    const Kind result = node.monoid->finish[size_t(w.result)].kind();
    LEMMA_TRY(out.type, storage(w, result, false, at));
    if (scalar::kind_of(out.type) != result) {
      return c_.fail(f.frame, f.ast, "`" + w.name + "` is stored as " + std::string(scalar::name(out.type)) + ", the fold gives " + std::string(scalar::name(result)), "cast what is folded: " + std::string(scalar::name(scalar::kind_of(out.type))) + "(...)");
    }
    for (int v : w.vars) {
      if (!(w.final_state && is_reduced(v))) out.dims.push_back(builder.local(v));
    }
    node.outputs.push_back(std::move(out));
  }
  if (node.outputs.empty()) return c_.fail(f.frame, f.ast, "this equation keeps none of its results");
  return c_.graph.add(std::move(node));
}

// ---- maps ----

Result<Nodes::Made> Nodes::map(CoreId core) {
  if (const auto it = maps_.find(core); it != maps_.end()) return it->second;
  Wanted wanted;
  wanted.name = (c_.defining ? *c_.defining : std::string("t")) + ".key";
  wanted.vars = free_vars({core});
  LEMMA_TRY(const tensor::Tensor made, map_equation(core, -1, wanted));
  Comprehension node = std::get<Comprehension>(std::move(c_.graph.nodes[size_t(made.index)]));
  c_.graph.nodes.pop_back();
  const tensor::Tensor t = intern(std::move(node));
  const Made out{{t, 0}, wanted.vars};
  maps_.emplace(core, out);
  return out;
}

Result<tensor::Tensor> Nodes::map_equation(CoreId core, CoreId condition, const Wanted& wanted) {
  if (nesting_ > 16) return c_.fail(c_.cores[size_t(core)], "conditions and coordinates nest deeper than 16 levels here", "name the inner ones in equations of their own");
  ++nesting_;
  Result<tensor::Tensor> out = map_node(core, condition, wanted);
  --nesting_;
  return out;
}

Result<tensor::Tensor> Nodes::map_node(CoreId core, CoreId condition, const Wanted& wanted) {
  NodeBuilder builder(c_, *this, wanted.vars, c_.graph.arena);
  Formula domain;
  if (condition >= 0) {
    LEMMA_TRY(domain, builder.condition(condition));
    builder.assume(domain);
  }
  LEMMA_TRY(const Term t, builder.term(core));
  Kind kind = builder.settled(t);
  if (wanted.type && t.weak && kind != Kind::Bool) {
    const Kind stored = scalar::kind_of(*wanted.type);
    if (stored != Kind::Bool && (scalar::is_float(stored) || !scalar::is_float(kind))) kind = stored;
  } else if (!wanted.type && t.weak && t.literal && *t.literal >= INT32_MIN && *t.literal <= INT32_MAX) {
    kind = Kind::I32;
  }
  LEMMA_TRY(const Expr e, builder.convert(t, kind, core));
  const MaybeFormula all = both(domain, t.where);
  if (!all) return c_.fail(c_.cores[size_t(core)], "the domain here falls into too many cases", "guard the reads with `else`");
  const Core& at = c_.cores[size_t(core)];
  Comprehension node = skeleton(c_, wanted.name, wanted.vars, c_.span(at.frame, at.ast));
  node.domain = *all;
  node.body = {e};
  node.reads = builder.finish(node.domain);
  tensor::Output out;
  out.name = wanted.name;
  LEMMA_TRY(out.type, storage(wanted, kind, t.weak, core));
  node.body[0] = scalar::cast(node.body[0], scalar::kind_of(out.type));
  for (size_t i = 0; i < wanted.vars.size(); ++i) out.dims.push_back(int(i));
  node.outputs.push_back(std::move(out));
  return c_.graph.add(std::move(node));
}

// ---- scatters ----

Result<tensor::Tensor> Nodes::scatter_equation(const ScatterParts& parts) {
  NodeBuilder builder(c_, *this, parts.vars, c_.graph.arena);
  tensor::Scatter node;
  node.name = parts.wanted.name;
  node.span = c_.span(parts.frame, parts.ast);
  node.indices = skeleton(c_, node.name, parts.vars, node.span).indices;
  if (parts.condition >= 0) {
    LEMMA_TRY(node.domain, builder.condition(parts.condition));
    builder.assume(node.domain);
  }
  for (CoreId coord : parts.coords) {
    Formula where;
    LEMMA_TRY(Form f, builder.place(coord, where));
    node.coords.push_back(std::move(f));
    const MaybeFormula all = both(node.domain, where);
    if (!all) return c_.fail(c_.cores[size_t(coord)], "the domain here falls into too many cases");
    node.domain = *all;
  }
  LEMMA_TRY(const Term t, builder.term(parts.value));
  const MaybeFormula all = both(node.domain, t.where);
  if (!all) return c_.fail(c_.cores[size_t(parts.value)], "the domain here falls into too many cases");
  node.domain = *all;
  Kind kind = builder.settled(t);
  if (parts.base) kind = tensor::kind(c_.graph, *parts.base);
  else if (parts.wanted.type && t.weak) kind = scalar::kind_of(*parts.wanted.type);
  if (kind != builder.settled(t) && !t.weak && (kind == Kind::Bool || !scalar::is_float(kind) || builder.settled(t) == Kind::Bool)) {
    return c_.fail(c_.cores[size_t(parts.value)], "the value is of kind " + std::string(scalar::name(builder.settled(t))) + ", what it goes onto is " + std::string(scalar::name(kind)), "cast one of them");
  }
  LEMMA_TRY(node.body, builder.convert(t, kind, parts.value));
  if (parts.monoid) {
    const bool logic = !parts.monoid->definition && (parts.monoid->name == "any" || parts.monoid->name == "all");
    if (logic != (kind == Kind::Bool) && !parts.monoid->definition) {
      return c_.fail(c_.cores[size_t(parts.value)], "`" + parts.monoid->name + "=` takes " + (logic ? "bools" : "numbers"));
    }
    LEMMA_TRY(node.monoid, instantiate(c_, *parts.monoid, {kind}, parts.frame, parts.ast));
    if (node.monoid->structure != monoid::Structure::Elementwise || node.monoid->components.size() != 1 || node.monoid->operands.size() != 1) {
      return c_.fail(parts.frame, parts.ast, "a scatter combines by a monoid of one plain component, `" + parts.monoid->name + "` has more", "use sum, prod, max, min, any or all");
    }
  }
  node.extents = parts.extents;
  node.base = parts.base;
  LEMMA_TRY(node.type, storage(parts.wanted, kind, t.weak, parts.value));
  if (scalar::kind_of(node.type) != kind) {
    return c_.fail(c_.cores[size_t(parts.value)], "`" + node.name + "` is stored as " + std::string(scalar::name(node.type)) + ", its value is " + std::string(scalar::name(kind)), "cast the value");
  }
  node.reads = builder.finish(node.domain);
  return c_.graph.add(std::move(node));
}

}  // namespace lemma::language
