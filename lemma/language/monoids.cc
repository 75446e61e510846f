// Monoids by name: the library's, and those that the program defines.
#include <algorithm>

#include "lemma/language/build.h"
#include "lemma/monoid/laws.h"

namespace lemma::language {

using monoid::Monoid;
using monoid::MonoidRef;
using scalar::Expr;
using scalar::Kind;
using view::Form;

namespace {

constexpr int64_t most_slots = 4096;
constexpr size_t most_operands = 64;

Result<int> slots(const Context& c, const MonoidSpec& spec, int frame, NodeId ast) {
  const auto k = spec.parameters.size() == 1 && spec.parameters[0].form ? spec.parameters[0].form->constant() : std::nullopt;
  if (!k) return c.fail(frame, ast, "`" + spec.name + "` takes the number of its slots in brackets, as in " + spec.name + "[8](j) e");
  if (*k < 1 || *k > most_slots) {
    return c.fail(frame, ast, "`" + spec.name + "` keeps between 1 and 4096 slots, found " + std::to_string(*k));
  }
  return int(*k);
}

// A frame in which the clauses of a definition are read.
Result<int> clause_frame(Context& c, const MonoidSpec& spec, int frame, NodeId ast) {
  const MonoidDefinition& d = *spec.definition;
  Frame f;
  f.unit = spec.unit;
  f.caller = frame;
  f.call = ast;
  f.depth = c.frames[size_t(frame)].depth + 1;
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    Core core;
    core.frame = frame;
    core.ast = ast;
    const MonoidSpec::Parameter& p = spec.parameters[i];
    if (p.form) {
      core.kind = CoreKind::Size;
      core.form = *p.form;
    } else {
      core.kind = CoreKind::Real;
      core.real = p.real;
    }
    Binding b;
    b.kind = Binding::Ready;
    b.core = c.add(std::move(core));
    f.names[d.parameters[i].name] = b;
  }
  return c.add_frame(std::move(f));
}

Result<MonoidShape> defined_shape(Context& c, const MonoidSpec& spec, int operands, int frame, NodeId ast) {
  const MonoidDefinition& d = *spec.definition;
  if (operands != int(d.operands.size())) {
    return c.fail(frame, ast, "the monoid `" + d.name.name + "` takes " + std::to_string(d.operands.size()) + (d.operands.size() == 1 ? " operand" : " operands") + ", found " + std::to_string(operands));
  }
  LEMMA_TRY(const int inner, clause_frame(c, spec, frame, ast));
  Expander expander(c);
  MonoidShape shape;
  shape.operands = operands;
  for (const StateItem& item : d.state) {
    std::vector<Form> axes;
    for (NodeId extent : item.extents) {
      LEMMA_TRY(Form e, expander.size(inner, extent, 0));
      axes.push_back(std::move(e));
    }
    shape.components.push_back(std::move(axes));
  }
  if (d.finish.empty()) {
    shape.results = shape.components;
  } else {
    // A result has the axes of the first component that it names.
    for (const MonoidClause& result : d.finish) {
      std::vector<Form> axes;
      std::vector<NodeId> stack = {result.value};
      for (const Local& local : result.locals) stack.push_back(local.value);
      bool found = false;
      while (!stack.empty() && !found) {
        const syntax::Node& n = spec.unit->tree[stack.back()];
        stack.pop_back();
        for (size_t i = 0; i < d.state.size() && n.kind == syntax::NodeKind::Name; ++i) {
          if (n.text == d.state[i].name.name) {
            axes = shape.components[i];
            found = true;
          }
        }
        stack.insert(stack.end(), n.items.rbegin(), n.items.rend());
      }
      shape.results.push_back(std::move(axes));
    }
  }
  return shape;
}

}  // namespace

Result<MonoidShape> shape_of(Context& c, const MonoidSpec& spec, int operands, int frame, NodeId ast) {
  if (spec.definition) return defined_shape(c, spec, operands, frame, ast);
  MonoidShape shape;
  shape.operands = operands;
  const std::string& name = spec.name;
  const auto takes = [&](bool ok, const std::string& expected) -> Result<MonoidShape> {
    if (!ok) return c.fail(frame, ast, "`" + name + "` takes " + expected + ", found " + std::to_string(operands));
    if (name != "topk" && name != "bottomk" && name != "rescaled_sum" && name != "pair" && !spec.parameters.empty()) {
      return c.fail(frame, ast, "`" + name + "` takes no parameters in brackets");
    }
    return shape;
  };
  if (name == "argmax" || name == "argmin") {
    shape.components.resize(2);
    shape.results.resize(1);
    return takes(operands == 1 || operands == 2, "a value, or a value and an index");
  }
  if (name == "topk" || name == "bottomk") {
    LEMMA_TRY(const int k, slots(c, spec, frame, ast));
    shape.components.assign(2, {Form(k)});
    shape.results = shape.components;
    return takes(operands == 1 || operands == 2, "a value, or a value and an index");
  }
  if (name == "welford") {
    shape.components.resize(3);
    shape.results.resize(3);
    return takes(operands == 1, "one value");
  }
  if (name == "affine") {
    shape.components.resize(2);
    shape.results.resize(2);
    return takes(operands == 2, "two values (a, b), for h -> a*h + b");
  }
  if (name == "rescaled_sum") {
    if (spec.parameters.size() > 1) return c.fail(frame, ast, "`rescaled_sum` takes one parameter, its scale");
    if (!spec.parameters.empty() && !(spec.parameters[0].real > 0)) return c.fail(frame, ast, "the scale of `rescaled_sum` is a positive number");
    shape.components.resize(size_t(operands));
    shape.results.resize(size_t(operands));
    return takes(operands >= 1 && size_t(operands) <= most_operands, "a score and up to 63 terms");
  }
  if (name == "pair") {
    if (spec.parameters.size() < 2) return c.fail(frame, ast, "`pair` joins at least two monoids, as in pair[sum, max]");
    int used = 0;
    for (const MonoidSpec::Parameter& p : spec.parameters) {
      const std::string& one = p.monoid->name;
      int count = 1;
      if (p.monoid->definition) count = int(p.monoid->definition->operands.size());
      else if (one == "argmax" || one == "argmin" || one == "affine") count = 2;
      else if (one == "topk" || one == "bottomk" || one == "rescaled_sum" || one == "pair" || one == "count") {
        return c.fail(frame, ast, "`pair` cannot join `" + one + "`", "fold it in an equation of its own");
      }
      LEMMA_TRY(const MonoidShape part, shape_of(c, *p.monoid, count, frame, ast));
      used += count;
      shape.components.insert(shape.components.end(), part.components.begin(), part.components.end());
      shape.results.insert(shape.results.end(), part.results.begin(), part.results.end());
    }
    return takes(operands == used, std::to_string(used) + " operands here");
  }
  shape.components.resize(1);
  shape.results.resize(1);
  return takes(operands == 1, "one value");
}

namespace {

// One clause's expression over the given operands or components, with the axes named.
struct Clauses {
  Context& c;
  Nodes& nodes;
  const MonoidSpec& spec;
  Monoid& m;
  int frame;
  NodeId ast;

  // Frame of a clause: what names mean.
  Result<int> make_frame(const std::vector<Named>& givens, bool states) {
    LEMMA_TRY(const int inner, clause_frame(c, spec, frame, ast));
    for (size_t i = 0; i < givens.size(); ++i) {
      Core core;
      core.kind = CoreKind::Given;
      core.frame = frame;
      core.ast = ast;
      core.which = int(i);
      Binding b;
      b.kind = Binding::Ready;
      b.core = c.add(std::move(core));
      c.frames[size_t(inner)].names[givens[i].name] = b;
    }
    if (states) c.frames[size_t(inner)].monoid = spec.definition;
    return inner;
  }

  int axis(int inner, const Named& name, const Form& extent, int& environment) {
    Var v;
    v.name = name.name;
    v.frame = frame;
    v.ast = ast;
    v.extent = extent;
    v.stated = true;
    c.vars.push_back(std::move(v));
    Core core;
    core.kind = CoreKind::Var;
    core.frame = frame;
    core.ast = ast;
    core.var = int(c.vars.size()) - 1;
    const int var = core.var;
    environment = c.bind(environment, c.symbol(inner, name.name), c.add(std::move(core)));
    return var;
  }

  base::Diagnostic fail(const Named& at, std::string message, std::string suggestion = {}) {
    base::Diagnostic d = spec.unit->source.error(at.place, std::move(message), std::move(suggestion));
    d.notes.push_back({c.span(frame, ast), "the monoid is used here"});
    return d;
  }

  Result<std::vector<int>> axes_of(int inner, const MonoidClause& clause, size_t component, int& environment) {
    const monoid::Component& k = m.components[component];
    std::vector<int> vars;
    if (clause.axes.size() != k.axes.size()) {
      return fail(clause.component, "the component `" + k.name + "` has " + std::to_string(k.axes.size()) + " axes, found " + std::to_string(clause.axes.size()) + " names for them");
    }
    for (size_t a = 0; a < clause.axes.size(); ++a) vars.push_back(axis(inner, clause.axes[a], k.axes[a], environment));
    return vars;
  }

  Result<size_t> component_of(const MonoidClause& clause) {
    std::vector<std::string> names;
    for (size_t i = 0; i < m.components.size(); ++i) {
      if (m.components[i].name == clause.component.name) return i;
      names.push_back(m.components[i].name);
    }
    const std::string near = syntax::nearest(clause.component.name, names);
    return fail(clause.component, "the state has no component `" + clause.component.name + "`", near.empty() ? "" : "did you mean `" + near + "`?");
  }

  // identity or lift.
  Result<void> simple(const std::vector<MonoidClause>& clauses, const std::vector<Named>& givens, const std::vector<Kind>& kinds,
                      std::vector<Expr>& into, const std::string& what) {
    into.assign(m.components.size(), Expr());
    for (const MonoidClause& clause : clauses) {
      LEMMA_TRY(const size_t component, component_of(clause));
      if (into[component].valid()) return fail(clause.component, "the " + what + " of `" + clause.component.name + "` is stated twice");
      LEMMA_TRY(const int inner, make_frame(givens, false));
      c.add_locals(inner, clause.locals);
      int environment = 0;
      LEMMA_TRY(const std::vector<int> vars, axes_of(inner, clause, component, environment));
      Expander expander(c);
      LEMMA_TRY(const CoreId core, expander.expand(inner, clause.value, environment));
      NodeBuilder builder(c, nodes, vars, m.arena);
      builder.givens = kinds;
      LEMMA_TRY(const Term t, builder.term(core));
      LEMMA_TRY(into[component], checked(builder, t, m.components[component].kind, core));
    }
    return {};
  }

  Result<Expr> checked(NodeBuilder& builder, const Term& t, Kind kind, CoreId core) {
    const Kind from = builder.settled(t);
    if ((from == Kind::Bool) != (kind == Kind::Bool) || (!t.weak && scalar::is_float(from) && scalar::is_integer(kind)) ||
        (t.weak && scalar::is_float(from) && scalar::is_integer(kind))) {
      return c.fail(c.cores[size_t(core)], "this clause gives " + std::string(scalar::name(from)) + ", the component is " + std::string(scalar::name(kind)), "cast it, or state the component's type");
    }
    return builder.convert(t, kind, core);
  }

  Result<void> combine() {
    m.combine.assign(m.components.size(), {});
    for (const MonoidClause& clause : spec.definition->combine) {
      LEMMA_TRY(const size_t component, component_of(clause));
      monoid::Update& update = m.combine[component];
      if (update.body.valid()) return fail(clause.component, "the combine of `" + clause.component.name + "` is stated twice");
      LEMMA_TRY(const int inner, make_frame({}, true));
      c.add_locals(inner, clause.locals);
      int environment = 0;
      LEMMA_TRY(std::vector<int> vars, axes_of(inner, clause, component, environment));
      Expander expander(c);
      LEMMA_TRY(CoreId core, expander.expand(inner, clause.value, environment));
      // A fold, alone or as the last term of a sum, gives the update its inner indices.
      std::vector<CoreId> beside;
      CoreId folded = core;
      if (c.cores[size_t(core)].kind == CoreKind::Chain) {
        const Core chain = c.cores[size_t(core)];
        int at = -1, count = 0;
        for (size_t i = 0; i < chain.args.size(); ++i) {
          if (c.cores[size_t(chain.args[i])].kind == CoreKind::Fold) {
            at = int(i);
            ++count;
          }
        }
        const bool sums = std::all_of(chain.ops.begin(), chain.ops.end(), [](uint8_t o) { return scalar::Op(o) == scalar::Op::Add; });
        if (count == 1 && sums) {
          folded = chain.args[size_t(at)];
          for (size_t i = 0; i < chain.args.size(); ++i) {
            if (int(i) != at) beside.push_back(chain.args[i]);
          }
        }
      }
      if (c.cores[size_t(folded)].kind == CoreKind::Fold) {
        const Fold f = c.folds[size_t(c.cores[size_t(folded)].fold)];
        const std::string& name = f.monoid.name;
        const bool known = !f.monoid.definition && (name == "sum" || name == "prod" || name == "max" || name == "min");
        if (!known || f.scan || f.condition >= 0 || (!beside.empty() && name != "sum")) {
          return fail(clause.component, "a combine folds by sum, prod, max or min over whole axes, found `" + name + "`");
        }
        update.fold = name == "sum" ? scalar::Op::Add : name == "prod" ? scalar::Op::Mul : name == "max" ? scalar::Op::Max : scalar::Op::Min;
        for (int v : f.vars) {
          LEMMA_TRY(const Form extent, inner_extent(clause, v, f.operands[0]));
          c.vars[size_t(v)].extent = extent;
          update.sums.push_back(extent);
          vars.push_back(v);
        }
        core = f.operands[0];
      }
      NodeBuilder builder(c, nodes, vars, m.arena);
      builder.components = &m.components;
      LEMMA_TRY(const Term t, builder.term(core));
      LEMMA_TRY(update.body, checked(builder, t, m.components[component].kind, core));
      if (!beside.empty()) {
        // u + sum(l) e is the sum over l of select(l == 0, u + e, e).
        Expr whole = update.body;
        for (CoreId one : beside) {
          LEMMA_TRY(const Term u, builder.term(one));
          LEMMA_TRY(const Expr e, checked(builder, u, m.components[component].kind, one));
          whole = e + whole;
        }
        Expr first;
        for (size_t s = 0; s < update.sums.size(); ++s) {
          const Expr zero = scalar::binary(scalar::Op::Eq, scalar::index(*m.arena, int(m.components[component].axes.size() + s)), scalar::i64(*m.arena, 0));
          first = first.valid() ? scalar::binary(scalar::Op::And, first, zero) : zero;
        }
        update.body = scalar::select(first, whole, update.body);
      }
      update.reads = builder.states;
    }
    for (size_t i = 0; i < m.components.size(); ++i) {
      if (!m.combine[i].body.valid()) return fail(spec.definition->name, "the combine of `" + m.components[i].name + "` is missing");
    }
    return {};
  }

  // The extent of an inner index: stated, or that of the axis it reads.
  Result<Form> inner_extent(const MonoidClause& clause, int var, CoreId body) {
    if (c.vars[size_t(var)].extent) return *c.vars[size_t(var)].extent;
    std::vector<CoreId> stack = {body};
    while (!stack.empty()) {
      const Core& core = c.cores[size_t(stack.back())];
      stack.pop_back();
      if (core.kind == CoreKind::State) {
        for (size_t a = 0; a < core.args.size() && a < m.components[size_t(core.which)].axes.size(); ++a) {
          const Core& coordinate = c.cores[size_t(core.args[a])];
          if (coordinate.kind == CoreKind::Var && coordinate.var == var) return m.components[size_t(core.which)].axes[a];
        }
      }
      stack.insert(stack.end(), core.args.begin(), core.args.end());
    }
    return fail(clause.component, "nothing says how far the index `" + c.vars[size_t(var)].name + "` of this combine goes", "state it: sum(" + c.vars[size_t(var)].name + " < N)");
  }

  Result<void> finish() {
    const MonoidDefinition& d = *spec.definition;
    std::vector<Kind> kinds;
    std::vector<Named> names;
    for (size_t i = 0; i < m.components.size(); ++i) {
      kinds.push_back(m.components[i].kind);
      names.push_back(d.state[i].name);
    }
    if (d.finish.empty()) {
      for (size_t i = 0; i < m.components.size(); ++i) m.finish.push_back(scalar::arg(*m.arena, m.components[i].kind, int(i)));
      return {};
    }
    for (const MonoidClause& clause : d.finish) {
      LEMMA_TRY(const int inner, make_frame(names, false));
      c.add_locals(inner, clause.locals);
      Expander expander(c);
      LEMMA_TRY(const CoreId core, expander.expand(inner, clause.value, 0));
      NodeBuilder builder(c, nodes, {}, m.arena);
      builder.givens = kinds;
      LEMMA_TRY(const Term t, builder.term(core));
      LEMMA_TRY(const Expr e, builder.convert(t, builder.settled(t), core));
      m.finish.push_back(e);
    }
    return {};
  }
};

// Reductions are split and reordered by the laws, so what breaks one would give other results for other schedules.
base::Result<void> keep_laws(const MonoidSpec& spec, const MonoidRef& m) {
  monoid::LawOptions options;
  options.random_triples = 100;
  options.sizes = [](int) { return int64_t(3); };
  const monoid::Report report = monoid::check_laws(m, options);
  if (report.ok()) return {};
  const monoid::Violation& v = report.violations[0];
  const Named& name = spec.definition->name;
  const bool claimed = v.law == "commutativity" || v.law == "idempotence";
  return spec.unit->source.error(name.place, "the monoid `" + name.name + "` breaks the law of " + v.law + ": " + v.counterexample,
                                 claimed ? "leave out the clause that claims it" : "combine(x, combine(y, z)) must be combine(combine(x, y), z), and the identity must change nothing");
}

Result<MonoidRef> defined(Context& c, const MonoidSpec& spec, const std::vector<Kind>& kinds, int frame, NodeId ast) {
  const MonoidDefinition& d = *spec.definition;
  LEMMA_TRY(const MonoidShape shape, shape_of(c, spec, int(kinds.size()), frame, ast));
  Monoid m;
  m.arena = std::make_shared<scalar::Arena>();
  m.operands = kinds;
  m.commutative = d.commutative;
  m.idempotent = d.idempotent;
  m.name = syntax::quote(d.name.name);
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const MonoidSpec::Parameter& p = spec.parameters[i];
    std::string text = p.form ? c.print(*p.form) : std::to_string(p.real);
    m.name += (i == 0 ? "[" : ", ") + text;
  }
  if (!spec.parameters.empty()) m.name += "]";
  Kind common = Kind::F32;
  for (Kind k : kinds) {
    if (k != Kind::Bool) common = k;
  }
  if (!kinds.empty() && std::all_of(kinds.begin(), kinds.end(), [](Kind k) { return k == Kind::Bool; })) common = Kind::Bool;
  for (size_t i = 0; i < d.state.size(); ++i) {
    monoid::Component k;
    k.name = d.state[i].name.name;
    k.kind = common;
    k.axes = shape.components[i];
    if (!d.state[i].type.name.empty()) {
      const auto type = scalar::parse_dtype(d.state[i].type.name);
      if (!type || scalar::dtype_of(scalar::kind_of(*type)) != *type) {
        return spec.unit->source.error(d.state[i].type.place, "a component is f64, f32, i64, i32, u64, u32 or bool, found `" + d.state[i].type.name + "`");
      }
      k.kind = scalar::kind_of(*type);
    }
    m.components.push_back(std::move(k));
  }
  if (m.components.empty()) return spec.unit->source.error(d.name.place, "the monoid `" + d.name.name + "` has no state", "add a clause: state a, b[i < 4]");
  Nodes nodes(c);
  Clauses clauses{c, nodes, spec, m, frame, ast};
  LEMMA_TRY_VOID(clauses.simple(d.identity, {}, {}, m.identity, "identity"));
  LEMMA_TRY_VOID(clauses.simple(d.lift, d.operands, kinds, m.lift, "lift"));
  for (size_t i = 0; i < m.components.size(); ++i) {
    if (!m.identity[i].valid()) return spec.unit->source.error(d.name.place, "the identity of `" + m.components[i].name + "` is missing", "add a clause: identity " + m.components[i].name + " = ...");
    if (m.lift[i].valid()) continue;
    if (kinds.size() != m.components.size() || kinds[i] != m.components[i].kind) {
      return spec.unit->source.error(d.name.place, "the lift of `" + m.components[i].name + "` is missing", "add a clause: lift " + m.components[i].name + " = ...");
    }
    m.lift[i] = scalar::arg(*m.arena, kinds[i], int(i));
  }
  LEMMA_TRY_VOID(clauses.combine());
  LEMMA_TRY_VOID(clauses.finish());
  // Elementwise where every update reads both states at its own axes.
  bool elementwise = true;
  for (const monoid::Update& u : m.combine) {
    if (!u.sums.empty()) elementwise = false;
    for (const monoid::StateRead& r : u.reads) {
      for (size_t a = 0; a < r.coords.size(); ++a) {
        if (r.coords[a] != Form::index(int(a))) elementwise = false;
      }
    }
  }
  m.structure = elementwise ? monoid::Structure::Elementwise : monoid::Structure::General;
  const MonoidRef out = std::make_shared<const Monoid>(std::move(m));
  LEMMA_TRY_VOID(keep_laws(spec, out));
  return out;
}

}  // namespace

Result<MonoidRef> instantiate(Context& c, const MonoidSpec& spec, const std::vector<Kind>& kinds, int frame, NodeId ast) {
  if (spec.definition) return defined(c, spec, kinds, frame, ast);
  const std::string& name = spec.name;
  const Kind kind = kinds.empty() ? Kind::F32 : kinds[0];
  if (name == "sum" || name == "count") return monoid::sum(kind);
  if (name == "prod") return monoid::product(kind);
  if (name == "max") return monoid::maximum(kind);
  if (name == "min") return monoid::minimum(kind);
  if (name == "any") return monoid::any();
  if (name == "all") return monoid::all();
  if (name == "argmax") return monoid::arg_maximum(kind);
  if (name == "argmin") return monoid::arg_minimum(kind);
  if (name == "welford") return monoid::welford(kind);
  if (name == "affine") return monoid::affine(kind);
  if (name == "topk" || name == "bottomk") {
    LEMMA_TRY(const int k, slots(c, spec, frame, ast));
    return monoid::top_k(kind, k, name == "bottomk");
  }
  if (name == "rescaled_sum") return monoid::rescaled_sum(kind, int(kinds.size()) - 1, spec.parameters.empty() ? 1 : spec.parameters[0].real);
  if (name == "pair") {
    MonoidRef whole;
    size_t at = 0;
    for (const MonoidSpec::Parameter& p : spec.parameters) {
      size_t count = 1;
      if (p.monoid->definition) count = p.monoid->definition->operands.size();
      else if (p.monoid->name == "argmax" || p.monoid->name == "argmin" || p.monoid->name == "affine") count = 2;
      const std::vector<Kind> own(kinds.begin() + std::ptrdiff_t(at), kinds.begin() + std::ptrdiff_t(at + count));
      at += count;
      const bool logic = p.monoid->name == "any" || p.monoid->name == "all";
      for (Kind k : own) {
        if (!p.monoid->definition && logic != (k == Kind::Bool)) {
          return c.fail(frame, ast, "`" + p.monoid->name + "` in `pair` folds " + (logic ? "bools" : "numbers"));
        }
      }
      const bool floats = !p.monoid->definition && (p.monoid->name == "welford" || p.monoid->name == "affine");
      if (floats && !scalar::is_float(own[0])) return c.fail(frame, ast, "`" + p.monoid->name + "` in `pair` folds floats", "cast its operand: f32(x)");
      if (p.monoid->name == "affine" && own[0] != own[1]) return c.fail(frame, ast, "`affine` in `pair` takes two operands of one kind");
      LEMMA_TRY(const MonoidRef part, instantiate(c, *p.monoid, own, frame, ast));
      whole = whole ? monoid::pair(whole, part) : part;
    }
    return whole;
  }
  return c.fail(frame, ast, "there is no monoid `" + name + "`");
}

}  // namespace lemma::language
