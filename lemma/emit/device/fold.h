// Folding elements into a monoid's states held in variables: what reductions and scans share.
#pragma once

#include "lemma/emit/device/statements.h"
#include "lemma/monoid/monoid.h"

namespace lemma::emit::device {

class Fold {
 public:
  Fold(Text& text, const monoid::Monoid& monoid) : text_(text), m_(monoid) {}

  // Why states of this monoid cannot be held in variables; empty if they can.
  std::string refusal() const;

  size_t components() const { return m_.components.size(); }
  scalar::Kind kind(size_t c) const { return m_.components[c].kind; }

  // Declares a state with the identity; its variables, one a component.
  std::vector<std::string> identity();
  // state = state combined with the lifted operands (their texts).
  void step(const std::vector<std::string>& state, const std::vector<std::string>& operands);
  // state = left combined with right.
  void combine(const std::vector<std::string>& state, const std::vector<std::string>& left, const std::vector<std::string>& right);

 private:
  std::vector<std::string> evaluate(const std::vector<scalar::Expr>& roots, const std::vector<std::string>& args, const std::vector<scalar::Kind>& kinds);

  Text& text_;
  const monoid::Monoid& m_;
};

}  // namespace lemma::emit::device
