// The race detector against an oracle that keeps everything: random scripts of reads, writes and atomics of a few cells
// with barriers of every kind between, run by one kernel that interprets them. The cells that the oracle calls racy
// must be those, and only those, that the emulator names, in every order of threads.

#include <array>
#include <set>

#include "emulator/testing.h"

namespace lemma::emulator {
namespace {

constexpr int kThreads = 64, kCells = 4, kPhases = 8;

enum Sync { None, Block, Warp0, Warp1, Named, OneWay, ByMbarrier, kSyncs };

const char* const kScript = R"(
LM_KERNEL(script, 64) (LM_GLOBAL(const int) b_script, LM_GLOBAL(const int) b_syncs, LM_GLOBAL(int) b_cells, int s_global) {
  LM_SHARED(int, own, 4);
  LM_SHARED(lm_mbarrier, bar, 1);
  LM_AT(1); if (LM_TID == 0) lm_mbarrier_init(bar, 0, 32);
  LM_AT(2); if (LM_TID < 4) own[LM_TID] = 0;
  LM_AT(3); lm_barrier();
  int total = 0, parity = 0;
  for (int p = 0; p < 8; ++p) {
    const int op = b_script[(LM_BLOCK_X * 8 + p) * 64 + LM_TID], kind = op / 4, cell = op % 4;
    const LM_POINTER(int) cells = s_global ? b_cells : own;
    LM_AT(10 + cell);
    if (kind == 1) total += cells[cell];
    if (kind == 2) cells[cell] = p;
    if (kind == 3) lm_atomic_add(cells, cell, 1);
    const int sync = b_syncs[p];
    LM_AT(20 + p);
    if (sync == 1) lm_barrier();
    if (sync == 2 && LM_WARP == 0) lm_warp_sync();
    if (sync == 3 && LM_WARP == 1) lm_warp_sync();
    if (sync == 4 && LM_WARP == 0) lm_barrier_named(1, 32);
    if (sync == 5) { if (LM_WARP == 0) lm_barrier_arrive(2, 64); else lm_barrier_named(2, 64); }
    if (sync == 6) {
      if (LM_WARP == 1) { lm_mbarrier_arrive(bar, 0); } else { lm_mbarrier_wait_parity(bar, 0, parity); }
      parity ^= 1;
    }
  }
}
)";

struct Script {
  int blocks = 1;
  std::vector<int> ops, syncs;  // ops[block][phase][thread]

  explicit Script(uint64_t seed) {
    std::mt19937_64 random(seed);
    blocks = 1 + int(random() % 2);
    ops.assign(size_t(blocks * kPhases * kThreads), 0);
    // Who only arrives must hear from the others before it arrives again.
    bool one_way = true, by_mbarrier = true;
    for (int p = 0; p < kPhases; ++p) {
      int sync = random() % 4 == 0 ? int(None) : int(random() % kSyncs);
      if ((sync == OneWay && !one_way) || (sync == ByMbarrier && !by_mbarrier)) sync = None;
      if (sync == OneWay) one_way = false, by_mbarrier = true;
      if (sync == ByMbarrier) by_mbarrier = false, one_way = true;
      if (sync == Block) one_way = by_mbarrier = true;
      syncs.push_back(sync);
    }
    std::array<int, 5> active{};
    for (int& thread : active) thread = int(random() % kThreads);
    for (size_t i = 0; i < size_t(blocks * kPhases); ++i) {
      for (const int thread : active) {
        if (random() % 8 == 0) ops[i * kThreads + size_t(thread)] = int(4 * (1 + random() % 3) + random() % kCells);
      }
    }
  }

  // known[t][u]: the accesses of u in phases below it happen before what t does in the phase asked for.
  std::vector<std::array<int, kThreads>> knowledge(int phase) const {
    std::vector<std::array<int, kThreads>> known(kThreads);
    for (auto& row : known) row.fill(0);
    for (int p = 0; p < phase; ++p) {
      const auto before = known;
      const auto learn = [&](int from, int to, int first, int last) {  // [first, last) learn from [from, to)
        for (int t = first; t < last; ++t) {
          for (int u = from; u < to; ++u) {
            for (int v = 0; v < kThreads; ++v)
              known[size_t(t)][size_t(v)] = std::max(known[size_t(t)][size_t(v)], before[size_t(u)][size_t(v)]);
            known[size_t(t)][size_t(u)] = p + 1;
          }
        }
      };
      switch (Sync(syncs[size_t(p)])) {
        case Block:
          learn(0, 64, 0, 64);
          break;
        case Warp0:
        case Named:
          learn(0, 32, 0, 32);
          break;
        case Warp1:
          learn(32, 64, 32, 64);
          break;
        case OneWay:
          learn(0, 64, 32, 64);
          break;
        case ByMbarrier:
          learn(32, 64, 0, 32);
          break;
        default:
          break;
      }
    }
    return known;
  }

  std::set<int64_t> racy(bool is_global) const {
    struct Done {
      int block, phase, thread, kind, cell;
    };
    std::vector<Done> all;
    for (size_t i = 0; i < ops.size(); ++i) {
      const int at = int(i), op = ops[i];
      if (op) all.push_back({at / kThreads / kPhases, at / kThreads % kPhases, at % kThreads, op / 4, op % 4});
    }
    std::set<int64_t> out;
    for (const Done& late : all) {
      const auto known = knowledge(late.phase);
      for (const Done& early : all) {
        if (early.cell != late.cell || (early.kind == late.kind && early.kind != 2)) continue;
        if (early.block != late.block) {
          if (is_global) out.insert(late.cell);
        } else if (early.thread != late.thread && early.phase <= late.phase &&
                   early.phase >= known[size_t(late.thread)][size_t(early.thread)]) {
          out.insert(late.cell);
        }
      }
    }
    return out;
  }
};

TEST(Race, AgreesWithTheOracleOnRandomScripts) {
  const Module module = build(kScript);
  int racy = 0, clean = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    Script script(seed);
    for (const bool is_global : {false, true}) {
      const std::set<int64_t> expected = script.racy(is_global);
      (expected.empty() ? clean : racy) += 1;
      for (RunOptions options : all_orders()) {
        std::vector<int> cells(kCells, 0);
        Launch launch{.kernel = "script", .blocks = {script.blocks, 1, 1}, .threads = kThreads};
        launch.buffers = {input("script", script.ops), input("syncs", script.syncs), input("cells", cells)};
        launch.scalars = {integer(is_global)};
        options.most_findings = 1000;
        launch.options = options;
        const Report report = run(module, launch);
        std::set<int64_t> found;
        for (const Finding& finding : report.findings) {
          EXPECT_EQ(finding.fault, Fault::Race) << finding.message;
          EXPECT_EQ(finding.buffer, is_global ? "cells" : "own") << finding.message;
          found.insert(finding.element);
        }
        ASSERT_EQ(found, expected) << "seed " << seed << (is_global ? ", global" : ", shared") << "\n"
                                   << all_messages(report);
      }
    }
  }
  EXPECT_GT(racy, 40);
  EXPECT_GT(clean, 40);
}

}  // namespace
}  // namespace lemma::emulator
