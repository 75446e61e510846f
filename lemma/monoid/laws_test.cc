// Every library monoid and products of them obey their laws; broken ones are caught, with a counterexample in words.
#include "lemma/monoid/laws.h"

#include <gtest/gtest.h>

namespace lemma::monoid {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;

std::vector<MonoidRef> library() {
  std::vector<MonoidRef> out = {any(), all()};
  for (Kind kind : {Kind::F64, Kind::F32, Kind::I64, Kind::I32, Kind::U64, Kind::U32}) {
    for (const MonoidRef& m : {sum(kind), product(kind), maximum(kind), minimum(kind), arg_maximum(kind),
                               arg_minimum(kind), top_k(kind, 1, false), top_k(kind, 4, false), top_k(kind, 3, true)}) {
      out.push_back(m);
    }
    if (!scalar::is_float(kind)) continue;
    for (const MonoidRef& m : {welford(kind), rescaled_sum(kind, 0, 1), rescaled_sum(kind, 1, 1),
                               rescaled_sum(kind, 3, 0.125)}) {
      out.push_back(m);
    }
  }
  return out;
}

std::string describe(const std::vector<Violation>& violations) {
  std::string out;
  for (const Violation& v : violations) out += v.law + ": " + v.counterexample + "\n";
  return out;
}

TEST(Laws, LibraryObeysThem) {
  for (const MonoidRef& m : library()) {
    const Report report = check_laws(m, {.seed = 7});
    EXPECT_EQ(report.cases, 400);
    EXPECT_TRUE(report.ok()) << m->name << "\n" << describe(report.violations);
    EXPECT_TRUE(report.at_special.empty()) << m->name << "\n" << describe(report.at_special);
  }
}

TEST(Laws, AffineHoldsOnFiniteElementsOnly) {
  const Report report = check_laws(affine(Kind::F64));
  EXPECT_TRUE(report.ok()) << describe(report.violations);
  EXPECT_FALSE(report.at_special.empty());  // 0 * inf
}

TEST(Laws, ProductsObeyThem) {
  const std::vector<MonoidRef> all = library();
  for (size_t i = 0; i < all.size(); i += 3) {
    for (size_t j = 1; j < all.size(); j += 5) {
      if (!pairable(*all[i]) || !pairable(*all[j])) continue;
      const MonoidRef both = pair(all[i], all[j]);
      const Report report = check_laws(both, {.seed = i * 100 + j, .random_triples = 60});
      EXPECT_TRUE(report.ok()) << both->name << "\n" << describe(report.violations);
    }
  }
}

Monoid copy_of(const MonoidRef& m) { return *m; }

Report check(Monoid m) { return check_laws(std::make_shared<const Monoid>(std::move(m))); }

bool violates(const Report& report, const std::string& law) {
  for (const Violation& v : report.violations) {
    if (v.law == law) return true;
  }
  return false;
}

TEST(Laws, CatchBrokenAssociativity) {
  Monoid m = copy_of(sum(Kind::F64));
  m.combine[0].body = scalar::arg(*m.arena, Kind::F64, 0) - scalar::arg(*m.arena, Kind::F64, 1);
  m.commutative = false;
  const Report report = check(std::move(m));
  ASSERT_TRUE(violates(report, "associativity"));
  const std::string& words = report.violations[0].counterexample;
  EXPECT_NE(words.find("combine(combine(a, b), c) = {value: "), std::string::npos) << words;
  EXPECT_NE(words.find("but combine(a, combine(b, c)) = {value: "), std::string::npos) << words;
  EXPECT_NE(words.find("for a = {value: "), std::string::npos) << words;
}

TEST(Laws, CatchBrokenIdentity) {
  Monoid m = copy_of(maximum(Kind::F64));
  m.identity[0] = scalar::constant(*m.arena, Kind::F64, 0);
  EXPECT_TRUE(violates(check(std::move(m)), "identity"));
}

TEST(Laws, CatchFalseClaims) {
  Monoid m = copy_of(affine(Kind::F64));
  m.commutative = true;
  EXPECT_TRUE(violates(check(std::move(m)), "commutativity"));
  Monoid twice = copy_of(sum(Kind::I32));
  twice.idempotent = true;
  EXPECT_TRUE(violates(check(std::move(twice)), "idempotence"));
}

TEST(Laws, CatchMeanOfMeans) {
  // The mean of two means forgets how many elements each stood for.
  Monoid m = copy_of(sum(Kind::F64));
  m.combine[0].body =
      (scalar::arg(*m.arena, Kind::F64, 0) + scalar::arg(*m.arena, Kind::F64, 1)) * scalar::constant(*m.arena, Kind::F64, 0.5);
  EXPECT_TRUE(violates(check(std::move(m)), "associativity"));
}

TEST(Laws, MatrixStatesAreTriedWithUnlikeEntries) {
  Monoid m;
  m.name = "matrices";
  m.arena = std::make_shared<scalar::Arena>();
  m.operands = {Kind::F64};
  m.components = {{"a", Kind::F64, {view::Form(2), view::Form(2)}}};
  scalar::Arena& arena = *m.arena;
  m.identity = {scalar::select(scalar::binary(Op::Eq, scalar::index(arena, 0), scalar::index(arena, 1)),
                               scalar::constant(arena, Kind::F64, 1), scalar::constant(arena, Kind::F64, 0))};
  m.lift = {scalar::arg(arena, Kind::F64, 0)};
  Update update;
  update.sums = {view::Form(2)};
  update.reads = {{true, 0, {view::Form::index(0), view::Form::index(2)}},
                  {false, 0, {view::Form::index(2), view::Form::index(1)}}};
  update.body = scalar::arg(arena, Kind::F64, 0) * scalar::arg(arena, Kind::F64, 1);
  m.combine = {update};
  m.finish = {scalar::arg(arena, Kind::F64, 0)};
  EXPECT_TRUE(check(m).ok());
  m.commutative = true;
  EXPECT_TRUE(violates(check(m), "commutativity"));
}

}  // namespace
}  // namespace lemma::monoid
