#include "lemma/driver/work.h"

#include <gtest/gtest.h>

#include "lemma/monoid/monoid.h"
#include "lemma/tensor/builder.h"

namespace lemma::driver {
namespace {

using view::Form;

TEST(Work, AProductCountsTwicePerTerm) {
  tensor::Builder b;
  const Form m = b.size("M"), n = b.size("N"), k = b.size("K");
  const tensor::Value x = b.input("x", {m, k}), y = b.input("y", {k, n});
  tensor::Draft d = b.draft("z");
  const Form i = d.point("i", m), j = d.point("j", n), c = d.reduce("c", k);
  b.output("z", d.fold(monoid::sum(scalar::Kind::F32), {d.read(x, {i, c}) * d.read(y, {c, j})}));
  const Work work = count_work(b.finish(), {{"M", 10}, {"N", 20}, {"K", 30}});
  EXPECT_EQ(work.operations, 2.0 * 10 * 20 * 30);
  EXPECT_EQ(work.bytes, 4.0 * (10 * 30 + 30 * 20 + 10 * 20));
}

TEST(Work, ADomainCountsByItsShare) {
  tensor::Builder b;
  const Form n = b.size("N");
  const tensor::Value x = b.input("x", {n, n});
  tensor::Draft d = b.draft("z");
  const Form i = d.point("i", n), j = d.reduce("j", n);
  d.where(view::Formula::less_equal(j, i));
  b.output("z", d.fold(monoid::sum(scalar::Kind::F32), {d.read(x, {i, j})}));
  const Work work = count_work(b.finish(), {{"N", 1000}});
  EXPECT_NEAR(work.operations, 0.5e6, 0.03e6);
}

// s[i, j] = sum(c) x[i, c] y[j, c], a map of it, and a sum over j <= i of the map: the products beyond count nothing.
TEST(Work, WhatNoReaderAsksForCountsNothing) {
  for (bool also_output : {false, true}) {
    tensor::Builder b;
    const Form n = b.size("N"), k = b.size("K");
    const tensor::Value x = b.input("x", {n, k}), y = b.input("y", {n, k});
    tensor::Draft s = b.draft("s");
    const Form i = s.point("i", n), j = s.point("j", n), c = s.reduce("c", k);
    const tensor::Value scores = s.fold(monoid::sum(scalar::Kind::F32), {s.read(x, {i, c}) * s.read(y, {j, c})});
    tensor::Draft m = b.draft("m");
    const Form mi = m.point("i", n), mj = m.point("j", n);
    const tensor::Value squared = m.map({m.read(scores, {mi, mj}) * m.read(scores, {mi, mj})});
    tensor::Draft d = b.draft("z");
    const Form zi = d.point("i", n), zj = d.reduce("j", n);
    d.where(view::Formula::less_equal(zj, zi));
    b.output("z", d.fold(monoid::sum(scalar::Kind::F32), {d.read(squared, {zi, zj})}));
    if (also_output) b.output("s", scores);
    const Work work = count_work(b.finish(), {{"N", 1000}, {"K", 10}});
    const double products = 2.0 * 10 * 1e6;
    EXPECT_NEAR(work.operations, also_output ? products + 0.5e6 + 0.5e6 : products / 2 + 0.5e6 + 0.5e6, 0.03 * products);
  }
}

// A point that two readers ask for counts once, one that either asks for counts.
TEST(Work, ReadersAskTogether) {
  tensor::Builder b;
  const Form n = b.size("N");
  const tensor::Value x = b.input("x", {n});
  tensor::Draft s = b.draft("s");
  const Form i = s.point("i", n);
  const tensor::Value squared = s.map({s.read(x, {i}) * s.read(x, {i})});
  for (int part : {0, 1, 1}) {
    tensor::Draft d = b.draft("z");
    const Form j = d.reduce("j", n);
    d.where(part == 0 ? view::Formula::less(j * Form(4), n) : view::Formula::less_equal(n, j * Form(2)));
    b.output("z" + std::to_string(part), d.fold(monoid::sum(scalar::Kind::F32), {d.read(squared, {j})}));
  }
  const Work work = count_work(b.finish(), {{"N", 10000}});
  EXPECT_NEAR(work.operations, 7500 + 2500 + 5000 + 5000, 700);
}

}  // namespace
}  // namespace lemma::driver
