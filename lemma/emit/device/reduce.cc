// Reductions. A thread folds the elements of its point; where a block has few points, all threads fold each point
// together: each a part of the elements, and the parts in workgroup memory, neighbours first.
#include <algorithm>
#include <functional>
#include <limits>

#include "lemma/emit/device/fold.h"
#include "lemma/emit/device/registers.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Kind;
using tile::Access;
using tile::Range;
using tile::Reduce;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

base::Diagnostic refused(const std::string& what, const std::string& why) {
  return base::unsupported("the reduction '" + what + "' has no form for devices yet: " + why);
}

bool uses(const Access& a, tile::Var v) {
  return std::any_of(a.coords.begin(), a.coords.end(), [&](const Form& c) { return c.uses(AtomKind::Index, v); });
}

class Reduction {
 public:
  Reduction(Text& text, const Reduce& r) : text_(text), r_(r), fold_(text, *r.monoid) {
    for (Expr e : r.body) body_.push_back(scalar::import(e, text.arena));
  }

  base::Result<void> write(Scope& scope) {
    if (const std::string why = fold_.refusal(); !why.empty()) return refused(r_.comment, why);
    // A component that leaves out a point variable is stored by the threads where that variable is 0.
    for (const Access& s : r_.states) {
      for (const Range& p : r_.points) own_sets_ = own_sets_ || !uses(s, p.var);
    }
    if (own_sets_ && r_.accumulate) return refused(r_.comment, "its components have index sets of their own and go on from earlier ones");
    if (together()) by_all(scope);
    else by_point(scope);
    return {};
  }

 private:
  // Few points, and a fold that may be cut.
  bool together() const {
    if (own_sets_ || r_.reduces.empty()) return false;
    int64_t points = 1;
    for (const Range& p : r_.points) {
      const auto n = p.extent.constant();
      if (!n) return false;
      points *= *n;
    }
    int64_t elements = 1;
    for (const Range& e : r_.reduces) elements *= e.extent.constant().value_or(1 << 20);
    return points * 4 <= text_.threads && elements >= 16;
  }

  void element(Scope& scope, const std::vector<std::string>& state) {
    text_.reads(r_.reads, scope, needed(r_.reads, {}, r_.where));
    if (!r_.where.is_always()) text_.test(text_.condition(r_.where, scope));
    Scope within = scope;
    text_.reads(r_.reads, within, needed(r_.reads, body_, r_.where));
    fold_.step(state, text_.values(body_, within));
    if (!r_.where.is_always()) text_.out.close();
  }

  void store(const std::vector<std::string>& state, Scope& scope) {
    for (size_t c = 0; c < state.size(); ++c) {
      std::string first;
      for (const Range& p : r_.points) {
        if (!uses(r_.states[c], p.var)) first += (first.empty() ? "" : " && ") + scope.vars.at(p.var) + " == " + index_literal(text_.dialect, 0);
      }
      if (!first.empty()) text_.test(first);
      text_.store(r_.states[c], state[c], fold_.kind(c), scope);
      if (!first.empty()) text_.out.close();
    }
  }

  std::vector<std::string> held(Scope& scope) {
    Scope at = scope;
    at.reads.clear();
    at.known.clear();
    text_.reads(r_.states, at, std::vector<bool>(r_.states.size(), true));
    return at.reads;
  }

  void by_point(Scope& outer) {
    Scope scope = outer;
    const int opened = open_points(text_, r_.points, scope, false);
    const std::vector<std::string> state = fold_.identity();
    if (r_.accumulate) {
      const std::vector<std::string> before = held(scope);
      for (size_t c = 0; c < state.size(); ++c) text_.out.line(state[c] + " = " + before[c] + ";");
    }
    Scope inner = scope;
    const int loops = open_loops(text_, r_.reduces, inner);
    element(inner, state);
    text_.out.close(loops);
    store(state, scope);
    text_.out.close(opened);
  }

  void by_all(Scope& outer) {
    const int threads = text_.threads;
    std::vector<int> parts;
    for (size_t c = 0; c < fold_.components(); ++c) {
      parts.push_back(text_.add_shared("part", scalar::dtype_of(fold_.kind(c)), threads));
    }
    Scope scope = outer;
    const int opened = open_loops(text_, r_.points, scope);
    std::vector<Form> extents;
    for (const Range& e : r_.reduces) extents.push_back(e.extent);
    const Box box = define_box(text_, "n", extents, scope);
    const std::string& total = box.count;
    const std::vector<std::string> state = fold_.identity();
    const std::string tid = convert(text_.dialect, text_.index_type(), "lm_tid"), p = text_.fresh("p");
    if (r_.monoid->commutative) {
      text_.loop(p, tid, total, std::to_string(threads));
    } else {
      const std::string share = text_.fresh("n"), begin = text_.fresh("n"), end = text_.fresh("n");
      text_.define(text_.index_type(), share, "(" + total + " + " + std::to_string(threads - 1) + ") / " + std::to_string(threads));
      text_.define(text_.index_type(), begin, tid + " * " + share);
      text_.define(text_.index_type(), end, choose(text_.dialect, begin + " + " + share + " < " + total, begin + " + " + share, total));
      text_.loop(p, begin, end, "1");
    }
    Scope inner = scope;
    const std::vector<std::string> at_element = take_apart(text_, box, p);
    for (size_t i = 0; i < r_.reduces.size(); ++i) inner.vars[r_.reduces[i].var] = at_element[i];
    element(inner, state);
    text_.out.close();
    const auto at = [&](const std::string& index, size_t c) { return text_.load(parts[c], index); };
    const auto put = [&](const std::vector<std::string>& values) {
      Scope here;
      here.vars[-1] = tid;
      for (size_t c = 0; c < values.size(); ++c) text_.store({parts[c], {Form::index(-1)}, {}}, values[c], fold_.kind(c), here);
    };
    put(state);
    for (int s = 1; s < threads; s *= 2) {
      text_.barrier();
      text_.test("lm_tid % " + std::to_string(2 * s) + (text_.dialect.id == DialectId::Wgsl ? " == 0" : " == 0"));
      std::vector<std::string> right, left;
      for (size_t c = 0; c < state.size(); ++c) {
        left.push_back(text_.fresh("x"));
        right.push_back(text_.fresh("y"));
        text_.define(text_.type(fold_.kind(c)), left.back(), at(tid, c));
        text_.define(text_.type(fold_.kind(c)), right.back(), at(tid + " + " + std::to_string(s), c));
      }
      fold_.combine(state, left, right);
      put(state);
      text_.out.close();
    }
    text_.test("lm_tid == 0");
    if (r_.accumulate) fold_.combine(state, held(scope), state);
    store(state, scope);
    text_.out.close();
    text_.barrier();
    text_.out.close(opened);
  }

  Text& text_;
  const Reduce& r_;
  Fold fold_;
  std::vector<Expr> body_;
  bool own_sets_ = false;
};

// The K best of a point's elements, sorted, by insertion: nan above all, ties by the smaller index.
base::Result<void> write_top_k(Text& text, const Reduce& r, Scope& outer) {
  const monoid::Monoid& m = *r.monoid;
  const Kind value = m.components[0].kind, index = m.components[1].kind;
  if (r.axes.size() != 1 || r.states.size() != 2) return refused(r.comment, "its slots are not one axis");
  Scope scope = outer;
  const int opened = open_points(text, r.points, scope, false);
  const std::string k = std::to_string(m.count), vs = text.fresh("k"), is = text.fresh("k"), slot = text.fresh("j");
  const bool wgsl = text.dialect.id == DialectId::Wgsl;
  const auto array = [&](const std::string& name, Kind kind) {
    text.out.line(wgsl ? "var " + name + ": array<" + std::string(text.type(kind)) + ", " + k + ">;" : std::string(text.type(kind)) + " " + name + "[" + k + "];");
  };
  array(vs, value);
  array(is, index);
  const auto slots = [&](const std::function<void(Scope&, const std::string&)>& inside) {
    const std::string j = text.fresh("j");
    text.loop(j, index_literal(text.dialect, 0), index_literal(text.dialect, m.count), "1");
    Scope at = scope;
    at.vars[r.axes[0].var] = j;
    inside(at, j);
    text.out.close();
  };
  slots([&](Scope& at, const std::string& j) {
    if (r.accumulate) {
      at.reads.clear();
      at.known.clear();
      text.reads(r.states, at, {true, true});
      text.out.line(vs + "[" + j + "] = " + at.reads[0] + ";");
      text.out.line(is + "[" + j + "] = " + at.reads[1] + ";");
      return;
    }
    Scope none;
    const double least = m.smallest ? 1 : -1;
    const Expr worst = scalar::is_float(value) ? scalar::constant(text.arena, value, least * std::numeric_limits<double>::infinity())
                                               : scalar::import(m.identity[0], text.arena);
    text.out.line(vs + "[" + j + "] = " + text.value(worst, none) + ";");
    text.out.line(is + "[" + j + "] = " + literal_text(text.dialect, index, -1) + ";");
  });
  Scope inner = scope;
  const int loops = open_loops(text, r.reduces, inner);
  std::vector<Expr> body;
  for (Expr e : r.body) body.push_back(scalar::import(e, text.arena));
  text.reads(r.reads, inner, needed(r.reads, {}, r.where));
  if (!r.where.is_always()) text.test(text.condition(r.where, inner));
  Scope within = inner;
  text.reads(r.reads, within, needed(r.reads, body, r.where));
  const std::vector<std::string> e = text.values(body, within);
  const std::string v = text.fresh("x"), i = text.fresh("x"), go = text.fresh("j");
  text.declare(text.type(value), v, e[0]);
  text.declare(text.type(index), i, e.size() > 1 ? e[1] : literal_text(text.dialect, index, 0));
  // The newcomer takes the first slot it beats, and what was there goes on to the next.
  text.loop(go, index_literal(text.dialect, 0), index_literal(text.dialect, m.count), "1");
  const std::string ov = text.fresh("x"), oi = text.fresh("x");
  text.define(text.type(value), ov, vs + "[" + go + "]");
  text.define(text.type(index), oi, is + "[" + go + "]");
  const std::string zero = literal_text(text.dialect, index, 0);
  const std::string name(scalar::name(value));
  const bool is_float = scalar::is_float(value);
  const std::string nan_new = is_float ? "lm_is_nan_" + name + "(" + v + ")" : "false", nan_old = is_float ? "lm_is_nan_" + name + "(" + ov + ")" : "false";
  const std::string better = m.smallest ? v + " < " + ov : ov + " < " + v;
  const std::string equal = "(" + v + " == " + ov + " || (" + nan_new + " && " + nan_old + "))";
  text.test("(" + oi + " < " + zero + ") || (" + nan_new + " && !" + nan_old + ") || (!(" + nan_old + ") && " + better + ") || (" + equal + " && " + i + " < " + oi + ")");
  text.out.line(vs + "[" + go + "] = " + v + ";");
  text.out.line(is + "[" + go + "] = " + i + ";");
  text.out.line(v + " = " + ov + ";");
  text.out.line(i + " = " + oi + ";");
  text.test(oi + " < " + zero);
  text.out.line("break;");
  text.out.close(3);
  if (!r.where.is_always()) text.out.close();
  text.out.close(loops);
  slots([&](Scope& at, const std::string& j) {
    text.store(r.states[0], vs + "[" + j + "]", value, at);
    text.store(r.states[1], is + "[" + j + "]", index, at);
  });
  text.out.close(opened);
  return {};
}

}  // namespace

base::Result<void> write_reduce(Text& text, const Reduce& reduce, Scope& scope, std::vector<std::string>&) {
  if (!reduce.comment.empty()) text.out.line("/* " + reduce.comment + " */");
  if (reduce.monoid->structure == monoid::Structure::TopK) return write_top_k(text, reduce, scope);
  for (const Access& a : reduce.reads) {
    if (text.held.at(a.buffer) == Held::Registers) return write_register_reduce(text, reduce, scope);
  }
  if (write_team_reduce(text, reduce, scope)) return {};
  return Reduction(text, reduce).write(scope);
}

// A product is a sum over k and the taps, a point a thread.
base::Result<void> write_gemm(Text& text, const tile::Gemm& gemm, Scope& scope, std::vector<std::string>& notes) {
  if (text.held.at(gemm.acc.buffer) == Held::Registers) return write_register_gemm(text, gemm, scope);
  Reduce r;
  r.points = {gemm.m, gemm.n};
  r.reduces = gemm.taps;
  r.reduces.push_back(gemm.k);
  r.reads = {gemm.a, gemm.b};
  const Kind kind = scalar::kind_of(text.buffer(gemm.acc.buffer).type);
  const auto operand = [&](int i, const Access& a) {
    return scalar::cast(scalar::arg(text.arena, scalar::kind_of(text.buffer(a.buffer).type), i), kind);
  };
  r.body = {operand(0, gemm.a) * operand(1, gemm.b)};
  r.monoid = monoid::sum(kind);
  r.states = {gemm.acc};
  r.accumulate = gemm.accumulate;
  r.comment = gemm.comment;
  return write_reduce(text, r, scope, notes);
}

// A thread folds along its point and stores as it goes.
base::Result<void> write_scan(Text& text, const tile::Scan& scan, Scope& outer, std::vector<std::string>&) {
  Fold fold(text, *scan.monoid);
  if (const std::string why = fold.refusal(); !why.empty()) return base::unsupported("the scan '" + scan.comment + "' has no form for devices yet: " + why);
  if (!scan.comment.empty()) text.out.line("/* " + scan.comment + " */");
  Scope scope = outer;
  const int opened = open_points(text, scan.points, scope, false);
  const std::vector<std::string> state = fold.identity();
  if (scan.accumulate) {
    Scope at = scope;
    at.reads.clear();
    at.known.clear();
    text.reads(scan.states, at, std::vector<bool>(scan.states.size(), true));
    for (size_t c = 0; c < state.size(); ++c) text.out.line(state[c] + " = " + at.reads[c] + ";");
  }
  std::vector<Expr> body, stores;
  for (Expr e : scan.body) body.push_back(scalar::import(e, text.arena));
  for (const tile::Store& s : scan.stores) stores.push_back(scalar::import(s.value, text.arena));
  Scope inner = scope;
  const std::string step = text.fresh("v");
  const std::string extent = text.form(scan.along.extent, scope);
  text.loop(step, index_literal(text.dialect, 0), extent, "1");
  inner.vars[scan.along.var] = step;
  if (scan.reverse) {
    const std::string back = text.fresh("v");
    text.define(text.index_type(), back, extent + " - " + index_literal(text.dialect, 1) + " - " + step);
    inner.vars[scan.along.var] = back;
  }
  const auto put = [&] {
    Scope at = inner;
    at.known.clear();
    at.reads = state;
    at.present.assign(state.size(), "true");
    at.kinds.clear();
    for (size_t c = 0; c < state.size(); ++c) at.kinds.push_back(fold.kind(c));
    const std::vector<std::string> values = text.values(stores, at);
    for (size_t i = 0; i < values.size(); ++i) text.store(scan.stores[i].to, values[i], stores[i].kind(), at);
  };
  if (scan.exclusive) put();
  Scope reading = inner;
  text.reads(scan.reads, reading, needed(scan.reads, {}, scan.where));
  if (!scan.where.is_always()) text.test(text.condition(scan.where, reading));
  Scope within = reading;
  text.reads(scan.reads, within, needed(scan.reads, body, scan.where));
  fold.step(state, text.values(body, within));
  if (!scan.where.is_always()) text.out.close();
  if (!scan.exclusive) put();
  text.out.close();
  for (size_t c = 0; c < state.size(); ++c) text.store(scan.states[c], state[c], fold.kind(c), scope);
  text.out.close(opened);
  return {};
}

}  // namespace lemma::emit::device
