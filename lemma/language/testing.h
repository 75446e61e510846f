// For tests: a program run by the oracle on small arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lemma/language/language.h"
#include "lemma/scalar/eval.h"
#include "lemma/tensor/bind.h"
#include "lemma/tensor/eval.h"
#include "lemma/tensor/validate.h"

namespace lemma::language {

inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf_value = std::numeric_limits<double>::infinity();

struct Given {
  std::string name;
  std::vector<int64_t> extents;
  std::vector<double> values;
};

inline tensor::Graph parsed(const std::string& text) {
  auto graph = parse(text, "test.lemma");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : base::render(graph.error())) << text;
  return graph.ok() ? *std::move(graph) : tensor::Graph();
}

// The outputs, in order; empty on failure.
inline std::vector<std::vector<double>> run_graph(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes,
                                                  const std::vector<Given>& inputs) {
  const auto fail = [](const base::Diagnostic& d) {
    ADD_FAILURE() << base::render(d);
    return std::vector<std::vector<double>>();
  };
  auto bound = tensor::bind(graph, sizes);
  if (!bound.ok()) return fail(bound.error());
  if (auto ok = tensor::check_bounds(*bound); !ok.ok()) return fail(ok.error());
  std::vector<scalar::DType> types;
  for (const Given& g : inputs) {
    types.push_back(scalar::DType::F32);
    for (const tensor::Node& n : graph.nodes) {
      const auto* in = std::get_if<tensor::Input>(&n);
      if (in && in->name == g.name) types.back() = in->type;
    }
  }
  auto oracle = tensor::Oracle::make(*std::move(bound));
  if (!oracle.ok()) return fail(oracle.error());
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensor::Array a;
    a.type = types[i];
    a.extents = inputs[i].extents;
    for (double v : inputs[i].values) {
      a.data.push_back(scalar::is_float(types[i]) ? scalar::from_float(v) : scalar::from_int(int64_t(v)));
    }
    if (auto ok = oracle->set_input(inputs[i].name, std::move(a)); !ok.ok()) return fail(ok.error());
  }
  auto arrays = oracle->outputs();
  if (!arrays.ok()) return fail(arrays.error());
  std::vector<std::vector<double>> out;
  for (const tensor::Array& a : *arrays) {
    out.emplace_back();
    for (scalar::Scalar s : a.data) out.back().push_back(scalar::is_float(a.type) ? s.f : double(s.i));
  }
  return out;
}

inline std::vector<std::vector<double>> run(const std::string& text, const std::vector<tensor::Binding>& sizes, const std::vector<Given>& inputs) {
  const tensor::Graph graph = parsed(text);
  return graph.outputs.empty() ? std::vector<std::vector<double>>() : run_graph(graph, sizes, inputs);
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (expected[i] != expected[i]) {
      EXPECT_NE(found[i], found[i]) << "at " << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(found[i], expected[i]) << "at " << i;
    } else {
      EXPECT_NEAR(found[i], expected[i], tolerance) << "at " << i;
    }
  }
}

}  // namespace lemma::language
