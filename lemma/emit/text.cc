// print and extern: text that goes out as it is, with names and values put in.
#include "lemma/emit/body.h"
#include "lemma/emit/library.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;

namespace {

// How fprintf takes a value of a kind, and what the value is cast to.
struct Spelling {
  const char* format;
  const char* cast;
};
Spelling spelling(Kind kind) {
  if (scalar::is_float(kind)) return {"%.9g", "(double)"};
  if (kind == Kind::U64) return {"%llu", "(unsigned long long)"};
  return {"%lld", "(long long)"};
}

}  // namespace

void emit_print(Unit& unit, const tile::Print& print) {
  const view::Formula always;
  unit.prints = true;
  BodyText body{&always, &print.reads, {}};
  for (Expr e : print.values) body.roots.push_back(scalar::import(e, unit.arena));
  std::string format;
  size_t next = 0;
  for (size_t i = 0; i < print.text.size(); ++i) {
    if (print.text.compare(i, 2, "{}") == 0) {
      format += spelling(print.values[next++].kind()).format;
      ++i;
    } else {
      format += print.text[i] == '%' ? "%%" : std::string(1, print.text[i]);
    }
  }
  unit.out.open("");
  scalar_body(unit, Frame{}, body, [&](Frame& frame) {
    const std::vector<Value> values = emit_values(unit, frame, body.roots);
    std::string call = "fprintf(stderr, " + quoted(format + "\n");
    for (size_t i = 0; i < values.size(); ++i) call += std::string(", ") + spelling(body.roots[i].kind()).cast + values[i].text;
    unit.out.line(call + ");");
  }, nullptr);
  unit.out.close();
}

void emit_extern(Unit& unit, const tile::Extern& text) {
  std::vector<std::string> names;
  for (const auto* list : {&text.reads, &text.writes}) {
    for (int b : *list) names.push_back(unit.buffer_name(b));
  }
  unit.out.open("");
  Frame frame;
  std::vector<Expr> roots;
  for (Expr e : text.values) roots.push_back(scalar::import(e, unit.arena));
  for (const Value& v : emit_values(unit, frame, roots)) names.push_back("(" + v.text + ")");
  for (const std::string& line : text.lines) {
    std::string out;
    for (size_t i = 0; i < line.size(); ++i) {
      size_t end = i + 1;
      while (end < line.size() && line[end] >= '0' && line[end] <= '9') ++end;
      if (line[i] != '$' || end == i + 1 || end > i + 4) {
        out += line[i];
        continue;
      }
      const size_t which = size_t(std::stoi(line.substr(i + 1, end - i - 1)));
      out += which < names.size() ? names[which] : line.substr(i, end - i);
      i = end - 1;
    }
    unit.out.line(out);
  }
  unit.out.close();
}

}  // namespace lemma::emit
