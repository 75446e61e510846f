#include "lemma/tile/parse_macros.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "lemma/tile/names.h"

namespace lemma::tile {
namespace {

using base::Result;
using syntax::Token;
using syntax::TokenKind;

constexpr size_t kMostTokens = size_t(1) << 20;  // of a program after expansion, and of one call's lines
constexpr int kMostCalls = 1 << 16;
constexpr size_t kMostMacros = 1024;
constexpr size_t kMostNested = 64;               // calls inside calls

struct Macro {
  std::vector<std::string> parameters;
  std::vector<Token> body;
  std::set<std::string> bound;   // names that the body binds
  bool builtin = false;
};

bool opens(const Token& t) { return t.symbol("(") || t.symbol("[") || t.symbol("{"); }
bool closes(const Token& t) { return t.symbol(")") || t.symbol("]") || t.symbol("}"); }

bool one_of(const Token& t, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return t.word(w); });
}

// The names that a macro's lines bind: lets, definitions, reads, loops, buffers and the variables of statements.
std::set<std::string> bound_names(const std::vector<Token>& body) {
  std::set<std::string> out;
  std::vector<bool> lists;       // for each open bracket: does it hold variables?
  for (size_t i = 0; i < body.size(); ++i) {
    const Token& t = body[i];
    const Token* before = i > 0 ? &body[i - 1] : nullptr;
    if (opens(t)) lists.push_back(t.symbol("(") && before && one_of(*before, {"map", "gemm", "copy", "reduce", "scan", "over", "axes", "along", "where", "sum", "prod", "add", "mul", "max", "min", "any", "all"}));
    if (closes(t) && !lists.empty()) lists.pop_back();
    if (t.kind != TokenKind::Name || !before || i + 1 == body.size()) continue;
    if (one_of(*before, {"let", "def", "read", "for"}) && (body[i + 1].symbol("=") || body[i + 1].word("in"))) out.insert(t.text);
    if (!lists.empty() && lists.back() && body[i + 1].symbol("<") && (before->symbol("(") || before->symbol(","))) out.insert(t.text);
    if (one_of(*before, {"shared", "fragment", "local"})) {
      // names and types up to the end of the line
      int depth = 0;
      for (size_t k = i; k < body.size() && body[k].kind != TokenKind::Separator; ++k) {
        if (opens(body[k])) ++depth;
        if (closes(body[k]) && --depth < 0) break;
        const bool first = k == i || (depth == 0 && body[k - 1].symbol(","));
        if (first && body[k].kind == TokenKind::Name) out.insert(body[k].text);
      }
    }
  }
  return out;
}

class Expander {
 public:
  explicit Expander(const syntax::Source& source) : source_(source) {}

  Result<std::vector<Token>> run(const std::vector<Token>& tokens) {
    const syntax::Source library(prelude(), "prelude.tile");
    LEMMA_TRY(const std::vector<Token> texts, syntax::tokenize(library));
    std::vector<Token> rest;
    LEMMA_TRY_VOID(collect(texts, true, rest));
    rest.clear();
    LEMMA_TRY_VOID(collect(tokens, false, rest));
    hand_out();
    std::vector<Token> out;
    std::vector<std::string> active;
    LEMMA_TRY_VOID(expand(rest, active, out));
    return out;
  }

 private:
  // Takes the definitions out; what is left goes on.
  Result<void> collect(const std::vector<Token>& tokens, bool builtin, std::vector<Token>& rest) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool begins = i == 0 || tokens[i - 1].kind == TokenKind::Separator || tokens[i - 1].symbol("{");
      if (!begins || !tokens[i].word("macro") || i + 2 >= tokens.size() || tokens[i + 1].kind != TokenKind::Name || !tokens[i + 2].symbol("(")) {
        rest.push_back(tokens[i]);
        continue;
      }
      const Token& name = tokens[i + 1];
      Macro m;
      m.builtin = builtin;
      i += 3;
      while (i < tokens.size() && !tokens[i].symbol(")")) {
        if (tokens[i].kind != TokenKind::Name) return source_.error(tokens[i].place, "found " + syntax::describe(tokens[i]) + ", expected the name of a parameter of the macro `" + name.text + "`");
        m.parameters.push_back(tokens[i].text);
        ++i;
        if (i < tokens.size() && tokens[i].symbol(",")) ++i;
      }
      if (i + 1 >= tokens.size() || !tokens[i + 1].symbol("{")) return source_.error(name.place, "the macro `" + name.text + "` has no body", "write its lines in braces after the parameters");
      size_t end = i + 2;
      for (int depth = 1; end < tokens.size(); ++end) {
        if (opens(tokens[end])) ++depth;
        if (closes(tokens[end]) && --depth == 0) break;
      }
      if (end >= tokens.size()) return source_.error(name.place, "the macro `" + name.text + "` has no end, expected `}`");
      m.body.assign(tokens.begin() + long(i) + 2, tokens.begin() + long(end));
      m.bound = bound_names(m.body);
      if (is_reserved(name.text)) return source_.error(name.place, "the word `" + name.text + "` is not free to be a macro's name", "choose another name");
      if (macros_.size() >= kMostMacros) return source_.error(name.place, "this program has more than " + std::to_string(kMostMacros) + " macros");
      const auto known = macros_.find(name.text);
      if (known != macros_.end() && !known->second.builtin) return source_.error(name.place, "the macro `" + name.text + "` is defined twice", "give one of them another name");
      macros_[name.text] = std::move(m);
      i = end;
    }
    return {};
  }

  // A name that a macro hands to a parameter which the callee binds is bound by the macro.
  void hand_out() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [name, m] : macros_) {
        for (size_t i = 0; i + 1 < m.body.size(); ++i) {
          const auto callee = m.body[i].kind == TokenKind::Name && m.body[i + 1].symbol("(") ? macros_.find(m.body[i].text) : macros_.end();
          if (callee == macros_.end()) continue;
          size_t at = i + 1;
          const auto given = arguments(m.body, at);
          if (!given.ok()) continue;
          for (size_t a = 0; a < given->size() && a < callee->second.parameters.size(); ++a) {
            const std::vector<Token>& one = (*given)[a];
            if (one.size() == 1 && one[0].kind == TokenKind::Name && callee->second.bound.count(callee->second.parameters[a])) {
              changed = m.bound.insert(one[0].text).second || changed;
            }
          }
        }
      }
    }
  }

  using Arguments = std::vector<std::vector<Token>>;

  // The arguments of a call; `at` stands on `(` and is left behind `)`.
  Result<Arguments> arguments(const std::vector<Token>& tokens, size_t& at) const {
    Arguments out;
    const Token open = tokens[at++];
    std::vector<Token> one;
    for (int depth = 0; at < tokens.size(); ++at) {
      const Token& t = tokens[at];
      if (t.kind == TokenKind::End) break;
      if (opens(t)) ++depth;
      if (closes(t) && depth-- == 0) {
        if (!one.empty() || !out.empty()) out.push_back(std::move(one));
        ++at;
        return out;
      }
      if (depth == 0 && t.symbol(",")) {
        out.push_back(std::move(one));
        one.clear();
      } else {
        one.push_back(t);
      }
    }
    return source_.error(open.place, "found no `)` after the arguments of a macro");
  }

  // An argument with operators of its own stands in a parenthesis, unless it is a part of a tile.
  static bool needs_parenthesis(const std::vector<Token>& argument) {
    int depth = 0;
    for (const Token& t : argument) {
      if (opens(t)) ++depth;
      else if (closes(t)) --depth;
      else if (depth == 0 && t.kind == TokenKind::Symbol && !t.symbol("^")) return true;
    }
    return false;
  }

  base::Diagnostic too_long(const Token& call) const {
    return source_.error(call.place, "the macros expand to more than 2^20 tokens here", "write a loop instead of nested macros");
  }

  Result<std::vector<Token>> instance(const Macro& m, const Arguments& given, const Token& call) {
    const std::string suffix = "." + std::to_string(++instances_);  // no name of a text ends so
    std::vector<Token> out;
    for (Token t : m.body) {
      if (out.size() > kMostTokens) return too_long(call);
      if (m.builtin) t.place = call.place;
      const auto p = t.kind == TokenKind::Name && !t.quoted ? std::find(m.parameters.begin(), m.parameters.end(), t.text) : m.parameters.end();
      if (p != m.parameters.end()) {
        std::vector<Token> argument = given[size_t(p - m.parameters.begin())];
        const bool wrap = needs_parenthesis(argument);
        Token bracket = t;
        bracket.kind = TokenKind::Symbol;
        bracket.text = "(";
        if (wrap) out.push_back(bracket);
        out.insert(out.end(), argument.begin(), argument.end());
        bracket.text = ")";
        if (wrap) out.push_back(bracket);
        continue;
      }
      if (t.kind == TokenKind::Name && !t.quoted && m.bound.count(t.text)) t.text += suffix;
      out.push_back(std::move(t));
    }
    return out;
  }

  Result<void> expand(const std::vector<Token>& tokens, std::vector<std::string>& active, std::vector<Token>& out) {
    for (size_t i = 0; i < tokens.size();) {
      const Token& t = tokens[i];
      const bool begins = i == 0 || tokens[i - 1].kind == TokenKind::Separator || tokens[i - 1].symbol("{") || tokens[i - 1].symbol("}");
      const auto m = begins && t.kind == TokenKind::Name && !t.quoted && i + 1 < tokens.size() && tokens[i + 1].symbol("(") ? macros_.find(t.text) : macros_.end();
      if (m == macros_.end()) {
        out.push_back(t);
        ++i;
        if (out.size() > kMostTokens) return too_long(t);
        continue;
      }
      if (std::find(active.begin(), active.end(), t.text) != active.end()) {
        return source_.error(t.place, "the macro `" + t.text + "` calls itself", "macros are expanded as text and cannot recur; write a loop");
      }
      size_t at = i + 1;
      LEMMA_TRY(const Arguments given, arguments(tokens, at));
      if (given.size() != m->second.parameters.size()) {
        return source_.error(t.place, "the macro `" + t.text + "` takes " + std::to_string(m->second.parameters.size()) + " arguments, found " + std::to_string(given.size()));
      }
      for (const auto& one : given) {
        if (one.empty()) return source_.error(t.place, "the macro `" + t.text + "` is called with an empty argument");
      }
      if (++calls_ > kMostCalls) return source_.error(t.place, "this program calls macros more than " + std::to_string(kMostCalls) + " times", "write a loop instead of nested macros");
      if (active.size() >= kMostNested) return source_.error(t.place, "macros are called more than " + std::to_string(kMostNested) + " deep here", "write the lines of some of them out");
      LEMMA_TRY(const std::vector<Token> lines, instance(m->second, given, t));
      active.push_back(t.text);
      LEMMA_TRY_VOID(expand(lines, active, out));
      active.pop_back();
      i = at;
    }
    return {};
  }

  const syntax::Source& source_;
  std::map<std::string, Macro> macros_;
  int instances_ = 0;
  int calls_ = 0;
};

}  // namespace

Result<std::vector<Token>> expand_macros(const syntax::Source& source, const std::vector<Token>& tokens) {
  return Expander(source).run(tokens);
}

}  // namespace lemma::tile
