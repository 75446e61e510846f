// The text of each statement.
#include "lemma/tile/printer.h"

namespace lemma::tile {

using scalar::Expr;

std::string Printer::placement_text(const Placement& p) {
  std::string out;
  if (p.stage) out += " stage " + std::to_string(*p.stage);
  if (p.order) out += " order " + std::to_string(*p.order);
  if (!p.role.empty()) out += " by " + identifier(p.role, "role");
  return out;
}

// The words after a statement's head or at its end; they belong to the statement under way.
std::string Printer::placed() { return std::exchange(placement_, ""); }

void Printer::statement(const Let& s) {
  std::string value;
  {
    Statement text(*this, s.reads);
    text.expressions({s.value});
    text.prefix();
    text.definitions();
    value = text.root(0);
  }
  bind(s.var);
  line("let " + variable(s.var) + " = " + value);
}

void Printer::statement(const Alloc& s) {
  const bool known = s.buffer >= 0 && size_t(s.buffer) < program_.buffers.size();
  if (!known || allocated_[size_t(s.buffer)]) return line("alloc " + buffer_name(s.buffer));
  allocated_[size_t(s.buffer)] = true;
  line(declaration(size_t(s.buffer)));
}

void Printer::statement(const Copy& s) {
  bind(s.box);
  Statement text(*this, kNoReads);
  line("copy " + ranges(s.box) + " " + text.access(s.from) + " -> " + text.access(s.to) + " fill " +
       (s.fill.valid() && s.fill.is_const() ? scalar::print_exact(s.fill) : "none") + (s.async ? " async" : "") + placed());
  release(s.box);
}

void Printer::statement(const Combine& s) {
  bind(s.box);
  Statement text(*this, kNoReads);
  line("combine " + std::string(scalar::name(s.op)) + " " + ranges(s.box) + " " + text.access(s.from) + " -> " +
       text.access(s.to) + (s.bulk ? " bulk" : "") + (s.async ? " async" : "") +
       (s.ordered ? " ordered by " + form(*s.ordered) : "") + placed());
  release(s.box);
}

void Printer::statement(const Print& s) {
  Statement text(*this, s.reads);
  text.expressions(s.values);
  text.prefix();
  text.definitions();
  std::string out = "print " + string_text(s.text.empty() ? " " : s.text);
  for (size_t i = 0; i < s.values.size(); ++i) out += (i ? ", " : " ") + text.root(i);
  line(out);
}

void Printer::statement(const Extern& s) {
  std::string out = "extern " + identifier(s.dialect, "dialect");
  for (size_t i = 0; i < s.reads.size(); ++i) out += (i ? ", " : " reads ") + buffer_name(s.reads[i]);
  for (size_t i = 0; i < s.writes.size(); ++i) out += (i ? ", " : " writes ") + buffer_name(s.writes[i]);
  Statement text(*this, kNoReads);
  text.expressions(s.values);
  text.prefix();
  text.definitions();
  for (size_t i = 0; i < s.values.size(); ++i) out += (i ? ", " : " values ") + text.root(i);
  line(out + " {");
  ++indent_;
  for (const std::string& l : s.lines) line(string_text(l.empty() ? " " : l));
  --indent_;
  line("}");
}

void Printer::statement(const Phase&) { line("phase"); }
void Printer::statement(const Barrier&) { line("barrier"); }
void Printer::statement(const Commit&) { line("commit"); }
void Printer::statement(const Wait& s) { line("wait " + std::to_string(s.pending)); }

std::string Printer::where(Statement& text, const view::Formula& f) {
  return text.named() || f.is_always() ? "" : " where " + text.formula(f);
}

void Printer::where_line(Statement& text, const view::Formula& f) {
  if (text.named() && !f.is_always()) line("where " + text.formula(f));
}

// A target that reads stands before its value in the text and after it in no list: such reads get names.
bool Printer::targets_read(const std::vector<Store>& stores) {
  for (const Store& s : stores) {
    if (s.to.guard.uses(view::AtomKind::Data)) return true;
    for (const view::Form& f : s.to.coords) {
      if (f.uses(view::AtomKind::Data)) return true;
    }
  }
  return false;
}

void Printer::print_stores(Statement& text, const std::vector<Store>& stores, size_t root) {
  for (const Store& s : stores) {
    Access to = s.to;
    to.guard = view::Formula();
    std::string out = text.access(to);
    if (s.combine == scalar::Op::Add) out += " += ";
    else if (s.combine) out = "combine " + std::string(scalar::name(*s.combine)) + " " + out + " = ";
    else out += " = ";
    out += text.root(root++);
    if (s.otherwise.valid()) out += ", else " + text.root(root++);
    if (!s.to.guard.is_always()) out += ", if " + text.formula(s.to.guard);
    line(out);
  }
}

std::vector<Expr> Printer::store_values(const std::vector<Store>& stores) {
  std::vector<Expr> out;
  for (const Store& s : stores) {
    out.push_back(s.value);
    if (s.otherwise.valid()) out.push_back(s.otherwise);
  }
  return out;
}

void Printer::statement(const Map& s) {
  comment(s.comment);
  bind(s.points);
  {
    Statement text(*this, s.reads);
    text.formula_order(s.where);
    text.expressions(store_values(s.stores));
    if (targets_read(s.stores)) text.force_names();
    line("map " + ranges(s.points) + where(text, s.where) + placed() + " {");
    ++indent_;
    text.prefix();
    where_line(text, s.where);
    text.definitions();
    print_stores(text, s.stores, 0);
    --indent_;
    line("}");
  }
  release(s.points);
}

// What Reduce and Scan share: reads, domain, operands and states.
template <class S>
void Printer::fold(Statement& text, const S& s) {
  text.prefix();
  where_line(text, s.where);
  text.definitions();
  std::string operands, states;
  for (size_t i = 0; i < s.body.size(); ++i) operands += (i ? ", " : "") + text.root(i);
  Statement plain(*this, kNoReads);
  for (size_t i = 0; i < s.states.size(); ++i) states += (i ? ", " : "") + plain.access(s.states[i]);
  line("element " + operands);
  line("state " + states);
}

std::string Printer::by(const monoid::MonoidRef& m) const { return " by " + (m ? monoid_name(*m) : "nothing"); }

void Printer::statement(const Reduce& s) {
  comment(s.comment);
  for (const auto* r : {&s.points, &s.axes, &s.reduces}) bind(*r);
  {
    Statement text(*this, s.reads);
    text.formula_order(s.where);
    text.expressions(s.body);
    line("reduce " + ranges(s.points) + (s.axes.empty() ? "" : " axes " + ranges(s.axes)) + " over " +
         ranges(s.reduces) + by(s.monoid) + (s.accumulate ? " accumulate" : "") + where(text, s.where) + placed() + " {");
    ++indent_;
    fold(text, s);
    --indent_;
    line("}");
  }
  for (const auto* r : {&s.points, &s.axes, &s.reduces}) release(*r);
}

void Printer::statement(const Scan& s) {
  comment(s.comment);
  const std::vector<Range> along{s.along};
  for (const auto* r : {&s.points, &s.axes, &along}) bind(*r);
  {
    Statement text(*this, s.reads);
    text.formula_order(s.where);
    text.expressions(s.body);
    line("scan " + ranges(s.points) + (s.axes.empty() ? "" : " axes " + ranges(s.axes)) + " along " + ranges(along) +
         (s.reverse ? " reverse" : "") + (s.exclusive ? " exclusive" : "") + by(s.monoid) +
         (s.accumulate ? " accumulate" : "") + where(text, s.where) + placed() + " {");
    ++indent_;
    fold(text, s);
    scan_stores(s.stores);
    --indent_;
    line("}");
  }
  for (const auto* r : {&s.points, &s.axes, &along}) release(*r);
}

// The values of a scan's stores are over its states, `state(0)`, so they have definitions of their own.
void Printer::scan_stores(const std::vector<Store>& stores) {
  line("store {");
  ++indent_;
  std::vector<std::string> taken;
  const scalar::LeafNames names = exact_names(
      [](int c) { return "state(" + std::to_string(c) + ")"; },
      [](int c) { return "present(state(" + std::to_string(c) + "))"; }, [this](int v) { return variable(v); },
      [this](int n) { return size_name(n); },
      [&](int) { taken.push_back(names_.taken.take("t")); return taken.back(); });
  const std::vector<Expr> values = store_values(stores);
  const scalar::Printed text = scalar::print_with_lets(values, names);
  for (const scalar::Let& d : text.lets) line("def " + d.name + " = " + d.text);
  size_t root = 0;
  for (const Store& s : stores) {
    Statement plain(*this, kNoReads);
    Access to = s.to;
    to.guard = view::Formula();
    std::string out = plain.access(to) + " = " + text.roots[root++];
    if (s.otherwise.valid()) out += ", else " + text.roots[root++];
    if (!s.to.guard.is_always()) out += ", if " + plain.formula(s.to.guard);
    line(out);
  }
  for (const std::string& n : taken) names_.taken.release(n);
  --indent_;
  line("}");
}

std::string Printer::team_text(Team team) {
  switch (team) {
    case Team::Any: return "";
    case Team::Rows: return " team rows";
    case Team::Columns: return " team columns";
    case Team::Square: return " team square";
  }
  return "";
}

void Printer::statement(const Gemm& s) {
  comment(s.comment);
  std::vector<Range> all{s.m, s.n, s.k};
  all.insert(all.end(), s.taps.begin(), s.taps.end());
  bind(all);
  Statement text(*this, kNoReads);
  line("gemm " + ranges(all) + " " + text.access(s.acc) + (s.accumulate ? " += " : " = ") + text.access(s.a) + " * " +
       text.access(s.b) + team_text(s.team) + placed());
  release(all);
}

// `, pipelined 3, where (j < 128) j <= k`
std::string Printer::pipelined_text(const For& s) {
  std::string out = s.kind == LoopKind::Pipelined ? ", pipelined " + std::to_string(s.depth) : "";
  if (s.where.is_always() && s.points.empty()) return out;
  bind(s.points);
  out += ", where " + ranges(s.points) + " " + Statement(*this, kNoReads).formula(s.where);
  release(s.points);
  return out;
}

void Printer::statement(const For& s) {
  std::string begin, end;
  {
    Statement text(*this, kNoReads);
    text.expressions({s.begin, s.end});
    text.prefix();
    text.definitions();
    begin = text.root(0);
    end = text.root(1);
  }
  bind(s.var);
  line("for " + variable(s.var) + " in " + begin + " .. " + end + (s.step != 1 ? ", step " + std::to_string(s.step) : "") +
       (s.kind == LoopKind::Unrolled ? ", unrolled" : "") + pipelined_text(s) + placed() + " {");
  block(s.body);
  line("}");
  release(s.var);
}

void Printer::statement(const If& s) {
  {
    Statement text(*this, s.reads);
    text.formula_order(s.condition);
    text.prefix();
    line("if " + text.formula(s.condition) + " {");
  }
  block(s.then);
  if (!s.otherwise.empty()) {
    line("} else {");
    block(s.otherwise);
  }
  line("}");
}

void Printer::statement(const Assert& s) {
  Statement text(*this, s.reads);
  text.formula_order(s.condition);
  text.prefix();
  line((s.assumed ? "assume " : "assert ") + text.formula(s.condition) + message(s.message));
}

}  // namespace lemma::tile
