// Reductions along which memory runs: a warp folds a point together, or, where a block has fewer points than warps, all
// warps do. Lanes take neighbouring vectors, exchange by shuffles, and warps meet in shared memory.
#include "lemma/emit/device/fold.h"
#include "lemma/emit/device/registers.h"
#include "lemma/emit/device/vectors.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Kind;
using tile::Access;
using tile::Range;
using tile::Reduce;
using view::AtomKind;
using view::Form;

namespace {

constexpr int kTogether = 4;

bool can_shuffle(Kind kind) { return kind == Kind::F32 || kind == Kind::I32 || kind == Kind::U32 || kind == Kind::F64; }

class TeamReduction {
 public:
  TeamReduction(Text& text, const Reduce& r) : text_(text), r_(r), fold_(text, *r.monoid) {
    for (Expr e : r.body) body_.push_back(scalar::import(e, text.arena));
    which_ = needed(r.reads, body_, {});
  }

  bool fits() {
    if (!text_.synchronised || text_.dialect.id != DialectId::Cuda || !r_.monoid->commutative || !fold_.refusal().empty()) return false;
    if (r_.reduces.empty() || !r_.axes.empty()) return false;
    for (size_t c = 0; c < fold_.components(); ++c) {
      if (!can_shuffle(fold_.kind(c)) || r_.states[c].coords.size() < r_.points.size()) return false;
    }
    for (const Access& s : r_.states) {
      for (const Range& p : r_.points) {
        bool used = false;
        for (const Form& c : s.coords) used = used || c.uses(AtomKind::Index, p.var);
        if (!used) return false;
      }
    }
    const tile::Var along = r_.reduces.back().var;
    // Reads are made where the domain holds: of whole vectors, so it may not end within one.
    if (r_.where.uses(AtomKind::Index, along) || reads_along(r_.where, along)) return false;
    for (const Access& a : r_.reads) {
      if (text_.held.at(a.buffer) == Held::Registers) return false;
      // Where memory runs along a point, neighbouring threads take neighbouring points.
      for (const Range& p : r_.points) {
        const auto split = text_.offset(a.buffer, a.coords).split(p.var);
        if (text_.held.at(a.buffer) == Held::Global && split && split->coefficient == Form(1)) return false;
      }
    }
    auto found = Vectors::find(text_, r_.reads, which_, {}, r_.reduces.back().var);
    if (found) vectors_.emplace(std::move(*found));
    return found.has_value();
  }

  void write(const Scope& outer) {
    Scope scope = outer;
    std::vector<Form> extents;
    for (const Range& p : r_.points) extents.push_back(p.extent);
    const Box box = define_box(text_, "n", extents, scope);
    int64_t known = 1;
    for (const Form& e : extents) known = e.constant() && known >= 0 ? known * *e.constant() : -1;
    const int warps = text_.threads / 32;
    if (known >= 0) {
      write_team(box, scope, known >= warps);
      return;
    }
    text_.test(box.count + " >= " + std::to_string(warps));
    write_team(box, scope, true);
    text_.out.otherwise();
    write_team(box, scope, false);
    text_.out.close();
  }

 private:
  // Whether the condition depends on data that lies along an index.
  bool reads_along(const view::Formula& where, tile::Var along) const {
    for (int r : where.ids(AtomKind::Data)) {
      for (const Form& c : r_.reads[size_t(r)].coords) {
        if (c.uses(AtomKind::Index, along) || c.uses(AtomKind::Data)) return true;
      }
      if (!r_.reads[size_t(r)].guard.is_always()) return true;
    }
    return false;
  }

  void write_team(const Box& box, const Scope& outer, bool warp) {
    Scope scope = outer;
    const int warps = text_.threads / 32;
    std::vector<int> parts;
    for (size_t c = 0; !warp && warps > 1 && c < fold_.components(); ++c) parts.push_back(text_.add_shared("part", scalar::dtype_of(fold_.kind(c)), warps));
    const std::string p = text_.fresh("p");
    text_.loop(p, warp ? convert(text_.dialect, text_.index_type(), "lm_warp") : index_literal(text_.dialect, 0), box.count, warp ? std::to_string(warps) : "1");
    const std::vector<std::string> at = take_apart(text_, box, p);
    for (size_t i = 0; i < at.size(); ++i) scope.vars[r_.points[i].var] = at[i];
    const std::vector<std::string> state = fold_.identity();
    fold_elements(scope, state, warp ? "lm_lane" : "lm_tid", warp ? 32 : text_.threads);
    for (int bit = 16; bit > 0; bit /= 2) exchange(state, bit);
    if (!parts.empty()) meet(state, parts, warps);
    text_.test(warp ? "lm_lane == 0" : "lm_tid == 0");
    if (r_.accumulate) {
      Scope before = scope;
      before.reads.clear();
      before.known.clear();
      text_.reads(r_.states, before, std::vector<bool>(r_.states.size(), true));
      fold_.combine(state, before.reads, state);
    }
    for (size_t c = 0; c < state.size(); ++c) text_.store(r_.states[c], state[c], fold_.kind(c), scope);
    text_.out.close(2);
  }

  void exchange(const std::vector<std::string>& state, int bit) {
    std::vector<std::string> other;
    for (size_t c = 0; c < state.size(); ++c) {
      other.push_back(text_.fresh("y"));
      text_.define(text_.type(fold_.kind(c)), other.back(), "lm_shuffle_xor(" + state[c] + ", " + std::to_string(bit) + ")");
    }
    fold_.combine(state, state, other);
  }

  // The warps' states in every thread. Barriers stand around it, since the next point uses the same places.
  void meet(const std::vector<std::string>& state, const std::vector<int>& parts, int warps) {
    text_.barrier();
    text_.test("lm_lane == 0");
    for (size_t c = 0; c < state.size(); ++c) text_.out.line(text_.buffer_names.at(parts[c]) + "[lm_warp] = " + state[c] + ";");
    text_.out.close();
    text_.barrier();
    for (size_t c = 0; c < state.size(); ++c) text_.out.line(state[c] + " = " + text_.buffer_names.at(parts[c]) + "[0];");
    const std::string w = text_.fresh("w");
    text_.out.line("LM_UNROLL");
    text_.out.open("for (int " + w + " = 1; " + w + " < " + std::to_string(warps) + "; ++" + w + ")");
    std::vector<std::string> other;
    for (size_t c = 0; c < state.size(); ++c) {
      other.push_back(text_.fresh("y"));
      text_.define(text_.type(fold_.kind(c)), other.back(), text_.buffer_names.at(parts[c]) + "[" + w + "]");
    }
    fold_.combine(state, state, other);
    text_.out.close();
  }

  void fold_elements(const Scope& outer, const std::vector<std::string>& state, const std::string& lane, int lanes) {
    Scope scope = outer;
    std::vector<Range> before(r_.reduces.begin(), r_.reduces.end() - 1);
    const int loops = open_loops(text_, before, scope);
    const tile::Var along = r_.reduces.back().var;
    if (!r_.where.is_always()) {
      Scope reading = scope;
      text_.reads(r_.reads, reading, needed(r_.reads, {}, r_.where));
      text_.test(text_.condition(r_.where, reading));
    }
    const std::string n = text_.fresh("n"), whole = text_.fresh("n"), width = std::to_string(vectors_->width());
    text_.define(text_.index_type(), n, text_.form(r_.reduces.back().extent, scope));
    text_.define(text_.index_type(), whole, "(" + vectors_->aligned(scope, {}) + " ? " + n + " - " + n + " % " + width + " : 0)");
    // Four vectors are asked for before the first is folded, while there are four.
    const std::string e = text_.fresh("v"), first = convert(text_.dialect, text_.index_type(), lane);
    const int64_t stride = int64_t(lanes) * vectors_->width();
    text_.declare(text_.index_type(), e, first + " * " + width);
    for (const int together : {kTogether, 1}) {
      text_.out.open("for (; " + e + " + " + std::to_string((together - 1) * stride) + " < " + whole + "; " + e + " += " + std::to_string(together * stride) + ")");
      Scope at = scope;
      std::vector<std::string> begins;
      for (int i = 0; i < together; ++i) {
        begins.push_back(text_.fresh("v"));
        text_.define(text_.index_type(), begins.back(), e + " + " + std::to_string(i * stride));
        at.vars[along] = begins.back();
        vectors_->load(at, i);
      }
      for (int i = 0; i < together; ++i) {
        const std::string u = text_.fresh("u"), v = text_.fresh("v");
        text_.out.line("LM_UNROLL");
        text_.out.open("for (int " + u + " = 0; " + u + " < " + width + "; ++" + u + ")");
        Scope inside = scope;
        text_.define(text_.index_type(), v, begins[size_t(i)] + " + " + u);
        inside.vars[along] = v;
        vectors_->element(inside, u, i);
        element(inside, state);
        text_.out.close();
      }
      text_.out.close();
    }
    const std::string rest = text_.fresh("v");
    text_.loop(rest, whole + " + " + first, n, std::to_string(lanes));
    Scope single = outer;
    single.vars = scope.vars;
    single.vars[along] = rest;
    element(single, state);
    text_.out.close();
    if (!r_.where.is_always()) text_.out.close();
    text_.out.close(loops);
  }

  void element(Scope& scope, const std::vector<std::string>& state) {
    text_.reads(r_.reads, scope, which_);
    fold_.step(state, text_.values(body_, scope));
  }

  Text& text_;
  const Reduce& r_;
  Fold fold_;
  std::vector<Expr> body_;
  std::vector<bool> which_;
  std::optional<Vectors> vectors_;
};

}  // namespace

bool write_team_reduce(Text& text, const Reduce& reduce, const Scope& scope) {
  TeamReduction team(text, reduce);
  if (!team.fits()) return false;
  team.write(scope);
  return true;
}

}  // namespace lemma::emit::device
