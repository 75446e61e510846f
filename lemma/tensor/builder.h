// Graphs written in C++: what tests, benchmarks and embedders build comprehensions with.
//
//     Builder b;
//     const Form n = b.size("N"), d = 64;
//     const Value q = b.input("q", {n, d}), k = b.input("k", {n, d});
//     Draft s = b.draft("s");
//     const Form i = s.point("i", n), j = s.point("j", n), c = s.reduce("c", d);
//     const Value scores = s.fold(monoid::sum(Kind::F32), {s.read(q, {i, c}) * s.read(k, {j, c})});
//     b.output("s", scores);
//     Graph graph = b.finish();
//
// A draft's node is open: what the calls do not say can be set in it before map() or fold().
#pragma once

#include <string>
#include <vector>

#include "lemma/tensor/graph.h"

namespace lemma::tensor {

class Builder;

class Draft {
 public:
  // Points and axes first, then the scan index, then reduce indices.
  view::Form point(std::string name, view::Form extent) { return add_index(std::move(name), extent, Role::Point); }
  view::Form axis(std::string name, view::Form extent) { return add_index(std::move(name), extent, Role::Axis); }
  view::Form scan(std::string name, view::Form extent, Scan how = {});
  view::Form reduce(std::string name, view::Form extent) { return add_index(std::move(name), extent, Role::Reduce); }

  scalar::Expr read(Value source, std::vector<view::Form> coords, view::Formula guard = {});
  static view::Form data(scalar::Expr read);           // a read's value in forms
  static scalar::Expr present(scalar::Expr read);      // whether its guard held
  scalar::Expr index(const view::Form& index) const;   // an index's value in expressions
  void where(const view::Formula& condition) { node.domain = node.domain && condition; }

  // Finishes the node: one output a body, over all points. The first output's value; the others follow it.
  Value map(std::vector<scalar::Expr> bodies);
  // The same for a reduction or a scan, one output a result of the monoid, over the points, the scan index and the axes
  // of the result's components.
  Value fold(monoid::MonoidRef monoid, std::vector<scalar::Expr> operands);

  Comprehension node;

 private:
  friend class Builder;
  Draft(Builder& builder, std::string name) : builder_(&builder) { node.name = std::move(name); }
  view::Form add_index(std::string name, const view::Form& extent, Role role);
  Builder* builder_;
};

class Builder {
 public:
  explicit Builder(std::string name = "graph") { graph.name = std::move(name); }

  view::Form size(std::string name);
  Value input(std::string name, std::vector<view::Form> extents, scalar::DType type = scalar::DType::F32);
  Draft draft(std::string name) { return Draft(*this, std::move(name)); }
  Value scatter(Scatter node) { return {graph.add(std::move(node)), 0}; }
  void output(std::string name, Value value);

  scalar::Arena& arena() { return *graph.arena; }
  scalar::Expr f32(double value) { return scalar::f32(arena(), value); }
  scalar::Expr i64(int64_t value) { return scalar::i64(arena(), value); }

  Graph finish() { return std::move(graph); }

  Graph graph;
};

// Another output of the node of `value`.
inline Value sibling(Value value, int output) { return {value.node, output}; }

}  // namespace lemma::tensor
