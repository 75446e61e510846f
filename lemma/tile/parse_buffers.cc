// Buffers, of the program and of blocks.
#include "lemma/layout/text.h"
#include "lemma/tile/parser.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using syntax::Token;
using syntax::TokenKind;
using view::Form;

// strides [K, 1]; panels 16 interleave 2 pad 8; layout swizzle 128; layout "..."; versions 2
Result<void> ProgramParser::buffer_options(Buffer& b) {
  while (cursor_.peek().kind == TokenKind::Name) {
    if (cursor_.take_word("strides")) {
      LEMMA_TRY(b.strides, forms());
    } else if (cursor_.take_word("in")) {
      LEMMA_TRY(b.low, form());
      LEMMA_TRY_VOID(cursor_.expect("..", "between the ends of the range"));
      LEMMA_TRY(b.high, form());
    } else if (cursor_.take_word("panels")) {
      b.layout.kind = LayoutKind::Panels;
      LEMMA_TRY(const int64_t width, integer("the width of a panel"));
      b.layout.width = int(width);
    } else if (cursor_.take_word("interleave")) {
      LEMMA_TRY(const int64_t interleave, integer("the interleave"));
      b.layout.interleave = int(interleave);
    } else if (cursor_.take_word("pad")) {
      LEMMA_TRY(const int64_t pad, integer("the pad"));
      b.layout.pad = int(pad);
    } else if (cursor_.take_word("versions")) {
      LEMMA_TRY(const int64_t versions, integer("the number of versions"));
      b.hints.versions = int(versions);
    } else if (cursor_.take_word("ring")) {
      b.hints.ring = true;
    } else if (cursor_.take_word("layout")) {
      const Token t = cursor_.peek();
      if (cursor_.take_word("swizzle")) {
        LEMMA_TRY(const int64_t swizzle, integer("the bytes of a row that are swizzled"));
        b.hints.swizzle = int(swizzle);
      } else if (t.kind == TokenKind::Name && t.quoted) {
        auto parsed = layout::parse(cursor_.next().text);
        if (!parsed) return source_.error(t.place, "the layout in quotes: " + parsed.error().message, "docs/layouts.md says how layouts are written");
        b.hints.placed = std::move(*parsed);
      } else {
        return cursor_.found("`swizzle` or a layout in quotes");
      }
    } else {
      return cursor_.found("strides, in, panels, interleave, pad, layout, ring or versions");
    }
  }
  return {};
}

// input a f32[M, K] strides [K, 1]; fragment acc, part f32[128, 64] = 0. With `allocs` the buffers come to life there,
// and a value after `=` becomes a map that fills them.
Result<void> ProgramParser::buffers(Space space, Block* allocs) {
  cursor_.next();
  do {
    std::vector<Token> names;
    do {
      LEMMA_TRY(const Token t, name("the buffer's name"));
      names.push_back(t);
    } while (cursor_.take(","));
    Buffer b;
    b.space = space;
    const Token type = cursor_.peek();
    const auto parsed = type.kind == TokenKind::Name ? scalar::parse_dtype(type.text) : std::nullopt;
    if (!parsed) return cursor_.found("the type of `" + names.back().text + "`");
    b.type = *parsed;
    cursor_.next();
    LEMMA_TRY(b.extents, forms());
    LEMMA_TRY_VOID(buffer_options(b));
    Expr value;
    const Token equals = cursor_.peek();
    if (cursor_.take("=")) {
      if (!allocs) return source_.error(equals.place, "a buffer of the program begins with a value", "only shared, fragment and local buffers do; write a kernel that fills it");
      LEMMA_TRY(value, expression(scalar::kind_of(b.type)));
    }
    for (const Token& t : names) {
      b.name = t.text;
      const int id = int(program_.buffers.size());
      LEMMA_TRY_VOID(declare(t, BufferName{id, false}));
      program_.buffers.push_back(b);
      if (!allocs) continue;
      allocs->push_back(Alloc{id});
      if (!value.valid()) continue;
      allocs->push_back(fill_of(program_, whole(id, program_), value));
    }
  } while (cursor_.take(","));
  return {};
}

}  // namespace lemma::tile
