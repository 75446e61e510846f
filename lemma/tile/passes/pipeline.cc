#include "lemma/tile/passes/pipeline.h"

#include <algorithm>
#include <map>
#include <set>

#include "lemma/base/match.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/effects.h"
#include "lemma/view/convert.h"

namespace lemma::tile {
namespace {

using scalar::Expr;
using view::Form;

int64_t bytes(const Buffer& buffer) {
  int64_t n = 1;
  for (const Form& e : buffer.extents) n *= e.constant().value_or(0);
  return (scalar::bytes(buffer.type, n) + 1023) / 1024 * 1024;
}

// The statement with one variable written as a form, and others renamed.
Stmt with(Program& program, Stmt stmt, const std::map<Var, Form>& forms) {
  scalar::Arena& arena = *program.arena;
  const auto replaced = [&](int v) {
    const auto at = forms.find(v);
    return at == forms.end() ? Form::index(v) : at->second;
  };
  Parts parts;
  parts.form = [&](const Form& f) { return f.map_indices(replaced); };
  parts.formula = [&](const view::Formula& f) { return f.map_indices(replaced); };
  parts.expr = [&](Expr e) {
    return scalar::rewrite(e, arena, [&](Expr node, std::span<const Expr>) {
      if (!node.is(scalar::Op::Index) || !forms.count(int(node.payload()))) return Expr();
      return view::to_expr(forms.at(int(node.payload())), arena);
    });
  };
  replace_parts(stmt, parts);
  return stmt;
}

class Pipeliner {
 public:
  Pipeliner(Program& program, Kernel& kernel, int64_t shared, std::vector<std::string>& notes)
      : program_(program), kernel_(kernel), shared_(shared), notes_(notes) {}

  void run() {
    written_ = effects(kernel_.body).writes;
    // What a person marked as asynchronous may be; what is, and who waits for it, is decided here.
    kernel_.body = edit(std::move(kernel_.body), [](Stmt stmt) {
      if (auto* copy = std::get_if<Copy>(&stmt)) copy->async = false;
      return Block{std::move(stmt)};
    });
    choose_rings();
    if (rings_.empty() || versions_ < 2) return;
    for (int b : rings_) {
      Buffer& ring = program_.buffers[size_t(b)];
      ring.extents.insert(ring.extents.begin(), Form(versions_));
      ring.hints.ring = true;
    }
    early_tiles(kernel_.body);
    kernel_.body = edit(std::move(kernel_.body), [this](Stmt stmt) {
      auto* loop = std::get_if<For>(&stmt);
      if (!loop || loop->kind != LoopKind::Pipelined) return Block{std::move(stmt)};
      return rewrite(std::move(*loop));
    });
  }

 private:
  // How often each buffer stands in the kernel, by statement.
  int uses(const Block& block, int b) const {
    int n = 0;
    visit(block, [&](const Stmt& s) {
      const Effects e = effects(s);
      n += e.reads.count(b) || e.writes.count(b);
    });
    return n;
  }

  // The buffers that pipelined loops fill ahead and nothing else touches, and how many versions they get.
  void choose_rings() {
    std::map<int, int> inside;
    visit(kernel_.body, [&](const Stmt& s) {
      const auto* loop = std::get_if<For>(&s);
      if (!loop || loop->kind != LoopKind::Pipelined || loop->depth < 2) return;
      const std::vector<bool> can = ahead(*loop);
      for (size_t i = 0; i < can.size(); ++i) {
        if (!can[i]) continue;
        const int b = std::get<Copy>(loop->body[i]).to.buffer;
        inside[b] += uses(loop->body, b);
        versions_ = std::max<int64_t>(versions_, loop->depth);
      }
    });
    int64_t one = 0;
    for (const auto& [b, n] : inside) {
      if (n != uses(kernel_.body, b)) continue;
      rings_.insert(b);
      one += bytes(program_.buffers[size_t(b)]);
    }
    const int64_t others = shared_bytes(program_, kernel_) - one, asked = versions_;
    while (versions_ > 1 && others + versions_ * one > shared_) --versions_;
    if (versions_ < asked && !rings_.empty()) {
      notes_.push_back("the kernel '" + kernel_.name + "': a pipelined loop has " + std::to_string(versions_) + " versions, not " +
                       std::to_string(asked) + ", as more than " + std::to_string(shared_) + " bytes would be shared");
    }
  }

  // Tiles that are copied once before a pipelined loop, and touched in it alone, arrive with its first turn.
  void early_tiles(Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      for (Block* inner : bodies(block[i])) early_tiles(*inner);
      auto* copy = std::get_if<Copy>(&block[i]);
      if (!copy || program_.buffers[size_t(copy->to.buffer)].space != Space::Shared || written_.count(copy->from.buffer)) continue;
      const int b = copy->to.buffer;
      for (size_t j = i + 1; j < block.size(); ++j) {
        const auto* loop = std::get_if<For>(&block[j]);
        if (!loop || !is_rewritten(*loop)) {
          if (uses({block[j]}, b)) break;
          continue;
        }
        // Two uses: this copy, and what the loop does.
        copy->async = uses(kernel_.body, b) == 1 + uses(loop->body, b);
        break;
      }
    }
  }

  // Whether `rewrite` makes a ring loop of it.
  bool is_rewritten(const For& loop) const {
    if (loop.kind != LoopKind::Pipelined) return false;
    const std::vector<bool> can = ahead(loop);
    for (size_t i = 0; i < can.size(); ++i) {
      if (can[i] && rings_.count(std::get<Copy>(loop.body[i]).to.buffer)) return true;
    }
    return false;
  }

  // Which statements of the body can be made turns ahead, as far as the loop itself goes.
  std::vector<bool> ahead(const For& loop) const {
    std::vector<bool> out(loop.body.size(), false);
    std::set<Var> moving;  // lets that depend on what is written here
    std::set<int> touched;
    for (size_t i = 0; i < loop.body.size(); ++i) {
      const Stmt& stmt = loop.body[i];
      const Effects own = effects(stmt);
      if (const auto* let = std::get_if<Let>(&stmt)) {
        const bool fixed = std::none_of(own.reads.begin(), own.reads.end(), [&](int b) { return written_.count(b) > 0; });
        if (!fixed) moving.insert(let->var);
        continue;
      }
      const auto* copy = std::get_if<Copy>(&stmt);
      bool can = copy && program_.buffers[size_t(copy->to.buffer)].space == Space::Shared && !written_.count(copy->from.buffer) &&
                 !touched.count(copy->to.buffer) && copy->to.guard.is_always();
      if (can) {
        int writers = 0;
        for (const Stmt& other : loop.body) {
          const Effects e = effects(Block{other});
          writers += e.writes.count(copy->to.buffer) > 0;
        }
        can = writers == 1;
        for (const Access* a : {&copy->from, &copy->to}) {
          for (const Form& c : a->coords) {
            for (int v : c.ids(view::AtomKind::Index)) can = can && !moving.count(v);
          }
          for (int v : a->guard.ids(view::AtomKind::Index)) can = can && !moving.count(v);
          can = can && !a->guard.uses(view::AtomKind::Data);
        }
      }
      out[i] = can;
      const Effects all = effects(Block{stmt});
      touched.insert(all.reads.begin(), all.reads.end());
      touched.insert(all.writes.begin(), all.writes.end());
    }
    return out;
  }

  Block rewrite(For loop) {
    std::vector<bool> early = ahead(loop);
    for (size_t i = 0; i < early.size(); ++i) early[i] = early[i] && rings_.count(std::get<Copy>(loop.body[i]).to.buffer);
    loop.kind = LoopKind::Serial;
    loop.depth = 1;
    if (std::none_of(early.begin(), early.end(), [](bool e) { return e; })) return {std::move(loop)};
    return build(std::move(loop), early);
  }

  Var variable(const std::string& name) {
    program_.variables.push_back(name);
    return Var(program_.variables.size()) - 1;
  }

  Form let_version(const Form& turn, Block& block) {
    const Var v = variable("version");
    block.push_back(Let{v, {}, view::to_expr(Form::mod(turn, Form(versions_)), *program_.arena)});
    return Form::index(v);
  }

  // A copy of the early statements for one turn.
  Block turn_of(const For& loop, const std::vector<bool>& early, const Form& turn, const Form& index) {
    Block out;
    const Form version = let_version(turn, out);
    std::map<Var, Form> forms{{loop.var, index}};
    for (size_t i = 0; i < loop.body.size(); ++i) {
      if (const auto* let = std::get_if<Let>(&loop.body[i])) {
        Stmt again = with(program_, *let, forms);
        const Var v = variable(program_.variables[size_t(let->var)]);
        std::get<Let>(again).var = v;
        forms[let->var] = Form::index(v);
        out.push_back(std::move(again));
      } else if (early[i]) {
        Stmt stmt = with(program_, loop.body[i], forms);
        auto& copy = std::get<Copy>(stmt);
        std::map<Var, Var> own;
        for (Range& r : copy.box) own[r.var] = variable(program_.variables[size_t(r.var)]);
        for (Access* a : {&copy.from, &copy.to}) {
          for (Form& c : a->coords) {
            c = c.map_indices([&](int v) { return Form::index(own.count(v) ? own.at(v) : v); });
          }
          a->guard = a->guard.map_indices([&](int v) { return Form::index(own.count(v) ? own.at(v) : v); });
        }
        for (Range& r : copy.box) r.var = own.at(r.var);
        copy.async = true;
        copy.to.coords.insert(copy.to.coords.begin(), version);
        out.push_back(std::move(stmt));
      }
    }
    return out;
  }

  // Every access to a ring in the block, at the version of the turn.
  void at_version(Block& block, const Form& version) const {
    const auto at = [&](Access& a) {
      if (rings_.count(a.buffer)) a.coords.insert(a.coords.begin(), version);
    };
    const auto all = [&](std::vector<Access>& list) {
      for (Access& a : list) at(a);
    };
    for (Stmt& stmt : block) {
      base::match(static_cast<StmtVariant&>(stmt),
          [&](Let& s) { all(s.reads); },
          [&](Copy& s) { at(s.from); at(s.to); },
          [&](Map& s) { all(s.reads); for (Store& t : s.stores) at(t.to); },
          [&](Reduce& s) { all(s.reads); all(s.states); },
          [&](Scan& s) { all(s.reads); all(s.states); for (Store& t : s.stores) at(t.to); },
          [&](Gemm& s) { at(s.a); at(s.b); at(s.acc); },
          [&](If& s) { all(s.reads); },
          [&](Assert& s) { all(s.reads); },
          [&](Print& s) { all(s.reads); },
          [&](Combine& s) { at(s.from); at(s.to); },
          [&](auto&) {});
      for (Block* inner : bodies(stmt)) at_version(*inner, version);
    }
  }

  Block build(For loop, const std::vector<bool>& early) {
    scalar::Arena& arena = *program_.arena;
    const auto number = [&](int64_t n) { return scalar::i64(arena, n); };
    Block out;
    // Turns count from 0. A loop that counts so already keeps its variable.
    const bool plain = loop.begin.is_const() && loop.begin.as_int() == 0 && loop.step == 1;
    const Var first = variable("first"), turns = variable("turns");
    if (!plain) out.push_back(Let{first, {}, loop.begin});
    out.push_back(Let{turns, {}, plain ? loop.end : scalar::max(number(0), scalar::binary(scalar::Op::FloorDiv, loop.end - loop.begin + number(loop.step - 1), number(loop.step)))});
    const auto index = [&](const Form& turn) { return plain ? turn : Form::index(first) + turn * Form(loop.step); };
    const auto asked = [&](const Form& turn) {
      If under;
      under.condition = view::Formula::less_equal(turn + Form(1), Form::index(turns));
      under.then = turn_of(loop, early, turn, index(turn));
      return under;
    };
    For prologue;
    prologue.var = variable("ahead");
    prologue.begin = number(0);
    prologue.end = number(versions_ - 1);
    prologue.kind = LoopKind::Unrolled;
    prologue.body.push_back(asked(Form::index(prologue.var)));
    prologue.body.push_back(Commit{});
    out.push_back(std::move(prologue));

    const Var turn = plain ? loop.var : variable("turn");
    Block body;
    body.push_back(Wait{int(versions_ - 2)});
    body.push_back(Barrier{});
    body.push_back(asked(Form::index(turn) + Form(versions_ - 1)));
    body.push_back(Commit{});
    if (!plain) body.push_back(Let{loop.var, {}, view::to_expr(index(Form::index(turn)), arena)});
    Block rest;
    for (size_t i = 0; i < loop.body.size(); ++i) {
      if (!early[i]) rest.push_back(std::move(loop.body[i]));
    }
    at_version(rest, let_version(Form::index(turn), body));
    for (Stmt& s : rest) body.push_back(std::move(s));
    loop.var = turn;
    loop.begin = number(0);
    loop.end = scalar::index(arena, turns);
    loop.step = 1;
    loop.points.clear();  // a promise of turns that count otherwise
    loop.where = {};
    loop.body = std::move(body);
    out.push_back(std::move(loop));
    // The ring and tiles that came with its first turn may be filled anew, also if there was no turn.
    out.push_back(Wait{0});
    out.push_back(Barrier{});
    return out;
  }

  Program& program_;
  Kernel& kernel_;
  int64_t shared_;
  std::vector<std::string>& notes_;
  std::set<int> written_, rings_;
  int64_t versions_ = 1;
};

}  // namespace

int64_t shared_bytes(const Program& program, const Kernel& kernel) {
  int64_t out = 0;
  visit(kernel.body, [&](const Stmt& s) {
    const auto* alloc = std::get_if<Alloc>(&s);
    if (!alloc) return;
    const Buffer& b = program.buffers[size_t(alloc->buffer)];
    if (b.space == Space::Shared) out += bytes(b);
  });
  return out;
}

Program pipeline(Program program, int64_t shared_bytes, std::vector<std::string>& notes) {
  for (Kernel& kernel : program.kernels) Pipeliner(program, kernel, shared_bytes, notes).run();
  return program;
}

}  // namespace lemma::tile
