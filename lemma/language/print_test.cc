// Printed graphs read back as equal graphs; and what cannot be written by hand (derived nodes) prints too.
#include <chrono>

#include "lemma/language/testing.h"
#include "lemma/tensor/equal.h"
#include "lemma/tensor/print.h"

namespace lemma::language {
namespace {

void expect_round_trip(const tensor::Graph& graph) {
  const std::string text = tensor::print(graph);
  auto again = parse(text, "printed.lemma");
  ASSERT_TRUE(again.ok()) << base::render(again.error()) << text;
  EXPECT_EQ(tensor::difference(graph, *again), "") << text << "----\n" << tensor::print(*again);
  EXPECT_EQ(tensor::print(*again), text);
}

constexpr const char* programs[] = {
    R"(dim N in 0..4096, 16 | N, like 512
dim D = 64
input q[N, D], k[N, D], v[N, D] : bf16
s[i, j] = sum(d) q[i, d] * k[j, d] / sqrt(D)
p[i, j] = softmax(j : j <= i and j > i - 128) s[i, j]
o[i, c] = sum(j) p[i, j] * v[j, c]
output o : bf16)",
    R"(dim N, T, V, E = 5
input x[N] : f32, idx[T] : i32 in 0..V, w[V, E] : f32 strided, m[N] : bool, big[N] : u64
y[i < N] = x[i - 1] else -0.5
z[i < N + 2] = x[N + 1 - i]?
g[t, c] = w[idx[t], c]
gg[t, c] = g[t, c] + (w[idx[t] + 1, c] else 3)
h[i] = select(i > 0, x[i - 1] * 2, 0) + (z[i] else 1)
(v, a)[t, e] = topk[2](c) w[idx[t], c]
cs[i] = scan sum(i, exclusive, reverse) x[i]
sc[idx[t] < V, c] sum= g[t, c]
si[idx[t] < V] injective= g[t, 0] onto 0
q = sum(i : m[i] and x[i] > 0.5) x[i]
am = argmax(i) x[i]
mm = mean(i) x[i]
u[i] = big[i] * 3 + u64(i)
f[i < N] = i / 3 + 0.1
fi[i < N] = select(i > 2, 1, -i) + 5
c[i] = i32(x[i]) & 7 | ~i32(2)
n[i < N] = -x[i]
lo[i < N] = not (m[i] or x[i] < 2) and true
b[i] : bf16 = round_to[f8e4m3](x[i]) + f32(bits[i32](x[i]))
output y, h, v, a, cs, sc, si, q, am, mm, u, f, fi, c, n, lo, b, gg)",
    R"(dim T, S = 3
input a[T, S, S], u[T, S], x[T], h0[S]
monoid linear[n](m, v) {
  state A[i < n, k < n], b[i < n]
  identity A[i, k] = select(i == k, 1, 0)
  identity b[i] = 0
  lift A[i, k] = m
  lift b[i] = v
  combine A[i, k] = sum(l) y.A[i, l] * x.A[l, k]
  combine b[i] = y.b[i] + sum(l) y.A[i, l] * x.b[l]
}
(_[t, i, k], h[t, i], final _[i, k], final last[i]) = scan linear[S](t, initial = (select(i == k, 1, 0), h0[i])) (a[t, i, k], u[t, i])
(s, m) = pair[sum, max](t : t > 0) (x[t], x[t] * 2)
(n, total, m2) = welford(t) x[t]
output h, last, s, m, n, total, m2)",
    R"(dim N, M, C
input s[N, M], v[M, C], len[N] : i32
(m[i], l[i], o[i, c]) = rescaled_sum[0.125](j : j < len[i]) (s[i, j], 1, v[j, c])
p[i, j] = when(j < len[i], s[i, j])
r[i] = sum(j) p[i, j]
w[i, j] = (p[i, j] * (p[i, j - 1] else 0)) else 9
(k[i, c < C]) = sum(j) s[i, j]
output m, l, o, r, w, k)",
    R"(dim B, T
input cache[B, T], x[B], pos[B] : i32
update cache[b, t] = select(t == pos[b], x[b], cache[b, t])
"odd name"[b] = x[b] + 1
output "odd name")",
};

TEST(Print, parses_back) {
  for (const char* program : programs) {
    SCOPED_TRACE(program);
    expect_round_trip(parsed(program));
  }
}

TEST(Print, of_bound_graphs_parses_back) {
  const tensor::Graph graph = parsed(programs[0]);
  auto bound = tensor::bind(graph, std::vector<tensor::Binding>{{"N", 32}});
  ASSERT_TRUE(bound.ok());
  expect_round_trip(*bound);
}

TEST(Print, shows_extents_and_domains) {
  EXPECT_EQ(tensor::print(parsed("dim N\ninput x[N, 8] : bf16\nm[i] = max(j) x[i, j]\np[i, j : j <= i] = exp(x[i, j] - m[i])\no[i] = sum(j) p[i, j]\noutput o")),
            "dim N\n"
            "input x[N, 8] : bf16\n"
            "m[i < N] = max(j < 8) x[i, j]\n"
            "p[i < N, j < 8 : j <= i] = exp(x[i, j] - m[i])\n"
            "o[i < N] = sum(j < 8 : j <= i) p[i, j]\n"
            "output o\n");
}

TEST(Print, of_deep_bodies_stays_shallow) {
  // A body of 3000 dependent operations, as fusing a chain makes them.
  tensor::Graph graph = parsed("dim N\ninput x[N]\ny[i] = x[i] + 1\noutput y");
  auto& node = std::get<tensor::Comprehension>(graph.nodes[1]);
  scalar::Expr e = node.body[0];
  for (int i = 0; i < 1500; ++i) e = e * scalar::f32(*graph.arena, 0.999) + scalar::exp(e);
  node.body[0] = e;
  expect_round_trip(graph);
}

TEST(Language, takes_a_chain_of_5000_equations_in_linear_time) {
  const auto chain = [](int n) {
    std::string text = "dim N\ninput x0[N]\n";
    for (int i = 1; i <= n; ++i) {
      text += "x" + std::to_string(i) + "[i] = x" + std::to_string(i - 1) + "[i]*0.999 + 0.001\n";
    }
    return text + "output x" + std::to_string(n);
  };
  const auto seconds = [&](int n) {
    const std::string text = chain(n);
    const auto start = std::chrono::steady_clock::now();
    const auto graph = parse(text, "chain.lemma");
    EXPECT_TRUE(graph.ok());
    EXPECT_EQ(graph->nodes.size(), size_t(n) + 1);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(500);
  EXPECT_LT(seconds(5000), 2.0);
}

}  // namespace
}  // namespace lemma::language
