// Names as the text of a program spells them: identifiers, no keywords, unique where they can meet. Program variables
// and block-local buffers need not have unique names, so a name may be followed by a number.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lemma/tile/program.h"

namespace lemma::tile {

// Words of the text that no name may be.
bool is_reserved(std::string_view word);

// `name` as an identifier: other characters become '_', an empty name `fallback`, a reserved word gets a '_'.
std::string identifier(const std::string& name, const std::string& fallback);

// A message as the text can hold it: control characters become spaces.
std::string message_text(const std::string& message);

class NameSet {
 public:
  // `wanted`, or with the first number that makes it unused; it is taken from here on.
  std::string take(const std::string& wanted);
  void release(const std::string& name) { taken_.erase(name); }
  bool has(const std::string& name) const { return taken_.count(name) != 0; }

 private:
  std::unordered_set<std::string> taken_;
};

// The names of what is global to the program's text, in one name space.
struct GlobalNames {
  std::string program;
  std::vector<std::string> sizes, buffers, kernels;
  NameSet taken;
};
GlobalNames global_names(const Program& program);

}  // namespace lemma::tile
