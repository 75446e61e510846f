// Rewrites on the texts they are for: the form of what comes out, its values by the oracle, and what they say when they
// decline.
#include <gtest/gtest.h>

#include <chrono>

#include "lemma/rewrite/distribute_sum.h"
#include "lemma/rewrite/exchange_sums.h"
#include "lemma/rewrite/expand_square.h"
#include "lemma/rewrite/fold_normaliser.h"
#include "lemma/rewrite/fuse_maps.h"
#include "lemma/rewrite/hoist_invariants.h"
#include "lemma/rewrite/merge_siblings.h"
#include "lemma/rewrite/nest_contractions.h"
#include "lemma/rewrite/one_pass_moments.h"
#include "lemma/rewrite/passes.h"
#include "lemma/rewrite/recognise_domain.h"
#include "lemma/rewrite/solve_equalities.h"
#include "lemma/rewrite/split_index.h"
#include "lemma/rewrite/split_reduction.h"
#include "lemma/rewrite/stabilize_exp_sums.h"
#include "lemma/rewrite/texts.h"
#include "tests/random/equal.h"

namespace lemma::rewrite {
namespace {

using namespace texts;
using monoid::Structure;
using random_graphs::difference;
using random_graphs::Inputs;
using random_graphs::with_definition;
using tensor::Comprehension;
using tensor::Graph;

// The sentence a pass declined with, on a node; empty if it said none.
std::string declined(const std::vector<Decision>& log, const std::string& pass, const std::string& subject) {
  for (const Decision& d : log) {
    if (!d.applied && d.pass == pass && d.subject == subject) return d.sentence;
  }
  return {};
}

void expect_same(const Graph& a, const Graph& b, double special = 0) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    ASSERT_EQ(difference(a, b, {seed}), "");
    ASSERT_EQ(difference(a, b, {seed, special, false}), "");
  }
  EXPECT_EQ(difference(a, b, {7}, 1e-7, 0), "") << "with empty sizes";
  EXPECT_EQ(difference(a, b, {8}, 1e-7, 1), "") << "with sizes of 1 and 2";
}

// A text of weights comes out as: the product, one rescaled sum with m, l and a[c], and the quotient.
void expect_streaming_form(const WeightsText& text) {
  const Graph graph = weights(text);
  std::vector<Decision> log;
  const Graph after = derive(graph, {Claim::Finite, &log});
  expect_same(graph, after);
  ASSERT_EQ(count_computed(after), 3);
  const auto* product = std::get_if<Comprehension>(&after.nodes[3]);
  const auto* sums = std::get_if<Comprehension>(&after.nodes[4]);
  const auto* quotient = std::get_if<Comprehension>(&after.nodes[5]);
  ASSERT_TRUE(product && sums && quotient);
  EXPECT_TRUE(is_contraction_like(*product));
  ASSERT_TRUE(sums->monoid && sums->monoid->structure == Structure::RescaledSum);
  EXPECT_EQ(sums->body.size(), 3u);
  EXPECT_EQ(sums->components[0].size(), 1u);
  EXPECT_EQ(sums->components[2].size(), 2u);
  EXPECT_EQ(sums->domain.is_always(), !text.causal && !text.masked);
  EXPECT_TRUE(is_map(*quotient));
  expect_same(after, with_definition(after, tensor::Tensor{4}));
}

TEST(Derive, PlainWeights) { expect_streaming_form({}); }
TEST(Derive, CausalWeights) { expect_streaming_form({.causal = true}); }
TEST(Derive, MaskedWeights) { expect_streaming_form({.masked = true}); }
TEST(Derive, CappedWeights) { expect_streaming_form({.causal = true, .cap = true}); }
TEST(Derive, CappedMaskedWeights) { expect_streaming_form({.masked = true, .cap = true}); }
TEST(Derive, UnguardedWeights) {
  const Graph graph = weights({.guarded = false});
  const Graph after = derive(graph, {Claim::Finite, nullptr});
  ASSERT_EQ(count_computed(after), 4);  // the sum of weights, where it is nan, is a map of its own
  for (uint64_t seed = 1; seed < 6; ++seed) ASSERT_EQ(difference(graph, after, {seed}), "");
}

TEST(Derive, LogarithmOfSumUnderStrict) {
  for (const bool causal : {false, true}) {
    const Graph graph = weights({.causal = causal, .values = false});
    const Graph after = derive(graph, {Claim::Real, nullptr});
    ASSERT_TRUE(find(after, "m_sums"));
    EXPECT_EQ(find(after, "m_sums")->monoid->structure, Structure::RescaledSum);
    expect_same(graph, after, 0.3);
    for (uint64_t seed = 1; seed <= 20; ++seed) ASSERT_EQ(difference(graph, after, {seed, 0.1, true}), "");
  }
}

TEST(Derive, EmptyRowsGiveZeroUnderEveryMask) {
  const Graph graph = weights({.masked = true});
  const Graph after = derive(graph, {Claim::Finite, nullptr});
  for (uint64_t seed = 1; seed <= 10; ++seed) ASSERT_EQ(difference(graph, after, {seed, 0.0}), "");
}

TEST(StabilizeExpSums, SaysWhyValuesStayUnderStrict) {
  std::vector<Decision> log;
  const Graph after = stabilize_exp_sums(weights({}), {Claim::Real, &log});
  EXPECT_EQ(declined(log, "stabilize_exp_sums", "o"),
            "not one pass with m: a term under a score of -inf would leave instead of counting 0 times its value");
  EXPECT_TRUE(find(after, "m_sums"));
}

// Text without a guard gives nan where every score is -inf, 0 where there is none, under the claim real.
TEST(StabilizeExpSums, KeepsTheNanOfUnguardedRows) {
  for (const bool masked : {false, true}) {
    const Graph graph = weights({.masked = masked, .guarded = false, .values = false});
    const Graph after = stabilize_exp_sums(graph, {Claim::Real, nullptr});
    ASSERT_TRUE(find(after, "m_sums"));
    for (uint64_t seed = 1; seed <= 20; ++seed) ASSERT_EQ(difference(graph, after, {seed, 0.1, true}), "");
  }
}

TEST(StabilizeExpSums, DeclinesAnotherDomain) {
  Builder b;
  const Value s = b.input("s", {4, 5});
  Draft md = b.draft("m");
  const Form mi = md.point("i", 4), mj = md.reduce("j", 5);
  const Value m = md.fold(monoid::maximum(Kind::F32), {md.read(s, {mi, mj})});
  Draft zd = b.draft("z");
  const Form zi = zd.point("i", 4), zj = zd.reduce("j", 5);
  zd.where(Formula::less_equal(zj, zi));
  const Expr score = zd.read(s, {zi, zj}), max = zd.read(m, {zi});
  b.output("z", zd.fold(monoid::sum(Kind::F32), {scalar::exp(score - max)}));
  std::vector<Decision> log;
  const Graph graph = b.finish();
  const Graph after = stabilize_exp_sums(graph, {Claim::Finite, &log});
  EXPECT_EQ(declined(log, "stabilize_exp_sums", "z"), "not one pass with m: the max is taken over another domain");
  EXPECT_EQ(count_computed(after), 2);
}

TEST(StabilizeExpSums, TakesAScaleFromTheText) {
  Builder b;
  const Value s = b.input("s", {4, 5}), v = b.input("v", {5, 3});
  Draft md = b.draft("m");
  const Form mi = md.point("i", 4), mj = md.reduce("j", 5);
  const Value m = md.fold(monoid::maximum(Kind::F32), {md.read(s, {mi, mj})});
  Draft zd = b.draft("z");
  const Form zi = zd.point("i", 4), zc = zd.point("c", 3), zj = zd.reduce("j", 5);
  const Expr score = zd.read(s, {zi, zj}), max = zd.read(m, {zi}), g = zd.read(v, {zj, zc}), half = b.f32(0.5);
  b.output("z", zd.fold(monoid::sum(Kind::F32), {scalar::exp(score * half - max * half) * g}));
  const Graph graph = b.finish();
  const Graph after = stabilize_exp_sums(graph, {Claim::Finite, nullptr});
  ASSERT_TRUE(find(after, "m_sums"));
  EXPECT_EQ(count_computed(after), 2);
  EXPECT_EQ(find(after, "m_sums")->monoid->scale, 0.5);
  expect_same(graph, after);
}

TEST(StabilizeExpSums, SaysWhenOnePassDoesNotPay) {
  Builder b;
  const Value s = b.input("s", {4, 5});
  Draft md = b.draft("m");
  const Form mi = md.point("i", 4), mj = md.reduce("j", 5);
  const Value m = md.fold(monoid::maximum(Kind::F32), {md.read(s, {mi, mj})});
  Draft zd = b.draft("z");
  const Form zi = zd.point("i", 4), zj = zd.reduce("j", 5);
  const Expr score = zd.read(s, {zi, zj}), max = zd.read(m, {zi});
  b.output("z", zd.fold(monoid::sum(Kind::F32), {scalar::exp(score - max)}));
  std::vector<Decision> log;
  EXPECT_EQ(count_computed(stabilize_exp_sums(b.finish(), {Claim::Finite, &log})), 2);
  EXPECT_EQ(declined(log, "stabilize_exp_sums", "m").substr(0, 22), "the score is at hand a");
}

TEST(FuseMaps, ChainsOfThousandsStayLinear) {
  Builder b;
  Value x = b.input("x", {8});
  for (int n = 0; n < 5000; ++n) {
    Draft d = b.draft("x" + std::to_string(n + 1));
    const Form i = d.point("i", 8);
    const Expr at = d.read(x, {i});
    x = d.map({scalar::unary(Op::Tanh, at + b.f32(n % 7 * 0.1))});
  }
  b.output("y", x);
  const Graph graph = b.finish();
  const auto start = std::chrono::steady_clock::now();
  const Graph after = fuse_maps(graph, {}, {Claim::Finite, nullptr});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(count_computed(after), 5000 * 2 / 512 + 1);
  EXPECT_EQ(difference(graph, after, {1}), "");
  EXPECT_LT(took.count(), 2.0);
}

TEST(FuseMaps, KeepsAnExpensiveMapThatEachColumnWouldRepeat) {
  Builder b;
  const Value x = b.input("x", {4, 5}), w = b.input("w", {5, 6});
  Draft e = b.draft("e");
  const Form ei = e.point("i", 4), ej = e.point("j", 5);
  const Value weight = e.map({scalar::exp(e.read(x, {ei, ej}))});
  Draft y = b.draft("y");
  const Form i = y.point("i", 4), c = y.point("c", 6), j = y.reduce("j", 5);
  const Expr left = y.read(weight, {i, j}), right = y.read(w, {j, c});
  b.output("y", y.fold(monoid::sum(Kind::F32), {left * right}));
  std::vector<Decision> log;
  const Graph graph = b.finish();
  const Graph after = fuse_maps(graph, {}, {Claim::Finite, &log});
  EXPECT_EQ(count_computed(after), 2);
  EXPECT_EQ(declined(log, "fuse_maps", "y"),
            "e stays materialised: computing it again for every reader costs 10 additions an element");
}

TEST(FuseMaps, CarriesGuardsAndGathersAlong) {
  Builder b;
  const Value x = b.input("x", {9, 3}), key = b.input("key", {5}, scalar::DType::I32);
  Draft e = b.draft("e");
  const Form ei = e.point("i", 9), ej = e.point("j", 3);
  const Value shifted = e.map({e.read(x, {ei, ej}) + b.f32(1)});
  Draft y = b.draft("y");
  const Form t = y.point("t", 5), c = y.point("c", 3);
  const Form k = Draft::data(y.read(key, {t}));
  const Expr at = y.read(shifted, {k, c}, Formula::within(k, 9));
  b.output("y", y.map({scalar::select(Draft::present(at), at, b.f32(-7))}));
  const Graph graph = b.finish();
  const Graph after = fuse_maps(graph, {}, {Claim::Finite, nullptr});
  EXPECT_EQ(count_computed(after), 1);
  expect_same(graph, after);
}

TEST(HoistInvariants, MovesFactorsAndCountsEqualTerms) {
  Builder b;
  const Value x = b.input("x", {4, 5}), c = b.input("c", {4});
  Draft d = b.draft("y");
  const Form i = d.point("i", 4), j = d.reduce("j", 5);
  const Expr at = d.read(x, {i, j}), scale = d.read(c, {i});
  b.output("y", d.fold(monoid::sum(Kind::F32), {at * scale / b.f32(8)}));
  Draft n = b.draft("n");
  const Form ni = n.point("i", 4);
  n.reduce("j", 5);
  b.output("n", n.fold(monoid::sum(Kind::F32), {n.read(c, {ni})}));
  const Graph graph = b.finish();
  const Graph after = hoist_invariants(graph, {Claim::Finite, nullptr});
  EXPECT_EQ(count_computed(after), 3);
  EXPECT_TRUE(is_map(*find(after, "n")));
  EXPECT_EQ(find(after, "y_sum")->reads.size(), 1u);
  expect_same(graph, after);
  std::vector<Decision> log;
  hoist_invariants(graph, {Claim::Real, &log});
  EXPECT_EQ(declined(log, "hoist_invariants", "y"), "a factor free of the summed indices is not proved finite");
}

TEST(HoistInvariants, GuardsWhatMayNotBeFiniteOverNothing) {
  Builder b;
  const Form n = b.size("N");
  const Value x = b.input("x", {4, n}), c = b.input("c", {4});
  Draft d = b.draft("y");
  const Form i = d.point("i", 4), j = d.reduce("j", n);
  d.where(Formula::less(j, i));
  const Expr at = d.read(x, {i, j}), by = d.read(c, {i});
  b.output("y", d.fold(monoid::sum(Kind::F32), {at / (by - by)}));  // by - by is 0
  const Graph graph = b.finish();
  const Graph after = hoist_invariants(graph, {Claim::Finite, nullptr});
  EXPECT_EQ(count_computed(after), 2);
  EXPECT_EQ(difference(graph, after, {1}, 1e-7, 0), "");
  // Rows 1 to 3 differ where a sum of quotients is inf - inf; row 0 is empty and stays 0.
  Inputs positive{1};
  positive.low = 0.5;
  EXPECT_EQ(difference(graph, after, positive), "");
}

TEST(HoistInvariants, MovesTermsOutOfAMax) {
  Builder b;
  const Value x = b.input("x", {4, 5}), c = b.input("c", {4});
  Draft d = b.draft("y");
  const Form i = d.point("i", 4), j = d.reduce("j", 5);
  d.where(Formula::less(j, i));
  const Expr at = d.read(x, {i, j}), shift = d.read(c, {i});
  b.output("y", d.fold(monoid::maximum(Kind::F32), {at + shift}));
  const Graph graph = b.finish();
  const Graph after = hoist_invariants(graph, {Claim::Finite, nullptr});
  EXPECT_EQ(count_computed(after), 2);
  expect_same(graph, after);
}

TEST(ExpandSquare, MakesAProductOfMatrices) {
  Builder b;
  const Value x = b.input("x", {4, 3}), y = b.input("y", {5, 3});
  Draft d = b.draft("d");
  const Form i = d.point("i", 4), j = d.point("j", 5), c = d.reduce("c", 3);
  const Expr left = d.read(x, {i, c}), right = d.read(y, {j, c});
  const Value distance = d.fold(monoid::sum(Kind::F32), {(left - right) * (left - right)});
  Draft k = b.draft("near");
  const Form ki = k.point("i", 4);
  k.axis("slot", 2);
  const Form kj = k.reduce("j", 5);
  const Expr at = k.read(distance, {ki, kj}), place = k.index(kj);
  const Value near = k.fold(monoid::top_k(Kind::F32, 2, true), {at, place});
  b.output("value", near);
  b.output("index", tensor::sibling(near, 1));
  const Graph graph = b.finish();
  const Graph after = derive(graph, {Claim::Finite, nullptr});
  expect_same(graph, after);
  EXPECT_TRUE(is_contraction_like(*find(after, "d_product")));
  EXPECT_EQ(find(after, "d"), nullptr) << "the distance is spliced into the reduction that reads it";
  std::vector<Decision> log;
  expand_square(graph, {Claim::Real, &log});
  EXPECT_EQ(declined(log, "expand_square", "d"), "an infinite distance might become nan");
}

TEST(RecogniseDomain, TakesMasksFromTermsFactorsAndSummands) {
  for (int kind = 0; kind < 4; ++kind) {
    Builder b;
    const Value x = b.input("x", {4, 5}), v = b.input("v", {5});
    Draft d = b.draft("y");
    const Form i = d.point("i", 4), j = d.reduce("j", 5);
    const Expr at = d.read(x, {i, j}), g = d.read(v, {j}), holds = scalar::binary(Op::Le, d.index(j), d.index(i));
    const Expr zero = b.f32(0);
    Value y;
    if (kind == 0) y = d.fold(monoid::sum(Kind::F32), {scalar::select(holds, at * g, zero)});
    if (kind == 1) y = d.fold(monoid::sum(Kind::F32), {scalar::select(holds, at, zero) * g});
    if (kind == 2) y = d.fold(monoid::maximum(Kind::F32), {scalar::select(holds, at, least(b))});
    if (kind == 3) y = d.fold(monoid::maximum(Kind::F32), {at + scalar::select(holds, zero, least(b))});
    b.output("y", y);
    const Graph graph = b.finish();
    const Graph after = recognise_domain(graph, {Claim::Finite, nullptr});
    EXPECT_EQ(find(after, "y")->domain, Formula::less_equal(j, i)) << kind;
    expect_same(graph, after);
    const Graph strict = recognise_domain(graph, {Claim::Real, nullptr});
    EXPECT_EQ(find(strict, "y")->domain.is_always(), kind == 1 || kind == 3) << kind;
  }
}

TEST(RecogniseDomain, TakesFiniteStandInsOnlyWhenLoose) {
  Builder b;
  const Value x = b.input("x", {4, 5});
  Draft d = b.draft("y");
  const Form i = d.point("i", 4), j = d.reduce("j", 5);
  const Expr holds = scalar::binary(Op::Le, d.index(j), d.index(i)), at = d.read(x, {i, j});
  b.output("y", d.fold(monoid::maximum(Kind::F32), {scalar::select(holds, at, b.f32(-1e9))}));
  const Graph graph = b.finish();
  EXPECT_TRUE(find(recognise_domain(graph, {Claim::Finite, nullptr}), "y")->domain.is_always());
  EXPECT_FALSE(find(recognise_domain(graph, {Claim::Loose, nullptr}), "y")->domain.is_always());
}

TEST(RecogniseDomain, LeavesReductionsThatTellTheirElement) {
  Builder b;
  const Value x = b.input("x", {4, 5});
  Draft d = b.draft("y");
  const Form i = d.point("i", 4), j = d.reduce("j", 5);
  const Expr holds = scalar::binary(Op::Le, d.index(j), d.index(i)), at = d.read(x, {i, j}), place = d.index(j);
  b.output("y", d.fold(monoid::arg_maximum(Kind::F32), {scalar::select(holds, at, least(b)), place}));
  std::vector<Decision> log;
  const Graph after = recognise_domain(b.finish(), {Claim::Finite, &log});
  EXPECT_TRUE(find(after, "y")->domain.is_always());
  EXPECT_EQ(declined(log, "recognise_domain", "y"), "it may take a masked element, so the mask stays a value");
}

TEST(SolveEqualities, DividesAndGathers) {
  Builder b;
  const Value x = b.input("x", {5}), w = b.input("w", {3}), key = b.input("key", {4}, scalar::DType::I32);
  Draft d = b.draft("y");
  const Form p = d.point("p", 9), i = d.reduce("i", 5), r = d.reduce("r", 3);
  d.where(Formula::equal(Form(2) * i + r, p));
  const Expr a = d.read(x, {i}), c = d.read(w, {r});
  b.output("y", d.fold(monoid::sum(Kind::F32), {a * c}));
  Draft g = b.draft("g");
  const Form t = g.point("t", 4), j = g.reduce("j", 5);
  const Expr picked = g.read(x, {j});
  g.where(Formula::equal(j, Draft::data(g.read(key, {t}))));
  b.output("g", g.fold(monoid::sum(Kind::F32), {picked}));
  const Graph graph = b.finish();
  const Graph after = solve_equalities(graph, {Claim::Exact, nullptr});
  EXPECT_EQ(find(after, "y")->with_role(tensor::Role::Reduce).size(), 1u);
  EXPECT_TRUE(is_map(*find(after, "g")));
  expect_same(graph, after);
}

TEST(MergeSiblings, JoinsReductionsThatShareAValue) {
  Builder b;
  const Value x = b.input("x", {4, 5});
  for (const char* name : {"a", "b"}) {
    Draft d = b.draft(name);
    const Form i = d.point("i", 4), j = d.reduce("j", 5);
    const Expr at = d.read(x, {i, j});
    b.output(name, name[0] == 'a' ? d.fold(monoid::sum(Kind::F32), {at}) : d.fold(monoid::maximum(Kind::F32), {at * at}));
  }
  Draft o = b.draft("c");
  const Form i = o.point("i", 4), j = o.reduce("j", 5);
  o.where(Formula::less(j, i));
  b.output("c", o.fold(monoid::sum(Kind::F32), {o.read(x, {i, j})}));
  const Graph graph = b.finish();
  std::vector<Decision> log;
  const Graph after = merge_siblings(graph, {}, {Claim::Exact, &log});
  EXPECT_EQ(count_computed(after), 2);
  EXPECT_EQ(find(after, "a_b")->outputs.size(), 2u);
  EXPECT_EQ(declined(log, "merge_siblings", "c"), "not one pass with a_b: its domain is another");
  expect_same(graph, after);
}

TEST(OnePassMoments, JoinsASumAndItsCentredSquares) {
  Builder b;
  const Value x = b.input("x", {4, 5});
  Draft sd = b.draft("s");
  const Form si = sd.point("i", 4), sj = sd.reduce("j", 5);
  const Value s = sd.fold(monoid::sum(Kind::F32), {sd.read(x, {si, sj})});
  Draft md = b.draft("mean");
  const Form mi = md.point("i", 4);
  const Value mean = md.map({md.read(s, {mi}) / b.f32(5)});
  Draft vd = b.draft("v");
  const Form vi = vd.point("i", 4), vj = vd.reduce("j", 5);
  const Expr at = vd.read(x, {vi, vj}), centre = vd.read(mean, {vi});
  b.output("v", vd.fold(monoid::sum(Kind::F32), {(at - centre) * (at - centre)}));
  b.output("mean", mean);
  const Graph graph = b.finish();
  const Graph after = one_pass_moments(graph, {Claim::Finite, nullptr});
  ASSERT_TRUE(find(after, "s_moments"));
  EXPECT_EQ(count_computed(after), 2);
  expect_same(graph, after);
}

TEST(SplitReduction, KeepsEveryMonoid) {
  const auto best = [](Draft& d, const Form& j, Expr at) { return std::vector<Expr>{at, d.index(j)}; };
  for (int which = 0; which < 5; ++which) {
    for (const bool strided : {false, true}) {
      Builder b;
      const Value x = b.input("x", {3, 11});
      Draft d = b.draft("y");
      const Form i = d.point("i", 3);
      if (which == 2) d.axis("slot", 3);
      const Form j = d.reduce("j", 11);
      const Expr at = d.read(x, {i, j});
      Value y;
      if (which == 0) y = d.fold(monoid::sum(Kind::F32), {at});
      if (which == 1) y = d.fold(monoid::arg_maximum(Kind::F32), best(d, j, at));
      if (which == 2) y = d.fold(monoid::top_k(Kind::F32, 3, false), best(d, j, at));
      if (which == 3) y = d.fold(monoid::rescaled_sum(Kind::F32, 2, 1.5), {at, b.f32(1), at * at});
      if (which == 4) y = d.fold(monoid::welford(Kind::F32), {at});
      for (size_t o = 0; o < std::get<Comprehension>(b.graph.node(y.node)).outputs.size(); ++o) {
        b.output("y" + std::to_string(o), tensor::sibling(y, int(o)));
      }
      const Graph graph = b.finish();
      SplitOptions options;
      options.count = 4;
      options.strided = strided;
      const Graph after = split_reduction(graph, options, {Claim::Real, nullptr});
      EXPECT_EQ(count_computed(after), 2) << which;
      expect_same(graph, after, 0.2);
    }
  }
}

TEST(SplitReduction, KeepsTheOrderOfAMonoidThatHasOne) {
  Builder b;
  const Value x = b.input("x", {3, 11});
  Draft d = b.draft("y");
  const Form i = d.point("i", 3), j = d.reduce("j", 11);
  const Expr at = d.read(x, {i, j});
  const Value y = d.fold(monoid::affine(Kind::F32), {scalar::unary(Op::Tanh, at), at});
  b.output("y", tensor::sibling(y, 1));
  const Graph graph = b.finish();
  SplitOptions options;
  options.size = 4;
  const Graph after = split_reduction(graph, options, {Claim::Real, nullptr});
  EXPECT_EQ(count_computed(after), 2);
  expect_same(graph, after);
  options.strided = true;
  std::vector<Decision> log;
  split_reduction(graph, options, {Claim::Real, &log});
  EXPECT_EQ(declined(log, "split_reduction", "y"),
            "its monoid keeps the order of its elements, which this split would change");
}

TEST(SplitIndex, MakesCoupledHalvesAndPairsOutputs) {
  for (const bool pairs : {false, true}) {
    Builder b;
    const Value x = b.input("x", {4, 3}), w = b.input("w", {8, 3});
    Draft h = b.draft("h");
    const Form t = h.point("t", 4), f = h.point("f", 8), d = h.reduce("d", 3);
    const Expr left = h.read(x, {t, d}), right = h.read(w, {f, d});
    const Value hidden = h.fold(monoid::sum(Kind::F32), {left * right});
    Draft y = b.draft("y");
    const Form yt = y.point("t", 4), yf = y.point("f", 4);
    const Expr gate = y.read(hidden, {yt, pairs ? Form(2) * yf : yf});
    const Expr up = y.read(hidden, {yt, pairs ? Form(2) * yf + Form(1) : yf + Form(4)});
    b.output("y", y.map({scalar::unary(Op::Sigmoid, gate) * up}));
    const Graph graph = b.finish();
    const Graph after = split_index(graph, {Claim::Exact, nullptr});
    EXPECT_EQ(find(after, "h")->outputs.size(), 2u);
    expect_same(graph, after);
  }
}

TEST(ExchangeSums, UsesWhatIsSummedAlready) {
  Builder b;
  const Value p = b.input("p", {4, 5}), v = b.input("v", {5, 3}), g = b.input("g", {4, 3});
  Draft o = b.draft("o");
  const Form oi = o.point("i", 4), oc = o.point("c", 3), oj = o.reduce("j", 5);
  const Expr op = o.read(p, {oi, oj}), ov = o.read(v, {oj, oc});
  b.output("o", o.fold(monoid::sum(Kind::F32), {op * ov}));
  Draft t = b.draft("t");
  const Form ti = t.point("i", 4), tj = t.point("j", 5), tc = t.reduce("c", 3);
  const Expr tg = t.read(g, {ti, tc}), tv = t.read(v, {tj, tc});
  const Value inner = t.fold(monoid::sum(Kind::F32), {tg * tv});
  Draft r = b.draft("r");
  const Form ri = r.point("i", 4), rj = r.reduce("j", 5);
  const Expr rp = r.read(p, {ri, rj}), rt = r.read(inner, {ri, rj});
  b.output("r", r.fold(monoid::sum(Kind::F32), {rp * rt}));
  const Graph graph = b.finish();
  const Graph after = exchange_sums(graph, {Claim::Finite, nullptr});
  EXPECT_EQ(count_computed(after), 2);
  EXPECT_EQ(find(after, "t"), nullptr);
  expect_same(graph, after);
}

TEST(FoldNormaliser, ReadsOneLogarithm) {
  WeightsText text;
  Graph graph = weights(text);
  // The weights themselves are the output.
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* c = std::get_if<Comprehension>(&graph.nodes[n]);
    if (c && c->name == "p") graph.outputs = {{"p", {tensor::Tensor{int32_t(n)}, 0}, scalar::DType::F32, std::nullopt}};
  }
  const Graph stable = derive(graph, {Claim::Finite, nullptr});
  std::vector<Decision> log;
  const Graph after = fold_normaliser(stable, {Claim::Finite, &log});
  EXPECT_TRUE(find(after, "m_log_sum"));
  expect_same(graph, after);
}

TEST(NestContractions, FindsProductsThatAReductionReadsTileByTile) {
  const Graph after = derive(weights({.causal = true}), {Claim::Finite, nullptr});
  const auto candidates = nest_contractions(after);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_TRUE(candidates[0].streams);
  EXPECT_TRUE(candidates[0].only_reader);
  EXPECT_EQ(candidates[0].repeated.size(), 1u);
}

TEST(Passes, AreNamedOnceAndFound) {
  for (const Pass& p : passes()) EXPECT_EQ(find_pass(p.name), &p);
  EXPECT_EQ(find_pass("no_such_pass"), nullptr);
}

}  // namespace
}  // namespace lemma::rewrite
