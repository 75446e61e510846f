#include "tests/random/equal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "lemma/tensor/bind.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::random_graphs {

using scalar::Scalar;
using tensor::Array;
using tensor::Graph;

Array random_array(const tensor::Input& input, const Inputs& how, uint64_t salt) {
  Array out;
  out.type = input.type;
  int64_t count = 1;
  for (const view::Form& e : input.extents) {
    out.extents.push_back(e.constant().value_or(0));
    count *= out.extents.back();
  }
  std::mt19937_64 random(how.seed * 0x9E3779B97F4A7C15ull + salt);
  std::uniform_real_distribution<double> real(how.low, how.high), share(0, 1);
  const int64_t low = input.low ? input.low->constant().value_or(0) : -2;
  const int64_t high = input.high ? input.high->constant().value_or(6) : 6;
  std::uniform_int_distribution<int64_t> integer(low, std::max(low, high - 1));
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < count; ++i) {
    if (scalar::is_float(input.type)) {
      double v = real(random);
      if (share(random) < how.special) v = !how.nonfinite || share(random) < 0.6 ? -inf : share(random) < 0.5 ? inf : nan;
      out.data.push_back(scalar::from_float(scalar::rounded(input.type, v)));
    } else if (input.type == scalar::DType::Bool) {
      out.data.push_back(scalar::from_int(share(random) < 0.6));
    } else {
      out.data.push_back(scalar::from_int(integer(random)));
    }
  }
  if (input.sorted && !out.extents.empty()) {
    const int64_t row = std::max<int64_t>(out.extents.back(), 1);
    for (size_t r = 0; r + size_t(row) <= out.data.size(); r += size_t(row)) {
      std::sort(out.data.begin() + ptrdiff_t(r), out.data.begin() + ptrdiff_t(r + size_t(row)),
                [](Scalar a, Scalar b) { return a.i < b.i; });
    }
  }
  return out;
}

namespace {

base::Result<Graph> bound(const Graph& graph, int64_t size) {
  std::vector<tensor::Binding> bindings;
  int64_t next = size;
  for (const tensor::Size& s : graph.sizes) {
    if (s.value) continue;
    int64_t value = std::max(s.low, next++);
    value = (value + s.divisor - 1) / s.divisor * s.divisor;
    if (s.high) value = std::min(value, *s.high);
    bindings.push_back({s.name, value});
  }
  return tensor::bind(graph, bindings);
}

base::Result<std::vector<Array>> evaluate(const Graph& graph, const Inputs& how) {
  LEMMA_TRY(tensor::Oracle oracle, tensor::Oracle::make(graph));
  uint64_t salt = 0;
  for (const tensor::Node& n : graph.nodes) {
    if (const auto* input = std::get_if<tensor::Input>(&n)) {
      LEMMA_TRY_VOID(oracle.set_input(input->name, random_array(*input, how, ++salt)));
    }
  }
  return oracle.outputs();
}

bool equal(scalar::DType type, Scalar a, Scalar b, double tolerance) {
  if (!scalar::is_float(type)) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  if (std::isinf(a.f) || std::isinf(b.f)) return a.f == b.f;
  return std::fabs(a.f - b.f) <= tolerance * std::max({1.0, std::fabs(a.f), std::fabs(b.f)});
}

}  // namespace

std::string difference(const Graph& a, const Graph& b, const Inputs& how, double tolerance, int64_t size) {
  auto left = bound(a, size), right = bound(b, size);
  if (!left.ok()) return "first graph: " + base::render(left.error());
  if (!right.ok()) return "second graph: " + base::render(right.error());
  auto x = evaluate(*left, how), y = evaluate(*right, how);
  if (!x.ok()) return "first graph: " + base::render(x.error());
  if (!y.ok()) return "second graph: " + base::render(y.error());
  if (x->size() != y->size()) return "they have different outputs";
  for (size_t o = 0; o < x->size(); ++o) {
    const Array &p = (*x)[o], &q = (*y)[o];
    if (p.extents != q.extents || p.type != q.type) return "output " + a.outputs[o].name + " has another shape or type";
    for (size_t i = 0; i < p.data.size(); ++i) {
      if (!p.present.empty() && !p.present[i]) continue;
      if (equal(p.type, p.data[i], q.data[i], tolerance)) continue;
      std::ostringstream out;
      out.precision(17);
      out << "output " << a.outputs[o].name << " element " << i << ": ";
      if (scalar::is_float(p.type)) out << p.data[i].f << " became " << q.data[i].f;
      else out << p.data[i].i << " became " << q.data[i].i;
      out << " (inputs of seed " << how.seed << ")";
      return out.str();
    }
  }
  return {};
}

Graph with_definition(const Graph& graph, tensor::Tensor node) {
  return tensor::rebuild(graph, [&](tensor::Rebuild& build, tensor::Tensor old, tensor::Node& derived) -> tensor::Replaced {
    const auto* c = std::get_if<tensor::Comprehension>(&derived);
    if (!(old == node) || !c || !c->definition) return {};
    const Graph& naive = c->definition->graph;
    std::vector<tensor::Value> first;  // of each of its nodes
    size_t input = 0;
    const auto moved = [&](tensor::Value v) {
      const tensor::Value by = first[size_t(v.node.index)];
      return tensor::Value{by.node, by.output + v.output};
    };
    for (const tensor::Node& n : naive.nodes) {
      if (std::holds_alternative<tensor::Input>(n)) {
        first.push_back(c->definition_inputs[input++]);
        continue;
      }
      tensor::Comprehension copy = std::get<tensor::Comprehension>(n);
      for (tensor::Read& r : copy.reads) r.source = moved(r.source);
      for (tensor::Value& v : copy.definition_inputs) v = moved(v);
      first.push_back({build.add(std::move(copy)), 0});
    }
    std::vector<tensor::Value> out;
    for (const tensor::GraphOutput& o : naive.outputs) out.push_back(moved(o.value));
    return out;
  });
}

}  // namespace lemma::random_graphs
