// What is checked of a case, stage by stage. A stage that fails says what differs; an empty message is a pass.
//
//   validate      the graph is valid
//   text          its text parses back to an equal graph
//   oracle        the oracle evaluates it
//   <pass>        the pass leaves a valid graph of the same values: exactly under Claim::Exact, up to f64 rounding under
//                 what the case allows
//   derive        so does the default order
//   tile          lowering gives a valid program whose text parses back to an equal one
//   tile_run      the block interpreter computes the oracle's values and finds no broken rule
//   c             (batch.h) the compiled C computes the oracle's values
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lemma/driver/compile.h"
#include "lemma/driver/execute.h"
#include "lemma/tensor/graph.h"
#include "tests/property/case.h"

namespace lemma::property {

struct Failure {
  std::string stage;
  std::string message;
  bool unsupported = false;   // an honest refusal
  bool ok() const { return message.empty(); }
};

// One stage of the graph level by name; "" for the first that fails of all.
Failure check_maths(const Case& c, const std::string& stage = "");

// Any function from graph to graph, as a pass: what the tests of the reducer plant faults with.
using Rewrite = std::function<tensor::Graph(const tensor::Graph&)>;
Failure check_rewrite(const Case& c, const std::string& stage, const Rewrite& rewrite, double tolerance);

// The compiled case; every fifth is compiled without rewrites.
base::Result<driver::Compiled> compile(const Case& c, const tile::Target& target, const driver::Trace& trace = {});

// "tile", and with `run` "tile_run".
Failure check_tiles(const Case& c, bool run);

// The case's inputs as the driver takes them; strided ones lie transposed, with gaps and (the interpreter
// takes no negative strides) `reversed`.
base::Result<driver::Call> prepare(const Case& c, const driver::Compiled& compiled, const Inputs& inputs,
                                   bool reversed = true);

// The results of a call as oracle arrays.
tensor::Array result_of(const runtime::Array& array);

}  // namespace lemma::property
