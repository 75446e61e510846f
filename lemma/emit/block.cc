#include "lemma/emit/block.h"

#include "lemma/base/match.h"
#include "lemma/emit/body.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;

namespace {

void emit_let(Unit& unit, const tile::Let& let) {
  const view::Formula always;
  const Expr value = scalar::import(let.value, unit.arena);
  const std::string& v = unit.var_name(let.var);
  unit.set_range(let.var, {});
  unit.out.line("int64_t " + v + ";");
  unit.out.open("");
  const BodyText text{&always, &let.reads, {value}};
  scalar_body(unit, Frame{}, text, [&](Frame& frame) {
    const Value x = emit_value(unit, frame, value);
    unit.out.line(v + " = " + (value.kind() == scalar::Kind::I64 ? "" : "(int64_t)") + x.text + ";");
  }, nullptr);
  unit.out.close();
}

// Bounds are computed before the loop; a step below one would not end and is a bug of whoever made the program.
void open_for(Unit& unit, const tile::For& loop) {
  Frame frame;
  const Expr roots[] = {scalar::import(loop.begin, unit.arena), scalar::import(loop.end, unit.arena)};
  unit.out.open("");
  const std::vector<Value> bounds = emit_values(unit, frame, roots);
  const std::string& v = unit.var_name(loop.var);
  const bool from_zero = roots[0].is_const() && roots[0].as_int() >= 0;
  unit.set_range(loop.var, {from_zero ? std::optional<int64_t>(roots[0].as_int()) : std::nullopt, std::nullopt});
  if (loop.kind == tile::LoopKind::Unrolled) unit.out.line("LM_UNROLL");
  unit.out.open("for (int64_t " + v + " = " + bounds[0].text + "; " + v + " < " + bounds[1].text + "; " + v + " += " +
                std::to_string(loop.step) + ")");
}

void emit_assert(Unit& unit, const tile::Assert& a) {
  unit.messages.push_back(a.message);
  const std::string code = std::to_string(unit.messages.size());
  unit.out.open("");
  Frame frame;
  const std::string condition = condition_with_reads(unit, frame, a.reads, a.condition);
  unit.out.open("if (!(" + condition + "))");
  unit.out.line("lm_fail(lm_e->status, " + code + ");");
  unit.out.line("return;");
  unit.out.close(2);
}

// A piece of work: statements from `next` on, then text that ends them.
struct Work {
  const tile::Block* block;
  size_t next;
  int closes;               // braces to close at the end
  const tile::Block* otherwise;
};

}  // namespace

std::string condition_with_reads(Unit& unit, Frame& frame, const std::vector<tile::Access>& reads,
                                 const view::Formula& condition) {
  const view::Formula always;
  if (reads.empty()) return unit.condition(condition, frame);
  const std::string name = unit.fresh("c");
  unit.out.line("int32_t " + name + " = 0;");
  unit.out.open("");
  BodyText text{&condition, &reads, {}};
  scalar_body(unit, frame, text, [&](Frame&) { unit.out.line(name + " = 1;"); }, nullptr);
  unit.out.close();
  return name;
}

void emit_block(Unit& unit, const tile::Block& block) {
  std::vector<Work> stack{{&block, 0, 0, nullptr}};
  while (!stack.empty()) {
    Work& work = stack.back();
    if (work.next == work.block->size()) {
      if (work.otherwise) {
        unit.out.otherwise();
        work = {work.otherwise, 0, work.closes, nullptr};
        continue;
      }
      unit.out.close(work.closes);
      stack.pop_back();
      continue;
    }
    const tile::Stmt& stmt = (*work.block)[work.next++];
    base::match(
        static_cast<const std::variant<tile::Let, tile::Alloc, tile::Copy, tile::Map, tile::Reduce, tile::Scan,
                                       tile::Gemm, tile::For, tile::If, tile::Assert>&>(stmt),
        [&](const tile::Let& s) { emit_let(unit, s); },
        [&](const tile::Alloc& s) { unit.used_buffers.insert(s.buffer); },
        [&](const tile::Copy& s) { emit_copy(unit, s); },
        [&](const tile::Map& s) { emit_map(unit, s); },
        [&](const tile::Reduce& s) { emit_reduce(unit, s); },
        [&](const tile::Scan& s) { emit_scan(unit, s); },
        [&](const tile::Gemm& s) { emit_gemm(unit, s); },
        [&](const tile::For& s) {
          open_for(unit, s);
          stack.push_back({&s.body, 0, 2, nullptr});
        },
        [&](const tile::If& s) {
          unit.out.open("");
          Frame frame;
          const std::string condition = condition_with_reads(unit, frame, s.reads, s.condition);
          unit.out.open("if (" + condition + ")");
          stack.push_back({&s.then, 0, 2, s.otherwise.empty() ? nullptr : &s.otherwise});
        },
        [&](const tile::Assert& s) { emit_assert(unit, s); });
  }
}

}  // namespace lemma::emit
