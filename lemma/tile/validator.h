// One walk over the program that keeps, for every variable, whether it is in scope and, for every block-local buffer,
// whether it is alive. Each check states what it found and what was expected; the walk stops at the first failure. Private to
// validate.cc and validate_statements.cc.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "lemma/tile/edit.h"
#include "lemma/tile/space.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {

inline std::string quote(const std::string& name) { return "\"" + name + "\""; }

// What an expression or form may mention.
struct Scope {
  const std::vector<Access>* reads = nullptr;
  size_t read_limit = 0;                     // Data and Arg of reads below this
  const std::vector<scalar::Kind>* args = nullptr;   // where Arg means something else: a scan's stores name components
  bool variables = true;
  size_t size_limit = 0;
};

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), visible_(program.variables.size()), alive_(program.buffers.size()) {}

  base::Result<void> run() {
    if (!program_.arena) return fail("the program has no arena");
    LEMMA_TRY_VOID(sizes());
    LEMMA_TRY_VOID(buffers());
    for (const Assert& a : program_.requirements) {
      where_ = "requirement";
      if (!a.reads.empty()) return fail("it reads a buffer, and requirements are over sizes only");
      Scope scope = sizes_only();
      LEMMA_TRY_VOID(check(a.condition, scope, "condition"));
    }
    std::unordered_set<std::string> names;
    for (const Kernel& k : program_.kernels) {
      kernel_ = &k;
      path_.clear();
      where_ = place_text(k.name, {}, "");
      if (k.name.empty()) return fail("a kernel has no name");
      if (!names.insert(k.name).second) return fail("two kernels have this name");
      LEMMA_TRY_VOID(kernel(k));
    }
    return {};
  }

 private:
  base::Diagnostic fail(const std::string& message, std::string suggestion = {}) const {
    return base::invalid(where_.empty() ? message : where_ + ": " + message, {}, std::move(suggestion));
  }

  Scope sizes_only() const { return {nullptr, 0, nullptr, false, program_.sizes.size()}; }
  Scope block_scope() const { return {nullptr, 0, nullptr, true, program_.sizes.size()}; }
  Scope with_reads(const std::vector<Access>& reads) const {
    return {&reads, reads.size(), nullptr, true, program_.sizes.size()};
  }

  std::string variable(Var v) const {
    const bool named = v >= 0 && size_t(v) < program_.variables.size() && !program_.variables[size_t(v)].empty();
    return "variable " + (named ? quote(program_.variables[size_t(v)]) : std::to_string(v));
  }

  base::Result<void> sizes() {
    std::unordered_set<std::string> names;
    for (size_t i = 0; i < program_.sizes.size(); ++i) {
      const SizeDecl& s = program_.sizes[i];
      where_ = "size " + (s.name.empty() ? std::to_string(i) : quote(s.name));
      if (s.name.empty()) return fail("a size has no name");
      if (!names.insert(s.name).second) return fail("two sizes have this name");
      if (!s.definition.valid()) continue;
      Scope scope = sizes_only();
      scope.size_limit = i;
      LEMMA_TRY_VOID(check(s.definition, scalar::Kind::I64, scope, "definition"));
    }
    return {};
  }

  base::Result<void> buffers() {
    std::unordered_set<std::string> names;
    bool parameters = true;
    for (const Buffer& b : program_.buffers) {
      where_ = "buffer " + quote(b.name);
      if (b.name.empty()) return fail("a buffer has no name");
      if (is_parameter(b.space) && !parameters) return fail("a parameter stands after a buffer that is none", "list parameters first, in signature order");
      parameters = parameters && is_parameter(b.space);
      if (!is_local(b.space) && !names.insert(b.name).second) return fail("two global buffers have this name");
      for (const view::Form& e : b.extents) LEMMA_TRY_VOID(check(e, sizes_only(), "extent"));
      for (const view::Form& s : b.strides) LEMMA_TRY_VOID(check(s, sizes_only(), "stride"));
      if (!b.strides.empty() && !is_parameter(b.space)) return fail("it has strides, and only parameters come strided");
      if (!b.strides.empty() && b.strides.size() != b.extents.size()) {
        return fail("it has " + std::to_string(b.extents.size()) + " dimensions and " + std::to_string(b.strides.size()) + " strides");
      }
      if (b.low.has_value() != b.high.has_value()) return fail("it states one end of its range");
      if (b.low && (b.space != Space::Input || scalar::is_float(b.type))) return fail("it states a range, which inputs of integers have", "leave the range out");
      if (b.low) {
        LEMMA_TRY_VOID(check(*b.low, sizes_only(), "range"));
        LEMMA_TRY_VOID(check(*b.high, sizes_only(), "range"));
      }
      LEMMA_TRY_VOID(layout(b));
    }
    return {};
  }

  base::Result<void> layout(const Buffer& b) const {
    const Layout& l = b.layout;
    const BufferHints& h = b.hints;
    if (h.versions < 1 || h.swizzle < 0) return fail("it has " + std::to_string(h.versions) + " versions and a swizzle of " + std::to_string(h.swizzle) + ", and at least one version is needed", "leave versions out for one");
    if (h.swizzle != 0 && h.swizzle != 32 && h.swizzle != 64 && h.swizzle != 128) return fail("it is swizzled by " + std::to_string(h.swizzle) + " bytes, expected 32, 64 or 128", "leave the layout out to have it chosen");
    if (!is_local(b.space) && !(h == BufferHints{})) return fail("a global buffer has a layout or versions, which block-local buffers have", "copy it into a shared tile and say it there");
    if (l.kind == LayoutKind::RowMajor) {
      if (l.pad < 0 || l.width != 0 || l.interleave != 1) return fail("a row-major layout takes a pad of at least 0, no width and no interleave");
      if (!is_local(b.space) && l.pad != 0) return fail("a global buffer is padded, and global buffers are row-major without padding");
      return {};
    }
    if (!is_local(b.space) && b.space != Space::Scratch) return fail("a parameter is stored in panels, and only scratch and block-local buffers can be");
    if (b.extents.size() < 2) return fail("it is stored in panels and has " + std::to_string(b.extents.size()) + " dimensions, at least 2 are needed");
    if (l.width < 1 || l.interleave < 1 || l.pad != 0) return fail("panels need a width and an interleave of at least 1 and no pad");
    return {};
  }

  base::Result<void> kernel(const Kernel& k) {
    std::vector<Var> bound;
    for (const GridLoop& g : k.grid) LEMMA_TRY_VOID(check(g.extent, sizes_only(), "grid extent"));
    for (const GridLoop& g : k.grid) {
      LEMMA_TRY_VOID(bind(g.var));
      bound.push_back(g.var);
    }
    LEMMA_TRY_VOID(block(k.body, 0));
    for (Var v : bound) visible_[size_t(v)] = false;
    return {};
  }

  base::Result<void> bind(Var v) {
    if (v < 0 || size_t(v) >= visible_.size()) return fail("variable " + std::to_string(v) + " is not one of the program's " + std::to_string(visible_.size()));
    if (visible_[size_t(v)]) return fail(variable(v) + " is bound again inside its own scope", "give the inner binding a variable of its own");
    visible_[size_t(v)] = true;
    return {};
  }

  base::Result<void> block(const Block& body, int depth) {
    if (depth > kMaxNesting) return fail("blocks nest more than " + std::to_string(kMaxNesting) + " deep");
    std::vector<Var> lets;
    std::vector<int> allocs;
    path_.push_back(0);
    for (const Stmt& stmt : body) {
      ++path_.back();
      where_ = place_text(kernel_->name, path_, word(stmt));
      const bool placeable = std::holds_alternative<Copy>(stmt) || std::holds_alternative<Map>(stmt) || std::holds_alternative<Reduce>(stmt) || std::holds_alternative<Scan>(stmt) ||
                             std::holds_alternative<Gemm>(stmt) || std::holds_alternative<Combine>(stmt) || std::holds_alternative<For>(stmt);
      if (!placeable && !(stmt.placement == Placement{})) return fail("it has a stage, an order or a role, which copies, products, folds, maps and loops have");
      LEMMA_TRY_VOID(std::visit([&](const auto& s) { return statement(s, depth); }, static_cast<const Stmt::variant&>(stmt)));
      if (const auto* let = std::get_if<Let>(&stmt)) lets.push_back(let->var);
      if (const auto* alloc = std::get_if<Alloc>(&stmt)) allocs.push_back(alloc->buffer);
      if (std::holds_alternative<Phase>(stmt)) {
        for (Var v : lets) visible_[size_t(v)] = false;
        lets.clear();
      }
    }
    path_.pop_back();
    for (Var v : lets) visible_[size_t(v)] = false;
    for (int b : allocs) alive_[size_t(b)] = false;
    return {};
  }

  // ---- forms, formulas, expressions ----

  base::Result<void> check(const view::Form& form, const Scope& scope, const std::string& what) const {
    for (int v : form.ids(view::AtomKind::Index)) LEMMA_TRY_VOID(check_variable(v, scope, what));
    for (int s : form.ids(view::AtomKind::Size)) LEMMA_TRY_VOID(check_size(s, scope, what));
    for (int r : form.ids(view::AtomKind::Data)) LEMMA_TRY_VOID(check_data(r, scope, what));
    return {};
  }

  base::Result<void> check(const view::Formula& formula, const Scope& scope, const std::string& what) const {
    for (const view::Conjunction& c : formula.cases()) {
      for (const view::Constraint& k : c) LEMMA_TRY_VOID(check(k.form, scope, what));
    }
    return {};
  }

  base::Result<void> check_variable(int64_t v, const Scope& scope, const std::string& what) const {
    if (v < 0 || size_t(v) >= visible_.size()) return fail("its " + what + " uses variable " + std::to_string(v) + ", which the program does not have");
    if (!scope.variables) return fail("its " + what + " uses " + variable(Var(v)) + ", and only sizes may stand there");
    if (!visible_[size_t(v)]) return fail("its " + what + " uses " + variable(Var(v)) + " outside the construct that binds it");
    return {};
  }

  base::Result<void> check_size(int64_t s, const Scope& scope, const std::string& what) const {
    if (s < 0 || size_t(s) >= program_.sizes.size()) return fail("its " + what + " uses size " + std::to_string(s) + ", which the program does not have");
    if (size_t(s) >= scope.size_limit) return fail("its " + what + " uses size " + quote(program_.sizes[size_t(s)].name) + " before its definition");
    return {};
  }

  base::Result<void> check_data(int64_t r, const Scope& scope, const std::string& what) const {
    LEMMA_TRY_VOID(check_read(r, scope, what));
    const scalar::Kind kind = scalar::kind_of(program_.buffers[size_t((*scope.reads)[size_t(r)].buffer)].type);
    if (scalar::is_float(kind)) return fail("its " + what + " uses a read of floats as an integer");
    return {};
  }

  base::Result<void> check_read(int64_t r, const Scope& scope, const std::string& what) const {
    if (!scope.reads) return fail("its " + what + " uses a read, and there are none to use there");
    if (r < 0 || size_t(r) >= scope.reads->size()) return fail("its " + what + " uses read " + std::to_string(r) + " of " + std::to_string(scope.reads->size()));
    if (size_t(r) >= scope.read_limit) return fail("its " + what + " uses read " + std::to_string(r) + " before it is made");
    return {};
  }

  base::Result<void> check(scalar::Expr root, scalar::Kind kind, const Scope& scope, const std::string& what) const {
    if (!root.valid()) return fail("its " + what + " is missing");
    if (&root.arena() != program_.arena.get()) return fail("its " + what + " stands in an arena that is not the program's");
    if (root.kind() != kind) return fail("its " + what + " is of kind " + std::string(scalar::name(root.kind())) + ", " + std::string(scalar::name(kind)) + " is needed");
    for (scalar::Expr e : scalar::reachable({&root, 1})) {
      switch (e.op()) {
        case scalar::Op::Index: LEMMA_TRY_VOID(check_variable(e.payload(), scope, what)); break;
        case scalar::Op::Size: LEMMA_TRY_VOID(check_size(e.payload(), scope, what)); break;
        case scalar::Op::Present:
          if (scope.args) return fail("its " + what + " asks whether a state is present");
          LEMMA_TRY_VOID(check_read(e.payload(), scope, what));
          break;
        case scalar::Op::Arg: LEMMA_TRY_VOID(check_arg(e, scope, what)); break;
        default: break;
      }
    }
    return {};
  }

  base::Result<void> check_arg(scalar::Expr e, const Scope& scope, const std::string& what) const {
    scalar::Kind kind;
    if (scope.args) {
      if (e.payload() < 0 || size_t(e.payload()) >= scope.args->size()) return fail("its " + what + " uses component " + std::to_string(e.payload()) + " of " + std::to_string(scope.args->size()));
      kind = (*scope.args)[size_t(e.payload())];
    } else {
      LEMMA_TRY_VOID(check_read(e.payload(), scope, what));
      kind = scalar::kind_of(program_.buffers[size_t((*scope.reads)[size_t(e.payload())].buffer)].type);
    }
    if (kind != e.kind()) return fail("its " + what + " takes value " + std::to_string(e.payload()) + " as " + std::string(scalar::name(e.kind())) + ", it is " + std::string(scalar::name(kind)));
    return {};
  }

  // ---- accesses ----

  base::Result<void> access(const Access& a, const Scope& scope, const std::string& what) const {
    if (a.buffer < 0 || size_t(a.buffer) >= program_.buffers.size()) return fail("its " + what + " names buffer " + std::to_string(a.buffer) + ", which the program does not have");
    const Buffer& b = program_.buffers[size_t(a.buffer)];
    if (is_local(b.space) && !alive_[size_t(a.buffer)]) return fail("its " + what + " uses " + quote(b.name) + " where it is not allocated", "allocate it earlier in this block or an enclosing one");
    if (a.coords.size() != b.extents.size()) {
      return fail("its " + what + " has " + std::to_string(a.coords.size()) + " coordinates, " + quote(b.name) + " has " + std::to_string(b.extents.size()) + " dimensions");
    }
    for (const view::Form& f : a.coords) LEMMA_TRY_VOID(check(f, scope, what));
    return check(a.guard, scope, "guard of the " + what);
  }

  base::Result<void> reads(const std::vector<Access>& list) const {
    for (size_t r = 0; r < list.size(); ++r) {
      Scope scope = with_reads(list);
      scope.read_limit = r;
      LEMMA_TRY_VOID(access(list[r], scope, "read " + std::to_string(r)));
    }
    return {};
  }

  base::Result<void> writable(const Access& a) const {
    const Buffer& b = program_.buffers[size_t(a.buffer)];
    if (b.space == Space::Input) return fail("it writes " + quote(b.name) + ", which is an input", "declare it with update, or write to another buffer");
    return {};
  }

  base::Result<void> store(const Store& s, const Scope& scope, const Scope& places, const std::string& what) const {
    LEMMA_TRY_VOID(access(s.to, places, what));
    LEMMA_TRY_VOID(writable(s.to));
    const scalar::Kind kind = scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type);
    LEMMA_TRY_VOID(check(s.value, kind, scope, "value of the " + what));
    if (s.otherwise.valid()) LEMMA_TRY_VOID(check(s.otherwise, kind, scope, "alternative of the " + what));
    if (!s.combine) return {};
    if (s.otherwise.valid()) return fail("its " + what + " both combines and has an alternative off the domain");
    return combines(*s.combine, kind, "its " + what);
  }

  base::Result<void> combines(scalar::Op op, scalar::Kind kind, const std::string& what) const {
    switch (op) {
      case scalar::Op::Add: case scalar::Op::Mul: case scalar::Op::Min: case scalar::Op::Max: case scalar::Op::And: case scalar::Op::Or: case scalar::Op::Xor: break;
      default: return fail(what + " combines by " + std::string(scalar::name(op)) + ", which is not associative");
    }
    const bool bitwise = op == scalar::Op::And || op == scalar::Op::Or || op == scalar::Op::Xor;
    if (bitwise && scalar::is_float(kind)) return fail(what + " combines floats by " + std::string(scalar::name(op)), "combine by sum, prod, min or max");
    return {};
  }

  // Extents of all ranges first: they are over outer variables.
  base::Result<void> extents(const std::vector<Range>& ranges) const {
    for (const Range& r : ranges) LEMMA_TRY_VOID(check(r.extent, block_scope(), "extent of " + variable(r.var)));
    return {};
  }
  base::Result<void> bind(const std::vector<Range>& ranges) {
    for (const Range& r : ranges) LEMMA_TRY_VOID(bind(r.var));
    return {};
  }
  void release(const std::vector<Range>& ranges) {
    for (const Range& r : ranges) visible_[size_t(r.var)] = false;
  }

  // ---- statements: validate_statements.cc ----

  base::Result<void> statement(const Let& s, int);
  base::Result<void> statement(const Alloc& s, int);
  base::Result<void> statement(const Copy& s, int);
  base::Result<void> statement(const Combine& s, int);
  base::Result<void> statement(const Print& s, int);
  base::Result<void> statement(const Extern& s, int);
  base::Result<void> statement(const Phase&, int depth);
  base::Result<void> statement(const Barrier&, int) { return {}; }
  base::Result<void> statement(const Commit&, int) { return {}; }
  base::Result<void> statement(const Wait& s, int);
  base::Result<void> statement(const Map& s, int);
  template <class S>
  base::Result<void> fold(const S& s, const std::vector<Range>& folded);
  template <class S>
  base::Result<void> state(const S& s, size_t c, const std::vector<Range>& folded) const;
  template <class S>
  base::Result<void> independent(const S& s, size_t c, const Range& left_out) const;
  base::Result<void> statement(const Reduce& s, int);
  base::Result<void> statement(const Scan& s, int);
  base::Result<void> statement(const Gemm& s, int);
  base::Result<void> statement(const For& s, int depth);
  base::Result<void> statement(const If& s, int depth);
  base::Result<void> statement(const Assert& s, int);

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::vector<int> path_;
  std::string where_;
  std::vector<char> visible_;
  std::vector<char> alive_;
};

}  // namespace lemma::tile
