#include "lemma/base/match.h"
#include "lemma/emit/device/statements.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Kind;

namespace {

base::Result<void> write_let(Text& text, const tile::Let& let, Scope& scope) {
  Scope inner = scope;
  inner.known.clear();
  inner.reads.clear();
  const Expr value = scalar::import(let.value, text.arena);
  text.reads(let.reads, inner, needed(let.reads, {&value, 1}, {}));
  const std::string name = text.fresh("l");
  const std::string result = text.value(value, inner);
  if (!let.reads.empty() && text.dialect.id == DialectId::Wgsl) {
    // A value from memory is the same for the whole workgroup, which WGSL wants to be told.
    const int cell = text.add_shared("let", scalar::DType::I32, 1);
    text.test("lm_tid == 0");
    text.out.line(text.buffer_names.at(cell) + "[0] = u32(" + result + ");");
    text.out.close();
    text.define(text.index_type(), name, "i32(workgroupUniformLoad(&" + text.buffer_names.at(cell) + "[0]))");
  } else {
    text.define(text.index_type(), name, result);
  }
  scope.vars[let.var] = name;
  return {};
}

base::Result<void> write_for(Text& text, const tile::For& loop, Scope& scope, std::vector<std::string>& notes) {
  const std::string begin = text.value(scalar::import(loop.begin, text.arena), scope), end = text.value(scalar::import(loop.end, text.arena), scope);
  const std::string v = text.fresh("v");
  if (loop.kind == tile::LoopKind::Unrolled && text.synchronised) text.out.line("LM_UNROLL");
  text.loop(v, begin, end, index_literal(text.dialect, loop.step));
  Scope inner = scope;
  inner.known.clear();
  inner.vars[loop.var] = v;
  LEMMA_TRY_VOID(write_block(text, loop.body, inner, notes));
  text.out.close();
  return {};
}

base::Result<void> write_if(Text& text, const tile::If& s, Scope& scope, std::vector<std::string>& notes) {
  Scope reading = scope;
  reading.reads.clear();
  text.reads(s.reads, reading, std::vector<bool>(s.reads.size(), true));
  text.test(text.condition(s.condition, reading));
  Scope inner = scope;
  LEMMA_TRY_VOID(write_block(text, s.then, inner, notes));
  if (!s.otherwise.empty()) {
    text.out.otherwise();
    Scope other = scope;
    LEMMA_TRY_VOID(write_block(text, s.otherwise, other, notes));
  }
  text.out.close();
  return {};
}

}  // namespace

base::Result<void> write_block(Text& text, const tile::Block& block, Scope& scope, std::vector<std::string>& notes) {
  for (const tile::Stmt& statement : block) {
    bool writes = true;
    base::Result<void> done = base::match(static_cast<const tile::StmtVariant&>(statement),
        [&](const tile::Let& s) { writes = false; return write_let(text, s, scope); },
        [&](const tile::Alloc&) -> base::Result<void> { writes = false; return {}; },
        [&](const tile::Copy& s) { return write_copy(text, s, scope, notes); },
        [&](const tile::Map& s) { return write_map(text, s, scope, notes); },
        [&](const tile::Reduce& s) { return write_reduce(text, s, scope, notes); },
        [&](const tile::Scan& s) { return write_scan(text, s, scope, notes); },
        [&](const tile::Gemm& s) { return write_gemm(text, s, scope, notes); },
        [&](const tile::For& s) { writes = false; return write_for(text, s, scope, notes); },
        [&](const tile::If& s) { writes = false; return write_if(text, s, scope, notes); },
        [&](const tile::Assert& s) -> base::Result<void> {
          writes = false;
          if (s.assumed) return {};
          return base::unsupported("a run-time check has no form for devices yet");
        },
        [&](const tile::Combine& s) { return write_combine(text, s, scope, notes); },
        [&](const tile::Print&) -> base::Result<void> { return base::unsupported("`print` has no form for devices yet"); },
        [&](const tile::Extern& s) -> base::Result<void> {
          return base::unsupported("text in " + s.dialect + " does not run in " + std::string(text.dialect.name));
        },
        [&](const tile::Barrier&) -> base::Result<void> { return {}; },
        [&](const tile::Commit&) -> base::Result<void> {
          writes = false;
          text.out.line("lm_copy_commit();");
          return {};
        },
        [&](const tile::Wait& s) -> base::Result<void> {
          writes = false;
          text.out.line("lm_copy_wait<" + std::to_string(s.pending) + ">();");
          return {};
        },
        [&](const tile::Phase&) -> base::Result<void> { return base::unsupported("`phase` has no form for devices yet"); });
    if (!done) return done.error();
    // In block form nothing is known of who reads what; in thread form barriers are statements.
    if (text.synchronised ? std::holds_alternative<tile::Barrier>(statement) : writes) text.barrier();
    else if (writes) text.at_statement();
  }
  return {};
}

}  // namespace lemma::emit::device
