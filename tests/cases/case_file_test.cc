// The reader of case files, the generator of inputs and the comparison of digests, by values.
#include "tests/cases/case_file.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lemma::cases {
namespace {

std::vector<double> generated(const std::string& expression, const std::vector<int64_t>& extents) {
  auto values = generate(expression, extents);
  EXPECT_TRUE(values.ok()) << base::render(values.error());
  return values.ok() ? *values : std::vector<double>{};
}

TEST(Generate, HashesAreThePublishedOnes) {
  // From an implementation in another language.
  const std::vector<double> u = generated("U(101)", {3});
  EXPECT_EQ(u, (std::vector<double>{0.01143956184387207, 0.47225964069366455, 0.3899538516998291}));
  EXPECT_EQ(generated("I(1802, 10)", {4}), (std::vector<double>{7, 1, 0, 1}));
}

TEST(Generate, Expressions) {
  EXPECT_EQ(generated("10*i0 + i1", {2, 3}), (std::vector<double>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(generated("flat // 2 % 2", {5}), (std::vector<double>{0, 0, 1, 1, 0}));
  EXPECT_EQ(generated("pick(4, -inf, 2)", {3}), (std::vector<double>{4, -INFINITY, 2}));
  EXPECT_EQ(generated("i0 == 1 or i0 >= 2 and not (i0 == 3)", {4}), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(generated("-5 % 3 - 2*i0", {2}), (std::vector<double>{1, -1}));
  EXPECT_EQ(generated("7", {}), (std::vector<double>{7}));
  EXPECT_EQ(generated("U(5, 2)", {1})[0], generated("U(5)", {3})[2]);
  EXPECT_FALSE(generate("j + 1", {2}).ok());
}

TEST(ParseCase, RunsInheritWhatStandsBeforeThem) {
  auto file = parse_case("x", "# O-99. Title.\n# sizes: N=2 M=3\n# input: a = U(1)\n# absolute: y 0.5\n# run: small M=1\n"
                              "# input: a = 2\n# expect: y [1, -inf]\n# run: large M=9\n# expect: y (9,) sum=2 l1=3 [0]=1\n");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->runs.size(), 2u);
  EXPECT_EQ(file->runs[0].name, "small");
  EXPECT_EQ(file->runs[0].inputs.at("a"), "2");
  EXPECT_EQ(file->runs[1].inputs.at("a"), "U(1)");
  EXPECT_EQ(file->runs[0].expectations.size(), 1u);
  EXPECT_EQ(file->runs[0].expectations[0].minus_infinities, 1);
  EXPECT_EQ(file->runs[1].expectations[0].shape, (std::vector<int64_t>{9}));
  int64_t m = 0;
  for (const auto& size : file->runs[1].sizes) m += size.name == "M" ? size.value : 0;
  EXPECT_EQ(m, 9);
  EXPECT_EQ(file->absolute.at("y"), 0.5);
}

TEST(Unmet, SeesEveryKindOfDifference) {
  auto file = parse_case("x", "# expect: y (2, 2) sum=3 l1=5 [0]=-1 [3]=4\n");
  const Expectation& e = file->runs[0].expectations[0];
  EXPECT_EQ(unmet(e, {2, 2}, {-1, 0, 0, 4}, 1e-9), "");
  EXPECT_NE(unmet(e, {4}, {-1, 0, 0, 4}, 1e-9), "");
  EXPECT_NE(unmet(e, {2, 2}, {-1, 0, 0, 4.0001}, 1e-9), "");
  EXPECT_NE(unmet(e, {2, 2}, {-1, 1, -1, 4}, 1e-9), "");
  EXPECT_NE(unmet(e, {2, 2}, {-1, NAN, 0, 4}, 1e-9), "");
  EXPECT_NE(unmet(e, {2, 2}, {-1, 0, -INFINITY, 4}, 1e-9), "");
}

}  // namespace
}  // namespace lemma::cases
