// Checks for bugs in Lemma itself. What a user can cause is never a check: it is a Result with a Diagnostic.
#pragma once

#include <string_view>

namespace lemma::base {

// Prints the message with its place to standard error and aborts.
[[noreturn]] void bug(std::string_view message, const char* file, int line);

}  // namespace lemma::base

// Holds in every build: the condition is an invariant of Lemma's own code.
#define LEMMA_CHECK(condition, message) \
  ((condition) ? void(0) : ::lemma::base::bug((message), __FILE__, __LINE__))
