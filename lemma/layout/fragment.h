// The fragments of matrix instructions, from the documented maps of lanes and registers. A register counts elements: of
// elements narrower than 32 bits several share a machine register, the first lowest.
//
// Tiles: A is [m, k], B is [k, n], an accumulator [m, n]. With q = lane % 4 and g = lane / 4, a warp's instruction of
// depth k = 256 / element_bits (16, 8 or 32 for bf16, tf32 or s8) holds, e counting the elements of 32 bits,
//     A        machine register i: row g + 8*(i & 1), column (32/bits)*q + e + (k/2)*(i >> 1)
//     B        machine register i: column g, row (32/bits)*q + e + (k/2)*i
//     C, D     register r: row g + 8*(r >> 1), column 2*q + (r & 1)
#pragma once

#include "lemma/layout/layout.h"

namespace lemma::layout {

enum class Operand : uint8_t { A, B, Accumulator };

// mma.sync m16n8: k16 of 16-bit, k8 of 32-bit (tf32), k32 of 8-bit elements; the accumulator's does not depend on them.
base::Result<Layout> mma(Operand operand, int element_bits);

// wgmma of four warps, 16 rows each: the accumulator [64, n], n a multiple of 8 up to 256, and A in registers, [64, k].
base::Result<Layout> wgmma_accumulator(int32_t n);
base::Result<Layout> wgmma_a(int element_bits);

// Metal's simdgroup_matrix, 8x8, two elements a lane: with s = lane / 4, row (s & 4) + lane / 2 % 4 and the columns
// from (s & 2)*2 + lane % 2 * 2. The language does not promise the map; implementations have relied on it since the M1.
Layout simdgroup_matrix();

// Which 16 bytes each lane *addresses* when a fragment is loaded by ldmatrix or stored by stmatrix, as a distribution:
// lane l gives row l % 8 of matrix l / 8, registers count the elements of the 16 bytes, then more instructions.
// Transposed (16-bit elements only): memory runs along the dimension that Plain's rows number.
enum class Rows : uint8_t { Plain, Transposed };
base::Result<Layout> matrix_rows(const Layout& fragment, int element_bits, Rows rows);

}  // namespace lemma::layout
