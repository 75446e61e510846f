// Reads the text that print.h writes, and what a person writes in the same grammar. The result is valid.
#pragma once

#include <string>
#include <string_view>

#include "lemma/base/result.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

base::Result<Program> parse(std::string_view text, const std::string& file = "");

}  // namespace lemma::tile
