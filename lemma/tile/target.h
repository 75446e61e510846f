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

  // Of devices. Tiles are powers of two, as they have constant extents; a schedule's own tiles override them.
  int64_t shared_bytes = 32 << 10;    // of a workgroup's memory, for the tiles that products read
  int max_buffers = 0;                // a kernel may bind; 0: no limit is known
  bool warps = false;                 // 32 threads of a block fold a row together, so a block may have several short rows
  bool matrix_units = false;          // multiply bf16, f16 and i8 as they are stored; operands of other types get half the tile
  int tile_rows = 32, tile_columns = 32, tile_depth = 16;  // of a product
  int stream_rows = 32, stream_columns = 32;               // of a streamed product: its rows and a turn of its stream
  bool operator==(const Target&) const = default;
};

}  // namespace lemma::tile
