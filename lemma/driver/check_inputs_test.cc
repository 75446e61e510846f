#include <gtest/gtest.h>

#include <limits>

#include "lemma/driver/execute.h"
#include "lemma/tensor/builder.h"

namespace lemma::driver {
namespace {

using runtime::Array;
using scalar::DType;
using view::Form;

Array ints(std::vector<int64_t> values, std::vector<int64_t> extents, DType type = DType::I32) {
  Array array = *runtime::allocate(type, std::move(extents));
  for (size_t i = 0; i < values.size(); ++i) runtime::set_int(array, int64_t(i), values[i]);
  return array;
}

std::string check(const tensor::Graph& graph, const Array& keys, const std::vector<tensor::Binding>& sizes = {}) {
  const auto result = check_inputs(graph, {{"keys", keys}}, sizes);
  return result.ok() ? "fine" : result.error().message;
}

TEST(CheckInputs, RangesAreOverSizes) {
  tensor::Builder b;
  const Form e = b.size("E");
  b.input("keys", {Form(2), Form(2)}, DType::I32);
  tensor::Graph graph = b.finish();
  auto& input = std::get<tensor::Input>(graph.nodes[0]);
  input.low = Form(0);
  input.high = e;
  EXPECT_EQ(check(graph, ints({0, 4, 2, 1}, {2, 2}), {{"E", 5}}), "fine");
  EXPECT_EQ(check(graph, ints({0, 4, 5, 1}, {2, 2}), {{"E", 5}}),
            "input 'keys' states the range 0..5, and holds 5 at [1, 0]");
  EXPECT_EQ(check(graph, ints({0, -1, 2, 1}, {2, 2}), {{"E", 5}}),
            "input 'keys' states the range 0..5, and holds -1 at [0, 1]");
}

TEST(CheckInputs, TypesMustAgree) {
  tensor::Builder b;
  b.input("keys", {Form(1)}, DType::I32);
  const tensor::Graph graph = b.finish();
  EXPECT_EQ(check(graph, ints({1}, {1}, DType::I64)), "input 'keys' is i32, and the array given is i64[1]");
  EXPECT_EQ(check_inputs(graph, {}, {}).error().message, "input 'keys' is not given");
}

TEST(CheckInputs, SortedMeansEachRow) {
  tensor::Builder b;
  b.input("keys", {Form(2), Form(3)}, DType::I32);
  tensor::Graph graph = b.finish();
  std::get<tensor::Input>(graph.nodes[0]).sorted = true;
  EXPECT_EQ(check(graph, ints({1, 2, 2, -5, 0, 9}, {2, 3})), "fine");
  EXPECT_EQ(check(graph, ints({1, 2, 2, 3, 0, 9}, {2, 3})),
            "input 'keys' is stated as sorted, and its element at [1, 1] is below the one before it");
  // Through strides: the same rows, reversed, are not.
  const Array a = ints({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(check(graph, *runtime::view(a, 2, {2, 3}, {3, -1})),
            "input 'keys' is stated as sorted, and its element at [0, 1] is below the one before it");
}

TEST(CheckInputs, SortedFloatsHoldNoNan) {
  tensor::Builder b;
  b.input("keys", {Form(3)}, DType::F32);
  tensor::Graph graph = b.finish();
  std::get<tensor::Input>(graph.nodes[0]).sorted = true;
  const Array keys = *runtime::allocate(DType::F32, {3});
  runtime::set_float(keys, 1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(check(graph, keys), "fine");
}

// out[keys[i]] = i without a monoid: two equal keys meet, unless they are off the target or off the domain.
TEST(CheckInputs, InjectiveScattersMustNotMeet) {
  tensor::Builder b;
  const tensor::Value keys = b.input("keys", {Form(4)}, DType::I32);
  tensor::Scatter scatter;
  scatter.name = "out";
  scatter.indices = {{"i", Form(4), tensor::Role::Point}};
  scatter.domain = view::Formula::less(Form::index(0), Form(3));
  scatter.reads = {{keys, {Form::index(0)}, {}}};
  scatter.body = b.f32(1);
  scatter.extents = {Form(10)};
  scatter.coords = {Form::data(0)};
  b.output("out", b.scatter(scatter));
  const tensor::Graph graph = b.finish();
  EXPECT_EQ(check(graph, ints({3, 4, 5, 3}, {4})), "fine");    // the last point is off the domain
  EXPECT_EQ(check(graph, ints({-1, 4, -1, 0}, {4})), "fine");  // off the target
  EXPECT_EQ(check(graph, ints({3, 4, 3, 0}, {4})),
            "'out' is stated as injective, and two of its points meet at [3]");
}

}  // namespace
}  // namespace lemma::driver
