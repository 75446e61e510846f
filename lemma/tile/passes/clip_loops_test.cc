// Which iterations and masks leave, as text; and that nothing changes, on random programs and sizes.
#include "lemma/tile/passes/clip_loops.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "lemma/tile/parse.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {
namespace {

Program parsed(const std::string& text) {
  auto p = parse(text, "test");
  if (!p.ok()) ADD_FAILURE() << base::render(p.error()) << text;
  return p.ok() ? *std::move(p) : Program();
}

std::string rows(const std::string& body, const std::string& before = "") {
  return "program p {\n  size N, M\n  input a f32[N, M]\n  input b f32[N, M]\n  output y f32[N]\n"
         "  kernel k grid (x < ceildiv(N, 4)) {\n    fragment acc f32[4]\n    fragment s f32[4, 3]\n    fragment w f32[4, 3]\n"
         "    map (i < 4) { acc[i] = 0 }\n" + before +
         "    for t in 0 .. ceildiv(M, 3) {\n" + body + "    }\n"
         "    map (i < 4) where x*4 + i < N { y[x*4 + i] = acc[i] }\n  }\n}\n";
}

const char* kCausal =
    "      copy (i < 4, j < 3) a[x*4 + i, t*3 + j] -> s[i, j] fill 0\n"
    "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where t*3 + j <= x*4 + i and t*3 + j < M {\n"
    "        element s[i, j]\n        state acc[i]\n      }\n";

std::vector<float> outputs(const Program& p, int64_t n, int64_t m) {
  std::vector<float> a(size_t(n * m)), b(size_t(n * m)), y(size_t(n), NAN);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = float(i % 17) * 0.37f - 2;
    b[i] = float(i % 5) - 1;
  }
  const std::vector<Argument> arguments{{a.data(), n * m}, {b.data(), n * m}, {y.data(), n}};
  const std::vector<SizeValue> sizes{{"N", n}, {"M", m}};
  auto done = run(p, sizes, arguments);
  EXPECT_TRUE(done.ok()) << base::render(done.error()) << print(p);
  return y;
}

void expect_same(const Program& before, const std::string& note = "") {
  const Program after = clip_loops(before);
  auto valid = validate(after);
  ASSERT_TRUE(valid.ok()) << base::render(valid.error()) << print(after);
  for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}, {4, 3}, {5, 7}, {9, 2}, {3, 20}, {13, 13}, {6, 0}}) {
    EXPECT_EQ(outputs(before, n, m), outputs(after, n, m)) << note << " N=" << n << " M=" << m << "\n" << print(before) << print(after);
  }
}

size_t loops(const Program& p) {
  const std::string text = print(p);
  size_t count = 0;
  for (size_t at = 0; (at = text.find("for t in", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(ClipLoops, CausalTilesSkipAndSplit) {
  const Program before = parsed(rows(kCausal));
  const Program after = clip_loops(before);
  EXPECT_EQ(loops(after), 2u) << print(after);
  const std::string text = print(after);
  // The full tiles come first and have no mask; the last loop keeps it and ends at the diagonal.
  const size_t first = text.find("for t in"), second = text.find("for t in", first + 1), where = text.find("accumulate where", first);
  EXPECT_GT(where, second) << text;
  EXPECT_NE(text.find("min(", second), std::string::npos) << text;
  expect_same(before);
}

TEST(ClipLoops, AWindowHasPartialTilesOnBothSides) {
  const Program before = parsed(rows(
      "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where t*3 + j <= x*4 + i and x*4 + i <= t*3 + j + 9 and t*3 + j < M and x*4 + i < N {\n"
      "        element a[x*4 + i, t*3 + j]\n        state acc[i]\n      }\n"));
  const Program after = clip_loops(before);
  EXPECT_EQ(loops(after), 3u) << print(after);
  expect_same(before);
}

TEST(ClipLoops, AnEffectWithoutADomainKeepsEveryIteration) {
  const Program before = parsed(rows(
      "      map (i < 4) { acc[i] = acc[i] + 1 }\n"
      "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where t*3 + j <= x*4 + i and t*3 + j < M and x*4 + i < N {\n"
      "        element a[x*4 + i, t*3 + j]\n        state acc[i]\n      }\n"));
  const Program after = clip_loops(before);
  EXPECT_EQ(print(after).find("x*4 + 3"), std::string::npos);
  expect_same(before);
}

TEST(ClipLoops, AnotherUseOfAFilledBufferKeepsEveryIteration) {
  std::string text = rows(kCausal);
  // The last tile copied is read after the loop.
  text.replace(text.find("    map (i < 4) where x*4"), 0, "    map (i < 4) { acc[i] = acc[i] + w[i, 0] }\n");
  text.replace(text.find("      reduce"), 0, "      map (i < 4, j < 3) { w[i, j] = s[i, j] + f32(t) }\n");
  text.replace(text.find("    for t"), 0, "    map (i < 4, j < 3) { w[i, j] = 0 }\n");
  expect_same(parsed(text));
}

TEST(ClipLoops, AZeroTileMakesAnEmptyProduct) {
  const Program before = parsed(rows(
      "      fragment r f32[4, 1]\n      fragment one f32[3, 1]\n"
      "      map (j < 3) { one[j, 0] = 1 }\n"
      "      copy (i < 4, j < 3) a[x*4 + i, t*3 + j] -> s[i, j] fill 0\n"
      "      map (i < 4, j < 3) where t*3 + j <= x*4 + i { w[i, j] = s[i, j] * 2, else 0 }\n"
      "      gemm (i < 4, n < 1, j < 3) acc2[i, n] += w[i, j] * one[j, n]\n",
      "    fragment acc2 f32[4, 1]\n    map (i < 4) { acc2[i, 0] = 0 }\n"));
  Program with = before;
  const Program after = clip_loops(before);
  EXPECT_EQ(loops(after), 2u) << print(after);
  expect_same(before);
}

TEST(ClipLoops, BoundsMayComeFromLetsAndBeNegative) {
  const Program before = parsed(rows(
      "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where t*3 + j < n and t*3 + j < M and x*4 + i < N {\n"
      "        element a[x*4 + i, t*3 + j]\n        state acc[i]\n      }\n",
      "    let n = N - x*5 - 2\n"));
  EXPECT_EQ(loops(clip_loops(before)), 2u);
  expect_same(before);
}

TEST(ClipLoops, ALimitThatTheLoopHasAlreadyIsNotRepeated) {
  const std::string text = print(clip_loops(parsed(rows(
      "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where t*3 + j < M and x*4 + i < N {\n"
      "        element a[x*4 + i, t*3 + j]\n        state acc[i]\n      }\n"))));
  EXPECT_NE(text.find("for t in 0 .. min((M + 2) // 3, M // 3) {"), std::string::npos) << text;
  EXPECT_NE(text.find("for t in max(0, M // 3) .. (M + 2) // 3 {"), std::string::npos) << text;
}

TEST(ClipLoops, RandomDomains) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](int low, int high) { return low + int(random() % unsigned(high - low + 1)); };
    auto form = [&]() {
      std::string out;
      const char* atoms[] = {"t", "i", "j", "x", "N", "M"};
      for (const char* a : atoms) {
        if (const int c = pick(-4, 4); c != 0 && pick(0, 2) > 0) out += (out.empty() ? "" : " + ") + std::to_string(c) + "*" + a;
      }
      return (out.empty() ? std::string("t") : out) + " + " + std::to_string(pick(-9, 9));
    };
    auto condition = [&]() {
      std::string out = "0 <= " + form();
      if (pick(0, 2) == 0) out += (pick(0, 1) ? " and 0 <= " : " or 0 <= ") + form();
      if (pick(0, 9) == 0) out += " and (" + form() + ") == 0";
      return "(" + out + ") and t*3 + j < M and x*4 + i < N";
    };
    std::string body;
    const int statements = pick(1, 3);
    for (int s = 0; s < statements; ++s) {
      switch (pick(0, 3)) {
        case 0:
          body += "      copy (i < 4, j < 3) " + std::string(pick(0, 1) ? "a" : "b") + "[x*4 + i, t*3 + j] -> s[i, j] fill 0\n"
                  "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where " + condition() + " {\n        element s[i, j]\n        state acc[i]\n      }\n";
          break;
        case 1:
          body += "      map (i < 4, j < 3) where " + condition() + " { acc[i] += a[x*4 + i, t*3 + j] }\n";
          break;
        case 2:
          body += "      map (i < 4, j < 3) where " + condition() + " { w[i, j] = b[x*4 + i, t*3 + j], else 0 }\n"
                  "      reduce (i < 4) over (j < 3) by max[f32] accumulate where " + condition() + " {\n        element w[i, j]\n        state acc[i]\n      }\n";
          break;
        default:
          body += "      reduce (i < 4) over (j < 3) by sum[f32] accumulate where " + condition() + " {\n"
                  "        element a[x*4 + i, t*3 + j] * f32(t + 1)\n        state acc[i]\n      }\n";
      }
    }
    std::string text = rows(body);
    const int begin = pick(-2, 3), step = pick(1, 3);
    // From negative begins on the domain's own conditions keep reads inside.
    for (size_t at = 0; (at = text.find("t*3 + j < M", at)) != std::string::npos; at += 22) text.replace(at, 11, "0 <= t*3 + j and t*3 + j < M");
    text.replace(text.find("for t in 0 .. ceildiv(M, 3)"), 27, "for t in " + std::to_string(begin) + " .. ceildiv(M, 3), step " + std::to_string(step));
    expect_same(parsed(text), "seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace lemma::tile
