// print, extern and combine.
#include <algorithm>
#include <cctype>

#include "lemma/tile/parser.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using syntax::NodeId;
using syntax::Token;
using syntax::TokenKind;

// print "row {} of {}" i, x[i]
Result<Stmt> ProgramParser::print(Pending& pending) {
  Print s;
  const Token t = cursor_.peek();
  if (t.kind != TokenKind::Name || !t.quoted) return cursor_.found("a text in quotes, with {} for each value");
  s.text = cursor_.next().text;
  while (cursor_.peek().kind != TokenKind::Separator && !cursor_.peek().symbol("}") && cursor_.peek().kind != TokenKind::End) {
    if (!s.values.empty()) LEMMA_TRY_VOID(cursor_.expect(",", "between values"));
    LEMMA_TRY(const NodeId id, cursor_.expression());
    LEMMA_TRY(const Expr e, terms_.expression(id));
    s.values.push_back(e);
  }
  s.reads = std::move(pending.reads);
  close(pending);
  return Stmt(std::move(s));
}

Result<std::vector<int>> ProgramParser::buffer_list(std::vector<std::string>& names) {
  std::vector<int> out;
  do {
    LEMMA_TRY(const Token t, name("a buffer"));
    const Meaning* m = terms_.scope.find(t.text);
    const auto* buffer = m ? std::get_if<BufferName>(m) : nullptr;
    if (!buffer) return source_.error(t.place, "`" + t.text + "` is not a buffer declared before");
    out.push_back(buffer->buffer);
    names.push_back(t.text);
  } while (cursor_.take(","));
  return out;
}

// $name becomes $0, $1 ... by its place in the lists; the numbers may be written too.
Result<std::string> ProgramParser::raw_line(const Token& line, const std::vector<std::string>& names) const {
  std::string out;
  for (size_t i = 0; i < line.text.size(); ++i) {
    out += line.text[i];
    if (line.text[i] != '$') continue;
    std::string word;
    while (i + 1 < line.text.size() && (std::isalnum(static_cast<unsigned char>(line.text[i + 1])) || line.text[i + 1] == '_')) word += line.text[++i];
    const auto named = std::find(names.begin(), names.end(), word);
    const bool number = !word.empty() && word.size() < 4 && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
    const size_t which = named != names.end() ? size_t(named - names.begin()) : number ? size_t(std::stoi(word)) : names.size();
    if (which >= names.size()) return source_.error(line.place, "`$" + word + "` is none of what this extern reads, writes or takes as a value", "list it: extern c reads a writes b values n { ... }");
    out += std::to_string(which);
  }
  return out;
}

// extern c reads a writes b values n, m + 1 { "text" newline "text" }
Result<Stmt> ProgramParser::raw() {
  Extern s;
  LEMMA_TRY(const Token dialect, name("a dialect: c"));
  s.dialect = dialect.text;
  std::vector<std::string> names;
  if (cursor_.take_word("reads")) {
    LEMMA_TRY(s.reads, buffer_list(names));
  }
  if (cursor_.take_word("writes")) {
    LEMMA_TRY(s.writes, buffer_list(names));
  }
  if (cursor_.take_word("values")) {
    do {
      const bool alone = cursor_.peek().kind == TokenKind::Name && (cursor_.peek(1).symbol(",") || cursor_.peek(1).symbol("{"));
      names.push_back(alone ? cursor_.peek().text : "");
      LEMMA_TRY(const Expr e, expression(Kind::I64));
      s.values.push_back(e);
    } while (cursor_.take(","));
  }
  LEMMA_TRY_VOID(cursor_.expect("{", "before the text, a line of it in quotes each"));
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) return Stmt(std::move(s));
    const Token line = cursor_.peek();
    if (line.kind != TokenKind::Name || !line.quoted) return cursor_.found("a line of text in quotes");
    cursor_.next();
    LEMMA_TRY(std::string text, raw_line(line, names));
    s.lines.push_back(std::move(text));
    LEMMA_TRY_VOID(end_of_line());
  }
}

// combine sum dqf -> dqa[z, ib*64 +: 64, ..] bulk async ordered by jb
Result<Stmt> ProgramParser::combine_tiles() {
  static constexpr struct { std::string_view word; scalar::Op op; } kOps[] = {
      {"sum", scalar::Op::Add}, {"add", scalar::Op::Add}, {"prod", scalar::Op::Mul}, {"mul", scalar::Op::Mul},
      {"min", scalar::Op::Min}, {"max", scalar::Op::Max}, {"and", scalar::Op::And},  {"or", scalar::Op::Or},
      {"all", scalar::Op::And}, {"any", scalar::Op::Or},  {"xor", scalar::Op::Xor}};
  Combine s;
  LEMMA_TRY(const Token op, name("what to combine by: sum, prod, min, max, and, or, xor"));
  const auto row = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& r) { return r.word == op.text; });
  if (row == std::end(kOps)) return source_.error(op.place, "found `" + op.text + "`, expected sum, prod, min, max, and, or, xor", "write the operation before the tiles: combine sum part -> total");
  s.op = row->op;
  if (cursor_.peek().symbol("(")) {
    LEMMA_TRY(s.box, ranges());
    LEMMA_TRY(s.from, access());
    LEMMA_TRY_VOID(cursor_.expect("->", "before the target"));
    LEMMA_TRY(s.to, access());
  } else {
    LEMMA_TRY(const Region from, region("a tile to combine"));
    const Token arrow = cursor_.peek();
    LEMMA_TRY_VOID(cursor_.expect("->", "before the target"));
    LEMMA_TRY(const Region to, region("a tile to combine into"));
    LEMMA_TRY(Copy copy, copy_regions(arrow, from, to));
    s.box = std::move(copy.box);
    s.from = std::move(copy.from);
    s.to = std::move(copy.to);
  }
  while (true) {
    if (cursor_.take_word("bulk")) {
      s.bulk = true;
    } else if (cursor_.take_word("async")) {
      s.async = true;
    } else if (cursor_.take_word("atomic")) {
      s.bulk = false;
    } else if (cursor_.take_word("ordered")) {
      if (!cursor_.take_word("by")) return cursor_.found("`by` and a variable of the grid");
      LEMMA_TRY(s.ordered, form());
    } else {
      break;
    }
  }
  LEMMA_TRY_VOID(placement());
  return Stmt(std::move(s));
}

}  // namespace lemma::tile
