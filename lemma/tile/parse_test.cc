// Text to program and back: parse(print(p)) equals p, printing is stable, and what is wrong is said at its place.
#include "lemma/tile/parse.h"

#include <gtest/gtest.h>

#include "lemma/tile/equal.h"
#include "lemma/tile/print.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {
namespace {

void expect_round_trip(const Program& p) {
  const std::string text = print(p);
  auto again = parse(text, "printed");
  ASSERT_TRUE(again.ok()) << base::render(again.error()) << "\n" << text;
  EXPECT_TRUE(equal(p, *again)) << text << "\n" << print(*again);
  EXPECT_EQ(print(*again), text);
}

const char* kEverything = R"(
program everything {
  size M, N
  size T = max(ceildiv(M, 16), 1)
  require 1 <= M and M <= 4096 or M == 0 : "M is small, \"really\""
  monoid fib general commutative scale 0.5 count 3 {
    operand f32
    component f32[2, 2]
    identity select(axis(0) == axis(1), 1.0, 0.0)
    lift select(axis(0) == axis(1), operand(0), 0.0)
    combine {
      over add [2]
      read right(0)[axis(0), inner(0)]
      read left(0)[inner(0), axis(1)]
      to read(0) * read(1)
    }
    finish state(0)
  }
  input a bf16[M, N] strides [1, M]
  input at i32[M]
  update u f32[M, N]
  output o f64[M, N]
  scratch w f32[T, 16]
  unused local spare i8[4]
  kernel first grid (descending t < T, z < N // 2 + 1) {
    shared p f32[16, 8] panels 4 interleave 2
    fragment f f32[16, 8] pad 3
    let n = min(M - t*16, 16)
    read r = at[t] if t < M
    let m = select(present(r), i64(r), -1)
    copy (i < 16, j < 8) a[t*16 + i, j] if i < n -> p[i, j] fill -1.5
    for k in m .. n + 1, step 2, unrolled {
      gemm (i < 16, j < 8, d < 8) f[i, j] = p[i, d] * p[d, j]
      gemm (i < 16, j < 8, d < 4, tap < 2, turn < 2) f[i, j] += p[i, d + 2*tap + turn] * p[d + tap + turn, j]
      if at[0] <= k and z == 0 {
        assert k < 100 : "k"
      } else {
        alloc q
      }
    }
  }
  kernel second {
    fragment s f32[2, 2]
    fragment g f32[16]
    fragment e f32[16]
    map (i < 16, j < 8) where i % 3 == 0 or i < j {
      def t = exp(u[i, j]) + f32(i)
      o[i, j] = f64(t * t), else const[f64](0.1)
      combine max g[i] = round_to[bf16](t), if j <= 3
      e[i] += -u[i, j] + -(2.0)
    }
    map (i < 4) {
      read x = at[i] if i < 3
      read y = a[x, 0] if i < 3
      where 0 <= x
      u[x, i] = select(present(y), y, 1.0)
    }
    reduce () axes (b < 2, c < 2) over (i < M) by fib accumulate where at[i] != 3 {
      element u[i, 0]
      state s[b, c]
    }
    scan (i < 2) along (k < 8) reverse exclusive by sum[f32] {
      element u[i, k]
      state g[i]
      store {
        u[i, k] = state(0) * 2, else 0, if k < N
      }
    }
  }
}
)";

const char* kVocabulary = R"tile(
program vocabulary {
  size M, N, K
  input a bf16[M, K]
  input b bf16[K, N]
  input q f32[2, N, 128]
  output c bf16[M, N]
  output d f32[M, N]
  scratch total f32[M]
  macro scaled(t, s) {
    let rows = 3
    map t = t * s
    map (i < rows) t[i, 0] = t[i, 0] + f32(rows)
  }
  macro draw(i, u) {
    philox_uniform(7, i, u)
  }
  kernel main grid persistent (bn < ceildiv(N, 256), descending bm < ceildiv(M, 128)) order rows 8 threads 256 warps 8 synchronised {
    barrier
    commit
    wait 2
    shared as bf16[128, 64] layout swizzle 128 versions 2, bs bf16[64, 256] layout "layout [64, 256] offset (0,1..128) (1..32,0)" ring
    fragment acc, other f32[128, 256] = 0, part f32[128] = 0
    local n f32[4]
    for kb in 0 .. ceildiv(K, 64) where (i < 128, j < 64) kb*64 + j < K and bm*128 + i < M pipelined 4 {
      copy a[bm*128 +: 128, kb*64 +: 64] -> as fill 0 async stage +1 by producer
      copy b[kb*64 +: 64, bn*256 +: 256] -> bs fill 0
      gemm acc += as * bs team columns order 2
      gemm other[.., 0 +: 64] = as * as[0 +: 64, ..]^T
    }
    for cb in 0 .. 4 unrolled {
      let t = acc[.., cb*64 +: 64]
      let u = t[2 +: 64, ..]
      map (i < 128, j < 64) where i < j else 0 { let w = t[i, j] * 2; t[i, j] = w; u[i % 64, j] = w, else 1 }
      map (i < 128) part[i] = t[i, 0]
      reduce part[i] += sum(j < 64 : j <= i) t[i, j] * t[i, j]
      reduce part[0] = max(j < 64) t[0, j]
      scaled(t, 2.0)
      scaled(u, part[0] + 1)
    }
    assume M >= 1 : "there are rows"
    read first = part[0]
    print "block {} of {}: 100% {}" bm, ceildiv(M, 128), first * 2
    combine sum part -> total[bm*128 +: 128] bulk async ordered by bn
    copy acc -> c[bm*128 +: 128, bn*256 +: 256]
    phase
    fragment again f32[128]
    copy total[bm*128 +: 128] -> again
    extern c reads again writes d values bm, N {
      "for (int i = 0; i < 4; ++i) $d[$0[i] > $bm ? 0 : $N] = \"$0\"[i];"
    }
    map (i < 4) {
      draw(i + 1, v)
      again[i] = v
    }
  }
}
)tile";

Program parsed(std::string text) {
  auto p = parse(text, "test");
  if (!p.ok()) ADD_FAILURE() << base::render(p.error());
  return p.ok() ? *std::move(p) : Program();
}

TEST(Parse, EverythingRoundTrips) {
  std::string text = kEverything;
  // `alloc` names a buffer that an earlier block declared.
  text.replace(text.find("alloc q"), 7, "local q f32[1]");
  const Program p = parsed(text);
  ASSERT_EQ(p.kernels.size(), 2u);
  expect_round_trip(p);
}

TEST(Parse, TheVocabularyRoundTrips) {
  const Program p = parsed(kVocabulary);
  ASSERT_EQ(p.kernels.size(), 1u);
  expect_round_trip(p);
  const auto& loop = std::get<For>(p.kernels[0].body[12]);
  EXPECT_EQ(loop.kind, LoopKind::Pipelined);
  EXPECT_EQ(loop.depth, 4);
  EXPECT_EQ(loop.points.size(), 2u);
  EXPECT_EQ(loop.body[0].placement, (Placement{1, {}, "producer"}));
  EXPECT_EQ(std::get<Gemm>(loop.body[2]).team, Team::Columns);
}

TEST(Parse, LongChainsAndSharedExpressionsRoundTrip) {
  Program p = parsed("program c {\n input x f32[1]\n output y f32[1]\n kernel k {\n map () { y[0] = x[0] }\n }\n}\n");
  auto& map = std::get<Map>(p.kernels[0].body[0]);
  scalar::Expr e = map.stores[0].value;
  for (int i = 0; i < 3000; ++i) e = i % 3 == 0 ? scalar::exp(e) : i % 3 == 1 ? e * e : e + scalar::constant(*p.arena, scalar::Kind::F32, i);
  map.stores[0].value = e;
  expect_round_trip(p);
}

TEST(Parse, ConstantsKeepKindAndBits) {
  Program p = parsed("program c {\n output y f64[1]\n kernel k {\n map () { y[0] = 0 }\n }\n}\n");
  auto& map = std::get<Map>(p.kernels[0].body[0]);
  scalar::Arena& a = *p.arena;
  using scalar::Kind;
  const std::vector<scalar::Expr> constants = {
      scalar::constant(a, Kind::F64, 0.1), scalar::constant(a, Kind::F64, -0.0), scalar::cast(scalar::f32(a, 2), Kind::F64),
      scalar::cast(scalar::constant_bits(a, Kind::F32, 0x7FC00001), Kind::F64), scalar::constant_bits(a, Kind::F64, int64_t(0xFFF0000000000000)),
      scalar::cast(scalar::constant_int(a, Kind::I64, INT64_MIN), Kind::F64), scalar::cast(scalar::constant_int(a, Kind::U64, -1), Kind::F64),
      scalar::cast(scalar::constant_int(a, Kind::I32, -7), Kind::F64), scalar::cast(scalar::f32(a, 1e-30), Kind::F64),
      scalar::cast(-scalar::f32(a, 3), Kind::F64),
      scalar::cast(scalar::binary(scalar::Op::Xor, scalar::boolean(a, true), scalar::boolean(a, false)), Kind::F64)};
  for (scalar::Expr c : constants) {
    map.stores[0].value = c;
    expect_round_trip(p);
  }
}

TEST(Parse, EqualIgnoresNamesOfVariablesOnly) {
  const std::string text = "program c {\n input x f32[4]\n output y f32[4]\n kernel k {\n map (i < 4) { y[i] = x[i] }\n }\n}\n";
  std::string renamed = text, other = text;
  for (size_t at = 0; (at = renamed.find("i]", at)) != std::string::npos;) renamed.replace(at, 2, "jj]");
  renamed.replace(renamed.find("(i <"), 4, "(jj <");
  other.replace(other.find("= x[i]"), 6, "= x[0]");
  EXPECT_TRUE(equal(parsed(text), parsed(renamed)));
  EXPECT_FALSE(equal(parsed(text), parsed(other)));
}

TEST(Parse, SaysWhatIsWrongWhere) {
  struct Case { const char* line; const char* message; };
  const Case cases[] = {
      {"map (i < N) { y[i] = z[i] }", "unknown name `z`"},
      {"map (i < N) { y[i, i] = 1 }", "1 dimensions, found 2 coordinates"},
      {"map (i < N) { y[i] = i }", "found a value of kind i64, expected f32"},
      {"map (i < N) { y[i] = x[i] // 0 }", ""},
      {"map (i < N) { y[i] = 1 / 2 }", "real division"},
      {"map (N < 3) { y[0] = 1 }", "taken"},
      {"map (i < N) { x[i] = 1 }", "which is an input"},
      {"map (i < i) { y[i] = 1 }", "unknown name `i`"},
      {"copy (i < N) x[i] -> y[i] fill x[0]", "cannot be read here"},
      {"reduce () over (i < N) by sum { element 1\n state y[0] }", "with its kind"},
      {"for k in 0 .. N, step 0 {\n }", "its step is 0"},
      {"map (i < 9999999999999999999) { y[0] = 1 }", "exceeds"},
      {"map (i < 288230376151711744 * 288230376151711744) { y[0] = 1 }", "exceeds"},
      {"frobnicate y", "a statement"},
      {"let n = x[0]", "expected i64"},
      {"gemm (i < 1, j < 1, k < 1) y[i] += x[k]", "a product of two tiles"},
      {"map (i < N) { y[i] = sqrt(i) }", "no meaning for i64"},
  };
  for (const Case& c : cases) {
    const std::string text = std::string("program c {\n size N\n input x f32[N]\n output y f32[N]\n kernel k {\n ") + c.line + "\n }\n}\n";
    auto p = parse(text, "test");
    if (!*c.message) {
      EXPECT_TRUE(p.ok()) << base::render(p.error());
      continue;
    }
    ASSERT_FALSE(p.ok()) << c.line;
    EXPECT_NE(p.error().message.find(c.message), std::string::npos) << c.line << ": " << p.error().message;
  }
}

TEST(Parse, HostileTextGivesADiagnostic) {
  const std::string deep_blocks = [] {
    std::string s = "program c {\n kernel k {\n";
    for (int i = 0; i < 5000; ++i) s += "for i" + std::to_string(i) + " in 0 .. 1 {\n";
    return s;
  }();
  EXPECT_FALSE(parse(deep_blocks).ok());
  EXPECT_FALSE(parse("program c { size N = " + std::string(100000, '(')).ok());
  EXPECT_FALSE(parse(std::string(1000, '{')).ok());
  // Macros that double what they are given, forty times over.
  std::string doubling = "program c {\n output y f32[1]\n macro m0() { map y = 1 }\n";
  for (int i = 1; i <= 40; ++i) doubling += " macro m" + std::to_string(i) + "() {\n m" + std::to_string(i - 1) + "()\n m" + std::to_string(i - 1) + "()\n }\n";
  EXPECT_FALSE(parse(doubling + " kernel k {\n m40()\n }\n}\n").ok());
  doubling.replace(doubling.find("map y = 1"), 9, "");  // of nothing, too
  EXPECT_FALSE(parse(doubling + " kernel k {\n m40()\n }\n}\n").ok());
  std::string growing = "program c {\n output y f32[1]\n macro m0(a) { map y = a }\n";
  for (int i = 1; i <= 60; ++i) growing += " macro m" + std::to_string(i) + "(a) { m" + std::to_string(i - 1) + "(a + a) }\n";
  EXPECT_FALSE(parse(growing + " kernel k {\n m60(1)\n }\n}\n").ok());
  EXPECT_FALSE(parse(std::string("\xff\x00program", 9)).ok());
  // Every prefix of a long program, and every single byte lost, is handled.
  for (const std::string text : {kEverything, kVocabulary}) {
    size_t accepted = 0;
    for (size_t n = 0; n < text.size(); n += 7) accepted += parse(text.substr(0, n)).ok();
    EXPECT_EQ(accepted, 0u);
    for (size_t n = 0; n < text.size(); n += 3) {
      std::string cut = text;
      cut.erase(n, 1);
      auto p = parse(cut);
      if (p.ok()) {
        EXPECT_TRUE(validate(*p).ok());
        EXPECT_TRUE(parse(print(*p)).ok()) << print(*p);
      }
    }
  }
}

}  // namespace
}  // namespace lemma::tile
