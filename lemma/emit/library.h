// The entry points behind a unit: what the runtime calls, or a typed function for people.
#pragma once

#include <string>

#include "lemma/emit/unit.h"

namespace lemma::emit {

bool is_threads(const tile::SizeDecl& size);
std::string pointer(const Unit& unit, int buffer);   // "const float*"
std::string quoted(const std::string& text);         // as a C string

Library library_of(const Unit& unit, const tile::Program& program, std::string source, const std::string& name);

}  // namespace lemma::emit
