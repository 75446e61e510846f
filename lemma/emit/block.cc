#include "lemma/emit/block.h"

#include <algorithm>
#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/base/match.h"
#include "lemma/emit/body.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;

namespace {

// How far an integer expression reaches, from what is known of its variables.
view::Range range_of(const Unit& unit, Expr root) {
  std::unordered_map<uint32_t, view::Range> known;
  const auto both = [](std::optional<int64_t> a, std::optional<int64_t> b, auto f) -> std::optional<int64_t> {
    if (!a || !b) return std::nullopt;
    return f(*a, *b);
  };
  const auto either = [](std::optional<int64_t> a, std::optional<int64_t> b, auto f) -> std::optional<int64_t> {
    if (a && b) return f(*a, *b);
    return a ? a : b;
  };
  const auto add = [](int64_t a, int64_t b) -> std::optional<int64_t> {
    int64_t out;
    if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
    return out;
  };
  const auto least = [](int64_t a, int64_t b) { return std::optional(std::min(a, b)); };
  const auto most = [](int64_t a, int64_t b) { return std::optional(std::max(a, b)); };
  for (Expr e : scalar::reachable({&root, 1})) {
    view::Range r;
    const auto at = [&](size_t i) { return known[e.arg(i).index()]; };
    if (e.kind() == scalar::Kind::I64) {
      switch (e.op()) {
        case scalar::Op::Const: r = {e.as_int(), e.as_int()}; break;
        case scalar::Op::Index: r = unit.range_of(view::Atom{view::AtomKind::Index, int(e.payload()), nullptr}); break;
        case scalar::Op::Size: r.low = 0; break;
        case scalar::Op::Add: r = {both(at(0).low, at(1).low, add), both(at(0).high, at(1).high, add)}; break;
        case scalar::Op::Min: r = {both(at(0).low, at(1).low, least), either(at(0).high, at(1).high, least)}; break;
        case scalar::Op::Max: r = {either(at(0).low, at(1).low, most), both(at(0).high, at(1).high, most)}; break;
        case scalar::Op::Mul:
          if (at(0).low && *at(0).low >= 0 && at(1).low && *at(1).low >= 0) r.low = 0;
          break;
        case scalar::Op::FloorDiv:
          if (at(0).low && *at(0).low >= 0 && at(1).low && *at(1).low > 0) r = {0, at(0).high};
          break;
        default: break;
      }
    }
    known[e.index()] = r;
  }
  return known[root.index()];
}

void emit_let(Unit& unit, const tile::Let& let) {
  const view::Formula always;
  const Expr value = scalar::import(let.value, unit.arena);
  const std::string& v = unit.var_name(let.var);
  unit.set_range(let.var, range_of(unit, value));
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
  const view::Range first = range_of(unit, roots[0]), end = range_of(unit, roots[1]);
  unit.set_range(loop.var, {first.low, end.high ? std::optional<int64_t>(*end.high - 1) : std::nullopt});
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
    if (const size_t done = emit_rows(unit, *work.block, work.next)) {
      work.next += done;
      continue;
    }
    const tile::Stmt& stmt = (*work.block)[work.next++];
    base::match(
        static_cast<const tile::StmtVariant&>(stmt),
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
        [&](const tile::Assert& s) {
          if (!s.assumed) emit_assert(unit, s);
        },
        [&](const tile::Combine& s) { emit_combine(unit, s); },
        [&](const tile::Print& s) { emit_print(unit, s); },
        [&](const tile::Extern& s) { emit_extern(unit, s); },
        [&](const tile::Barrier&) {}, [&](const tile::Commit&) {}, [&](const tile::Wait&) {},  // a block is one thread
        [&](const tile::Phase&) { LEMMA_CHECK(false, "a phase is left in a kernel: split_phases comes first"); });
  }
}

}  // namespace lemma::emit
