// The passes from block form to thread form, in order. What emission finds in the program they leave: fragments with a
// layout are in registers; shared buffers with one are swizzled; rings; asynchronous copies with commits and waits;
// barriers, where the kernel says `synchronised`.
#pragma once

#include "lemma/tile/passes/distribute.h"

namespace lemma::tile {

struct ThreadTarget {
  ThreadOptions options;
  int64_t shared_bytes = 48 << 10;  // a block may have
};

Program thread_form(Program program, const ThreadTarget& target, std::vector<std::string>& notes);

}  // namespace lemma::tile
