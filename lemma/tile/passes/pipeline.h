// Thread form: a pipelined loop asks for its tiles turns ahead.
//
//     for k in 0 .. n pipelined 3 {           =>   for p in 0 .. 2 unrolled { if p < n { copy a[.. p ..] -> as[p] async } commit }
//       copy a[.. k ..] -> as fill 0               for k in 0 .. n {
//       gemm acc += as * bs                          wait 1
//     }                                              barrier
//                                                    if k + 2 < n { copy a[.. k + 2 ..] -> as[mod(k + 2, 3)] async }
//                                                    commit
//                                                    gemm acc += as[mod(k, 3)] * ...
//                                                  }
//                                                  barrier
//
// Asked for ahead are copies from what the kernel does not write into a shared buffer that this statement alone writes,
// that nothing outside the loop touches and nothing in the loop reads before; and the lets they need, made again. Such a
// buffer becomes a *ring*: its first dimension is the turn modulo the versions. One barrier a turn is enough: when a
// thread is past it, all threads are done with the turn before, whose version is filled next. Loops of no and of fewer
// turns than versions are right, since every request is under its own test and every turn commits a group, maybe empty.
//
// There are as many versions as the loop asks for, or as fit in `shared_bytes`, which a note says; a loop in which
// nothing can be asked for ahead becomes a plain one.
#pragma once

#include <string>
#include <vector>

#include "lemma/tile/program.h"

namespace lemma::tile {

Program pipeline(Program program, int64_t shared_bytes, std::vector<std::string>& notes);

// Bytes of the shared buffers a kernel brings to life, each rounded up to 1,024.
int64_t shared_bytes(const Program& program, const Kernel& kernel);

}  // namespace lemma::tile
