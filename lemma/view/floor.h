// Floor division of integers, as forms mean it.
#pragma once

#include <cstdint>

namespace lemma::view {

inline int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return int64_t(0 - uint64_t(a));
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

}  // namespace lemma::view
