#include <gtest/gtest.h>

#include "lemma/driver/execute.h"
#include "lemma/tensor/builder.h"

namespace lemma::driver {
namespace {

using view::Form;

runtime::Named array(const std::string& name, std::vector<int64_t> extents,
                     scalar::DType type = scalar::DType::F32) {
  return {name, *runtime::allocate(type, std::move(extents))};
}

// x[N, M], y[2*N + 1], z[N*M], w[64].
tensor::Graph graph() {
  tensor::Builder b;
  const Form n = b.size("N"), m = b.size("M");
  b.input("x", {n, m});
  b.input("y", {n * Form(2) + Form(1)});
  b.input("z", {n * m});
  b.input("w", {Form(64)});
  return b.finish();
}

std::string message(const Arguments& arguments) {
  const auto sizes = infer_sizes(graph(), arguments);
  if (!sizes) return sizes.error().message;
  std::string out;
  for (const tensor::Binding& size : *sizes) out += size.name + "=" + std::to_string(size.value) + " ";
  return out;
}

TEST(Sizes, ComeFromShapesInAnyOrder) {
  EXPECT_EQ(message({{array("x", {3, 5})}, {}}), "N=3 M=5 ");
  EXPECT_EQ(message({{array("z", {15}), array("y", {7})}, {}}), "N=3 M=5 ");  // M from z once N is known
  EXPECT_EQ(message({{array("x", {0, 5})}, {}}), "N=0 M=5 ");
  EXPECT_EQ(message({{}, {{"M", 4}, {"N", 2}}}), "N=2 M=4 ");
}

TEST(Sizes, ConflictsNameBothPlaces) {
  EXPECT_EQ(message({{array("x", {3, 5}), array("y", {9})}, {}}),
            "dimension 0 of input 'y' is 2*N + 1 = 7 (N is 3 by dimension 0 of input 'x'), and the array given is f32[9]");
  EXPECT_EQ(message({{array("y", {9}), array("x", {3, 5})}, {}}),
            "size 'N' is 4 by dimension 0 of input 'y', and 3 by dimension 0 of input 'x'");
  EXPECT_EQ(message({{array("x", {3, 5})}, {{"N", 4}}}), "size 'N' is 4 by the caller, and 3 by dimension 0 of input 'x'");
  EXPECT_EQ(message({{array("x", {3, 5}), array("z", {14})}, {}}),
            "dimension 0 of input 'z' is N*M = 15 (N is 3 by dimension 0 of input 'x', M is 5 by dimension 1 of input 'x'), "
            "and the array given is f32[14]");
  EXPECT_EQ(message({{array("x", {3, 5}), array("w", {65})}, {}}),
            "dimension 0 of input 'w' is 64, and the array given is f32[65]");
  EXPECT_EQ(message({{array("y", {8})}, {{"M", 1}}}), "size 'N' has no value: no input's shape tells it");
}

TEST(Sizes, WrongRanksAndNamesAreRefused) {
  EXPECT_EQ(message({{array("x", {3})}, {}}), "input 'x' has 2 dimensions, and the array given is f32[3]");
  EXPECT_EQ(message({{array("q", {3})}, {}}), "the program has no input 'q'");
  EXPECT_EQ(message({{}, {{"K", 3}}}), "the program has no size 'K'");
  EXPECT_EQ(infer_sizes(graph(), {{}, {{"K", 3}}}).error().suggestion, "its sizes are N, M");
}

TEST(Sizes, TypicalValuesFillInWhereAsked) {
  tensor::Graph g = graph();
  g.sizes[0].typical = 12;
  g.sizes[1].typical = 7;
  const auto sizes = infer_sizes(g, {{array("y", {7})}, {}}, true);
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ((*sizes)[0].value, 3);
  EXPECT_EQ((*sizes)[1].value, 7);
  EXPECT_FALSE(infer_sizes(g, {}, false).ok());
}

}  // namespace
}  // namespace lemma::driver
