// The reducer on planted faults: a wrong rewrite is found among random graphs and cut down to its essence.
#include "tests/property/reduce.h"

#include <gtest/gtest.h>

#include "lemma/tensor/rebuild.h"
#include "tests/property/small.h"

namespace lemma::property {
namespace {

using tensor::Comprehension;
using tensor::Graph;

// Takes every max for a sum.
Graph plant_sum(const Graph& graph) {
  return tensor::rebuild(graph, [](tensor::Rebuild&, tensor::Tensor, tensor::Node& node) -> tensor::Replaced {
    if (auto* c = std::get_if<Comprehension>(&node); c && c->monoid && c->monoid->name == "max") {
      c->monoid = monoid::sum(c->monoid->operands[0]);
    }
    return {};
  });
}

// Forgets the domains of reductions.
Graph plant_whole(const Graph& graph) {
  return tensor::rebuild(graph, [](tensor::Rebuild&, tensor::Tensor, tensor::Node& node) -> tensor::Replaced {
    auto* c = std::get_if<Comprehension>(&node);
    if (!c || !c->monoid) return {};
    for (const tensor::Read& r : c->reads) {
      if (!r.guard.is_always()) return {};
    }
    c->domain = view::Formula::always();
    return {};
  });
}

size_t computing_nodes(const Graph& graph) {
  size_t n = 0;
  for (const tensor::Node& node : graph.nodes) n += !std::holds_alternative<tensor::Input>(node);
  return n;
}

// Shrinks the first few failures of the planted rewrite; every one must end small and still fail.
void expect_small(const Rewrite& planted, size_t most_nodes) {
  const Check check = [&](const Case& c) { return check_rewrite(c, "planted", planted, oracle_tolerance()); };
  int found = 0;
  for (uint64_t seed = 1; seed < 400 && found < 5; ++seed) {
    const Case c = make_case(Family::Wide, seed);
    const Failure f = check(c);
    if (f.stage != "planted" || f.ok()) continue;
    ++found;
    const Reduced small = reduce(c, check);
    EXPECT_EQ(small.failure.stage, "planted") << "seed " << seed;
    EXPECT_FALSE(check(small.c).ok()) << "seed " << seed;
    EXPECT_EQ(small.c.symbolic.outputs.size(), 1u) << "seed " << seed;
    EXPECT_LE(computing_nodes(small.c.symbolic), most_nodes) << "seed " << seed << "\n" << describe(small.c, "planted");
    EXPECT_NE(describe(small.c, "planted").find("--seed " + std::to_string(seed)), std::string::npos);
  }
  EXPECT_EQ(found, 5);
}

TEST(Reduce, CutsAWrongMonoidDownToItsNode) { expect_small(plant_sum, 2); }

TEST(Reduce, CutsALostDomainDownToItsNode) { expect_small(plant_whole, 2); }

TEST(Reduce, LeavesAPassingStageAlone) {
  const Case c = small_case(5);
  const Reduced same = reduce(c, [](const Case&) { return Failure{}; });
  EXPECT_TRUE(same.failure.ok());
  EXPECT_EQ(describe(same.c, ""), describe(c, ""));
}

}  // namespace
}  // namespace lemma::property
