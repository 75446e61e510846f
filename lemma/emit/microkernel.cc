#include "lemma/emit/microkernel.h"

#include "lemma/emit/statements.h"

namespace lemma::emit {

using scalar::DType;
using tile::Access;
using view::AtomKind;
using view::Form;

namespace {

constexpr int kRows = 6;
constexpr int kFewRows = 16;  // at most, where the right operand streams by
constexpr int kTaps = 64;    // whose shifts stand in a table at once

enum class Right { Panels, Rows };

struct Shape {
  Right right = Right::Panels;
  bool pairs = false;        // bf16 or i16 in pairs along k
  bool words = false;        // the pairs are i16 and the result is of 32-bit integers
  bool doubles = false;      // of f64, half as many in a vector
  bool widen = false;        // the left operand is packed, row by row, into the type of the tile
  int width = 0;             // columns of a tile
  int panel = 0;             // columns of a panel: one tile, or several of f64
  Form a_step;               // of k in the left operand
  Form b_step;               // of k in the right operand, where it is rows
  Form c_step;               // of m in the result
  std::vector<Form> a_shift, b_shift;  // per tap
};

bool divisible(const Form& form, int64_t by) {
  for (const view::Term& t : form.terms()) if (t.coefficient % by != 0) return false;
  return true;
}

// coordinate == v + rest with rest a multiple of `by`.
bool is_aligned(const Form& coordinate, tile::Var v, int64_t by) {
  const auto split = coordinate.split(v);
  return split && split->coefficient == Form(1) && !split->rest.uses(AtomKind::Index, v) && divisible(split->rest, by);
}

std::optional<Form> step(const Unit& unit, const Access& access, tile::Var v) {
  const auto split = unit.simplify(unit.offset(access.buffer, access.coords)).split(v);
  if (!split || split->coefficient.uses(AtomKind::Index)) return std::nullopt;
  return split->coefficient;
}

// What one step of a tap adds to an operand's offset; the same wherever the tile stands.
std::optional<Form> shift(const Unit& unit, const tile::Gemm& g, const Access& access, tile::Var tap) {
  const auto split = unit.simplify(unit.offset(access.buffer, access.coords)).split(tap);
  if (!split) return std::nullopt;
  for (tile::Var v : {g.m.var, g.n.var, g.k.var}) {
    if (split->coefficient.uses(AtomKind::Index, v)) return std::nullopt;
  }
  for (const tile::Range& t : g.taps) {
    if (split->coefficient.uses(AtomKind::Index, t.var)) return std::nullopt;
  }
  return split->coefficient;
}

bool uses_var(const Access& a, tile::Var v) {
  for (const Form& c : a.coords) if (c.uses(AtomKind::Index, v)) return true;
  return false;
}

std::optional<Shape> match(const Unit& unit, const tile::Gemm& g, std::string& reason) {
  Shape out;
  const auto no = [&](const char* why) {
    reason = why;
    return std::nullopt;
  };
  const tile::Buffer &a = unit.buffer(g.a.buffer), &b = unit.buffer(g.b.buffer), &c = unit.buffer(g.acc.buffer);
  const int vectors = unit.options.target.vector_registers >= 32 ? 4 : 2;
  if (unit.lanes() <= 1) return no("the target has no vectors");
  if (!g.a.guard.is_always() || !g.b.guard.is_always() || !g.acc.guard.is_always()) return no("an operand is guarded");
  out.words = b.type == DType::I16 && (c.type == DType::I32 || c.type == DType::U32);
  out.doubles = c.type == DType::F64;
  const DType own = out.doubles ? DType::F64 : DType::F32;  // of the operands, but for pairs
  const int per_vector = out.doubles ? std::max(1, unit.lanes() / 2) : unit.lanes();
  if ((c.type != own && !out.words) || c.layout.kind != tile::LayoutKind::RowMajor) return no("the result is not rows of f32 or f64");
  if (uses_var(g.a, g.n.var) || uses_var(g.b, g.m.var) || uses_var(g.acc, g.k.var)) return no("an operand uses a foreign index");
  if (!g.taps.empty() && (b.layout.kind != tile::LayoutKind::Panels || b.type != DType::F32)) return no("taps need panels of f32");
  if (step(unit, g.acc, g.n.var) != Form(1)) return no("columns of the result do not lie side by side");
  const auto c_step = step(unit, g.acc, g.m.var), a_step = step(unit, g.a, g.k.var);
  if (!c_step) return no("rows of the result are not evenly spaced");
  if (!a_step || a.layout.kind != tile::LayoutKind::RowMajor) return no("the left operand is not evenly spaced along k");
  out.c_step = *c_step;
  out.a_step = *a_step;
  const size_t rank = g.b.coords.size();
  if (b.layout.kind == tile::LayoutKind::Panels) {
    const tile::Layout& l = b.layout;
    if (l.width % unit.lanes() != 0) return no("a panel is not whole vectors wide");
    if (!is_aligned(g.b.coords[rank - 1], g.n.var, l.width) || !is_aligned(g.b.coords[rank - 2], g.k.var, l.interleave)) {
      return no("the product does not start at a panel");
    }
    out.panel = l.width;
    out.width = out.doubles && l.width % (vectors * per_vector) == 0 ? vectors * per_vector : l.width;
    out.pairs = (b.type == DType::BF16 || out.words) && l.interleave == 2;
    if (!out.pairs && (b.type != own || l.interleave != 1)) return no("panels of this type have no tile");
  } else {
    if (b.type != own) return no("the right operand is not packed and not of the result's type");
    const auto n_step = step(unit, g.b, g.n.var), k_step = step(unit, g.b, g.k.var);
    if (n_step != Form(1) || !k_step) return no("columns of the right operand do not lie side by side");
    out.right = Right::Rows;
    out.b_step = *k_step;
    out.width = out.panel = vectors * per_vector;
  }
  if (out.pairs) {
    if (a.type != b.type || *a_step != Form(1)) return no("the left operand is not rows of the panels' type");
    return out;
  }
  out.widen = a.type != own || *a_step != Form(1);
  if (!g.taps.empty()) {
    if (out.widen) return no("taps need rows of f32");
    for (const tile::Range& t : g.taps) {
      const auto a_shift = shift(unit, g, g.a, t.var), b_shift = shift(unit, g, g.b, t.var);
      if (!a_shift || !b_shift) return no("a tap does not shift an operand evenly");
      out.a_shift.push_back(*a_shift);
      out.b_shift.push_back(*b_shift);
    }
  }
  const scalar::Kind left = scalar::kind_of(a.type);
  if (out.widen && left != scalar::Kind::F32 && left != scalar::kind_of(own)) return no("the left operand is not of floats");
  return out;
}

// An extent over sizes only that holds `range`, for scratch; the buffer's own where the range depends on the block.
std::optional<Form> bound(const Unit& unit, const tile::Range& range, const Access& access) {
  if (!range.extent.uses(AtomKind::Index)) return range.extent;
  for (size_t d = 0; d < access.coords.size(); ++d) {
    if (access.coords[d].uses(AtomKind::Index, range.var)) return unit.buffer(access.buffer).extents[d];
  }
  return std::nullopt;
}

class Tiles {
 public:
  Tiles(Unit& unit, const tile::Gemm& g, const Shape& shape) : unit_(unit), g_(g), shape_(shape) {}

  void write() {
    m_ = unit_.fresh("m");
    n_ = unit_.fresh("n");
    k_ = unit_.fresh("k");
    unit_.out.open("");
    unit_.out.line("const int64_t " + m_ + " = " + unit_.form_text(g_.m.extent, {}) + ", " + n_ + " = " +
                   unit_.form_text(g_.n.extent, {}) + ", " + k_ + " = " + unit_.form_text(g_.k.extent, {}) + ";");
    if (!g_.taps.empty()) {
      write_taps();
      unit_.out.close();
      return;
    }
    const bool few = shape_.right == Right::Rows && !shape_.pairs && !shape_.doubles;
    if (few) few_rows();
    // k in steps that keep a panel in the second-level cache, rows in steps that keep the left operand there.
    // A panel two vectors wide stays in the first-level cache; a wider one streams from the second.
    const int64_t kc = (shape_.pairs ? 2 : 1) * (shape_.width > 2 * unit_.lanes() && !shape_.doubles ? 512 : 256);
    unit_.out.open("for (int64_t lm_k0 = 0, lm_kc = 0; lm_k0 < " + k_ + " || (lm_k0 == 0 && " + k_ + " == 0); lm_k0 += lm_kc ? lm_kc : 1)");
    unit_.out.line("lm_kc = " + k_ + " - lm_k0 > " + std::to_string(kc * 3 / 2) + " ? " + std::to_string(kc) + " : " + k_ + " - lm_k0;");
    unit_.out.line(std::string("const int32_t lm_add = ") + (g_.accumulate ? "1" : "lm_k0 > 0") + ";");
    shape_.widen ? packed_rows() : blocked_rows();
    unit_.out.close(few ? 3 : 2);
  }

 private:
  std::string tile_name() const {
    return std::string(shape_.words ? "lm_tile_i16_" : shape_.pairs ? "lm_tile_bf16_" : shape_.doubles ? "lm_tile_f64_" : "lm_tile_f32_") + std::to_string(shape_.width);
  }

  Frame at(const std::string& m, const std::string& n, const std::string& k) const {
    Frame frame;
    frame.vars[g_.m.var] = m;
    frame.vars[g_.n.var] = n;
    frame.vars[g_.k.var] = k;
    for (const tile::Range& t : g_.taps) frame.vars[t.var] = "0";
    return frame;
  }

  std::string place(const Access& access, const Frame& frame) {
    return unit_.buffer_name(access.buffer) + " + (" + unit_.form_text(unit_.simplify(unit_.offset(access.buffer, access.coords)), frame) + ")";
  }

  std::string element() const { return shape_.pairs ? "uint16_t" : shape_.doubles ? "double" : "float"; }
  std::string result() const { return shape_.words ? "int32_t" : shape_.doubles ? "double" : "float"; }
  // A place of the result; unsigned words are summed as signed ones, which wrap alike in vectors.
  std::string result_place(const Frame& frame) { return "(" + result() + "*)(" + place(g_.acc, frame) + ")"; }

  // Taps, some at a time: their shifts go into tables, and the tile keeps its sums in registers from one to the next.
  void write_taps() {
    Writer& out = unit_.out;
    std::string count = "1";
    std::vector<std::string> extents;
    for (const tile::Range& t : g_.taps) {
      extents.push_back("lm_max_i64(0, " + unit_.form_text(t.extent, {}) + ")");
      count += " * " + extents.back();
    }
    out.line("const int64_t lm_taps = " + count + ";");
    out.line("const int64_t lm_k0 = 0, lm_kc = " + k_ + ";");
    out.open("for (int64_t lm_t0 = 0; lm_t0 < lm_taps || lm_t0 == 0; lm_t0 += " + std::to_string(kTaps) + ")");
    out.line("const int64_t lm_tc = lm_min_i64(lm_taps - lm_t0, " + std::to_string(kTaps) + ");");
    out.line(std::string("const int32_t lm_add = ") + (g_.accumulate ? "1" : "lm_t0 > 0") + ";");
    out.line("int64_t lm_a_shift[" + std::to_string(kTaps) + "], lm_b_shift[" + std::to_string(kTaps) + "];");
    out.open("for (int64_t lm_t = 0; lm_t < lm_tc; ++lm_t)");
    out.line("int64_t lm_rest = lm_t0 + lm_t, lm_a = 0, lm_b = 0;");
    for (size_t t = g_.taps.size(); t-- > 0;) {
      out.line("lm_a += lm_rest % " + extents[t] + " * (" + unit_.form_text(shape_.a_shift[t], {}) + ");");
      out.line("lm_b += lm_rest % " + extents[t] + " * (" + unit_.form_text(shape_.b_shift[t], {}) + ");");
      out.line("lm_rest /= " + extents[t] + ";");
    }
    out.line("lm_a_shift[lm_t] = lm_a;");
    out.line("lm_b_shift[lm_t] = lm_b;");
    out.close();
    blocked_rows();
    out.close();
  }

  // Pointers to the rows of a sliver; rows beyond the last repeat it.
  void row_pointers(const std::string& count, int rows = kRows) {
    unit_.out.line("const " + element() + "* lm_rows[" + std::to_string(rows) + "];");
    unit_.out.open("for (int lm_r = 0; lm_r < " + std::to_string(rows) + "; ++lm_r)");
    unit_.out.line("const int64_t lm_m = lm_min_i64(lm_m0 + lm_r, " + count + " - 1);");
    unit_.out.line("lm_rows[lm_r] = (const " + element() + "*)(" + place(g_.a, at("lm_m", "0", "lm_k0")) + ");");
    unit_.out.close();
  }

  void few_rows() {
    unit_.out.open("if (" + m_ + " <= " + std::to_string(kFewRows) + ")");
    if (shape_.widen) {
      unit_.out.line("/* a left operand of other types takes the tiles */");
    }
    if (!shape_.widen) {
      unit_.out.open("if (" + m_ + " > 0)");
      unit_.out.line("const int64_t lm_m0 = 0, lm_k0 = 0;");
      row_pointers(m_, kFewRows);
      unit_.out.line("lm_few_rows_f32(" + m_ + ", " + n_ + ", " + k_ + ", lm_rows, " + place(g_.b, at("0", "0", "0")) + ", " +
                     unit_.form_text(shape_.b_step, {}) + ", " + place(g_.acc, at("0", "0", "0")) + ", " +
                     unit_.form_text(shape_.c_step, {}) + ", " + (g_.accumulate ? "1" : "0") + ");");
      unit_.out.close();
      unit_.out.otherwise();
    } else {
      unit_.out.close();
      unit_.out.open("");
    }
  }

  void blocked_rows() {
    unit_.out.open("for (int64_t lm_mb = 0, lm_me = 0; lm_mb < " + m_ + "; lm_mb = lm_me)");
    unit_.out.line("lm_me = " + m_ + " - lm_mb > 270 ? lm_mb + 180 : " + m_ + ";");
    unit_.out.open("for (int64_t lm_p = 0; lm_p * " + std::to_string(shape_.width) + " < " + n_ + "; ++lm_p)");
    unit_.out.open("for (int64_t lm_m0 = lm_mb; lm_m0 < lm_me; lm_m0 += " + std::to_string(kRows) + ")");
    row_pointers("lm_me");
    unit_.out.line("const int64_t lm_left = lm_me - lm_m0;");
    one_tile();
    unit_.out.close(3);
  }

  // The left operand is brought into rows of the tile's type six at a time; every panel then meets them.
  void packed_rows() {
    const auto deep = bound(unit_, g_.k, g_.a);
    tile::Buffer buffer;
    buffer.name = "rows";
    buffer.type = shape_.doubles ? DType::F64 : DType::F32;
    buffer.space = tile::Space::Local;
    const Form depth = (deep ? *deep : Form(0)) + Form(16);
    buffer.extents = {kRows, depth};
    const int rows = unit_.add_buffer(buffer);
    unit_.temporaries.push_back({unit_.raw_buffer_name(rows), buffer.type, Form(kRows) * depth});
    unit_.out.open("for (int64_t lm_m0 = 0; lm_m0 < " + m_ + "; lm_m0 += " + std::to_string(kRows) + ")");
    unit_.out.line("const int64_t lm_left = " + m_ + " - lm_m0;");
    unit_.out.line("const " + element() + "* lm_rows[" + std::to_string(kRows) + "];");
    unit_.out.open("for (int lm_r = 0; lm_r < " + std::to_string(kRows) + "; ++lm_r)");
    unit_.out.line("const int64_t lm_m = lm_min_i64(lm_m0 + lm_r, " + m_ + " - 1);");
    const std::string stride = unit_.form_text(depth, {});
    const std::string name = unit_.raw_buffer_name(rows);
    unit_.out.line(element() + "* lm_row = " + name + " + lm_r * (" + stride + ");");
    unit_.out.line("lm_rows[lm_r] = lm_row;");
    unit_.out.open("for (int64_t lm_k = 0; lm_k < lm_kc; ++lm_k)");
    const Frame frame = at("lm_m", "0", "(lm_k0 + lm_k)");
    unit_.out.line("lm_row[lm_k] = " + unit_.load(g_.a.buffer, unit_.form_text(unit_.simplify(unit_.offset(g_.a.buffer, g_.a.coords)), frame)) + ";");
    unit_.out.close(2);
    unit_.out.open("for (int64_t lm_p = 0; lm_p * " + std::to_string(shape_.width) + " < " + n_ + "; ++lm_p)");
    one_tile();
    unit_.out.close(2);
  }

  // Rows lm_m0.., columns lm_p * width..; lm_left rows are left.
  void one_tile() {
    const std::string width = std::to_string(shape_.width), rows = std::to_string(kRows);
    const std::string n0 = "(lm_p * " + width + ")";
    unit_.out.line("const int64_t lm_columns = " + n_ + " - lm_p * " + width + ";");
    unit_.out.line(result() + "* lm_c = " + result_place(at("lm_m0", n0, "0")) + ";");
    const std::string ldc = unit_.form_text(shape_.c_step, {});
    if (shape_.right == Right::Rows) {
      const std::string ldb = unit_.form_text(shape_.b_step, {});
      unit_.out.line("const " + element() + "* lm_b = " + place(g_.b, at("0", n0, "lm_k0")) + ";");
      unit_.out.open("if (lm_left >= " + rows + " && lm_columns >= " + width + ")");
      unit_.out.line(tile_name() + "(lm_kc, lm_rows, lm_b, " + ldb + ", lm_c, " + ldc + ", lm_add);");
      unit_.out.otherwise();
      if (shape_.doubles) {
        unit_.out.line("lm_tile_edge_f64(lm_kc, lm_rows, lm_b, " + ldb + ", lm_c, " + ldc + ", lm_add, lm_min_i64(lm_left, " +
                       rows + "), lm_min_i64(lm_columns, " + width + "));");
        unit_.out.close();
        return;
      }
      unit_.out.open("for (int64_t lm_j = 0; lm_j < lm_columns && lm_j < " + width + "; lm_j += LM_LANES)");
      unit_.out.line("lm_tile_edge_f32(lm_kc, lm_rows, lm_b + lm_j, " + ldb + ", lm_c + lm_j, " + ldc +
                     ", lm_add, lm_min_i64(lm_left, " + rows + "), lm_min_i64(lm_columns - lm_j, LM_LANES));");
      unit_.out.close(2);
      return;
    }
    unit_.out.line("const " + element() + "* lm_b = (const " + element() + "*)(" + panel_place() + ");");
    if (!g_.taps.empty()) {
      const std::string call = "lm_taps_f32_" + width + "(lm_tc, lm_a_shift, lm_b_shift, lm_kc, lm_rows, lm_b, " + width;
      unit_.out.open("if (lm_left >= " + rows + " && lm_columns >= " + width + ")");
      unit_.out.line(call + ", lm_c, " + ldc + ", lm_add);");
      unit_.out.otherwise();
      unit_.out.line("LM_ALIGN float lm_t[" + rows + " * " + width + "];");
      unit_.out.line(call + ", lm_t, " + width + ", 0);");
      unit_.out.line("lm_take_tile(lm_t, " + width + ", lm_c, " + ldc + ", lm_min_i64(lm_left, " + rows +
                     "), lm_min_i64(lm_columns, " + width + "), lm_add);");
      unit_.out.close();
      return;
    }
    unit_.out.open("if (lm_left >= " + rows + " && lm_columns >= " + width + ")");
    const std::string ldb = std::to_string(shape_.panel);
    unit_.out.line(tile_name() + "(lm_kc, lm_rows, lm_b, " + ldb + ", lm_c, " + ldc + ", lm_add);");
    unit_.out.otherwise();
    unit_.out.line("LM_ALIGN " + result() + " lm_t[" + rows + " * " + width + "];");
    unit_.out.line(tile_name() + "(lm_kc, lm_rows, lm_b, " + ldb + ", lm_t, " + width + ", 0);");
    unit_.out.line(std::string(shape_.words ? "lm_take_words" : shape_.doubles ? "lm_take_doubles" : "lm_take_tile") + "(lm_t, " + width + ", lm_c, " + ldc + ", lm_min_i64(lm_left, " + rows +
                   "), lm_min_i64(lm_columns, " + width + "), lm_add);");
    unit_.out.close();
  }

  // Where the tile starts in its panel: the column is a multiple of the width and k of the interleave, so both divisions come out even.
  std::string panel_place() {
    const tile::Var p = unit_.add_variable("panel"), q = unit_.add_variable("depth");
    const int group = unit_.buffer(g_.b.buffer).layout.interleave;
    Access access = g_.b;
    for (Form& c : access.coords) {
      c = c.substitute_index(g_.n.var, Form::index(p) * Form(shape_.panel));
      c = c.substitute_index(g_.k.var, Form::index(q) * Form(group));
    }
    Frame frame;
    for (const tile::Range& t : g_.taps) frame.vars[t.var] = "0";
    const int tiles = shape_.panel / shape_.width;
    const std::string count = std::to_string(tiles);
    frame.vars[p] = tiles == 1 ? "lm_p" : "(lm_p / " + count + ")";
    frame.vars[q] = group == 1 ? "lm_k0" : "(lm_k0 / " + std::to_string(group) + ")";
    const std::string start = place(access, frame);
    return tiles == 1 ? start : start + " + lm_p % " + count + " * " + std::to_string(shape_.width);
  }

  Unit& unit_;
  const tile::Gemm& g_;
  const Shape& shape_;
  std::string m_, n_, k_;
};

}  // namespace

bool emit_register_tiles(Unit& unit, const tile::Gemm& gemm, std::string& reason) {
  for (const tile::Range* r : {&gemm.m, &gemm.n, &gemm.k}) note_range(unit, *r);
  const auto shape = match(unit, gemm, reason);
  if (!shape) return false;
  if (shape->widen && !bound(unit, gemm.k, gemm.a)) {
    reason = "the depth has no bound";
    return false;
  }
  const std::string width = std::to_string(shape->width), rows = std::to_string(kRows);
  if (!gemm.taps.empty()) {
    for (const tile::Range& t : gemm.taps) note_range(unit, t);
    unit.tiles.insert("LM_TAPS_F32(lm_taps_f32_" + width + ", " + rows + ", " + width + " / LM_LANES)");
  } else if (shape->words) {
    unit.tiles.insert("LM_TILE_I16(lm_tile_i16_" + width + ", " + rows + ", " + width + " / LM_LANES)");
  } else if (shape->pairs) {
    unit.tiles.insert("LM_TILE_BF16(lm_tile_bf16_" + width + ", " + rows + ", " + width + " / LM_LANES)");
  } else if (shape->doubles) {
    unit.tiles.insert("LM_TILE_F64(lm_tile_f64_" + width + ", " + rows + ", " + width + " / LM_DOUBLES)");
  } else {
    unit.tiles.insert("LM_TILE_F32(lm_tile_f32_" + width + ", " + rows + ", " + width + " / LM_LANES)");
    if (shape->right == Right::Rows) unit.tiles.insert("LM_TILE_EDGE_F32(lm_tile_edge_f32, " + rows + ")");
  }
  Tiles(unit, gemm, *shape).write();
  return true;
}

}  // namespace lemma::emit
