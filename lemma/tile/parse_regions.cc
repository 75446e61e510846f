// Tiles and parts of them by name, and the statements over whole ones (see regions.h).
#include <algorithm>

#include "lemma/tile/parser.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using syntax::NodeId;
using syntax::Token;
using syntax::TokenKind;
using view::Form;

// After `let t =`: a tile's name alone, or one with `..` or `+:` in its brackets; anything else is a value.
bool ProgramParser::at_region() const {
  const Token& t = cursor_.peek();
  const Meaning* m = t.kind == TokenKind::Name ? terms_.scope.find(t.text) : nullptr;
  if (!m || !(std::holds_alternative<BufferName>(*m) || std::holds_alternative<RegionName>(*m))) return false;
  if (!cursor_.peek(1).symbol("[")) return true;
  int depth = 0;
  for (size_t i = 1;; ++i) {
    const Token& at = cursor_.peek(i);
    if (at.kind == TokenKind::End || at.kind == TokenKind::Separator) return false;
    if (at.symbol("[") || at.symbol("(")) ++depth;
    if (at.symbol("]") || at.symbol(")")) --depth;
    if (depth == 0) return false;
    if (depth == 1 && (at.symbol("+:") || at.symbol(".."))) return true;
  }
}

// In brackets, for each axis: `..` all of it, `start +: extent` a part, a position alone: the axis goes.
Result<void> ProgramParser::region_part(const Token& name, Region& r) {
  std::vector<RegionAxis> kept;
  size_t found = 0;
  while (!cursor_.take("]")) {
    if (found == r.axes.size()) return source_.error(name.place, "`" + name.text + "` has " + std::to_string(r.axes.size()) + " dimensions, found more");
    RegionAxis axis = r.axes[found++];
    if (cursor_.take("..")) {
      kept.push_back(std::move(axis));
    } else {
      LEMMA_TRY(const Form start, form());
      r.base[size_t(axis.dimension)] = r.base[size_t(axis.dimension)] + start;
      if (cursor_.take("+:")) {
        LEMMA_TRY(axis.extent, form());
        axis.stated = true;
        kept.push_back(std::move(axis));
      }
    }
    if (cursor_.peek().symbol("]")) continue;
    LEMMA_TRY_VOID(cursor_.expect(",", "between the dimensions of a region"));
  }
  if (found != r.axes.size()) return source_.error(name.place, "`" + name.text + "` has " + std::to_string(r.axes.size()) + " dimensions, found " + std::to_string(found), "write `..` for all of a dimension");
  r.axes = std::move(kept);
  return {};
}

// as, a[y*128 +: 128, ..], t^T
Result<Region> ProgramParser::region(const std::string& what) {
  LEMMA_TRY(const Token t, name(what));
  const Meaning* m = terms_.scope.find(t.text);
  const auto* buffer = m ? std::get_if<BufferName>(m) : nullptr;
  const auto* part = m ? std::get_if<RegionName>(m) : nullptr;
  if (!buffer && !part) {
    const std::string near = syntax::nearest(t.text, terms_.scope.names());
    return source_.error(t.place, m ? "`" + t.text + "` is not a tile" : "found the unknown name `" + t.text + "`, expected " + what,
                         near.empty() || m ? "" : "did you mean `" + near + "`?");
  }
  Region out = part ? part->region : whole(buffer->buffer, program_);
  auto* reads = terms_.reads;
  terms_.reads = nullptr;
  if (cursor_.take("[")) LEMMA_TRY_VOID(region_part(t, out));
  terms_.reads = reads;
  while (cursor_.take("^")) {
    if (!cursor_.take_word("T")) return cursor_.found("`T`: a tile is transposed by ^T");
    if (out.axes.size() < 2) return source_.error(t.place, "`" + t.text + "` is transposed and has " + std::to_string(out.axes.size()) + " dimensions, at least 2 are needed");
    out = transposed(std::move(out));
  }
  return out;
}

Result<Copy> ProgramParser::copy_regions(const Token& at, const Region& from, const Region& to) {
  Result<Copy> out = copy_of(program_, from, to);
  if (!out.ok()) return source_.error(at.place, out.error().message, out.error().suggestion);
  return out;
}

// gemm acc += as * bs^T
Result<Stmt> ProgramParser::gemm_regions() {
  const Token at = cursor_.peek();
  LEMMA_TRY(const Region acc, region("the accumulator of a product"));
  const bool accumulate = cursor_.take("+=");
  if (!accumulate && !cursor_.take("=")) return cursor_.found("`=` or `+=` after the accumulator");
  LEMMA_TRY(const Region a, region("the left operand of a product"));
  LEMMA_TRY_VOID(cursor_.expect("*", "between the operands of a product"));
  LEMMA_TRY(const Region b, region("the right operand of a product"));
  Result<Gemm> out = gemm_of(program_, acc, a, b, accumulate);
  if (!out.ok()) return source_.error(at.place, out.error().message, out.error().suggestion);
  return Stmt(*std::move(out));
}

// map y = x * s: over every element of y; a tile's name in the value is its element there.
Result<Stmt> ProgramParser::map_tiles() {
  Map s;
  LEMMA_TRY(const Region to, region("a tile to write"));
  std::vector<Form> extents;
  for (const RegionAxis& axis : to.axes) extents.push_back(axis.extent);
  const std::vector<Form> positions = fresh_points(program_, extents, s.points);
  open_reads(s.reads);
  terms_.element = &positions;
  terms_.written = &to;
  Store store;
  store.to = to.at(positions);
  const Result<void> done = store_value(store, false);
  terms_.element = nullptr;
  terms_.written = nullptr;
  if (!done.ok()) return done.error();
  s.stores.push_back(std::move(store));
  LEMMA_TRY_VOID(placement());
  return Stmt(std::move(s));
}

}  // namespace lemma::tile
