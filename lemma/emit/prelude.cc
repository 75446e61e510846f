#include "lemma/emit/prelude.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lemma/emit/prelude_pieces.h"

namespace lemma::emit {
namespace {

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Every word of `text` that starts with lm_ or LM_, in order.
std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    if (!in_word(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    if (word.substr(0, 3) == "lm_" || word.substr(0, 3) == "LM_") out.emplace_back(word);
    i = end;
  }
  return out;
}

std::string instantiate(std::string_view text, bool vector) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '@') {
      out += vector ? "vf" : "f32";
    } else if (text[i] == '$' && i + 1 < text.size()) {
      const char c = text[++i];
      if (c == 'F') out += vector ? "lm_vf" : "float";
      if (c == 'I') out += vector ? "lm_vi" : "int32_t";
      if (c == 'U') out += vector ? "lm_vu" : "uint32_t";
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Entry {
  std::string text;
  std::vector<std::string> needs;
  bool used = false;
};

// A piece defines the words that follow "static inline ... " up to '(' or "#define "; the first line's marker
// "//: a b c" names them, and is not copied.
struct Table {
  std::vector<Entry> entries;
  std::unordered_map<std::string, size_t> by_name;

  void add(const std::string& text) {
    const size_t end = text.find('\n');
    Entry entry{text.substr(end + 1), {}, false};
    entry.needs = words(entry.text);
    for (const std::string& name : words(std::string_view(text).substr(0, end))) by_name.emplace(name, entries.size());
    entries.push_back(std::move(entry));
  }
  void add(const Piece& piece) {
    if (!piece.generic) return add(std::string(piece.text));
    add(instantiate(piece.text, false));
    add(instantiate(piece.text, true));
  }
};

}  // namespace

std::string prelude_for(std::string_view text, int vector_bytes) {
  Table table;
  for (const Piece& p : basic_pieces()) table.add(p);
  for (const Piece& p : math_pieces()) table.add(p);
  for (const Piece& p : product_pieces()) table.add(p);

  std::vector<std::string> todo = words(text);
  while (!todo.empty()) {
    const std::string word = std::move(todo.back());
    todo.pop_back();
    const auto it = table.by_name.find(word);
    if (it == table.by_name.end() || table.entries[it->second].used) continue;
    Entry& entry = table.entries[it->second];
    entry.used = true;
    todo.insert(todo.end(), entry.needs.begin(), entry.needs.end());
  }

  std::string out = "#define LM_MAX_BYTES " + std::to_string(vector_bytes) + "\n";
  out += prelude_head();
  for (const Entry& entry : table.entries) {
    if (entry.used) out += entry.text;
  }
  return out;
}

}  // namespace lemma::emit
