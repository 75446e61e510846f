#include "lemma/emit/device/scope.h"

#include "lemma/base/check.h"
#include "lemma/emit/device/expand.h"

namespace lemma::emit::device {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using view::Atom;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

// The kind that functions of the prelude are named after: integers of 64 bits may be computed in 32.
Kind own_kind(const Dialect& d, Kind kind) {
  if (d.long_integers) return kind;
  return kind == Kind::I64 ? Kind::I32 : kind == Kind::U64 ? Kind::U32 : kind;
}
std::string suffix(const Dialect& d, Kind kind) { return std::string(scalar::name(own_kind(d, kind))); }

std::string infix(const std::string& a, const std::string& op, const std::string& b) { return "(" + a + " " + op + " " + b + ")"; }

std::string bool_operation(Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::And: case Op::Mul: case Op::Min: return infix(a, "&&", b);
    case Op::Or: case Op::Add: case Op::Max: return infix(a, "||", b);
    case Op::Eq: return infix(a, "==", b);
    case Op::Lt: return "(!" + a + " && " + b + ")";
    case Op::Le: return "(!" + a + " || " + b + ")";
    default: return infix(a, "!=", b);
  }
}

bool is_computed(Expr e) { return e.is(Op::Add) || e.is(Op::Sub) || e.is(Op::Mul) || e.is(Op::Div); }

std::string float_function(const Dialect& d, Op op, Kind kind) {
  const bool cuda = d.id == DialectId::Cuda && kind == Kind::F32;
  switch (op) {
    case Op::Round: return d.id == DialectId::Glsl ? "roundEven" : d.id == DialectId::Wgsl ? "round" : cuda ? "rintf" : "rint";
    case Op::Abs: return d.words || d.id == DialectId::Metal ? "abs" : "fabs";
    case Op::Exp: case Op::Exp2:
      if (cuda) return "lm_" + std::string(scalar::name(op)) + "_f32";
      [[fallthrough]];  // of doubles
    default: return std::string(scalar::name(op)) + (cuda ? "f" : "");
  }
}

}  // namespace

// The low 32 bits of an integer. A negative constant is no value of WGSL's u32, its bits are.
std::string Text::to_word(Kind from, const std::string& value) const {
  if (dialect.id == DialectId::Wgsl && scalar::is_signed(from)) return "bitcast<u32>(i32(" + value + "))";
  return convert(dialect, type(Kind::U32), value);
}

std::string Text::product(const std::vector<std::string>& factors) const {
  std::string out;
  for (const std::string& f : factors) out += (out.empty() ? "" : " * ") + f;
  return out;
}

std::string Text::form(const Form& form, const Scope& scope) {
  std::string out;
  for (const view::Term& t : form.terms()) {
    std::vector<std::string> factors;
    int64_t coefficient = t.coefficient;
    const bool minus = coefficient < 0 && coefficient != INT64_MIN;
    if (minus) coefficient = -coefficient;
    if (coefficient != 1 || t.factors.empty()) factors.push_back(index_literal(dialect, coefficient));
    for (const Atom& a : t.factors) {
      switch (a.kind) {
        case AtomKind::Index: {
          const auto it = scope.vars.find(a.id);
          LEMMA_CHECK(it != scope.vars.end(), "a variable without a name");
          factors.push_back(it->second);
          break;
        }
        case AtomKind::Size: {
          auto& name = size_names[a.id];
          if (name.empty()) name = "s_" + clean_identifier(program.sizes[size_t(a.id)].name) + "_" + std::to_string(a.id);
          factors.push_back(name);
          break;
        }
        case AtomKind::Data: factors.push_back(convert(dialect, index_type(), scope.reads[size_t(a.id)])); break;
        case AtomKind::Floor:
          factors.push_back("lm_floordiv_" + suffix(dialect, Kind::I64) + "(" + this->form(a.floor->numerator, scope) + ", " +
                            this->form(a.floor->denominator, scope) + ")");
          break;
      }
    }
    out += (out.empty() ? (minus ? "-" : "") : minus ? " - " : " + ") + product(factors);
  }
  return out.empty() ? index_literal(dialect, 0) : "(" + out + ")";
}

// A constraint on the points of a round: what does not depend on them is the same for the block and of 64 bits, but what
// they add is small. So the block's part, cut to 30 bits, decides in 32.
std::optional<std::string> Text::narrow_form(const Form& whole, const Scope& scope) {
  if (!scope.round) return std::nullopt;
  Form rest = whole;
  std::string own;
  int64_t reach = 0;
  for (size_t d = 0; d < scope.round->vars.size(); ++d) {
    const auto split = rest.split(scope.round->vars[d]);
    const auto coefficient = split ? split->coefficient.constant() : std::nullopt;
    if (!coefficient || std::abs(*coefficient) > 1024) return std::nullopt;
    if (*coefficient == 0) continue;
    reach += std::abs(*coefficient) * scope.round->points.shape[d];
    const std::string factor = std::abs(*coefficient) == 1 ? "" : std::to_string(std::abs(*coefficient)) + " * ";
    own += (*coefficient < 0 ? " - " : " + ") + factor + scope.vars.at(scope.round->vars[d]);
    rest = rest.substitute_index(scope.round->vars[d], Form(0));
  }
  if (own.empty() || reach >= (1 << 29) || rest.uses(AtomKind::Data)) return std::nullopt;
  return "(lm_cut(" + form(rest, scope) + ")" + own + ")";
}

std::string Text::condition(const Formula& formula, const Scope& scope) {
  if (formula.is_never()) return "false";
  std::string out;
  for (const view::Conjunction& c : formula.cases()) {
    std::string all;
    for (const view::Constraint& k : c) {
      const std::optional<std::string> narrow = narrow_form(k.form, scope);
      all += (all.empty() ? "" : " && ") + (narrow ? *narrow : form(k.form, scope)) + (k.relation == view::Relation::Zero ? " == " : " >= ") +
             (narrow ? "0" : index_literal(dialect, 0));
    }
    out += (out.empty() ? "" : " || ") + (all.empty() ? "true" : "(" + all + ")");
  }
  return "(" + out + ")";
}

Form Text::offset(int b, const std::vector<Form>& coords) const {
  const tile::Buffer& buffer = this->buffer(b);
  Form out;
  for (size_t d = 0; d < coords.size(); ++d) {
    Form stride(1);
    if (!buffer.strides.empty()) {
      stride = buffer.strides[d];
    } else {
      for (size_t e = d + 1; e < coords.size(); ++e) stride = stride * buffer.extents[e];
    }
    out = out + coords[d] * stride;
  }
  return out;
}

Form Text::count(int b) const {
  Form out(1);
  for (const Form& e : buffer(b).extents) out = out * e;
  return out;
}

std::string Text::operation(Expr e, const std::vector<std::string>& a) {
  const Kind kind = e.kind(), from = e.args().empty() ? kind : e.arg(0).kind();
  const std::string name(type(kind));
  const auto call = [&](const std::string& f) { return f + "(" + a[0] + (a.size() > 1 ? ", " + a[1] : "") + ")"; };
  switch (e.op()) {
    case Op::Select: return choose(dialect, a[0], a[1], a[2]);
    case Op::Cast:
      if (from == Kind::Bool) return choose(dialect, a[0], literal_text(dialect, kind, scalar::constant(arena, kind, 1).payload()), literal_text(dialect, kind, 0));
      if (kind == Kind::Bool) return infix(a[0], "!=", literal_text(dialect, from, 0));
      if (scalar::is_signed(from) && own_kind(dialect, kind) == Kind::U32) return to_word(from, a[0]);
      if (scalar::is_float(from) && scalar::is_integer(kind)) return call("lm_" + suffix(dialect, kind) + "_of_" + suffix(dialect, from));
      return convert(dialect, name, a[0]);
    case Op::Bits:
      if (scalar::is_float(from)) return convert(dialect, name, call(from == Kind::F32 ? "lm_as_uint" : "lm_as_ulong"));
      if (kind == Kind::F32) return "lm_as_float(" + convert(dialect, type(Kind::U32), a[0]) + ")";
      if (kind == Kind::F64) return "lm_as_double(" + convert(dialect, type(Kind::U64), a[0]) + ")";
      return convert(dialect, name, a[0]);
    case Op::RoundTo: {
      const DType to = DType(e.payload());
      if (scalar::is_float(kind)) return to == DType::F32 && kind == Kind::F64 ? convert(dialect, name, convert(dialect, type(Kind::F32), a[0])) : a[0];
      if (to == DType::Bool) return choose(dialect, infix(a[0], "!=", literal_text(dialect, kind, 0)), literal_text(dialect, kind, 1), literal_text(dialect, kind, 0));
      const int unused = (scalar::is_wide(own_kind(dialect, kind)) ? 64 : 32) - scalar::bits(to);
      if (unused <= 0) return a[0];
      const Kind word = scalar::is_wide(kind) ? Kind::U64 : Kind::U32;
      const Kind moved = !scalar::is_signed(scalar::kind_of(to)) ? word : scalar::is_wide(kind) ? Kind::I64 : Kind::I32;
      const std::string by = std::to_string(unused) + "u";
      return convert(dialect, name, infix(convert(dialect, type(moved), infix(convert(dialect, type(word), a[0]), "<<", by)), ">>", by));
    }
    default: break;
  }
  if (from == Kind::Bool) return a.size() == 1 ? (e.is(Op::Not) ? "(!" + a[0] + ")" : a[0]) : bool_operation(e.op(), a[0], a[1]);
  // x != x asks for nan, which some compilers take for false.
  if (scalar::is_float(from) && (e.is(Op::Ne) || e.is(Op::Eq)) && e.arg(0) == e.arg(1)) {
    const std::string nan = "lm_is_nan_" + suffix(dialect, from) + "(" + a[0] + ")";
    return e.is(Op::Ne) ? nan : "(!" + nan + ")";
  }
  switch (e.op()) {
    case Op::Eq: return infix(a[0], "==", a[1]);
    case Op::Ne: return infix(a[0], "!=", a[1]);
    case Op::Lt: return infix(a[0], "<", a[1]);
    case Op::Le: return infix(a[0], "<=", a[1]);
    case Op::Min: case Op::Max: case Op::FloorDiv: case Op::Mod: return call("lm_" + std::string(scalar::name(e.op())) + "_" + suffix(dialect, kind));
    default: break;
  }
  if (scalar::is_float(kind)) {
    switch (e.op()) {
      case Op::Neg: return "(-" + a[0] + ")";
      case Op::Add: return infix(a[0], "+", a[1]);
      case Op::Sub: return infix(a[0], "-", a[1]);
      case Op::Mul: return infix(a[0], "*", a[1]);
      case Op::Div: return infix(a[0], "/", a[1]);
      case Op::Recip: return infix("1.0", "/", a[0]);
      case Op::Rsqrt: return infix("1.0", "/", "sqrt(" + a[0] + ")");
      case Op::Sigmoid: return infix("1.0", "/", infix("1.0", "+", "exp(-" + a[0] + ")"));
      case Op::Exp:
        // A computed argument is rounded already, which costs e^x as much as this product's rounding does.
        if (dialect.id == DialectId::Cuda && kind == Kind::F32 && is_computed(e.arg(0))) return call("lm_exp_rounded_f32");
        return call(float_function(dialect, e.op(), kind));
      default: return call(float_function(dialect, e.op(), kind));
    }
  }
  // Signed arithmetic wraps: in C it goes through the unsigned type.
  const bool through = !dialect.words && scalar::is_signed(kind);
  const std::string word(type(scalar::is_wide(kind) ? Kind::U64 : Kind::U32));
  const auto wrapped = [&](const std::string& x, const char* op, const std::string& y) {
    if (!through) return infix(x, op, y);
    return convert(dialect, name, infix(convert(dialect, word, x), op, convert(dialect, word, y)));
  };
  const std::string zero = literal_text(dialect, kind, 0);
  const auto shift = [&] { return infix(convert(dialect, type(Kind::U32), a[1]), "&", scalar::is_wide(own_kind(dialect, kind)) ? "63u" : "31u"); };
  switch (e.op()) {
    case Op::Neg: return wrapped(zero, "-", a[0]);
    case Op::Abs: return scalar::is_signed(kind) ? choose(dialect, infix(a[0], "<", zero), wrapped(zero, "-", a[0]), a[0]) : a[0];
    case Op::Not: return "(~" + a[0] + ")";
    case Op::Add: return wrapped(a[0], "+", a[1]);
    case Op::Sub: return wrapped(a[0], "-", a[1]);
    case Op::Mul: return wrapped(a[0], "*", a[1]);
    case Op::And: return infix(a[0], "&", a[1]);
    case Op::Or: return infix(a[0], "|", a[1]);
    case Op::Xor: return infix(a[0], "^", a[1]);
    case Op::Shl:
      if (through) return convert(dialect, name, infix(convert(dialect, word, a[0]), "<<", shift()));
      return infix(a[0], "<<", shift());
    case Op::Shr: return infix(a[0], ">>", shift());
    case Op::Pow: return call("lm_pow_" + suffix(dialect, kind));
    default: return a[0];  // floor and round of integers
  }
}

std::vector<std::string> Text::values(std::span<const Expr> roots, Scope& scope) {
  const bool cuda = dialect.id == DialectId::Cuda;
  const std::vector<Expr> simple = expand_functions(roots, arena, cuda);
  for (Expr e : scalar::reachable(simple)) {
    if (scope.known.count(e.index())) continue;
    std::string text;
    switch (e.op()) {
      case Op::Const:
        if (!dialect.long_integers && ((e.kind() == Kind::I64 && int32_t(e.payload()) != e.payload()) ||
                                       (e.kind() == Kind::U64 && uint32_t(e.payload()) != uint64_t(e.payload())))) {
          refusal = "the constant " + std::to_string(e.as_int()) + " needs integers of 64 bits, which " + std::string(dialect.name) + " lacks";
        }
        text = literal_text(dialect, e.kind(), e.payload());
        break;
      case Op::Arg: {
        const Kind had = scope.kinds[size_t(e.payload())];
        text = scope.reads[size_t(e.payload())];
        LEMMA_CHECK(!text.empty(), "a read that was not made is used");
        if (had != e.kind()) text = convert(dialect, type(e.kind()), text);
        break;
      }
      case Op::Present: text = scope.present[size_t(e.payload())]; break;
      case Op::Index: text = form(Form::index(int(e.payload())), scope); break;
      case Op::Size: text = form(Form::size(int(e.payload())), scope); break;
      default: {
        std::vector<std::string> args;
        for (Expr a : e.args()) args.push_back(scope.known.at(a.index()));
        text = fresh("e");
        define(type(e.kind()), text, operation(e, args));
      }
    }
    scope.known[e.index()] = text;
  }
  std::vector<std::string> out;
  for (Expr root : simple) out.push_back(scope.known.at(root.index()));
  return out;
}

void Text::loop(const std::string& var, const std::string& begin, const std::string& end, const std::string& step) {
  const std::string head = dialect.id == DialectId::Wgsl ? "var " + var + ": i32" : std::string(index_type()) + " " + var;
  out.open("for (" + head + " = " + begin + "; " + var + " < " + end + "; " + var + " += " + step + ")");
}

void Text::at_statement() {
  if (dialect.id == DialectId::Cuda || dialect.id == DialectId::Metal) out.line("LM_AT(" + std::to_string(statements++) + ");");
}

void Text::barrier() {
  at_statement();
  out.line(dialect.id == DialectId::Wgsl ? "storageBarrier(); workgroupBarrier();" : "lm_barrier();");
}

}  // namespace lemma::emit::device
