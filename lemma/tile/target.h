// What lowering and emission need to know of a machine, as data.
#pragma once

#include <cstdint>
#include <string>

namespace lemma::tile {

struct Target {
  std::string name = "generic";       // generic, sse2, avx2, avx512, neon, rvv ...
  int vector_bytes = 16;              // of a native vector register; 4: no vectors
  int vector_registers = 16;
  bool fma = false;
  bool bf16_dot = false;              // a pairwise bf16 product that accumulates in f32
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;       // a core's share
  std::string compiler_flags;         // what the C compiler needs to be told: "-mavx512f ..."
  int lanes() const { return vector_bytes / 4; }  // 32-bit lanes of a register
  bool device = false;                // a GPU: the threads of a workgroup share a block
  bool operator==(const Target&) const = default;
};

}  // namespace lemma::tile
