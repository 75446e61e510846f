// The body of a kernel's block: statements in order.
#pragma once

#include "lemma/base/result.h"
#include "lemma/emit/unit.h"

namespace lemma::emit {

// Writes the statements; alloc'd buffers are noted in unit.used_buffers. A failed assert returns from the block.
void emit_block(Unit& unit, const tile::Block& block);

// Writes `if (!condition) fail(code)`; `fail` is what follows, for instance "return 3;".
std::string condition_with_reads(Unit& unit, Frame& frame, const std::vector<tile::Access>& reads,
                                 const view::Formula& condition);

}  // namespace lemma::emit
