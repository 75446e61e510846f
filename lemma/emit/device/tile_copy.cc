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

// A thread copies the same columns of every so many rows. What rows and columns there are is known once for the block, and
// vectors lie inside or outside as a whole, since rows and the tile begin at multiples of them.
class TileWriter {
 public:
  TileWriter(Text& text, const Copy& copy, const Tile& tile, Scope& scope)
      : text_(text), copy_(copy), tile_(tile), scope_(scope), from_(text.buffer(copy.from.buffer)), bytes_(scalar::bits(from_.type) / 8) {
    vector_ = std::min<int64_t>(16 / bytes_, tile.columns);
    along_ = tile.columns / vector_;
    vectors_ = tile.rows * along_;
  }

  bool fits() const { return vector_ * bytes_ >= 4 && text_.threads % along_ == 0 && layout::is_power_of_two(text_.threads); }

  // Opens a branch in which the copy is made; the caller goes on with what is done where it cannot be.
  void write() {
    const std::string columns_left = left(tile_.begin.size() - 1), rows_left = bounded_rows();
    stride_ = define(index(), "n", text_.form(row_stride(), scope_));
    text_.test(aligned());
    const std::string rows = tile_.row ? clamped(rows_left, tile_.rows) : "1", first = first_row();
    row_ = define("int", "v", "lm_tid / " + number(along_));
    const std::string column = define("int", "v", "lm_tid % " + number(along_) + " * " + number(vector_));
    inside_ = define("bool", "p", stands_inside() + column + " < " + clamped(columns_left, tile_.columns));
    source_ = define(index(), "i", text_.form(text_.offset(copy_.from.buffer, tile_.begin), scope_) + " + " + row_ + " * " + stride_ + " + " + column);
    if (vectors_ < text_.threads) text_.test("lm_tid < " + number(vectors_));
    write_vectors(rows, first);
    if (vectors_ < text_.threads) text_.out.close();
    if (!copy_.async) text_.out.line("lm_copy_wait_all();");
    text_.out.otherwise();
  }

 private:
  static std::string number(int64_t n) { return std::to_string(n); }
  std::string_view index() const { return text_.index_type(); }
  std::string define(std::string_view type, const std::string& stem, const std::string& value) {
    const std::string name = text_.fresh(stem);
    text_.define(type, name, value);
    return name;
  }
  std::string clamped(const std::string& n, int64_t most) {
    return define("int", "n", "(int)(" + n + " < 0 ? 0 : " + n + " < " + number(most) + " ? " + n + " : " + number(most) + ")");
  }

  // How many elements of a dimension lie behind the box's beginning.
  std::string left(size_t e) { return define(index(), "n", text_.form(from_.extents[e] - tile_.begin[e], scope_)); }

  std::string bounded_rows() {
    std::string out = tile_.row ? left(*tile_.row) : "1";
    for (const Form& f : tile_.most) {
      const std::string n = define(index(), "n", text_.form(f + Form(1), scope_));
      out = define(index(), "n", n + " < " + out + " ? " + n + " : " + out);
    }
    return out;
  }

  std::string first_row() {
    std::string out;
    for (const Form& f : tile_.least) {
      const std::string cut = clamped(define(index(), "n", text_.form(f, scope_)), tile_.rows);
      out = out.empty() ? cut : define("int", "n", out + " > " + cut + " ? " + out + " : " + cut);
    }
    return out;
  }

  Form row_stride() const {
    if (!tile_.row) return Form(0);
    Form out(1);
    for (size_t e = *tile_.row + 1; e < from_.extents.size(); ++e) out = out * from_.extents[e];
    return out;
  }

  std::string aligned() {
    const std::string column = define(index(), "n", text_.form(tile_.begin.back(), scope_));
    return "((" + text_.form(from_.extents.back(), scope_) + " | " + column + ") & " + number(vector_ - 1) + ") == 0 && " + column + " >= 0" +
           (tile_.row ? " && " + text_.form(tile_.begin[*tile_.row], scope_) + " >= 0" : "") + " && " + stride_ + " < " +
           index_literal(text_.dialect, int64_t(1) << 31);
  }

  // The dimensions that stand still.
  std::string stands_inside() {
    view::Formula all;
    for (size_t e = 0; e + 1 < tile_.begin.size(); ++e) {
      if (tile_.row != e) all = all && view::Formula::within(tile_.begin[e], from_.extents[e]);
    }
    return all.is_always() ? "" : define("bool", "p", text_.condition(all, scope_)) + " && ";
  }

  // The place of the thread's first vector is one variable; what a turn changes of it is known.
  void write_vectors(const std::string& rows, const std::string& first) {
    const tile::Buffer& to = text_.buffer(copy_.to.buffer);
    std::vector<uint64_t> places, mine;
    if (to.hints.placed) places = memory_columns(*to.hints.placed);
    else for (int64_t i = 1; i < tile_.rows * tile_.columns; i *= 2) places.push_back(uint64_t(i));
    uint64_t mask = 0;
    for (int64_t i = 0; (int64_t(1) << i) < std::min<int64_t>(text_.threads, vectors_); ++i) {
      mine.push_back(layout::combine(places, uint64_t(vector_) << i));
      mask |= mine.back();
    }
    const std::string own = define("int", "o", linear_text("lm_tid", mine));
    Access tile_begin = copy_.to;
    for (size_t i = 0; i < copy_.box.size(); ++i) tile_begin.coords[tile_begin.coords.size() - 1 - i] = Form(0);
    const std::string begin = define("int", "o", text_.form(text_.offset(copy_.to.buffer, tile_begin.coords), scope_)), size = number(vector_ * bytes_);
    for (int64_t turn = 0; turn < std::max<int64_t>(1, vectors_ / text_.threads); ++turn) {
      const int64_t down = turn * text_.threads / along_;
      const uint64_t place = layout::combine(places, uint64_t(turn * text_.threads * vector_));
      const std::string at = begin + " + (" + own + " ^ " + std::to_string(place & mask) + ") + " + std::to_string(place & ~mask);
      const std::string there = inside_ + (tile_.row ? " && " + row_ + " < " + rows + " - " + number(down) : "") +
                                (first.empty() ? "" : " && " + row_ + " >= " + first + " - " + number(down));
      text_.out.line("lm_copy_async<" + size + ">(" + text_.buffer_names.at(copy_.to.buffer) + ", " + at + ", " + text_.buffer_names.at(copy_.from.buffer) +
                     ", " + source_ + " + " + number(down) + " * " + stride_ + ", " + there + " ? " + size + " : 0);");
    }
  }

  Text& text_;
  const Copy& copy_;
  const Tile& tile_;
  Scope& scope_;
  const tile::Buffer& from_;
  int64_t bytes_, vector_ = 1, along_ = 1, vectors_ = 1;  // vectors in a row and in the tile
  std::string stride_, row_, inside_, source_;
};

}  // namespace

bool write_tile_copy(Text& text, const Copy& copy, Scope& scope) {
  const auto tile = tile_of(text, copy);
  if (!tile) return false;
  TileWriter writer(text, copy, *tile, scope);
  if (!writer.fits()) return false;
  writer.write();
  return true;
}

}  // namespace lemma::emit::device
