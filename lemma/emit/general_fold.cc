#include "lemma/emit/general_fold.h"

#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/emit/body.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using tile::Range;
using tile::Var;
using view::AtomKind;
using view::Form;

namespace {

Expr form_expr(scalar::Arena& arena, const Form& form) {
  Expr out;
  for (const view::Term& t : form.terms()) {
    Expr product;
    const auto times = [&](Expr e) { product = product.valid() ? product * e : e; };
    if (t.coefficient != 1 || t.factors.empty()) times(scalar::i64(arena, t.coefficient));
    for (const view::Atom& a : t.factors) {
      switch (a.kind) {
        case AtomKind::Index: times(scalar::index(arena, a.id)); break;
        case AtomKind::Size: times(scalar::size(arena, a.id)); break;
        case AtomKind::Data: times(scalar::arg(arena, Kind::I64, a.id)); break;
        case AtomKind::Floor:
          times(scalar::binary(Op::FloorDiv, form_expr(arena, a.floor->numerator), form_expr(arena, a.floor->denominator)));
      }
    }
    out = out.valid() ? out + product : product;
  }
  return out.valid() ? out : scalar::i64(arena, 0);
}

// What reductions and scans share.
struct Statement {
  const std::vector<Range>& points;
  const std::vector<Range>& axes;
  const view::Formula& where;
  const std::vector<Access>& reads;
  const std::vector<Expr>& body;
  const monoid::Monoid& monoid;
  const std::vector<Access>& states;
};

struct Component {
  std::vector<Range> extra;      // points of its own
  std::vector<Range> axes;       // its axes' variables, in order
  bool in_variable = false;      // no loops of its own: the new value is a C variable
  bool in_place = false;         // may be overwritten while others are computed
  int scratch = -1;              // else: where the new state waits
  Access scratch_access;
};

class GeneralFold {
 public:
  GeneralFold(Unit& unit, const Statement& s) : unit_(unit), s_(s) {
    for (Expr e : s.body) operands_.push_back(scalar::import(e, unit.arena));
    for (const Range& r : s.points) {
      bool everywhere = true;
      for (const Access& a : s.states) everywhere = everywhere && uses(a, r.var);
      if (everywhere || s.states.empty() || used_by_where(r.var)) common_.push_back(r);
    }
    for (size_t c = 0; c < s.states.size(); ++c) components_.push_back(describe(c));
    for (size_t c = 0; c < components_.size(); ++c) place(c);
  }

  const std::vector<Range>& common() const { return common_; }

  void start(bool accumulate) {
    if (accumulate) return;
    for (size_t c = 0; c < components_.size(); ++c) {
      const int loops = open(c);
      Frame frame;
      const Expr identity = with_axes(s_.monoid.identity[c], c);
      const Value v = emit_value(unit_, frame, identity);
      store_scalar(unit_, frame, s_.states[c], v, identity.kind(), std::nullopt);
      unit_.out.close(loops);
    }
  }

  // One element, where `where` holds.
  void step() {
    const BodyText test{&s_.where, &s_.reads, {}};
    scalar_body(unit_, Frame{}, test, [&](Frame&) {
      std::vector<std::string> news(components_.size());
      for (size_t c = 0; c < components_.size(); ++c) if (components_[c].in_variable) news[c] = update(c);
      for (size_t c = 0; c < components_.size(); ++c) if (components_[c].scratch >= 0) update(c);
      for (size_t c = 0; c < components_.size(); ++c) if (components_[c].in_place) update(c);
      for (size_t c = 0; c < components_.size(); ++c) commit(c, news[c]);
    }, nullptr);
  }

  // Stores of a scan: values over the states.
  void store(const tile::Store& store) {
    int loops = 0;
    const auto open_used = [&](const Range& r) {
      if (!uses(store.to, r.var)) return;
      open_loop(unit_, r);
      ++loops;
    };
    for (const Range& r : s_.points) {
      if (std::find(common_.begin(), common_.end(), r) == common_.end()) open_used(r);
    }
    for (const Range& r : s_.axes) open_used(r);
    const view::Formula always;
    const Expr value = scalar::import(store.value, unit_.arena);
    unit_.out.open("");
    scalar_body(unit_, Frame{}, {&always, &s_.states, {value}}, [&](Frame& frame) {
      const Value v = emit_value(unit_, frame, value);
      store_scalar(unit_, frame, store.to, v, value.kind(), store.combine);
    }, nullptr);
    unit_.out.close(1 + loops);
  }

 private:
  static bool uses(const Access& a, Var v) {
    for (const Form& c : a.coords) if (c.uses(AtomKind::Index, v)) return true;
    return false;
  }

  bool used_by_where(Var v) const {
    if (s_.where.uses(AtomKind::Index, v)) return true;
    const std::vector<bool> used = used_reads({&s_.where, &s_.reads, {}});
    for (size_t r = 0; r < used.size(); ++r) {
      if (used[r] && (uses(s_.reads[r], v) || s_.reads[r].guard.uses(AtomKind::Index, v))) return true;
    }
    return false;
  }

  Component describe(size_t c) const {
    Component out;
    const Access& state = s_.states[c];
    for (const Range& r : s_.points) {
      const bool shared = std::find(common_.begin(), common_.end(), r) != common_.end();
      if (!shared && uses(state, r.var)) out.extra.push_back(r);
    }
    const size_t n = s_.monoid.components[c].axes.size();
    for (size_t a = 0; a < n; ++a) {
      const Form& coord = state.coords[state.coords.size() - n + a];
      for (const Range& r : s_.axes) if (coord.uses(AtomKind::Index, r.var)) out.axes.push_back(r);
    }
    LEMMA_CHECK(out.axes.size() == n, "a state access does not name its axes");
    out.in_variable = out.extra.empty() && n == 0 && s_.monoid.combine[c].sums.empty();
    return out;
  }

  // In place if no other component reads it and it reads itself only at its own place.
  void place(size_t c) {
    Component& mine = components_[c];
    if (mine.in_variable) return;
    bool alone = s_.monoid.combine[c].sums.empty();
    for (size_t d = 0; d < components_.size(); ++d) {
      for (const monoid::StateRead& r : s_.monoid.combine[d].reads) {
        if (r.right || size_t(r.component) != c) continue;
        if (d != c) alone = false;
        for (size_t a = 0; a < r.coords.size(); ++a) alone = alone && r.coords[a].as_index() == int(a);
      }
    }
    mine.in_place = alone;
    if (alone) return;
    tile::Buffer buffer;
    buffer.name = "next";
    buffer.type = scalar::dtype_of(s_.monoid.components[c].kind);
    buffer.space = tile::Space::Local;
    for (const std::vector<Range>* loops : {&mine.extra, &mine.axes}) {
      for (const Range& r : *loops) {
        buffer.extents.push_back(bound(r, s_.states[c]));
        mine.scratch_access.coords.push_back(Form::index(r.var));
      }
    }
    if (buffer.extents.empty()) {
      buffer.extents.push_back(1);
      mine.scratch_access.coords.push_back(0);
    }
    const Form count = [&] { Form f = 1; for (const Form& e : buffer.extents) f = f * e; return f; }();
    mine.scratch = unit_.add_buffer(buffer);
    mine.scratch_access.buffer = mine.scratch;
    unit_.temporaries.push_back({unit_.raw_buffer_name(mine.scratch), buffer.type, count});
  }

  // An extent over sizes only that holds the range.
  Form bound(const Range& r, const Access& state) const {
    if (!r.extent.uses(AtomKind::Index)) return r.extent;
    for (size_t d = 0; d < state.coords.size(); ++d) {
      if (state.coords[d].uses(AtomKind::Index, r.var)) return unit_.buffer(state.buffer).extents[d];
    }
    return r.extent;
  }

  int open(size_t c) {
    for (const Range& r : components_[c].extra) open_loop(unit_, r);
    for (const Range& r : components_[c].axes) open_loop(unit_, r);
    unit_.out.open("");
    return 1 + int(components_[c].extra.size() + components_[c].axes.size());
  }

  // An expression of the monoid about component c: Index(a) is its axis a.
  Expr with_axes(Expr e, size_t c) {
    return scalar::rewrite(e, unit_.arena, [&](Expr node, std::span<const Expr>) {
      return node.is(Op::Index) ? scalar::index(unit_.arena, components_[c].axes[size_t(node.payload())].var) : Expr();
    });
  }

  // The element's state c at `coords`, over reads that are added where the operands are read elsewhere than at the
  // state's own axes (y.A[i, l] reads them at k = l).
  Expr lifted(size_t c, const std::vector<Form>& coords, std::vector<Access>& reads) {
    const std::vector<Expr> operands = operands_at(c, coords, reads);
    return scalar::rewrite(s_.monoid.lift[c], unit_.arena, [&](Expr node, std::span<const Expr>) {
      if (node.is(Op::Index)) return form_expr(unit_.arena, coords[size_t(node.payload())]);
      if (node.is(Op::Arg)) return scalar::cast(operands[size_t(node.payload())], node.kind());
      return Expr();
    });
  }

  std::vector<Expr> operands_at(size_t c, const std::vector<Form>& coords, std::vector<Access>& reads) {
    const std::vector<Range>& axes = components_[c].axes;
    bool own = true;
    for (size_t a = 0; a < axes.size(); ++a) own = own && coords[a] == Form::index(axes[a].var);
    if (own) return operands_;
    const int shift = int(reads.size());
    const auto moved = [&](const view::Atom& atom) -> std::optional<Form> {
      if (atom.kind == AtomKind::Data) return Form::data(atom.id + shift);
      if (atom.kind != AtomKind::Index) return std::nullopt;
      for (size_t a = 0; a < axes.size(); ++a) if (axes[a].var == atom.id) return coords[a];
      return std::nullopt;
    };
    for (Access access : s_.reads) {
      for (Form& f : access.coords) f = f.substitute(moved);
      access.guard = access.guard.substitute(moved);
      reads.push_back(std::move(access));
    }
    std::vector<Expr> out;
    for (Expr operand : operands_) {
      out.push_back(scalar::rewrite(operand, unit_.arena, [&](Expr node, std::span<const Expr>) {
        const int id = int(node.payload());
        if (node.is(Op::Index)) return form_expr(unit_.arena, moved({AtomKind::Index, id, nullptr}).value_or(Form::index(id)));
        if (node.is(Op::Arg)) return scalar::arg(unit_.arena, node.kind(), id + shift);
        if (node.is(Op::Present)) return scalar::present(unit_.arena, id + shift);
        return Expr();
      }));
    }
    return out;
  }

  std::string update(size_t c) {
    const monoid::Update& u = s_.monoid.combine[c];
    const Kind kind = s_.monoid.components[c].kind;
    std::string result;
    if (components_[c].in_variable) {
      result = unit_.fresh("next");
      unit_.out.line(c_type(kind) + " " + result + ";");
    }
    const int loops = open(c);
    std::vector<Range> sums;
    for (size_t i = 0; i < u.sums.size(); ++i) sums.push_back({unit_.add_variable("sum"), u.sums[i]});
    const auto here = [&](const Form& f) {
      const size_t n = components_[c].axes.size();
      return f.map_indices([&](int i) {
        return Form::index(size_t(i) < n ? components_[c].axes[size_t(i)].var : sums[size_t(i) - n].var);
      });
    };
    std::vector<Access> reads = s_.reads;
    std::vector<Expr> arguments;
    for (const monoid::StateRead& r : u.reads) {
      std::vector<Form> coords;
      for (const Form& f : r.coords) coords.push_back(here(f));
      if (r.right) {
        arguments.push_back(lifted(size_t(r.component), coords, reads));
        continue;
      }
      const size_t from = size_t(r.component);
      Access access = s_.states[from];
      const std::vector<Range>& axes = components_[from].axes;
      for (Form& f : access.coords) {
        f = f.map_indices([&](int v) {
          for (size_t a = 0; a < axes.size(); ++a) if (axes[a].var == v) return coords[a];
          return Form::index(v);
        });
      }
      const Kind stored = scalar::kind_of(unit_.buffer(access.buffer).type);
      arguments.push_back(scalar::cast(scalar::arg(unit_.arena, stored, int(reads.size())), s_.monoid.components[from].kind));
      reads.push_back(access);
    }
    const Expr root = scalar::rewrite(u.body, unit_.arena, [&](Expr node, std::span<const Expr>) {
      if (node.is(Op::Arg)) return arguments[size_t(node.payload())];
      if (node.is(Op::Index)) return form_expr(unit_.arena, here(Form::index(int(node.payload()))));
      return Expr();
    });
    fold_sums(c, sums, reads, root, u.fold, result);
    unit_.out.close(loops);
    return result;
  }

  void fold_sums(size_t c, const std::vector<Range>& sums, const std::vector<Access>& reads, Expr root, Op fold,
                 const std::string& result) {
    const view::Formula always;
    const BodyText text{&always, &reads, {root}};
    const Kind kind = root.kind();
    if (sums.empty()) {
      scalar_body(unit_, Frame{}, text, [&](Frame& frame) { put(c, frame, emit_value(unit_, frame, root), kind, result); }, nullptr);
      return;
    }
    const std::string total = unit_.fresh("total"), first = unit_.fresh("first");
    unit_.out.line(c_type(kind) + " " + total + " = " + (fold == Op::Mul ? "1" : "0") + ";");
    unit_.out.line("int " + first + " = 1;");
    for (const Range& r : sums) open_loop(unit_, r);
    scalar_body(unit_, Frame{}, text, [&](Frame& frame) {
      const Value v = emit_value(unit_, frame, root);
      Frame pair;
      pair.reads = {{total, false}, v};
      pair.present = {{"1", false}, {"1", false}};
      pair.read_kinds = {kind, kind};
      const Value sum = emit_value(unit_, pair, scalar::binary(fold, scalar::arg(unit_.arena, kind, 0), scalar::arg(unit_.arena, kind, 1)));
      unit_.out.line(total + " = " + first + " ? " + v.text + " : " + sum.text + ";");
      unit_.out.line(first + " = 0;");
    }, nullptr);
    unit_.out.close(int(sums.size()));
    Frame frame;
    put(c, frame, {total, false}, kind, result);
  }

  void put(size_t c, Frame& frame, const Value& v, Kind kind, const std::string& result) {
    const Component& mine = components_[c];
    if (mine.in_variable) return unit_.out.line(result + " = " + v.text + ";");
    store_scalar(unit_, frame, mine.in_place ? s_.states[c] : mine.scratch_access, v, kind, std::nullopt);
  }

  void commit(size_t c, const std::string& result) {
    const Component& mine = components_[c];
    if (mine.in_place) return;
    const Kind kind = s_.monoid.components[c].kind;
    const int loops = open(c);
    Frame frame;
    const std::string text = mine.in_variable
        ? result
        : unit_.load(mine.scratch, unit_.form_text(unit_.offset(mine.scratch, mine.scratch_access.coords), frame));
    store_scalar(unit_, frame, s_.states[c], {text, false}, kind, std::nullopt);
    unit_.out.close(loops);
  }

  Unit& unit_;
  const Statement& s_;
  std::vector<Expr> operands_;
  std::vector<Range> common_;
  std::vector<Component> components_;
};

}  // namespace

void emit_general_reduce(Unit& unit, const tile::Reduce& r) {
  const Statement s{r.points, r.axes, r.where, r.reads, r.body, *r.monoid, r.states};
  GeneralFold fold(unit, s);
  for (const Range& p : fold.common()) open_loop(unit, p);
  unit.out.open("");
  fold.start(r.accumulate);
  for (const Range& p : r.reduces) open_loop(unit, p);
  fold.step();
  unit.out.close(int(r.reduces.size()) + 1 + int(fold.common().size()));
}

void emit_general_scan(Unit& unit, const tile::Scan& scan) {
  const Statement s{scan.points, scan.axes, scan.where, scan.reads, scan.body, *scan.monoid, scan.states};
  GeneralFold fold(unit, s);
  for (const Range& p : fold.common()) open_loop(unit, p);
  unit.out.open("");
  fold.start(scan.accumulate);
  note_range(unit, scan.along);
  const std::string& t = unit.var_name(scan.along.var);
  const std::string n = unit.form_text(scan.along.extent, {});
  unit.out.open(scan.reverse ? "for (int64_t " + t + " = " + n + " - 1; " + t + " >= 0; --" + t + ")"
                             : "for (int64_t " + t + " = 0; " + t + " < " + n + "; ++" + t + ")");
  if (scan.exclusive) for (const tile::Store& store : scan.stores) fold.store(store);
  fold.step();
  if (!scan.exclusive) for (const tile::Store& store : scan.stores) fold.store(store);
  unit.out.close(2 + int(fold.common().size()));
}

}  // namespace lemma::emit
