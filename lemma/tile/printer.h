// The printer keeps the names of what is in scope and writes a statement at a time. A statement's reads stand inline,
// as `a[i, k]`, where reading the text from left to right meets them in the order of the list; else each gets a line
// `read name = a[i, k] if guard` first and is used by name.
//
// print.cc has the entry points, print_statements.cc a function a statement, print_monoids.cc definitions of monoids.
// Private to these files.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "lemma/layout/text.h"
#include "lemma/scalar/print.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/monoid_text.h"
#include "lemma/tile/names.h"
#include "lemma/tile/space.h"

namespace lemma::tile {

inline const char* space_word(Space s) {
  switch (s) {
    case Space::Input: return "input";
    case Space::Output: return "output";
    case Space::Update: return "update";
    case Space::Scratch: return "scratch";
    case Space::Shared: return "shared";
    case Space::Fragment: return "fragment";
    case Space::Local: return "local";
  }
  return "";
}

// In quotes; one line.
inline std::string string_text(const std::string& s) {
  std::string out = "\"";
  for (char c : message_text(s)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

using Name = std::function<std::string(int)>;

inline scalar::LeafNames exact_names(Name arg, Name present, Name index, Name size, Name let) {
  scalar::LeafNames names{std::move(arg), std::move(present), std::move(index), std::move(size), std::move(let)};
  names.exact = true;
  return names;
}

// To learn in which order a text shows reads, it is printed with marks for them, which are then found.
inline std::string mark(int read) { return "\x01" + std::to_string(read) + "\x02"; }

inline void each_mark(const std::string& text, const std::function<void(int)>& f) {
  for (size_t i = text.find('\x01'); i != std::string::npos; i = text.find('\x01', i + 1)) {
    f(int(std::strtol(text.c_str() + i + 1, nullptr, 10)));
  }
}

class Printer {
 public:
  explicit Printer(const Program& program)
      : program_(program), names_(global_names(program)), variables_(program.variables.size()),
        allocated_(program.buffers.size()) {
    for (const Kernel& k : program.kernels) {
      visit(k.body, [&](const Stmt& s) { collect(s); });
    }
  }

  std::string program_text() {
    line("program" + (names_.program.empty() ? "" : " " + names_.program) + " {");
    ++indent_;
    for (size_t i = 0; i < program_.sizes.size(); ++i) size(i);
    for (size_t i = 0; i < monoids_.size(); ++i) monoid(i);
    for (const Assert& a : program_.requirements) {
      Statement s(*this, a.reads);
      s.formula_order(a.condition);
      s.prefix();
      line("require " + s.formula(a.condition) + message(a.message));
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      if (!is_local(b.space)) line(declaration(i));
      else if (!ever_allocated_[i]) line("unused " + declaration(i));
    }
    for (size_t i = 0; i < program_.kernels.size(); ++i) kernel(program_.kernels[i], names_.kernels[i]);
    --indent_;
    line("}");
    return std::move(out_);
  }

  std::string kernel_text(const Kernel& k) {
    kernel(k, identifier(k.name, "kernel"));
    return std::move(out_);
  }

 private:
  // ---- names ----

  void collect(const Stmt& s) {
    ever_allocated_.resize(program_.buffers.size());
    if (const auto* a = std::get_if<Alloc>(&s)) ever_allocated_[size_t(a->buffer)] = true;
    const monoid::MonoidRef* m = nullptr;
    if (const auto* r = std::get_if<Reduce>(&s)) m = &r->monoid;
    if (const auto* r = std::get_if<Scan>(&s)) m = &r->monoid;
    if (!m || !*m || !monoid_name(**m).empty()) return;
    monoids_.push_back(*m);
    monoid_names_.push_back(names_.taken.take(identifier((*m)->name, "monoid")));
  }

  // The library's text, or the name of the definition; empty if it has none yet.
  std::string monoid_name(const monoid::Monoid& m) const {
    if (auto text = library_text(m)) return *text;
    for (size_t i = 0; i < monoids_.size(); ++i) {
      if (monoid::same(*monoids_[i], m)) return monoid_names_[i];
    }
    return "";
  }

  void bind(Var v) {
    if (v < 0 || size_t(v) >= variables_.size()) return;
    variables_[size_t(v)] = names_.taken.take(identifier(program_.variables[size_t(v)], "v"));
  }
  void bind(const std::vector<Range>& ranges) { for (const Range& r : ranges) bind(r.var); }
  void release(Var v) {
    if (v < 0 || size_t(v) >= variables_.size()) return;
    names_.taken.release(variables_[size_t(v)]);
    variables_[size_t(v)].clear();
  }
  void release(const std::vector<Range>& ranges) { for (const Range& r : ranges) release(r.var); }

  // Programs that are not valid print too: messages about them need a text.
  std::string variable(int v) const {
    const bool known = v >= 0 && size_t(v) < variables_.size() && !variables_[size_t(v)].empty();
    return known ? variables_[size_t(v)] : "unbound_" + std::to_string(v);
  }
  std::string size_name(int s) const {
    return s >= 0 && size_t(s) < names_.sizes.size() ? names_.sizes[size_t(s)] : "unknown_size_" + std::to_string(s);
  }
  std::string buffer_name(int b) const {
    return b >= 0 && size_t(b) < names_.buffers.size() ? names_.buffers[size_t(b)] : "unknown_buffer_" + std::to_string(b);
  }

  // ---- the reads and expressions of one statement ----

  class Statement {
   public:
    Statement(Printer& printer, const std::vector<Access>& reads) : p_(printer), reads_(reads), seen_(reads.size()) {}
    ~Statement() { for (const std::string& n : taken_) p_.names_.taken.release(n); }
    Statement(const Statement&) = delete;

    // First tell it, in the order of the text, of everything that is printed; then print.
    void formula_order(const view::Formula& f) { p_.mention(f, [&](int r) { mention(r); }); }
    void form_order(const view::Form& f) { p_.mention(f, [&](int r) { mention(r); }); }
    void force_names() { named_ = true; }
    void expressions(const std::vector<scalar::Expr>& roots) {
      roots_ = roots;
      const scalar::Printed trial = scalar::print_with_lets(roots_, leaf_names(mark));
      for (const scalar::Let& d : trial.lets) each_mark(d.text, [&](int r) { mention(r); });
      for (const std::string& root : trial.roots) each_mark(root, [&](int r) { mention(r); });
      for (scalar::Expr e : scalar::reachable(roots_)) named_ = named_ || e.is(scalar::Op::Present);
    }

    // `read` and `def` lines; a domain that could not stand in the statement's head.
    void prefix() {
      decide();
      if (named_) {
        for (size_t r = 0; r < reads_.size(); ++r) read_names_.push_back(fresh("r"));
        for (size_t r = 0; r < reads_.size(); ++r) p_.line("read " + read_names_[r] + " = " + access(reads_[r]));
      }
    }
    void definitions() {
      if (roots_.empty()) return;
      text_ = scalar::print_with_lets(roots_, leaf_names([&](int r) { return read(r); }));
      for (const scalar::Let& d : text_.lets) p_.line("def " + d.name + " = " + d.text);
    }
    bool named() { decide(); return named_; }
    std::string root(size_t i) const { return text_.roots[i]; }
    std::string formula(const view::Formula& f) { return view::print(f, form_names()); }
    std::string form(const view::Form& f) { return view::print(f, form_names()); }
    std::string access(const Access& a) {
      std::string out = p_.buffer_name(a.buffer) + "[";
      for (size_t i = 0; i < a.coords.size(); ++i) out += (i ? ", " : "") + form(a.coords[i]);
      out += "]";
      if (!a.guard.is_always()) out += " if " + formula(a.guard);
      return out;
    }

   private:
    scalar::LeafNames leaf_names(std::function<std::string(int)> arg) {
      return exact_names(std::move(arg), [this](int r) { return "present(" + read(r) + ")"; },
                         [this](int v) { return p_.variable(v); }, [this](int s) { return p_.size_name(s); },
                         [this](int) { return fresh("t"); });
    }
    view::Names form_names() {
      return {[this](int v) { return p_.variable(v); }, [this](int s) { return p_.size_name(s); },
              [this](int r) { return read(r); }};
    }
    std::string read(int r) {
      if (r < 0 || size_t(r) >= reads_.size()) return "unknown_read_" + std::to_string(r);
      if (size_t(r) < read_names_.size()) return read_names_[size_t(r)];
      return access(reads_[size_t(r)]);
    }
    std::string fresh(const std::string& base) {
      taken_.push_back(p_.names_.taken.take(base));
      return taken_.back();
    }

    // The first mention of a read, after those its coordinates mention.
    void mention(int r) {
      if (r < 0 || size_t(r) >= reads_.size() || seen_[size_t(r)]) return;
      seen_[size_t(r)] = true;
      for (const view::Form& f : reads_[size_t(r)].coords) form_order(f);
      in_order_ = in_order_ && size_t(r) == next_;
      ++next_;
    }
    void decide() {
      if (decided_) return;
      decided_ = true;
      // Trial texts took names; they begin anew.
      for (const std::string& n : taken_) p_.names_.taken.release(n);
      taken_.clear();
      named_ = named_ || !in_order_ || next_ != reads_.size();
      for (size_t r = 0; r < reads_.size(); ++r) {
        named_ = named_ || !reads_[r].guard.is_always();
        for (size_t q = 0; q < r && !named_; ++q) named_ = reads_[q] == reads_[r];
      }
    }

    Printer& p_;
    const std::vector<Access>& reads_;
    std::vector<char> seen_;
    std::vector<std::string> read_names_, taken_;
    std::vector<scalar::Expr> roots_;
    scalar::Printed text_;
    size_t next_ = 0;
    bool in_order_ = true, named_ = false, decided_ = false;
  };

  // Every read a form or formula shows, in the order of its text.
  template <class F>
  void mention(const F& f, const std::function<void(int)>& order) {
    auto nothing = [](int) { return std::string(); };
    each_mark(view::print(f, {nothing, nothing, mark}), order);
  }

  // ---- lines ----

  void line(const std::string& text) { (out_.append(size_t(indent_) * 2, ' ') += text) += '\n'; }

  void comment(const std::string& text) {
    if (text.empty()) return;
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      line("# " + text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  std::string message(const std::string& m) const { return m.empty() ? "" : " : " + string_text(m); }

  std::string form(const view::Form& f) { return Statement(*this, kNoReads).form(f); }

  std::string ranges(const std::vector<Range>& list) {
    // Extents are over outer variables; their names are known, those of the ranges are bound by the caller.
    std::string out = "(";
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + variable(list[i].var) + " < " + form(list[i].extent);
    return out + ")";
  }

  void size(size_t i) {
    const SizeDecl& s = program_.sizes[i];
    if (!s.definition.valid()) return line("size " + names_.sizes[i] + (s.typical ? " like " + std::to_string(*s.typical) : ""));
    Statement text(*this, kNoReads);
    text.expressions({s.definition});
    text.prefix();
    text.definitions();
    line("size " + names_.sizes[i] + " = " + text.root(0));
  }

  std::string forms(const std::vector<view::Form>& list) {
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + form(list[i]);
    return out + "]";
  }

  std::string declaration(size_t i) {
    const Buffer& b = program_.buffers[i];
    std::string out = std::string(space_word(b.space)) + " " + names_.buffers[i] + " " +
                      std::string(scalar::name(b.type)) + forms(b.extents);
    if (!b.strides.empty()) out += " strides " + forms(b.strides);
    if (b.low && b.high) out += " in " + form(*b.low) + " .. " + form(*b.high);
    if (b.layout.kind == LayoutKind::Panels) {
      out += " panels " + std::to_string(b.layout.width);
      if (b.layout.interleave != 1) out += " interleave " + std::to_string(b.layout.interleave);
    }
    if (b.layout.pad != 0) out += " pad " + std::to_string(b.layout.pad);
    if (b.hints.swizzle != 0) out += " layout swizzle " + std::to_string(b.hints.swizzle);
    if (b.hints.placed) out += " layout " + string_text(layout::print(*b.hints.placed));
    if (b.hints.ring) out += " ring";
    if (b.hints.versions != 1) out += " versions " + std::to_string(b.hints.versions);
    return out;
  }

  void monoid(size_t which);

  void kernel(const Kernel& k, const std::string& name) {
    comment(k.comment);
    std::string grid;
    for (const GridLoop& g : k.grid) {
      const std::string extent = form(g.extent);
      bind(g.var);
      grid += std::string(grid.empty() ? "" : ", ") + (g.descending ? "descending " : "") + variable(g.var) + " < " + extent;
    }
    std::string head = "kernel " + name;
    if (!grid.empty()) head += std::string(" grid ") + (k.hints.persistent ? "persistent " : "") + "(" + grid + ")";
    if (k.hints.order_rows != 0) head += " order rows " + std::to_string(k.hints.order_rows);
    if (k.hints.threads != 0) head += " threads " + std::to_string(k.hints.threads);
    if (k.hints.warps != 0) head += " warps " + std::to_string(k.hints.warps);
    if (k.hints.synchronised) head += " synchronised";
    line(head + " {");
    block(k.body);
    line("}");
    for (const GridLoop& g : k.grid) release(g.var);
  }

  void block(const Block& body) {
    ++indent_;
    std::vector<Var> lets;
    for (const Stmt& s : body) {
      placement_ = placement_text(s.placement);
      std::visit([&](const auto& x) { statement(x); }, static_cast<const Stmt::variant&>(s));
      if (const auto* let = std::get_if<Let>(&s)) lets.push_back(let->var);
      if (!std::holds_alternative<Phase>(s)) continue;
      for (Var v : lets) release(v);
      lets.clear();
    }
    for (Var v : lets) release(v);
    --indent_;
  }

  // ---- statements: print_statements.cc ----

  static std::string placement_text(const Placement& p);
  std::string placed();
  void statement(const Let& s);
  void statement(const Alloc& s);
  void statement(const Copy& s);
  void statement(const Combine& s);
  void statement(const Print& s);
  void statement(const Extern& s);
  void statement(const Phase&);
  void statement(const Barrier&);
  void statement(const Commit&);
  void statement(const Wait& s);
  std::string where(Statement& text, const view::Formula& f);
  void where_line(Statement& text, const view::Formula& f);
  static bool targets_read(const std::vector<Store>& stores);
  void print_stores(Statement& text, const std::vector<Store>& stores, size_t root);
  static std::vector<scalar::Expr> store_values(const std::vector<Store>& stores);
  void statement(const Map& s);
  template <class S>
  void fold(Statement& text, const S& s);
  std::string by(const monoid::MonoidRef& m) const;
  void statement(const Reduce& s);
  void statement(const Scan& s);
  void scan_stores(const std::vector<Store>& stores);
  static std::string team_text(Team team);
  void statement(const Gemm& s);
  std::string pipelined_text(const For& s);
  void statement(const For& s);
  void statement(const If& s);
  void statement(const Assert& s);

  static const std::vector<Access> kNoReads;

  const Program& program_;
  GlobalNames names_;
  std::vector<std::string> variables_;       // of those in scope
  std::vector<char> allocated_;              // declared in the text already
  std::vector<char> ever_allocated_ = std::vector<char>(program_.buffers.size());
  std::vector<monoid::MonoidRef> monoids_;   // those the library does not make, each once
  std::vector<std::string> monoid_names_;
  std::string out_;
  std::string placement_;                    // what is still to be said of the statement under way
  int indent_ = 0;
};

}  // namespace lemma::tile
