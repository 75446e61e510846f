// Statements over whole tiles and parts of them: a part's own positions become the statement's variables, so that what
// follows is the explicit form.
//
//     copy a[y*128 +: 128, k*64 +: 64] -> as   =>   copy (i < 128, j < 64) a[y*128 + i, k*64 + j] -> as[i, j]
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

namespace {

bool is_global(Space s) { return s == Space::Input || s == Space::Output || s == Space::Update || s == Space::Scratch; }

}  // namespace

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
    std::swap(out.axes[out.axes.size() - 1], out.axes[out.axes.size() - 2]);
  }
  return out;
}

Result<std::vector<Form>> ProgramParser::fresh_points(const std::vector<Form>& extents, std::vector<Range>& out) {
  static constexpr const char* kNames[] = {"i", "j", "k", "l"};
  std::vector<Form> positions;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Var v = Var(program_.variables.size());
    program_.variables.push_back(i < std::size(kNames) ? kNames[i] : "i" + std::to_string(i));
    out.push_back({v, extents[i]});
    positions.push_back(Form::index(v));
  }
  return positions;
}

// The extent that axis i of `a` and axis j of `b` share. A global buffer's whole dimension follows the other side.
Result<Form> ProgramParser::common(const Token& at, const char* what, const Region& a, size_t i, const Region& b, size_t j) const {
  const RegionAxis& x = a.axes[i];
  const RegionAxis& y = b.axes[j];
  if (x.extent == y.extent) return x.extent;
  const Buffer& left = program_.buffers[size_t(a.buffer)];
  const Buffer& right = program_.buffers[size_t(b.buffer)];
  const bool x_follows = !x.stated && is_global(left.space), y_follows = !y.stated && is_global(right.space);
  if (x_follows && !y_follows) return y.extent;
  if (y_follows && !x_follows) return x.extent;
  view::Names names;
  names.index = [this](int v) { return program_.variables[size_t(v)]; };
  names.size = [this](int s) { return program_.sizes[size_t(s)].name; };
  names.data = [](int) { return std::string("?"); };
  return source_.error(at.place, std::string(what) + ": `" + left.name + "` has the extent " + view::print(x.extent, names) + " there, `" + right.name + "` " + view::print(y.extent, names),
                       "state the part: `start +: extent`");
}

Result<Copy> ProgramParser::copy_regions(const Token& at, const Region& from, const Region& to) {
  if (from.axes.size() != to.axes.size()) {
    return source_.error(at.place, "the source has " + std::to_string(from.axes.size()) + " dimensions, the target " + std::to_string(to.axes.size()),
                         "a position alone, as in x[b, 0 +: 64], leaves a dimension out");
  }
  Copy s;
  std::vector<Form> extents;
  for (size_t i = 0; i < from.axes.size(); ++i) {
    LEMMA_TRY(Form extent, common(at, ("the two sides disagree in dimension " + std::to_string(i)).c_str(), from, i, to, i));
    extents.push_back(std::move(extent));
  }
  LEMMA_TRY(const std::vector<Form> positions, fresh_points(extents, s.box));
  s.from = from.at(positions);
  s.to = to.at(positions);
  return s;
}

// gemm acc += as * bs^T
Result<Stmt> ProgramParser::gemm_regions() {
  Gemm s;
  const Token at = cursor_.peek();
  LEMMA_TRY(const Region acc, region("the accumulator of a product"));
  if (cursor_.take("+=")) s.accumulate = true;
  else if (cursor_.take("=")) s.accumulate = false;
  else return cursor_.found("`=` or `+=` after the accumulator");
  LEMMA_TRY(const Region a, region("the left operand of a product"));
  LEMMA_TRY_VOID(cursor_.expect("*", "between the operands of a product"));
  LEMMA_TRY(const Region b, region("the right operand of a product"));
  for (const Region* r : {&acc, &a, &b}) {
    if (r->axes.size() != 2) return source_.error(at.place, "`" + program_.buffers[size_t(r->buffer)].name + "` has " + std::to_string(r->axes.size()) + " dimensions here, and a product is of matrices", "take a part with two: x[b, .., ..]");
  }
  LEMMA_TRY(const Form m, common(at, "the rows disagree", acc, 0, a, 0));
  LEMMA_TRY(const Form n, common(at, "the columns disagree", acc, 1, b, 1));
  LEMMA_TRY(const Form k, common(at, "the summed dimension disagrees", a, 1, b, 0));
  std::vector<Range> all;
  LEMMA_TRY(const std::vector<Form> p, fresh_points({m, n, k}, all));
  s.m = all[0];
  s.n = all[1];
  s.k = all[2];
  s.acc = acc.at({p[0], p[1]});
  s.a = a.at({p[0], p[2]});
  s.b = b.at({p[2], p[1]});
  return Stmt(std::move(s));
}

// map y = x * s: over every element of y; a tile's name in the value is its element there.
Result<Stmt> ProgramParser::map_tiles() {
  Map s;
  LEMMA_TRY(const Region to, region("a tile to write"));
  std::vector<Form> extents;
  for (const RegionAxis& axis : to.axes) extents.push_back(axis.extent);
  LEMMA_TRY(const std::vector<Form> positions, fresh_points(extents, s.points));
  open_reads(s.reads);
  terms_.element = &positions;
  Store store;
  store.to = to.at(positions);
  const Result<void> done = store_value(store, false);
  terms_.element = nullptr;
  if (!done.ok()) return done.error();
  s.stores.push_back(std::move(store));
  LEMMA_TRY_VOID(placement());
  return Stmt(std::move(s));
}

}  // namespace lemma::tile
