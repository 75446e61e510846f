#include "lemma/emit/value.h"

#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/emit/literal.h"

namespace lemma::emit {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::Form;

namespace {

bool vector_mode(const Frame& frame) { return frame.lane_var >= 0 && frame.lane.empty(); }

std::string call(const std::string& function, const std::string& a) { return function + "(" + a + ")"; }
std::string call(const std::string& function, const std::string& a, const std::string& b) {
  return function + "(" + a + ", " + b + ")";
}
std::string infix(const std::string& a, const char* op, const std::string& b) { return "(" + a + " " + op + " " + b + ")"; }

std::string suffix(Kind kind) { return kind == Kind::Bool ? "i32" : std::string(scalar::name(kind)); }

// Signed arithmetic wraps: it goes through the unsigned type.
std::string wrapping(Kind kind, bool vector, const std::string& a, const char* op, const std::string& b) {
  if (kind == Kind::U32 || kind == Kind::U64) return infix(a, op, b);
  const std::string wide = vector ? "lm_vu" : kind == Kind::I64 ? "uint64_t" : "uint32_t";
  const std::string own = vector ? "lm_vi" : c_type(kind);
  return "(" + own + ")((" + wide + ")" + a + " " + op + " (" + wide + ")" + b + ")";
}

std::string bool_binary(Op op, bool vector, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::And: case Op::Mul: case Op::Min: return infix(a, "&", b);
    case Op::Or: case Op::Add: case Op::Max: return infix(a, "|", b);
    case Op::Xor: case Op::Sub: case Op::Ne: return vector ? call("lm_xor_mask", a, b) : infix(a, "^", b);
    case Op::Eq: return vector ? call("lm_eq_mask", a, b) : infix(a, "==", b);
    case Op::Lt: return vector ? "(lm_not(" + a + ") & " + b + ")" : "(!" + a + " & " + b + ")";
    case Op::Le: return vector ? "(lm_not(" + a + ") | " + b + ")" : "(!" + a + " | " + b + ")";
    default: return a;  // shifts by the low no bits
  }
}

// The name of an elementary function of floats: ours for f32, libm's for f64 and for what we do not write.
std::string float_function(Op op, Kind kind, bool vector) {
  const std::string stem(scalar::name(op));
  if (vector) return "lm_" + stem + "_vf";
  if (kind == Kind::F64) {
    switch (op) {
      case Op::Abs: return "fabs";
      case Op::Round: return "rint";
      case Op::Sigmoid: case Op::FloorDiv: case Op::Mod: case Op::Min: case Op::Max: return "lm_" + stem + "_f64";
      default: return stem;
    }
  }
  switch (op) {
    case Op::Abs: return "fabsf";
    case Op::Floor: return "floorf";
    case Op::Round: return "rintf";
    case Op::Sqrt: return "sqrtf";
    case Op::Pow: return "powf";
    case Op::Atan2: return "atan2f";
    default: return "lm_" + stem + "_f32";
  }
}

std::string one(Kind kind, bool vector) {
  return vector ? "lm_splat_vf(1.0f)" : kind == Kind::F32 ? "1.0f" : "1.0";
}

std::string float_unary(Op op, Kind kind, bool vector, const std::string& a) {
  switch (op) {
    case Op::Neg: return "(-" + a + ")";
    case Op::Recip: return infix(one(kind, vector), "/", a);
    case Op::Rsqrt: return infix(one(kind, vector), "/", call(float_function(Op::Sqrt, kind, vector), a));
    default: return call(float_function(op, kind, vector), a);
  }
}

std::string float_binary(Op op, Kind kind, bool vector, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::Add: return infix(a, "+", b);
    case Op::Sub: return infix(a, "-", b);
    case Op::Mul: return infix(a, "*", b);
    case Op::Div: return infix(a, "/", b);
    default: return call(float_function(op, kind, vector), a, b);
  }
}

std::string int_unary(Op op, Kind kind, bool vector, const std::string& a) {
  const bool is_signed = scalar::is_signed(kind);
  switch (op) {
    case Op::Neg: return wrapping(kind, vector, vector ? call(std::string("lm_splat_") + vector_suffix(kind), "0") : "0", "-", a);
    case Op::Abs:
      if (!is_signed) return a;
      if (vector) return "lm_sel_vi(" + a + " < 0, " + wrapping(kind, true, "lm_splat_vi(0)", "-", a) + ", " + a + ")";
      return "(" + a + " < 0 ? " + wrapping(kind, false, "0", "-", a) + " : " + a + ")";
    case Op::Not: return "(~" + a + ")";
    default: return a;  // floor and round of integers
  }
}

std::string int_binary(Op op, Kind kind, bool vector, const std::string& a, const std::string& b) {
  const std::string tail = vector ? vector_suffix(kind) : suffix(kind);
  switch (op) {
    case Op::Add: return wrapping(kind, vector, a, "+", b);
    case Op::Sub: return wrapping(kind, vector, a, "-", b);
    case Op::Mul: return wrapping(kind, vector, a, "*", b);
    case Op::And: return infix(a, "&", b);
    case Op::Or: return infix(a, "|", b);
    case Op::Xor: return infix(a, "^", b);
    case Op::Shl: return wrapping(kind, vector, a, "<<", "(" + b + (scalar::is_wide(kind) ? " & 63)" : " & 31)"));
    case Op::Shr: return infix(a, ">>", "(" + b + (scalar::is_wide(kind) ? " & 63)" : " & 31)"));
    default: return "lm_" + std::string(scalar::name(op)) + "_" + tail + "(" + a + ", " + b + ")";
  }
}

std::string compare(Op op, const std::string& a, const std::string& b) {
  const char* sign = op == Op::Eq ? "==" : op == Op::Ne ? "!=" : op == Op::Lt ? "<" : "<=";
  return infix(a, sign, b);
}

std::string scalar_cast(Kind from, Kind to, const std::string& a) {
  if (to == Kind::Bool) return "(" + a + " != 0)";
  if (scalar::is_float(from) && scalar::is_integer(to)) return call("lm_cast_" + suffix(from) + "_" + suffix(to), a);
  // Narrowing to a signed type keeps the low bits: by way of the unsigned one.
  if (to == Kind::I32 && scalar::is_wide(from)) return "(int32_t)(uint32_t)" + a;
  return "(" + c_type(to) + ")" + a;
}

std::string vector_cast(Kind from, Kind to, const std::string& a) {
  if (to == Kind::Bool) return "(" + a + " != 0)";
  if (to == Kind::F32) {
    if (from == Kind::Bool) return "lm_sel_vf(" + a + ", lm_splat_vf(1.0f), lm_splat_vf(0))";
    return call(from == Kind::U32 ? "lm_unsigned_to_float_vf" : "lm_to_float_vf", a);
  }
  if (from == Kind::F32) return call(to == Kind::I32 ? "lm_cast_vf_vi" : "lm_cast_vf_vu", a);
  const std::string value = from == Kind::Bool ? call("lm_one", a) : a;
  return "(" + vector_type(to) + ")" + value;
}

std::string bits_cast(Kind from, Kind to, bool vector, const std::string& a) {
  if (from == to) return a;
  if (vector) {
    if (from == Kind::F32) return (to == Kind::U32 ? "(lm_vu)" : "") + call("lm_as_int_vf", a);
    if (to == Kind::F32) return call("lm_as_float_vf", "(lm_vi)" + a);
    return "(" + vector_type(to) + ")" + a;
  }
  if (scalar::is_float(from)) return "(" + c_type(to) + ")" + call("lm_bits_" + suffix(from), a);
  if (to == Kind::F32) return call("lm_float_bits", "(uint32_t)" + a);
  if (to == Kind::F64) return call("lm_double_bits", "(uint64_t)" + a);
  return "(" + c_type(to) + ")" + a;
}

std::string round_to(DType type, Kind kind, bool vector, const std::string& a) {
  const std::string stem(scalar::name(type));
  if (scalar::is_float(kind)) {
    if (type == DType::F64 || (type == DType::F32 && kind == Kind::F32)) return a;
    if (type == DType::F32) return "(double)(float)" + a;
    if (vector) return call("lm_round_" + stem + "_vf", a);
    if (kind == Kind::F32) return call("lm_round_" + stem + "_f32", a);
    return "(double)lm_round_" + stem + "_f32(lm_round_to_odd(" + a + "))";
  }
  if (kind == Kind::Bool) return a;
  const int width = scalar::is_wide(kind) ? 64 : 32, unused = width - scalar::bits(type);
  if (type == DType::Bool) return vector ? "lm_one(" + a + " != 0)" : "(" + c_type(kind) + ")(" + a + " != 0)";
  if (unused <= 0) return a;
  const std::string shift = std::to_string(unused);
  const bool is_signed = scalar::is_signed(scalar::kind_of(type));
  const std::string u = vector ? "lm_vu" : width == 64 ? "uint64_t" : "uint32_t";
  const std::string s = vector ? "lm_vi" : width == 64 ? "int64_t" : "int32_t";
  const std::string own = vector ? vector_type(kind) : c_type(kind);
  return "(" + own + ")((" + (is_signed ? s : u) + ")((" + u + ")" + a + " << " + shift + ") >> " + shift + ")";
}

std::string operation(Expr e, const std::vector<std::string>& args, bool vector) {
  const Kind kind = e.kind(), operand = e.args().empty() ? kind : e.arg(0).kind();
  switch (e.op()) {
    case Op::Select:
      if (vector) return std::string("lm_sel_") + vector_suffix(kind) + "(" + args[0] + ", " + args[1] + ", " + args[2] + ")";
      return "(" + args[0] + " ? " + args[1] + " : " + args[2] + ")";
    case Op::Cast: return vector ? vector_cast(operand, kind, args[0]) : scalar_cast(operand, kind, args[0]);
    case Op::Bits: return bits_cast(operand, kind, vector, args[0]);
    case Op::RoundTo: return round_to(DType(e.payload()), kind, vector, args[0]);
    default: break;
  }
  if (args.size() == 1) {
    if (kind == Kind::Bool) return e.is(Op::Not) ? (vector ? call("lm_not", args[0]) : "(!" + args[0] + ")") : args[0];
    return scalar::is_float(kind) ? float_unary(e.op(), kind, vector, args[0]) : int_unary(e.op(), kind, vector, args[0]);
  }
  if (operand == Kind::Bool) return bool_binary(e.op(), vector, args[0], args[1]);
  if (scalar::shape(e.op()) == scalar::OpShape::Compare) return compare(e.op(), args[0], args[1]);
  return scalar::is_float(kind) ? float_binary(e.op(), kind, vector, args[0], args[1])
                                : int_binary(e.op(), kind, vector, args[0], args[1]);
}

// An integer expression as a form, where it is one.
std::optional<Form> to_form(Expr root) {
  std::unordered_map<uint32_t, std::optional<Form>> forms;
  for (Expr e : scalar::reachable({&root, 1})) {
    std::optional<Form> out;
    const auto at = [&](size_t i) { return forms[e.arg(i).index()]; };
    switch (e.op()) {
      case Op::Const:
        if (e.kind() == Kind::I64 && e.as_int() < (int64_t(1) << 40) && e.as_int() > -(int64_t(1) << 40)) out = Form(e.as_int());
        break;
      case Op::Index: out = Form::index(int(e.payload())); break;
      case Op::Size: out = Form::size(int(e.payload())); break;
      case Op::Add: if (e.kind() == Kind::I64 && at(0) && at(1)) out = *at(0) + *at(1); break;
      case Op::Sub: if (e.kind() == Kind::I64 && at(0) && at(1)) out = *at(0) - *at(1); break;
      case Op::Neg: if (e.kind() == Kind::I64 && at(0)) out = -*at(0); break;
      case Op::Mul:
        if (e.kind() == Kind::I64 && at(0) && at(1) && (at(0)->is_constant() || at(1)->is_constant())) out = *at(0) * *at(1);
        break;
      default: break;
    }
    forms[e.index()] = out;
  }
  return forms[root.index()];
}

class Emitter {
 public:
  Emitter(Unit& unit, Frame& frame) : unit_(unit), frame_(frame) {}

  Value at(Expr e) const { return frame_.known.at(e.index()); }

  void node(Expr e) {
    if (frame_.known.count(e.index())) return;
    frame_.known[e.index()] = make(e);
  }

 private:
  Value make(Expr e) {
    switch (e.op()) {
      case Op::Const: return {literal(e), false};
      case Op::Arg: return leaf(frame_.reads[size_t(e.payload())], e.kind(), frame_.read_kinds[size_t(e.payload())]);
      case Op::Present: return leaf(frame_.present[size_t(e.payload())], Kind::Bool, Kind::Bool);
      case Op::Index: {
        const bool varying = vector_mode(frame_) && int(e.payload()) == frame_.lane_var;
        return {varying ? "" : unit_.form_text(Form::index(int(e.payload())), frame_), varying};
      }
      case Op::Size: return {unit_.size_name(int(e.payload())), false};
      default: break;
    }
    bool varying = false, deferred = false;
    for (Expr a : e.args()) {
      const Value v = at(a);
      varying = varying || v.varying;
      deferred = deferred || (v.varying && v.text.empty());
    }
    if (!varying) return named(e.kind(), false, operation(e, texts(e, false), false));
    if (scalar::is_wide(e.kind())) return {"", true};
    if (deferred) return by_lanes(e);
    return named(e.kind(), true, operation(e, texts(e, true), true));
  }

  Value leaf(const Value& value, Kind kind, Kind read_kind) {
    if (!value.varying) return {kind == read_kind ? value.text : scalar_cast(read_kind, kind, value.text), false};
    if (!frame_.lane.empty()) {
      std::string text = "lm_get(" + value.text + ", " + frame_.lane + ")";
      if (read_kind == Kind::Bool) text = "(" + text + " != 0)";
      return {kind == read_kind ? text : scalar_cast(read_kind, kind, text), false};
    }
    return {kind == read_kind ? value.text : vector_cast(read_kind, kind, value.text), true};
  }

  std::vector<std::string> texts(Expr e, bool vector) const {
    std::vector<std::string> out;
    for (Expr a : e.args()) out.push_back(vector ? as_vector(at(a), a.kind()) : at(a).text);
    return out;
  }

  Value named(Kind kind, bool varying, const std::string& text) {
    const std::string name = unit_.fresh("e");
    unit_.out.line("const " + (varying ? vector_type(kind) : c_type(kind)) + " " + name + " = " + text + ";");
    return {name, varying};
  }

  // A comparison of 64-bit integers that is affine in the lane variable is a range of lanes; else each lane is
  // computed by itself.
  Value by_lanes(Expr e) {
    if (std::string mask = range_mask(e); !mask.empty()) return named(Kind::Bool, true, mask);
    const std::string name = unit_.fresh("e"), lane = unit_.fresh("l");
    const Kind kind = e.kind();
    unit_.out.line(vector_type(kind) + " " + name + " = lm_splat_" + vector_suffix(kind) + "(0);");
    unit_.out.open("for (int " + lane + " = 0; " + lane + " < LM_LANES; ++" + lane + ")");
    Frame inner = frame_;
    inner.lane = lane;
    inner.known.clear();
    for (const auto& [index, value] : frame_.known) {
      if (!value.varying) inner.known[index] = value;
    }
    const std::string text = emit_value(unit_, inner, e).text;
    unit_.out.line("lm_set(" + name + ", " + lane + ", " + (kind == Kind::Bool ? "-(" + text + ")" : text) + ");");
    unit_.out.close();
    return {name, true};
  }

  std::string range_mask(Expr e) {
    if (scalar::shape(e.op()) != scalar::OpShape::Compare || e.arg(0).kind() != Kind::I64) return "";
    const auto a = to_form(e.arg(0)), b = to_form(e.arg(1));
    if (!a || !b) return "";
    const auto split = (*b - *a).split(frame_.lane_var);
    if (!split || split->rest.uses(view::AtomKind::Index, frame_.lane_var)) return "";
    const auto c = split->coefficient.constant();
    if (!c || *c == 0 || *c == INT64_MIN) return "";
    // c * v + rest compared with 0.
    const Form rest = e.is(Op::Lt) ? split->rest - Form(1) : split->rest;
    const std::string v = unit_.form_text(Form::index(frame_.lane_var), frame_);
    if (e.is(Op::Lt) || e.is(Op::Le)) {
      if (*c > 0) return "lm_range(" + v + ", " + unit_.form_text(-Form::floor_div(rest, *c), frame_) + ", INT64_MAX)";
      return "lm_range(" + v + ", 0, " + unit_.form_text(Form::floor_div(rest, -*c) + Form(1), frame_) + ")";
    }
    if (*c != 1 && *c != -1) return "";
    const Form place = *c == 1 ? -rest : rest;
    const std::string mask =
        "lm_range(" + v + ", " + unit_.form_text(place, frame_) + ", " + unit_.form_text(place + Form(1), frame_) + ")";
    return e.is(Op::Eq) ? mask : "lm_not(" + mask + ")";
  }

  Unit& unit_;
  Frame& frame_;
};

}  // namespace

std::string as_vector(const Value& value, Kind kind) {
  if (value.varying) return value.text;
  if (kind == Kind::Bool) return "lm_splat_vi(-(" + value.text + "))";
  return std::string("lm_splat_") + vector_suffix(kind) + "(" + value.text + ")";
}

std::vector<Value> emit_values(Unit& unit, Frame& frame, std::span<const Expr> roots) {
  Emitter emitter(unit, frame);
  for (Expr e : scalar::reachable(roots)) emitter.node(e);
  std::vector<Value> out;
  for (Expr root : roots) out.push_back(emitter.at(root));
  return out;
}

Value emit_value(Unit& unit, Frame& frame, Expr root) { return emit_values(unit, frame, {&root, 1})[0]; }

bool can_vectorize(std::span<const Expr> roots, tile::Var lane_var, const std::vector<bool>& varying_reads) {
  std::unordered_map<uint32_t, bool> varying;
  for (Expr e : scalar::reachable(roots)) {
    bool v = false;
    if (e.is(Op::Index)) v = int(e.payload()) == lane_var;
    if (e.is(Op::Arg) || e.is(Op::Present)) {
      v = size_t(e.payload()) < varying_reads.size() && varying_reads[size_t(e.payload())];
      if (v && e.is(Op::Arg) && scalar::is_wide(e.kind())) return false;
    }
    for (Expr a : e.args()) v = v || varying[a.index()];
    varying[e.index()] = v;
  }
  for (Expr root : roots) {
    if (varying[root.index()] && scalar::is_wide(root.kind())) return false;
  }
  return true;
}

int cost(std::span<const Expr> roots) {
  int out = 0;
  for (Expr e : scalar::reachable(roots)) {
    switch (e.op()) {
      case Op::Const: case Op::Arg: case Op::Present: case Op::Index: case Op::Size: break;
      case Op::Exp: case Op::Exp2: case Op::Log: case Op::Log2: case Op::Sin: case Op::Cos: case Op::Tan: case Op::Tanh:
      case Op::Erf: case Op::Sigmoid: case Op::Pow: case Op::Atan2: out += 20; break;
      case Op::Div: case Op::Recip: case Op::Sqrt: case Op::Rsqrt: case Op::FloorDiv: case Op::Mod: out += 6; break;
      default: out += 1;
    }
  }
  return out;
}

}  // namespace lemma::emit
