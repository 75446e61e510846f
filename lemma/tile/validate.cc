// One walk over the program that keeps, for every variable, whether it is in scope and, for every block-local buffer,
// whether it is alive. Each check states what it found and what was expected; the walk stops at the first failure.
#include "lemma/tile/validate.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "lemma/base/match.h"
#include "lemma/tile/edit.h"

namespace lemma::tile {

std::string place_text(const std::string& kernel, const std::vector<int>& path, const char* word) {
  std::string out = "kernel " + kernel;
  if (path.empty()) return out;
  out += ", statement ";
  for (size_t i = 0; i < path.size(); ++i) out += (i ? "." : "") + std::to_string(path[i]);
  return out + " (" + word + ")";
}

namespace {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;

bool is_parameter(Space s) { return s == Space::Input || s == Space::Output || s == Space::Update; }
bool is_local(Space s) { return s == Space::Shared || s == Space::Fragment || s == Space::Local; }

std::string quote(const std::string& name) { return "\"" + name + "\""; }

// What an expression or form may mention.
struct Scope {
  const std::vector<Access>* reads = nullptr;
  size_t read_limit = 0;                     // Data and Arg of reads below this
  const std::vector<Kind>* args = nullptr;   // where Arg means something else: a scan's stores name components
  bool variables = true;
  size_t size_limit = 0;
};

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), visible_(program.variables.size()), alive_(program.buffers.size()) {}

  Result<void> run() {
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

  Result<void> sizes() {
    std::unordered_set<std::string> names;
    for (size_t i = 0; i < program_.sizes.size(); ++i) {
      const SizeDecl& s = program_.sizes[i];
      where_ = "size " + (s.name.empty() ? std::to_string(i) : quote(s.name));
      if (s.name.empty()) return fail("a size has no name");
      if (!names.insert(s.name).second) return fail("two sizes have this name");
      if (!s.definition.valid()) continue;
      Scope scope = sizes_only();
      scope.size_limit = i;
      LEMMA_TRY_VOID(check(s.definition, Kind::I64, scope, "definition"));
    }
    return {};
  }

  Result<void> buffers() {
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

  Result<void> layout(const Buffer& b) const {
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

  Result<void> kernel(const Kernel& k) {
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

  Result<void> bind(Var v) {
    if (v < 0 || size_t(v) >= visible_.size()) return fail("variable " + std::to_string(v) + " is not one of the program's " + std::to_string(visible_.size()));
    if (visible_[size_t(v)]) return fail(variable(v) + " is bound again inside its own scope", "give the inner binding a variable of its own");
    visible_[size_t(v)] = true;
    return {};
  }

  Result<void> block(const Block& body, int depth) {
    if (depth > kMaxNesting) return fail("blocks nest more than " + std::to_string(kMaxNesting) + " deep");
    std::vector<Var> lets;
    std::vector<int> allocs;
    path_.push_back(0);
    for (const Stmt& stmt : body) {
      ++path_.back();
      where_ = place_text(kernel_->name, path_, word(stmt));
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

  Result<void> check(const view::Form& form, const Scope& scope, const std::string& what) const {
    for (int v : form.ids(view::AtomKind::Index)) LEMMA_TRY_VOID(check_variable(v, scope, what));
    for (int s : form.ids(view::AtomKind::Size)) LEMMA_TRY_VOID(check_size(s, scope, what));
    for (int r : form.ids(view::AtomKind::Data)) LEMMA_TRY_VOID(check_data(r, scope, what));
    return {};
  }

  Result<void> check(const view::Formula& formula, const Scope& scope, const std::string& what) const {
    for (const view::Conjunction& c : formula.cases()) {
      for (const view::Constraint& k : c) LEMMA_TRY_VOID(check(k.form, scope, what));
    }
    return {};
  }

  Result<void> check_variable(int64_t v, const Scope& scope, const std::string& what) const {
    if (v < 0 || size_t(v) >= visible_.size()) return fail("its " + what + " uses variable " + std::to_string(v) + ", which the program does not have");
    if (!scope.variables) return fail("its " + what + " uses " + variable(Var(v)) + ", and only sizes may stand there");
    if (!visible_[size_t(v)]) return fail("its " + what + " uses " + variable(Var(v)) + " outside the construct that binds it");
    return {};
  }

  Result<void> check_size(int64_t s, const Scope& scope, const std::string& what) const {
    if (s < 0 || size_t(s) >= program_.sizes.size()) return fail("its " + what + " uses size " + std::to_string(s) + ", which the program does not have");
    if (size_t(s) >= scope.size_limit) return fail("its " + what + " uses size " + quote(program_.sizes[size_t(s)].name) + " before its definition");
    return {};
  }

  Result<void> check_data(int64_t r, const Scope& scope, const std::string& what) const {
    LEMMA_TRY_VOID(check_read(r, scope, what));
    const Kind kind = scalar::kind_of(program_.buffers[size_t((*scope.reads)[size_t(r)].buffer)].type);
    if (scalar::is_float(kind)) return fail("its " + what + " uses a read of floats as an integer");
    return {};
  }

  Result<void> check_read(int64_t r, const Scope& scope, const std::string& what) const {
    if (!scope.reads) return fail("its " + what + " uses a read, and there are none to use there");
    if (r < 0 || size_t(r) >= scope.reads->size()) return fail("its " + what + " uses read " + std::to_string(r) + " of " + std::to_string(scope.reads->size()));
    if (size_t(r) >= scope.read_limit) return fail("its " + what + " uses read " + std::to_string(r) + " before it is made");
    return {};
  }

  Result<void> check(Expr root, Kind kind, const Scope& scope, const std::string& what) const {
    if (!root.valid()) return fail("its " + what + " is missing");
    if (&root.arena() != program_.arena.get()) return fail("its " + what + " stands in an arena that is not the program's");
    if (root.kind() != kind) return fail("its " + what + " is of kind " + std::string(scalar::name(root.kind())) + ", " + std::string(scalar::name(kind)) + " is needed");
    for (Expr e : scalar::reachable({&root, 1})) {
      switch (e.op()) {
        case Op::Index: LEMMA_TRY_VOID(check_variable(e.payload(), scope, what)); break;
        case Op::Size: LEMMA_TRY_VOID(check_size(e.payload(), scope, what)); break;
        case Op::Present:
          if (scope.args) return fail("its " + what + " asks whether a state is present");
          LEMMA_TRY_VOID(check_read(e.payload(), scope, what));
          break;
        case Op::Arg: LEMMA_TRY_VOID(check_arg(e, scope, what)); break;
        default: break;
      }
    }
    return {};
  }

  Result<void> check_arg(Expr e, const Scope& scope, const std::string& what) const {
    Kind kind;
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

  Result<void> access(const Access& a, const Scope& scope, const std::string& what) const {
    if (a.buffer < 0 || size_t(a.buffer) >= program_.buffers.size()) return fail("its " + what + " names buffer " + std::to_string(a.buffer) + ", which the program does not have");
    const Buffer& b = program_.buffers[size_t(a.buffer)];
    if (is_local(b.space) && !alive_[size_t(a.buffer)]) return fail("its " + what + " uses " + quote(b.name) + " where it is not allocated", "allocate it earlier in this block or an enclosing one");
    if (a.coords.size() != b.extents.size()) {
      return fail("its " + what + " has " + std::to_string(a.coords.size()) + " coordinates, " + quote(b.name) + " has " + std::to_string(b.extents.size()) + " dimensions");
    }
    for (const view::Form& f : a.coords) LEMMA_TRY_VOID(check(f, scope, what));
    return check(a.guard, scope, "guard of the " + what);
  }

  Result<void> reads(const std::vector<Access>& list) const {
    for (size_t r = 0; r < list.size(); ++r) {
      Scope scope = with_reads(list);
      scope.read_limit = r;
      LEMMA_TRY_VOID(access(list[r], scope, "read " + std::to_string(r)));
    }
    return {};
  }

  Result<void> writable(const Access& a) const {
    const Buffer& b = program_.buffers[size_t(a.buffer)];
    if (b.space == Space::Input) return fail("it writes " + quote(b.name) + ", which is an input", "declare it with update, or write to another buffer");
    return {};
  }

  Result<void> store(const Store& s, const Scope& scope, const Scope& places, const std::string& what) const {
    LEMMA_TRY_VOID(access(s.to, places, what));
    LEMMA_TRY_VOID(writable(s.to));
    const Kind kind = scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type);
    LEMMA_TRY_VOID(check(s.value, kind, scope, "value of the " + what));
    if (s.otherwise.valid()) LEMMA_TRY_VOID(check(s.otherwise, kind, scope, "alternative of the " + what));
    if (!s.combine) return {};
    if (s.otherwise.valid()) return fail("its " + what + " both combines and has an alternative off the domain");
    return combines(*s.combine, kind, "its " + what);
  }

  Result<void> combines(Op op, Kind kind, const std::string& what) const {
    switch (op) {
      case Op::Add: case Op::Mul: case Op::Min: case Op::Max: case Op::And: case Op::Or: case Op::Xor: break;
      default: return fail(what + " combines by " + std::string(scalar::name(op)) + ", which is not associative");
    }
    const bool bitwise = op == Op::And || op == Op::Or || op == Op::Xor;
    if (bitwise && scalar::is_float(kind)) return fail(what + " combines floats by " + std::string(scalar::name(op)), "combine by sum, prod, min or max");
    return {};
  }

  // Extents of all ranges first: they are over outer variables.
  Result<void> extents(const std::vector<Range>& ranges) const {
    for (const Range& r : ranges) LEMMA_TRY_VOID(check(r.extent, block_scope(), "extent of " + variable(r.var)));
    return {};
  }
  Result<void> bind(const std::vector<Range>& ranges) {
    for (const Range& r : ranges) LEMMA_TRY_VOID(bind(r.var));
    return {};
  }
  void release(const std::vector<Range>& ranges) {
    for (const Range& r : ranges) visible_[size_t(r.var)] = false;
  }

  // ---- statements ----

  Result<void> statement(const Let& s, int) {
    LEMMA_TRY_VOID(reads(s.reads));
    LEMMA_TRY_VOID(check(s.value, Kind::I64, with_reads(s.reads), "value"));
    return bind(s.var);
  }

  Result<void> statement(const Alloc& s, int) {
    if (s.buffer < 0 || size_t(s.buffer) >= program_.buffers.size()) return fail("it names buffer " + std::to_string(s.buffer) + ", which the program does not have");
    const Buffer& b = program_.buffers[size_t(s.buffer)];
    if (!is_local(b.space)) return fail("it allocates " + quote(b.name) + ", which is global");
    if (alive_[size_t(s.buffer)]) return fail("it allocates " + quote(b.name) + " while it is alive");
    alive_[size_t(s.buffer)] = true;
    return {};
  }

  Result<void> statement(const Copy& s, int) {
    LEMMA_TRY_VOID(extents(s.box));
    LEMMA_TRY_VOID(bind(s.box));
    LEMMA_TRY_VOID(access(s.from, block_scope(), "source"));
    LEMMA_TRY_VOID(access(s.to, block_scope(), "target"));
    LEMMA_TRY_VOID(writable(s.to));
    release(s.box);
    LEMMA_TRY_VOID(check(s.fill, scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type), sizes_only(), "fill"));
    if (!s.fill.is_const()) return fail("its fill is not a constant");
    return {};
  }

  Result<void> statement(const Combine& s, int) {
    LEMMA_TRY_VOID(extents(s.box));
    LEMMA_TRY_VOID(bind(s.box));
    LEMMA_TRY_VOID(access(s.from, block_scope(), "source"));
    LEMMA_TRY_VOID(access(s.to, block_scope(), "target"));
    LEMMA_TRY_VOID(writable(s.to));
    release(s.box);
    if (s.from.buffer == s.to.buffer) return fail("it combines a buffer into itself");
    LEMMA_TRY_VOID(combines(s.op, scalar::kind_of(program_.buffers[size_t(s.to.buffer)].type), "it"));
    if (!s.ordered) return {};
    const auto v = s.ordered->as_index();
    const bool grid = v && std::any_of(kernel_->grid.begin(), kernel_->grid.end(), [&](const GridLoop& g) { return g.var == *v; });
    if (!grid) return fail("it is ordered by something that is no variable of the grid", "name one of the grid's variables, or leave the order out");
    return {};
  }

  Result<void> statement(const Print& s, int) {
    LEMMA_TRY_VOID(reads(s.reads));
    size_t places = 0;
    for (size_t i = s.text.find("{}"); i != std::string::npos; i = s.text.find("{}", i + 2)) ++places;
    if (places != s.values.size()) return fail("its text has " + std::to_string(places) + " places {} and it has " + std::to_string(s.values.size()) + " values", "write {} where each value belongs");
    for (Expr e : s.values) {
      if (!e.valid()) return fail("one of its values is missing");
      LEMMA_TRY_VOID(check(e, e.kind(), with_reads(s.reads), "value"));
    }
    return {};
  }

  Result<void> statement(const Extern& s, int) {
    if (s.dialect != "c") return fail("its text is of the dialect " + quote(s.dialect) + ", expected c", "write it in C, or as statements");
    for (const auto* list : {&s.reads, &s.writes}) {
      for (int b : *list) {
        if (b < 0 || size_t(b) >= program_.buffers.size()) return fail("it names buffer " + std::to_string(b) + ", which the program does not have");
        if (is_local(program_.buffers[size_t(b)].space) && !alive_[size_t(b)]) return fail("it names " + quote(program_.buffers[size_t(b)].name) + " where it is not allocated", "allocate it earlier in this block or an enclosing one");
      }
    }
    for (int b : s.writes) LEMMA_TRY_VOID(writable({b, {}, {}}));
    for (Expr e : s.values) LEMMA_TRY_VOID(check(e, Kind::I64, block_scope(), "value"));
    return {};
  }

  Result<void> statement(const Phase&, int depth) {
    if (depth > 0) return fail("a phase stands inside a loop or a branch", "move it to the kernel's own block, or make two kernels");
    std::fill(alive_.begin(), alive_.end(), 0);
    return {};
  }

  Result<void> statement(const Map& s, int) {
    LEMMA_TRY_VOID(extents(s.points));
    LEMMA_TRY_VOID(bind(s.points));
    LEMMA_TRY_VOID(reads(s.reads));
    const Scope scope = with_reads(s.reads);
    LEMMA_TRY_VOID(check(s.where, scope, "domain"));
    for (size_t i = 0; i < s.stores.size(); ++i) LEMMA_TRY_VOID(store(s.stores[i], scope, scope, "store " + std::to_string(i)));
    release(s.points);
    return {};
  }

  // The monoid, its operands and its states, in Reduce and Scan. `folded`: variables that states may not use.
  template <class S>
  Result<void> fold(const S& s, const std::vector<Range>& folded) {
    if (!s.monoid) return fail("it has no monoid");
    const monoid::Monoid& m = *s.monoid;
    const Scope scope = with_reads(s.reads);
    LEMMA_TRY_VOID(reads(s.reads));
    LEMMA_TRY_VOID(check(s.where, scope, "domain"));
    if (s.body.size() != m.operands.size()) return fail("it has " + std::to_string(s.body.size()) + " operands, " + m.name + " takes " + std::to_string(m.operands.size()));
    for (size_t i = 0; i < s.body.size(); ++i) LEMMA_TRY_VOID(check(s.body[i], m.operands[i], scope, "operand " + std::to_string(i)));
    if (s.states.size() != m.components.size()) return fail("it has " + std::to_string(s.states.size()) + " states, " + m.name + " has " + std::to_string(m.components.size()) + " components");
    for (size_t c = 0; c < s.states.size(); ++c) LEMMA_TRY_VOID(state(s, c, folded));
    return {};
  }

  template <class S>
  Result<void> state(const S& s, size_t c, const std::vector<Range>& folded) const {
    const std::string what = "state " + std::to_string(c);
    const Access& a = s.states[c];
    LEMMA_TRY_VOID(access(a, block_scope(), what));
    LEMMA_TRY_VOID(writable(a));
    if (!a.guard.is_always()) return fail("its " + what + " is guarded");
    const monoid::Component& component = s.monoid->components[c];
    const Kind kind = scalar::kind_of(program_.buffers[size_t(a.buffer)].type);
    if (kind != component.kind) return fail("its " + what + " is stored as " + std::string(scalar::name(kind)) + ", the component is " + std::string(scalar::name(component.kind)));
    if (component.axes.size() > s.axes.size()) return fail("its " + what + " has " + std::to_string(component.axes.size()) + " axes, the statement has " + std::to_string(s.axes.size()));
    auto uses = [&](Var v) {
      for (const view::Form& f : a.coords) {
        if (f.uses(view::AtomKind::Index, v)) return true;
      }
      return false;
    };
    for (const Range& r : folded) {
      if (uses(r.var)) return fail("its " + what + " depends on " + variable(r.var) + ", over which it is folded");
    }
    for (size_t i = 0; i < s.axes.size(); ++i) {
      if (i >= component.axes.size() && uses(s.axes[i].var)) return fail("its " + what + " uses the axis " + variable(s.axes[i].var) + ", which the component does not have");
    }
    for (const Range& r : s.points) {
      if (!uses(r.var)) LEMMA_TRY_VOID(independent(s, c, r));
    }
    return {};
  }

  // A component that leaves out a point variable is folded once, so nothing that feeds it may depend on the variable.
  template <class S>
  Result<void> independent(const S& s, size_t c, const Range& left_out) const {
    if (left_out.extent == view::Form(1)) return {};
    std::vector<char> read_uses(s.reads.size());
    auto form_uses = [&](const view::Form& f) {
      if (f.uses(view::AtomKind::Index, left_out.var)) return true;
      for (int d : f.ids(view::AtomKind::Data)) {
        if (read_uses[size_t(d)]) return true;
      }
      return false;
    };
    auto formula_uses = [&](const view::Formula& f) {
      for (const view::Conjunction& k : f.cases()) {
        for (const view::Constraint& x : k) {
          if (form_uses(x.form)) return true;
        }
      }
      return false;
    };
    for (size_t r = 0; r < s.reads.size(); ++r) {
      bool uses = formula_uses(s.reads[r].guard);
      for (const view::Form& f : s.reads[r].coords) uses = uses || form_uses(f);
      read_uses[r] = uses;
    }
    const std::string message = " depends on " + variable(left_out.var) + ", which state " + std::to_string(c) + " leaves out";
    if (formula_uses(s.where)) return fail("its domain" + message);
    const Expr lift = s.monoid->lift[c];
    for (Expr l : scalar::reachable({&lift, 1})) {
      if (!l.is(Op::Arg)) continue;
      const Expr operand = s.body[size_t(l.payload())];
      for (Expr e : scalar::reachable({&operand, 1})) {
        const bool uses = (e.is(Op::Index) && e.payload() == left_out.var) ||
                          ((e.is(Op::Arg) || e.is(Op::Present)) && read_uses[size_t(e.payload())]);
        if (uses) return fail("its operand " + std::to_string(l.payload()) + message);
      }
    }
    return {};
  }

  Result<void> statement(const Reduce& s, int) {
    for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) LEMMA_TRY_VOID(extents(*ranges));
    for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) LEMMA_TRY_VOID(bind(*ranges));
    LEMMA_TRY_VOID(fold(s, s.reduces));
    for (const auto* ranges : {&s.points, &s.axes, &s.reduces}) release(*ranges);
    return {};
  }

  Result<void> statement(const Scan& s, int) {
    const std::vector<Range> along{s.along};
    for (const auto* ranges : {&s.points, &s.axes, &along}) LEMMA_TRY_VOID(extents(*ranges));
    for (const auto* ranges : {&s.points, &s.axes, &along}) LEMMA_TRY_VOID(bind(*ranges));
    LEMMA_TRY_VOID(fold(s, along));
    std::vector<Kind> kinds;
    for (const monoid::Component& c : s.monoid->components) kinds.push_back(c.kind);
    Scope scope = block_scope();
    scope.args = &kinds;
    for (size_t i = 0; i < s.stores.size(); ++i) {
      if (s.stores[i].combine) return fail("store " + std::to_string(i) + " of a scan combines");
      LEMMA_TRY_VOID(store(s.stores[i], scope, block_scope(), "store " + std::to_string(i)));
    }
    for (const auto* ranges : {&s.points, &s.axes, &along}) release(*ranges);
    return {};
  }

  Result<void> statement(const Gemm& s, int) {
    std::vector<Range> ranges{s.m, s.n, s.k};
    ranges.insert(ranges.end(), s.taps.begin(), s.taps.end());
    LEMMA_TRY_VOID(extents(ranges));
    LEMMA_TRY_VOID(bind(ranges));
    struct Operand { const Access* access; const char* what; Var without; };
    for (const Operand& o : {Operand{&s.a, "left operand", s.n.var}, Operand{&s.b, "right operand", s.m.var}, Operand{&s.acc, "accumulator", s.k.var}}) {
      LEMMA_TRY_VOID(access(*o.access, block_scope(), o.what));
      if (!o.access->guard.is_always()) return fail("its " + std::string(o.what) + " is guarded", "copy it into a tile with a fill first");
      for (const view::Form& f : o.access->coords) {
        if (f.uses(view::AtomKind::Index, o.without)) return fail("its " + std::string(o.what) + " depends on " + variable(o.without));
      }
    }
    LEMMA_TRY_VOID(writable(s.acc));
    if (scalar::kind_of(program_.buffers[size_t(s.acc.buffer)].type) == Kind::Bool) return fail("it accumulates into bools");
    release(ranges);
    return {};
  }

  Result<void> statement(const For& s, int depth) {
    LEMMA_TRY_VOID(check(s.begin, Kind::I64, block_scope(), "begin"));
    LEMMA_TRY_VOID(check(s.end, Kind::I64, block_scope(), "end"));
    if (s.step < 1) return fail("its step is " + std::to_string(s.step) + ", at least 1 is needed");
    if (s.depth < 1 || (s.depth > 1 && s.kind != LoopKind::Pipelined)) return fail("it has " + std::to_string(s.depth) + " turns under way, and a number of at least 1 belongs to a pipelined loop", "write pipelined 2, or leave it out");
    LEMMA_TRY_VOID(bind(s.var));
    LEMMA_TRY_VOID(extents(s.points));
    LEMMA_TRY_VOID(bind(s.points));
    LEMMA_TRY_VOID(check(s.where, block_scope(), "domain"));
    release(s.points);
    LEMMA_TRY_VOID(block(s.body, depth + 1));
    visible_[size_t(s.var)] = false;
    return {};
  }

  Result<void> statement(const If& s, int depth) {
    LEMMA_TRY_VOID(reads(s.reads));
    LEMMA_TRY_VOID(check(s.condition, with_reads(s.reads), "condition"));
    LEMMA_TRY_VOID(block(s.then, depth + 1));
    return block(s.otherwise, depth + 1);
  }

  Result<void> statement(const Assert& s, int) {
    LEMMA_TRY_VOID(reads(s.reads));
    return check(s.condition, with_reads(s.reads), "condition");
  }

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::vector<int> path_;
  std::string where_;
  std::vector<char> visible_;
  std::vector<char> alive_;
};

}  // namespace

base::Result<void> validate(const Program& program) { return Validator(program).run(); }

}  // namespace lemma::tile
