// Terms of cores: kinds, expressions, presence. Reads are in reads.cc.
#include <algorithm>
#include <cmath>

#include "lemma/base/hash.h"
#include "lemma/language/build.h"

namespace lemma::language {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::Form;
using view::Formula;

NodeBuilder::NodeBuilder(Context& context, Nodes& nodes, std::vector<int> vars, scalar::ArenaRef arena)
    : c_(context), nodes_(nodes), vars_(std::move(vars)), arena_(std::move(arena)) {
  for (size_t i = 0; i < vars_.size(); ++i) local_.emplace(vars_[i], int(i));
}

Box NodeBuilder::box() const {
  Box out;
  out.extent = [this](int i) { return c_.vars[size_t(vars_[size_t(i)])].extent.value_or(Form(1)); };
  out.size_low = [this](int s) { return c_.graph.sizes[size_t(s)].low; };
  out.data = [this](int r) -> std::optional<std::pair<Form, Form>> {
    const tensor::Value source = reads_[size_t(r)].source;
    if (const auto* input = std::get_if<tensor::Input>(&c_.graph.node(source.node))) {
      if (input->low && input->high) return std::pair(*input->low, *input->high);
    }
    switch (tensor::type(c_.graph, source)) {
      case scalar::DType::Bool: return std::pair(Form(0), Form(2));
      case scalar::DType::U4: return std::pair(Form(0), Form(16));
      case scalar::DType::U8: return std::pair(Form(0), Form(256));
      case scalar::DType::U16: return std::pair(Form(0), Form(65536));
      case scalar::DType::I4: return std::pair(Form(-8), Form(8));
      case scalar::DType::I8: return std::pair(Form(-128), Form(128));
      case scalar::DType::I16: return std::pair(Form(-32768), Form(32768));
      default: return std::nullopt;
    }
  };
  return out;
}

Result<Formula> NodeBuilder::together(const Formula& a, const Formula& b, CoreId core) {
  if (MaybeFormula out = both(a, b)) return *std::move(out);
  return c_.fail(c_.cores[size_t(core)], "the domain here falls into too many cases",
                 "compute the condition in an equation of its own, as a bool tensor");
}

NodeBuilder::Mode NodeBuilder::under(Mode mode, const Formula& condition) {
  const MaybeFormula known = both(branches_[size_t(mode.branch)], condition);
  if (!known || *known == branches_[size_t(mode.branch)]) return mode;
  const auto at = std::find(branches_.begin(), branches_.end(), *known);
  mode.branch = int(at - branches_.begin());
  if (at == branches_.end()) branches_.push_back(*known);
  return mode;
}

Result<Term> NodeBuilder::term(CoreId core) { return term(core, Mode{}); }

Result<Term> NodeBuilder::term(CoreId core, Mode mode) {
  const auto key = std::pair(core, mode);
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  if (nesting_ == 0) return run(core, mode);
  if (nesting_ > 24) {
    pending_ = key;
    return base::Diagnostic{};
  }
  LEMMA_TRY_VOID(c_.step(c_.cores[size_t(core)].frame, c_.cores[size_t(core)].ast));
  ++nesting_;
  Result<Term> out = build(core, mode);
  --nesting_;
  if (out.ok()) memo_.emplace(key, *out);
  return out;
}

// Cores may be deep (a chain of local values). The recursion is cut off below 24 levels: what it asked for there is
// built first, on a stack of its own, and then the whole is asked for again.
Result<Term> NodeBuilder::run(CoreId core, Mode mode) {
  std::vector<std::pair<CoreId, Mode>> stack = {{core, mode}};
  while (true) {
    const auto key = stack.back();
    LEMMA_TRY_VOID(c_.step(c_.cores[size_t(key.first)].frame, c_.cores[size_t(key.first)].ast));
    nesting_ = 1;
    Result<Term> out = build(key.first, key.second);
    nesting_ = 0;
    if (pending_) {
      stack.push_back(*pending_);
      pending_.reset();
      continue;
    }
    if (!out.ok()) return out;
    memo_.emplace(key, *out);
    stack.pop_back();
    if (stack.empty()) return out;
  }
}

Result<Term> NodeBuilder::build(CoreId id, Mode mode) {
  switch (c_.cores[size_t(id)].kind) {
    case CoreKind::Integer:
    case CoreKind::Real:
    case CoreKind::Truth: return literal(c_.cores[size_t(id)]);
    case CoreKind::Var: {
      Term t;
      const int i = local_.at(c_.cores[size_t(id)].var);
      t.expr = scalar::index(*arena_, i);
      t.form = Form::index(i);
      t.weak = true;
      return t;
    }
    case CoreKind::Size: {
      Term t;
      t.form = c_.cores[size_t(id)].form;
      t.expr = expression(*t.form);
      t.weak = true;
      t.literal = t.form->constant();
      return t;
    }
    case CoreKind::Read: return read(id, mode);
    case CoreKind::Chain: return chain(id, mode);
    case CoreKind::Logic: return logic(id, mode);
    case CoreKind::Compare: return compare(id, mode);
    case CoreKind::Apply:
    case CoreKind::Negate:
    case CoreKind::CeilDiv: return apply(id, mode);
    case CoreKind::Not: {
      LEMMA_TRY(Term t, term(c_.cores[size_t(id)].args[0], mode));
      if (t.expr.kind() != Kind::Bool) return c_.fail(c_.cores[size_t(id)], "`not` takes a bool, found " + std::string(scalar::name(t.expr.kind())), "the bits of an integer are flipped by ~");
      t.expr = scalar::unary(Op::Not, t.expr);
      if (t.truth) t.truth = negation(*t.truth);
      t.form.reset();
      t.read = -1;
      return t;
    }
    case CoreKind::Select: return choose(id, mode);
    case CoreKind::Else: return fallback(id, mode);
    case CoreKind::Maybe: return term(c_.cores[size_t(id)].args[0], Mode{true, mode.branch});
    case CoreKind::When: {
      LEMMA_TRY(const Formula holds, condition(c_.cores[size_t(id)].args[0], mode));
      LEMMA_TRY(Term t, term(c_.cores[size_t(id)].args[1], under(mode, holds)));
      LEMMA_TRY(t.where, together(t.where, holds, id));
      t.read = -1;
      return t;
    }
    case CoreKind::Cast:
    case CoreKind::RoundTo:
    case CoreKind::Bits: return cast(id, mode);
    case CoreKind::Present: {
      LEMMA_TRY(const Term r, term(c_.cores[size_t(id)].args[0], Mode{true, mode.branch}));
      Term t;
      t.expr = scalar::present(*arena_, r.read);
      t.truth = reads_[size_t(r.read)].guard;
      return t;
    }
    case CoreKind::Raw: {
      LEMMA_TRY(Term t, term(c_.cores[size_t(id)].args[0], mode));
      t.where = Formula();
      return t;
    }
    case CoreKind::Fold: return fold_value(id);
    case CoreKind::Tuple:
      return c_.fail(c_.cores[size_t(id)], "found " + std::to_string(c_.cores[size_t(id)].args.size()) + " values where one is expected",
                     "define them by a tuple equation: (a, b)[i] = ...");
    case CoreKind::Given: {
      Term t;
      const int which = c_.cores[size_t(id)].which;
      t.expr = scalar::arg(*arena_, givens[size_t(which)], which);
      return t;
    }
    case CoreKind::State: return state(id, mode);
  }
  return c_.fail(c_.cores[size_t(id)], "found something without a value");
}

Result<Term> NodeBuilder::literal(const Core& core) {
  Term t;
  if (core.kind == CoreKind::Truth) {
    t.expr = scalar::boolean(*arena_, core.magnitude != 0);
    t.truth = core.magnitude ? Formula::always() : Formula::never();
    return t;
  }
  t.weak = true;
  if (core.kind == CoreKind::Real) {
    t.expr = scalar::constant(*arena_, Kind::F64, core.real);
    return t;
  }
  if (core.negative && core.magnitude > uint64_t(1) << 63) return c_.fail(core, "the integer leaves 64 bits");
  const int64_t value = core.negative ? int64_t(0 - core.magnitude) : int64_t(core.magnitude);
  t.expr = scalar::constant_int(*arena_, !core.negative && core.magnitude >> 63 ? Kind::U64 : Kind::I64, value);
  t.literal = value;
  t.large = core.magnitude > uint64_t(largest_literal);
  if (!t.large) t.form = Form(value);
  return t;
}

// ---- kinds ----

Kind NodeBuilder::settled(const Term& t) const {
  if (t.weak && t.expr.kind() == Kind::F64) return Kind::F32;
  return t.expr.kind();
}

Result<NodeBuilder::Common> NodeBuilder::common(const std::vector<const Term*>& terms, CoreId core, const std::string& what) {
  bool weak_float = false, weak_index = false, any_bool = false, all_bool = true, f64 = false, f32 = false;
  std::optional<Kind> integer;
  for (const Term* t : terms) {
    const Kind k = t->expr.kind();
    (k == Kind::Bool ? any_bool : all_bool) = k == Kind::Bool;
    if (k == Kind::Bool) continue;
    if (t->weak) {
      if (scalar::is_float(k)) weak_float = true;
      else if (!t->literal) weak_index = true;
      continue;
    }
    if (k == Kind::F64) f64 = true;
    else if (k == Kind::F32) f32 = true;
    else if (!integer || *integer == k) integer = k;
    else {
      const Kind a = *integer;
      const bool widens = scalar::is_signed(a) == scalar::is_signed(k) || (a == Kind::U32 && k == Kind::I64) || (a == Kind::I64 && k == Kind::U32);
      if (!widens) {
        return c_.fail(c_.cores[size_t(core)], what + " mixes " + std::string(scalar::name(a)) + " and " + std::string(scalar::name(k)), "cast one of them, as in i64(x)");
      }
      integer = scalar::is_signed(a) == scalar::is_signed(k) ? (scalar::is_wide(a) ? a : k) : Kind::I64;
    }
  }
  if (any_bool && all_bool) return Common{Kind::Bool, false};
  if (any_bool) {
    return c_.fail(c_.cores[size_t(core)], what + " mixes a bool and a number", "write select(c, 1, 0) for the number, or x != 0 for the bool");
  }
  if (f64) return Common{Kind::F64, false};
  if (f32 || (integer && weak_float)) return Common{Kind::F32, false};
  if (integer) {
    if (weak_index && *integer != Kind::U64) return Common{Kind::I64, false};
    return Common{*integer, false};
  }
  if (weak_float) return Common{Kind::F64, true};
  for (const Term* t : terms) {
    if (t->expr.kind() == Kind::U64) return Common{Kind::U64, true};
  }
  return Common{Kind::I64, true};
}

// A weak expression over again, in another float kind.
Expr NodeBuilder::rekind(Expr weak, Kind kind) {
  if (weak.kind() == kind) return weak;
  return scalar::rewrite(weak, *arena_, [&](Expr node, std::span<const Expr> args) -> Expr {
    if (node.kind() != Kind::F64) {
      if (node.op() == Op::Cast || args.empty()) return Expr();
      return arena_->make(node.op(), node.kind(), args, node.payload());
    }
    if (node.is_const()) return scalar::constant(*arena_, kind, node.as_float());
    if (node.is(Op::Cast)) return scalar::cast(args[0], kind);
    return arena_->make(node.op(), kind, args, node.payload());
  });
}

Result<Expr> NodeBuilder::convert(const Term& t, Kind kind, CoreId core) {
  const Kind from = t.expr.kind();
  if (from == kind) return t.expr;
  if (t.weak && scalar::is_float(from) && scalar::is_float(kind)) return rekind(t.expr, kind);
  if (t.literal && t.weak && t.expr.is_const()) {
    const bool huge = from == Kind::U64;
    if (scalar::is_float(kind)) return scalar::constant(*arena_, kind, huge ? double(uint64_t(*t.literal)) : double(*t.literal));
    const int64_t v = *t.literal;
    bool fits = true;
    switch (kind) {
      case Kind::I32: fits = !huge && v >= INT32_MIN && v <= INT32_MAX; break;
      case Kind::U32: fits = !huge && v >= 0 && v <= int64_t(UINT32_MAX); break;
      case Kind::U64: fits = huge || v >= 0; break;
      case Kind::I64: fits = !huge; break;
      default: fits = false;
    }
    if (!fits) {
      return c_.fail(c_.cores[size_t(core)], "the integer " + (huge ? std::to_string(uint64_t(v)) : std::to_string(v)) + " does not fit " + std::string(scalar::name(kind)), "cast the other side to a wider kind");
    }
    return scalar::constant_int(*arena_, kind, v);
  }
  if (t.weak && from == Kind::I64 && scalar::is_float(kind)) {
    if (const Expr e = numbers(t.expr, kind, 0); e.valid()) return e;
  }
  return scalar::cast(t.expr, kind);
}

// A choice of integer literals as one of floats; invalid for anything else.
Expr NodeBuilder::numbers(Expr e, Kind kind, int depth) {
  if (e.is_const()) return scalar::constant(*arena_, kind, double(e.as_int()));
  if (!e.is(Op::Select) || depth > 8) return Expr();
  const Expr a = numbers(e.arg(1), kind, depth + 1), b = numbers(e.arg(2), kind, depth + 1);
  return a.valid() && b.valid() ? scalar::select(e.arg(0), a, b) : Expr();
}

// ---- operators ----

namespace {

std::string spelled(Op op) {
  switch (op) {
    case Op::Add: return "`+`";
    case Op::Sub: return "`-`";
    case Op::Mul: return "`*`";
    case Op::Div: return "`/`";
    case Op::FloorDiv: return "`//`";
    case Op::Mod: return "`%`";
    case Op::And: return "`&`";
    case Op::Or: return "`|`";
    case Op::Xor: return "`^`";
    case Op::Shl: return "`<<`";
    case Op::Shr: return "`>>`";
    case Op::Not: return "`~`";
    default: return "`" + std::string(scalar::name(op)) + "`";
  }
}

bool varies(const Form& f) { return f.uses(view::AtomKind::Index) || f.uses(view::AtomKind::Data); }

MaybeForm form_of(Op op, const Term& a, const Term& b) {
  if (!a.form || !b.form) return std::nullopt;
  switch (op) {
    case Op::Add: return add(*a.form, *b.form);
    case Op::Sub: return subtract(*a.form, *b.form);
    case Op::Mul:
      if (varies(*a.form) && varies(*b.form)) return std::nullopt;
      return multiply(*a.form, *b.form);
    case Op::FloorDiv:
    case Op::Mod:
      if (varies(*b.form) || b.form->constant() == int64_t(0)) return std::nullopt;
      return op == Op::Mod ? modulo(*a.form, *b.form) : floor_div(*a.form, *b.form);
    default: return std::nullopt;
  }
}

}  // namespace

Result<Term> NodeBuilder::binary(Op op, const Term& a, const Term& b, CoreId core) {
  const std::string what = spelled(op);
  LEMMA_TRY(Common k, common({&a, &b}, core, what));
  const Core& at = c_.cores[size_t(core)];
  if (k.kind == Kind::Bool && op != Op::Xor) {
    return c_.fail(at, what + " takes numbers, found bools", op == Op::And ? "write `and`" : op == Op::Or ? "write `or`" : "write select(c, 1, 0) for the number");
  }
  const bool needs_float = op == Op::Div || op == Op::Pow || op == Op::Atan2;
  const bool needs_integer = op == Op::FloorDiv || op == Op::Mod || op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Shl || op == Op::Shr;
  if (needs_float && !scalar::is_float(k.kind)) k.kind = k.weak ? Kind::F64 : Kind::F32;
  if (needs_integer && scalar::is_float(k.kind)) {
    return c_.fail(at, what + " takes integers, found " + std::string(k.weak ? "a float" : scalar::name(k.kind)),
                   op == Op::FloorDiv ? "write floor(a / b)" : op == Op::Mod ? "write a - b * floor(a / b)" : "cast to an integer first, as in i32(x)");
  }
  if ((op == Op::FloorDiv || op == Op::Mod) && b.literal == int64_t(0) && b.weak) return c_.fail(at, what + " divides by 0");
  Term t;
  t.weak = k.weak;
  LEMMA_TRY(const Expr x, convert(a, k.kind, core));
  LEMMA_TRY(const Expr y, convert(b, k.kind, core));
  t.expr = scalar::binary(op, x, y);
  LEMMA_TRY(t.where, together(a.where, b.where, core));
  t.form = form_of(op, a, b);
  const bool affine = a.form && b.form && (op == Op::Add || op == Op::Sub || (op == Op::Mul && !(varies(*a.form) && varies(*b.form))));
  t.large = a.large || b.large || (affine && !t.form);
  return t;
}

Result<Term> NodeBuilder::chain(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  LEMMA_TRY(Term total, term(core.args[0], mode));
  for (size_t i = 0; i < core.ops.size(); ++i) {
    LEMMA_TRY(const Term next, term(core.args[i + 1], mode));
    LEMMA_TRY(total, binary(Op(core.ops[i]), total, next, id));
  }
  return total;
}

Result<Term> NodeBuilder::logic(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  Term total;
  for (size_t i = 0; i < core.args.size(); ++i) {
    LEMMA_TRY(const Term t, term(core.args[i], mode));
    if (t.expr.kind() != Kind::Bool) {
      return c_.fail(c_.cores[size_t(core.args[i])], std::string(core.op == Op::And ? "`and`" : "`or`") + " joins bools, found " + (t.weak ? "a number" : std::string(scalar::name(t.expr.kind()))),
                     "write a comparison, such as x != 0");
    }
    if (i == 0) {
      total = t;
      total.read = -1;
      total.form.reset();
    } else {
      total.expr = scalar::binary(core.op, total.expr, t.expr);
      LEMMA_TRY(total.where, together(total.where, t.where, id));
      if (total.truth && t.truth) total.truth = core.op == Op::And ? both(*total.truth, *t.truth) : either(*total.truth, *t.truth);
      else total.truth.reset();
    }
    // What comes later is asked for only where it still matters.
    if (t.truth && core.op == Op::And) mode = under(mode, *t.truth);
    else if (t.truth) {
      if (const MaybeFormula no = negation(*t.truth)) mode = under(mode, *no);
    }
  }
  return total;
}

Result<Term> NodeBuilder::compare_two(const Term& a, const Term& b, Comparison how, CoreId core) {
  LEMMA_TRY(Common k, common({&a, &b}, core, "this comparison"));
  if (k.kind == Kind::Bool && how != Comparison::Equal && how != Comparison::NotEqual) {
    return c_.fail(c_.cores[size_t(core)], "bools have no order", "compare them by == or !=");
  }
  if (k.kind == Kind::F64 && k.weak) k = {Kind::F64, false};
  Term t;
  LEMMA_TRY(const Expr x, convert(a, k.kind, core));
  LEMMA_TRY(const Expr y, convert(b, k.kind, core));
  switch (how) {
    case Comparison::Less: t.expr = scalar::binary(Op::Lt, x, y); break;
    case Comparison::LessEqual: t.expr = scalar::binary(Op::Le, x, y); break;
    case Comparison::Greater: t.expr = scalar::binary(Op::Lt, y, x); break;
    case Comparison::GreaterEqual: t.expr = scalar::binary(Op::Le, y, x); break;
    case Comparison::Equal: t.expr = scalar::binary(Op::Eq, x, y); break;
    case Comparison::NotEqual: t.expr = scalar::binary(Op::Ne, x, y); break;
  }
  LEMMA_TRY(t.where, together(a.where, b.where, core));
  if (a.form && b.form && !scalar::is_float(k.kind)) {
    switch (how) {
      case Comparison::Less: t.truth = less(*a.form, *b.form); break;
      case Comparison::LessEqual: t.truth = less_equal(*a.form, *b.form); break;
      case Comparison::Greater: t.truth = less(*b.form, *a.form); break;
      case Comparison::GreaterEqual: t.truth = less_equal(*b.form, *a.form); break;
      case Comparison::Equal: t.truth = equal(*a.form, *b.form); break;
      case Comparison::NotEqual:
        t.truth = equal(*a.form, *b.form);
        if (t.truth) t.truth = negation(*t.truth);
        break;
    }
  }
  return t;
}

Result<Term> NodeBuilder::compare(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  LEMMA_TRY(Term left, term(core.args[0], mode));
  Term total;
  for (size_t i = 0; i < core.ops.size(); ++i) {
    LEMMA_TRY(const Term right, term(core.args[i + 1], mode));
    LEMMA_TRY(const Term one, compare_two(left, right, Comparison(core.ops[i]), id));
    if (i == 0) {
      total = one;
    } else {
      total.expr = scalar::binary(Op::And, total.expr, one.expr);
      LEMMA_TRY(total.where, together(total.where, one.where, id));
      if (total.truth && one.truth) total.truth = both(*total.truth, *one.truth);
      else total.truth.reset();
    }
    left = right;
  }
  return total;
}

Result<Term> NodeBuilder::apply(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  std::vector<Term> args;
  for (CoreId arg : core.args) {
    LEMMA_TRY(Term t, term(arg, mode));
    args.push_back(std::move(t));
  }
  if (core.kind == CoreKind::Negate) return apply_op(Op::Neg, args, id);
  if (core.kind == CoreKind::CeilDiv) {
    Term one;
    one.weak = true;
    one.literal = 1;
    one.form = Form(1);
    one.expr = scalar::i64(*arena_, 1);
    LEMMA_TRY(const Term less_one, binary(Op::Sub, args[1], one, id));
    LEMMA_TRY(const Term up, binary(Op::Add, args[0], less_one, id));
    return binary(Op::FloorDiv, up, args[1], id);
  }
  if (args.size() > 2) {
    Term total = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      LEMMA_TRY(total, binary(core.op, total, args[i], id));
    }
    return total;
  }
  return apply_op(core.op, args, id);
}

Result<Term> NodeBuilder::apply_op(Op op, const std::vector<Term>& args, CoreId id) {
  if (args.size() == 2) return binary(op, args[0], args[1], id);
  const Term& a = args[0];
  const Core& core = c_.cores[size_t(id)];
  const Kind from = a.expr.kind();
  if (from == Kind::Bool) {
    if (op == Op::Not) return c_.fail(core, "`~` takes an integer, found a bool", "write `not`");
    return c_.fail(core, spelled(op) + " takes a number, found a bool", "write select(c, 1, 0) for the number");
  }
  Term t = a;
  t.read = -1;
  t.literal.reset();
  t.truth.reset();
  t.form.reset();
  Kind kind = from;
  if (op == Op::Not) {
    if (scalar::is_float(from)) return c_.fail(core, "`~` takes an integer, found a float");
  } else if (op == Op::Neg || op == Op::Abs) {
    if (op == Op::Neg && a.form) t.form = -*a.form;
  } else if (!scalar::is_float(from)) {
    kind = a.weak ? Kind::F64 : Kind::F32;
  }
  LEMMA_TRY(const Expr x, convert(a, kind, id));
  t.expr = scalar::unary(op, x);
  return t;
}

// ---- select, else ----

Result<Term> NodeBuilder::choose(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  LEMMA_TRY(const Term c, term(core.args[0], mode));
  if (c.expr.kind() != Kind::Bool) {
    return c_.fail(c_.cores[size_t(core.args[0])], "select takes a bool first, found " + (c.weak ? std::string("a number") : std::string(scalar::name(c.expr.kind()))), "write a comparison, such as x != 0");
  }
  const MaybeFormula otherwise = c.truth ? negation(*c.truth) : std::nullopt;
  LEMMA_TRY(const Term a, term(core.args[1], c.truth ? under(mode, *c.truth) : mode));
  LEMMA_TRY(const Term b, term(core.args[2], otherwise ? under(mode, *otherwise) : mode));
  LEMMA_TRY(const Common k, common({&a, &b}, id, "select"));
  Term t;
  t.weak = k.weak;
  LEMMA_TRY(const Expr x, convert(a, k.kind, id));
  LEMMA_TRY(const Expr y, convert(b, k.kind, id));
  t.expr = scalar::select(c.expr, x, y);
  if (a.where == b.where) {
    LEMMA_TRY(t.where, together(c.where, a.where, id));
  } else if (c.truth && otherwise) {
    // The taken side alone has to exist.
    const MaybeFormula yes = both(*c.truth, a.where), no = both(*otherwise, b.where);
    const MaybeFormula taken = yes && no ? either(*yes, *no) : std::nullopt;
    if (!taken) return c_.fail(core, "the domain here falls into too many cases", "guard the sides with `else` each");
    LEMMA_TRY(t.where, together(c.where, *taken, id));
  } else {
    LEMMA_TRY(const Formula sides, together(a.where, b.where, id));
    LEMMA_TRY(t.where, together(c.where, sides, id));
  }
  if (k.kind == Kind::Bool && c.truth && otherwise && a.truth && b.truth) {
    const MaybeFormula yes = both(*c.truth, *a.truth), no = both(*otherwise, *b.truth);
    if (yes && no) t.truth = either(*yes, *no);
  }
  return t;
}

Result<Term> NodeBuilder::fallback(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  LEMMA_TRY(const Term a, term(core.args[0], Mode{true, mode.branch}));
  LEMMA_TRY(const Term b, term(core.args[1], mode));
  if (a.where.is_always()) return a;
  LEMMA_TRY(const Common k, common({&a, &b}, id, "`else`"));
  Term t;
  t.weak = k.weak;
  LEMMA_TRY(const Expr x, convert(a, k.kind, id));
  LEMMA_TRY(const Expr y, convert(b, k.kind, id));
  const bool one_read = a.read >= 0 && reads_[size_t(a.read)].guard == a.where;
  t.expr = scalar::select(one_read ? scalar::present(*arena_, a.read) : expression(a.where), x, y);
  const MaybeFormula where = either(a.where, b.where);
  if (!where) return c_.fail(core, "the domain here falls into too many cases", "guard the reads with `else` each");
  t.where = *where;
  return t;
}

// ---- casts ----

Result<Term> NodeBuilder::cast(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  LEMMA_TRY(const Term a, term(core.args[0], mode));
  Term t = a;
  t.weak = t.large = false;
  t.literal.reset();
  t.truth.reset();
  t.form.reset();
  t.read = -1;
  const Kind kind = scalar::kind_of(core.type), from = a.expr.kind();
  if (core.kind == CoreKind::Bits) {
    LEMMA_TRY(const Expr x, convert(a, settled(a), id));
    if (x.kind() == Kind::Bool || kind == Kind::Bool || scalar::is_wide(x.kind()) != scalar::is_wide(kind) || scalar::dtype_of(kind) != core.type) {
      return c_.fail(core, "bits[" + std::string(scalar::name(core.type)) + "] takes a value of the same width, found " + std::string(scalar::name(x.kind())));
    }
    t.expr = x.kind() == kind ? x : arena_->make(Op::Bits, kind, std::span<const Expr>(&x, 1));
    return t;
  }
  if (core.kind == CoreKind::RoundTo) {
    if (!scalar::is_float(core.type)) return c_.fail(core, "round_to takes a float type, found " + std::string(scalar::name(core.type)));
    if (from == Kind::Bool) return c_.fail(core, "round_to takes a number, found a bool");
    LEMMA_TRY(const Expr x, convert(a, scalar::is_float(settled(a)) ? settled(a) : Kind::F32, id));
    t.expr = scalar::round_to(x, core.type);
    return t;
  }
  const bool narrow = scalar::dtype_of(kind) != core.type;
  const bool literal = a.weak && a.expr.is_const() && (scalar::is_float(from) ? scalar::is_float(kind) : kind != Kind::Bool);
  const bool whole_indices = a.weak && scalar::is_float(from) && scalar::is_float(kind);
  if (literal || whole_indices) {
    LEMMA_TRY(t.expr, convert(a, kind, id));
  } else if (scalar::is_float(from) && scalar::is_integer(kind) && narrow) {
    // Saturate at the narrow type's ends; nan still gives 0.
    const int bits = scalar::bits(core.type);
    const double low = scalar::is_signed(kind) ? -std::ldexp(1, bits - 1) : 0;
    const double high = std::ldexp(1, scalar::is_signed(kind) ? bits - 1 : bits) - 1;
    const Kind settled_kind = settled(a);
    LEMMA_TRY(const Expr x, convert(a, settled_kind, id));
    t.expr = scalar::cast(scalar::min(scalar::max(x, scalar::constant(*arena_, settled_kind, low)), scalar::constant(*arena_, settled_kind, high)), kind);
    return t;
  } else {
    t.expr = scalar::cast(a.weak && scalar::is_float(from) ? rekind(a.expr, Kind::F32) : a.expr, kind);
  }
  if (a.form && (scalar::is_integer(from) || from == Kind::Bool) && (kind == Kind::I64 || kind == from) && !narrow) t.form = a.form;
  if (narrow && scalar::is_float(kind)) t.expr = scalar::round_to(t.expr, core.type);
  if (narrow && scalar::is_integer(kind)) {
    // Wrap at the narrow width.
    const Expr shift = scalar::constant_int(*arena_, kind, 32 - scalar::bits(core.type));
    t.expr = scalar::binary(Op::Shr, scalar::binary(Op::Shl, t.expr, shift), shift);
  }
  return t;
}

// ---- forms as expressions ----

Expr NodeBuilder::expression(const Form& form) {
  Arena& arena = *arena_;
  Expr total;
  for (const view::Term& term : form.terms()) {
    Expr product;
    if (term.coefficient != 1 || term.factors.empty()) product = scalar::i64(arena, term.coefficient);
    for (const view::Atom& a : term.factors) {
      Expr factor;
      switch (a.kind) {
        case view::AtomKind::Index: factor = scalar::index(arena, a.id); break;
        case view::AtomKind::Size: factor = scalar::size(arena, a.id); break;
        case view::AtomKind::Data: {
          const Kind k = tensor::kind(c_.graph, reads_[size_t(a.id)].source);
          factor = scalar::cast(scalar::arg(arena, k, a.id), Kind::I64);
          break;
        }
        case view::AtomKind::Floor:
          factor = scalar::binary(Op::FloorDiv, expression(a.floor->numerator), expression(a.floor->denominator));
          break;
      }
      product = product.valid() ? product * factor : factor;
    }
    total = total.valid() ? total + product : product;
  }
  return total.valid() ? total : scalar::i64(arena, 0);
}

Expr NodeBuilder::expression(const Formula& formula) {
  Arena& arena = *arena_;
  Expr any;
  for (const view::Conjunction& c : formula.cases()) {
    Expr all;
    for (const view::Constraint& k : c) {
      const Expr zero = scalar::i64(arena, 0), value = expression(k.form);
      const Expr one = k.relation == view::Relation::Zero ? scalar::binary(Op::Eq, value, zero) : scalar::binary(Op::Le, zero, value);
      all = all.valid() ? scalar::binary(Op::And, all, one) : one;
    }
    if (!all.valid()) return scalar::boolean(arena, true);
    any = any.valid() ? scalar::binary(Op::Or, any, all) : all;
  }
  return any.valid() ? any : scalar::boolean(arena, false);
}

}  // namespace lemma::language
