#include "emulator/shadow.h"

#include <algorithm>
#include <bit>

namespace lemma::emulator {

uint32_t AccessLists::make() {
  if (free_.empty()) {
    lists_.emplace_back();
    return uint32_t(lists_.size() - 1);
  }
  const uint32_t list = free_.back();
  free_.pop_back();
  lists_[list].clear();
  return list;
}

uint32_t AccessLists::copy(uint32_t list) {
  const uint32_t made = make();
  lists_[made] = lists_[list];
  return made;
}

void AccessLists::clear() {
  free_.clear();
  for (size_t i = lists_.size(); i-- > 1;) free_.push_back(uint32_t(i));
}

void Buffer::split(int64_t offset, int64_t size, AccessLists& lists) {
  const int needed = std::min(4, std::countr_zero(uint64_t(offset | size)));
  const size_t count = size_t((bytes + (int64_t(1) << needed) - 1) >> needed);
  if (shift < 0) {
    cells.assign(count, Cell{});
    shift = needed;
    return;
  }
  const int halvings = shift - needed;
  std::vector<Cell> finer(count);
  for (size_t i = 0; i < count; ++i) {
    finer[i] = cells[i >> halvings];
    const bool is_first = (i & ((size_t(1) << halvings) - 1)) == 0;
    if (is_first) continue;  // it keeps the lists; the others get copies (of a stale list too, which does no harm)
    for (Since* since : {&finer[i].atomics, &finer[i].reads}) {
      if (since->more) since->more = lists.copy(since->more);
    }
  }
  cells = std::move(finer);
  shift = needed;
}

}  // namespace lemma::emulator
