// The lexer: one pass over the bytes, no recursion.
#include "lemma/syntax/token.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace lemma::syntax {
namespace {

constexpr size_t longest_text = size_t(64) << 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The length of the well-formed UTF-8 sequence at `at`, or 0.
int utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(at);
  if (first >= 0xC2 && first <= 0xDF) return follows(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(at + 1) || !follows(at + 2)) return 0;
    if (first == 0xE0 && byte(at + 1) < 0xA0) return 0;
    if (first == 0xED && byte(at + 1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(at + 1) || !follows(at + 2) || !follows(at + 3)) return 0;
    if (first == 0xF0 && byte(at + 1) < 0x90) return 0;
    if (first == 0xF4 && byte(at + 1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

constexpr const char* symbols[] = {"...", "//", "..", "+:", "+=", "->", "<<", ">>", "<=", ">=", "==", "!=", "+",
                                   "-",   "*",  "/",  "%",  "<",  ">",  "=",  "?",  "|",  "&",  "^",  "~",  ",",
                                   ":",   ".",  "(",  ")",  "[",  "]",  "{",  "}",  "@"};

// After these a line goes on.
bool continues(const Token& t) {
  if (t.kind == TokenKind::Name) return t.word("and") || t.word("or") || t.word("not") || t.word("else") || t.word("where");
  if (t.kind != TokenKind::Symbol) return false;
  const std::string& s = t.text;
  return !(s == ")" || s == "]" || s == "}" || s == "{" || s == "?" || s == "...");
}

// A line that begins with one of these goes on with the line before.
bool continues_before(const Token& t) {
  if (t.kind == TokenKind::Name) return t.word("and") || t.word("or") || t.word("else");
  if (t.kind != TokenKind::Symbol) return false;
  const std::string& s = t.text;
  return !(s == "(" || s == "[" || s == "{" || s == "}" || s == "~" || s == "@" || s == "-");
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  base::Result<std::vector<Token>> run() {
    if (text_.size() > longest_text) {
      return source_.error({1, 1, 1}, "the text is longer than 64 MiB", "split the program into files");
    }
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        separate(true);
        ++at_;
        ++line_;
        line_start_ = at_;
        spaced_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
        spaced_ = true;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ';') {
        separate(false);
        ++at_;
      } else if (auto done = token(); !done.ok()) {
        return done.error();
      }
    }
    if (!out_.empty() && out_.back().kind != TokenKind::Separator) {
      separate(false);
      out_.back().text = "\n";
    }
    Token end;
    end.place = place(at_, 1);
    out_.push_back(std::move(end));
    return std::move(out_);
  }

 private:
  Place place(size_t begin, size_t length) const {
    return {line_, int(begin - line_start_) + 1, int(length)};
  }

  void separate(bool newline) {
    if (out_.empty() || out_.back().kind == TokenKind::Separator) return;
    if (newline && ((!brackets_.empty() && brackets_.back() != '{') || continues(out_.back()))) return;
    Token t;
    t.kind = TokenKind::Separator;
    t.text = newline ? "\n" : ";";
    t.place = place(at_, 1);
    out_.push_back(std::move(t));
  }

  void push(Token t, size_t begin) {
    t.place = place(begin, at_ - begin);
    t.spaced = spaced_;
    spaced_ = false;
    if (!out_.empty() && out_.back().kind == TokenKind::Separator && out_.back().text == "\n" && continues_before(t)) {
      out_.pop_back();
    }
    if (t.kind == TokenKind::Symbol) {
      const char c = t.text[0];
      if (c == '(' || c == '[' || c == '{') brackets_.push_back(c);
      if ((c == ')' || c == ']' || c == '}') && !brackets_.empty()) brackets_.pop_back();
    }
    out_.push_back(std::move(t));
  }

  base::Result<void> token() {
    const char c = text_[at_];
    if (is_letter(c) || (static_cast<unsigned char>(c) >= 0x80)) return name();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
    if (c == '"') return quoted();
    for (const char* s : symbols) {
      const std::string_view symbol = s;
      if (text_.substr(at_, symbol.size()) == symbol) {
        Token t;
        t.kind = TokenKind::Symbol;
        t.text = symbol;
        const size_t begin = at_;
        at_ += symbol.size();
        push(std::move(t), begin);
        return {};
      }
    }
    return stray();
  }

  base::Diagnostic stray() const {
    static const char digits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte >= 0x20 && byte < 0x7F) {
      return source_.error(place(at_, 1), std::string("found `") + char(byte) + "`, which no statement uses");
    }
    return source_.error(place(at_, 1),
                         std::string("found the byte 0x") + digits[byte >> 4] + digits[byte & 15] +
                             ", expected text in UTF-8",
                         "save the file as UTF-8 text");
  }

  // One letter of an identifier, or 0 bytes.
  size_t letter(size_t at) const {
    if (at >= text_.size()) return 0;
    if (is_letter(text_[at]) || is_digit(text_[at])) return 1;
    if (static_cast<unsigned char>(text_[at]) >= 0x80) return size_t(utf8_length(text_, at));
    return 0;
  }

  base::Result<void> name() {
    const size_t begin = at_;
    while (const size_t n = letter(at_)) {
      at_ += n;
      if (at_ + 1 < text_.size() && text_[at_] == '.' && letter(at_ + 1) != 0 && !is_digit(text_[at_ + 1])) ++at_;
    }
    if (at_ == begin || (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80)) return stray();
    Token t;
    t.kind = TokenKind::Name;
    t.text = text_.substr(begin, at_ - begin);
    push(std::move(t), begin);
    return {};
  }

  base::Result<void> quoted() {
    const size_t begin = at_;
    ++at_;
    Token t;
    t.kind = TokenKind::Name;
    t.quoted = true;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
      const auto byte = static_cast<unsigned char>(text_[at_]);
      const size_t n = byte >= 0x80 ? size_t(utf8_length(text_, at_)) : byte >= 0x20 && byte != 0x7F ? 1 : 0;
      if (n == 0) return stray();
      t.text += text_.substr(at_, n);
      at_ += n;
    }
    if (at_ >= text_.size() || text_[at_] != '"') {
      return source_.error(place(begin, at_ - begin), "this quoted name has no end, expected `\"` on the same line",
                           "close the name with `\"`");
    }
    ++at_;
    if (t.text.empty()) {
      return source_.error(place(begin, at_ - begin), "found an empty name, expected some text between the quotes");
    }
    push(std::move(t), begin);
    return {};
  }

  base::Result<void> number() {
    const size_t begin = at_;
    const auto peek = [&](size_t i) { return at_ + i < text_.size() ? text_[at_ + i] : '\0'; };
    Token t;
    t.kind = TokenKind::Integer;
    const bool hex = peek(0) == '0' && (peek(1) == 'x' || peek(1) == 'X');
    if (hex) at_ += 2;
    const size_t digits = at_;
    const auto digit = [&](char c) { return hex ? is_hex(c) : is_digit(c); };
    while (digit(peek(0))) ++at_;
    if (hex && at_ == digits && peek(0) != '.') {
      return source_.error(place(begin, at_ - begin), "found `0x` without digits, expected a hexadecimal number");
    }
    const size_t whole_end = at_;
    if (peek(0) == '.' && peek(1) != '.' && !is_letter(peek(1))) {
      t.kind = TokenKind::Real;
      ++at_;
      while (digit(peek(0))) ++at_;
    } else if (hex && peek(0) == '.' && is_hex(peek(1))) {
      t.kind = TokenKind::Real;
      ++at_;
      while (digit(peek(0))) ++at_;
    }
    const char e = peek(0);
    if (hex ? (e == 'p' || e == 'P') : (e == 'e' || e == 'E')) {
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign))) {
        t.kind = TokenKind::Real;
        at_ += 1 + sign;
        while (is_digit(peek(0))) ++at_;
      }
    }
    if (letter(at_) != 0) {
      while (const size_t n = letter(at_)) at_ += n;
      const std::string found(text_.substr(begin, at_ - begin));
      return source_.error(place(begin, at_ - begin), "found `" + found + "`, expected a number or a name",
                           "a name that begins with a digit stands in quotes: \"" + found + "\"");
    }
    t.text = text_.substr(begin, at_ - begin);
    t.real = std::strtod(t.text.c_str(), nullptr);
    if (t.kind == TokenKind::Integer) {
      const auto [end, code] = std::from_chars(text_.data() + digits, text_.data() + whole_end, t.integer, hex ? 16 : 10);
      t.oversized = code != std::errc() || end != text_.data() + whole_end;
    }
    push(std::move(t), begin);
    return {};
  }

  const Source& source_;
  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  bool spaced_ = false;
  std::vector<char> brackets_;
  std::vector<Token> out_;
};

}  // namespace

Source::Source(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);  // the mark some editors begin UTF-8 with
  starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(i + 1);
  }
}

std::string_view Source::line(int number) const {
  if (number < 1 || size_t(number) > starts_.size()) return {};
  const size_t begin = starts_[size_t(number) - 1];
  const size_t end = size_t(number) < starts_.size() ? starts_[size_t(number)] - 1 : text_.size();
  std::string_view out = std::string_view(text_).substr(begin, end - begin);
  if (!out.empty() && out.back() == '\r') out.remove_suffix(1);
  return out;
}

base::Span Source::span(Place place) const { return {file_, place.line, place.column, place.length}; }

base::Diagnostic Source::error(Place place, std::string message, std::string suggestion) const {
  base::Diagnostic out = base::invalid(std::move(message), span(place), std::move(suggestion));
  std::string_view text = line(place.line);
  if (text.size() > 400) text = {};  // a machine's line; the column says enough
  // The excerpt is shown as text: bytes that are not are replaced.
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t n = byte >= 0x80 ? size_t(utf8_length(text, i)) : (byte >= 0x20 && byte != 0x7F) || byte == '\t' ? 1 : 0;
    out.excerpt += n == 0 ? std::string_view("?") : text.substr(i, n);
    i += std::max<size_t>(n, 1);
  }
  return out;
}

base::Result<std::vector<Token>> tokenize(const Source& source) { return Lexer(source).run(); }

std::string quote(std::string_view name) {
  static constexpr std::string_view words[] = {"and", "or", "not", "else", "inf", "nan", "true", "false", "scan", "final"};
  bool bare = !name.empty() && !is_digit(name[0]) && std::find(std::begin(words), std::end(words), name) == std::end(words);
  bool dot = true;
  for (size_t i = 0; i < name.size() && bare;) {
    const auto byte = static_cast<unsigned char>(name[i]);
    size_t n = 0;
    if (byte >= 0x80) n = size_t(utf8_length(name, i));
    else if (is_letter(name[i]) || (is_digit(name[i]) && !dot)) n = 1;
    else if (name[i] == '.' && !dot && i + 1 < name.size()) n = 1;
    bare = n != 0;
    dot = name[i] == '.';
    i += std::max<size_t>(n, 1);
  }
  if (bare) return std::string(name);
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Name: return "`" + quote(token.text) + "`";
    case TokenKind::Integer:
    case TokenKind::Real:
    case TokenKind::Symbol: return "`" + token.text + "`";
    case TokenKind::Separator: return token.text == ";" ? "`;`" : "the end of the line";
    case TokenKind::End: return "the end of the text";
  }
  return "";
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  // Short names are too near to each other to guess.
  size_t least = name.size() <= 2 ? 1 : name.size() <= 5 ? 2 : name.size() <= 9 ? 3 : 4;  // strictly fewer edits
  for (const std::string& candidate : candidates) {
    if (candidate.size() > name.size() + 3 || name.size() > candidate.size() + 3 || name.size() > 64) continue;
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    std::vector<size_t> before;
    for (size_t i = 0; i < name.size(); ++i) {
      const std::vector<size_t> above = row;
      row[0] = i + 1;
      for (size_t j = 0; j < candidate.size(); ++j) {
        row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (name[i] == candidate[j] ? 0 : 1)});
        if (i > 0 && j > 0 && name[i] == candidate[j - 1] && name[i - 1] == candidate[j]) {
          row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);  // two letters swapped
        }
      }
      before = above;
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace lemma::syntax
