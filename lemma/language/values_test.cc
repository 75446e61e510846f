// Programs and their values, by the oracle, against values worked out by hand or by plain loops.
#include <cmath>

#include "lemma/language/testing.h"

namespace lemma::language {
namespace {

TEST(Values, causal_attention_sums_over_the_domain_only) {
  const auto out = run(R"(
dim N, D = 2
input q[N, D], k[N, D], v[N, D]
s[i, j] = sum(d) q[i, d] * k[j, d] / sqrt(D)
p[i, j] = softmax(j : j <= i) s[i, j]
o[i, c] = sum(j) p[i, j] * v[j, c]
output o)", {{"N", 3}}, {{"q", {3, 2}, {1, 0, 0, 1, 1, 1}}, {"k", {3, 2}, {1, 2, 3, 4, 5, 6}}, {"v", {3, 2}, {1, 2, 3, 4, 5, nan_value}}});
  ASSERT_EQ(out.size(), 1u);
  const double r = std::sqrt(2.0);
  std::vector<double> expected = {1, 2};
  const double e0 = std::exp(2 / r), e1 = std::exp(4 / r);
  expected.push_back((e0 * 1 + e1 * 3) / (e0 + e1));
  expected.push_back((e0 * 2 + e1 * 4) / (e0 + e1));
  const double a = std::exp(3 / r), b = std::exp(7 / r), c = std::exp(11 / r);
  expected.push_back((a * 1 + b * 3 + c * 5) / (a + b + c));
  expected.push_back(nan_value);
  expect_near(out[0], expected);
}

TEST(Values, softmax_and_logsumexp_keep_their_edges) {
  const auto out = run(R"(
dim R, N
input x[R, N] : f32, n[R] : i32
p[r, j] = softmax(j : j < n[r]) x[r, j]
l[r] = logsumexp(j : j < n[r]) x[r, j]
q[r, j] = p[r, j] else -1
output q, l)", {{"R", 4}, {"N", 3}},
                       {{"x", {4, 3}, {1, 2, 3, -inf_value, -inf_value, 7, inf_value, 1, 2, 5, 5, 5}}, {"n", {4}, {2, 2, 3, 0}}});
  ASSERT_EQ(out.size(), 2u);
  const double a = 1 / (1 + std::exp(1.0));
  expect_near(out[0], {a, 1 - a, -1, 0, 0, -1, nan_value, nan_value, nan_value, -1, -1, -1});
  expect_near(out[1], {2 + std::log(1 + std::exp(-1.0)), -inf_value, inf_value, -inf_value});
}

TEST(Values, guards_and_else) {
  const auto out = run(R"(
dim N
input x[N]
a[i < N] = x[i - 1] else 0
b[i < N + 2] = (x[i] * x[i - 1]) else -1
c[i < N] = sum(r < 3) x[i + r - 1]?
d[i < N] = count(r < 3) x[i + r - 1]?
e[i < N] = select(i > 0, x[i - 1], 7)
f[i < N] = x[N - 1 - i]
output a, b, c, d, e, f)", {{"N", 3}}, {{"x", {3}, {2, 3, 5}}});
  ASSERT_EQ(out.size(), 6u);
  expect_near(out[0], {0, 2, 3});
  expect_near(out[1], {-1, 6, 15, -1, -1});
  expect_near(out[2], {5, 10, 8});
  expect_near(out[3], {2, 3, 2});
  expect_near(out[4], {7, 2, 3});
  expect_near(out[5], {5, 3, 2});
}

// A guard that holds nowhere on a run ended beyond the run; enough rows that runs lie one behind another.
TEST(Values, guards_that_hold_nowhere_on_a_run) {
  Given x{"x", {33}, {}};
  for (int i = 0; i < 33; ++i) x.values.push_back(i + 1);
  const auto out = run(R"(
dim B, C
input x[B]
y[l < C, j < B] = select(j < 3 or l > 5, 1, (x[j*2 - 1] else 0))
output y)", {{"B", 33}, {"C", 63}}, {x});
  ASSERT_EQ(out.size(), 1u);
  ASSERT_EQ(out[0].size(), 63u * 33u);
  for (int l = 0; l < 63; ++l) {
    for (int j = 0; j < 33; ++j) {
      const double expected = j < 3 || l > 5 ? 1 : 2 * j - 1 < 33 ? 2 * j : 0;
      ASSERT_EQ(out[0][size_t(l * 33 + j)], expected) << l << " " << j;
    }
  }
}

TEST(Values, max_of_nothing_is_the_end_of_its_stored_type) {
  const auto out = run(R"(
dim N, M
input x[N, M] : i32
a[i] : i8 = max(j) x[i, j]
b[i] : i16 = min(j) x[i, j]
c[i] = max(j) x[i, j]
d[i] : i8 = max(j) x[i, j] * 200
output a : i8, b : i16, c : i8, d : i8)", {{"N", 1}, {"M", 0}}, {{"x", {1, 0}, {}}});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0], std::vector<double>{-128});
  EXPECT_EQ(out[1], std::vector<double>{32767});
  EXPECT_EQ(out[2], std::vector<double>{-128});
  EXPECT_EQ(out[3], std::vector<double>{-128});
}

TEST(Values, gathers_drop_keys_out_of_range) {
  const auto out = run(R"(
dim T, V, C = 2
input e[T] : i32, w[V, C] : f32
y[t, c] = w[e[t], c] else 9
s[c] = sum(t) w[e[t], c]
k[t] = w[max(e[t], 0) % V, 1] else 0
output y, s, k)", {{"T", 4}, {"V", 2}}, {{"e", {4}, {1, -1, 0, 2}}, {"w", {2, 2}, {1, 2, 3, 4}}});
  ASSERT_EQ(out.size(), 3u);
  expect_near(out[0], {3, 4, 9, 9, 1, 2, 9, 9});
  expect_near(out[1], {4, 6});
  expect_near(out[2], {4, 2, 2, 2});
}

TEST(Values, scatters) {
  const auto out = run(R"(
dim T, V
input e[T] : i32, x[T] : f32, y[V]
a[e[t] < V] sum= x[t]
b[e[t] < V] max= x[t] onto y
c[e[t] < V] injective= x[t] onto 0
output a, b, c)", {{"T", 3}, {"V", 4}}, {{"e", {3}, {2, 0, 7}}, {"x", {3}, {5, 6, 7}}, {"y", {4}, {1, 1, 9, 1}}});
  ASSERT_EQ(out.size(), 3u);
  expect_near(out[0], {6, 0, 5, 0});
  expect_near(out[1], {6, 1, 9, 1});
  expect_near(out[2], {6, 0, 5, 0});
}

TEST(Values, scans) {
  const auto out = run(R"(
dim T
input x[T], a[T], h0
s[t] = scan sum(t) x[t]
e[t] = scan sum(t, exclusive) x[t]
r[t] = scan sum(t, reverse) x[t]
m[t] = exp(0 * (scan max(t : x[t] > 2) x[t])) * t
(_, h[t], final _, final last) = scan affine(t, initial = (1, h0)) (a[t], x[t])
output s, e, r, h, last)", {{"T", 4}}, {{"x", {4}, {1, 2, 3, 4}}, {"a", {4}, {0.5, 2, 0, 1}}, {"h0", {}, {8}}});
  ASSERT_EQ(out.size(), 5u);
  expect_near(out[0], {1, 3, 6, 10});
  expect_near(out[1], {0, 1, 3, 6});
  expect_near(out[2], {10, 9, 7, 4});
  expect_near(out[3], {5, 12, 3, 7});
  expect_near(out[4], {7});
}

TEST(Values, picks) {
  const auto out = run(R"(
dim R, N
input x[R, N]
a[r] = argmax(i) x[r, i]
b[r] = argmin(i : i > 0) x[r, i]
(v, k)[r, e] = topk[2](i) x[r, i]
output a, b, v, k)", {{"R", 2}, {"N", 3}}, {{"x", {2, 3}, {1, 7, 7, nan_value, 4, 2}}});
  ASSERT_EQ(out.size(), 4u);
  expect_near(out[0], {1, 0});
  expect_near(out[1], {1, 2});
  expect_near(out[2], {7, 7, nan_value, 4});
  expect_near(out[3], {1, 2, 0, 1});
}

TEST(Values, results_with_index_sets_of_their_own) {
  const auto out = run(R"(
dim N, M, C
input s[N, M], v[M, C]
(m[i], l[i], o[i, c]) = rescaled_sum(j : j <= i) (s[i, j], 1, v[j, c])
y[i, c] = o[i, c] / l[i]
output m, y)", {{"N", 2}, {"M", 2}, {"C", 1}}, {{"s", {2, 2}, {1, 9, 0, 0}}, {"v", {2, 1}, {4, 6}}});
  ASSERT_EQ(out.size(), 2u);
  expect_near(out[0], {1, 0});
  expect_near(out[1], {4, 5});
}

TEST(Values, user_monoids) {
  const auto out = run(R"(
dim T, S = 2
input a[T, S, S], u[T, S], x[T]
monoid linear[n](m, v) {
  state A[i < n, k < n], b[i < n]
  identity A[i, k] = select(i == k, 1, 0)
  identity b[i] = 0
  lift A[i, k] = m
  lift b[i] = v
  combine A[i, k] = sum(l) y.A[i, l] * x.A[l, k]
  combine b[i] = y.b[i] + sum(l) y.A[i, l] * x.b[l]
}
monoid length(v) {
  state s
  identity s = 0
  lift s = v * v
  combine s = x.s + y.s
  finish sqrt(s)
  commutative
}
(_[t, i, k], h[t, i]) = scan linear[S](t) (a[t, i, k], u[t, i])
n = length(t) x[t]
output h, n)", {{"T", 2}}, {{"a", {2, 2, 2}, {1, 1, 0, 1, 0, 1, 1, 0}}, {"u", {2, 2}, {1, 2, 3, 4}}, {"x", {2}, {3, 4}}});
  ASSERT_EQ(out.size(), 2u);
  // h0 = u0 = (1, 2); h1 = a1 h0 + u1 = (2, 1) + (3, 4).
  expect_near(out[0], {1, 2, 5, 5});
  expect_near(out[1], {5});
}

TEST(Values, functions_are_hygienic_and_generic) {
  const auto out = run(R"(
dim N, M
input x[N, M], y[N]
def total(j) v = sum(j) v
def centred(j) v { mu = mean(j) v; return v - mu }
def product(a, b, i, k) = sum(j) a[i, j] * b[k, j]
a[i] = total(j) x[i, j] * y[i]
b[j] = total(i) x[i, j]
c[i, j] = centred(j) x[i, j]
d[i, j] = centred(i) x[i, j]
e[i, j] = product(x, x, i, j)
output a, b, c, d, e)", {{"N", 2}, {"M", 2}}, {{"x", {2, 2}, {1, 2, 3, 5}}, {"y", {2}, {10, 100}}});
  ASSERT_EQ(out.size(), 5u);
  expect_near(out[0], {30, 800});
  expect_near(out[1], {4, 7});
  expect_near(out[2], {-0.5, 0.5, -1, 1});
  expect_near(out[3], {-1, -1.5, 1, 1.5});
  expect_near(out[4], {5, 13, 13, 34});
}

TEST(Values, kinds) {
  const auto out = run(R"(
dim N
input a[N] : i8, b[N] : u8, d[N] : f64
s = sum(i) a[i] * i32(b[i])
h[i] = a[i] / 2
q[i] = a[i] // 2 + a[i] % 2
z[i] = d[i] * sqrt(2) + 1 / 3
k[i < N] = i8(300.5 - 1000 * i)
w[i] = (b[i] >> 4) & 15 | (b[i] & 1) << 4
n[i] = i32(d[i] > 1)
output s, h, q, z, k, w, n)", {{"N", 2}}, {{"a", {2}, {-3, 5}}, {"b", {2}, {255, 16}}, {"d", {2}, {1, 2}}});
  ASSERT_EQ(out.size(), 7u);
  expect_near(out[0], {-3 * 255 + 5 * 16});
  expect_near(out[1], {-1.5, 2.5});
  expect_near(out[2], {-1, 3});
  expect_near(out[3], {std::sqrt(2.0) + 1.0 / 3, 2 * std::sqrt(2.0) + 1.0 / 3}, 1e-15);
  expect_near(out[4], {127, -128});
  expect_near(out[5], {31, 1});
  expect_near(out[6], {0, 1});
}

TEST(Values, conditions_over_data_and_floats) {
  const auto out = run(R"(
dim N, B
input doc[N] : i32, x[N] : f32, on[N] : bool, len[B] : i32
a[i] = count(j : doc[i] == doc[j] and j <= i) x[j]
b = sum(i : on[i] and x[i] > 1.5 or i == 0) x[i]
c[n] = sum(j : j < len[n]) x[j]
d[i] = select(on[i], x[i], -x[i])
output a, b, c, d)", {{"N", 3}, {"B", 2}}, {{"doc", {3}, {0, 1, 0}}, {"x", {3}, {1, 2, 3}}, {"on", {3}, {0, 0, 1}}, {"len", {2}, {2, 5}}});
  ASSERT_EQ(out.size(), 4u);
  expect_near(out[0], {1, 1, 2});
  expect_near(out[1], {4});
  expect_near(out[2], {3, 6});
  expect_near(out[3], {-1, -2, 3});
}

TEST(Values, prelude) {
  const auto out = run(R"(
dim N
input x[N] : f32, kernel[3] : f32, t : i32
v = variance(i) x[i]
r[i] = relu(x[i])
c = cross_entropy(i) (x[i], t)
g = conv(x)
def conv(y) = sum(i : i > 0) y[i]
p[i < 2] = max_pool1d[2, 1, 1](i, r < 3) x[i]
w[i < 3] = conv1d[1, 1, 1](i, r, k < 1) (x[i], kernel[r] * (k + 1))
h[d] = rotary_half[2, 10000](d) (x[d], 1)
e[d] = rotary_pairs[2, 10000](d) (x[d], 1)
output v, r, c, g, p, w, h, e
)", {{"N", 3}}, {{"x", {3}, {-1, 2, 5}}, {"kernel", {3}, {1, 10, 100}}, {"t", {}, {1}}});
  ASSERT_EQ(out.size(), 8u);
  expect_near(out[0], {6});
  expect_near(out[1], {0, 2, 5});
  expect_near(out[2], {std::log(std::exp(-1.0) + std::exp(2.0) + std::exp(5.0)) - 2});
  expect_near(out[3], {7});
  expect_near(out[4], {2, 5});
  expect_near(out[5], {190, 519, 52});
  const double c = std::cos(1.0), n = std::sin(1.0);
  expect_near(out[6], {-c - 2 * n, 2 * c - n, 5});
  expect_near(out[7], {-c - 2 * n, 2 * c - n, 5});
}

}  // namespace
}  // namespace lemma::language
