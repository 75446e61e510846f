// Tile programs as text for GPUs: a kernel of the program is a kernel of the dialect, a block of its grid a workgroup.
//
// The threads of a workgroup share every statement: the points of a map, reduction or scan go round among them, and a
// barrier stands behind each statement that others may read from. A reduction of few points is folded by all threads
// together. What no other way is known for runs on one thread, and a note says so. Workgroups walk over the blocks, so
// any number may be launched. Block-local buffers of constant size stand in workgroup memory while they fit; others in
// the workgroup's slice of a buffer that the caller brings.
//
// Arguments of a kernel: its buffers in order (CUDA: each begins at a multiple of 16 bytes), then, if it has one, the slices; then all sizes of the program that it uses.
#pragma once

#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/emit/device/dialect.h"
#include "lemma/tile/program.h"

namespace lemma::emit::device {

struct DeviceOptions {
  DialectId dialect = DialectId::OpenCl;
  int threads = 128;                   // of a workgroup
  int64_t shared_bytes = 32 << 10;     // of workgroup memory, at most
  int max_buffers = 8;                 // a kernel may bind
  bool matrix_units = false;           // the target has those of tile/matrix_unit.h; thread form uses them
};

inline constexpr int64_t reserved_shared_bytes = 8 << 10;  // for what reductions of a block exchange

struct DeviceKernel {
  std::string name;                    // of the entry point
  std::string source;                  // where the dialect has one text for each kernel
  std::vector<int> buffers;            // of the program, in argument order
  std::vector<bool> written;           // per buffer argument, the slices last
  std::vector<int> sizes;              // of the program, in argument order
  std::vector<view::Form> grid;        // extents over sizes; their product is the number of blocks
  view::Form slice_words;              // 32-bit words of a workgroup's slice, over sizes; 0: no such argument
  int threads = 0;
  int64_t shared_bytes = 0;            // of workgroup memory to ask for at launch (CUDA, thread form)
};

struct DeviceProgram {
  std::string preamble;                // what a device's compiler is given first (CUDA); the emulator has its own
  std::string source;                  // all kernels, where the dialect allows it
  std::vector<DeviceKernel> kernels;   // launched in order
  std::vector<std::string> notes;      // what runs on one thread, and why
};

base::Result<DeviceProgram> emit_device(const tile::Program& program, const DeviceOptions& options);

}  // namespace lemma::emit::device
