// Questions about monoids as data: equality and hashing of definitions, and the combine of an elementwise monoid as one
// expression over both states. Definitions may live in different arenas, so expressions are compared by structure.
#include "lemma/monoid/monoid.h"

#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/base/hash.h"

namespace lemma::monoid {
namespace {

using scalar::Expr;

// Every expression of the definition, in a fixed order.
std::vector<Expr> expressions(const Monoid& m) {
  std::vector<Expr> out = m.identity;
  out.insert(out.end(), m.lift.begin(), m.lift.end());
  for (const Update& u : m.combine) out.push_back(u.body);
  out.insert(out.end(), m.finish.begin(), m.finish.end());
  return out;
}

bool same_component(const Component& a, const Component& b) { return a.kind == b.kind && a.axes == b.axes; }

bool same_update_frame(const Update& a, const Update& b) {
  return a.sums == b.sums && a.reads == b.reads && (a.sums.empty() || a.fold == b.fold);
}

template <class T, class Same>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, const Same& same) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

Expr elementwise_combine(const Monoid& monoid, size_t component, scalar::Arena& into) {
  const Update& update = monoid.combine[component];
  LEMMA_CHECK(update.sums.empty(), "the combine has inner sums and is not one expression");
  const int64_t count = int64_t(monoid.components.size());
  return scalar::rewrite(update.body, into, [&](Expr node, std::span<const Expr>) {
    if (!node.is(scalar::Op::Arg)) return Expr();
    const StateRead& read = update.reads[size_t(node.payload())];
    return scalar::arg(into, node.kind(), int(read.component + (read.right ? count : 0)));
  });
}

bool same(const Monoid& a, const Monoid& b) {
  if (&a == &b) return true;
  if (a.structure != b.structure || a.operands != b.operands || a.commutative != b.commutative ||
      a.idempotent != b.idempotent || a.scale != b.scale || a.count != b.count || a.smallest != b.smallest ||
      a.identity.size() != b.identity.size() || a.lift.size() != b.lift.size() || a.finish.size() != b.finish.size()) {
    return false;
  }
  if (!all_same(a.components, b.components, same_component) || !all_same(a.combine, b.combine, same_update_frame)) {
    return false;
  }
  scalar::Arena joined;
  const std::vector<Expr> left = expressions(a), right = expressions(b);
  const auto copy = [](Expr, std::span<const Expr>) { return Expr(); };
  return scalar::rewrite_all(left, joined, copy) == scalar::rewrite_all(right, joined, copy);
}

size_t hash(const Monoid& monoid) {
  size_t out = base::mix(size_t(monoid.structure), monoid.components.size());
  out = base::mix(out, size_t(monoid.count) * 2 + size_t(monoid.smallest));
  const std::vector<Expr> roots = expressions(monoid);
  std::unordered_map<uint32_t, size_t> hashes;
  for (Expr e : scalar::reachable(roots)) {
    size_t h = base::mix(size_t(e.op()) * 31 + size_t(e.kind()), size_t(e.payload()));
    for (Expr a : e.args()) h = base::mix(h, hashes.at(a.index()));
    hashes.emplace(e.index(), h);
  }
  for (Expr root : roots) out = base::mix(out, hashes.at(root.index()));
  return out;
}

}  // namespace lemma::monoid
