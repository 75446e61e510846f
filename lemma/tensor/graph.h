// The graph of comprehensions: what is computed, as mathematics.
//
// Values are immutable tensors. A *value exists only on its domain*: a map's output is defined where its domain holds
// and unspecified elsewhere; a reduction is defined at every point and folds the terms whose reduce point lies in the
// domain; a scan is defined at every step and an absent step passes the state on. Floats are reals in f64 to the
// oracle; integers are integers of their kind. Nodes stand in dependency order: a read names an earlier node.
//
// In forms and expressions of a node, Index(i) is `indices[i]`, Data(r) and Arg(r) are the value of `reads[r]`,
// Size(s) is the graph's `sizes[s]`. A read's coordinates and guard may use Data(q) of earlier reads q < r only.
// A read is evaluated only where its guard holds; Present(r) is that guard. Validity (validate.h): wherever the node's
// domain holds, an unguarded read lies within its source and in its source's domain.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lemma/base/diagnostic.h"
#include "lemma/base/id.h"
#include "lemma/monoid/monoid.h"
#include "lemma/scalar/expr.h"
#include "lemma/view/formula.h"

namespace lemma::tensor {

struct TensorTag;
using Tensor = base::Id<TensorTag>;        // a node

struct Value {                             // one output of a node
  Tensor node;
  int output = 0;
  auto operator<=>(const Value&) const = default;
};

// A size symbol. Unbound until a call; `value` is set by bind.
struct Size {
  std::string name;
  int64_t low = 0;
  std::optional<int64_t> high;
  int64_t divisor = 1;
  std::optional<int64_t> typical;
  std::optional<int64_t> value;
  base::Span span;
};

struct Input {
  std::string name;
  std::vector<view::Form> extents;         // over sizes
  scalar::DType type = scalar::DType::F32;
  std::optional<view::Form> low, high;     // stated range of an integer input: low <= value < high; checked at bind
  bool sorted = false;                     // a promise along the last dimension, checked
  bool strided = false;                    // strides come with the call; else row-major and contiguous
  base::Span span;
};

enum class Role : uint8_t { Point, Axis, Scan, Reduce };

struct IndexInfo {
  std::string name;
  view::Form extent;                       // 0 <= index < extent; over sizes only
  Role role = Role::Point;
  bool operator==(const IndexInfo&) const = default;
};

struct Read {
  Value source;
  std::vector<view::Form> coords;          // one per dimension of the source
  view::Formula guard;                     // where the read happens; true for most
  bool operator==(const Read&) const = default;
};

struct Output {
  std::string name;
  scalar::DType type = scalar::DType::F32;
  int result = 0;                          // which body element (map) or which result of the monoid's finish
  std::vector<int> dims;                   // index ids, in storage order: points, axes and the scan index
  bool final_state = false;                // of a scan: the state after the last step; dims lack the scan index
  bool operator==(const Output&) const = default;
};

struct Scan {
  bool exclusive = false;
  bool reverse = false;
  bool operator==(const Scan&) const = default;
};

struct Definition;

// A map (no monoid), a reduction (a monoid) or a scan (a monoid and one index of role Scan).
struct Comprehension {
  std::string name;
  std::vector<IndexInfo> indices;          // points and axes first, then the scan index, then reduce indices
  view::Formula domain;                    // over indices and reads
  std::vector<Read> reads;
  std::vector<scalar::Expr> body;          // a map's values; else the monoid's operands
  monoid::MonoidRef monoid;
  std::vector<std::vector<int>> components;  // per component its own index set: ids of points and axes (axes last)
  std::optional<Scan> scan;
  std::vector<scalar::Expr> initial;       // of a scan: the state before the first step, per component; or empty
  std::vector<Output> outputs;
  std::shared_ptr<const Definition> definition;  // what a rewrite replaced, if one made this node
  std::vector<Value> definition_inputs;    // the values its inputs stand for, in this graph
  base::Span span;

  std::vector<int> with_role(Role role) const;
};

// out = base (or, without one, the monoid's identity, or nothing) and then, for every point of the domain in row-major
// order, out[coords] (combined with) = body. Without a monoid no two points may meet (`injective`, checked at run time).
// A coordinate outside the target is off the domain.
struct Scatter {
  std::string name;
  std::vector<IndexInfo> indices;          // all of role Point
  view::Formula domain;
  std::vector<Read> reads;
  scalar::Expr body;
  std::vector<view::Form> extents;         // of the target
  std::vector<view::Form> coords;          // over indices and Data
  monoid::MonoidRef monoid;                // Elementwise with one component, or none
  std::optional<Value> base;
  scalar::DType type = scalar::DType::F32;
  base::Span span;
};

using Node = std::variant<Input, Comprehension, Scatter>;

struct GraphOutput {
  std::string name;
  Value value;
  scalar::DType type = scalar::DType::F32;
  std::optional<Tensor> updates;           // takes over this input's storage
};

struct Graph {
  std::string name;
  scalar::ArenaRef arena = std::make_shared<scalar::Arena>();
  std::vector<Size> sizes;
  std::vector<Node> nodes;
  std::vector<GraphOutput> outputs;

  const Node& node(Tensor t) const { return nodes[size_t(t.index)]; }
  Node& node(Tensor t) { return nodes[size_t(t.index)]; }
  Tensor add(Node node) {
    nodes.push_back(std::move(node));
    return Tensor{int32_t(nodes.size()) - 1};
  }
};

// The naive meaning of a derived node: a graph whose inputs stand for `definition_inputs` and whose outputs for the
// node's outputs, in order.
struct Definition {
  Graph graph;
};

// Facts about values.
const std::string& name(const Graph& graph, Value value);
std::vector<view::Form> extents(const Graph& graph, Value value);  // over sizes
scalar::DType type(const Graph& graph, Value value);
scalar::Kind kind(const Graph& graph, Value value);
view::Formula domain_of(const Graph& graph, Value value);  // over Index(0..rank-1) = the value's dimensions, in order;
                                                            // true where it depends on data of the producer (see note)
int output_count(const Node& node);
// Every node and value a node reads, in order.
std::vector<Value> sources(const Node& node);
// How many nodes and graph outputs read each node.
std::vector<int> use_counts(const Graph& graph);

// The graph with these sizes replaced by constants (by name); a conflict with a stated range or divisor, or an unknown
// name, is invalid.
struct Binding {
  std::string name;
  int64_t value = 0;
};

}  // namespace lemma::tensor
