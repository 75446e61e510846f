// Structural validity of a tile program: what every later step may assume. What depends on the values of sizes and
// data (bounds, reads of unwritten elements, blocks in each other's way) is run.h's to find.
#pragma once

#include "lemma/base/result.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

// The first thing wrong, naming the kernel, the statement (by number, bodies after a dot) and what is wrong.
base::Result<void> validate(const Program& program);

// "kernel matmul, statement 3.1 (gemm)": how messages name a place; the path counts from 1.
std::string place_text(const std::string& kernel, const std::vector<int>& path, const char* word);

}  // namespace lemma::tile
