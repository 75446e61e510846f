// The text of layouts, and layouts drawn.
//
//     layout [16, 8] register (0,1) (8,0) lane (0,2) (0,4) (1..4,0)
//     layout [96, 40] offset (0,1..4) 5*(0,8) (1..16,0) 3*(32,0)
//
// The tile's shape, then each axis that has digits with their steps, lowest first: a bit is its step, a digit of radix
// 5 is `5*` its step, a broadcast is `0` or `5*0`, and `(1..4,0)` stands for the bits (1,0) (2,0) (4,0).
#pragma once

#include <string>
#include <string_view>

#include "lemma/layout/layout.h"

namespace lemma::layout {

std::string print(const Layout& layout);
base::Result<Layout> parse(std::string_view text);

}  // namespace lemma::layout
