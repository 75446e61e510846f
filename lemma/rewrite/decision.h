// What a rewrite did or declined, as a sentence for --explain.
#pragma once

#include <string>
#include <vector>

#include "lemma/scalar/rule.h"

namespace lemma::rewrite {

using scalar::Claim;

struct Decision {
  std::string pass;
  std::string subject;   // the node's name
  bool applied = false;
  std::string sentence;  // what was derived, or why not; lower case, no full stop
};

struct Context {
  Claim allow = Claim::Finite;          // --strict: Real; --loose: Loose
  std::vector<Decision>* log = nullptr; // may be null
  void applied(std::string pass, std::string subject, std::string sentence) const {
    if (log) log->push_back({std::move(pass), std::move(subject), true, std::move(sentence)});
  }
  void declined(std::string pass, std::string subject, std::string sentence) const {
    if (log) log->push_back({std::move(pass), std::move(subject), false, std::move(sentence)});
  }
};

}  // namespace lemma::rewrite
