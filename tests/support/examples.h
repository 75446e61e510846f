// The programs under examples/: the sizes and tolerances that their comments state, random inputs, what the oracle says.
#pragma once

#include "tests/support/programs.h"

namespace lemma::testing_support {

// Names without the folder and the ending, sorted.
std::vector<std::string> example_names(const std::string& folder);

struct Example {
  tensor::Graph graph;
  std::vector<tensor::Binding> sizes;
  double bound = -1;         // see difference()
  NamedValues inputs, expected;
};
base::Result<Example> read_example(const std::string& folder, const std::string& name);

// Elements drawn by the inputs' names: floats as runtime::uniform gives them, integers within their stated ranges.
NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes);

// The graph with the width of a head bound: columns of streamed products have constant tiles on devices.
tensor::Graph with_columns_bound(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes);

}  // namespace lemma::testing_support
