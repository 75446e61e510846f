// Random graphs through every stage (stages.h): each pass, the tile text, the block interpreter and the compiled C agree
// with the oracle. LEMMA_PROPERTY_COUNT and LEMMA_PROPERTY_SEED choose others; lemma_fuzz goes on without end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "tests/property/batch.h"
#include "tests/property/campaign.h"
#include "tests/property/small.h"

namespace lemma::property {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void expect_agreement(const Plan& plan, double least_compiled) {
  const Report report = run(plan);
  std::cout << name(plan.family) << " from seed " << plan.seed << ": " << report.cases << " graphs, " << report.compiled
            << " compiled and run, " << report.interpreted << " interpreted, " << report.refused << " refused, " << report.seconds
            << " s, " << report.compiler_seconds << " s of C compiler" << std::endl;
  for (const std::string& f : report.failures) ADD_FAILURE() << f;
  // Nothing is passed over in silence: what is not refused was compiled and compared.
  EXPECT_GE(double(report.compiled), least_compiled * double(report.cases));
}

TEST(Property, WideGraphsAgreeWithTheOracleInEveryStage) {
  Plan plan;
  plan.family = Family::Wide;
  plan.seed = from_environment("LEMMA_PROPERTY_SEED", 1);
  plan.count = from_environment("LEMMA_PROPERTY_COUNT", 3000);
  plan.tile_share = 2;
  plan.run_share = 8;
  expect_agreement(plan, 0.9);
}

TEST(Property, PlainGraphsAgreeWithTheOracleInEveryStage) {
  Plan plan;
  plan.family = Family::Plain;
  plan.seed = from_environment("LEMMA_PROPERTY_SEED", 1);
  plan.count = from_environment("LEMMA_PROPERTY_COUNT", 1200);
  plan.tile_share = 2;
  plan.run_share = 8;
  expect_agreement(plan, 0.9);
}

TEST(Property, SmallGraphsAgreeWithTheOracleInEveryStage) {
  Plan plan;
  plan.family = Family::Small;
  plan.seed = 0;
  plan.step = 7;  // prime to every radix of the numbers, so all digits vary
  plan.count = small_count() / 7;
  plan.tile_share = 4;
  plan.run_share = 8;
  expect_agreement(plan, 1);
}

TEST(Property, CasesAreTheSameForTheSameSeedAndDifferForOthers) {
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    EXPECT_EQ(describe(make_case(Family::Wide, seed), ""), describe(make_case(Family::Wide, seed), ""));
    texts.insert(describe(make_case(Family::Wide, seed), ""));
  }
  EXPECT_EQ(texts.size(), 40u);
}

// The comparison itself: classes before values, nan only like nan.
TEST(Property, DifferencesAreSeen) {
  tensor::Array expected, found;
  expected.extents = found.extents = {2};
  expected.data = {scalar::from_float(1), scalar::from_float(0.0 / 0.0)};
  found.data = expected.data;
  EXPECT_EQ(difference("o", expected, found, 0), "");
  found.data[1] = scalar::from_float(1);
  EXPECT_NE(difference("o", expected, found, 1e9), "");
  found.data = {scalar::from_float(1.001), expected.data[1]};
  EXPECT_NE(difference("o", expected, found, 1e-4), "");
  EXPECT_EQ(difference("o", expected, found, 1e-2), "");
}

}  // namespace
}  // namespace lemma::property
