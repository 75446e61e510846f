// Copies of whole tiles from global to shared memory.
#include <algorithm>

#include "lemma/emit/device/registers.h"
#include "lemma/layout/bits.h"

namespace lemma::emit::device {

using tile::Access;
using tile::Copy;
using view::AtomKind;
using view::Form;

namespace {

bool is_zero(scalar::Expr fill) { return fill.valid() && fill.is_const() && fill.payload() == 0; }

// A copy of a whole tile: the target is the box itself, the source a box of its buffer, memory runs along the last index
// on both sides, and the sides are powers of two.
struct Tile {
  int64_t rows = 1, columns = 0;
  std::optional<size_t> row;      // the source's dimension that moves with the row; the last moves with the column
  std::vector<Form> begin;        // of the box, per dimension of the source
  std::vector<Form> most, least;  // of the guard: least <= row <= most
};

// A guard that bounds the row, or is the same for all of the box.
bool bound_rows(Tile& tile, const Copy& copy) {
  const view::Formula& guard = copy.from.guard;
  if (guard.is_always()) return true;
  if (guard.cases().size() != 1 || guard.uses(AtomKind::Data) || guard.uses(AtomKind::Index, copy.box.back().var) || copy.box.size() != 2) return false;
  for (const view::Constraint& k : guard.cases()[0]) {
    const auto split = k.form.split(copy.box[0].var);
    const auto by = split ? split->coefficient.constant() : std::nullopt;
    if (!by || k.relation != view::Relation::NonNegative || std::abs(*by) != 1) return false;
    if (*by < 0) tile.most.push_back(split->rest);
    else tile.least.push_back(-split->rest);
  }
  return true;
}

std::optional<Tile> tile_of(const Text& text, const Copy& copy) {
  const tile::Buffer &from = text.buffer(copy.from.buffer), &to = text.buffer(copy.to.buffer);
  if (text.held.at(copy.to.buffer) != Held::Shared || text.held.at(copy.from.buffer) != Held::Global) return std::nullopt;
  if (from.type != to.type || scalar::bits(from.type) < 8 || from.type == scalar::DType::Bool || !from.strides.empty()) return std::nullopt;
  if (!is_zero(copy.fill) || !copy.to.guard.is_always()) return std::nullopt;
  if (copy.box.empty() || copy.box.size() > 2 || copy.to.coords.size() < copy.box.size()) return std::nullopt;
  Tile out;
  for (size_t i = 0; i < copy.box.size(); ++i) {
    const auto n = copy.box[i].extent.constant();
    if (!n || !layout::is_power_of_two(*n)) return std::nullopt;
    (i + 1 == copy.box.size() ? out.columns : out.rows) = *n;
    const size_t d = copy.to.coords.size() - copy.box.size() + i;
    if (copy.to.coords[d].as_index() != copy.box[i].var || to.extents[d].constant() != *n) return std::nullopt;
  }
  const std::vector<Form>& at = copy.from.coords;
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d].uses(AtomKind::Data)) return std::nullopt;
    Form begin = at[d];
    for (size_t i = 0; i < copy.box.size(); ++i) {
      const auto split = begin.split(copy.box[i].var);
      if (!split) return std::nullopt;
      if (split->coefficient == Form(0)) continue;
      const bool last = i + 1 == copy.box.size();
      if (!(split->coefficient == Form(1)) || last != (d + 1 == at.size()) || (!last && out.row)) return std::nullopt;
      if (!last) out.row = d;
      begin = begin.substitute_index(copy.box[i].var, Form(0));
    }
    out.begin.push_back(begin);
  }
  if ((copy.box.size() == 2 && !out.row) || !bound_rows(out, copy)) return std::nullopt;
  if (!at.back().uses(AtomKind::Index, copy.box.back().var)) return std::nullopt;
  return out;
}

}  // namespace

// A thread copies the same columns of every so many rows. What rows and columns there are is known once for the block, and
// vectors lie inside or outside as a whole, since rows and the tile begin at multiples of them.
bool write_tile_copy(Text& text, const Copy& copy, Scope& scope) {
  const auto tile = tile_of(text, copy);
  if (!tile) return false;
  const tile::Buffer& from = text.buffer(copy.from.buffer);
  const int64_t bytes = scalar::bits(from.type) / 8, vector = std::min<int64_t>(16 / bytes, tile->columns), along = tile->columns / vector;
  const int64_t vectors = tile->rows * along, turns = std::max<int64_t>(1, vectors / text.threads);
  if (vector * bytes < 4 || text.threads % along || !layout::is_power_of_two(text.threads)) return false;
  const Dialect& d = text.dialect;
  const auto number = [](int64_t n) { return std::to_string(n); };
  const auto define = [&](std::string_view type, const std::string& stem, const std::string& value) {
    const std::string name = text.fresh(stem);
    text.define(type, name, value);
    return name;
  };
  // Rows and columns from the box's beginning that lie in the source; none where a dimension that stands still is outside.
  view::Formula fixed_inside;
  Form stride(0);
  for (size_t e = 0; e < tile->begin.size(); ++e) {
    if (e + 1 == tile->begin.size()) continue;
    if (tile->row == e) {
      stride = Form(1);
      for (size_t f = e + 1; f < from.extents.size(); ++f) stride = stride * from.extents[f];
    } else {
      fixed_inside = fixed_inside && view::Formula::within(tile->begin[e], from.extents[e]);
    }
  }
  const auto left = [&](size_t e) { return define(text.index_type(), "n", text.form(from.extents[e] - tile->begin[e], scope)); };
  const std::string columns_left = left(tile->begin.size() - 1);
  std::string rows_left = tile->row ? left(*tile->row) : "1";
  for (const Form& f : tile->most) {
    const std::string n = define(text.index_type(), "n", text.form(f + Form(1), scope));
    rows_left = define(text.index_type(), "n", n + " < " + rows_left + " ? " + n + " : " + rows_left);
  }
  const std::string column0 = define(text.index_type(), "n", text.form(tile->begin.back(), scope));
  std::string negative = column0 + " >= 0";
  if (tile->row) negative += " && " + text.form(tile->begin[*tile->row], scope) + " >= 0";
  const std::string stride_name = define(text.index_type(), "n", text.form(stride, scope));
  // Else element by element.
  text.test("((" + text.form(from.extents.back(), scope) + " | " + column0 + ") & " + number(vector - 1) + ") == 0 && " + negative + " && " + stride_name +
            " < 2147483648" + (d.id == DialectId::Cuda ? "ll" : ""));
  const std::string all = fixed_inside.is_always() ? "" : define("bool", "p", text.condition(fixed_inside, scope)) + " && ";
  const auto clamped = [&](const std::string& n, int64_t most) {
    return define("int", "n", "(int)(" + n + " < " + number(most) + " ? " + n + " : " + number(most) + ")");
  };
  const std::string columns = clamped(columns_left, tile->columns), rows = tile->row ? clamped(rows_left, tile->rows) : "1";
  std::string first_row;
  for (const Form& f : tile->least) {
    const std::string n = define(text.index_type(), "n", text.form(f, scope));
    const std::string cut = define("int", "n", "(int)(" + n + " > " + number(tile->rows) + " ? " + number(tile->rows) + " : " + n + " < 0 ? 0 : " + n + ")");
    first_row = first_row.empty() ? cut : define("int", "n", first_row + " > " + cut + " ? " + first_row + " : " + cut);
  }
  const std::string row = define("int", "v", "lm_tid / " + number(along)), column = define("int", "v", "lm_tid % " + number(along) + " * " + number(vector));
  const std::string inside = define("bool", "p", all + column + " < " + columns + (vectors < text.threads ? " && lm_tid < " + number(vectors) : ""));
  const std::string source = text.fresh("i");
  text.declare(text.index_type(), source, text.form(text.offset(copy.from.buffer, tile->begin), scope) + " + " + row + " * " + stride_name + " + " + column);
  // The place of the thread's first vector, and what a turn changes of it.
  const tile::Buffer& to = text.buffer(copy.to.buffer);
  std::vector<uint64_t> places;
  if (to.hints.placed) places = memory_columns(*to.hints.placed);
  else for (int64_t i = 1; i < tile->rows * tile->columns; i *= 2) places.push_back(uint64_t(i));
  std::vector<uint64_t> mine;
  for (int64_t i = 0; (int64_t(1) << i) < std::min<int64_t>(text.threads, vectors); ++i) mine.push_back(layout::combine(places, uint64_t(vector) << i));
  uint64_t mask = 0;
  for (uint64_t m : mine) mask |= m;
  const std::string own = define("int", "o", linear_text("lm_tid", mine));
  Access first = copy.to;
  for (size_t i = 0; i < copy.box.size(); ++i) first.coords[first.coords.size() - 1 - i] = Form(0);
  const std::string begin = define("int", "o", text.form(text.offset(copy.to.buffer, first.coords), scope));
  const std::string size = number(vector * bytes);
  if (vectors < text.threads) text.test("lm_tid < " + number(vectors));
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t down = turn * text.threads / along;
    const uint64_t place = layout::combine(places, uint64_t(turn * text.threads * vector)), flipped = place & mask, added = place & ~mask;
    const std::string at = begin + " + (" + own + " ^ " + std::to_string(flipped) + ") + " + std::to_string(added);
    const std::string there = inside + (tile->row ? " && " + row + " < " + rows + " - " + number(down) : "") +
                              (first_row.empty() ? "" : " && " + row + " >= " + first_row + " - " + number(down));
    text.out.line("lm_copy_async<" + size + ">(" + text.buffer_names.at(copy.to.buffer) + ", " + at + ", " + text.buffer_names.at(copy.from.buffer) + ", " +
                  source + " + " + number(down) + " * " + stride_name + ", " + there + " ? " + size + " : 0);");
  }
  if (vectors < text.threads) text.out.close();
  if (!copy.async) text.out.line("lm_copy_wait_all();");
  text.out.otherwise();
  return true;
}

}  // namespace lemma::emit::device
