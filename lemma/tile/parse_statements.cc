// Statements with bodies and forms of their own: let, if, for, copy, gemm, map.
#include <algorithm>

#include "lemma/tile/parser.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using syntax::NodeId;
using syntax::Place;
using syntax::Token;
using syntax::TokenKind;
using view::Form;
using view::Formula;

// let n = len[b], or a name for a part of a tile: let t = acc[.., c*64 +: 64].
Result<std::optional<Stmt>> ProgramParser::let(Pending& pending) {
  Let s;
  LEMMA_TRY(const Token t, name("a variable"));
  LEMMA_TRY_VOID(cursor_.expect("=", "after the variable"));
  if (at_region()) {
    close(pending);
    LEMMA_TRY(Region part, region("a tile"));
    LEMMA_TRY_VOID(declare(t, RegionName{std::move(part)}));
    return std::optional<Stmt>();
  }
  LEMMA_TRY(s.value, expression(Kind::I64));
  s.reads = std::move(pending.reads);
  close(pending);
  LEMMA_TRY(s.var, bind(t));
  return std::optional<Stmt>(std::move(s));
}

Result<Stmt> ProgramParser::branch(Pending& pending) {
  If s;
  LEMMA_TRY(s.condition, formula());
  s.reads = std::move(pending.reads);
  close(pending);
  LEMMA_TRY(s.then, block());
  if (cursor_.take_word("else")) {
    LEMMA_TRY(s.otherwise, block());
  }
  return Stmt(std::move(s));
}

Result<Stmt> ProgramParser::loop(Pending& pending, Place place) {
  For s;
  LEMMA_TRY(const Token t, name("a variable"));
  if (!cursor_.take_word("in")) return cursor_.found("`in` after the loop's variable");
  LEMMA_TRY(s.begin, expression(Kind::I64));
  LEMMA_TRY_VOID(cursor_.expect("..", "between the loop's bounds"));
  LEMMA_TRY(s.end, expression(Kind::I64));
  if (!pending.reads.empty()) return source_.error(place, "the bounds of a loop read a buffer", "read it by a let before");
  close(pending);
  const size_t mark = terms_.scope.mark();
  LEMMA_TRY(s.var, bind(t));
  LEMMA_TRY_VOID(loop_words(s));
  Placement own = placement_;
  LEMMA_TRY(s.body, block());
  placement_ = std::move(own);
  terms_.scope.release_keeping_buffers(mark);
  return Stmt(std::move(s));
}

// step 2, unrolled, serial, pipelined 3, where (j < 128) j <= k; commas between them may be left out.
Result<void> ProgramParser::loop_words(For& s) {
  while (!cursor_.peek().symbol("{")) {
    cursor_.take(",");
    const Token word = cursor_.peek();
    if (word.word("unrolled") || word.word("serial") || word.word("pipelined")) {
      const LoopKind kind = word.word("unrolled") ? LoopKind::Unrolled : word.word("serial") ? LoopKind::Serial : LoopKind::Pipelined;
      // `unrolled pipelined 2`: the copies of the turns overlap, which is what a pipeline says.
      s.kind = s.kind == LoopKind::Pipelined ? s.kind : kind;
      cursor_.next();
      if (kind == LoopKind::Pipelined) {
        LEMMA_TRY(const int64_t depth, integer("how many turns may be under way"));
        s.depth = int(depth);
      }
    } else if (cursor_.take_word("step")) {
      LEMMA_TRY(s.step, integer("the loop's step"));
    } else if (cursor_.take_word("where")) {
      LEMMA_TRY_VOID(loop_domain(s));
    } else if (word.word("stage") || word.word("order") || word.word("by")) {
      LEMMA_TRY_VOID(placement());
    } else {
      return cursor_.found("step, unrolled, serial, pipelined, where, stage, order or `{`");
    }
  }
  return {};
}

// where (j < 128, i < 64) jb*128 + j <= ib*64 + i: the points are the domain's own.
Result<void> ProgramParser::loop_domain(For& s) {
  const size_t mark = terms_.scope.mark();
  const Token first = cursor_.peek(1);
  if (cursor_.peek().symbol("(") && first.kind == TokenKind::Name && cursor_.peek(2).symbol("<") && !terms_.scope.find(first.text)) {
    LEMMA_TRY(s.points, ranges());
  }
  LEMMA_TRY(s.where, formula());
  terms_.scope.release(mark);
  return {};
}

Result<void> ProgramParser::alloc(Space space, Block& out) {
  if (space != Space::Shared && space != Space::Fragment && space != Space::Local) return cursor_.found("a shared, fragment or local buffer");
  return buffers(space, &out);
}

Result<Stmt> ProgramParser::copy() {
  Copy s;
  const bool explicit_form = cursor_.peek().symbol("(");
  if (explicit_form) {
    LEMMA_TRY(s.box, ranges());
    LEMMA_TRY(s.from, access());
    LEMMA_TRY_VOID(cursor_.expect("->", "before the target of the copy"));
    LEMMA_TRY(s.to, access());
  } else {
    LEMMA_TRY(const Region from, region("a tile to copy"));
    const Token arrow = cursor_.peek();
    LEMMA_TRY_VOID(cursor_.expect("->", "before the target of the copy"));
    LEMMA_TRY(const Region to, region("a tile to copy to"));
    LEMMA_TRY(s, copy_regions(arrow, from, to));
  }
  const Kind kind = scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type);
  if (cursor_.take_word("fill")) {
    LEMMA_TRY(s.fill, expression(kind));
  } else {
    s.fill = scalar::constant_bits(*program_.arena, kind, 0);
  }
  s.async = cursor_.take_word("async");
  LEMMA_TRY_VOID(placement());
  return Stmt(std::move(s));
}

Result<Stmt> ProgramParser::gemm() {
  Result<Stmt> out = Stmt(Gemm{});
  if (!cursor_.peek().symbol("(")) {
    out = gemm_regions();
    if (!out.ok()) return out;
  } else {
    Gemm s;
    LEMMA_TRY(std::vector<Range> all, ranges());
    if (all.size() < 3) return cursor_.found("three variables before a product: rows, columns and the summed one; then taps");
    s.m = all[0];
    s.n = all[1];
    s.k = all[2];
    s.taps.assign(all.begin() + 3, all.end());
    LEMMA_TRY(s.acc, access());
    if (cursor_.take("+=")) s.accumulate = true;
    else if (cursor_.take("=")) s.accumulate = false;
    else return cursor_.found("`=` or `+=` after the accumulator");
    LEMMA_TRY(const NodeId product, cursor_.expression());
    const syntax::Node node = tree_[product];
    if (node.kind != syntax::NodeKind::Chain || node.operators != std::vector<std::string>{"*"}) return terms_.error(product, "expected a product of two tiles, as in a[i, k] * b[k, j]");
    LEMMA_TRY(s.a, terms_.access(node.items[0]));
    LEMMA_TRY(s.b, terms_.access(node.items[1]));
    out = Stmt(std::move(s));
  }
  if (cursor_.take_word("team")) {
    Team& team = std::get<Gemm>(out.value()).team;
    if (cursor_.take_word("rows")) team = Team::Rows;
    else if (cursor_.take_word("columns")) team = Team::Columns;
    else if (cursor_.take_word("square")) team = Team::Square;
    else return cursor_.found("rows, columns or square");
  }
  LEMMA_TRY_VOID(placement());
  return out;
}

// `where` in the statement's head; an `else` after it is the statement's, not the domain's.
Result<void> ProgramParser::where_head(Formula& where) {
  static constexpr std::string_view kEnds[] = {"else", "stage", "order", "by"};
  if (!cursor_.take_word("where")) return {};
  const auto ends = cursor_.ends;
  cursor_.ends = kEnds;
  Result<Formula> f = formula();
  cursor_.ends = ends;
  if (!f.ok()) return f.error();
  where = *std::move(f);
  return {};
}

// Lines that any statement with points may begin with; false when none is left.
Result<bool> ProgramParser::point_line(Formula& where) {
  if (cursor_.peek().word("where")) {
    cursor_.next();
    LEMMA_TRY(const Formula f, formula());
    if (!where.is_always()) return cursor_.found("one domain only");
    where = f;
    return true;
  }
  in_points_ = true;
  Result<bool> taken = preamble();
  in_points_ = false;
  return taken;
}

void ProgramParser::open_reads(std::vector<Access>& reads) {
  terms_.reads = &reads;
  terms_.named_reads = 0;
}

// [combine op] c[i, j] = value, else other, if guard
Result<Store> ProgramParser::store() {
  Store s;
  const bool combine = cursor_.peek(1).kind == TokenKind::Name && cursor_.take_word("combine");
  if (combine) {
    LEMMA_TRY(const Token op, name("an operation to combine by"));
    static constexpr struct { std::string_view word; scalar::Op op; } kOps[] = {
        {"add", scalar::Op::Add}, {"mul", scalar::Op::Mul}, {"min", scalar::Op::Min}, {"max", scalar::Op::Max},
        {"and", scalar::Op::And}, {"or", scalar::Op::Or},   {"xor", scalar::Op::Xor}};
    const auto row = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& r) { return r.word == op.text; });
    if (row == std::end(kOps)) return source_.error(op.place, "found `" + op.text + "`, expected add, mul, min, max, and, or, xor");
    s.combine = row->op;
  }
  LEMMA_TRY(const NodeId to, cursor_.expression());
  LEMMA_TRY(s.to, terms_.access(to));
  LEMMA_TRY_VOID(store_value(s, combine));
  return s;
}

// = value, else other, if guard
Result<void> ProgramParser::store_value(Store& s, bool combine) {
  if (!combine && cursor_.take("+=")) s.combine = scalar::Op::Add;
  else LEMMA_TRY_VOID(cursor_.expect("=", "after the element that is written"));
  const Kind kind = scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type);
  LEMMA_TRY(s.value, expression(kind));
  while (cursor_.take(",")) {
    if (cursor_.take_word("else")) {
      LEMMA_TRY(s.otherwise, expression(kind));
    } else if (cursor_.take_word("if")) {
      LEMMA_TRY(s.to.guard, formula());
    } else {
      return cursor_.found("`else` or `if`");
    }
  }
  return {};
}

// map (i < n, j < m) where domain else 0 { stores }; one store needs no braces; map y = x * s runs over whole tiles.
Result<Stmt> ProgramParser::map() {
  if (!cursor_.peek().symbol("(")) return map_tiles();
  Map s;
  LEMMA_TRY(s.points, ranges());
  open_reads(s.reads);
  LEMMA_TRY_VOID(where_head(s.where));
  NodeId otherwise = -1;
  if (cursor_.take_word("else")) {
    LEMMA_TRY(otherwise, cursor_.expression());
  }
  LEMMA_TRY_VOID(placement());
  LEMMA_TRY_VOID(map_body(s));
  if (otherwise < 0) return Stmt(std::move(s));
  for (Store& store : s.stores) {
    if (store.otherwise.valid()) continue;
    if (store.combine) return terms_.error(otherwise, "this statement combines, and has an alternative off its domain", "leave the `else` of the head out");
    LEMMA_TRY(store.otherwise, terms_.expression(otherwise, scalar::kind_of(program_.buffers[size_t(store.to.buffer)].type)));
  }
  return Stmt(std::move(s));
}

Result<void> ProgramParser::map_body(Map& s) {
  if (!cursor_.take("{")) {
    if (cursor_.peek().kind != TokenKind::Name) return cursor_.found("`{` before the stores, or one store");
    Result<Store> one = store();
    if (!one.ok()) return one.error();
    s.stores.push_back(*std::move(one));
    return placement();
  }
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) return {};
    LEMMA_TRY(const bool taken, point_line(s.where));
    if (!taken) {
      Result<Store> one = store();
      if (!one.ok()) return one.error();
      s.stores.push_back(*std::move(one));
    }
    LEMMA_TRY_VOID(end_of_line());
  }
}

}  // namespace lemma::tile
