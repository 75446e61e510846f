// Surface expressions to cores: names, functions, folds.
#include <algorithm>
#include <set>
#include <cmath>

#include "lemma/language/core.h"

namespace lemma::language {

using scalar::Op;
using syntax::Node;
using syntax::NodeKind;
using view::Form;

namespace {

constexpr int deepest = 150;
constexpr int deepest_call = 40;

struct Builtin {
  const char* name;
  Op op;
  int arity;   // -2: two or more
};
constexpr Builtin builtins[] = {
    {"neg", Op::Neg, 1},         {"abs", Op::Abs, 1},       {"recip", Op::Recip, 1}, {"sqrt", Op::Sqrt, 1},
    {"rsqrt", Op::Rsqrt, 1},     {"exp", Op::Exp, 1},       {"exp2", Op::Exp2, 1},   {"log", Op::Log, 1},
    {"log2", Op::Log2, 1},       {"sin", Op::Sin, 1},       {"cos", Op::Cos, 1},     {"tan", Op::Tan, 1},
    {"tanh", Op::Tanh, 1},       {"erf", Op::Erf, 1},       {"sigmoid", Op::Sigmoid, 1}, {"floor", Op::Floor, 1},
    {"round", Op::Round, 1},     {"pow", Op::Pow, 2},       {"atan2", Op::Atan2, 2}, {"min", Op::Min, -2},
    {"max", Op::Max, -2},        {"shl", Op::Shl, 2},       {"shr", Op::Shr, 2},     {"floordiv", Op::FloorDiv, 2},
    {"mod", Op::Mod, 2},         {"div", Op::Div, 2},       {"bitnot", Op::Not, 1},  {"xor", Op::Xor, 2},
    {"bitand", Op::And, 2},      {"bitor", Op::Or, 2},
};
constexpr const char* special_names[] = {"select", "when", "maybe", "ceildiv", "present", "raw", "round_to", "bits", "at"};
constexpr const char* fold_names[] = {"sum",  "prod", "max",     "min",          "argmax", "argmin", "topk", "bottomk",
                                      "any",  "all",  "count",   "rescaled_sum", "welford", "affine", "pair"};

const Builtin* find_builtin(const std::string& name) {
  for (const Builtin& b : builtins) {
    if (name == b.name) return &b;
  }
  return nullptr;
}

}  // namespace

bool is_library_monoid(const std::string& name) {
  return std::find(std::begin(fold_names), std::end(fold_names), name) != std::end(fold_names);
}

CoreId Expander::make(CoreKind kind, int frame, NodeId ast, std::vector<CoreId> args) {
  Core core;
  core.kind = kind;
  core.frame = frame;
  core.ast = ast;
  core.args = std::move(args);
  return c_.add(std::move(core));
}

Result<CoreId> Expander::expand(int frame, NodeId ast, int environment) {
  LEMMA_TRY_VOID(c_.step(frame, ast));
  const NodeKind kind = c_.ast(frame, ast).kind;
  if (kind == NodeKind::Number) return expand_node(frame, ast, environment);
  if (++depth_ > deepest) {
    return c_.fail(frame, ast, "this expression nests too deeply once its functions are written out",
                   "name a part of it in an equation of its own");
  }
  Result<CoreId> out = expand_node(frame, ast, environment);
  --depth_;
  return out;
}

Result<CoreId> Expander::expand_node(int frame, NodeId ast, int environment) {
  const Node& n = c_.ast(frame, ast);
  switch (n.kind) {
    case NodeKind::Number: {
      if (n.oversized) return c_.fail(frame, ast, "the integer " + n.text + " needs more than 64 bits", "write it as a float: " + n.text + ".0");
      const CoreId id = make(n.integer_literal ? CoreKind::Integer : CoreKind::Real, frame, ast);
      c_.cores[size_t(id)].magnitude = n.integer;
      c_.cores[size_t(id)].real = n.real;
      return id;
    }
    case NodeKind::Name: return name(frame, ast, environment);
    case NodeKind::Read: return read(frame, ast, environment);
    case NodeKind::Call: return call(frame, ast, environment);
    case NodeKind::Chain: return chain(frame, ast, environment);
    case NodeKind::Compare: return compare(frame, ast, environment);
    case NodeKind::Negate: {
      LEMMA_TRY(const CoreId operand, expand(frame, n.items[0], environment));
      Core core = c_.cores[size_t(operand)];
      // A negated literal is a literal.
      const bool literal = c_.ast(frame, n.items[0]).kind == NodeKind::Number ||
                           (core.kind == CoreKind::Real && c_.ast(frame, n.items[0]).kind == NodeKind::Name);
      if (literal && (core.kind == CoreKind::Integer || core.kind == CoreKind::Real)) {
        core.negative = true;
        core.real = -core.real;
        core.ast = ast;
        return c_.add(std::move(core));
      }
      return make(CoreKind::Negate, frame, ast, {operand});
    }
    case NodeKind::Not: {
      LEMMA_TRY(const CoreId operand, expand(frame, n.items[0], environment));
      return make(CoreKind::Not, frame, ast, {operand});
    }
    case NodeKind::Flip: {
      LEMMA_TRY(const CoreId operand, expand(frame, n.items[0], environment));
      const CoreId id = make(CoreKind::Apply, frame, ast, {operand});
      c_.cores[size_t(id)].op = Op::Not;
      return id;
    }
    case NodeKind::Else: {
      LEMMA_TRY(std::vector<CoreId> args, all(frame, n.items, environment));
      return make(CoreKind::Else, frame, ast, std::move(args));
    }
    case NodeKind::Tuple: {
      LEMMA_TRY(std::vector<CoreId> args, all(frame, n.items, environment));
      return make(CoreKind::Tuple, frame, ast, std::move(args));
    }
  }
  return c_.fail(frame, ast, "found something that is no expression");
}

Result<std::vector<CoreId>> Expander::all(int frame, const std::vector<NodeId>& items, int environment) {
  std::vector<CoreId> out;
  out.reserve(items.size());
  for (NodeId item : items) {
    LEMMA_TRY(const CoreId id, expand(frame, item, environment));
    out.push_back(id);
  }
  return out;
}

// ---- names ----

namespace {

std::string monoid_names(const Context& context) {
  std::set<std::string> own;
  for (const auto& [name, entry] : context.monoids) own.insert(syntax::quote(name));
  std::string out;
  for (const char* name : fold_names) out += (out.empty() ? "" : ", ") + std::string(name);
  if (own.empty()) return out + ", and what a program defines with `monoid`";
  for (const std::string& name : own) out += ", " + name;
  return out;
}

}  // namespace

base::Diagnostic Expander::unknown(int frame, NodeId ast, const std::string& name, bool called) const {
  std::vector<std::string> candidates;
  for (const auto& [key, binding] : c_.frames[size_t(frame)].names) candidates.push_back(key);
  if (called) {
    for (const auto& [key, entry] : c_.functions) candidates.push_back(key);
    for (const auto& [key, entry] : c_.monoids) candidates.push_back(key);
    for (const Builtin& b : builtins) candidates.push_back(b.name);
    for (const char* s : special_names) candidates.push_back(s);
    for (const char* s : fold_names) candidates.push_back(s);
  } else {
    for (const auto& [key, global] : c_.globals) candidates.push_back(key);
    for (const Var& v : c_.vars) candidates.push_back(v.name);
  }
  std::sort(candidates.begin(), candidates.end());
  const std::string near = syntax::nearest(name, candidates);
  const std::string shown = "`" + syntax::quote(name) + "`";
  if (!called) {
    if (c_.defining && *c_.defining == name) {
      return c_.fail(frame, ast, shown + " is read by its own definition",
                     "a value that depends on earlier elements of itself is a scan: scan sum(t) ..., or scan affine(t) (a, b)");
    }
    if (const auto it = c_.later.find(name); it != c_.later.end()) {
      base::Diagnostic d = c_.fail(frame, ast, shown + " is defined further down, an equation reads only what stands above it",
                                   "move the definition up; values that need each other have no meaning");
      d.notes.push_back({c_.program.source.span(it->second), "it is defined here"});
      return d;
    }
  }
  const bool bound = !called && std::any_of(c_.vars.begin(), c_.vars.end(), [&](const Var& v) { return v.name == name; });
  if (bound) {
    return c_.fail(frame, ast, shown + " is not defined here, outside the fold that binds it",
                   "the body of a fold ends before + and -; put what belongs to it in parentheses: sum(" + syntax::quote(name) + ") (...)");
  }
  std::string suggestion = near.empty() ? "" : "did you mean `" + syntax::quote(near) + "`?";
  if (const size_t dot = name.find('.'); called && dot != std::string::npos && dot > 0) {
    const std::string method = name.substr(dot + 1), on = name.substr(0, dot);
    if (is_library_monoid(method)) suggestion = "there are no methods: write " + method + "(j) " + on + "[..., j] with an index j to fold over";
    else if (find_builtin(method) || c_.functions.count(method)) suggestion = "there are no methods: write " + method + " before what it is of, as in " + method + "(" + on + "[i])";
  }
  if (suggestion.empty() && !called) suggestion = "declare it with dim or input, define it above, or bind it as an index of this equation";
  return c_.fail(frame, ast, called ? "there is no function or monoid " + shown : shown + " is not defined", std::move(suggestion));
}

Result<CoreId> Expander::closure(int frame, NodeId ast, Binding binding, int environment) {
  switch (binding.kind) {
    case Binding::Ready: return binding.core;
    case Binding::Domain:
      if (binding.ast < 0) {
        const CoreId id = make(CoreKind::Truth, frame, ast);
        c_.cores[size_t(id)].magnitude = 1;
        return id;
      }
      break;
    case Binding::Closure: break;
    case Binding::Index: return c_.fail(frame, ast, "this index has no value here");
  }
  const Context::Key key{binding.frame, binding.ast, environment};
  if (const auto it = c_.memo.find(key); it != c_.memo.end()) {
    if (it->second < 0) return c_.fail(frame, ast, "`" + c_.ast(frame, ast).text + "` is defined by itself");
    return it->second;
  }
  LEMMA_TRY_VOID(locals_before(binding, environment));
  return ready(key);
}

Result<CoreId> Expander::ready(const Context::Key& key) {
  c_.memo[key] = -1;
  LEMMA_TRY(const CoreId id, expand(key.frame, key.ast, key.environment));
  c_.memo[key] = id;
  return id;
}

// Expands the locals that a local needs, earlier ones first, so that a long chain of them is no deep recursion.
Result<void> Expander::locals_before(const Binding& binding, int environment) {
  if (!c_.frames[size_t(binding.frame)].locals.count(binding.ast)) return {};
  std::vector<std::pair<NodeId, bool>> stack = {{binding.ast, false}};
  while (!stack.empty()) {
    const auto [ast, below_done] = stack.back();
    stack.pop_back();
    const Context::Key key{binding.frame, ast, environment};
    if (c_.memo.count(key)) continue;
    LEMMA_TRY_VOID(c_.step(binding.frame, ast));
    if (below_done) {
      if (ast == binding.ast) continue;  // the caller's
      // Under a fold a local may name an index that is not bound here; it is expanded there then.
      const int depth = depth_;
      if (!ready(key).ok()) {
        depth_ = depth;
        c_.memo.erase(key);
      }
      continue;
    }
    stack.emplace_back(ast, true);
    for (NodeId other : c_.frames[size_t(binding.frame)].locals.at(ast)) stack.emplace_back(other, false);
    if (stack.size() > 100000) return c_.fail(binding.frame, binding.ast, "the local values here need each other in too many ways");
  }
  return {};
}

void Context::add_locals(int frame, const std::vector<Local>& locals) {
  Frame& f = frames[size_t(frame)];
  std::unordered_map<std::string, NodeId> earlier;
  for (const Local& local : locals) {
    std::vector<NodeId> needs, stack = {local.value};
    std::unordered_set<NodeId> seen;
    while (!stack.empty()) {
      const syntax::Node& n = f.unit->tree[stack.back()];
      stack.pop_back();
      if (n.kind == NodeKind::Name) {
        if (const auto it = earlier.find(n.text); it != earlier.end() && seen.insert(it->second).second) needs.push_back(it->second);
      }
      stack.insert(stack.end(), n.items.begin(), n.items.end());
      if (n.condition >= 0) stack.push_back(n.condition);
      if (n.body >= 0) stack.push_back(n.body);
    }
    f.locals[local.value] = std::move(needs);
    earlier[local.name.name] = local.value;
    Binding b;
    b.ast = local.value;
    b.frame = frame;
    f.names[local.name.name] = b;
  }
}

Result<CoreId> Expander::name(int frame, NodeId ast, int environment) {
  const Node& n = c_.ast(frame, ast);
  const Frame& f = c_.frames[size_t(frame)];
  if (const auto symbol = c_.known_symbol(frame, n.text)) {
    if (const auto core = c_.bound(environment, *symbol)) return *core;
  }
  if (const auto it = f.names.find(n.text); it != f.names.end()) {
    if (it->second.kind == Binding::Index) {
      return c_.fail(frame, ast, "the index `" + n.text + "` is used outside the folds that bind it",
                     "its value here would vary with an index that the equation does not have");
    }
    return closure(frame, ast, it->second, environment);
  }
  if (f.monoid) {
    for (size_t i = 0; i < f.monoid->state.size(); ++i) {
      for (const bool right : {false, true}) {
        if (n.text == std::string(right ? "y." : "x.") + f.monoid->state[i].name.name) {
          const CoreId id = make(CoreKind::State, frame, ast);
          c_.cores[size_t(id)].which = int(i);
          c_.cores[size_t(id)].right = right;
          return id;
        }
      }
    }
  }
  if (const auto it = c_.globals.find(n.text); it != c_.globals.end()) {
    const Global& g = it->second;
    if (g.kind == Global::Size) {
      const CoreId id = make(CoreKind::Size, frame, ast);
      c_.cores[size_t(id)].form = g.form;
      return id;
    }
    const size_t rank = tensor::extents(c_.graph, g.value).size();
    if (rank != 0) {
      return c_.fail(frame, ast, "`" + n.text + "` has " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") + ", it is read here without indices",
                     "write " + syntax::quote(n.text) + "[...] with " + std::to_string(rank) + (rank == 1 ? " index" : " indices"));
    }
    const CoreId id = make(CoreKind::Read, frame, ast);
    c_.cores[size_t(id)].source = g.value;
    return id;
  }
  if (!n.quoted) {
    if (n.text == "inf" || n.text == "nan") {
      const CoreId id = make(CoreKind::Real, frame, ast);
      c_.cores[size_t(id)].real = n.text == "inf" ? HUGE_VAL : NAN;
      return id;
    }
    if (n.text == "true" || n.text == "false") {
      const CoreId id = make(CoreKind::Truth, frame, ast);
      c_.cores[size_t(id)].magnitude = n.text == "true";
      return id;
    }
  }
  return unknown(frame, ast, n.text, false);
}

// The tensor that a name stands for: itself, or what a function was given for it.
Result<std::optional<tensor::Value>> Expander::tensor_of(int frame, const std::string& name, int depth) {
  const Frame& f = c_.frames[size_t(frame)];
  if (const auto it = f.names.find(name); it != f.names.end()) {
    const Binding& b = it->second;
    if (b.kind != Binding::Closure || depth > deepest_call) return std::optional<tensor::Value>();
    const Node& n = c_.ast(b.frame, b.ast);
    if (n.kind != NodeKind::Name) return std::optional<tensor::Value>();
    return tensor_of(b.frame, n.text, depth + 1);
  }
  const auto it = c_.globals.find(name);
  if (it == c_.globals.end() || it->second.kind != Global::Tensor) return std::optional<tensor::Value>();
  return std::optional(it->second.value);
}

Result<CoreId> Expander::read(int frame, NodeId ast, int environment) {
  const Node& n = c_.ast(frame, ast);
  const NodeId base = n.items[0];
  const std::string name = n.text;
  const std::vector<NodeId> coords(n.items.begin() + 1, n.items.end());
  const NodeId condition = n.condition;
  const bool maybe = n.maybe;
  if (const MonoidDefinition* m = c_.frames[size_t(frame)].monoid) {
    for (size_t i = 0; i < m->state.size(); ++i) {
      for (const bool right : {false, true}) {
        if (name != std::string(right ? "y." : "x.") + m->state[i].name.name) continue;
        if (coords.size() != m->state[i].axes.size()) {
          return c_.fail(frame, ast, "`" + name + "` has " + std::to_string(m->state[i].axes.size()) + " axes, found " + std::to_string(coords.size()) + " indices");
        }
        LEMMA_TRY(std::vector<CoreId> args, all(frame, coords, environment));
        const CoreId id = make(CoreKind::State, frame, ast, std::move(args));
        c_.cores[size_t(id)].which = int(i);
        c_.cores[size_t(id)].right = right;
        return id;
      }
    }
  }
  LEMMA_TRY(const std::optional<tensor::Value> value, tensor_of(frame, name, 0));
  if (!value) {
    if (const auto it = c_.globals.find(name); it != c_.globals.end()) {
      return c_.fail(frame, base, "`" + name + "` is a size, it is read here like a tensor");
    }
    if (c_.frames[size_t(frame)].names.count(name)) {
      return c_.fail(frame, base, "`" + name + "` is read with indices here, but the call gives an expression for it",
                     "give the name of a tensor, or use `" + name + "` without indices");
    }
    if (is_library_monoid(name) || c_.monoids.count(name) || c_.functions.count(name)) {
      return c_.fail(frame, base, "`" + name + "` is called without its arguments in parentheses",
                     "write " + name + "[...](index) e");
    }
    return unknown(frame, base, name, false);
  }
  const size_t rank = tensor::extents(c_.graph, *value).size();
  if (coords.size() != rank) {
    base::Diagnostic d = c_.fail(frame, base, "`" + name + "` has " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                                                  ", found " + std::to_string(coords.size()) + (coords.size() == 1 ? " index" : " indices"));
    if (const auto it = c_.globals.find(name); it != c_.globals.end()) d.notes.push_back({c_.program.source.span(it->second.place), "`" + name + "` is defined here"});
    return d;
  }
  LEMMA_TRY(std::vector<CoreId> args, all(frame, coords, environment));
  for (CoreId arg : args) {
    const Core& core = c_.cores[size_t(arg)];
    if (core.kind == CoreKind::Chain && std::find(core.ops.begin(), core.ops.end(), uint8_t(Op::Div)) != core.ops.end()) {
      return c_.fail(core, "`/` is real division, a coordinate is an integer", "write // for the floor");
    }
  }
  CoreId guard = -1;
  if (condition >= 0) {
    LEMMA_TRY(guard, expand(frame, condition, environment));
  }
  const CoreId id = make(CoreKind::Read, frame, ast, std::move(args));
  c_.cores[size_t(id)].source = *value;
  c_.cores[size_t(id)].guard = guard;
  c_.cores[size_t(id)].maybe = maybe;
  return id;
}

// ---- operators ----

Result<CoreId> Expander::chain(int frame, NodeId ast, int environment) {
  const std::vector<std::string> operators = c_.ast(frame, ast).operators;
  const std::vector<NodeId> items = c_.ast(frame, ast).items;
  LEMMA_TRY(std::vector<CoreId> args, all(frame, items, environment));
  const bool logic = operators[0] == "and" || operators[0] == "or";
  const CoreId id = make(logic ? CoreKind::Logic : CoreKind::Chain, frame, ast, std::move(args));
  Core& core = c_.cores[size_t(id)];
  for (const std::string& op : operators) {
    Op o = Op::Add;
    if (op == "and" || op == "&") o = Op::And;
    else if (op == "or" || op == "|") o = Op::Or;
    else if (op == "^") o = Op::Xor;
    else if (op == "<<") o = Op::Shl;
    else if (op == ">>") o = Op::Shr;
    else if (op == "-") o = Op::Sub;
    else if (op == "*") o = Op::Mul;
    else if (op == "/") o = Op::Div;
    else if (op == "//") o = Op::FloorDiv;
    else if (op == "%") o = Op::Mod;
    core.ops.push_back(uint8_t(o));
  }
  core.op = Op(core.ops[0]);
  return id;
}

Result<CoreId> Expander::compare(int frame, NodeId ast, int environment) {
  const std::vector<std::string> operators = c_.ast(frame, ast).operators;
  const std::vector<NodeId> items = c_.ast(frame, ast).items;
  LEMMA_TRY(std::vector<CoreId> args, all(frame, items, environment));
  const CoreId id = make(CoreKind::Compare, frame, ast, std::move(args));
  for (const std::string& op : operators) {
    const Comparison c = op == "<"    ? Comparison::Less
                         : op == "<=" ? Comparison::LessEqual
                         : op == ">"  ? Comparison::Greater
                         : op == ">=" ? Comparison::GreaterEqual
                         : op == "==" ? Comparison::Equal
                                      : Comparison::NotEqual;
    c_.cores[size_t(id)].ops.push_back(uint8_t(c));
  }
  return id;
}

// ---- calls ----

Result<CoreId> Expander::call(int frame, NodeId ast, int environment) {
  const std::string name = c_.ast(frame, ast).text;
  const bool has_body = c_.ast(frame, ast).body >= 0;
  const bool scan = c_.ast(frame, ast).scan;
  if (name == "at" && has_body) return at(frame, ast, environment);
  if (!scan) {
    if (const auto it = c_.functions.find(name); it != c_.functions.end()) {
      const Context::FunctionEntry entry = it->second;
      if (entry.function->folds || !has_body) return function(frame, ast, environment, entry);
    }
  }
  const bool is_monoid = c_.monoids.count(name) || is_library_monoid(name);
  if (is_monoid && (has_body || !find_builtin(name))) return fold(frame, ast, environment);
  if (scan && (find_builtin(name) || c_.functions.count(name))) {
    return c_.fail(frame, ast, "`" + name + "` is a function of values, a scan takes a monoid", "the monoids are " + monoid_names(c_));
  }
  if (has_body && (find_builtin(name) || c_.functions.count(name))) {
    return c_.fail(frame, ast, "`" + name + "` is a function of values, it is called like a fold",
                   "write " + name + "(e)");
  }
  if (!has_body) return builtin(frame, ast, environment);
  return unknown(frame, ast, name, true);
}

Result<CoreId> Expander::function(int frame, NodeId ast, int environment, const Context::FunctionEntry& entry) {
  const Function& f = *entry.function;
  const Context::Key key{frame, ast, 0};
  int callee = -1;
  if (const auto it = c_.frame_memo.find(key); it != c_.frame_memo.end()) {
    callee = it->second;
  } else {
    const Node& n = c_.ast(frame, ast);
    const auto count = [](size_t n, const std::string& one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); };
    const std::string shown = "`" + f.name.name + "`";
    for (const std::string& label : n.labels) {
      if (!label.empty()) return c_.fail(frame, ast, shown + " takes no argument named `" + label + "`");
    }
    if (n.params.size() != f.parameters.size()) {
      return c_.fail(frame, ast, shown + " takes " + count(f.parameters.size(), "parameter") + " in brackets, found " + std::to_string(n.params.size()));
    }
    if (n.items.size() != f.items.size()) {
      return c_.fail(frame, ast, shown + " takes " + count(f.items.size(), f.folds ? "index" : "argument") + ", found " + std::to_string(n.items.size()));
    }
    if (n.condition >= 0 && f.domain.name.empty()) {
      return c_.fail(frame, n.condition, shown + " takes no condition", "define it as def " + f.name.name + "(... : where) to pass one");
    }
    if (f.folds && n.body < 0) {
      return c_.fail(frame, ast, shown + " folds over an index and needs a body after the parenthesis", "write " + f.name.name + "(j) e");
    }
    Frame next;
    next.unit = entry.unit;
    next.caller = frame;
    next.call = ast;
    next.function = &f;
    next.depth = c_.frames[size_t(frame)].depth + 1;
    if (next.depth > deepest_call) {
      return c_.fail(frame, ast, "calls of functions nest deeper than " + std::to_string(deepest_call) + " here", "functions cannot call themselves");
    }
    const auto closure = [&](NodeId node) { Binding b; b.ast = node; b.frame = frame; return b; };
    for (size_t i = 0; i < f.parameters.size(); ++i) next.names[f.parameters[i].name] = closure(n.params[i]);
    if (!f.domain.name.empty()) {
      Binding b = closure(n.condition);
      b.kind = Binding::Domain;
      next.names[f.domain.name] = b;
    }
    for (size_t i = 0; i < f.items.size(); ++i) {
      if (!f.folds) {
        next.names[f.items[i].name] = closure(n.items[i]);
        continue;
      }
      NodeId item = n.items[i], bound = -1;
      int bound_frame = frame;
      if (c_.ast(frame, item).kind == NodeKind::Compare && c_.ast(frame, item).operators == std::vector<std::string>{"<"}) {
        bound = c_.ast(frame, item).items[1];
        item = c_.ast(frame, item).items[0];
      }
      if (c_.ast(frame, item).kind != NodeKind::Name) {
        return c_.fail(frame, item, shown + " takes an index here", "write the name of an index: " + f.name.name + "(j) e");
      }
      const std::string index = c_.ast(frame, item).text;
      Binding b;
      b.kind = Binding::Index;
      b.symbol = c_.symbol(frame, index);
      if (bound < 0) {
        const auto& names = c_.frames[size_t(frame)].names;
        if (const auto it = names.find(index); it != names.end()) {
          bound = it->second.ast;
          bound_frame = it->second.frame;
        }
      }
      b.ast = bound;
      b.frame = bound_frame;
      next.names[f.items[i].name] = b;
    }
    if (f.folds) {
      const NodeId body = n.body;
      if (f.operands.size() == 1) {
        next.names[f.operands[0].name] = closure(body);
      } else {
        const Node& tuple = c_.ast(frame, body);
        if (tuple.kind != NodeKind::Tuple || tuple.items.size() != f.operands.size()) {
          return c_.fail(frame, body, shown + " takes " + count(f.operands.size(), "value") + " after the parenthesis, found " +
                                          (tuple.kind == NodeKind::Tuple ? std::to_string(tuple.items.size()) : "1"),
                         "write them as a tuple: " + f.name.name + "(j) (a, b)");
        }
        for (size_t i = 0; i < f.operands.size(); ++i) next.names[f.operands[i].name] = closure(tuple.items[i]);
      }
    }
    callee = c_.add_frame(std::move(next));
    c_.add_locals(callee, f.locals);
    c_.frame_memo[key] = callee;
  }
  return expand(callee, f.result, environment);
}

// at(i = e, ...) body: the body with other values for its indices.
Result<CoreId> Expander::at(int frame, NodeId ast, int environment) {
  const std::vector<std::string> labels = c_.ast(frame, ast).labels;
  const std::vector<NodeId> items = c_.ast(frame, ast).items;
  const NodeId body = c_.ast(frame, ast).body;
  if (items.empty()) return c_.fail(frame, ast, "`at` says nothing, expected at(i = e) body");
  int inner = environment;
  for (size_t i = 0; i < items.size(); ++i) {
    if (labels[i].empty()) return c_.fail(frame, items[i], "`at` gives indices new values, expected `index = value`", "write at(i = i + 1) x");
    LEMMA_TRY(const CoreId value, expand(frame, items[i], environment));
    inner = c_.bind(inner, c_.symbol(frame, labels[i]), value);
  }
  return expand(frame, body, inner);
}

Result<int> Expander::variable(int frame, const std::string& name, NodeId ast, int symbol, int bound_frame,
                               NodeId bound, int& environment) {
  Var v;
  v.name = name;
  v.frame = frame;
  v.ast = ast;
  if (const auto outer = c_.bound(environment, symbol); outer && c_.cores[size_t(*outer)].kind == CoreKind::Var) {
    v.shadows = c_.cores[size_t(*outer)].var;
  }
  if (bound >= 0) {
    LEMMA_TRY(v.extent, size(bound_frame, bound, environment));
    v.stated = true;
  }
  const int id = int(c_.vars.size());
  c_.vars.push_back(std::move(v));
  const CoreId core = make(CoreKind::Var, frame, ast);
  c_.cores[size_t(core)].var = id;
  environment = c_.bind(environment, symbol, core);
  return id;
}

Result<CoreId> Expander::fold(int frame, NodeId ast, int environment) {
  const std::string name = c_.ast(frame, ast).text;
  const bool scan = c_.ast(frame, ast).scan;
  const std::vector<NodeId> items = c_.ast(frame, ast).items;
  const std::vector<std::string> labels = c_.ast(frame, ast).labels;
  const std::vector<NodeId> params = c_.ast(frame, ast).params;
  const NodeId body = c_.ast(frame, ast).body, condition = c_.ast(frame, ast).condition;
  if (body < 0) {
    return c_.fail(frame, ast, "`" + name + "` folds over an index and needs a body after the parenthesis", "write " + name + "(j) e");
  }
  Fold f;
  f.scan = scan;
  f.frame = frame;
  f.ast = ast;

  struct Binder { std::string name; NodeId ast; int symbol; int frame; NodeId bound; };
  std::vector<Binder> binders;
  std::vector<NodeId> initial;
  for (size_t i = 0; i < items.size(); ++i) {
    NodeId item = items[i];
    const Node& node = c_.ast(frame, item);
    if (!labels[i].empty()) {
      if (!scan || labels[i] != "initial") {
        return c_.fail(frame, item, "`" + name + "` has no option `" + labels[i] + "`", scan ? "a scan takes initial = e, exclusive and reverse" : "");
      }
      if (node.kind == NodeKind::Tuple) initial = node.items;
      else initial = {item};
      continue;
    }
    if (scan && i > 0 && node.kind == NodeKind::Name && (node.text == "exclusive" || node.text == "reverse")) {
      (node.text == "exclusive" ? f.exclusive : f.reverse) = true;
      continue;
    }
    Binder b{"", item, -1, frame, -1};
    if (node.kind == NodeKind::Compare && node.operators == std::vector<std::string>{"<"}) {
      b.bound = node.items[1];
      b.ast = node.items[0];
    }
    const Node& index = c_.ast(frame, b.ast);
    if (index.kind != NodeKind::Name) {
      return c_.fail(frame, b.ast, "a fold binds indices, found an expression", "write " + name + "(j) e, or " + name + "(j < N) e; a condition follows `:`");
    }
    b.name = index.text;
    if (scan && !binders.empty()) return c_.fail(frame, b.ast, "a scan runs along one index, found a second, `" + b.name + "`", "the options of a scan are exclusive, reverse and initial = e");
    b.symbol = c_.symbol(frame, b.name);
    for (const Binder& other : binders) {
      if (other.symbol == b.symbol) return c_.fail(frame, b.ast, "the index `" + b.name + "` is bound twice");
    }
    if (b.bound < 0) {
      const auto& names = c_.frames[size_t(frame)].names;
      if (const auto it = names.find(b.name); it != names.end() && it->second.kind == Binding::Index) {
        b.bound = it->second.ast;
        b.frame = it->second.frame;
      }
    }
    binders.push_back(std::move(b));
  }
  if (binders.empty()) return c_.fail(frame, ast, "`" + name + "` binds no index, expected " + name + "(j) e");

  int inner = environment;
  if (!scan) {
    // What the fold means does not depend on what its own indices meant outside.
    int outside = environment;
    for (const Binder& b : binders) outside = c_.unbind(outside, b.symbol);
    const Context::Key key{frame, ast, outside};
    if (const auto it = c_.memo.find(key); it != c_.memo.end() && it->second >= 0) return it->second;
    for (const Binder& b : binders) {
      LEMMA_TRY(const int v, variable(frame, b.name, b.ast, b.symbol, b.frame, b.bound, inner));
      f.vars.push_back(v);
    }
  } else {
    const auto outer = c_.bound(environment, binders[0].symbol);
    if (!outer || c_.cores[size_t(*outer)].kind != CoreKind::Var) {
      return c_.fail(frame, binders[0].ast, "a scan keeps its index, but `" + binders[0].name + "` is no index of this equation",
                     "write y[" + binders[0].name + "] = scan ... on the left side");
    }
    const int v = c_.cores[size_t(*outer)].var;
    f.vars.push_back(v);
    if (binders[0].bound >= 0 && !c_.vars[size_t(v)].extent) {
      LEMMA_TRY(c_.vars[size_t(v)].extent, size(binders[0].frame, binders[0].bound, environment));
      c_.vars[size_t(v)].stated = true;
    }
  }
  if (condition >= 0) {
    LEMMA_TRY(f.condition, expand(frame, condition, inner));
  }
  LEMMA_TRY(const CoreId operand, expand(frame, body, inner));
  for (NodeId node : initial) {
    LEMMA_TRY(const CoreId value, expand(frame, node, environment));
    f.initial.push_back(value);
  }
  LEMMA_TRY(f.monoid, monoid(frame, name, ast, params, environment));

  std::vector<CoreId> operands = {operand};
  if (c_.cores[size_t(operand)].kind == CoreKind::Tuple) operands = c_.cores[size_t(operand)].args;
  const bool one_operand = name == "sum" || name == "prod" || name == "max" || name == "min" || name == "any" ||
                           name == "all" || name == "count";
  CoreId out = -1;
  if (one_operand && !f.monoid.definition && operands.size() > 1) {
    std::vector<CoreId> parts;
    for (CoreId one : operands) {
      Fold part = f;
      part.operands = {one};
      LEMMA_TRY(part.shape, shape_of(c_, part.monoid, 1, frame, ast));
      c_.folds.push_back(std::move(part));
      const CoreId core = make(CoreKind::Fold, frame, ast);
      c_.cores[size_t(core)].fold = int(c_.folds.size()) - 1;
      parts.push_back(core);
    }
    out = make(CoreKind::Tuple, frame, ast, std::move(parts));
  } else {
    LEMMA_TRY(f.shape, shape_of(c_, f.monoid, int(operands.size()), frame, ast));
    if (!f.initial.empty() && f.initial.size() != f.shape.components.size()) {
      return c_.fail(frame, ast, "the initial state of `" + name + "` has " + std::to_string(f.shape.components.size()) + " components, found " + std::to_string(f.initial.size()));
    }
    f.operands = std::move(operands);
    c_.folds.push_back(std::move(f));
    out = make(CoreKind::Fold, frame, ast);
    c_.cores[size_t(out)].fold = int(c_.folds.size()) - 1;
  }
  if (!scan) {
    int outside = environment;
    for (const Binder& b : binders) outside = c_.unbind(outside, b.symbol);
    c_.memo[{frame, ast, outside}] = out;
  }
  return out;
}

Result<MonoidSpec> Expander::monoid(int frame, const std::string& name, NodeId ast, const std::vector<NodeId>& params, int environment) {
  MonoidSpec spec;
  spec.name = name;
  if (const auto it = c_.monoids.find(name); it != c_.monoids.end()) {
    spec.definition = it->second.definition;
    spec.unit = it->second.unit;
    if (params.size() != spec.definition->parameters.size()) {
      return c_.fail(frame, ast, "the monoid `" + name + "` takes " + std::to_string(spec.definition->parameters.size()) + " parameters in brackets, found " + std::to_string(params.size()));
    }
  } else if (!is_library_monoid(name)) {
    return unknown(frame, ast, name, true);
  }
  for (NodeId param : params) {
    MonoidSpec::Parameter p;
    const Node& n = c_.ast(frame, param);
    if (name == "pair") {
      if (n.kind != NodeKind::Name && n.kind != NodeKind::Read) return c_.fail(frame, param, "`pair` joins monoids, as in pair[sum, max]");
      const std::vector<NodeId> inner(n.kind == NodeKind::Read ? n.items.begin() + 1 : n.items.end(), n.items.end());
      const std::string inner_name = n.text;
      if (++depth_ > deepest) return c_.fail(frame, param, "monoids nest too deeply here");
      LEMMA_TRY(MonoidSpec one, monoid(frame, inner_name, param, inner, environment));
      --depth_;
      p.monoid = std::make_shared<MonoidSpec>(std::move(one));
    } else {
      LEMMA_TRY(const CoreId value, expand(frame, param, environment));
      const Core& core = c_.cores[size_t(value)];
      if (core.kind == CoreKind::Real) {
        p.real = core.real;
      } else {
        LEMMA_TRY(p.form, size_of(value, "a monoid's parameter"));
        if (const auto k = p.form->constant()) p.real = double(*k);
      }
    }
    spec.parameters.push_back(std::move(p));
  }
  return spec;
}

Result<CoreId> Expander::builtin(int frame, NodeId ast, int environment) {
  const std::string name = c_.ast(frame, ast).text;
  const std::vector<NodeId> items = c_.ast(frame, ast).items;
  const std::vector<NodeId> params = c_.ast(frame, ast).params;
  for (const std::string& label : c_.ast(frame, ast).labels) {
    if (!label.empty()) return c_.fail(frame, ast, "`" + name + "` takes no argument named `" + label + "`");
  }
  if (c_.ast(frame, ast).condition >= 0) {
    return c_.fail(frame, c_.ast(frame, ast).condition, "`" + name + "` takes no condition here", "a fold with a condition needs a body: " + name + "(j : j <= i) e");
  }
  const auto arity = [&](const std::string& expected) {
    return c_.fail(frame, ast, "`" + name + "` takes " + expected + ", found " + std::to_string(items.size()));
  };
  if (name == "round_to" || name == "bits") {
    if (params.size() != 1 || items.size() != 1) return c_.fail(frame, ast, "`" + name + "` takes a type in brackets and a value, as in " + name + "[i32](x)");
    const auto type = scalar::parse_dtype(c_.ast(frame, params[0]).text);
    if (c_.ast(frame, params[0]).kind != NodeKind::Name || !type) return c_.fail(frame, params[0], "`" + name + "` takes an element type in brackets, such as bf16");
    LEMMA_TRY(std::vector<CoreId> args, all(frame, items, environment));
    const CoreId id = make(name == "bits" ? CoreKind::Bits : CoreKind::RoundTo, frame, ast, std::move(args));
    c_.cores[size_t(id)].type = *type;
    return id;
  }
  const Builtin* found = find_builtin(name);
  const auto type = scalar::parse_dtype(name);
  const bool special = name == "select" || name == "when" || name == "maybe" || name == "ceildiv" || name == "present" || name == "raw";
  if (!found && !type && !special) {
    if (name == "at") return c_.fail(frame, ast, "`at` needs a body after the parenthesis", "write at(i = i + 1) x[i]");
    return unknown(frame, ast, name, true);
  }
  if (!params.empty()) return c_.fail(frame, ast, "`" + name + "` takes no parameters in brackets");
  LEMMA_TRY(std::vector<CoreId> args, all(frame, items, environment));
  if (found) {
    if (found->arity == -2 ? args.size() < 2 : int(args.size()) != found->arity) {
      base::Diagnostic d = arity(found->arity == -2 ? "at least two arguments" : std::to_string(found->arity) + (found->arity == 1 ? " argument" : " arguments"));
      if (found->arity == -2) d.suggestion = "the fold over an index is written " + name + "(j) e";
      return d;
    }
    const CoreId id = make(CoreKind::Apply, frame, ast, std::move(args));
    c_.cores[size_t(id)].op = found->op;
    return id;
  }
  if (type) {
    if (args.size() != 1) return arity("1 argument");
    const CoreId id = make(CoreKind::Cast, frame, ast, std::move(args));
    c_.cores[size_t(id)].type = *type;
    return id;
  }
  if (name == "select") {
    if (args.size() != 3) return arity("3 arguments: a condition and two values");
    return make(CoreKind::Select, frame, ast, std::move(args));
  }
  if (name == "when") {
    if (args.size() != 2) return arity("2 arguments: a condition and a value");
    return make(CoreKind::When, frame, ast, std::move(args));
  }
  if (name == "ceildiv") {
    if (args.size() != 2) return arity("2 arguments");
    return make(CoreKind::CeilDiv, frame, ast, std::move(args));
  }
  if (args.size() != 1) return arity("1 argument");
  if (name == "maybe") return make(CoreKind::Maybe, frame, ast, std::move(args));
  if (c_.cores[size_t(args[0])].kind != CoreKind::Read) return c_.fail(frame, items[0], "`" + name + "` takes a read, as in " + name + "(x[i])");
  return make(name == "present" ? CoreKind::Present : CoreKind::Raw, frame, ast, std::move(args));
}

// ---- sizes ----

Result<Form> Expander::size(int frame, NodeId ast, int environment) {
  LEMMA_TRY(const CoreId core, expand(frame, ast, environment));
  return size_of(core, "a size");
}

Result<Form> Expander::size_of(CoreId id, const std::string& what) {
  const Core core = c_.cores[size_t(id)];
  const auto too_large = [&]() { return c_.fail(core, "this size is too large, sizes stay below 2^40 times small factors"); };
  switch (core.kind) {
    case CoreKind::Integer:
      if (core.magnitude > uint64_t(largest_literal)) return too_large();
      return Form(core.negative ? -int64_t(core.magnitude) : int64_t(core.magnitude));
    case CoreKind::Size: return core.form;
    case CoreKind::Negate: {
      LEMMA_TRY(const Form a, size_of(core.args[0], what));
      return -a;
    }
    case CoreKind::CeilDiv: {
      LEMMA_TRY(const Form a, size_of(core.args[0], what));
      LEMMA_TRY(const Form b, size_of(core.args[1], what));
      const MaybeForm up = add(a, b - Form(1));
      const MaybeForm q = up ? floor_div(*up, b) : std::nullopt;
      if (b == Form(0)) return c_.fail(core, "this divides by 0");
      if (!q) return too_large();
      return *q;
    }
    case CoreKind::Chain: {
      LEMMA_TRY(Form total, size_of(core.args[0], what));
      for (size_t i = 0; i < core.ops.size(); ++i) {
        LEMMA_TRY(const Form b, size_of(core.args[i + 1], what));
        MaybeForm next;
        switch (Op(core.ops[i])) {
          case Op::Add: next = add(total, b); break;
          case Op::Sub: next = subtract(total, b); break;
          case Op::Mul: next = multiply(total, b); break;
          case Op::FloorDiv:
          case Op::Mod:
            if (b == Form(0)) return c_.fail(core, "this divides by 0");
            next = Op(core.ops[i]) == Op::Mod ? modulo(total, b) : floor_div(total, b);
            break;
          case Op::Div: return c_.fail(core, "`/` is real division, " + what + " is an integer", "write // for the floor, or ceildiv(a, b)");
          default: return c_.fail(core, what + " is made of sizes and integers with + - * // %");
        }
        if (!next) return too_large();
        total = *next;
      }
      return total;
    }
    default: break;
  }
  return c_.fail(core, "expected " + what + " made of sizes and integers, found something that varies",
                 core.kind == CoreKind::Real ? "write an integer" : "");
}

}  // namespace lemma::language
