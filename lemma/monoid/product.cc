// The product of two monoids: both states side by side, each component updated as before. Operands, components and
// results of the second follow those of the first.
#include <algorithm>
#include <set>

#include "lemma/base/check.h"
#include "lemma/monoid/monoid.h"

namespace lemma::monoid {
namespace {

using scalar::Arena;
using scalar::Expr;

// Appends `part` to `whole`, renumbering what its expressions read.
void append(Monoid& whole, const Monoid& part) {
  Arena& arena = *whole.arena;
  const int operands = int(whole.operands.size()), components = int(whole.components.size());
  const auto shifted = [&](int by) {
    return [&arena, by](Expr node, std::span<const Expr>) {
      if (!node.is(scalar::Op::Arg)) return Expr();
      return scalar::arg(arena, node.kind(), int(node.payload()) + by);
    };
  };
  const auto extend = [&](std::vector<Expr>& to, const std::vector<Expr>& from, int by) {
    const std::vector<Expr> moved = scalar::rewrite_all(from, arena, shifted(by));
    to.insert(to.end(), moved.begin(), moved.end());
  };
  extend(whole.identity, part.identity, 0);
  extend(whole.lift, part.lift, operands);
  extend(whole.finish, part.finish, components);
  for (Update update : part.combine) {
    update.body = scalar::import(update.body, arena);
    for (StateRead& read : update.reads) read.component += components;
    whole.combine.push_back(std::move(update));
  }
  whole.operands.insert(whole.operands.end(), part.operands.begin(), part.operands.end());
  std::set<std::string> taken;
  for (const Component& c : whole.components) taken.insert(c.name);
  for (Component c : part.components) {
    const std::string stem = c.name;
    for (int n = 2; !taken.insert(c.name).second; ++n) c.name = stem + std::to_string(n);
    whole.components.push_back(std::move(c));
  }
}

// "sum, max" of "(sum, max)": products of products print flat.
std::string inside(const std::string& name) {
  return name.size() > 1 && name.front() == '(' && name.back() == ')' ? name.substr(1, name.size() - 2) : name;
}

}  // namespace

bool pairable(const Monoid& monoid) { return monoid.combine.size() == monoid.components.size(); }

MonoidRef pair(const MonoidRef& a, const MonoidRef& b) {
  LEMMA_CHECK(pairable(*a) && pairable(*b), "a product needs combines stated as updates");
  Monoid m;
  m.name = "(" + inside(a->name) + ", " + inside(b->name) + ")";
  m.arena = std::make_shared<Arena>();
  const bool elementwise = a->structure == Structure::Elementwise && b->structure == Structure::Elementwise;
  m.structure = elementwise ? Structure::Elementwise : Structure::General;
  m.commutative = a->commutative && b->commutative;
  m.idempotent = a->idempotent && b->idempotent;
  append(m, *a);
  append(m, *b);
  return std::make_shared<const Monoid>(std::move(m));
}

}  // namespace lemma::monoid
