#include "lemma/emit/pack.h"

#include "lemma/base/check.h"
#include "lemma/emit/body.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Op;
using tile::Access;
using tile::Range;
using tile::Var;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

bool divisible(const Form& form, int64_t by) {
  for (const view::Term& t : form.terms()) if (t.coefficient % by != 0) return false;
  return true;
}

// Which point `coordinate` is, plus a multiple of `by`.
std::optional<size_t> aligned_point(const std::vector<Range>& points, const Form& coordinate, int64_t by) {
  for (size_t i = 0; i < points.size(); ++i) {
    const auto split = coordinate.split(points[i].var);
    if (split && split->coefficient == Form(1) && divisible(split->rest, by)) return i;
  }
  return std::nullopt;
}

// The map with variable v standing for `by`, whose expression is `expr`.
tile::Map replaced(Unit& unit, const tile::Map& map, Var v, const Form& by, Expr expr) {
  tile::Map out = map;
  const auto f = [&](const Form& form) { return form.substitute_index(v, by); };
  const auto formula = [&](const Formula& x) {
    return x.map_indices([&](int i) { return i == v ? by : Form::index(i); });
  };
  const auto access = [&](Access& a) {
    for (Form& c : a.coords) c = f(c);
    a.guard = formula(a.guard);
  };
  const auto value = [&](Expr e) {
    return scalar::rewrite(e, unit.arena, [&](Expr node, std::span<const Expr>) {
      return node.is(Op::Index) && node.payload() == v ? expr : Expr();
    });
  };
  out.where = formula(map.where);
  for (Access& a : out.reads) access(a);
  for (tile::Store& s : out.stores) {
    access(s.to);
    s.value = value(s.value);
    if (s.otherwise.valid()) s.otherwise = value(s.otherwise);
  }
  return out;
}

// Two elements of k in one 32-bit lane.
void pack_pairs(Unit& unit, const tile::Map& map, const Range& lanes, const Range& deep, const Form& k_extent, Var k_var) {
  const tile::Store& store = map.stores[0];
  const tile::Buffer& buffer = unit.buffer(store.to.buffer);
  const Expr value = scalar::cast(store.value, scalar::kind_of(buffer.type));
  const BodyText text{&map.where, &map.reads, {value}};
  for (const Range& r : map.points) if (r.var != lanes.var) open_loop(unit, r);
  note_range(unit, lanes);
  const std::string& v = unit.var_name(lanes.var);
  const std::string pair = unit.var_name(deep.var);
  unit.out.open("for (int64_t " + v + " = 0; " + v + " < " + unit.form_text(lanes.extent, {}) + "; " + v + " += LM_LANES)");
  const std::string both = unit.fresh("pair");
  unit.out.line("lm_vu " + both + " = lm_splat_vu(0);");
  for (int half = 0; half < 2; ++half) {
    Frame row;
    row.lane_var = lanes.var;
    const std::string k = "(2 * " + pair + " + " + std::to_string(half) + ")";
    row.vars[k_var] = k;
    unit.out.open(half == 0 ? "" : "if (" + k + " < " + unit.form_text(k_extent, {}) + ")");
    LaneBody body(unit, row, text, unit.form_text(lanes.extent, row), false);
    body.row();
    body.lanes({}, "", [&](Frame& frame, const LaneMask& mask) {
      const Value x = emit_value(unit, frame, value);
      std::string code = scalar::is_float(buffer.type)
                             ? "lm_encode_" + std::string(scalar::name(buffer.type)) + "_vf(" + as_vector(x, scalar::Kind::F32) + ")"
                             : "((lm_vu)(" + as_vector(x, scalar::kind_of(buffer.type)) + ") & 0xffffu)";
      if (!mask.mask.empty()) code = "lm_sel_vu(" + mask.mask + ", " + code + ", lm_splat_vu(0))";
      unit.out.line(both + " = " + both + " | (" + code + (half == 0 ? ");" : " << 16);"));
    });
    unit.out.close();
  }
  Frame frame;
  frame.vars[k_var] = "(2 * " + pair + ")";
  Access to = store.to;
  for (Form& c : to.coords) c = c.substitute_index(k_var, Form(2) * Form::index(deep.var));
  const std::string at = unit.form_text(unit.simplify(unit.offset(to.buffer, to.coords)), {});
  unit.out.line("lm_store_u32((uint32_t*)(void*)(" + unit.buffer_name(to.buffer) + " + (" + at + ")), " + both + ");");
  unit.out.close(1 + int(map.points.size()) - 1);
}

}  // namespace

bool emit_packing(Unit& unit, const tile::Map& map) {
  if (map.stores.size() != 1 || map.stores[0].combine || unit.lanes() <= 1) return false;
  const tile::Store& store = map.stores[0];
  const tile::Buffer& buffer = unit.buffer(store.to.buffer);
  const tile::Layout& layout = buffer.layout;
  if (layout.kind != tile::LayoutKind::Panels || layout.width % unit.lanes() != 0) return false;
  if (!store.to.guard.is_always()) return false;
  const size_t rank = store.to.coords.size();
  const auto column = aligned_point(map.points, store.to.coords[rank - 1], layout.width);
  if (!column) return false;
  const Range n = map.points[*column];

  // n = width * p + q
  const Range p{unit.add_variable("panel"), Form::ceil_div(n.extent, Form(layout.width))};
  const Range q{unit.add_variable("column"), Form(layout.width)};
  note_range(unit, p);
  note_range(unit, q);
  const Form by = Form::index(p.var) * Form(layout.width) + Form::index(q.var);
  const Expr expr = scalar::index(unit.arena, p.var) * scalar::i64(unit.arena, layout.width) + scalar::index(unit.arena, q.var);
  tile::Map out = replaced(unit, map, n.var, by, expr);
  out.points.erase(out.points.begin() + ptrdiff_t(*column));
  out.points.insert(out.points.begin(), p);
  out.points.push_back(q);
  const auto constant = n.extent.constant();
  if (!constant || *constant % layout.width != 0) {
    if (out.where.is_always()) out.stores[0].otherwise = scalar::constant(unit.arena, out.stores[0].value.kind(), 0);
    out.where = out.where && Formula::less(by, n.extent);
  }
  if (layout.interleave == 1) {
    emit_map(unit, out);
    return true;
  }
  const bool half_words = scalar::bits(buffer.type) == 16;
  const auto depth = aligned_point(out.points, out.stores[0].to.coords[rank - 2], 2);
  if (layout.interleave != 2 || !half_words || !depth || !map.where.is_always()) return false;
  const Range k = out.points[*depth];
  const Range pairs{unit.add_variable("pair"), Form::ceil_div(k.extent, Form(2))};
  note_range(unit, pairs);
  for (const Expr e : {out.stores[0].value}) {
    const Expr roots[] = {e};
    const BodyText text{&out.where, &out.reads, {roots[0]}};
    if (!lanes_possible(unit, text, q.var)) return false;
  }
  out.points[*depth] = pairs;
  pack_pairs(unit, out, q, pairs, k.extent, k.var);
  return true;
}

}  // namespace lemma::emit
