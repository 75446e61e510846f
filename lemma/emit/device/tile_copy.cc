// Copies of whole tiles from global to shared memory.
#include <algorithm>

#include "lemma/emit/device/registers.h"

namespace lemma::emit::device {

using tile::Access;
using tile::Copy;
using view::AtomKind;
using view::Form;

namespace {

bool is_zero(scalar::Expr fill) { return fill.valid() && fill.is_const() && fill.payload() == 0; }

// The tile's rows and columns if the copy is one of a whole tile: memory runs along the last index of the box on both
// sides, and the sizes are powers of two.
std::optional<std::pair<int64_t, int64_t>> tile_of(const Text& text, const Copy& copy) {
  const tile::Buffer &from = text.buffer(copy.from.buffer), &to = text.buffer(copy.to.buffer);
  if (text.held.at(copy.to.buffer) != Held::Shared || text.held.at(copy.from.buffer) != Held::Global) return std::nullopt;
  if (from.type != to.type || scalar::bits(from.type) < 8 || from.type == scalar::DType::Bool || !from.strides.empty()) return std::nullopt;
  if (!is_zero(copy.fill) || !copy.from.guard.is_always() || !copy.to.guard.is_always()) return std::nullopt;
  if (copy.box.empty() || copy.box.size() > 2) return std::nullopt;
  std::pair<int64_t, int64_t> out{1, 0};
  for (size_t i = 0; i < copy.box.size(); ++i) {
    const auto n = copy.box[i].extent.constant();
    if (!n || !layout::is_power_of_two(*n)) return std::nullopt;
    (i + 1 == copy.box.size() ? out.second : out.first) = *n;
    // The target is numbered by the box.
    const size_t d = copy.to.coords.size() - copy.box.size() + i;
    if (copy.to.coords.size() < copy.box.size() || copy.to.coords[d].as_index() != copy.box[i].var) return std::nullopt;
    if (to.extents[d].constant() != *n) return std::nullopt;
  }
  // Only the last dimension of the source moves with the last index, one by one.
  const tile::Var last = copy.box.back().var;
  const std::vector<Form>& at = copy.from.coords;
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d].uses(AtomKind::Data)) return std::nullopt;
    const auto split = at[d].split(last);
    if (!split) return std::nullopt;
    const bool moves = !(split->coefficient == Form(0));
    if (moves != (d + 1 == at.size()) || (moves && !(split->coefficient == Form(1)))) return std::nullopt;
    if (d + 1 == at.size() && copy.box.size() == 2 && at[d].uses(AtomKind::Index, copy.box[0].var)) return std::nullopt;
  }
  return out;
}

}  // namespace

bool write_tile_copy(Text& text, const Copy& copy, Scope& outer) {
  const auto tile = tile_of(text, copy);
  if (!tile) return false;
  const auto [rows, columns] = *tile;
  const tile::Buffer& from = text.buffer(copy.from.buffer);
  const int64_t bytes = scalar::bits(from.type) / 8, vector = std::min<int64_t>(16 / bytes, columns);
  if (vector * bytes < 4) return false;
  const Form column = copy.from.coords.back().substitute_index(copy.box.back().var, Form(0));
  // Rows begin at whole vectors, and so does the tile: then a vector lies inside or outside as a whole.
  std::string aligned = text.form(from.extents.back(), outer) + " % " + std::to_string(vector) + " == 0 && " + text.form(column, outer) + " % " +
                        std::to_string(vector) + " == 0";
  text.test(aligned);
  const int64_t vectors = rows * columns / vector, along = columns / vector;
  const std::string t = text.fresh("t"), turn = text.fresh("t");
  text.out.line("LM_UNROLL");
  text.out.open("for (int " + turn + " = 0; " + turn + " < " + std::to_string((vectors + text.threads - 1) / text.threads) + "; ++" + turn + ")");
  text.define("int", t, "lm_tid + " + turn + " * " + std::to_string(text.threads));
  int opened = 2;
  if (vectors % text.threads) {
    text.test(t + " < " + std::to_string(vectors));
    ++opened;
  }
  Scope scope = outer;
  const std::string r = text.fresh("v"), c = text.fresh("v");
  text.define("int", r, t + " / " + std::to_string(along));
  text.define("int", c, t + " % " + std::to_string(along) + " * " + std::to_string(vector));
  if (copy.box.size() == 2) scope.vars[copy.box[0].var] = r;
  scope.vars[copy.box.back().var] = c;
  view::Formula inside;
  for (size_t d = 0; d < copy.from.coords.size(); ++d) inside = inside && view::Formula::within(copy.from.coords[d], from.extents[d]);
  const std::string there = text.fresh("p"), source = text.fresh("i");
  text.define("bool", there, text.condition(inside, scope));
  text.define(text.index_type(), source, "(" + there + " ? " + text.form(text.offset(copy.from.buffer, copy.from.coords), scope) + " : 0)");
  const std::string size = std::to_string(vector * bytes);
  text.out.line("lm_copy_async<" + size + ">(" + text.buffer_names.at(copy.to.buffer) + ", " + text.place(copy.to, scope) + ", " +
                text.buffer_names.at(copy.from.buffer) + ", " + source + ", " + there + " ? " + size + " : 0);");
  text.out.close(opened - 1);
  if (!copy.async) text.out.line("lm_copy_wait_all();");
  text.out.otherwise();
  return true;
}

}  // namespace lemma::emit::device
