#include "lemma/rewrite/body.h"

#include <cmath>
#include <limits>

#include "lemma/base/check.h"

namespace lemma::rewrite {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::IndexInfo;
using tensor::Read;
using tensor::Role;
using view::AtomKind;
using view::Form;
using view::Formula;

bool small(const Comprehension& node) { return node.indices.size() <= 64; }

IndexSet with_role(const Comprehension& node, Role role) {
  IndexSet out = 0;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (node.indices[i].role == role) out |= one(int(i));
  }
  return out;
}

IndexSet indices_of(const Form& form, std::span<const IndexSet> reads) {
  IndexSet out = 0;
  for (int i : form.ids(AtomKind::Index)) out |= one(i);
  for (int r : form.ids(AtomKind::Data)) out |= reads[size_t(r)];
  return out;
}

IndexSet indices_of(const Formula& formula, std::span<const IndexSet> reads) {
  IndexSet out = 0;
  for (int i : formula.ids(AtomKind::Index)) out |= one(i);
  for (int r : formula.ids(AtomKind::Data)) out |= reads[size_t(r)];
  return out;
}

std::vector<IndexSet> read_indices(const Comprehension& node) {
  std::vector<IndexSet> out;
  for (const Read& r : node.reads) {
    IndexSet set = indices_of(r.guard, out);
    for (const Form& c : r.coords) set |= indices_of(c, out);
    out.push_back(set);
  }
  return out;
}

IndexSet indices_of(Expr expr, std::span<const IndexSet> reads) {
  IndexSet out = 0;
  for (Expr e : scalar::reachable({&expr, 1})) {
    if (e.is(Op::Index)) out |= one(int(e.payload()));
    if (e.is(Op::Arg) || e.is(Op::Present)) out |= reads[size_t(e.payload())];
  }
  return out;
}

std::optional<Op> fold_of(const monoid::Monoid& m) {
  if (m.structure != monoid::Structure::Elementwise || m.components.size() != 1 || m.operands.size() != 1 ||
      m.finish.size() != 1 || !m.components[0].axes.empty() || !m.combine[0].sums.empty()) {
    return std::nullopt;
  }
  const auto plain = [](Expr e) { return e.is(Op::Arg) && e.payload() == 0; };
  const Expr body = m.combine[0].body;
  if (!plain(m.lift[0]) || !plain(m.finish[0]) || !m.identity[0].is_const() || body.args().size() != 2) return std::nullopt;
  const auto side = [&](Expr e) {
    return e.is(Op::Arg) && m.combine[0].reads[size_t(e.payload())].component == 0
               ? int(m.combine[0].reads[size_t(e.payload())].right)
               : -1;
  };
  if (side(body.arg(0)) + side(body.arg(1)) != 1 || side(body.arg(0)) < 0 || side(body.arg(1)) < 0) return std::nullopt;
  const Kind kind = m.components[0].kind;
  const Expr e = m.identity[0];
  const auto is = [&](double v) { return scalar::is_float(kind) ? e.as_float() == v : double(e.as_int()) == v; };
  const double inf = std::numeric_limits<double>::infinity();
  switch (body.op()) {
    case Op::Add: return is(0) ? std::optional(Op::Add) : std::nullopt;
    case Op::Mul: return is(1) ? std::optional(Op::Mul) : std::nullopt;
    case Op::Max: return !scalar::is_float(kind) || is(-inf) ? std::optional(Op::Max) : std::nullopt;
    case Op::Min: return !scalar::is_float(kind) || is(inf) ? std::optional(Op::Min) : std::nullopt;
    case Op::Or: return kind == Kind::Bool && is(0) ? std::optional(Op::Or) : std::nullopt;
    case Op::And: return kind == Kind::Bool && is(1) ? std::optional(Op::And) : std::nullopt;
    default: return std::nullopt;
  }
}

bool folds_with(const Comprehension& node, Op op) {
  return is_reduction(node) && small(node) && node.outputs.size() == 1 && fold_of(*node.monoid) == op;
}

namespace {

bool is_number(Expr e, double value) {
  if (!e.is_const()) return false;
  return scalar::is_float(e.kind()) ? e.as_float() == value : double(e.as_int()) == value;
}

}  // namespace

Product factorise(Expr body) {
  Product out;
  struct Item {
    Expr expr;
    bool over;
    bool outside;  // nothing but gates lies above
  };
  const bool real = scalar::is_float(body.kind());
  std::vector<Item> stack{{body, false, true}};
  while (!stack.empty()) {
    const auto [e, over, outside] = stack.back();
    stack.pop_back();
    if (is_number(e, 1)) continue;
    if (e.is(Op::Mul)) {
      stack.push_back({e.arg(1), over, false});
      stack.push_back({e.arg(0), over, false});
    } else if (e.is(Op::Neg)) {
      const Expr minus = real ? scalar::constant(e.arena(), e.kind(), -1) : scalar::constant_int(e.arena(), e.kind(), -1);
      out.factors.push_back({Factor::Kind::Times, minus});
      stack.push_back({e.arg(0), over, false});
    } else if (e.is(Op::Div)) {
      stack.push_back({e.arg(1), !over, false});
      stack.push_back({e.arg(0), over, false});
    } else if (e.is(Op::Recip)) {
      stack.push_back({e.arg(0), !over, false});
    } else if (e.is(Op::Select) && !over && (is_number(e.arg(1), 0) || is_number(e.arg(2), 0))) {
      const bool holds = is_number(e.arg(2), 0);
      out.factors.push_back({Factor::Kind::Gate, holds ? e.arg(0) : scalar::unary(Op::Not, e.arg(0))});
      out.gates_outside = out.gates_outside && outside;
      stack.push_back({holds ? e.arg(1) : e.arg(2), over, outside});
    } else {
      out.factors.push_back({over ? Factor::Kind::Over : Factor::Kind::Times, e});
    }
  }
  return out;
}

Expr multiply(Arena& arena, Kind kind, std::span<const Factor> factors) {
  Expr times, over, gate;
  const auto join = [](Expr a, Expr b, Op op) { return a.valid() ? scalar::binary(op, a, b) : b; };
  for (const Factor& f : factors) {
    switch (f.kind) {
      case Factor::Kind::Times: times = join(times, f.expr, Op::Mul); break;
      case Factor::Kind::Over: over = join(over, f.expr, Op::Mul); break;
      case Factor::Kind::Gate: gate = join(gate, f.expr, Op::And); break;
    }
  }
  const auto number = [&](double v) {
    return scalar::is_float(kind) ? scalar::constant(arena, kind, v) : scalar::constant_int(arena, kind, int64_t(v));
  };
  Expr out = times.valid() ? times : number(1);
  if (over.valid()) out = times.valid() ? times / over : scalar::unary(Op::Recip, over);
  return gate.valid() ? scalar::select(gate, out, number(0)) : out;
}

namespace {

int64_t cost_of(Op op) {
  switch (op) {
    case Op::Const: case Op::Arg: case Op::Present: case Op::Index: case Op::Size: return 0;
    case Op::Div: case Op::Recip: case Op::Sqrt: case Op::Rsqrt: case Op::FloorDiv: case Op::Mod: return 4;
    case Op::Exp: case Op::Exp2: case Op::Log: case Op::Log2: return 10;
    case Op::Sin: case Op::Cos: case Op::Tan: case Op::Tanh: case Op::Erf: case Op::Sigmoid: case Op::Atan2: return 16;
    case Op::Pow: return 30;
    default: return 1;
  }
}

}  // namespace

int64_t cost_of(std::span<const Expr> roots) {
  int64_t out = 0;
  for (Expr e : scalar::reachable(roots)) out += cost_of(e.op());
  return out;
}

int64_t operations_in(std::span<const Expr> roots) {
  int64_t out = 0;
  for (Expr e : scalar::reachable(roots)) out += e.args().empty() ? 0 : 1;
  return out;
}

bool proved_finite(Expr root) {
  // Overflow belongs to the error budget, so what keeps finite numbers finite over the reals does.
  for (Expr e : scalar::reachable({&root, 1})) {
    if (!scalar::is_float(e.kind())) continue;
    switch (e.op()) {
      case Op::Const:
        if (!std::isfinite(e.as_float())) return false;
        break;
      case Op::Cast:
        break;
      case Op::Add: case Op::Sub: case Op::Mul: case Op::Neg: case Op::Abs: case Op::Min: case Op::Max: case Op::Select:
      case Op::Floor: case Op::Round: case Op::Exp: case Op::Exp2: case Op::Sin: case Op::Cos: case Op::Tanh:
      case Op::Erf: case Op::Sigmoid:
        break;
      case Op::Div:
        if (!proved_positive(e.arg(1))) return false;
        break;
      case Op::Recip: case Op::Rsqrt: case Op::Sqrt: case Op::Log: case Op::Log2:
        if (!proved_positive(e.arg(0))) return false;
        break;
      default: return false;
    }
  }
  return true;
}

bool proved_positive(Expr root) {
  std::vector<Expr> work{root};
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    switch (e.op()) {
      case Op::Const:
        if (scalar::is_float(e.kind()) ? !(e.as_float() > 0 && std::isfinite(e.as_float())) : e.as_int() <= 0) return false;
        break;
      case Op::Exp: case Op::Exp2:
        if (!proved_finite(e.arg(0))) return false;
        break;
      case Op::Add: case Op::Mul: case Op::Div: case Op::Min: case Op::Max: case Op::Sqrt: case Op::Rsqrt: case Op::Recip:
        for (Expr a : e.args()) work.push_back(a);
        break;
      default: return false;
    }
  }
  return true;
}

std::vector<Expr> replace_leaves(std::span<const Expr> roots, Arena& arena, const LeafMap& map) {
  return scalar::rewrite_all(roots, arena, [&](Expr e, std::span<const Expr>) {
    return e.args().empty() ? map(e) : Expr();
  });
}

Expr replace_leaves(Expr root, Arena& arena, const LeafMap& map) { return replace_leaves({&root, 1}, arena, map)[0]; }

int add_read(Comprehension& node, const Read& read) {
  for (size_t r = 0; r < node.reads.size(); ++r) {
    if (node.reads[r] == read) return int(r);
  }
  node.reads.push_back(read);
  return int(node.reads.size()) - 1;
}

std::vector<ReadUse> read_use(const Comprehension& node) {
  std::vector<ReadUse> out(node.reads.size());
  std::vector<Expr> roots = node.body;
  roots.insert(roots.end(), node.initial.begin(), node.initial.end());
  for (Expr e : scalar::reachable(roots)) {
    if (e.is(Op::Arg) || e.is(Op::Present)) out[size_t(e.payload())].value = true;
  }
  for (int r : node.domain.ids(AtomKind::Data)) out[size_t(r)].key = true;
  for (size_t r = node.reads.size(); r-- > 0;) {  // keys come first, so one walk backwards reaches all
    if (!out[r].value && !out[r].key) continue;
    for (int k : node.reads[r].guard.ids(AtomKind::Data)) out[size_t(k)].key = true;
    for (const Form& c : node.reads[r].coords) {
      for (int k : c.ids(AtomKind::Data)) out[size_t(k)].key = true;
    }
  }
  return out;
}

void tidy_reads(Comprehension& node) {
  const std::vector<ReadUse> use = read_use(node);
  std::vector<int> to(node.reads.size(), -1);
  std::vector<Read> reads;
  for (size_t r = 0; r < node.reads.size(); ++r) {
    if (!use[r].value && !use[r].key) continue;
    to[r] = int(reads.size());
    reads.push_back(std::move(node.reads[r]));
  }
  if (reads.size() == to.size()) {
    node.reads = std::move(reads);
    return;
  }
  const auto renumber = [&](int r) { return to[size_t(r)]; };
  for (Read& r : reads) {
    r.guard = r.guard.map_data(renumber);
    for (Form& c : r.coords) c = c.map_data(renumber);
  }
  node.reads = std::move(reads);
  node.domain = node.domain.map_data(renumber);
  const LeafMap leaf = [&](Expr e) {
    if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), renumber(int(e.payload())));
    if (e.is(Op::Present)) return scalar::present(e.arena(), renumber(int(e.payload())));
    return Expr();
  };
  if (!node.body.empty()) node.body = replace_leaves(node.body, node.body[0].arena(), leaf);
  if (!node.initial.empty()) node.initial = replace_leaves(node.initial, node.initial[0].arena(), leaf);
}

void rename_indices(Comprehension& node, const std::vector<int>& to) {
  const auto form = [&](int i) { return Form::index(to[size_t(i)]); };
  node.domain = node.domain.map_indices(form);
  for (Read& r : node.reads) {
    r.guard = r.guard.map_indices(form);
    for (Form& c : r.coords) c = c.map_indices(form);
  }
  const LeafMap leaf = [&](Expr e) {
    return e.is(Op::Index) ? scalar::index(e.arena(), to[size_t(e.payload())]) : Expr();
  };
  if (!node.body.empty()) node.body = replace_leaves(node.body, node.body[0].arena(), leaf);
  if (!node.initial.empty()) node.initial = replace_leaves(node.initial, node.initial[0].arena(), leaf);
  for (std::vector<int>& set : node.components) {
    for (int& i : set) i = to[size_t(i)];
  }
  for (tensor::Output& o : node.outputs) {
    for (int& i : o.dims) i = to[size_t(i)];
  }
}

void drop_indices(Comprehension& node, IndexSet keep) {
  std::vector<int> to(node.indices.size(), -1);
  std::vector<IndexInfo> indices;
  for (size_t i = 0; i < node.indices.size(); ++i) {
    if (!has(keep, int(i))) continue;
    to[i] = int(indices.size());
    indices.push_back(node.indices[i]);
  }
  if (indices.size() == node.indices.size()) return;
  rename_indices(node, to);
  node.indices = std::move(indices);
}

Comprehension make_map(std::string name, std::vector<IndexInfo> points, scalar::DType type) {
  Comprehension out;
  out.name = name;
  tensor::Output output;
  output.name = std::move(name);
  output.type = type;
  for (size_t i = 0; i < points.size(); ++i) output.dims.push_back(int(i));
  out.indices = std::move(points);
  out.outputs = {std::move(output)};
  return out;
}

Comprehension make_fold(std::string name, std::vector<IndexInfo> indices, monoid::MonoidRef monoid, scalar::DType type) {
  Comprehension out;
  out.name = name;
  tensor::Output output;
  output.name = std::move(name);
  output.type = type;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].role == Role::Point) output.dims.push_back(int(i));
  }
  out.components.assign(monoid->components.size(), output.dims);
  out.indices = std::move(indices);
  out.monoid = std::move(monoid);
  out.outputs = {std::move(output)};
  return out;
}

Read read_at(tensor::Value source, const std::vector<int>& dims) {
  Read out;
  out.source = source;
  for (int d : dims) out.coords.push_back(Form::index(d));
  return out;
}

}  // namespace lemma::rewrite
