// Names for emitted text. What a user calls a thing may be a keyword of the dialect, start with a digit or hold any
// character; two names that look alike after cleaning still have to stay apart.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace lemma::emit {

// Letters, digits and single underscores; never empty, never starting with a digit.
std::string clean_identifier(std::string_view name);

// A keyword of C or C++, or a name that the C library takes.
bool is_c_keyword(std::string_view name);

class Names {
 public:
  // An identifier `prefix` + the cleaned name that this table has not given before. Without a prefix keywords are
  // stepped around.
  std::string take(std::string_view prefix, std::string_view name);

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace lemma::emit
