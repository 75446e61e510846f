// Whatever the text, the answer is a graph or a message.
#include <gtest/gtest.h>

#include <random>

#include "lemma/language/language.h"
#include "lemma/tensor/print.h"

namespace lemma::language {
namespace {

// A message has a sentence and, but for the graph's own rules, a place.
void expect_answer(const std::string& text) {
  const auto graph = parse(text, "hostile");
  if (graph.ok()) {
    EXPECT_FALSE(tensor::print(*graph).empty() && !graph->nodes.empty());
  } else {
    EXPECT_FALSE(graph.error().message.empty());
    EXPECT_FALSE(base::render(graph.error()).empty());
  }
}

std::string repeat(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

TEST(Hostile, nesting_and_length) {
  const std::string head = "dim N\ninput x[N]\n";
  for (const std::string& text : {
           repeat("(", 100000), "y = " + repeat("-", 100000) + "1", "y = " + repeat("not ", 100000) + "true", head + "y[i] = " + repeat("exp(", 5000) + "x[i]" + repeat(")", 5000),
           head + "y[i] = x[i]" + repeat(" else 0", 50000), head + "y[i] = " + repeat("sum(j) ", 20000) + "x[i]", head + "y[i] = x" + repeat("[x", 3000), repeat("{", 1000), repeat("def f(", 3000),
           "dim D = " + repeat("2 * ", 60) + "2", "dim D = " + repeat("(2*", 30) + "1" + repeat(")", 30), head + "y[i] = x[" + repeat("1099511627776*", 8) + "i]",
           head + "y[i] = x[" + repeat("(", 20) + "i" + repeat("//3+1)*7", 20) + "]?", head + "y[i] = sum(j : " + repeat("(j < i or j > 2*i) and ", 30) + "true) x[j]",
           head + "y[i] = sum(j : " + repeat("j != i + 1 and j != 2 * i and ", 30) + "true) x[j]",
       }) {
    expect_answer(text);
  }
  // Long flat texts are fine.
  std::string sum = head + "y[i] = x[i]" + repeat(" + x[i]", 20000) + "\noutput y";
  EXPECT_TRUE(parse(sum, "flat").ok());
}

TEST(Hostile, functions_that_grow) {
  std::string text = "dim N\ninput x[N]\ndef d0(j) x = x - max(j) x\n";
  for (int i = 1; i < 60; ++i) text += "def d" + std::to_string(i) + "(j) x = d" + std::to_string(i - 1) + "(j) (x + d" + std::to_string(i - 1) + "(j) x)\n";
  expect_answer(text + "y[i] = d59(i) x[i]\n");
  std::string calls = "dim N\ninput x[N]\ndef g(j) x = x - max(j) x\ny[i] = ";
  for (int i = 0; i < 30; ++i) calls += "g(i) (";
  calls += "x[i]" + repeat(")", 30);
  expect_answer(calls);
  std::string lets = "dim N\ninput x[N]\ny[i] = t3000 where t0 = x[i]";
  for (int i = 1; i <= 3000; ++i) lets += ", t" + std::to_string(i) + " = t" + std::to_string(i - 1) + " * t" + std::to_string(i - 1);
  const auto graph = parse(lets + "\noutput y", "lets");
  EXPECT_TRUE(graph.ok()) << base::render(graph.error());
}

TEST(Hostile, random_bytes_and_tokens) {
  const unsigned seed = 20240611;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  const std::vector<std::string> words = {
      "dim ", "input ", "output ", "def ", "monoid ", "update ", "N", "M", "x", "y", "e", "i", "j", "k", "[", "]", "(", ")", "{", "}", ",", ":", ";", "\n", "=", "==", "<", "<=", ">", "+", "-", "*", "/",
      "//", "%", "?", "else ", "and ", "or ", "not ", "scan ", "sum", "max", "topk[2]", "argmax", "softmax", "select(", "when(", "1", "0.5", "inf", "nan", "-1", "1099511627776", "f32(", "i32(", "bool", " where ", " onto ", "in ", "..", "|", "like ", "final ", "initial = ", "exclusive", "x.a", "y.a", "state a", "identity a = 0", "combine a = x.a", "count", "at(i = ", "raw(", "present(", "\"q\"", "#", "x[i]", "e[i]", "i < N", "sum(i) ", "sum=", "pair[sum, max]", "affine", "rescaled_sum"};
  const std::string head = "dim N, M = 4\ninput x[N, M] : f32, e[N] : i32, b[N] : bool\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    if (round % 4 == 0) {
      for (int n = int(random() % 60); n > 0; --n) text += char(random() % 256);
    } else {
      if (round % 4 > 1) text = head + (round % 4 == 2 ? "z[i] = " : "z[i, j] = ");
      for (int n = int(random() % 40); n > 0; --n) text += words[random() % words.size()];
    }
    SCOPED_TRACE(text);
    expect_answer(text);
  }
}

TEST(Hostile, programs_with_a_byte_changed) {
  const unsigned seed = 7;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  const std::string good =
      "dim N, V, D = 8\ninput q[N, D], w[V, D] : f32, e[N] : i32 in 0..V\ns[i,j] = sum(d) q[i,d] * w[e[j],d] / sqrt(D)\n"
      "p[i,j] = softmax(j : j <= i and e[j] > 2*i - 3) s[i,j]\no[i] = (sum(j) p[i,j] * q[j, (i + j) % D]) + (q[i - 1, 0] else 1)\n"
      "(v, a)[i, k] = topk[2](j) s[i, j]\nz[e[i] < V] sum= o[i] onto 0\nt[i] = scan max(i, reverse) o[i]\noutput o, v, z, t\n";
  EXPECT_TRUE(parse(good, "good").ok()) << base::render(parse(good, "good").error());
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (int n = 1 + int(random() % 3); n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = good[random() % good.size()]; break;
        case 1: text.erase(at, 1 + random() % 4); break;
        default: text.insert(at, good.substr(random() % good.size(), random() % 12));
      }
    }
    SCOPED_TRACE(text);
    expect_answer(text);
  }
}

}  // namespace
}  // namespace lemma::language
