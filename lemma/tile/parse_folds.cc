// reduce and scan.
#include "lemma/tile/monoid_text.h"
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

Result<monoid::MonoidRef> ProgramParser::by() {
  if (!cursor_.take_word("by")) return cursor_.found("`by` and a monoid");
  LEMMA_TRY(const Token t, name("a monoid"));
  if (const Meaning* m = terms_.scope.find(t.text)) {
    if (const auto* known = std::get_if<MonoidName>(m)) return known->monoid;
  }
  std::optional<Kind> kind;
  std::vector<double> numbers;
  if (cursor_.take("[")) {
    LEMMA_TRY(const Token k, name("the kind that is folded"));
    const auto type = scalar::parse_dtype(k.text);
    if (!type || scalar::dtype_of(scalar::kind_of(*type)) != *type) return source_.error(k.place, "found `" + k.text + "`, expected a kind to compute in");
    kind = scalar::kind_of(*type);
    while (cursor_.take(",")) {
      const Token n = cursor_.peek();
      if (n.kind != TokenKind::Integer && n.kind != TokenKind::Real) return cursor_.found("a number");
      numbers.push_back(n.real);
      cursor_.next();
    }
    LEMMA_TRY_VOID(cursor_.expect("]", "after the monoid's parameters"));
  }
  monoid::MonoidRef m = library_monoid(t.text, kind, numbers);
  if (!m) return source_.error(t.place, "found `" + t.text + "`, expected a monoid of the library with its kind, as in sum[f32], or one defined above");
  return m;
}

// element a[i, k], k: the operands, with the monoid's kinds.
template <class S>
Result<void> ProgramParser::elements(S& s) {
  for (size_t i = 0; i < s.monoid->operands.size(); ++i) {
    if (i > 0) LEMMA_TRY_VOID(cursor_.expect(",", "between the operands of " + s.monoid->name));
    LEMMA_TRY(const Expr e, expression(s.monoid->operands[i]));
    s.body.push_back(e);
  }
  return {};
}

template <class S>
Result<void> ProgramParser::state_accesses(S& s) {
  auto* reads = terms_.reads;
  terms_.reads = nullptr;
  for (size_t i = 0; i < s.monoid->components.size(); ++i) {
    if (i > 0) LEMMA_TRY_VOID(cursor_.expect(",", "between the states of " + s.monoid->name));
    LEMMA_TRY(Access a, access());
    s.states.push_back(std::move(a));
  }
  terms_.reads = reads;
  return {};
}

template <class S>
Result<void> ProgramParser::fold_line(S& s, bool& taken) {
  LEMMA_TRY(taken, point_line(s.where));
  if (taken) return {};
  taken = true;
  if (cursor_.take_word("element")) {
    if (!s.body.empty()) return cursor_.found("one line of operands only");
    return elements(s);
  }
  if (cursor_.take_word("state")) {
    if (!s.states.empty()) return cursor_.found("one line of states only");
    return state_accesses(s);
  }
  taken = false;
  return {};
}

Result<Stmt> ProgramParser::reduce() {
  if (!cursor_.peek().symbol("(")) return reduce_into();
  Reduce s;
  LEMMA_TRY(s.points, ranges());
  if (cursor_.take_word("axes")) {
    LEMMA_TRY(s.axes, ranges());
  }
  if (!cursor_.take_word("over")) return cursor_.found("`over` and the variables that are folded");
  LEMMA_TRY(s.reduces, ranges());
  LEMMA_TRY(s.monoid, by());
  s.accumulate = cursor_.take_word("accumulate");
  open_reads(s.reads);
  LEMMA_TRY_VOID(where_head(s.where));
  LEMMA_TRY_VOID(placement());
  LEMMA_TRY_VOID(cursor_.expect("{", "before the operands"));
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    bool taken = false;
    LEMMA_TRY_VOID(fold_line(s, taken));
    if (!taken) return cursor_.found("element, state, read, def or where");
    LEMMA_TRY_VOID(end_of_line());
  }
  return Stmt(std::move(s));
}

// part[i]: names that are not in scope yet are points over the tile's own extents.
Result<Access> ProgramParser::point_target(std::vector<Range>& points) {
  LEMMA_TRY(const Token t, name("the tile that is folded into"));
  const Meaning* m = terms_.scope.find(t.text);
  const auto* buffer = m ? std::get_if<BufferName>(m) : nullptr;
  const auto* part = m ? std::get_if<RegionName>(m) : nullptr;
  if (!buffer && !part) return source_.error(t.place, "`" + t.text + "` is not a tile", "name a buffer, as in reduce part[i] += sum(n < 64) t[i, n]");
  const Region target = part ? part->region : whole(buffer->buffer, program_);
  std::vector<Form> positions;
  LEMMA_TRY_VOID(cursor_.expect("[", "after the tile that is folded into"));
  while (!cursor_.take("]")) {
    const Token v = cursor_.peek();
    const Token after = cursor_.peek(1);
    const bool fresh = v.kind == TokenKind::Name && !terms_.scope.find(v.text) && (after.symbol(",") || after.symbol("]"));
    if (positions.size() >= target.axes.size()) return source_.error(v.place, "`" + t.text + "` has " + std::to_string(target.axes.size()) + " dimensions, found more coordinates");
    if (fresh) {
      cursor_.next();
      LEMMA_TRY(const Var var, bind(v));
      points.push_back({var, target.axes[positions.size()].extent});
      positions.push_back(Form::index(var));
    } else {
      LEMMA_TRY(Form f, form());
      positions.push_back(std::move(f));
    }
    if (cursor_.peek().symbol("]")) continue;
    LEMMA_TRY_VOID(cursor_.expect(",", "between coordinates"));
  }
  if (positions.size() != target.axes.size()) return source_.error(t.place, "`" + t.text + "` has " + std::to_string(target.axes.size()) + " dimensions, found " + std::to_string(positions.size()) + " coordinates");
  return target.at(positions);
}

// reduce part[i] += sum(n < 64 : n <= i) t[i, n] * t[i, n]
Result<Stmt> ProgramParser::reduce_into() {
  Reduce s;
  LEMMA_TRY(Access to, point_target(s.points));
  if (cursor_.take("+=")) s.accumulate = true;
  else LEMMA_TRY_VOID(cursor_.expect("=", "after the tile that is folded into (+= folds on)"));
  LEMMA_TRY(const Token t, name("a monoid, as in sum(n < 64) t[i, n]"));
  const Kind kind = scalar::kind_of(program_.buffers[size_t(to.buffer)].type);
  s.monoid = library_monoid(t.text, kind == Kind::Bool ? std::nullopt : std::optional(kind), {});
  if (!s.monoid || s.monoid->components.size() != 1) return source_.error(t.place, "found `" + t.text + "`, expected a monoid with one component: sum, prod, max, min, any or all", "write reduce (points) over (...) by for others");
  LEMMA_TRY_VOID(cursor_.expect("(", "before the variables that are folded"));
  std::vector<Token> names;
  LEMMA_TRY_VOID(range_list(s.reduces, names));
  for (size_t i = 0; i < s.reduces.size(); ++i) {
    LEMMA_TRY(s.reduces[i].var, bind(names[i]));
  }
  open_reads(s.reads);
  if (cursor_.take(":")) {
    LEMMA_TRY(s.where, formula());
  }
  LEMMA_TRY_VOID(cursor_.expect(")", "after the variables that are folded"));
  LEMMA_TRY(const Expr e, expression(s.monoid->operands[0]));
  s.body.push_back(e);
  s.states.push_back(std::move(to));
  LEMMA_TRY_VOID(placement());
  return Stmt(std::move(s));
}

Result<Stmt> ProgramParser::scan() {
  Scan s;
  LEMMA_TRY(s.points, ranges());
  if (cursor_.take_word("axes")) {
    LEMMA_TRY(s.axes, ranges());
  }
  if (!cursor_.take_word("along")) return cursor_.found("`along` and the variable that is scanned");
  LEMMA_TRY(const std::vector<Range> along, ranges());
  if (along.size() != 1) return cursor_.found("one variable along which to scan");
  s.along = along[0];
  s.reverse = cursor_.take_word("reverse");
  s.exclusive = cursor_.take_word("exclusive");
  LEMMA_TRY(s.monoid, by());
  s.accumulate = cursor_.take_word("accumulate");
  open_reads(s.reads);
  LEMMA_TRY_VOID(where_head(s.where));
  LEMMA_TRY_VOID(placement());
  LEMMA_TRY_VOID(cursor_.expect("{", "before the operands"));
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    if (cursor_.peek().word("store") && cursor_.peek(1).symbol("{")) {
      cursor_.next();
      cursor_.next();
      LEMMA_TRY_VOID(scan_stores(s));
    } else {
      bool taken = false;
      LEMMA_TRY_VOID(fold_line(s, taken));
      if (!taken) return cursor_.found("element, state, store, read, def or where");
    }
    LEMMA_TRY_VOID(end_of_line());
  }
  return Stmt(std::move(s));
}

Result<void> ProgramParser::scan_stores(Scan& s) {
  auto* reads = terms_.reads;
  terms_.reads = nullptr;
  std::vector<Kind> kinds;
  for (const monoid::Component& c : s.monoid->components) kinds.push_back(c.kind);
  terms_.states = &kinds;
  const size_t mark = terms_.scope.mark();
  while (true) {
    cursor_.skip_separators();
    if (cursor_.take("}")) break;
    LEMMA_TRY(const bool taken, preamble());
    if (!taken) {
      Result<Store> one = store();
      if (!one.ok()) return one.error();
      s.stores.push_back(*std::move(one));
    }
    LEMMA_TRY_VOID(end_of_line());
  }
  terms_.scope.release(mark);
  terms_.states = nullptr;
  terms_.reads = reads;
  return {};
}

}  // namespace lemma::tile
