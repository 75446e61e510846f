// Definitions of monoids, as text.
#include "lemma/tile/printer.h"

namespace lemma::tile {

using scalar::Expr;

namespace {

const char* structure_word(monoid::Structure s) {
  switch (s) {
    case monoid::Structure::Elementwise: return "elementwise";
    case monoid::Structure::RescaledSum: return "rescaled";
    case monoid::Structure::TopK: return "slots";
    case monoid::Structure::General: return "general";
  }
  return "";
}

}  // namespace

// A monoid's definition, over axis(i), inner(i), operand(i), read(i) and state(i).
void Printer::monoid(size_t which) {
  const monoid::Monoid& m = *monoids_[which];
  auto numbered = [](const char* base) { return [base](int i) { return base + ("(" + std::to_string(i) + ")"); }; };
  auto size = [this](int s) { return size_name(s); };
  auto expressions = [&](const std::string& head, Expr root, Name arg, Name index) {
    std::vector<std::string> taken;
    const scalar::Printed text = scalar::print_with_lets(
        {&root, 1}, exact_names(std::move(arg), numbered("present"), std::move(index), size, [&](int) {
          taken.push_back(names_.taken.take("t"));
          return taken.back();
        }));
    for (const scalar::Let& d : text.lets) line("def " + d.name + " = " + d.text);
    line(head + text.roots[0]);
    for (const std::string& n : taken) names_.taken.release(n);
  };
  std::string head = "monoid " + monoid_names_[which] + " " + structure_word(m.structure);
  if (m.commutative) head += " commutative";
  if (m.idempotent) head += " idempotent";
  if (m.scale != 1) head += " scale " + number_text(m.scale, false);
  if (m.count != 0) head += " count " + std::to_string(m.count);
  if (m.smallest) head += " smallest";
  line(head + " {");
  ++indent_;
  for (scalar::Kind k : m.operands) line("operand " + std::string(scalar::name(k)));
  for (const monoid::Component& c : m.components) line("component " + std::string(scalar::name(c.kind)) + forms(c.axes));
  for (Expr e : m.identity) expressions("identity ", e, numbered("operand"), numbered("axis"));
  for (Expr e : m.lift) expressions("lift ", e, numbered("operand"), numbered("axis"));
  for (size_t c = 0; c < m.combine.size(); ++c) {
    const monoid::Update& u = m.combine[c];
    const int axes = c < m.components.size() ? int(m.components[c].axes.size()) : 0;
    auto index = [axes](int i) { return i < axes ? "axis(" + std::to_string(i) + ")" : "inner(" + std::to_string(i - axes) + ")"; };
    line("combine {");
    ++indent_;
    if (!u.sums.empty()) line("over " + std::string(scalar::name(u.fold)) + " " + forms(u.sums));
    for (const monoid::StateRead& r : u.reads) {
      std::string coords;
      for (const view::Form& f : r.coords) {
        coords += (coords.empty() ? "" : ", ") + view::print(f, {index, size, [](int) { return std::string(); }});
      }
      line(std::string("read ") + (r.right ? "right" : "left") + "(" + std::to_string(r.component) + ")[" + coords + "]");
    }
    expressions("to ", u.body, numbered("read"), index);
    --indent_;
    line("}");
  }
  for (Expr e : m.finish) {
    expressions("finish ", e, numbered("state"), numbered("axis"));
  }
  --indent_;
  line("}");
}

}  // namespace lemma::tile
