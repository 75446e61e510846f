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

}  // namespace
}  // namespace lemma::driver
