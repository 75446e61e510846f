// The lines of a tile program: names, sizes, buffers, kernels, and which statement a line is. The grammar is
// docs/ir.md's; surface expressions are syntax's.
#include "lemma/tile/parse.h"

#include <algorithm>

#include "lemma/tile/edit.h"
#include "lemma/tile/names.h"
#include "lemma/tile/parse_macros.h"
#include "lemma/tile/parser.h"
#include "lemma/tile/validate.h"

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

namespace {

std::optional<Space> parse_space(const Token& t) {
  static constexpr struct { std::string_view word; Space space; } kSpaces[] = {
      {"input", Space::Input},   {"output", Space::Output},     {"update", Space::Update}, {"scratch", Space::Scratch},
      {"shared", Space::Shared}, {"fragment", Space::Fragment}, {"local", Space::Local}};
  for (const auto& row : kSpaces) {
    if (t.word(row.word)) return row.space;
  }
  return std::nullopt;
}

// Where an expression ends although a name follows.
constexpr std::string_view kEnds[] = {"step", "unrolled", "serial", "pipelined", "where", "stage", "order", "by", "fill",
                                      "async", "team", "bulk", "ordered", "values"};

}  // namespace

ProgramParser::ProgramParser(const syntax::Source& source, const std::vector<Token>& tokens)
    : source_(source), cursor_(source, tokens, tree_), terms_(source, tree_, program_) {
  terms_.arena = program_.arena.get();
  cursor_.ends = kEnds;
}

Result<Program> ProgramParser::run() {
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
  if (const auto valid = validate(program_); !valid.ok()) return placed(valid.error());
  return std::move(program_);
}

Result<void> ProgramParser::declare(const Token& token, Meaning meaning) {
  if (!token.quoted && is_reserved(token.text)) return source_.error(token.place, "the word `" + token.text + "` is not free to be a name");
  terms_.scope.remove_dormant(token.text);
  if (terms_.scope.add(token.text, std::move(meaning))) return {};
  return source_.error(token.place, "the name `" + token.text + "` is taken", "choose another name: nothing shadows");
}

Result<Var> ProgramParser::bind(const Token& token) {
  const Var v = Var(program_.variables.size());
  LEMMA_TRY_VOID(declare(token, VariableName{v}));
  program_.variables.push_back(token.text);
  return v;
}

Result<Form> ProgramParser::form() {
  LEMMA_TRY(const NodeId id, cursor_.expression());
  return terms_.form(id);
}

Result<Formula> ProgramParser::formula() {
  LEMMA_TRY(const NodeId id, cursor_.expression());
  return terms_.formula(id);
}

Result<Expr> ProgramParser::expression(Kind kind) {
  LEMMA_TRY(const NodeId id, cursor_.expression());
  return terms_.expression(id, kind);
}

// a[i, j] if guard
Result<Access> ProgramParser::access() {
  LEMMA_TRY(const NodeId id, cursor_.expression());
  LEMMA_TRY(Access out, terms_.access(id));
  if (cursor_.take_word("if")) {
    LEMMA_TRY(out.guard, formula());
  }
  return out;
}

Result<std::vector<Form>> ProgramParser::forms() {
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

Result<int64_t> ProgramParser::integer(const std::string& what) {
  const Token t = cursor_.peek();
  if (t.kind != TokenKind::Integer || t.oversized || uint64_t(t.integer) > (uint64_t(1) << 30)) return cursor_.found(what + ", an integer of at most 2^30");
  cursor_.next();
  return int64_t(t.integer);
}

Result<std::string> ProgramParser::message() {
  std::string out;
  if (!cursor_.take(":")) return out;
  const Token t = cursor_.peek();
  if (t.kind != TokenKind::Name || !t.quoted) return cursor_.found("a message in quotes");
  cursor_.next();
  return t.text;
}

Result<void> ProgramParser::end_of_line() {
  const Token& t = cursor_.peek();
  if (t.kind == TokenKind::Separator || t.kind == TokenKind::End || t.symbol("}")) return {};
  return cursor_.found("the end of the line");
}

void ProgramParser::open(Pending& p) {
  p.mark = terms_.scope.mark();
  terms_.reads = &p.reads;
  terms_.named_reads = 0;
}

void ProgramParser::close(Pending& p) {
  terms_.scope.release(p.mark);
  terms_.reads = nullptr;
}

// `read r = a[i] if guard` and `def t = value`; false for any other line.
Result<bool> ProgramParser::preamble() {
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
  // Inside braces `let` says the same: every variable there is a value of the point.
  if (cursor_.take_word("def") || (in_points_ && cursor_.take_word("let"))) {
    LEMMA_TRY(const Token t, name("the name of the definition"));
    LEMMA_TRY_VOID(cursor_.expect("=", "after the definition's name"));
    LEMMA_TRY(const NodeId id, cursor_.expression());
    LEMMA_TRY(const Expr e, terms_.expression(id));
    LEMMA_TRY_VOID(declare(t, DefinitionName{e}));
    return true;
  }
  return false;
}

Result<void> ProgramParser::preambles() {
  while (true) {
    cursor_.skip_separators();
    LEMMA_TRY(const bool more, preamble());
    if (!more) return {};
    LEMMA_TRY_VOID(end_of_line());
  }
}

// (i < N, j < M): extents are over outer names, so all are read before any is bound. The opening parenthesis has been
// taken; ends before `)` or `:`.
Result<void> ProgramParser::range_list(std::vector<Range>& out, std::vector<Token>& names) {
  while (!cursor_.peek().symbol(")") && !cursor_.peek().symbol(":")) {
    LEMMA_TRY(const Token t, name("a variable"));
    LEMMA_TRY_VOID(cursor_.expect("<", "after the variable"));
    LEMMA_TRY(Form f, form());
    names.push_back(t);
    out.push_back({-1, std::move(f)});
    if (cursor_.peek().symbol(")") || cursor_.peek().symbol(":")) continue;
    LEMMA_TRY_VOID(cursor_.expect(",", "between variables"));
  }
  return {};
}

Result<std::vector<Range>> ProgramParser::ranges() {
  LEMMA_TRY_VOID(cursor_.expect("(", "before the variables"));
  std::vector<Range> out;
  std::vector<Token> names;
  LEMMA_TRY_VOID(range_list(out, names));
  LEMMA_TRY_VOID(cursor_.expect(")", "after the variables"));
  for (size_t i = 0; i < out.size(); ++i) {
    LEMMA_TRY(out[i].var, bind(names[i]));
  }
  return out;
}

Result<void> ProgramParser::top_level() {
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
    return buffers(*space, nullptr);
  }
  return cursor_.found("size, require, monoid, a buffer or a kernel");
}

Result<void> ProgramParser::size(Pending& pending) {
  LEMMA_TRY(const Token t, name("the size's name"));
  SizeDecl decl{t.text, {}, {}};
  if (cursor_.take("=")) {
    LEMMA_TRY(decl.definition, expression(Kind::I64));
  }
  const auto like = [&](SizeDecl& d) -> Result<void> {
    if (!cursor_.take_word("like")) return {};
    LEMMA_TRY(d.typical, integer("a typical value"));
    return {};
  };
  if (!decl.definition.valid()) LEMMA_TRY_VOID(like(decl));
  if (!pending.reads.empty()) return source_.error(t.place, "a size cannot read a buffer");
  close(pending);
  const bool plain = !decl.definition.valid();
  LEMMA_TRY_VOID(declare(t, SizeName{int(program_.sizes.size())}));
  program_.sizes.push_back(std::move(decl));
  while (plain && cursor_.take(",")) {  // size M, N, K
    LEMMA_TRY(const Token next, name("the size's name"));
    LEMMA_TRY_VOID(declare(next, SizeName{int(program_.sizes.size())}));
    SizeDecl another{next.text, {}, {}};
    LEMMA_TRY_VOID(like(another));
    program_.sizes.push_back(std::move(another));
  }
  return {};
}

Result<void> ProgramParser::kernel() {
  const size_t mark = terms_.scope.mark();
  Kernel k;
  LEMMA_TRY(const Token t, name("the kernel's name"));
  k.name = t.text;
  if (cursor_.take_word("grid")) {
    k.hints.persistent = cursor_.take_word("persistent");
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
  LEMMA_TRY_VOID(kernel_hints(k.hints));
  LEMMA_TRY(k.body, block());
  terms_.scope.release_keeping_buffers(mark);
  program_.kernels.push_back(std::move(k));
  return {};
}

// ---- statements ----
// order rows 8, threads 256, warps 8
Result<void> ProgramParser::kernel_hints(KernelHints& hints) {
  while (cursor_.peek().kind == TokenKind::Name) {
    if (cursor_.take_word("order")) {
      if (!cursor_.take_word("rows")) return cursor_.found("`rows` and a number: blocks are taken in groups of rows");
      LEMMA_TRY(const int64_t rows, integer("the rows of a group"));
      hints.order_rows = int(rows);
    } else if (cursor_.take_word("threads")) {
      LEMMA_TRY(const int64_t threads, integer("the threads of a block"));
      hints.threads = int(threads);
    } else if (cursor_.take_word("warps")) {
      LEMMA_TRY(const int64_t warps, integer("the warps of a block"));
      hints.warps = int(warps);
    } else if (cursor_.take_word("synchronised")) {
      hints.synchronised = true;
    } else {
      return cursor_.found("order, threads, warps, synchronised or `{`");
    }
  }
  return {};
}

Result<Block> ProgramParser::block() {
  if (++depth_ > kMaxNesting) return cursor_.found("at most " + std::to_string(kMaxNesting) + " blocks inside each other");
  LEMMA_TRY_VOID(cursor_.expect("{", "before the statements"));
  const size_t mark = terms_.scope.mark(), outer = block_mark_;
  block_mark_ = mark;
  Block out;
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    const Place place = cursor_.peek().place;
    const size_t first = out.size();
    path_.push_back(first + 1);
    LEMMA_TRY_VOID(statement(out));
    path_.pop_back();
    note_place(out, first, place);
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.scope.release_keeping_buffers(mark);
  block_mark_ = outer;
  --depth_;
  return out;
}

// Remembers where the statements from `first` on stand, for what validate says of them.
void ProgramParser::note_place(const Block& block, size_t first, Place place) {
  for (size_t i = first; i < block.size(); ++i) {
    std::string key = std::to_string(program_.kernels.size());
    for (size_t part : path_) key += "." + std::to_string(part);
    key += "." + std::to_string(i + 1);
    const auto [at, fresh] = places_.emplace(key, place);
    if (!fresh) at->second = Place{};  // both sides of an `if` count from 1
  }
}

// What validate says names a statement by numbers; the text knows where it stands.
base::Diagnostic ProgramParser::placed(base::Diagnostic diagnostic) const {
  const std::string word = ", statement ";
  const size_t at = diagnostic.message.find(word);
  if (diagnostic.message.rfind("kernel ", 0) != 0 || at == std::string::npos) return diagnostic;
  const std::string name = diagnostic.message.substr(7, at - 7);
  const size_t begin = at + word.size(), end = diagnostic.message.find(' ', begin);
  for (size_t k = 0; k < program_.kernels.size(); ++k) {
    if (program_.kernels[k].name != name) continue;
    const auto place = places_.find(std::to_string(k) + "." + diagnostic.message.substr(begin, end - begin));
    if (place == places_.end() || place->second.line == 0) return diagnostic;
    base::Diagnostic out = source_.error(place->second, diagnostic.message, diagnostic.suggestion);
    out.failure = diagnostic.failure;
    return out;
  }
  return diagnostic;
}

// `stage 1`, `order 2`, `by producer`: in any order, after a statement's head or at its end.
Result<void> ProgramParser::placement() {
  while (true) {
    if (cursor_.take_word("stage")) {
      cursor_.take("+");
      LEMMA_TRY(const int64_t stage, integer("the stage"));
      placement_.stage = int(stage);
    } else if (cursor_.take_word("order")) {
      LEMMA_TRY(const int64_t order, integer("the place in the order"));
      placement_.order = int(order);
    } else if (cursor_.take_word("by")) {
      LEMMA_TRY(const Token role, name("the role that runs the statement"));
      placement_.role = role.text;
    } else {
      return {};
    }
  }
}

// The statements before which reads and definitions may stand; `found` says whether it was one. Nothing: an alias.
Result<std::optional<Stmt>> ProgramParser::with_pending(Pending& pending, bool& found) {
  const auto wrapped = [](Result<Stmt> stmt) -> Result<std::optional<Stmt>> {
    if (!stmt.ok()) return stmt.error();
    return std::optional<Stmt>(*std::move(stmt));
  };
  const Token head = cursor_.peek();
  found = true;
  if (cursor_.take_word("let")) return let(pending);
  if (cursor_.take_word("if")) return wrapped(branch(pending));
  if (cursor_.take_word("for")) return wrapped(loop(pending, head.place));
  if (cursor_.take_word("print")) return wrapped(print(pending));
  if (head.word("assert") || head.word("assume")) {
    cursor_.next();
    Assert a;
    a.assumed = head.word("assume");
    LEMMA_TRY(a.condition, formula());
    LEMMA_TRY(a.message, message());
    a.reads = std::move(pending.reads);
    close(pending);
    return std::optional<Stmt>(std::move(a));
  }
  found = false;
  return std::optional<Stmt>();
}

Result<void> ProgramParser::statement(Block& out) {
  placement_ = {};
  Pending pending;
  open(pending);
  LEMMA_TRY_VOID(preambles());
  const Token head = cursor_.peek();
  bool taken = false;
  LEMMA_TRY(std::optional<Stmt> one, with_pending(pending, taken));
  if (taken) {
    if (!one) return {};
    out.push_back(*std::move(one));
    out.back().placement = std::move(placement_);
    return {};
  }
  if (terms_.scope.mark() != pending.mark) return source_.error(head.place, "found " + syntax::describe(head) + " after a read or a definition, expected let, if, for or assert", "write reads and definitions of other statements inside their braces");
  close(pending);
  if (const auto space = parse_space(head)) return alloc(*space, out);
  if (cursor_.take_word("alloc")) {
    LEMMA_TRY(const Token t, name("a buffer"));
    const Meaning* m = terms_.scope.find(t.text);
    if (!m || !std::get_if<BufferName>(m)) return source_.error(t.place, "`" + t.text + "` is not a buffer declared before");
    const int buffer = std::get<BufferName>(*m).buffer;
    out.push_back(Alloc{buffer});
    return {};
  }
  if (cursor_.take_word("barrier")) {
    out.push_back(Barrier{});
    return {};
  }
  if (cursor_.take_word("commit")) {
    out.push_back(Commit{});
    return {};
  }
  if (cursor_.take_word("wait")) {
    LEMMA_TRY(const int64_t pending, integer("the groups that may be under way"));
    out.push_back(Wait{int(pending)});
    return {};
  }
  if (cursor_.take_word("phase")) {
    terms_.scope.release_keeping_buffers(block_mark_);
    out.push_back(Phase{});
    return {};
  }
  const size_t mark = terms_.scope.mark();
  Result<Stmt> stmt = Stmt(Alloc{});
  if (cursor_.take_word("copy")) stmt = copy();
  else if (cursor_.take_word("gemm")) stmt = gemm();
  else if (cursor_.take_word("map")) stmt = map();
  else if (cursor_.take_word("reduce")) stmt = reduce();
  else if (cursor_.take_word("scan")) stmt = scan();
  else if (cursor_.take_word("combine")) stmt = combine_tiles();
  else if (cursor_.take_word("extern")) stmt = raw();
  else if (head.kind == TokenKind::Name && cursor_.peek(1).symbol("(")) return cursor_.found("a statement or a macro of the program", "define it: macro " + head.text + "(a, b) { ... }");
  else return cursor_.found("a statement: let, copy, map, reduce, scan, gemm, combine, for, if, assert, assume, print, extern, phase, barrier, commit, wait or a buffer");
  if (!stmt.ok()) return stmt.error();
  terms_.scope.release(mark);
  terms_.reads = nullptr;
  out.push_back(*std::move(stmt));
  out.back().placement = std::move(placement_);
  return {};
}

base::Result<Program> parse(std::string_view text, const std::string& file) {
  const syntax::Source source(text, file);
  LEMMA_TRY(const std::vector<Token> written, syntax::tokenize(source));
  LEMMA_TRY(const std::vector<Token> tokens, expand_macros(source, written));
  return ProgramParser(source, tokens).run();
}

}  // namespace lemma::tile
