// The statements of a tile program's text. The grammar is docs/tile.md's; surface expressions are syntax's.
#include "lemma/tile/parse.h"

#include <algorithm>
#include <charconv>

#include "lemma/tile/edit.h"
#include "lemma/tile/monoid_text.h"
#include "lemma/tile/names.h"
#include "lemma/tile/parse_terms.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {
namespace {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using syntax::NodeId;
using syntax::Place;
using syntax::Token;
using syntax::TokenKind;
using view::Form;
using view::Formula;

std::optional<Space> parse_space(const Token& t) {
  static constexpr struct { std::string_view word; Space space; } kSpaces[] = {
      {"input", Space::Input},   {"output", Space::Output},     {"update", Space::Update}, {"scratch", Space::Scratch},
      {"shared", Space::Shared}, {"fragment", Space::Fragment}, {"local", Space::Local}};
  for (const auto& row : kSpaces) {
    if (t.word(row.word)) return row.space;
  }
  return std::nullopt;
}

class ProgramParser {
 public:
  ProgramParser(const syntax::Source& source, const std::vector<Token>& tokens)
      : source_(source), cursor_(source, tokens, tree_), terms_(source, tree_, program_) {
    terms_.arena = program_.arena.get();
  }

  Result<Program> run() {
    cursor_.skip_separators();
    if (!cursor_.take_word("program")) return cursor_.found("`program`");
    if (cursor_.peek().kind == TokenKind::Name) program_.name = cursor_.next().text;
    LEMMA_TRY_VOID(cursor_.expect("{", "after the program's name"));
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      LEMMA_TRY_VOID(top_level());
      LEMMA_TRY_VOID(end_of_line());
    }
    cursor_.skip_separators();
    if (cursor_.peek().kind != TokenKind::End) return cursor_.found("the end of the text after the program");
    LEMMA_TRY_VOID(validate(program_));
    return std::move(program_);
  }

 private:
  // ---- names and terms ----

  Result<Token> name(const std::string& what) { return cursor_.expect_name(what); }

  Result<void> declare(const Token& token, Meaning meaning) {
    if (!token.quoted && is_reserved(token.text)) return source_.error(token.place, "the word `" + token.text + "` is not free to be a name");
    terms_.scope.remove_dormant(token.text);
    if (terms_.scope.add(token.text, std::move(meaning))) return {};
    return source_.error(token.place, "the name `" + token.text + "` is taken", "choose another name: nothing shadows");
  }

  Result<Var> bind(const Token& token) {
    const Var v = Var(program_.variables.size());
    LEMMA_TRY_VOID(declare(token, VariableName{v}));
    program_.variables.push_back(token.text);
    return v;
  }

  Result<Form> form() {
    LEMMA_TRY(const NodeId id, cursor_.expression());
    return terms_.form(id);
  }
  Result<Formula> formula() {
    LEMMA_TRY(const NodeId id, cursor_.expression());
    return terms_.formula(id);
  }
  Result<Expr> expression(Kind kind) {
    LEMMA_TRY(const NodeId id, cursor_.expression());
    return terms_.expression(id, kind);
  }

  // a[i, j] if guard
  Result<Access> access() {
    LEMMA_TRY(const NodeId id, cursor_.expression());
    LEMMA_TRY(Access out, terms_.access(id));
    if (cursor_.take_word("if")) {
      LEMMA_TRY(out.guard, formula());
    }
    return out;
  }

  Result<std::vector<Form>> forms() {
    std::vector<Form> out;
    LEMMA_TRY_VOID(cursor_.expect("[", "before the extents"));
    if (cursor_.take("]")) return out;
    while (true) {
      LEMMA_TRY(Form f, form());
      out.push_back(std::move(f));
      if (!cursor_.take(",")) break;
    }
    LEMMA_TRY_VOID(cursor_.expect("]", "after the extents"));
    return out;
  }

  Result<int64_t> integer(const std::string& what) {
    const Token t = cursor_.peek();
    if (t.kind != TokenKind::Integer || t.oversized || uint64_t(t.integer) > (uint64_t(1) << 30)) return cursor_.found(what + ", an integer of at most 2^30");
    cursor_.next();
    return int64_t(t.integer);
  }

  Result<std::string> message() {
    std::string out;
    if (!cursor_.take(":")) return out;
    const Token t = cursor_.peek();
    if (t.kind != TokenKind::Name || !t.quoted) return cursor_.found("a message in quotes");
    cursor_.next();
    return t.text;
  }

  Result<void> end_of_line() {
    const Token& t = cursor_.peek();
    if (t.kind == TokenKind::Separator || t.kind == TokenKind::End || t.symbol("}")) return {};
    return cursor_.found("the end of the line");
  }

  // The reads and definitions written before a block-level statement; they are its alone.
  struct Pending {
    std::vector<Access> reads;
    size_t mark = 0;
  };

  void open(Pending& p) {
    p.mark = terms_.scope.mark();
    terms_.reads = &p.reads;
    terms_.named_reads = 0;
  }
  void close(Pending& p) {
    terms_.scope.release(p.mark);
    terms_.reads = nullptr;
  }

  // `read r = a[i] if guard` and `def t = value`; false for any other line.
  Result<bool> preamble() {
    if (cursor_.peek(1).kind != TokenKind::Name) return false;
    if (cursor_.take_word("read")) {
      if (!terms_.reads) return cursor_.found("no read here");
      LEMMA_TRY(const Token t, name("the name of the read"));
      LEMMA_TRY_VOID(cursor_.expect("=", "after the read's name"));
      if (terms_.reads->size() != terms_.named_reads) return source_.error(t.place, "a named read stands after one that an expression made", "name the reads first");
      LEMMA_TRY(Access a, access());
      if (terms_.reads->size() != terms_.named_reads) return source_.error(t.place, "the coordinates of a named read make a read themselves", "give that read a name and a line before this one");
      terms_.reads->push_back(std::move(a));
      terms_.named_reads = terms_.reads->size();
      LEMMA_TRY_VOID(declare(t, ReadName{int(terms_.named_reads) - 1}));
      return true;
    }
    if (cursor_.take_word("def")) {
      LEMMA_TRY(const Token t, name("the name of the definition"));
      LEMMA_TRY_VOID(cursor_.expect("=", "after the definition's name"));
      LEMMA_TRY(const NodeId id, cursor_.expression());
      LEMMA_TRY(const Expr e, terms_.expression(id));
      LEMMA_TRY_VOID(declare(t, DefinitionName{e}));
      return true;
    }
    return false;
  }

  Result<void> preambles() {
    while (true) {
      cursor_.skip_separators();
      LEMMA_TRY(const bool more, preamble());
      if (!more) return {};
      LEMMA_TRY_VOID(end_of_line());
    }
  }

  // (i < N, j < M): extents are over outer names, so all are read before any is bound.
  Result<std::vector<Range>> ranges() {
    LEMMA_TRY_VOID(cursor_.expect("(", "before the variables"));
    std::vector<Range> out;
    std::vector<Token> names;
    while (!cursor_.take(")")) {
      LEMMA_TRY(const Token t, name("a variable"));
      LEMMA_TRY_VOID(cursor_.expect("<", "after the variable"));
      LEMMA_TRY(Form f, form());
      names.push_back(t);
      out.push_back({-1, std::move(f)});
      if (cursor_.peek().symbol(")")) continue;
      LEMMA_TRY_VOID(cursor_.expect(",", "between variables"));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      LEMMA_TRY(out[i].var, bind(names[i]));
    }
    return out;
  }

  // ---- the program's own lines ----

  Result<void> top_level() {
    Pending pending;
    open(pending);
    LEMMA_TRY_VOID(preambles());
    const Token head = cursor_.peek();
    if (cursor_.take_word("kernel")) {
      if (!pending.reads.empty()) return source_.error(head.place, "a read stands before a kernel");
      close(pending);
      return kernel();
    }
    if (cursor_.take_word("size")) return size(pending);
    if (cursor_.take_word("require")) {
      Assert a;
      LEMMA_TRY(a.condition, formula());
      LEMMA_TRY(a.message, message());
      a.reads = std::move(pending.reads);
      close(pending);
      program_.requirements.push_back(std::move(a));
      return {};
    }
    close(pending);
    if (cursor_.take_word("monoid")) return monoid();
    const bool unused = cursor_.take_word("unused");
    if (const auto space = parse_space(cursor_.peek())) {
      const bool local = *space == Space::Shared || *space == Space::Fragment || *space == Space::Local;
      if (local != unused) return cursor_.found(unused ? "a shared, fragment or local buffer" : "input, output, update or scratch");
      return buffer(*space);
    }
    return cursor_.found("size, require, monoid, a buffer or a kernel");
  }

  Result<void> size(Pending& pending) {
    LEMMA_TRY(const Token t, name("the size's name"));
    SizeDecl decl{t.text, {}};
    if (cursor_.take("=")) {
      LEMMA_TRY(decl.definition, expression(Kind::I64));
    }
    if (!pending.reads.empty()) return source_.error(t.place, "a size cannot read a buffer");
    close(pending);
    const bool plain = !decl.definition.valid();
    LEMMA_TRY_VOID(declare(t, SizeName{int(program_.sizes.size())}));
    program_.sizes.push_back(std::move(decl));
    while (plain && cursor_.take(",")) {  // size M, N, K
      LEMMA_TRY(const Token next, name("the size's name"));
      LEMMA_TRY_VOID(declare(next, SizeName{int(program_.sizes.size())}));
      program_.sizes.push_back({next.text, {}});
    }
    return {};
  }

  // input a f32[M, K] strides [K, 1]; shared as f16[128, 64] panels 16 interleave 2 pad 8
  Result<void> buffer(Space space) {
    cursor_.next();
    Buffer b;
    b.space = space;
    LEMMA_TRY(const Token t, name("the buffer's name"));
    b.name = t.text;
    const Token type = cursor_.peek();
    const auto parsed = type.kind == TokenKind::Name ? scalar::parse_dtype(type.text) : std::nullopt;
    if (!parsed) return cursor_.found("the type of `" + b.name + "`");
    b.type = *parsed;
    cursor_.next();
    LEMMA_TRY(b.extents, forms());
    while (cursor_.peek().kind == TokenKind::Name) {
      if (cursor_.take_word("strides")) {
        LEMMA_TRY(b.strides, forms());
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
      } else {
        return cursor_.found("strides, panels, interleave or pad");
      }
    }
    LEMMA_TRY_VOID(declare(t, BufferName{int(program_.buffers.size()), false}));
    program_.buffers.push_back(std::move(b));
    return {};
  }

  Result<void> kernel() {
    const size_t mark = terms_.scope.mark();
    Kernel k;
    LEMMA_TRY(const Token t, name("the kernel's name"));
    k.name = t.text;
    if (cursor_.take_word("grid")) {
      LEMMA_TRY_VOID(cursor_.expect("(", "before the grid's variables"));
      std::vector<Token> names;
      while (!cursor_.take(")")) {
        GridLoop g;
        g.descending = cursor_.peek(1).kind == TokenKind::Name && cursor_.take_word("descending");
        LEMMA_TRY(const Token v, name("a variable"));
        LEMMA_TRY_VOID(cursor_.expect("<", "after the variable"));
        LEMMA_TRY(g.extent, form());
        names.push_back(v);
        k.grid.push_back(std::move(g));
        if (cursor_.peek().symbol(")")) continue;
        LEMMA_TRY_VOID(cursor_.expect(",", "between variables"));
      }
      for (size_t i = 0; i < k.grid.size(); ++i) {
        LEMMA_TRY(k.grid[i].var, bind(names[i]));
      }
    }
    LEMMA_TRY(k.body, block());
    terms_.scope.release_keeping_buffers(mark);
    program_.kernels.push_back(std::move(k));
    return {};
  }

  // ---- statements ----

  Result<Block> block() {
    if (++depth_ > kMaxNesting) return cursor_.found("at most " + std::to_string(kMaxNesting) + " blocks inside each other");
    LEMMA_TRY_VOID(cursor_.expect("{", "before the statements"));
    const size_t mark = terms_.scope.mark();
    Block out;
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      Result<Stmt> stmt = statement();
      if (!stmt.ok()) return stmt.error();
      out.push_back(*std::move(stmt));
      LEMMA_TRY_VOID(end_of_line());
    }
    terms_.scope.release_keeping_buffers(mark);
    --depth_;
    return out;
  }

  Result<Stmt> statement() {
    Pending pending;
    open(pending);
    LEMMA_TRY_VOID(preambles());
    const Token head = cursor_.peek();
    if (cursor_.take_word("let")) return let(pending);
    if (cursor_.take_word("if")) return branch(pending);
    if (cursor_.take_word("for")) return loop(pending, head.place);
    if (cursor_.take_word("assert")) {
      Assert a;
      LEMMA_TRY(a.condition, formula());
      LEMMA_TRY(a.message, message());
      a.reads = std::move(pending.reads);
      close(pending);
      return Stmt(std::move(a));
    }
    if (terms_.scope.mark() != pending.mark) return source_.error(head.place, "found " + syntax::describe(head) + " after a read or a definition, expected let, if, for or assert", "write reads and definitions of other statements inside their braces");
    close(pending);
    if (const auto space = parse_space(head)) return alloc(*space);
    if (cursor_.take_word("alloc")) {
      LEMMA_TRY(const Token t, name("a buffer"));
      const Meaning* m = terms_.scope.find(t.text);
      if (!m || !std::get_if<BufferName>(m)) return source_.error(t.place, "`" + t.text + "` is not a buffer declared before");
      return Stmt(Alloc{std::get<BufferName>(*m).buffer});
    }
    const size_t mark = terms_.scope.mark();
    Result<Stmt> out = Stmt(Alloc{});
    if (cursor_.take_word("copy")) out = copy();
    else if (cursor_.take_word("gemm")) out = gemm();
    else if (cursor_.take_word("map")) out = map();
    else if (cursor_.take_word("reduce")) out = reduce();
    else if (cursor_.take_word("scan")) out = scan();
    else return cursor_.found("a statement: let, copy, map, reduce, scan, gemm, for, if, assert or a buffer");
    terms_.scope.release(mark);
    terms_.reads = nullptr;
    return out;
  }

  Result<Stmt> let(Pending& pending) {
    Let s;
    LEMMA_TRY(const Token t, name("a variable"));
    LEMMA_TRY_VOID(cursor_.expect("=", "after the variable"));
    LEMMA_TRY(s.value, expression(Kind::I64));
    s.reads = std::move(pending.reads);
    close(pending);
    LEMMA_TRY(s.var, bind(t));
    return Stmt(std::move(s));
  }

  Result<Stmt> branch(Pending& pending) {
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

  Result<Stmt> loop(Pending& pending, Place place) {
    For s;
    LEMMA_TRY(const Token t, name("a variable"));
    if (!cursor_.take_word("in")) return cursor_.found("`in` after the loop's variable");
    LEMMA_TRY(s.begin, expression(Kind::I64));
    LEMMA_TRY_VOID(cursor_.expect("..", "between the loop's bounds"));
    LEMMA_TRY(s.end, expression(Kind::I64));
    while (cursor_.take(",")) {
      if (cursor_.take_word("unrolled")) {
        s.kind = LoopKind::Unrolled;
      } else if (cursor_.take_word("step")) {
        LEMMA_TRY(s.step, integer("the loop's step"));
      } else {
        return cursor_.found("step or unrolled");
      }
    }
    if (!pending.reads.empty()) return source_.error(place, "the bounds of a loop read a buffer", "read it by a let before");
    close(pending);
    const size_t mark = terms_.scope.mark();
    LEMMA_TRY(s.var, bind(t));
    LEMMA_TRY(s.body, block());
    terms_.scope.release_keeping_buffers(mark);
    return Stmt(std::move(s));
  }

  Result<Stmt> alloc(Space space) {
    if (space != Space::Shared && space != Space::Fragment && space != Space::Local) return cursor_.found("a shared, fragment or local buffer");
    LEMMA_TRY_VOID(buffer(space));
    return Stmt(Alloc{int(program_.buffers.size()) - 1});
  }

  Result<Stmt> copy() {
    Copy s;
    LEMMA_TRY(s.box, ranges());
    LEMMA_TRY(s.from, access());
    LEMMA_TRY_VOID(cursor_.expect("->", "before the target of the copy"));
    LEMMA_TRY(s.to, access());
    const Kind kind = scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type);
    if (cursor_.take_word("fill")) {
      LEMMA_TRY(s.fill, expression(kind));
    } else {
      s.fill = scalar::constant_bits(*program_.arena, kind, 0);
    }
    return Stmt(std::move(s));
  }

  Result<Stmt> gemm() {
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
    return Stmt(std::move(s));
  }

  // `where` in the statement's head.
  Result<void> where_head(Formula& where) {
    if (!cursor_.take_word("where")) return {};
    LEMMA_TRY(where, formula());
    return {};
  }

  // Lines that any statement with points may begin with; false when none is left.
  Result<bool> point_line(Formula& where) {
    if (cursor_.peek().word("where")) {
      cursor_.next();
      LEMMA_TRY(const Formula f, formula());
      if (!where.is_always()) return cursor_.found("one domain only");
      where = f;
      return true;
    }
    return preamble();
  }

  void open_reads(std::vector<Access>& reads) {
    terms_.reads = &reads;
    terms_.named_reads = 0;
  }

  // [combine op] c[i, j] = value, else other, if guard
  Result<Store> store() {
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
    return s;
  }

  Result<Stmt> map() {
    Map s;
    LEMMA_TRY(s.points, ranges());
    open_reads(s.reads);
    LEMMA_TRY_VOID(where_head(s.where));
    LEMMA_TRY_VOID(cursor_.expect("{", "before the stores"));
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      LEMMA_TRY(const bool taken, point_line(s.where));
      if (!taken) {
        Result<Store> one = store();
        if (!one.ok()) return one.error();
        s.stores.push_back(*std::move(one));
      }
      LEMMA_TRY_VOID(end_of_line());
    }
    return Stmt(std::move(s));
  }

  Result<monoid::MonoidRef> by() {
    if (!cursor_.take_word("by")) return cursor_.found("`by` and a monoid");
    LEMMA_TRY(const Token t, name("a monoid"));
    if (const Meaning* m = terms_.scope.find(t.text)) {
      if (const auto* known = std::get_if<MonoidName>(m)) return known->monoid;
    }
    std::optional<Kind> kind;
    std::vector<double> numbers;
    if (cursor_.take("[")) {
      LEMMA_TRY(const Token k, name("the kind that is folded"));
      const auto type = scalar::parse_dtype(k.text);
      if (!type || scalar::dtype_of(scalar::kind_of(*type)) != *type) return source_.error(k.place, "found `" + k.text + "`, expected a kind to compute in");
      kind = scalar::kind_of(*type);
      while (cursor_.take(",")) {
        const Token n = cursor_.peek();
        if (n.kind != TokenKind::Integer && n.kind != TokenKind::Real) return cursor_.found("a number");
        numbers.push_back(n.real);
        cursor_.next();
      }
      LEMMA_TRY_VOID(cursor_.expect("]", "after the monoid's parameters"));
    }
    monoid::MonoidRef m = library_monoid(t.text, kind, numbers);
    if (!m) return source_.error(t.place, "found `" + t.text + "`, expected a monoid of the library with its kind, as in sum[f32], or one defined above");
    return m;
  }

  // element a[i, k], k: the operands, with the monoid's kinds.
  template <class S>
  Result<void> elements(S& s) {
    for (size_t i = 0; i < s.monoid->operands.size(); ++i) {
      if (i > 0) LEMMA_TRY_VOID(cursor_.expect(",", "between the operands of " + s.monoid->name));
      LEMMA_TRY(const Expr e, expression(s.monoid->operands[i]));
      s.body.push_back(e);
    }
    return {};
  }

  template <class S>
  Result<void> state_accesses(S& s) {
    auto* reads = terms_.reads;
    terms_.reads = nullptr;
    for (size_t i = 0; i < s.monoid->components.size(); ++i) {
      if (i > 0) LEMMA_TRY_VOID(cursor_.expect(",", "between the states of " + s.monoid->name));
      LEMMA_TRY(Access a, access());
      s.states.push_back(std::move(a));
    }
    terms_.reads = reads;
    return {};
  }

  template <class S>
  Result<void> fold_line(S& s, bool& taken) {
    LEMMA_TRY(taken, point_line(s.where));
    if (taken) return {};
    taken = true;
    if (cursor_.take_word("element")) {
      if (!s.body.empty()) return cursor_.found("one line of operands only");
      return elements(s);
    }
    if (cursor_.take_word("state")) {
      if (!s.states.empty()) return cursor_.found("one line of states only");
      return state_accesses(s);
    }
    taken = false;
    return {};
  }

  Result<Stmt> reduce() {
    Reduce s;
    LEMMA_TRY(s.points, ranges());
    if (cursor_.take_word("axes")) {
      LEMMA_TRY(s.axes, ranges());
    }
    if (!cursor_.take_word("over")) return cursor_.found("`over` and the variables that are folded");
    LEMMA_TRY(s.reduces, ranges());
    LEMMA_TRY(s.monoid, by());
    s.accumulate = cursor_.take_word("accumulate");
    open_reads(s.reads);
    LEMMA_TRY_VOID(where_head(s.where));
    LEMMA_TRY_VOID(cursor_.expect("{", "before the operands"));
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      bool taken = false;
      LEMMA_TRY_VOID(fold_line(s, taken));
      if (!taken) return cursor_.found("element, state, read, def or where");
      LEMMA_TRY_VOID(end_of_line());
    }
    return Stmt(std::move(s));
  }

  Result<Stmt> scan() {
    Scan s;
    LEMMA_TRY(s.points, ranges());
    if (cursor_.take_word("axes")) {
      LEMMA_TRY(s.axes, ranges());
    }
    if (!cursor_.take_word("along")) return cursor_.found("`along` and the variable that is scanned");
    LEMMA_TRY(const std::vector<Range> along, ranges());
    if (along.size() != 1) return cursor_.found("one variable along which to scan");
    s.along = along[0];
    s.reverse = cursor_.take_word("reverse");
    s.exclusive = cursor_.take_word("exclusive");
    LEMMA_TRY(s.monoid, by());
    s.accumulate = cursor_.take_word("accumulate");
    open_reads(s.reads);
    LEMMA_TRY_VOID(where_head(s.where));
    LEMMA_TRY_VOID(cursor_.expect("{", "before the operands"));
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      if (cursor_.peek().word("store") && cursor_.peek(1).symbol("{")) {
        cursor_.next();
        cursor_.next();
        LEMMA_TRY_VOID(scan_stores(s));
      } else {
        bool taken = false;
        LEMMA_TRY_VOID(fold_line(s, taken));
        if (!taken) return cursor_.found("element, state, store, read, def or where");
      }
      LEMMA_TRY_VOID(end_of_line());
    }
    return Stmt(std::move(s));
  }

  Result<void> scan_stores(Scan& s) {
    auto* reads = terms_.reads;
    terms_.reads = nullptr;
    std::vector<Kind> kinds;
    for (const monoid::Component& c : s.monoid->components) kinds.push_back(c.kind);
    terms_.states = &kinds;
    const size_t mark = terms_.scope.mark();
    while (true) {
      cursor_.skip_separators();
      if (cursor_.take("}")) break;
      LEMMA_TRY(const bool taken, preamble());
      if (!taken) {
        Result<Store> one = store();
        if (!one.ok()) return one.error();
        s.stores.push_back(*std::move(one));
      }
      LEMMA_TRY_VOID(end_of_line());
    }
    terms_.scope.release(mark);
    terms_.states = nullptr;
    terms_.reads = reads;
    return {};
  }

  Result<void> monoid();
  Result<void> combine(monoid::Monoid& m);
  Result<void> state_read(const monoid::Monoid& m, const monoid::Component& updated, monoid::Update& u);
  Result<void> monoid_flags(monoid::Monoid& m);
  Result<void> complete(Place place, const monoid::Monoid& m) const;
  Result<Kind> kind();

  const syntax::Source& source_;
  syntax::Tree tree_;
  syntax::Parser cursor_;
  Program program_;
  Terms terms_;
  int depth_ = 0;
};

// ---- monoid definitions ----

Result<void> ProgramParser::monoid_flags(monoid::Monoid& m) {
  while (!cursor_.peek().symbol("{")) {
    if (cursor_.take_word("elementwise")) m.structure = monoid::Structure::Elementwise;
    else if (cursor_.take_word("rescaled")) m.structure = monoid::Structure::RescaledSum;
    else if (cursor_.take_word("slots")) m.structure = monoid::Structure::TopK;
    else if (cursor_.take_word("general")) m.structure = monoid::Structure::General;
    else if (cursor_.take_word("commutative")) m.commutative = true;
    else if (cursor_.take_word("idempotent")) m.idempotent = true;
    else if (cursor_.take_word("smallest")) m.smallest = true;
    else if (cursor_.take_word("count")) {
      LEMMA_TRY(const int64_t count, integer("the number of slots"));
      m.count = int(count);
    } else if (cursor_.take_word("scale")) {
      const bool negative = cursor_.take("-");
      const Token t = cursor_.peek();
      if (t.kind != TokenKind::Integer && t.kind != TokenKind::Real) return cursor_.found("the scale");
      m.scale = negative ? -t.real : t.real;
      cursor_.next();
    } else {
      return cursor_.found("a property of the monoid or `{`");
    }
  }
  return {};
}

// combine {
//   over add [K]
//   read left(0)[axis(0), inner(0)]
//   to read(0) * read(1)
// }
Result<void> ProgramParser::combine(monoid::Monoid& m) {
  const Token open = cursor_.peek();
  LEMMA_TRY_VOID(cursor_.expect("{", "after combine"));
  if (m.combine.size() >= m.components.size()) return source_.error(open.place, "found more combines than components");
  monoid::Update u;
  const monoid::Component& component = m.components[m.combine.size()];
  MonoidLeaves leaves;
  leaves.axes = int(component.axes.size());
  terms_.leaves = &leaves;
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    if (cursor_.take_word("over")) {
      LEMMA_TRY(const Token op, name("add, mul, min or max"));
      if (op.text == "add") u.fold = scalar::Op::Add;
      else if (op.text == "mul") u.fold = scalar::Op::Mul;
      else if (op.text == "min") u.fold = scalar::Op::Min;
      else if (op.text == "max") u.fold = scalar::Op::Max;
      else return source_.error(op.place, "found `" + op.text + "`, expected add, mul, min or max");
      LEMMA_TRY(u.sums, forms());
      leaves.inner = int(u.sums.size());
    } else if (cursor_.take_word("read")) {
      LEMMA_TRY_VOID(state_read(m, component, u));
      leaves.reads.push_back(m.components[size_t(u.reads.back().component)].kind);
    } else if (cursor_.take_word("to")) {
      if (u.body.valid()) return cursor_.found("one value only");
      LEMMA_TRY(u.body, expression(component.kind));
    } else {
      LEMMA_TRY(const bool taken, preamble());
      if (!taken) return cursor_.found("over, read, to or def");
    }
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.leaves = nullptr;
  if (!u.body.valid()) return source_.error(open.place, "this combine has no value", "end it with a line `to value`");
  m.combine.push_back(std::move(u));
  return {};
}

// left(c)[axis(0), inner(1)]: each coordinate runs over an index whose extent is that of the component's axis, so that
// no combine reads outside a state.
Result<void> ProgramParser::state_read(const monoid::Monoid& m, const monoid::Component& updated, monoid::Update& u) {
  monoid::StateRead r;
  const Token side = cursor_.peek();
  if (cursor_.take_word("right")) r.right = true;
  else if (!cursor_.take_word("left")) return cursor_.found("left or right");
  LEMMA_TRY_VOID(cursor_.expect("(", "before the component's number"));
  LEMMA_TRY(const int64_t component, integer("the component's number"));
  LEMMA_TRY_VOID(cursor_.expect(")", "after the component's number"));
  if (size_t(component) >= m.components.size()) return source_.error(side.place, "there are only " + std::to_string(m.components.size()) + " components");
  r.component = int(component);
  LEMMA_TRY(r.coords, forms());
  const std::vector<Form>& axes = m.components[size_t(component)].axes;
  bool good = axes.size() == r.coords.size();
  for (size_t i = 0; i < axes.size() && good; ++i) {
    const auto index = r.coords[i].as_index();
    good = index && (size_t(*index) < updated.axes.size() ? updated.axes[size_t(*index)] : u.sums[size_t(*index) - updated.axes.size()]) == axes[i];
  }
  if (!good) return source_.error(side.place, "a state is read at one axis or inner index for each of its axes, of the same extent");
  u.reads.push_back(std::move(r));
  return {};
}

Result<void> ProgramParser::monoid() {
  LEMMA_TRY(const Token t, name("the monoid's name"));
  monoid::Monoid m;
  m.name = t.text;
  m.arena = std::make_shared<scalar::Arena>();
  LEMMA_TRY_VOID(monoid_flags(m));
  LEMMA_TRY_VOID(cursor_.expect("{", "before the monoid's definition"));
  terms_.arena = m.arena.get();
  const size_t mark = terms_.scope.mark();
  std::vector<Kind> kinds;
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    // A `def` line comes before the line it serves, so both see the axes of what is due next.
    MonoidLeaves leaves;
    leaves.operands = m.operands;
    const size_t due = m.identity.size() < m.components.size() ? m.identity.size() : m.lift.size();
    for (size_t c = 0; c < m.components.size(); ++c) {
      if (due == c || due == m.components.size()) leaves.axes = std::max(leaves.axes, int(m.components[c].axes.size()));
    }
    terms_.leaves = &leaves;
    terms_.states = &kinds;
    bool definition = false;
    if (cursor_.take_word("operand")) {
      LEMMA_TRY(const Kind k, kind());
      m.operands.push_back(k);
    } else if (cursor_.take_word("component")) {
      monoid::Component c;
      LEMMA_TRY(c.kind, kind());
      LEMMA_TRY(c.axes, forms());
      c.name = "c" + std::to_string(m.components.size());
      kinds.push_back(c.kind);
      m.components.push_back(std::move(c));
    } else if (cursor_.take_word("identity")) {
      if (m.identity.size() >= m.components.size()) return cursor_.found("one identity a component");
      LEMMA_TRY(const Expr e, expression(m.components[m.identity.size()].kind));
      m.identity.push_back(e);
    } else if (cursor_.take_word("lift")) {
      if (m.lift.size() >= m.components.size()) return cursor_.found("one lift a component");
      LEMMA_TRY(const Expr e, expression(m.components[m.lift.size()].kind));
      m.lift.push_back(e);
    } else if (cursor_.take_word("combine")) {
      LEMMA_TRY_VOID(combine(m));
    } else if (cursor_.take_word("finish")) {
      LEMMA_TRY(const NodeId id, cursor_.expression());
      LEMMA_TRY(const Expr e, terms_.expression(id));
      m.finish.push_back(e);
    } else {
      LEMMA_TRY(definition, preamble());
      if (!definition) return cursor_.found("operand, component, identity, lift, combine, finish or def");
    }
    if (!definition) terms_.scope.release(mark);
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.leaves = nullptr;
  terms_.states = nullptr;
  terms_.arena = program_.arena.get();
  LEMMA_TRY_VOID(complete(t.place, m));
  return declare(t, MonoidName{std::make_shared<const monoid::Monoid>(std::move(m))});
}

Result<Kind> ProgramParser::kind() {
  const Token t = cursor_.peek();
  const auto type = t.kind == TokenKind::Name ? scalar::parse_dtype(t.text) : std::nullopt;
  if (!type || scalar::dtype_of(scalar::kind_of(*type)) != *type) return cursor_.found("a kind to compute in, as f32");
  cursor_.next();
  return scalar::kind_of(*type);
}

// What evaluators assume of a monoid.
Result<void> ProgramParser::complete(Place place, const monoid::Monoid& m) const {
  const size_t count = m.components.size();
  if (m.operands.empty() || count == 0) return source_.error(place, "a monoid has at least one operand and one component");
  if (m.identity.size() != count || m.lift.size() != count || m.combine.size() != count) {
    return source_.error(place, "a monoid has an identity, a lift and a combine for each of its " + std::to_string(count) + " components");
  }
  if (m.structure == monoid::Structure::TopK) return source_.error(place, "only the library's topk and bottomk have slots");
  if (m.structure == monoid::Structure::General) return {};
  for (size_t c = 0; c < count; ++c) {
    if (!m.combine[c].sums.empty()) return source_.error(place, "a monoid with inner sums is general");
  }
  return {};
}

}  // namespace

base::Result<Program> parse(std::string_view text, const std::string& file) {
  const syntax::Source source(text, file);
  LEMMA_TRY(const std::vector<Token> tokens, syntax::tokenize(source));
  return ProgramParser(source, tokens).run();
}

}  // namespace lemma::tile
