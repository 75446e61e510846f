#include "lemma/syntax/token.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lemma::syntax {
namespace {

// The tokens, one a word; separators as `;`.
std::string tokens(const std::string& text) {
  const Source source(text, "t");
  const auto found = tokenize(source);
  if (!found.ok()) return "error at " + std::to_string(found.error().span.line) + ":" + std::to_string(found.error().span.column) + ": " + found.error().message;
  std::string out;
  for (const Token& t : *found) {
    if (t.kind == TokenKind::End) break;
    out += (out.empty() ? "" : " ") + (t.kind == TokenKind::Separator ? ";" : t.quoted ? "\"" + t.text + "\"" : t.text);
  }
  return out;
}

double number(const std::string& text) {
  const Source source(text, "t");
  const auto found = tokenize(source);
  return found.ok() && found->size() > 1 && (*found)[0].text == text ? (*found)[0].real : -1;
}

TEST(Tokens, split_operators_names_and_quoted_names) {
  EXPECT_EQ(tokens("a_1[i]*b//2+:c->d..5 \"x y\" # note"), "a_1 [ i ] * b // 2 +: c -> d .. 5 \"x y\" ;");
  EXPECT_EQ(tokens("p.max x.A[i] 0..E"), "p.max x.A [ i ] 0 .. E ;");
  EXPECT_EQ(tokens("\"a\\\"b\""), "\"a\"b\" ;");
  EXPECT_EQ(tokens("größe = 1"), "größe = 1 ;");
}

TEST(Tokens, separate_statements_by_lines) {
  EXPECT_EQ(tokens("a = 1\nb = 2; c = 3\n\n\nd"), "a = 1 ; b = 2 ; c = 3 ; d ;");
  EXPECT_EQ(tokens("a = (1 +\n 2)\nb"), "a = ( 1 + 2 ) ; b ;");
  EXPECT_EQ(tokens("a = 1 +\n 2\nb[\ni\n]"), "a = 1 + 2 ; b [ i ] ;");
  EXPECT_EQ(tokens("a = 1\n + 2 # on\n else 3"), "a = 1 + 2 else 3 ;");
  EXPECT_EQ(tokens("{ a\n b }"), "{ a ; b } ;");
}

TEST(Tokens, read_numbers) {
  EXPECT_EQ(number("0x1.8p3"), 12);
  EXPECT_EQ(number("1e-3"), 1e-3);
  EXPECT_EQ(number("2.5"), 2.5);
  EXPECT_EQ(number("1."), 1);
  EXPECT_EQ(number("0x10"), 16);
  EXPECT_EQ(number("18446744073709551615"), 18446744073709551615.0);
  EXPECT_EQ(number("1e400"), HUGE_VAL);
  EXPECT_EQ(tokens("1..5"), "1 .. 5 ;");
}

TEST(Tokens, say_what_is_wrong) {
  EXPECT_EQ(tokens("a = \"b"), "error at 1:5: this quoted name has no end, expected `\"` on the same line");
  EXPECT_EQ(tokens("a\n = $"), "error at 2:4: found `$`, which no statement uses");
  EXPECT_EQ(tokens("a \xff"), "error at 1:3: found the byte 0xff, expected text in UTF-8");
  EXPECT_EQ(tokens("1abc"), "error at 1:1: found `1abc`, expected a number or a name");
  EXPECT_EQ(tokens("\"\""), "error at 1:1: found an empty name, expected some text between the quotes");
}

TEST(Tokens, know_their_place) {
  const Source source("a = 1\n  bcd", "t");
  const auto found = *tokenize(source);
  EXPECT_EQ(found[4].place.line, 2);
  EXPECT_EQ(found[4].place.column, 3);
  EXPECT_EQ(found[4].place.length, 3);
}

TEST(Names, are_quoted_where_needed) {
  EXPECT_EQ(quote("abc"), "abc");
  EXPECT_EQ(quote("p.max"), "p.max");
  EXPECT_EQ(quote("1a"), "\"1a\"");
  EXPECT_EQ(quote("x y"), "\"x y\"");
  EXPECT_EQ(quote("else"), "\"else\"");
  EXPECT_EQ(quote("a\"b"), "\"a\\\"b\"");
}

TEST(Names, are_guessed) {
  const std::vector<std::string> names = {"scores", "softmax", "x"};
  EXPECT_EQ(nearest("scroes", names), "scores");
  EXPECT_EQ(nearest("sofmax", names), "softmax");
  EXPECT_EQ(nearest("weights", names), "");
}

}  // namespace
}  // namespace lemma::syntax
