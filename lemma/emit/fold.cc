#include "lemma/emit/fold.h"

#include "lemma/base/check.h"

namespace lemma::emit {

using scalar::Expr;
using scalar::Op;

bool is_flat(const monoid::Monoid& monoid) {
  for (const monoid::Component& c : monoid.components) {
    if (!c.axes.empty()) return false;
  }
  for (const monoid::Update& u : monoid.combine) {
    if (!u.sums.empty()) return false;
  }
  return monoid.structure != monoid::Structure::TopK && !monoid.combine.empty();
}

Fold make_fold(Unit& unit, const monoid::Monoid& monoid, const std::vector<Expr>& body, size_t reads) {
  Fold fold;
  fold.reads = reads;
  const int n = int(monoid.components.size());
  for (const monoid::Component& c : monoid.components) fold.kinds.push_back(c.kind);
  for (Expr e : monoid.identity) fold.identity.push_back(scalar::import(e, unit.arena));
  std::vector<Expr> operands;
  for (Expr e : body) operands.push_back(scalar::import(e, unit.arena));

  // lift over the statement's reads
  const std::vector<Expr> lifted = scalar::rewrite_all(monoid.lift, unit.arena, [&](Expr e, std::span<const Expr>) {
    return e.is(Op::Arg) ? scalar::cast(operands[size_t(e.payload())], e.kind()) : Expr();
  });
  for (size_t c = 0; c < monoid.combine.size(); ++c) {
    const monoid::Update& update = monoid.combine[c];
    const auto side = [&](Expr e, bool as_step) {
      if (!e.is(Op::Arg)) return Expr();
      const monoid::StateRead& read = update.reads[size_t(e.payload())];
      if (as_step) {
        if (read.right) return lifted[size_t(read.component)];
        return scalar::arg(unit.arena, e.kind(), int(reads) + read.component);
      }
      return scalar::arg(unit.arena, e.kind(), read.right ? n + read.component : read.component);
    };
    fold.step.push_back(scalar::rewrite(update.body, unit.arena, [&](Expr e, std::span<const Expr>) { return side(e, true); }));
    fold.merge.push_back(scalar::rewrite(update.body, unit.arena, [&](Expr e, std::span<const Expr>) { return side(e, false); }));
  }
  return fold;
}

}  // namespace lemma::emit
