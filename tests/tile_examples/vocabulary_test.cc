// What the words of hand-written tile programs do, run by the block interpreter and through C on one thread and on four.
#include <gtest/gtest.h>

#include "lemma/driver/tile_program.h"
#include "lemma/runtime/host.h"
#include "lemma/tile/parse.h"
#include "tests/support/programs.h"

namespace lemma {
namespace {

using testing_support::NamedValues;
using testing_support::Runner;
using testing_support::Values;

base::Result<driver::Compiled> compiled(const std::string& text) {
  LEMMA_TRY(tile::Program program, tile::parse(text, "test.tile"));
  driver::CompileOptions options;
  options.target = runtime::host_target();
  return driver::compile_tiles(std::move(program), options);
}

base::Result<NamedValues> interpreted(const driver::Compiled& program, const std::vector<tensor::Binding>& sizes,
                                      const NamedValues& inputs, std::vector<std::string>* printed = nullptr) {
  driver::Arguments arguments;
  arguments.sizes = sizes;
  for (const auto& [name, values] : inputs) {
    LEMMA_TRY(runtime::Array array, testing_support::guarded_array(values));
    arguments.inputs.push_back({name, std::move(array)});
  }
  LEMMA_TRY(const std::vector<runtime::Named> outputs, driver::interpret_tiles(program, arguments, [&](const std::string& line) {
    if (printed) printed->push_back(line);
  }));
  NamedValues out;
  for (const runtime::Named& named : outputs) out[named.name] = testing_support::values_of(named.array);
  return out;
}

// The output `y` of a program, both ways; they must be `expected`.
void expect_both(const std::string& text, const std::vector<tensor::Binding>& sizes, const NamedValues& inputs,
                 const std::vector<double>& expected, bool interpret = true) {
  auto program = compiled(text);
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  if (interpret) {
    auto found = interpreted(*program, sizes, inputs);
    ASSERT_TRUE(found.ok()) << base::render(found.error());
    EXPECT_EQ(found->at("y").data, expected) << "interpreted";
  }
  auto runner = Runner::load(*program, runtime::host_target());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error()) << program->c_source;
  for (int threads : {1, 4}) {
    auto found = runner->run(sizes, inputs, threads);
    ASSERT_TRUE(found.ok()) << base::render(found.error());
    EXPECT_EQ(found->at("y").data, expected) << threads << " threads";
  }
}

std::string refusal(const std::string& text, const std::vector<tensor::Binding>& sizes, const NamedValues& inputs) {
  auto program = compiled(text);
  if (!program.ok()) return base::render(program.error());
  auto found = interpreted(*program, sizes, inputs);
  return found.ok() ? "" : found.error().message;
}

Values floats(std::vector<double> data) { return {scalar::DType::F32, {int64_t(data.size())}, std::move(data)}; }

TEST(Vocabulary, BlocksCombineIntoOneElement) {
  std::vector<double> x;
  double sum = 0;
  for (int i = 0; i < 203; ++i) sum += x.emplace_back(i % 17 - 8);
  for (const char* how : {"", "bulk async", "ordered by b"}) {
    const std::string text = std::string(R"(program p {
      size N
      input x f32[N]
      output y f32[2]
      kernel zero { map () { y[0] = 0; y[1] = -100 } }
      kernel main grid (b < ceildiv(N, 4)) {
        fragment t f32[4], part, most f32[1]
        copy x[b*4 +: 4] -> t fill 0
        reduce part[0] = sum(i < 4) t[i]
        reduce most[0] = max(i < 4 : b*4 + i < N) t[i]
        combine sum part -> y[0 +: 1] )") + how + "\n combine max most -> y[1 +: 1]\n }\n }\n";
    expect_both(text, {{"N", 203}}, {{"x", floats(x)}}, {sum, 8});
  }
}

TEST(Vocabulary, WhatBlocksCombineIntoNothingElseMayTouch) {
  const std::string begin = "program p {\n input x f32[4]\n output y f32[1]\n output z f32[1]\n kernel zero { map () { y[0] = 0; z[0] = 0 } }\n"
                            " kernel main grid (b < 4) {\n fragment t f32[1]\n copy x[b +: 1] -> t\n";
  const NamedValues inputs = {{"x", floats({1, 2, 3, 4})}};
  EXPECT_EQ(refusal(begin + " combine sum t -> y\n }\n}\n", {}, inputs), "");
  EXPECT_NE(refusal(begin + " combine sum t -> y\n map t = y\n }\n}\n", {}, inputs).find("which another block of the grid writes"), std::string::npos);
  EXPECT_NE(refusal(begin + " if b == 1 {\n copy t -> y\n } else {\n combine sum t -> y\n }\n }\n}\n", {}, inputs).find("which another block of the grid writes"), std::string::npos);
  EXPECT_NE(refusal("program p {\n input x f32[4]\n output y f32[1]\n kernel main grid (b < 4) {\n combine sum x[b +: 1] -> y\n }\n}\n", {}, inputs).find("which nothing has written"), std::string::npos);
}

TEST(Vocabulary, APhaseWaitsForAllBlocks) {
  std::vector<double> x, expected;
  for (int i = 0; i < 37; ++i) x.push_back(i);
  for (int i = 0; i < 37; ++i) expected.push_back(2 * x[size_t(36 - i)] + i / 4);
  const std::string text = R"(program p {
    size N
    input x f32[N]
    output y f32[N]
    scratch s f32[N]
    kernel main grid (b < ceildiv(N, 4)) {
      let rows = min(4, N - b*4)
      fragment t f32[4]
      copy x[b*4 +: 4] -> t
      map (i < rows) s[b*4 + i] = t[i] * 2
      phase
      let rows = min(4, N - b*4)
      fragment t f32[4]
      map (i < rows) t[i] = s[N - 1 - b*4 - i] + f32(b)
      copy t -> y[b*4 +: 4]
    }
  })";
  expect_both(text, {{"N", 37}}, {{"x", floats(x)}}, expected);
  // Without it the first block reads what others have yet to write.
  std::string apart = text;
  apart.erase(apart.find("phase"), text.find("fragment t f32[4]\n      map") - text.find("phase") + 17);
  EXPECT_NE(refusal(apart, {{"N", 37}}, {{"x", floats(x)}}).find("which nothing has written"), std::string::npos);
}

TEST(Vocabulary, ExternTextRunsInCAndNowhereElse) {
  const std::string text = R"(program p {
    size N
    input x f32[N]
    output y f32[N]
    kernel main grid (b < ceildiv(N, 4)) {
      local t f32[4]
      copy x[b*4 +: 4] -> t
      extern c reads t writes y values b*4, N {
        "for (int64_t i = 0; i < 4 && $2 + i < $N; ++i) $y[$2 + i] = 3 * $t[i];"
      }
    }
  })";
  const NamedValues inputs = {{"x", floats({1, 2, 3, 4, 5})}};
  expect_both(text, {{"N", 5}}, inputs, {3, 6, 9, 12, 15}, false);
  EXPECT_NE(refusal(text, {{"N", 5}}, inputs).find("text of the dialect c cannot be interpreted"), std::string::npos);
}

TEST(Vocabulary, PrintsValues) {
  auto program = compiled("program p {\n input x f32[2]\n output y f32[2]\n kernel main grid (b < 2) {\n copy x[b +: 1] -> y[b +: 1]\n"
                          " read v = x[b]\n print \"100% of {}: {}\" b, v / 2\n }\n}\n");
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  std::vector<std::string> printed;
  ASSERT_TRUE(interpreted(*program, {}, {{"x", floats({3, 5})}}, &printed).ok());
  EXPECT_EQ(printed, (std::vector<std::string>{"100% of 0: 1.5", "100% of 1: 2.5"}));
  auto runner = Runner::load(*program, runtime::host_target());
  ASSERT_TRUE(runner.ok());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(runner->run({}, {{"x", floats({3, 5})}}, 1).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "100% of 0: 1.5\n100% of 1: 2.5\n");
}

TEST(Vocabulary, TheInterpreterHoldsAnAssumption) {
  const std::string text = "program p {\n size N\n input x f32[N]\n output y f32[N]\n kernel main {\n assume N <= 2 : \"few\"\n copy x -> y\n }\n}\n";
  EXPECT_EQ(refusal(text, {{"N", 2}}, {{"x", floats({1, 2})}}), "");
  EXPECT_NE(refusal(text, {{"N", 3}}, {{"x", floats({1, 2, 3})}}).find("what is assumed does not hold: few"), std::string::npos);
  expect_both(text, {{"N", 3}}, {{"x", floats({1, 2, 3})}}, {1, 2, 3}, false);
}

TEST(Vocabulary, PartsTransposesAndWholeTiles) {
  const std::string text = R"(program p {
    input x f32[2, 3]
    output y f32[3, 2]
    kernel main {
      fragment t f32[3, 2], two f32[3, 2] = 2
      copy x^T -> t
      let row = t[1, ..]
      let both = t[1 +: 2, ..]
      map row = row * 10
      let pair = two[1 +: 2, ..]
      map both += pair * 100
      map (i < 2) where i == 0 else -1 { both[1, i] = both[1, i] + f32(i) }
      copy t -> y
    }
  })";
  expect_both(text, {}, {{"x", {scalar::DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}}}}, {1, 4, 220, 250, 203, -1});
}

TEST(Vocabulary, MacrosBindNewNamesAndHandValuesOut) {
  const std::string text = R"(program p {
    input x f32[4]
    output y f32[4]
    macro twice(t) { map (i < 4) t[i] = t[i] * 2 }
    macro four_times(t) {
      twice(t)
      twice(t)
    }
    macro more(v, by, out) { def step = by * 10; def out = v + f32(step) }
    kernel main {
      fragment t f32[4]
      copy x -> t
      four_times(t)
      map (i < 4) {
        more(t[i], 1 + 1, a)
        more(a, 3, c)
        y[i] = c
      }
    }
  })";
  expect_both(text, {}, {{"x", floats({1, 2, 3, 4})}}, {54, 58, 62, 66});
}

// The test vectors that come with Random123, the reference implementation.
TEST(Vocabulary, PhiloxGivesTheReferenceValues) {
  const auto text = [](const std::vector<uint32_t>& counter, const std::vector<uint32_t>& key) {
    std::string arguments;
    for (const auto* list : {&counter, &key}) {
      for (uint32_t v : *list) arguments += "const[u32](" + std::to_string(v) + "), ";
    }
    return "program p {\n output y u32[4]\n kernel main {\n map () {\n philox4x32(" + arguments + "a, b, c, d)\n y[0] = a; y[1] = b; y[2] = c; y[3] = d\n }\n }\n}\n";
  };
  const uint32_t ones = 0xffffffff;
  expect_both(text({0, 0, 0, 0}, {0, 0}), {}, {}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_both(text({ones, ones, ones, ones}, {ones, ones}), {}, {}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_both(text({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), {}, {}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Vocabulary, RandomNumbersHaveTheirMoments) {
  auto program = compiled(R"(program p {
    size N
    output u f32[N]
    output z f32[N]
    kernel main grid (b < ceildiv(N, 64)) {
      map (i < 64) where b*64 + i < N {
        philox_uniform(123, b*64 + i, a)
        philox_normal(124, b*64 + i, c)
        u[b*64 + i] = a
        z[b*64 + i] = c
      }
    }
  })");
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  auto runner = Runner::load(*program, runtime::host_target());
  ASSERT_TRUE(runner.ok()) << base::render(runner.error());
  const int n = 40000;
  auto found = runner->run({{"N", n}}, {}, 2);
  ASSERT_TRUE(found.ok()) << base::render(found.error());
  const auto moments = [&](const std::string& name) {
    double sum = 0, squares = 0;
    for (double v : found->at(name).data) sum += v;
    for (double v : found->at(name).data) squares += (v - sum / n) * (v - sum / n);
    return std::pair(sum / n, squares / n);
  };
  // Six standard errors.
  EXPECT_NEAR(moments("u").first, 0.5, 0.009);
  EXPECT_NEAR(moments("u").second, 1.0 / 12, 0.0023);
  EXPECT_NEAR(moments("z").first, 0, 0.03);
  EXPECT_NEAR(moments("z").second, 1, 0.043);
  for (double v : found->at("u").data) ASSERT_TRUE(v >= 0 && v < 1) << v;
}

}  // namespace
}  // namespace lemma
