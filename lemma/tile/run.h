// The block interpreter: what a tile program computes, on the caller's arrays, and whether it keeps the rules that
// every target relies on.
//
// Blocks run one after another in an order drawn from `seed`; statements of a block run in order and the points of a
// statement in row-major order. Arithmetic is double (integers are integers). Named, with the kernel, the statement and
// the values of the variables, are: accesses outside their buffer, reads of elements nobody wrote (block-local buffers
// hold nothing after their alloc, outputs and scratch nothing before the first write), a block that writes what another
// block of the same launch reads or writes (blocks may meet where all of them combine), a point of a statement that writes what another point reads or writes
// (without a combine), and requirements and asserts that fail.
//
// What the header of program.h leaves open is fixed here: a read that only values use is made where `where` holds (and
// where a store's `otherwise` uses it, off the domain too); a read that `where` uses is made where the constraints that
// need fewer reads hold. A scan's store off the domain writes `otherwise` if given, else the state it passes on. A
// state axis a of a component is the a-th of the statement's `axes`. A component that leaves out a point variable is
// folded once even where the variable's extent is 0.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/scalar/eval.h"
#include "lemma/tile/memory.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

struct SizeValue {
  std::string name;
  int64_t value = 0;
};

// The memory of a parameter: `elements` of its type, from the first; strided parameters need as many as their strides
// reach. Inputs are only read.
struct Argument {
  void* data = nullptr;
  int64_t elements = 0;
};

struct RunOptions {
  uint64_t seed = 0;      // of the order of blocks; 0: the grid's own order
  int64_t threads = 1;    // the size "threads", unless it is given
  Rounding rounding = Rounding::Narrow;
  scalar::Arithmetic arithmetic = scalar::Arithmetic::Double;
  int64_t most_elements = int64_t(1) << 27;  // of one buffer
  std::function<void(const std::string&)> print = {};  // what `print` says, a line each; nothing: it is lost
};

// `arguments` follow the program's parameters. Outputs that were not written keep the caller's bytes.
base::Result<void> run(const Program& program, std::span<const SizeValue> sizes, std::span<const Argument> arguments,
                       const RunOptions& options = {});

// The values of all sizes, definitions computed and requirements checked, in the program's order.
base::Result<std::vector<int64_t>> bind_sizes(const Program& program, std::span<const SizeValue> sizes,
                                              int64_t threads = 1);

}  // namespace lemma::tile
