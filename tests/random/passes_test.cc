// Every pass of the table, and the default order, on random graphs: the oracle's values stay.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "lemma/rewrite/passes.h"
#include "tests/random/equal.h"
#include "tests/random/generate.h"

namespace lemma::random_graphs {
namespace {

using rewrite::Claim;
using rewrite::Context;

int count() {
  const char* text = std::getenv("LEMMA_RANDOM_COUNT");
  return text ? std::atoi(text) : 150;
}

GenerateOptions options_of(int seed) {
  GenerateOptions out;
  out.seed = uint64_t(seed);
  out.steps = 1 + seed % 6;
  out.symbolic = seed % 4 == 0;
  return out;
}

class Passes : public testing::TestWithParam<const rewrite::Pass*> {};

TEST_P(Passes, KeepValues) {
  for (int seed = 1; seed <= count(); ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    std::vector<rewrite::Decision> log;
    const tensor::Graph after = GetParam()->run(graph, {Claim::Finite, &log});
    const std::string wrong = difference(graph, after, {uint64_t(seed)});
    ASSERT_EQ(wrong, "") << GetParam()->name << " on seed " << seed;
  }
}

// What is claimed over the reals holds for infinities and nan too.
TEST_P(Passes, KeepSpecialValuesUnderStrict) {
  for (int seed = 1; seed <= count(); ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    const tensor::Graph after = GetParam()->run(graph, {Claim::Real, nullptr});
    const std::string wrong = difference(graph, after, {uint64_t(seed), 0.15, true});
    ASSERT_EQ(wrong, "") << GetParam()->name << " on seed " << seed;
  }
}

TEST_P(Passes, AreIdempotentOnTheirOwnResult) {
  for (int seed = 1; seed <= count() / 3; ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    if (GetParam()->name == "split_reduction") return;  // splits what it is given, always
    const tensor::Graph once = GetParam()->run(graph, {Claim::Finite, nullptr});
    const tensor::Graph twice = GetParam()->run(once, {Claim::Finite, nullptr});
    ASSERT_EQ(difference(graph, twice, {uint64_t(seed)}), "") << GetParam()->name << " twice on seed " << seed;
  }
}

std::vector<const rewrite::Pass*> all() {
  std::vector<const rewrite::Pass*> out;
  for (const rewrite::Pass& p : rewrite::passes()) out.push_back(&p);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, Passes, testing::ValuesIn(all()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Derive, KeepsValues) {
  for (int seed = 1; seed <= 2 * count(); ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    const tensor::Graph after = rewrite::derive(graph, {Claim::Finite, nullptr});
    ASSERT_EQ(difference(graph, after, {uint64_t(seed)}), "") << "seed " << seed;
    ASSERT_EQ(difference(graph, after, {uint64_t(seed)}, 1e-7, 0), "") << "seed " << seed << " with sizes from 0";
    ASSERT_EQ(difference(graph, after, {uint64_t(seed)}, 1e-7, 1), "") << "seed " << seed << " with sizes from 1";
  }
}

// What a derived node records as its definition means the same.
TEST(Derive, RecordsDefinitions) {
  int found = 0;
  for (int seed = 1; seed <= 2 * count(); ++seed) {
    const tensor::Graph after = rewrite::derive(generate(options_of(seed)), {Claim::Finite, nullptr});
    for (size_t n = 0; n < after.nodes.size(); ++n) {
      const auto* c = std::get_if<tensor::Comprehension>(&after.nodes[n]);
      if (!c || !c->definition) continue;
      ++found;
      const tensor::Graph naive = with_definition(after, tensor::Tensor{int32_t(n)});
      ASSERT_EQ(difference(after, naive, {uint64_t(seed)}), "") << c->name << " on seed " << seed;
    }
  }
  EXPECT_GT(found, 5);
}

TEST(Derive, KeepsSpecialValuesUnderStrict) {
  for (int seed = 1; seed <= count(); ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    const tensor::Graph after = rewrite::derive(graph, {Claim::Real, nullptr});
    ASSERT_EQ(difference(graph, after, {uint64_t(seed), 0.15, true}), "") << "seed " << seed;
  }
}

// The graphs are worth something: every pass that says what it did does it on some of them.
TEST(Generate, GivesEveryPassWork) {
  std::map<std::string, int> fired;
  for (int seed = 1; seed <= 400; ++seed) {
    const tensor::Graph graph = generate(options_of(seed));
    for (const rewrite::Pass& p : rewrite::passes()) {
      std::vector<rewrite::Decision> log;
      p.run(p.by_default ? graph : rewrite::derive(graph, {Claim::Finite, nullptr}), {Claim::Finite, &log});
      for (const rewrite::Decision& d : log) fired[d.pass] += d.applied ? 1 : 0;
    }
  }
  for (const char* name : {"simplify_bodies", "recognise_domain", "stabilize_exp_sums", "expand_square", "hoist_invariants",
                           "distribute_sum", "fuse_maps", "merge_siblings", "split_reduction"}) {
    EXPECT_GT(fired[name], 5) << name;
    RecordProperty(name, fired[name]);
  }
}

TEST(Generate, IsTheSameForTheSameSeed) {
  for (int seed = 1; seed <= 20; ++seed) {
    const tensor::Graph a = generate(options_of(seed)), b = generate(options_of(seed));
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    ASSERT_EQ(difference(a, b, {uint64_t(seed)}, 0), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace lemma::random_graphs
