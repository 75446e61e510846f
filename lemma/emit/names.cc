#include "lemma/emit/names.h"

#include <algorithm>
#include <iterator>

namespace lemma::emit {
namespace {

// Sorted. Keywords of C23 and C++20, and the few library names a generated header must not shadow.
constexpr std::string_view kKeywords[] = {
    "NULL", "_Alignas", "_Alignof", "_Atomic", "_Bool", "_Complex", "_Generic", "_Imaginary", "_Noreturn",
    "_Static_assert", "_Thread_local", "abs", "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
    "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "cos",
    "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "errno", "exp", "explicit",
    "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "log", "long", "main",
    "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
    "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sin",
    "sizeof", "sqrt", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
    "threads", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unix", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while", "workspace", "xor", "xor_eq"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_c_keyword(std::string_view name) {
  return std::binary_search(std::begin(kKeywords), std::end(kKeywords), name);
}

std::string clean_identifier(std::string_view name) {
  std::string out;
  for (char c : name) {
    const char next = is_letter(c) || is_digit(c) ? c : '_';
    if (next == '_' && !out.empty() && out.back() == '_') continue;
    out += next;
  }
  if (out.empty() || out == "_") return "unnamed";
  if (is_digit(out[0])) out = "n" + out;
  if (out[0] == '_') out = out.substr(1);
  if (is_digit(out[0])) out = "n" + out;
  return out;
}

std::string Names::take(std::string_view prefix, std::string_view name) {
  const std::string base = std::string(prefix) + clean_identifier(name);
  std::string candidate = base;
  for (int i = 2; taken_.count(candidate) || (prefix.empty() && is_c_keyword(candidate)); ++i) {
    candidate = base + "_" + std::to_string(i);
  }
  taken_.insert(candidate);
  return candidate;
}

}  // namespace lemma::emit
