// Tokens shared by every text of Lemma: the maths, schedules and tile programs.
//
// The text is bytes; identifiers may hold any well-formed UTF-8 beyond ASCII, and a name in double quotes may hold any
// text of one line. Newlines separate statements, except inside ( ) and [ ], and where a line ends with an operator or
// the next begins with one that cannot begin a statement; `;` separates too. Comments run from # to the end of the
// line. Identifiers may have dotted parts (`p.max`). Any bytes give tokens or a Diagnostic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::syntax {

enum class TokenKind : uint8_t {
  Name,      // an identifier, or a quoted name
  Integer,   // `integer` holds its magnitude; `real` too
  Real,
  Symbol,    // `text` is one of the operators or brackets
  Separator, // a newline or `;`
  End,
};

// Where a piece of text stands; counts as base::Span does.
struct Place {
  int line = 0;
  int column = 0;
  int length = 0;
};

struct Token {
  TokenKind kind = TokenKind::End;
  bool quoted = false;        // a name in quotes: never a keyword
  bool spaced = false;        // white space stands before it
  bool oversized = false;     // an integer beyond 64 bits; `real` still holds it
  std::string text;
  uint64_t integer = 0;
  double real = 0;
  Place place;

  bool symbol(std::string_view s) const { return kind == TokenKind::Symbol && text == s; }
  bool word(std::string_view s) const { return kind == TokenKind::Name && !quoted && text == s; }
};

// A text with its name, for messages.
class Source {
 public:
  Source(std::string_view text, std::string file);
  const std::string& file() const { return file_; }
  std::string_view text() const { return text_; }
  std::string_view line(int number) const;   // counts from 1; without its end
  base::Span span(Place place) const;
  base::Diagnostic error(Place place, std::string message, std::string suggestion = {}) const;

 private:
  std::string text_;
  std::string file_;
  std::vector<size_t> starts_;
};

base::Result<std::vector<Token>> tokenize(const Source& source);

// How a name is written so that it reads back: bare, or in quotes.
std::string quote(std::string_view name);
// What a message calls a token: "`+`", "the name `x`", "the end of the line" ...
std::string describe(const Token& token);
// The nearest of `candidates` to a misspelt name, or "".
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace lemma::syntax
