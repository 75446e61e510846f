// Reductions to the K best: an array of slots, best first, into which an element is put if it beats the worst.
#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/emit/body.h"
#include "lemma/emit/general_fold.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Range;
using tile::Var;
using view::AtomKind;

namespace {

struct TopK {
  const tile::Reduce& reduce;
  int count;
  Kind kind;
  Expr value, index;
  std::string values, indices;   // arrays of `count`, best first
  std::string better;            // a comparison sign
};

// Inserts (x, i) if it beats the worst: a missing slot, or a later one in the order nan, better value, smaller index.
void insert(Unit& unit, const TopK& t, const std::string& x, const std::string& i) {
  const std::string last = std::to_string(t.count - 1), slot = unit.fresh("slot");
  const auto beats = [&](const std::string& at) {
    const std::string v = t.values + "[" + at + "]", n = t.indices + "[" + at + "]";
    const std::string ties = "(" + x + " == " + v + " && " + i + " < " + n + ")";
    std::string text = x + " " + t.better + " " + v + " || " + ties;
    if (scalar::is_float(t.kind)) {
      text = "(" + v + " == " + v + " ? (" + x + " != " + x + " || " + text + ") : (" + x + " != " + x + " && " + i + " < " + n + "))";
    } else {
      text = "(" + text + ")";
    }
    return "(" + n + " < 0 || " + text + ")";
  };
  unit.out.open("if (LM_UNLIKELY(" + beats(last) + "))");
  unit.out.line("int " + slot + " = " + last + ";");
  unit.out.open("for (; " + slot + " > 0 && " + beats(slot + " - 1") + "; --" + slot + ")");
  unit.out.line(t.values + "[" + slot + "] = " + t.values + "[" + slot + " - 1];");
  unit.out.line(t.indices + "[" + slot + "] = " + t.indices + "[" + slot + " - 1];");
  unit.out.close();
  unit.out.line(t.values + "[" + slot + "] = " + x + ";");
  unit.out.line(t.indices + "[" + slot + "] = " + i + ";");
  unit.out.close();
}

void insert_element(Unit& unit, const TopK& t, Frame& frame) {
  const Value x = emit_value(unit, frame, t.value), i = emit_value(unit, frame, t.index);
  const std::string xn = unit.fresh("x"), in = unit.fresh("i");
  unit.out.line("const " + c_type(t.kind) + " " + xn + " = " + x.text + ";");
  unit.out.line("const int64_t " + in + " = " + i.text + ";");
  insert(unit, t, xn, in);
}

// A group of lanes is compared with the worst at once; few groups hold anything better.
void top_k_lanes(Unit& unit, const TopK& t, const Range& lanes, const BodyText& text) {
  note_range(unit, lanes);
  const std::string& v = unit.var_name(lanes.var);
  Frame row;
  row.lane_var = lanes.var;
  unit.out.open("");
  LaneBody body(unit, row, text, unit.form_text(lanes.extent, row), true);
  body.row();
  unit.out.line("int64_t " + v + " = " + body.low() + ";");
  const auto inside = [&](Frame& frame, const LaneMask& mask) {
    const Value x = emit_value(unit, frame, t.value);
    const std::string xv = unit.fresh("x"), m = unit.fresh("m"), lane = unit.fresh("l");
    const std::string last = std::to_string(t.count - 1);
    unit.out.line("const " + vector_type(t.kind) + " " + xv + " = " + as_vector(x, t.kind) + ";");
    const std::string worst = std::string("lm_splat_") + vector_suffix(t.kind) + "(" + t.values + "[" + last + "])";
    std::string live = "lm_not(" + xv + (t.better == ">" ? " < " : " > ") + worst + ")";
    if (!mask.mask.empty()) live += " & " + mask.mask;
    if (!mask.count.empty()) live += " & lm_first(" + mask.count + ")";
    unit.out.line("const lm_vi " + m + " = " + t.indices + "[" + last + "] < 0 ? " +
                  (mask.mask.empty() && mask.count.empty() ? "lm_splat_vi(-1)"
                   : mask.count.empty()                    ? mask.mask
                   : mask.mask.empty()                     ? "lm_first(" + mask.count + ")"
                                                           : "(" + mask.mask + " & lm_first(" + mask.count + "))") +
                  " : (" + live + ");");
    unit.out.open("if (LM_UNLIKELY(lm_any(" + m + ")))");
    unit.out.open("for (int " + lane + " = 0; " + lane + " < LM_LANES; ++" + lane + ")");
    unit.out.line("if (!lm_get(" + m + ", " + lane + ")) continue;");
    Frame one = frame;
    one.lane = lane;
    one.known.clear();
    const Value i = emit_value(unit, one, t.index);
    const std::string xn = unit.fresh("x"), in = unit.fresh("i");
    unit.out.line("const " + c_type(t.kind) + " " + xn + " = lm_get(" + xv + ", " + lane + ");");
    unit.out.line("const int64_t " + in + " = " + i.text + ";");
    insert(unit, t, xn, in);
    unit.out.close(2);
  };
  unit.out.open("for (; " + v + " + LM_LANES <= " + body.high() + "; " + v + " += LM_LANES)");
  body.lanes({}, "", inside);
  unit.out.close();
  unit.out.open("if (" + v + " < " + body.high() + ")");
  const std::string count = unit.fresh("n");
  unit.out.line("const int64_t " + count + " = " + body.high() + " - " + v + ";");
  body.lanes({}, count, inside);
  unit.out.close(2);
}

// Copies the slots between the arrays and the state buffers.
void move_slots(Unit& unit, const TopK& t, bool in) {
  unit.out.open("");
  for (size_t c = 0; c < 2; ++c) {
    const Access& state = t.reduce.states[c];
    const std::string array = c == 0 ? t.values : t.indices;
    Var slot = -1;
    for (const Range& r : t.reduce.axes) if (state.coords.back().uses(AtomKind::Index, r.var)) slot = r.var;
    // A single slot's coordinate may have become a constant.
    LEMMA_CHECK(slot >= 0 || t.reduce.monoid->count == 1, "a state of the K best has no slot axis");
    const std::string place = slot >= 0 ? unit.var_name(slot) : "0";
    if (slot >= 0) open_loop(unit, {slot, t.count});
    else unit.out.open("");
    Frame frame;
    const Kind kind = c == 0 ? t.kind : Kind::I64;
    if (in) {
      const std::string at = unit.form_text(unit.simplify(unit.offset(state.buffer, state.coords)), frame);
      unit.out.line(array + "[" + place + "] = " + unit.load(state.buffer, at) + ";");
    } else {
      store_scalar(unit, frame, state, {array + "[" + place + "]", false}, kind, std::nullopt);
    }
    unit.out.close();
  }
  unit.out.close();
}

}  // namespace

void emit_top_k(Unit& unit, const tile::Reduce& reduce) {
  const monoid::Monoid& m = *reduce.monoid;
  TopK t{reduce, m.count, m.components[0].kind, scalar::import(reduce.body[0], unit.arena),
         scalar::import(reduce.body[1], unit.arena), unit.fresh("best"), unit.fresh("where"), m.smallest ? "<" : ">"};
  if (t.count <= 0) return;
  for (const Range& p : reduce.points) open_loop(unit, p);
  for (const Range& r : reduce.reduces) note_range(unit, r);
  const std::string size = "[" + std::to_string(t.count) + "]", slot = unit.fresh("slot");
  unit.out.open("");
  unit.out.line(c_type(t.kind) + " " + t.values + size + ";");
  unit.out.line("int64_t " + t.indices + size + ";");
  if (reduce.accumulate) {
    move_slots(unit, t, true);
  } else {
    Frame frame;
    const Expr identity = scalar::rewrite(m.identity[0], unit.arena, [](Expr, std::span<const Expr>) { return Expr(); });
    const Value none = emit_value(unit, frame, identity);
    unit.out.line("for (int " + slot + " = 0; " + slot + " < " + std::to_string(t.count) + "; ++" + slot + ") " + t.values +
                  "[" + slot + "] = " + none.text + ", " + t.indices + "[" + slot + "] = -1;");
  }
  // Lanes over the innermost reduce variable where the value allows it; the index is worked out for inserted lanes.
  const Range* lanes = nullptr;
  const BodyText value_text{&reduce.where, &reduce.reads, {t.value}};
  if (unit.lanes() > 1 && !scalar::is_wide(t.kind) && !reduce.reduces.empty() && !t.index.is(Op::Arg)) {
    const Range& last = reduce.reduces.back();
    bool reads_index = false;
    const Expr roots[] = {t.index};
    for (Expr e : scalar::reachable(roots)) reads_index = reads_index || e.is(Op::Arg) || e.is(Op::Present);
    if (!reads_index && lanes_possible(unit, value_text, last.var)) lanes = &last;
  }
  int loops = 0;
  for (const Range& r : reduce.reduces) {
    if (&r == lanes) continue;
    open_loop(unit, r);
    ++loops;
  }
  if (lanes) {
    top_k_lanes(unit, t, *lanes, value_text);
  } else {
    const BodyText text{&reduce.where, &reduce.reads, {t.value, t.index}};
    scalar_body(unit, Frame{}, text, [&](Frame& frame) { insert_element(unit, t, frame); }, nullptr);
  }
  unit.out.close(loops);
  move_slots(unit, t, false);
  unit.out.close(1 + int(reduce.points.size()));
}

}  // namespace lemma::emit
