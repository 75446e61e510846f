#include "lemma/emit/device/fold.h"

namespace lemma::emit::device {

using scalar::Expr;
using scalar::Kind;

std::string Fold::refusal() const {
  if (m_.structure == monoid::Structure::TopK) return "the slots of a top-k are not variables";
  for (const monoid::Component& c : m_.components) {
    if (!c.axes.empty()) return "its state has axes";
  }
  for (const monoid::Update& u : m_.combine) {
    if (!u.sums.empty()) return "its combine has inner sums";
  }
  return {};
}

std::vector<std::string> Fold::evaluate(const std::vector<Expr>& roots, const std::vector<std::string>& args, const std::vector<Kind>& kinds) {
  Scope scope;
  scope.reads = args;
  scope.kinds = kinds;
  scope.present.assign(args.size(), "true");
  std::vector<Expr> own;
  for (Expr e : roots) own.push_back(scalar::import(e, text_.arena));
  return text_.values(own, scope);
}

std::vector<std::string> Fold::identity() {
  std::vector<std::string> out;
  // Where integers have 32 bits, the ends of 64 bits, which stand for no element, become the ends of 32.
  std::vector<Expr> roots = m_.identity;
  for (Expr& e : roots) {
    if (text_.dialect.long_integers || !e.is_const() || e.kind() != Kind::I64) continue;
    if (e.as_int() == INT64_MIN) e = scalar::i64(text_.arena, INT32_MIN);
    if (e.as_int() == INT64_MAX) e = scalar::i64(text_.arena, INT32_MAX);
  }
  const std::vector<std::string> values = evaluate(roots, {}, {});
  for (size_t c = 0; c < values.size(); ++c) {
    out.push_back(text_.fresh("s"));
    text_.declare(text_.type(kind(c)), out.back(), values[c]);
  }
  return out;
}

void Fold::step(const std::vector<std::string>& state, const std::vector<std::string>& operands) {
  combine(state, state, evaluate(m_.lift, operands, m_.operands));
}

void Fold::combine(const std::vector<std::string>& state, const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<Expr> roots;
  for (size_t c = 0; c < components(); ++c) roots.push_back(monoid::elementwise_combine(m_, c, text_.arena));
  std::vector<std::string> args = left;
  args.insert(args.end(), right.begin(), right.end());
  std::vector<Kind> kinds;
  for (int side = 0; side < 2; ++side) {
    for (size_t c = 0; c < components(); ++c) kinds.push_back(kind(c));
  }
  const std::vector<std::string> values = evaluate(roots, args, kinds);
  // Every new component is known before the first is assigned.
  std::vector<std::string> held;
  for (size_t c = 0; c < values.size(); ++c) {
    held.push_back(values[c]);
    if (values.size() > 1) {
      held.back() = text_.fresh("t");
      text_.define(text_.type(kind(c)), held.back(), values[c]);
    }
  }
  for (size_t c = 0; c < values.size(); ++c) {
    if (held[c] != state[c]) text_.out.line(state[c] + " = " + held[c] + ";");
  }
}

}  // namespace lemma::emit::device
