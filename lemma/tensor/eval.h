// The oracle: what a graph means, computed slowly and plainly in f64 (integers as integers of their kind).
//
// It computes values whole, or at chosen points; then only the slabs of other values that those points hang on are
// computed, each element at most once (demand.h). A value's element exists only on its domain; a read that leaves its
// source or its source's domain is an error that names node, read and point. Everything is a loop over the nodes:
// chains of any length take linear time and constant stack.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/scalar/eval.h"
#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// A value, row-major. Elements off the domain are not present and unspecified.
struct Array {
  scalar::DType type = scalar::DType::F32;
  std::vector<int64_t> extents;
  std::vector<scalar::Scalar> data;
  std::vector<uint8_t> present;   // empty: all are
};

// An input as it lies in memory. It must outlive the oracle's use.
struct InputBuffer {
  std::string name;
  scalar::DType type = scalar::DType::F32;
  const void* data = nullptr;
  std::vector<int64_t> strides;   // in elements, may be 0 or negative; empty: row-major and contiguous
  int64_t offset = 0;             // of element (0, 0, ...), in elements
};

struct OracleOptions {
  bool emulate_single = false;    // round F32 results to float and stored floats to their type
};

struct Sample {
  Value value;
  std::vector<std::vector<int64_t>> points;
};

class Oracle {
 public:
  // The graph is valid and all its sizes are bound.
  static base::Result<Oracle> make(Graph graph, OracleOptions options = {});

  // The input's element type and, for an array, its extents must be the graph's; a stated range is checked.
  base::Result<void> set_input(const InputBuffer& input);
  base::Result<void> set_input(const std::string& name, Array array);

  base::Result<Array> output(const std::string& name) const;
  base::Result<std::vector<Array>> outputs() const;                       // all, in one evaluation
  base::Result<std::vector<Array>> values(std::span<const Value> wanted) const;
  // Elements at points; a point off the domain is an error.
  base::Result<std::vector<scalar::Scalar>> at(Value value, const std::vector<std::vector<int64_t>>& points) const;
  base::Result<std::vector<std::vector<scalar::Scalar>>> at(const std::vector<Sample>& samples) const;
  base::Result<Value> find_output(const std::string& name) const;

  const Graph& graph() const { return graph_; }

 private:
  struct Bound {
    bool set = false;
    Array array;           // where the data was handed over
    InputBuffer buffer;    // else where it lies
  };
  explicit Oracle(Graph graph, OracleOptions options) : graph_(std::move(graph)), options_(options) {}
  base::Result<size_t> find_input(const std::string& name) const;
  base::Result<void> check_range(const Input& input, const Bound& bound) const;
  base::Result<void> evaluate(const std::vector<struct Request>& requests,
                              std::vector<std::vector<struct Stored>>& stored) const;

  Graph graph_;
  OracleOptions options_;
  std::vector<Bound> inputs_;  // by node
};

// About how many scalar operations computing all outputs takes: to choose between whole and sampled checks.
double operation_count(const Graph& graph);

}  // namespace lemma::tensor
