// Kernels without asynchronous copies and matrix units, right and with planted faults.

#include "emulator/testing.h"
#include "emulator/texts_testing.h"

namespace lemma::emulator {
namespace {

struct Add {
  std::vector<float> x, y, z;
  Launch launch;
  explicit Add(int64_t n) : x(random_floats(size_t(n), 1)), y(random_floats(size_t(n), 2)), z(nans(size_t(n))) {
    launch = {.kernel = "add", .blocks = {(n + 127) / 128, 1, 1}, .threads = 128};
    launch.buffers = {input("x", x), input("y", y), output("z", z)};
    launch.scalars = {integer(n)};
    launch.statements = {"", "i = ...", "z[i] = x[i] + y[i]"};
  }
};

TEST(Simple, AddsVectorsInEveryOrder) {
  const Module module = build(kAdd);
  for (const RunOptions& options : all_orders()) {
    Add add(1000);
    add.launch.options = options;
    const Report report = run(module, add.launch);
    EXPECT_EQ(all_messages(report), "");
    EXPECT_EQ(report.steps, 2 * 1024 + 3 * 1000);
    EXPECT_EQ(report.accesses, 3 * 1000);
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(add.z[i], add.x[i] + add.y[i]);
  }
}

TEST(Simple, OffByOneGuardIsOutOfBounds) {
  const Module module = build(plant(kAdd, "i < s_N", "i <= s_N"));
  Add add(1000);
  const Report report = run(module, add.launch);
  const Finding finding = expect(report, Fault::OutOfBounds);
  EXPECT_EQ(finding.message,
            "out of bounds in kernel add, statement 2 (z[i] = x[i] + y[i]): thread 104 of block 7 reads x[1000], and x "
            "has 1000 elements");
  EXPECT_EQ(finding.element, 1000);
  EXPECT_EQ(report.findings.size(), 3u);  // x, y and z
  EXPECT_FALSE(report.stopped);
}

TEST(Simple, LaunchesThatDoNotFitAreRefused) {
  const Module module = build(kAdd);
  Add add(10);
  add.launch.threads = 129;
  EXPECT_EQ(module.run(add.launch).error().message,
            "kernel add is launched with 129 threads a block, expected 1 to 128");
  add.launch.threads = 128;
  add.launch.scalars.clear();
  EXPECT_EQ(module.run(add.launch).error().message,
            "kernel add is launched with 3 buffers and 0 scalars, expected 3 and 1");
  add.launch.kernel = "sub";
  EXPECT_EQ(module.run(add.launch).error().message, "the text has no kernel 'sub', its first is add");
}

Report transpose(const std::string& text, const RunOptions& options, int* wrong = nullptr) {
  const int m = 37, n = 50;
  std::vector<float> x = random_floats(m * n), y = nans(m * n);
  Launch launch{.kernel = "transpose", .blocks = {4, 3, 1}, .threads = 256};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(m), integer(n)};
  launch.statements = {"", "", "load", "barrier", "", "store"};
  launch.options = options;
  const Report report = run(build(text), launch);
  for (int i = 0; wrong && i < m; ++i) {
    for (int j = 0; j < n; ++j) *wrong += y[size_t(j * m + i)] != x[size_t(i * n + j)];
  }
  return report;
}

TEST(Simple, TransposesInEveryOrder) {
  for (const RunOptions& options : all_orders()) {
    int wrong = 0;
    EXPECT_EQ(all_messages(transpose(kTranspose, options, &wrong)), "");
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Simple, ADroppedBarrierIsARace) {
  const std::string text = plant(kTranspose, "lm_barrier();", "");
  for (const RunOptions& options : all_orders()) {
    const Report report = transpose(text, options);
    // Whoever comes first: its read finds nothing, or the write comes after the read or before it with no order.
    const Finding race = expect(report, Fault::Race);
    EXPECT_EQ(race.buffer, "tile");
    ASSERT_TRUE(race.other.has_value());
    EXPECT_EQ(std::min(race.who.statement, race.other->statement), 2);
    EXPECT_EQ(std::max(race.who.statement, race.other->statement), 5);
  }
  int wrong = 0;
  transpose(text, {}, &wrong);
  EXPECT_GT(wrong, 0);  // the race shows in the values too
}

TEST(Simple, AWrongStrideReadsWhatNobodyWrote) {
  const Report report = transpose(plant(kTranspose, "= tile[c * 17 + r]", "= tile[c * 17 + r + 1]"), {});
  const Finding finding = expect(report, Fault::Uninitialised);
  EXPECT_EQ(finding.buffer, "tile");
  EXPECT_EQ(finding.who.statement, 5);
}

TEST(Simple, ABarrierUnderABranchIsADivergence) {
  const std::string text =
      plant(kTranspose, "lm_barrier();", "if (r < 12) lm_barrier(); LM_AT(6); if (r >= 12) lm_barrier();");
  for (const RunOptions& options : all_orders()) {
    const Finding finding = expect(transpose(text, options), Fault::Divergence);
    ASSERT_TRUE(finding.other.has_value());
    EXPECT_EQ(finding.who.statement + finding.other->statement, 3 + 6) << finding.message;
  }
  const Report report = transpose(plant(kTranspose, "lm_barrier();", "if (r < 12) lm_barrier();"), {});
  EXPECT_TRUE(report.stopped);
  EXPECT_NE(expect(report, Fault::Divergence)
                .message.find("threads 0-191 wait at statement 3 (barrier) for barrier 0 (192 of 256 came)"),
            std::string::npos);
}

Report sum(const std::string& text, const RunOptions& options, std::vector<float>* result) {
  std::vector<float> x(3 * 1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97);
  *result = nans(3);
  Launch launch{.kernel = "sum", .blocks = {3, 1, 1}, .threads = 256};
  launch.buffers = {input("x", x), output("y", *result)};
  launch.scalars = {integer(1000)};
  launch.options = options;
  const Report report = run(build(text), launch);
  for (size_t b = 0; b < 3; ++b) {
    float expected = 0;
    for (size_t i = 0; i < 1000; ++i) expected += x[b * 1000 + i];
    (*result)[b] -= expected;
  }
  return report;
}

TEST(Simple, ReducesByShufflesInEveryOrder) {
  for (const RunOptions& options : all_orders()) {
    std::vector<float> difference;
    EXPECT_EQ(all_messages(sum(kSum, options, &difference)), "");
    EXPECT_EQ(difference, std::vector<float>(3, 0.0f));
  }
}

TEST(Simple, AShuffleInHalfAWarpIsADivergence) {
  const std::string text = plant(kSum, "if (LM_WARP == 0)", "if (LM_TID < 8)");
  std::vector<float> difference;
  const Finding finding = expect(sum(text, {}, &difference), Fault::Divergence);
  EXPECT_NE(finding.message.find("threads 0-7 wait at statement 7 for the other lanes of their warp"),
            std::string::npos)
      << finding.message;
}

TEST(Simple, ShufflesDoNotOrderMemory) {
  const char* const text = R"(
LM_KERNEL(pass, 32) (LM_GLOBAL(int) b_y) {
  LM_SHARED(int, t, 32);
  LM_AT(1); t[LM_LANE] = LM_LANE;
  LM_AT(2); @
  LM_AT(3); b_y[LM_LANE] = t[LM_LANE ^ 1];
}
)";
  for (const bool synced : {true, false}) {
    std::vector<int> y(32, -1);
    Launch launch{.kernel = "pass", .threads = 32};
    launch.buffers = {output("y", y)};
    const Report report = run(build(plant(text, "@", synced ? "lm_warp_sync();" : "lm_shuffle(LM_LANE, 0);")), launch);
    EXPECT_EQ(y[7], 6);
    if (synced) {
      EXPECT_EQ(all_messages(report), "");
    } else {
      EXPECT_EQ(expect(report, Fault::Race).buffer, "t");
    }
  }
}

Report histogram(const std::string& text, std::vector<int>* y, bool zeroed = true, const RunOptions& options = {}) {
  std::vector<int> x(200);
  for (size_t i = 0; i < x.size(); ++i) x[i] = int(i * i % 10);
  y->assign(10, 0);
  Launch launch{.kernel = "histogram", .blocks = {4, 1, 1}, .threads = 64};
  launch.buffers = {input("x", x), zeroed ? input("y", *y) : output("y", *y)};
  launch.scalars = {integer(200)};
  launch.options = options;
  return run(build(text), launch);
}

TEST(Simple, CountsByAtomics) {
  std::vector<int> y;
  EXPECT_EQ(all_messages(histogram(kHistogram, &y)), "");
  EXPECT_EQ(y, (std::vector<int>{20, 40, 0, 0, 40, 20, 40, 0, 0, 40}));
  EXPECT_EQ(expect(histogram(kHistogram, &y, false), Fault::Uninitialised).buffer, "y");
}

TEST(Simple, APlainAddInPlaceOfAnAtomicIsARace) {
  std::vector<int> y;
  const Report report = histogram(plant(kHistogram, "lm_atomic_add(b_y, b_x[i], 1)", "b_y[b_x[i]] += 1"), &y);
  const Finding finding = expect(report, Fault::Race);
  EXPECT_EQ(
      finding.message,
      "race in kernel histogram, statement 2: thread 6 of block 0 reads y[6], which thread 4 at statement 2 wrote, "
      "and nothing orders the two");
}

TEST(Simple, ALostUpdateShowsInTheValues) {
  RunOptions options;
  options.order = Order::Random;
  options.preempt = 3;
  std::vector<int> y;
  EXPECT_EQ(all_messages(histogram(kHistogram, &y, true, options)), "");
  EXPECT_EQ(y[1], 40);
  (void)histogram(plant(kHistogram, "lm_atomic_add(b_y, b_x[i], 1)", "b_y[b_x[i]] += 1"), &y, true, options);
  EXPECT_LT(y[1], 40);
}

TEST(Simple, BlocksRaceOnGlobalMemory) {
  const char* const text = R"(
LM_KERNEL(touch, 32) (LM_GLOBAL(float) b_y) {
  LM_AT(1); @
}
)";
  const auto races = [&](const char* statement) {
    std::vector<float> y(64, 0.0f);
    Launch launch{.kernel = "touch", .blocks = {2, 1, 1}, .threads = 32};
    launch.buffers = {input("y", y)};
    const Report report = run(build(plant(text, "@", statement)), launch);
    if (!report.findings.empty()) {
      EXPECT_EQ(report.findings[0].fault, Fault::Race);
      EXPECT_EQ(report.findings[0].who.block, 1);
      EXPECT_EQ(report.findings[0].other->block, 0);
      EXPECT_EQ(report.findings[0].other->thread, report.findings[0].who.thread);
    }
    return !report.findings.empty();
  };
  EXPECT_FALSE(races("b_y[LM_BLOCK_X * 32 + LM_TID] = 1;"));
  EXPECT_TRUE(races("b_y[LM_TID] = 1;"));
  EXPECT_TRUE(races("if (LM_BLOCK_X == 0) b_y[LM_TID] = 1; else { const float seen = b_y[LM_TID]; }"));
  EXPECT_TRUE(races("if (LM_BLOCK_X == 1) b_y[LM_TID] = 1; else { const float seen = b_y[LM_TID]; }"));
  EXPECT_FALSE(races("const float seen = b_y[LM_TID];"));
}

TEST(Simple, EveryReaderIsRemembered) {
  // Thread 0 writes after a named barrier with warp 1 only; threads of warp 2 have read and were not at it.
  const char* const text = R"(
LM_KERNEL(late, 96) (LM_GLOBAL(float) b_y) {
  LM_SHARED(float, t, 1);
  LM_AT(1); if (LM_TID == 0) t[0] = 1;
  LM_AT(2); lm_barrier();
  LM_AT(3); if (LM_TID == @) b_y[0] = t[0];
  LM_AT(4); if (LM_WARP != 0) b_y[LM_TID] = t[0];
  LM_AT(5); if (LM_WARP < 2) lm_barrier_named(1, 64);
  LM_AT(6); if (LM_TID == 0) t[0] = 2;
}
)";
  std::vector<float> y(96, 0.0f);
  Launch launch{.kernel = "late", .threads = 96};
  launch.buffers = {input("y", y)};
  for (const RunOptions& options : all_orders()) {
    launch.options = options;
    const Finding finding = expect(run(build(plant(text, "@", "1000")), launch), Fault::Race);
    EXPECT_EQ(std::min(finding.who.statement, finding.other->statement), 4);
    EXPECT_EQ(std::max(finding.who.statement, finding.other->statement), 6);
    const std::string all =
        plant(plant(text, "@", "1000"), "if (LM_WARP < 2) lm_barrier_named(1, 64)", "lm_barrier_named(1, 96)");
    EXPECT_EQ(all_messages(run(build(all), launch)), "");
  }
}

TEST(Simple, ReadersOfVectorsAreRememberedByElement) {
  // Warp 2 has read all four elements, and the writer of one has only heard of warp 1, which has too.
  const char* const text = R"(
LM_KERNEL(split, 96) (LM_GLOBAL(float) b_y) {
  LM_SHARED(float, t, 4);
  LM_AT(1); if (LM_TID == 0) lm_store<4>(t, 0, lm_vec<float, 4>{1, 2, 3, 4});
  LM_AT(2); lm_barrier();
  LM_AT(3); if (LM_LANE == 0 && LM_WARP > 0) lm_store<4>(b_y, LM_WARP * 4, lm_load<4>(t, 0));
  LM_AT(4); if (LM_WARP < 2) lm_barrier_named(1, 64);
  LM_AT(5); if (LM_TID == 0) t[3] = 5;
}
)";
  std::vector<float> y(12, 0.0f);
  Launch launch{.kernel = "split", .threads = 96};
  launch.buffers = {input("y", y)};
  for (const RunOptions& options : all_orders()) {
    launch.options = options;
    const Finding finding = expect(run(build(text), launch), Fault::Race);
    EXPECT_EQ(finding.buffer, "t");
    EXPECT_EQ(std::max(finding.who.thread, finding.other->thread), 64);
  }
}

TEST(Simple, VectorsMustBeAligned) {
  const char* const text = R"(
LM_KERNEL(copy, 32) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, int s_from) {
  LM_AT(1); lm_store<4>(b_y, LM_TID * 4, lm_load<4>(b_x, LM_TID * 4 + s_from));
}
)";
  std::vector<float> x = random_floats(132), y = nans(128);
  Launch launch{.kernel = "copy", .threads = 32};
  launch.buffers = {input("x", x), output("y", y)};
  launch.scalars = {integer(4)};
  const Module module = build(text);
  EXPECT_EQ(all_messages(run(module, launch)), "");
  for (size_t i = 0; i < 128; ++i) ASSERT_EQ(y[i], x[i + 4]);
  launch.scalars = {integer(2)};
  EXPECT_EQ(
      expect(run(module, launch), Fault::Misaligned).message,
      "misaligned access in kernel copy, statement 1: thread 0 of block 0 accesses 16 bytes at x[2], byte 8, which "
      "is no multiple of 16");
}

TEST(Simple, NeighbouringBytesAreNoRace) {
  const char* const text = R"(
LM_KERNEL(bytes, 64) (LM_GLOBAL(const int) b_x, LM_GLOBAL(signed char) b_y) {
  LM_SHARED(signed char, t, 64);
  LM_AT(1); t[LM_TID] = (signed char)b_x[LM_TID];
  LM_AT(2); lm_barrier();
  LM_AT(3); const lm_vec<signed char, 16> v = lm_load<16>(t, LM_TID / 16 * 16);
  LM_AT(4); b_y[LM_TID] = v[LM_TID % 16];
}
)";
  std::vector<int> x(64);
  for (size_t i = 0; i < 64; ++i) x[i] = int(i) - 30;
  std::vector<signed char> y(64, 99);
  Launch launch{.kernel = "bytes", .threads = 64};
  launch.buffers = {input("x", x), output("y", y)};
  EXPECT_EQ(all_messages(run(build(text), launch)), "");
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(y[i], x[i]);
}

TEST(Simple, ElementsMayBeStructs) {
  const char* const text = R"(
struct three { float a, b, c; };
LM_KERNEL(structs, 32) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y) {
  LM_SHARED(three, t, 32);
  LM_AT(1); t[LM_TID] = three{b_x[LM_TID], 2 * b_x[LM_TID], 3};
  LM_AT(2); lm_barrier();
  LM_AT(3); const three v = t[31 - LM_TID];
  LM_AT(4); b_y[LM_TID] = v.a + v.b + v.c;
}
)";
  std::vector<float> x = random_floats(32), y = nans(32);
  Launch launch{.kernel = "structs", .threads = 32};
  launch.buffers = {input("x", x), output("y", y)};
  EXPECT_EQ(all_messages(run(build(text), launch)), "");
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], x[31 - i] + 2 * x[31 - i] + 3);
  const Finding finding = expect(run(build(plant(text, "lm_barrier();", "")), launch), Fault::Race);
  EXPECT_EQ(finding.buffer, "t");
}

TEST(Simple, SpinningIsEndless) {
  const char* const text = R"(
LM_KERNEL(spin, 2) (LM_GLOBAL(int) b_y) {
  if (LM_TID == 0) { LM_AT(1); while (lm_atomic_or(b_y, 0, 0) == 0) {} }
  LM_AT(2); if (LM_TID == @) lm_atomic_exchange(b_y, 0, 1);
}
)";
  std::vector<int> y(1, 0);
  Launch launch{.kernel = "spin", .threads = 2};
  launch.buffers = {input("y", y)};
  launch.options.most_steps = 1000000;
  for (const Order order : {Order::RoundRobin, Order::Reversed}) {
    y[0] = 0;
    launch.options.order = order;
    EXPECT_EQ(all_messages(run(build(plant(text, "@", "1")), launch)), "");
    y[0] = 0;
    EXPECT_EQ(expect(run(build(plant(text, "@", "0")), launch), Fault::Endless).who.statement, 1);
  }
}

}  // namespace
}  // namespace lemma::emulator
