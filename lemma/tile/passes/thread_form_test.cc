// Thread form: that nothing changes (by the block interpreter, at every number of turns), what is placed where, and that
// it is text that parses back.
#include "lemma/tile/passes/thread_form.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lemma/layout/fragment.h"
#include "lemma/layout/text.h"
#include "lemma/layout/algebra.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/equal.h"
#include "lemma/tile/fragments.h"
#include "lemma/tile/parse.h"
#include "lemma/tile/passes/pipeline.h"
#include "lemma/tile/passes/place_barriers.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {
namespace {

Program parsed(const std::string& text) {
  auto p = parse(text, "test");
  if (!p.ok()) ADD_FAILURE() << base::render(p.error()) << text;
  return p.ok() ? *std::move(p) : Program();
}

std::string product(const std::string& type, const std::string& depth, const std::string& loop = "0 .. ceildiv(K, 16)") {
  return "program p {\n  size M, N, K\n  input a " + type + "[M, K]\n  input b " + type + "[K, N]\n  output c f32[M, N]\n"
         "  kernel k grid (y < ceildiv(M, 32), x < ceildiv(N, 32)) threads 64 {\n"
         "    shared as " + type + "[32, 16], bs " + type + "[16, 32]\n    fragment acc f32[32, 32] = 0\n"
         "    for k in " + loop + " pipelined " + depth + " {\n"
         "      copy a[y*32 +: 32, k*16 +: 16] -> as fill 0\n      copy b[k*16 +: 16, x*32 +: 32] -> bs fill 0\n"
         "      gemm acc += as * bs\n    }\n    copy acc -> c[y*32 +: 32, x*32 +: 32]\n  }\n}\n";
}

Program formed(const Program& p, std::vector<std::string>* said = nullptr, int64_t shared = 48 << 10) {
  std::vector<std::string> notes;
  Program out = thread_form(p, {{128, true}, shared}, notes);
  if (said) *said = notes;
  const auto valid = validate(out);
  EXPECT_TRUE(valid.ok()) << base::render(valid.error()) << print(out);
  return out;
}

const Buffer& named(const Program& p, const std::string& name) {
  for (const Buffer& b : p.buffers) {
    if (b.name == name) return b;
  }
  ADD_FAILURE() << "no buffer " << name;
  return p.buffers[0];
}

std::vector<float> outputs(const Program& p, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a(size_t(m * k)), b(size_t(k * n)), c(size_t(m * n), NAN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i) b[i] = float(i % 7) - 3;
  const std::vector<Argument> arguments{{a.data(), m * k}, {b.data(), k * n}, {c.data(), m * n}};
  const std::vector<SizeValue> sizes{{"M", m}, {"N", n}, {"K", k}};
  const auto done = run(p, sizes, arguments);
  EXPECT_TRUE(done.ok()) << base::render(done.error()) << print(p);
  return c;
}

TEST(ThreadForm, ChangesNothingAtAnyNumberOfTurns) {
  for (const char* depth : {"1", "2", "3", "4"}) {
    for (const char* loop : {"0 .. ceildiv(K, 16)", "min(1, ceildiv(K, 16)) .. ceildiv(K, 16)", "0 .. ceildiv(K, 16) step 2"}) {
      const Program before = parsed(product("f32", depth, loop)), after = formed(before);
      for (int64_t k : {0, 1, 16, 17, 33, 64, 100}) {
        EXPECT_EQ(outputs(before, 33, 40, k), outputs(after, 33, 40, k)) << "K=" << k << "\n" << print(after);
      }
    }
  }
}

TEST(ThreadForm, IsTextThatParsesBack) {
  const Program p = formed(parsed(product("bf16", "3")));
  const auto again = parse(print(p), "test");
  ASSERT_TRUE(again.ok()) << base::render(again.error()) << print(p);
  EXPECT_TRUE(equal(p, *again));
  EXPECT_EQ(print(*again), print(p));
}

TEST(ThreadForm, PlacesAccumulatorsForUnits) {
  const Program p = formed(parsed(product("bf16", "3")));
  const Buffer& acc = named(p, "acc");
  ASSERT_TRUE(in_registers(acc));
  EXPECT_TRUE(layout::divide(*acc.hints.placed, *layout::mma(layout::Operand::Accumulator, 16)));
  EXPECT_TRUE(named(p, "as").hints.placed);
  EXPECT_TRUE(named(p, "as").hints.ring);
  EXPECT_EQ(named(p, "as").extents.size(), 3u);
  // Of f32 there is no unit that computes the product as it is written.
  const Program q = formed(parsed(product("f32", "3")));
  ASSERT_TRUE(in_registers(named(q, "acc")));
  EXPECT_FALSE(layout::divide(*named(q, "acc").hints.placed, *layout::mma(layout::Operand::Accumulator, 16)));
}

TEST(ThreadForm, VersionsAreThoseThatFit) {
  std::vector<std::string> notes;
  const Program p = formed(parsed(product("f32", "4")), &notes, 10 << 10);  // 4 KiB a turn
  EXPECT_EQ(named(p, "as").extents[0], view::Form(2));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "the kernel 'k': a pipelined loop has 2 versions, not 4, as more than 10240 bytes would be shared");
}

TEST(ThreadForm, BuffersReadElsewhereAreNoRings) {
  std::string text = product("f32", "3");
  const std::string last = "    copy acc -> c";
  text.insert(text.find(last), "    map (i < 32, j < 16) acc[i, j] = acc[i, j] + 0*as[i, j]\n");
  const Program p = formed(parsed(text));
  EXPECT_FALSE(named(p, "as").hints.ring);
  EXPECT_TRUE(named(p, "bs").hints.ring);
}

TEST(ThreadForm, RowStatesTakeTheProjection) {
  const Program p = formed(parsed(
      "program p {\n  size N\n  input x f32[N, 64]\n  output y f32[N, 64]\n  kernel k grid (b < ceildiv(N, 16)) threads 64 {\n"
      "    fragment s f32[16, 64], m f32[16]\n    copy x[b*16 +: 16, 0 +: 64] -> s fill 0\n"
      "    reduce m[i] = max(j < 64) s[i, j]\n    map (i < 16, j < 64) s[i, j] = s[i, j] - m[i]\n"
      "    copy s -> y[b*16 +: 16, 0 +: 64]\n  }\n}\n"));
  const Buffer &s = named(p, "s"), &m = named(p, "m");
  ASSERT_TRUE(in_registers(s) && in_registers(m)) << print(p);
  EXPECT_EQ(*m.hints.placed, project(*s.hints.placed, {0}));
}

TEST(ThreadForm, LoopsWithAPromiseAreStillText) {
  std::string text = product("f32", "3", "0 .. ceildiv(K, 16) where (i < 16) k*16 + i < K");
  const Program before = parsed(text), after = formed(before);
  EXPECT_EQ(print(after).find("unbound"), std::string::npos) << print(after);
  for (int64_t k : {0, 15, 16, 40}) EXPECT_EQ(outputs(before, 33, 40, k), outputs(after, 33, 40, k));
}

TEST(ThreadForm, ALayoutThatIsWrittenIsKept) {
  const auto text = [](const std::string& layout) {
    return "program p {\n  size N\n  input x f32[N, 32]\n  output y f32[N, 32]\n  kernel k grid (b < ceildiv(N, 32)) threads 64 {\n"
           "    fragment s f32[32, 32] layout \"" + layout + "\"\n    copy x[b*32 +: 32, 0 +: 32] -> s fill 0\n    copy s -> y[b*32 +: 32, 0 +: 32]\n  }\n}\n";
  };
  const std::string own = "layout [32, 32] register (1,0) (2,0) (4,0) (8,0) lane (0,1..16) warp (16,0)";
  const Program kept = formed(parsed(text(own)));
  ASSERT_TRUE(in_registers(named(kept, "s")));
  EXPECT_EQ(layout::print(*named(kept, "s").hints.placed), layout::print(*layout::parse(own)));
  std::vector<std::string> notes;
  const Program shared = formed(parsed(text("layout [32, 32] register (1,0) (2,0) (4,0) (8,0) (16,0) lane (0,1..16)")), &notes);
  EXPECT_FALSE(in_registers(named(shared, "s")) || named(shared, "s").hints.placed);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("its layout is none of its extents over 2 warps"), std::string::npos) << notes[0];
}

TEST(ThreadForm, CopiesThatNobodyWaitsForAreWaitedFor) {
  const Program p = formed(parsed(
      "program p {\n  size N\n  input x f32[N, 32]\n  output y f32[N, 32]\n  kernel k grid (b < ceildiv(N, 32)) threads 64 {\n"
      "    shared t f32[32, 32]\n    copy x[b*32 +: 32, 0 +: 32] -> t fill 0 async\n    copy t -> y[b*32 +: 32, 0 +: 32]\n  }\n}\n"));
  int asynchronous = 0;
  visit(p.kernels[0].body, [&](const Stmt& s) {
    const auto* copy = std::get_if<Copy>(&s);
    asynchronous += copy && copy->async;
  });
  EXPECT_EQ(asynchronous, 0);
}

TEST(ThreadForm, FragmentsThatNoLayoutServesAreShared) {
  std::vector<std::string> notes;
  const Program p = formed(parsed(
      "program p {\n  size N\n  input x f32[N, 32]\n  output y f32[N, 32]\n  kernel k grid (b < ceildiv(N, 32)) threads 64 {\n"
      "    fragment s, t f32[32, 32]\n    copy x[b*32 +: 32, 0 +: 32] -> s fill 0\n"
      "    map (i < 32, j < 32) t[i, j] = s[j, i] + s[i, j]\n    copy t -> y[b*32 +: 32, 0 +: 32]\n  }\n}\n"), &notes);
  EXPECT_FALSE(in_registers(named(p, "s"))) << print(p);
  EXPECT_TRUE(in_registers(named(p, "t"))) << print(p);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("two statements ask different layouts of it"), std::string::npos) << notes[0];
}

int barriers(const Program& p) {
  int n = 0;
  for (const Kernel& k : p.kernels) visit(k.body, [&](const Stmt& s) { n += std::holds_alternative<Barrier>(s); });
  return n;
}

TEST(PlaceBarriers, StandsOnlyWhereThreadsMeet) {
  const auto count = [](const std::string& body) {
    return barriers(place_barriers(parsed("program p {\n  size N\n  input x f32[8]\n  output y f32[8]\n  kernel k {\n    shared s, t f32[8]\n" + body + "  }\n}\n")));
  };
  EXPECT_EQ(count("    map (i < 8) s[i] = x[i]\n"), 0 + 1);                                         // the next block writes it again
  EXPECT_EQ(count("    map (i < 8) y[i] = x[i]\n"), 0 + 1);
  EXPECT_EQ(count("    map (i < 8) s[i] = x[i]\n    map (i < 8) t[i] = x[i]\n"), 1);                // both wait for the last block
  EXPECT_EQ(count("    map (i < 8) s[i] = x[i]\n    map (i < 8) y[i] = s[7 - i]\n"), 2);
  EXPECT_EQ(count("    map (i < 8) s[i] = x[i]\n    for k in 0 .. N {\n      map (i < 8) t[i] = s[7 - i]\n      map (i < 8) s[i] = t[7 - i]\n    }\n"), 3);
}

}  // namespace
}  // namespace lemma::tile
