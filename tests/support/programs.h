// What tests that run whole programs share: read a text, evaluate it by the oracle, compile it, run it, compare.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/driver/compile.h"
#include "lemma/runtime/array.h"
#include "lemma/runtime/cache.h"
#include "lemma/runtime/npy.h"
#include "lemma/tensor/eval.h"
#include "lemma/tensor/graph.h"

namespace lemma::testing_support {

base::Result<std::string> read_text(const std::string& path);
base::Result<tensor::Graph> read_program(const std::string& text, const std::string& path);

// An input's elements in f64 (exact for every type but 64-bit integers beyond 2^53), with its type and extents.
struct Values {
  scalar::DType type = scalar::DType::F32;
  std::vector<int64_t> extents;
  std::vector<double> data;
};
using NamedValues = std::map<std::string, Values>;

// The bindings that the graph has a size for, in the graph's order, as driver::evaluate_extents wants them.
std::vector<tensor::Binding> in_order(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes);

// The declared inputs under these sizes, without elements yet.
NamedValues declared_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes);

// Every output, by the oracle in f64; elements off the domain are nan.
base::Result<NamedValues> evaluate(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes,
                                   const NamedValues& inputs);

// A compiled and loaded program. All programs of a process share one cache folder, removed at its end.
class Runner {
 public:
  static base::Result<Runner> make(const tensor::Graph& graph, const driver::CompileOptions& options);
  static base::Result<Runner> load(driver::Compiled compiled, const tile::Target& target);
  // Inputs lie between guard bands of nan (of 0x55 bytes for integers); outputs hold nan before.
  base::Result<NamedValues> run(const std::vector<tensor::Binding>& sizes, const NamedValues& inputs, int threads) const;
  base::Result<std::vector<runtime::Named>> run_arrays(const std::vector<tensor::Binding>& sizes,
                                                       const NamedValues& inputs, int threads) const;
  const driver::Compiled& compiled() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// The values as an array of their type, between guard bands.
base::Result<runtime::Array> guarded_array(const Values& values);
Values values_of(const runtime::Array& array);

// What differs, or "": nan and infinities must agree, then |found - expected| <= bound. A negative bound stands for the
// usual one: 0 for integers, else a few roundings of the output's type times max(1, largest expected element).
// `stored_found`: what was found has been stored in the expected type, and so is rounded.
std::string difference(const Values& expected, const Values& found, double bound, bool stored_found = true);

}  // namespace lemma::testing_support
