#include "lemma/runtime/host.h"

#include <gtest/gtest.h>

namespace lemma::runtime {
namespace {

TEST(Host, TargetIsOneTheMachineRuns) {
  const tile::Target host = host_target();
  EXPECT_TRUE(runs_here(host).ok());
  EXPECT_GE(host.l1_bytes, 8 << 10);
  EXPECT_GE(host.l2_bytes, 64 << 10);
  EXPECT_EQ(*named_target("host"), host);
#if defined(__AVX512F__)
  EXPECT_EQ(host.name, "avx512");
#endif
}

TEST(Host, NamedTargetsAreWhatTheirNamesSay) {
  struct Row {
    const char* name;
    int bytes, registers;
    bool fma;
  };
  for (const Row& row : {Row{"generic", 16, 16, false}, Row{"sse2", 16, 16, false}, Row{"avx2", 32, 16, true},
                         Row{"avx512", 64, 32, true}, Row{"neon", 16, 32, true}}) {
    const tile::Target target = *named_target(row.name);
    EXPECT_EQ(target.name, row.name);
    EXPECT_EQ(target.vector_bytes, row.bytes);
    EXPECT_EQ(target.vector_registers, row.registers);
    EXPECT_EQ(target.fma, row.fma);
  }
  EXPECT_EQ(base::render(named_target("vax").error()),
            "error: there is no target 'vax'\n  help: one of host generic sse2 avx2 avx512 neon\n");
}

TEST(Host, ForeignTargetsAreRefused) {
#if defined(__x86_64__)
  const auto refused = runs_here(*named_target("neon"));
#else
  const auto refused = runs_here(*named_target("avx2"));
#endif
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().failure, base::Failure::Unsupported);
}

}  // namespace
}  // namespace lemma::runtime
