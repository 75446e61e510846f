// Calls of a compiled program: from named arrays and sizes to named results. Sizes are inferred from the inputs'
// shapes; what an input states of itself (its range, that it is sorted, that it scatters to distinct places) is
// checked; outputs hold nan before the kernels run. An output that takes over an input's storage is given a copy of
// the input, so the caller's arrays stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/driver/compile.h"
#include "lemma/runtime/array.h"
#include "lemma/runtime/module.h"
#include "lemma/runtime/npy.h"
#include "lemma/tensor/graph.h"

namespace lemma::driver {

struct Arguments {
  std::vector<runtime::Named> inputs;
  std::vector<tensor::Binding> sizes;   // stated by the caller; they must agree with the shapes
};

// Every size of the graph, in the graph's order: stated ones, then what the inputs' shapes say, and, where `typical`
// is set, the sizes' typical values. A conflict names both places.
base::Result<std::vector<tensor::Binding>> infer_sizes(const tensor::Graph& graph, const Arguments& arguments,
                                                       bool typical = false);

// The extents of a value under these sizes.
std::vector<int64_t> evaluate_extents(const std::vector<view::Form>& extents,
                                      const std::vector<tensor::Binding>& sizes);

// Checks what the inputs of the graph state of themselves.
base::Result<void> check_inputs(const tensor::Graph& graph, const std::vector<runtime::Named>& inputs,
                                const std::vector<tensor::Binding>& sizes);

// A call that is ready to run, as often as one likes.
struct Call {
  std::vector<tensor::Binding> sizes;        // of the graph
  std::vector<int64_t> program_sizes;        // as lemma_run takes them
  std::vector<runtime::Array> arrays;        // per parameter; they own the memory
  std::vector<void*> buffers;                // per parameter
  std::vector<runtime::Named> outputs;       // share memory with `arrays`
  std::vector<int> poisoned;                 // parameters that are written and never read
};

base::Result<Call> prepare(const Compiled& compiled, const Arguments& arguments);

// Fills the outputs with nan, or with `bits` in every byte where they are integers.
void poison(Call& call, uint8_t bits);

base::Result<void> launch(const runtime::Module& module, Call& call, runtime::Workspace& workspace, int threads);

// All of it at once.
base::Result<std::vector<runtime::Named>> execute(const Compiled& compiled, const runtime::Module& module,
                                                  const Arguments& arguments, int threads);

}  // namespace lemma::driver
