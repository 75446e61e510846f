// Scans with memory along the scan and along the points: every walk, against plain loops.

#include <gtest/gtest.h>

#include <cmath>

#include "lemma/emit/c.h"
#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using tile::Space;
using view::Form;
using view::Formula;
using EmitUnit = testing::Unit;

class Scans : public ::testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(Native, Scans, ::testing::ValuesIn(native_builds()), build_name);

float value_at(int64_t i) { return float((i * 7919) % 1009 - 500) * 0.001f; }

struct Variant {
  bool reverse = false, exclusive = false, bounded = false, carried = false;
  bool points_first = false;   // memory runs along the scan, not along the points
};

// y[t, c] = the second state of h -> g[t, c] h + x[t, c], where c <= t if bounded.
Builder recurrence(const Variant& v) {
  Builder b;
  const int T = b.size("T"), C = b.size("C"), t = b.var("t"), c = b.var("c");
  const auto two = [&](Form step, Form point) { return v.points_first ? std::vector<Form>{point, step} : std::vector<Form>{step, point}; };
  const int x = b.buffer("x", Space::Input, DType::F32, two(s(T), s(C)));
  const int g = b.buffer("g", Space::Input, DType::F32, two(s(T), s(C)));
  const int a = b.buffer("a", Space::Update, DType::F32, {s(C)});
  const int h = b.buffer("h", Space::Update, DType::F32, {s(C)});
  const int y = b.buffer("y", Space::Output, DType::F32, two(s(T), s(C)));
  tile::Scan r;
  r.points = {{c, s(C)}};
  r.along = {t, s(T)};
  r.reverse = v.reverse;
  r.exclusive = v.exclusive;
  r.accumulate = v.carried;
  if (v.bounded) r.where = Formula::less_equal(f(c), f(t));
  r.reads = {{g, two(f(t), f(c)), {}}, {x, two(f(t), f(c)), {}}};
  r.body = {scalar::arg(b.arena(), Kind::F32, 0), scalar::arg(b.arena(), Kind::F32, 1)};
  r.monoid = affine();
  r.states = {{a, {f(c)}, {}}, {h, {f(c)}, {}}};
  r.stores = {{{y, two(f(t), f(c)), {}}, scalar::arg(b.arena(), Kind::F32, 1), {}, std::nullopt}};
  b.kernel().body.push_back({r});
  return b;
}

void run_recurrence(const EmitUnit& unit, const Variant& v, int64_t steps, int64_t points) {
  const int64_t all = steps * points;
  Guarded xs(4 * all), gs(4 * all), as(4 * points), hs(4 * points), ys(4 * all);
  for (int64_t q = 0; q < all; ++q) xs.as<float>()[q] = value_at(q), gs.as<float>()[q] = value_at(q + 5000);
  for (int64_t q = 0; q < points; ++q) as.as<float>()[q] = 1, hs.as<float>()[q] = 0.25f;
  ASSERT_EQ(unit.run({steps, points}, {xs.data(), gs.data(), as.data(), hs.data(), ys.data()}), 0);
  for (int64_t p = 0; p < points; ++p) {
    float state = v.carried ? 0.25f : 0;
    for (int64_t q = 0; q < steps; ++q) {
      const int64_t t = v.reverse ? steps - 1 - q : q, at = v.points_first ? p * steps + t : t * points + p;
      if (v.exclusive) { ASSERT_NEAR(ys.as<float>()[at], state, 1e-5) << t << " " << p; }
      if (!v.bounded || p <= t) state = gs.as<float>()[at] * state + xs.as<float>()[at];
      if (!v.exclusive) { ASSERT_NEAR(ys.as<float>()[at], state, 1e-5) << t << " " << p; }
    }
    ASSERT_NEAR(hs.as<float>()[p], state, 1e-5);
  }
}

TEST_P(Scans, Recurrence) {
  for (int bits : {0, 3, 4, 9, 10, 15, 20, 27}) {
    const Variant v{bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8), bool(bits & 16)};
    auto unit = load(recurrence(v), GetParam());
    ASSERT_TRUE(unit);
    for (int64_t points : {0, 1, 5, 16, 37, 150, 300}) {
      for (int64_t steps : {0, 1, 9}) run_recurrence(*unit, v, steps, points);
    }
    const bool lanes = unit->source().find("lm_vf s0") != std::string::npos;
    EXPECT_EQ(lanes, !v.points_first && GetParam().target.lanes() > 1) << bits;
  }
}

// Kinds too wide for lanes, also in what is stored; a batch outside.
TEST_P(Scans, WideSums) {
  for (bool along : {false, true}) {
    Builder b;
    const int B = b.size("B"), T = b.size("T"), C = b.size("C"), i = b.var("i"), t = b.var("t"), c = b.var("c");
    const auto three = [&](Form x, Form y, Form z) { return along ? std::vector<Form>{x, z, y} : std::vector<Form>{x, y, z}; };
    const int x = b.buffer("x", Space::Input, DType::F64, three(s(B), s(T), s(C)));
    const int z = b.buffer("z", Space::Local, DType::F64, {s(B), s(C)});
    const int y = b.buffer("y", Space::Output, DType::F64, three(s(B), s(T), s(C)));
    tile::Scan r;
    r.points = {{i, s(B)}, {c, s(C)}};
    r.along = {t, s(T)};
    r.reads = {{x, three(f(i), f(t), f(c)), {}}};
    r.body = {scalar::arg(b.arena(), Kind::F64, 0)};
    r.monoid = sum(Kind::F64);
    r.states = {{z, {f(i), f(c)}, {}}};
    r.stores = {{{y, three(f(i), f(t), f(c)), {}}, scalar::arg(b.arena(), Kind::F64, 0) * scalar::constant(b.arena(), Kind::F64, 2), {}, std::nullopt}};
    b.kernel().body.push_back({tile::Alloc{z}});
    b.kernel().body.push_back({r});
    auto unit = load(b, GetParam());
    ASSERT_TRUE(unit);
    const int64_t batches = 3, steps = 11, points = 21, all = batches * steps * points;
    Guarded xs(8 * all), ys(8 * all);
    for (int64_t q = 0; q < all; ++q) xs.as<double>()[q] = value_at(q);
    ASSERT_EQ(unit->run({batches, steps, points}, {xs.data(), ys.data()}), 0);
    for (int64_t n = 0; n < batches; ++n) {
      for (int64_t p = 0; p < points; ++p) {
        double total = 0;
        for (int64_t q = 0; q < steps; ++q) {
          const int64_t at = along ? (n * points + p) * steps + q : (n * steps + q) * points + p;
          total += xs.as<double>()[at];
          ASSERT_NEAR(ys.as<double>()[at], 2 * total, 1e-9) << n << " " << q << " " << p;
        }
      }
    }
  }
}

// A scan over what it overwrites goes a point at a time, each over what the points before left.
TEST_P(Scans, OverwritesWhatItReads) {
  Builder b;
  const int T = b.size("T"), C = b.size("C"), t = b.var("t"), c = b.var("c");
  const int y = b.buffer("y", Space::Update, DType::F32, {s(T), s(C)});
  const int z = b.buffer("z", Space::Local, DType::F32, {s(C)});
  tile::Scan r;
  r.points = {{c, s(C)}};
  r.along = {t, s(T)};
  r.reads = {{y, {f(t), f(c)}, {}}};
  r.body = {scalar::arg(b.arena(), Kind::F32, 0)};
  r.monoid = sum(Kind::F32);
  r.states = {{z, {f(c)}, {}}};
  r.stores = {{{y, {f(t), f(c)}, {}}, scalar::arg(b.arena(), Kind::F32, 0), {}, std::nullopt}};
  b.kernel().body.push_back({tile::Alloc{z}});
  b.kernel().body.push_back({r});
  auto unit = load(b, GetParam());
  ASSERT_TRUE(unit);
  Guarded ys(4 * 7 * 20);
  for (int64_t q = 0; q < 140; ++q) ys.as<float>()[q] = 1;
  ASSERT_EQ(unit->run({7, 20}, {ys.data()}), 0);
  for (int64_t q = 0; q < 140; ++q) EXPECT_EQ(ys.as<float>()[q], float(q / 20 + 1));
}

}  // namespace
}  // namespace lemma::emit
