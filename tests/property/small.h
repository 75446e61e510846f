// All small graphs: one or two nodes over an input of two dimensions, extents 0 to 3, by their number.
#pragma once

#include <cstdint>

#include "tests/property/case.h"

namespace lemma::property {

uint64_t small_count();
Case small_case(uint64_t number);   // below small_count()

}  // namespace lemma::property
