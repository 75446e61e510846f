// Definitions of monoids.
#include <algorithm>

#include "lemma/tile/parser.h"

namespace lemma::tile {

using base::Result;
using scalar::Expr;
using scalar::Kind;
using syntax::NodeId;
using syntax::Place;
using syntax::Token;
using syntax::TokenKind;
using view::Form;
using view::Formula;

Result<void> ProgramParser::monoid_flags(monoid::Monoid& m) {
  while (!cursor_.peek().symbol("{")) {
    if (cursor_.take_word("elementwise")) m.structure = monoid::Structure::Elementwise;
    else if (cursor_.take_word("rescaled")) m.structure = monoid::Structure::RescaledSum;
    else if (cursor_.take_word("slots")) m.structure = monoid::Structure::TopK;
    else if (cursor_.take_word("general")) m.structure = monoid::Structure::General;
    else if (cursor_.take_word("commutative")) m.commutative = true;
    else if (cursor_.take_word("idempotent")) m.idempotent = true;
    else if (cursor_.take_word("smallest")) m.smallest = true;
    else if (cursor_.take_word("count")) {
      LEMMA_TRY(const int64_t count, integer("the number of slots"));
      m.count = int(count);
    } else if (cursor_.take_word("scale")) {
      const bool negative = cursor_.take("-");
      const Token t = cursor_.peek();
      if (t.kind != TokenKind::Integer && t.kind != TokenKind::Real) return cursor_.found("the scale");
      m.scale = negative ? -t.real : t.real;
      cursor_.next();
    } else {
      return cursor_.found("a property of the monoid or `{`");
    }
  }
  return {};
}

// combine {
//   over add [K]
//   read left(0)[axis(0), inner(0)]
//   to read(0) * read(1)
// }
Result<void> ProgramParser::combine(monoid::Monoid& m) {
  const Token open = cursor_.peek();
  LEMMA_TRY_VOID(cursor_.expect("{", "after combine"));
  if (m.combine.size() >= m.components.size()) return source_.error(open.place, "found more combines than components");
  monoid::Update u;
  const monoid::Component& component = m.components[m.combine.size()];
  MonoidLeaves leaves;
  leaves.axes = int(component.axes.size());
  terms_.leaves = &leaves;
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    if (cursor_.take_word("over")) {
      LEMMA_TRY(const Token op, name("add, mul, min or max"));
      if (op.text == "add") u.fold = scalar::Op::Add;
      else if (op.text == "mul") u.fold = scalar::Op::Mul;
      else if (op.text == "min") u.fold = scalar::Op::Min;
      else if (op.text == "max") u.fold = scalar::Op::Max;
      else return source_.error(op.place, "found `" + op.text + "`, expected add, mul, min or max");
      LEMMA_TRY(u.sums, forms());
      leaves.inner = int(u.sums.size());
    } else if (cursor_.take_word("read")) {
      LEMMA_TRY_VOID(state_read(m, component, u));
      leaves.reads.push_back(m.components[size_t(u.reads.back().component)].kind);
    } else if (cursor_.take_word("to")) {
      if (u.body.valid()) return cursor_.found("one value only");
      LEMMA_TRY(u.body, expression(component.kind));
    } else {
      LEMMA_TRY(const bool taken, preamble());
      if (!taken) return cursor_.found("over, read, to or def");
    }
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.leaves = nullptr;
  if (!u.body.valid()) return source_.error(open.place, "this combine has no value", "end it with a line `to value`");
  m.combine.push_back(std::move(u));
  return {};
}

// left(c)[axis(0), inner(1)]: each coordinate runs over an index whose extent is that of the component's axis, so that
// no combine reads outside a state.
Result<void> ProgramParser::state_read(const monoid::Monoid& m, const monoid::Component& updated, monoid::Update& u) {
  monoid::StateRead r;
  const Token side = cursor_.peek();
  if (cursor_.take_word("right")) r.right = true;
  else if (!cursor_.take_word("left")) return cursor_.found("left or right");
  LEMMA_TRY_VOID(cursor_.expect("(", "before the component's number"));
  LEMMA_TRY(const int64_t component, integer("the component's number"));
  LEMMA_TRY_VOID(cursor_.expect(")", "after the component's number"));
  if (size_t(component) >= m.components.size()) return source_.error(side.place, "there are only " + std::to_string(m.components.size()) + " components");
  r.component = int(component);
  LEMMA_TRY(r.coords, forms());
  const std::vector<Form>& axes = m.components[size_t(component)].axes;
  bool good = axes.size() == r.coords.size();
  for (size_t i = 0; i < axes.size() && good; ++i) {
    const auto index = r.coords[i].as_index();
    good = index && (size_t(*index) < updated.axes.size() ? updated.axes[size_t(*index)] : u.sums[size_t(*index) - updated.axes.size()]) == axes[i];
  }
  if (!good) return source_.error(side.place, "a state is read at one axis or inner index for each of its axes, of the same extent");
  u.reads.push_back(std::move(r));
  return {};
}

Result<void> ProgramParser::monoid() {
  LEMMA_TRY(const Token t, name("the monoid's name"));
  monoid::Monoid m;
  m.name = t.text;
  m.arena = std::make_shared<scalar::Arena>();
  LEMMA_TRY_VOID(monoid_flags(m));
  LEMMA_TRY_VOID(cursor_.expect("{", "before the monoid's definition"));
  terms_.arena = m.arena.get();
  const size_t mark = terms_.scope.mark();
  std::vector<Kind> kinds;
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    // A `def` line comes before the line it serves, so both see the axes of what is due next.
    MonoidLeaves leaves;
    leaves.operands = m.operands;
    const size_t due = m.identity.size() < m.components.size() ? m.identity.size() : m.lift.size();
    for (size_t c = 0; c < m.components.size(); ++c) {
      if (due == c || due == m.components.size()) leaves.axes = std::max(leaves.axes, int(m.components[c].axes.size()));
    }
    terms_.leaves = &leaves;
    terms_.states = &kinds;
    bool definition = false;
    if (cursor_.take_word("operand")) {
      LEMMA_TRY(const Kind k, kind());
      m.operands.push_back(k);
    } else if (cursor_.take_word("component")) {
      monoid::Component c;
      LEMMA_TRY(c.kind, kind());
      LEMMA_TRY(c.axes, forms());
      c.name = "c" + std::to_string(m.components.size());
      kinds.push_back(c.kind);
      m.components.push_back(std::move(c));
    } else if (cursor_.take_word("identity")) {
      if (m.identity.size() >= m.components.size()) return cursor_.found("one identity a component");
      LEMMA_TRY(const Expr e, expression(m.components[m.identity.size()].kind));
      m.identity.push_back(e);
    } else if (cursor_.take_word("lift")) {
      if (m.lift.size() >= m.components.size()) return cursor_.found("one lift a component");
      LEMMA_TRY(const Expr e, expression(m.components[m.lift.size()].kind));
      m.lift.push_back(e);
    } else if (cursor_.take_word("combine")) {
      LEMMA_TRY_VOID(combine(m));
    } else if (cursor_.take_word("finish")) {
      LEMMA_TRY(const NodeId id, cursor_.expression());
      LEMMA_TRY(const Expr e, terms_.expression(id));
      m.finish.push_back(e);
    } else {
      LEMMA_TRY(definition, preamble());
      if (!definition) return cursor_.found("operand, component, identity, lift, combine, finish or def");
    }
    if (!definition) terms_.scope.release(mark);
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.leaves = nullptr;
  terms_.states = nullptr;
  terms_.arena = program_.arena.get();
  LEMMA_TRY_VOID(complete(t.place, m));
  return declare(t, MonoidName{std::make_shared<const monoid::Monoid>(std::move(m))});
}

Result<Kind> ProgramParser::kind() {
  const Token t = cursor_.peek();
  const auto type = t.kind == TokenKind::Name ? scalar::parse_dtype(t.text) : std::nullopt;
  if (!type || scalar::dtype_of(scalar::kind_of(*type)) != *type) return cursor_.found("a kind to compute in, as f32");
  cursor_.next();
  return scalar::kind_of(*type);
}

// What evaluators assume of a monoid.
Result<void> ProgramParser::complete(Place place, const monoid::Monoid& m) const {
  const size_t count = m.components.size();
  if (m.operands.empty() || count == 0) return source_.error(place, "a monoid has at least one operand and one component");
  if (m.identity.size() != count || m.lift.size() != count || m.combine.size() != count) {
    return source_.error(place, "a monoid has an identity, a lift and a combine for each of its " + std::to_string(count) + " components");
  }
  if (m.structure == monoid::Structure::TopK) return source_.error(place, "only the library's topk and bottomk have slots");
  if (m.structure == monoid::Structure::General) return {};
  for (size_t c = 0; c < count; ++c) {
    if (!m.combine[c].sums.empty()) return source_.error(place, "a monoid with inner sums is general");
  }
  return {};
}

}  // namespace lemma::tile
