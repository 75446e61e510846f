// The C that emitted text stands on: vector types of the target's real width, loads and stores of every storage type,
// conversions, and elementary functions with stated errors (docs/accuracy.md). It is a list of pieces; a unit gets those
// its text mentions, and what they mention, and no more, since every line costs compile time.
#pragma once

#include <string>
#include <string_view>

namespace lemma::emit {

// The pieces that `text` needs, in order, for vectors of at most `vector_bytes`.
std::string prelude_for(std::string_view text, int vector_bytes);

}  // namespace lemma::emit
