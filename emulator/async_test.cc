// Asynchronous copies and mbarriers: a double buffer by cp.async, a ring filled by a producer warp, bulk stores; and
// what happens when a wait, a parity or a stage is wrong.

#include "emulator/testing.h"
#include "emulator/texts_testing.h"

namespace lemma::emulator {
namespace {

Report doubled(const std::string& text, const RunOptions& options, int* wrong = nullptr) {
  const int tiles = 5, blocks = 2;
  std::vector<float> x = random_floats(blocks * tiles * 64), y = nans(blocks * 64);
  Launch launch{.kernel = "doubled", .blocks = {blocks, 1, 1}, .threads = 64};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(tiles)};
  launch.options = options;
  const Report report = run(build(text), launch);
  for (int i = 0; wrong && i < blocks * 64; ++i) {
    float total = 0;
    for (int t = 0; t < tiles; ++t) {
      const float* tile = x.data() + (i / 64 * tiles + t) * 64;
      total += tile[i % 64] * tile[63 - i % 64];
    }
    *wrong += y[size_t(i)] != total;
  }
  return report;
}

TEST(Async, DoubleBufferIsRightInEveryOrder) {
  for (const RunOptions& options : all_orders()) {
    int wrong = 0;
    EXPECT_EQ(all_messages(doubled(kDouble, options, &wrong)), "");
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Async, ReadingBeforeTheWaitIsFound) {
  for (const RunOptions& options : all_orders()) {
    int wrong = 0;
    const Finding finding =
        expect(doubled(plant(kDouble, "lm_copy_wait<1>", "lm_copy_wait<2>"), options, &wrong), Fault::UnderCopy);
    EXPECT_EQ(finding.who.statement, 7);
    EXPECT_EQ(finding.buffer, "stage");
    EXPECT_EQ(finding.other->statement, 1);
    EXPECT_GT(wrong, 0);
  }
}

TEST(Async, WaitingAfterTheBarrierIsARace) {
  const std::string text = plant(plant(kDouble, "LM_AT(5); lm_copy_wait<1>();", "LM_AT(5); lm_barrier();"),
                                 "LM_AT(6); lm_barrier();", "LM_AT(6); lm_copy_wait<1>();");
  // One's own copies are there, another's may be: under way or landed without order, by who came first.
  for (const RunOptions& options : all_orders()) {
    const Report report = doubled(text, options);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_TRUE(report.findings[0].fault == Fault::Race || report.findings[0].fault == Fault::UnderCopy);
    EXPECT_EQ(report.findings[0].who.statement, 7);
  }
}

TEST(Async, ReadingAnotherStageIsFound) {
  const std::string text = plant(kDouble, "stage[t % 2 * 64 + 63 - LM_TID]", "stage[(t + 1) % 2 * 64 + 63 - LM_TID]");
  const Finding finding = expect(doubled(text, {}), Fault::UnderCopy);
  EXPECT_EQ(finding.who.statement, 7);
  EXPECT_EQ(finding.other->statement, 3);
}

TEST(Async, RefillingAStageThatIsReadIsARace) {
  for (const RunOptions& options : all_orders()) {
    const Finding finding = expect(doubled(plant(kDouble, "LM_AT(8); lm_barrier();", ""), options), Fault::Race);
    EXPECT_EQ(std::min(finding.who.statement, finding.other->statement), 3);
    EXPECT_EQ(std::max(finding.who.statement, finding.other->statement), 7);
  }
}

TEST(Async, ShortCopiesFillWithZeros) {
  const char* const text = R"(
LM_KERNEL(fill, 8) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_N) {
  LM_SHARED(float, t, 32);
  const int left = (s_N - LM_TID * 4) * 4;
  LM_AT(1); lm_copy_async<16>(t, LM_TID * 4, b_x, LM_TID * 4, left < 0 ? 0 : left > 16 ? 16 : left);
  LM_AT(2); lm_copy_wait_all();
  LM_AT(3); lm_store<4>(b_y, LM_TID * 4, lm_load<4>(t, LM_TID * 4));
}
)";
  std::vector<float> x = random_floats(21), y = nans(32);
  Launch launch{.kernel = "fill", .threads = 8};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(21)};
  EXPECT_EQ(all_messages(run(build(text), launch)), "");
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i < 21 ? x[i] : 0.0f);
  launch.scalars = {integer(22)};
  EXPECT_EQ(expect(run(build(text), launch), Fault::OutOfBounds).buffer, "x");
}

Report ring(const std::string& text, const RunOptions& options, int* wrong = nullptr, int tiles = 7) {
  const int blocks = 2;
  std::vector<float> x(size_t(blocks * tiles * 64)), y = nans(blocks * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i * i % 101);
  Launch launch{.kernel = "ring", .blocks = {blocks, 1, 1}, .threads = 96, .dynamic_shared = 3 * 256};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(tiles)};
  launch.options = options;
  const Report report = run(build(text), launch);
  for (int i = 0; wrong && i < blocks * 64; ++i) {
    float expected = 0;
    for (int t = 0; t < tiles; ++t) {
      const float* tile = x.data() + (i / 64 * tiles + t) * 64;
      expected += tile[63 - i % 64] - tile[i % 64];
    }
    *wrong += y[size_t(i)] != expected;
  }
  return report;
}

TEST(Async, RingIsRightInEveryOrder) {
  for (const RunOptions& options : all_orders()) {
    for (const int tiles : {1, 3, 7}) {
      int wrong = 0;
      EXPECT_EQ(all_messages(ring(kRing, options, &wrong, tiles)), "");
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST(Async, AWrongParityIsADeadlock) {
  const std::string text =
      plant(kRing, "lm_mbarrier_wait_parity(empty, s, parity ^ 1)", "lm_mbarrier_wait_parity(empty, s, parity)");
  for (const RunOptions& options : all_orders()) {
    const Finding finding = expect(ring(text, options), Fault::Deadlock);
    EXPECT_NE(finding.message.find("thread 0 wait at statement 3 for the phase of parity 0 of mbarrier empty[0] (64 of "
                                   "64 arrivals and 0 bytes are missing)"),
              std::string::npos)
        << finding.message;
    EXPECT_NE(finding.message.find("threads 32-95 wait at statement 6"), std::string::npos);
    EXPECT_NE(finding.message.find("threads 1-31 ended"), std::string::npos);
  }
}

TEST(Async, TooFewBytesExpectedIsADeadlockOrAWrongArrival) {
  const std::string text =
      plant(kRing, "lm_mbarrier_arrive_expect(full, s, 256)", "lm_mbarrier_arrive_expect(full, s, 512)");
  const Finding finding = expect(ring(text, {}), Fault::Deadlock);
  EXPECT_NE(finding.message.find("0 of 1 arrivals and 256 bytes are missing"), std::string::npos) << finding.message;
}

TEST(Async, AnEmptyBarrierThatCountsTooFewIsARace) {
  // The producer goes on when one of the two warps has left the stage; the other may still read it.
  std::string text = plant(kRing, "lm_mbarrier_init(empty, s, 64)", "lm_mbarrier_init(empty, s, 32)");
  text =
      plant(text, "LM_AT(8); lm_mbarrier_arrive(empty, s)", "LM_AT(8); if (LM_WARP == 1) lm_mbarrier_arrive(empty, s)");
  for (const RunOptions& options : all_orders()) {
    const Report report = ring(text, options);
    ASSERT_FALSE(report.findings.empty());
    const Finding& finding = report.findings[0];
    EXPECT_EQ(finding.buffer, "the shared pool");
    ASSERT_TRUE(finding.other.has_value());
    EXPECT_EQ(finding.who.statement + finding.other->statement, 5 + 7) << finding.message;
  }
}

TEST(Async, ReadingAStageThatWasNotWaitedForIsFound) {
  for (const RunOptions& options : all_orders()) {
    const Report report =
        ring(plant(kRing, "+ 2 * stage[s * 64 + 63 - i]", "+ 2 * stage[(s + 1) % 3 * 64 + 63 - i]"), options);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].buffer, "the shared pool");
    EXPECT_TRUE(report.findings[0].who.statement == 7 || report.findings[0].other->statement == 7);
  }
}

TEST(Async, ALandedCopyIsStillNotOursWithoutAWait) {
  // In round-robin order copies land at once, so nothing is under way: only the missing order tells.
  const std::string text = plant(kRing, "while (!lm_mbarrier_try_wait_parity(full, s, parity)) {}", "");
  bool race = false, other = false;
  for (const RunOptions& options : all_orders()) {
    const Report report = ring(text, options);
    ASSERT_FALSE(report.findings.empty());
    for (const Finding& finding : report.findings) (finding.fault == Fault::Race ? race : other) = true;
  }
  EXPECT_TRUE(race);
  EXPECT_TRUE(other);
}

TEST(Async, AMissingNamedBarrierIsARace) {
  const Finding finding = expect(ring(plant(kRing, "lm_barrier_named(1, 64);", ""), {}), Fault::Race);
  EXPECT_EQ(finding.buffer, "sums");
}

TEST(Async, ANamedBarrierForTooManyIsReported) {
  const Finding finding =
      expect(ring(plant(kRing, "lm_barrier_named(1, 64)", "lm_barrier_named(1, 96)"), {}), Fault::Divergence);
  EXPECT_NE(finding.message.find("wait at statement 10 for barrier 1 (64 of 96 came)"), std::string::npos);
}

TEST(Async, ArrivingTwiceIsReported) {
  const std::string text = plant(kRing, "LM_AT(10); lm_barrier_named(1, 64);",
                                 "LM_AT(10); lm_barrier_arrive(1, 64); LM_AT(12); lm_barrier_named(1, 64);");
  const Finding finding = expect(ring(text, {}), Fault::Misuse);
  EXPECT_NE(finding.message.find("comes to barrier 1 a second time"), std::string::npos) << finding.message;
  EXPECT_EQ(finding.who.statement, 12);
  const std::string extra = plant(kRing, "LM_AT(4); ", "LM_AT(4); lm_mbarrier_arrive_expect(full, s, 256); ");
  EXPECT_EQ(expect(ring(extra, {}), Fault::Misuse).buffer, "full");
}

TEST(Async, MbarriersAreInitialisedBeforeUse) {
  EXPECT_EQ(expect(ring(plant(kRing, "lm_mbarrier_init(full, s, 1);", ""), {}), Fault::Misuse).buffer, "full");
  EXPECT_EQ(expect(ring(plant(kRing, "LM_AT(2); lm_barrier();", ""), {}), Fault::Race).who.statement, 6);
}

Report stored(const std::string& text, const RunOptions& options, int* wrong = nullptr) {
  const int tiles = 6;
  std::vector<float> x = random_floats(tiles * 32), y = nans(tiles * 32);
  Launch launch{.kernel = "stored", .threads = 32};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(tiles)};
  launch.options = options;
  const Report report = run(build(text), launch);
  for (size_t i = 0; wrong && i < y.size(); ++i) *wrong += y[i] != 2 * x[i];
  return report;
}

TEST(Async, BulkStoresAreRightInEveryOrder) {
  for (const RunOptions& options : all_orders()) {
    int wrong = 0;
    EXPECT_EQ(all_messages(stored(kStore, options, &wrong)), "");
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Async, WritingUnderABulkStoreIsARace) {
  int wrong = 0;
  const Finding finding =
      expect(stored(plant(kStore, "lm_bulk_wait_read<1>", "lm_bulk_wait_read<2>"), {}, &wrong), Fault::Race);
  EXPECT_EQ(finding.who.statement, 3);
  EXPECT_EQ(finding.other->statement, 6);
  EXPECT_GT(wrong, 0);
}

TEST(Async, ABulkStoreNeedsAFence) {
  const Finding finding = expect(stored(plant(kStore, "lm_fence_async();", ""), {}), Fault::NoFence);
  EXPECT_EQ(finding.who.statement, 6);
  EXPECT_EQ(finding.other->statement, 3);
}

TEST(Async, BulkCopiesAreMultiplesOfSixteenBytes) {
  EXPECT_EQ(expect(stored(plant(kStore, "i % 2 * 32, 128)", "i % 2 * 32, 120)"), {}), Fault::Misaligned).who.statement,
            6);
  EXPECT_EQ(expect(ring(plant(plant(kRing, "* 64, 256, full, s)", "* 64, 248, full, s)"),
                              "lm_mbarrier_arrive_expect(full, s, 256)", "lm_mbarrier_arrive_expect(full, s, 248)"),
                        {}),
                   Fault::Misaligned)
                .who.statement,
            5);
  EXPECT_EQ(expect(ring(plant(kRing, "* 64, 256, full, s)", "* 64 + 1, 256, full, s)"), {}), Fault::Misaligned).buffer,
            "x");
}

TEST(Async, ABlockMayNotEndUnderABulkStore) {
  const Finding finding = expect(stored(plant(kStore, "if (LM_TID == 0) lm_bulk_wait<0>();", ""), {}), Fault::Misuse);
  EXPECT_EQ(finding.who.statement, 6);
}

}  // namespace
}  // namespace lemma::emulator
