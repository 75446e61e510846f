#include "lemma/emit/store.h"

#include "lemma/base/check.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using view::Form;

namespace {

// Runs the expression emitter over one or two values in variables.
Value cast_value(Unit& unit, const Frame& frame, const Value& value, Kind from, Kind to) {
  if (from == to) return value;
  Frame inner = frame;
  inner.known.clear();
  inner.reads = {value};
  inner.read_kinds = {from};
  inner.present = {{"1", false}};
  return emit_value(unit, inner, scalar::cast(scalar::arg(unit.arena, from, 0), to));
}

Value combined(Unit& unit, const Frame& frame, const Value& old, const Value& value, Kind kind, scalar::Op op) {
  Frame inner = frame;
  inner.known.clear();
  inner.reads = {old, value};
  inner.read_kinds = {kind, kind};
  inner.present = {{"1", false}, {"1", false}};
  return emit_value(unit, inner,
                    scalar::binary(op, scalar::arg(unit.arena, kind, 0), scalar::arg(unit.arena, kind, 1)));
}

}  // namespace

void store_scalar(Unit& unit, Frame& frame, const tile::Access& to, const Value& value, Kind kind,
                  std::optional<scalar::Op> combine) {
  const Kind own = scalar::kind_of(unit.buffer(to.buffer).type);
  Value v = cast_value(unit, frame, value, kind, own);
  const std::string offset = unit.form_text(unit.simplify(unit.offset(to.buffer, to.coords)), frame);
  if (!to.guard.is_always()) unit.out.open("if (" + unit.condition(to.guard, frame) + ")");
  if (combine) v = combined(unit, frame, {unit.load(to.buffer, offset), false}, v, own, *combine);
  unit.store(to.buffer, offset, v.text);
  if (!to.guard.is_always()) unit.out.close();
}

void store_lanes(Unit& unit, Frame& frame, const tile::Access& to, const Value& value, Kind kind,
                 std::optional<scalar::Op> combine, const LaneMask& lanes) {
  const tile::Buffer& buffer = unit.buffer(to.buffer);
  const Kind own = scalar::kind_of(buffer.type);
  const Value v = cast_value(unit, frame, value, kind, own);
  const Form place = unit.simplify(unit.offset(to.buffer, to.coords));
  const auto split = place.split(frame.lane_var);
  const bool unit_stride = split && split->coefficient == Form(1) && !varies(split->rest, frame) &&
                           to.guard.is_always() && scalar::bits(buffer.type) >= 8 && !combine && !scalar::is_wide(own);
  LaneMask mask = lanes;
  if (!mask.mask.empty() && !mask.count.empty()) {
    const std::string name = unit.fresh("m");
    unit.out.line("const lm_vi " + name + " = " + mask.mask + " & lm_first(" + mask.count + ");");
    mask = {name, ""};
  }
  if (!unit_stride) {
    const std::string lane = unit.fresh("l"), held = unit.fresh("e");
    std::string text = v.text;
    if (v.varying) {
      unit.out.line("const " + vector_type(own) + " " + held + " = " + v.text + ";");
      text = "lm_get(" + held + ", " + lane + ")";
      if (own == Kind::Bool) text = "(" + text + " != 0)";
    }
    unit.out.open("for (int " + lane + " = 0; " + lane + " < " + (mask.count.empty() ? "LM_LANES" : mask.count) + "; ++" +
                  lane + ")");
    if (!mask.mask.empty()) unit.out.open("if (lm_get(" + mask.mask + ", " + lane + "))");
    Frame inner = frame;
    inner.lane = lane;
    store_scalar(unit, inner, to, {text, false}, own, combine);
    if (!mask.mask.empty()) unit.out.close();
    unit.out.close();
    return;
  }
  const std::string at = unit.buffer_name(to.buffer) + " + (" + unit.form_text(place, frame) + ")";
  const std::string form = !mask.mask.empty() ? "m" : !mask.count.empty() ? "n" : "";
  const std::string tail = !mask.mask.empty() ? ", " + mask.mask : !mask.count.empty() ? ", " + mask.count : "";
  const auto put = [&](const std::string& width, const std::string& pointer, const std::string& x) {
    unit.out.line("lm_store" + form + "_" + width + "(" + pointer + at + ", " + x + tail + ");");
  };
  const std::string x = as_vector(v, own);
  switch (buffer.type) {
    case DType::F32: return put("f32", "", x);
    case DType::I32: return put("i32", "", x);
    case DType::U32: return put("u32", "", x);
    case DType::F16: return put("h", "", "lm_encode_f16_vf(" + x + ")");
    case DType::BF16: return put("h", "", "lm_encode_bf16_vf(" + x + ")");
    case DType::F8E4M3: return put("b", "", "lm_encode_f8e4m3_vf(" + x + ")");
    case DType::F8E5M2: return put("b", "", "lm_encode_f8e5m2_vf(" + x + ")");
    case DType::U16: return put("h", "", "(" + x + " & 0xffffu)");
    case DType::U8: return put("b", "", "(" + x + " & 0xffu)");
    case DType::I16: return put("h", "(uint16_t*)", "(lm_vu)(" + x + " & 0xffff)");
    case DType::I8: return put("b", "(uint8_t*)", "(lm_vu)(" + x + " & 0xff)");
    case DType::Bool: return put("b", "", "(lm_vu)lm_one(" + x + ")");
    default: LEMMA_CHECK(false, "a 64-bit store in lanes");
  }
}

}  // namespace lemma::emit
