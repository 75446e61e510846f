// The oracle against values computed by hand or by plain loops, for every construct and its edges.
#include "lemma/tensor/eval.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "lemma/tensor/builder.h"

namespace lemma::tensor {
namespace {

using scalar::DType;
using scalar::Expr;
using scalar::from_float;
using scalar::from_int;
using scalar::Kind;
using scalar::Op;
using scalar::Scalar;
using view::Form;
using view::Formula;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Array floats(std::vector<int64_t> extents, std::vector<double> values, DType type = DType::F32) {
  Array out;
  out.type = type;
  out.extents = std::move(extents);
  for (double v : values) out.data.push_back(from_float(v));
  return out;
}

Array integers(std::vector<int64_t> extents, std::vector<int64_t> values, DType type = DType::I32) {
  Array out;
  out.type = type;
  out.extents = std::move(extents);
  for (int64_t v : values) out.data.push_back(from_int(v));
  return out;
}

Oracle oracle(const Graph& graph, const std::vector<std::pair<std::string, Array>>& inputs, OracleOptions options = {}) {
  auto made = Oracle::make(graph, options);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  for (const auto& [name, array] : inputs) {
    auto set = made->set_input(name, array);
    EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message);
  }
  return *std::move(made);
}

std::vector<double> as_doubles(const Array& a) {
  std::vector<double> out;
  for (Scalar s : a.data) out.push_back(scalar::is_float(a.type) ? s.f : double(s.i));
  return out;
}

// The only output, whole.
Array run(Builder& b, const std::vector<std::pair<std::string, Array>>& inputs, OracleOptions options = {}) {
  const Oracle o = oracle(b.graph, inputs, options);
  auto out = o.output(b.graph.outputs[0].name);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return out.ok() ? *std::move(out) : Array();
}

std::string failure(Builder& b, const std::vector<std::pair<std::string, Array>>& inputs) {
  const Oracle o = oracle(b.graph, inputs);
  auto out = o.outputs();
  return out.ok() ? "" : out.error().message;
}

using Doubles = std::vector<double>;

TEST(Oracle, MapReadsByAffineForms) {
  Builder b;
  const Value x = b.input("x", {3, 4});
  Draft y = b.draft("y");
  const Form i = y.point("i", 4), j = y.point("j", 3);
  b.output("y", y.map({y.read(x, {Form(2) - j, i}) * b.f32(2)}));  // reversed and transposed
  EXPECT_EQ(as_doubles(run(b, {{"x", floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}})),
            (Doubles{16, 8, 0, 18, 10, 2, 20, 12, 4, 22, 14, 6}));
}

TEST(Oracle, MapWithFloorAndModReshapes) {
  Builder b;
  const Value x = b.input("x", {2, 3});
  Draft y = b.draft("y");
  const Form f = y.point("f", 6);
  b.output("y", y.map({y.read(x, {Form::floor_div(f, 3), Form::mod(f, 3)}) + scalar::cast(y.index(f), Kind::F32)}));
  EXPECT_EQ(as_doubles(run(b, {{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}})), (Doubles{1, 3, 5, 7, 9, 11}));
}

TEST(Oracle, MapExistsOnItsDomainOnly) {
  Builder b;
  const Value x = b.input("x", {5});
  Draft y = b.draft("y");
  const Form i = y.point("i", 5);
  y.where(Formula::less(i, 2) || Formula::equal(i, 4));
  b.output("y", y.map({y.read(x, {i})}));
  const Array out = run(b, {{"x", floats({5}, {1, 2, 3, 4, 5})}});
  EXPECT_EQ(out.present, (std::vector<uint8_t>{1, 1, 0, 0, 1}));
  EXPECT_EQ(out.data[4].f, 5);
}

TEST(Oracle, GuardedReadsAreAbsentOutside) {
  Builder b;
  const Value x = b.input("x", {4});
  Draft y = b.draft("y");
  const Form i = y.point("i", 4), r = y.reduce("r", 3), at = i + r - Form(1);
  const Expr v = y.read(x, {at}, Formula::within(at, 4));
  b.output("y", y.fold(monoid::sum(Kind::F32), {scalar::select(Draft::present(v), v, b.f32(100))}));
  EXPECT_EQ(as_doubles(run(b, {{"x", floats({4}, {1, 2, 3, 4})}})), (Doubles{103, 6, 9, 107}));
}

TEST(Oracle, ReductionsOverNothing) {
  for (int64_t n : {0, 1}) {
    Builder b;
    const Value x = b.input("x", {2, n});
    Draft y = b.draft("y");
    const Form i = y.point("i", 2), j = y.reduce("j", n);
    b.output("sum", y.fold(monoid::sum(Kind::F32), {y.read(x, {i, j})}));
    Draft m = b.draft("m");
    const Form p = m.point("p", 2), q = m.reduce("q", n);
    b.output("max", m.fold(monoid::maximum(Kind::F32), {m.read(x, {p, q})}));
    const Oracle o = oracle(b.graph, {{"x", floats({2, n}, n ? Doubles{3, 4} : Doubles{})}});
    const auto out = o.outputs();
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(as_doubles((*out)[0]), n ? (Doubles{3, 4}) : (Doubles{0, 0}));
    EXPECT_EQ(as_doubles((*out)[1]), n ? (Doubles{3, 4}) : (Doubles{-kInf, -kInf}));
  }
  Builder b;
  const Value x = b.input("x", {0, 3});
  Draft y = b.draft("y");
  const Form i = y.point("i", 0), j = y.reduce("j", 3);
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(x, {i, j})}));
  EXPECT_TRUE(run(b, {{"x", floats({0, 3}, {})}}).data.empty());
}

TEST(Oracle, ReductionsFoldTheTermsOfTheirDomain) {
  Builder b;
  const Value x = b.input("x", {4});
  const Value length = b.input("length", {3}, DType::I32);
  Draft y = b.draft("y");
  const Form i = y.point("i", 3), j = y.reduce("j", 4);
  const Expr limit = y.read(length, {i});
  y.where(Formula::less(j, Draft::data(limit)) && !Formula::equal(j, 1));
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(x, {j})}));
  EXPECT_EQ(as_doubles(run(b, {{"x", floats({4}, {1, kNan, 4, 8})}, {"length", integers({3}, {0, 1, 4})}})),
            (Doubles{0, 1, 13}));
}

TEST(Oracle, ADomainDecidesBeforeItsReads) {
  // j + 1 < 4 rules the read out where it would leave the source.
  Builder b;
  const Value tag = b.input("tag", {4}, DType::I32);
  Draft y = b.draft("y");
  const Form j = y.reduce("j", 4);
  const Expr next = y.read(tag, {j + Form(1)});
  y.where(Formula::less(j, 3) && Formula::equal(Draft::data(next), 1));
  b.output("y", y.fold(monoid::sum(Kind::I64), {y.index(j)}));
  EXPECT_EQ(run(b, {{"tag", integers({4}, {0, 1, 0, 1})}}).data[0].i, 0 + 2);

  Builder bad;
  const Value t = bad.input("tag", {4}, DType::I32);
  Draft z = bad.draft("z");
  const Form k = z.reduce("k", 4);
  const Expr far = z.read(t, {k + Form(1)});
  z.where(Formula::equal(Draft::data(far), 1));
  bad.output("z", z.fold(monoid::sum(Kind::I64), {z.index(k)}));
  EXPECT_EQ(failure(bad, {{"tag", integers({4}, {0, 1, 0, 1})}}),
            "the domain of z hangs on a read of tag that is not possible at k = 3");
}

TEST(Oracle, GathersDropKeysOutOfRange) {
  Builder b;
  const Value w = b.input("w", {3, 2});
  const Value e = b.input("e", {4}, DType::I32);
  Draft y = b.draft("y");
  const Form t = y.point("t", 4), c = y.point("c", 2);
  const Expr key = y.read(e, {t});
  const Expr v = y.read(w, {Draft::data(key), c}, Formula::within(Draft::data(key), 3));
  b.output("y", y.map({scalar::select(Draft::present(v), v, b.f32(-1))}));
  EXPECT_EQ(as_doubles(run(b, {{"w", floats({3, 2}, {0, 1, 10, 11, 20, 21})}, {"e", integers({4}, {2, -1, 0, 3})}})),
            (Doubles{20, 21, -1, -1, 0, 1, -1, -1}));
}

TEST(Oracle, BadReadsNameNodeReadAndPoint) {
  Builder b;
  const Value x = b.input("x", {4});
  Draft y = b.draft("y");
  const Form i = y.point("i", 4);
  b.output("y", y.map({y.read(x, {i + Form(1)})}));
  EXPECT_EQ(failure(b, {{"x", floats({4}, {1, 2, 3, 4})}}), "y reads x[4], outside its extents [4], at i = 3");

  Builder c;
  const Value u = c.input("u", {4});
  Draft m = c.draft("m");
  const Form p = m.point("p", 4);
  m.where(Formula::less(p, 2));
  const Value masked = m.map({m.read(u, {p})});
  Draft z = c.draft("z");
  const Form q = z.point("q", 4);
  c.output("z", z.map({z.read(masked, {q})}));
  EXPECT_EQ(failure(c, {{"u", floats({4}, {1, 2, 3, 4})}}), "z reads m[2], which is off the domain of m, at q = 2");
}

TEST(Oracle, ArgMaxAndTopKSeePresentElementsOnly) {
  Builder b;
  const Value x = b.input("x", {2, 5});
  Draft a = b.draft("a");
  Form i = a.point("i", 2), j = a.reduce("j", 5);
  a.where(Formula::less_equal(1, j) && Formula::less(i, 1));
  b.output("a", a.fold(monoid::arg_maximum(Kind::F32), {a.read(x, {i, j}), a.index(j)}));
  Draft t = b.draft("t");
  i = t.point("i", 2);
  t.axis("slot", 3);
  j = t.reduce("j", 5);
  t.where(Formula::less(j, Form(5) - Form(3) * i));
  const Value best = t.fold(monoid::top_k(Kind::F32, 3, false), {t.read(x, {i, j}), t.index(j)});
  b.output("values", best);
  b.output("indices", sibling(best, 1));
  const Oracle o = oracle(b.graph, {{"x", floats({2, 5}, {9, 3, 7, 7, kNan, 4, 5, 0, 0, 0})}});
  const auto out = o.outputs();
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_EQ(as_doubles((*out)[0]), (Doubles{4, -1}));
  EXPECT_TRUE(std::isnan((*out)[1].data[0].f));
  EXPECT_EQ((*out)[1].extents, (std::vector<int64_t>{2, 3}));
  const Doubles values = as_doubles((*out)[1]);
  EXPECT_EQ((Doubles(values.begin() + 1, values.end())), (Doubles{9, 7, 5, 4, -kInf}));
  EXPECT_EQ(as_doubles((*out)[2]), (Doubles{4, 0, 2, 1, 0, -1}));
}

TEST(Oracle, ComponentsHaveTheirOwnIndices) {
  // The normalised sum of a value column: max and weight sum over i, value sum over (i, c).
  Builder b;
  const Value s = b.input("s", {2, 3}), v = b.input("v", {3, 2});
  Draft y = b.draft("y");
  const Form i = y.point("i", 2), c = y.point("c", 2), j = y.reduce("j", 3);
  y.where(Formula::less_equal(j, i + Form(1)));
  y.node.components = {{0}, {0}, {0, 1}};
  y.node.outputs = {{"m", DType::F32, 0, {0}, false}, {"l", DType::F32, 1, {0}, false}, {"a", DType::F32, 2, {0, 1}, false}};
  const Value out = y.fold(monoid::rescaled_sum(Kind::F32, 2, 1),
                           {y.read(s, {i, j}), b.f32(1), y.read(v, {j, c})});
  for (int o = 0; o < 3; ++o) b.output("o" + std::to_string(o), sibling(out, o));
  const Oracle o = oracle(b.graph, {{"s", floats({2, 3}, {1, 2, 99, -kInf, 0, 1})}, {"v", floats({3, 2}, {1, 2, 3, 4, 5, 6})}});
  const auto got = o.outputs();
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(as_doubles((*got)[0]), (Doubles{2, 1}));
  const double e = std::exp(-1);
  EXPECT_NEAR((*got)[1].data[0].f, e + 1, 1e-15);
  EXPECT_NEAR((*got)[1].data[1].f, e + 1, 1e-15);
  const Doubles expected = {e * 1 + 3, e * 2 + 4, e * 3 + 5, e * 4 + 6};
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR((*got)[2].data[k].f, expected[k], 1e-14);
}

struct ScanCase {
  Scan how;
  Doubles expected;
  double last;
};

TEST(Oracle, ScansInEveryDirection) {
  for (const ScanCase& c : {ScanCase{{false, false}, {11, 11, 14, 18}, 18}, ScanCase{{true, false}, {10, 11, 11, 14}, 18},
                            ScanCase{{false, true}, {18, 17, 17, 14}, 18}, ScanCase{{true, true}, {17, 17, 14, 10}, 18}}) {
    Builder b;
    const Value x = b.input("x", {4}), start = b.input("start", {1});
    Draft y = b.draft("y");
    const Form t = y.scan("t", 4, c.how);
    y.where(Formula::less_equal(t, 0) || Formula::less_equal(2, t));  // step 1 is absent
    const Expr v = y.read(x, {t});
    y.node.initial = {y.read(start, {0})};
    y.node.outputs = {{"y", DType::F32, 0, {0}, false}, {"last", DType::F32, 0, {}, true}};
    const Value out = y.fold(monoid::sum(Kind::F32), {v});
    b.output("y", out);
    b.output("last", sibling(out, 1));
    const Oracle o = oracle(b.graph, {{"x", floats({4}, {1, kNan, 3, 4})}, {"start", floats({1}, {10})}});
    const auto got = o.outputs();
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(as_doubles((*got)[0]), c.expected) << c.how.exclusive << c.how.reverse;
    EXPECT_EQ((*got)[1].data[0].f, c.last);
  }
}

TEST(Oracle, ScanOverRowsAndNoSteps) {
  Builder b;
  const Value a = b.input("a", {2, 3}), x = b.input("x", {2, 3});
  Draft y = b.draft("y");
  const Form i = y.point("i", 2), t = y.scan("t", 3);
  const Value h = y.fold(monoid::affine(Kind::F32), {y.read(a, {i, t}), y.read(x, {i, t})});
  b.output("h", sibling(h, 1));
  EXPECT_EQ(as_doubles(run(b, {{"a", floats({2, 3}, {1, 2, 3, 0, 0, 1})}, {"x", floats({2, 3}, {1, 1, 1, 5, 6, 7})}})),
            (Doubles{1, 3, 10, 5, 6, 13}));

  Builder e;
  const Value z = e.input("z", {2, 0});
  Draft s = e.draft("s");
  const Form p = s.point("p", 2), u = s.scan("u", 0);
  s.node.outputs = {{"last", DType::F32, 0, {0}, true}};
  s.node.initial = {e.f32(7)};
  e.output("last", s.fold(monoid::sum(Kind::F32), {s.read(z, {p, u})}));
  EXPECT_EQ(as_doubles(run(e, {{"z", floats({2, 0}, {})}})), (Doubles{7, 7}));
}

// new.a[i, k] = sum over l of y.a[i, l] * x.a[l, k].
monoid::MonoidRef matrices(const Form& n) {
  monoid::Monoid m;
  m.name = "matrices";
  m.arena = std::make_shared<scalar::Arena>();
  m.operands = {Kind::F32};
  m.components = {{"a", Kind::F32, {n, n}}};
  scalar::Arena& arena = *m.arena;
  m.identity = {scalar::select(scalar::binary(Op::Eq, scalar::index(arena, 0), scalar::index(arena, 1)),
                               scalar::f32(arena, 1), scalar::f32(arena, 0))};
  m.lift = {scalar::arg(arena, Kind::F32, 0)};
  monoid::Update update;
  update.sums = {n};
  update.reads = {{true, 0, {Form::index(0), Form::index(2)}}, {false, 0, {Form::index(2), Form::index(1)}}};
  update.body = scalar::arg(arena, Kind::F32, 0) * scalar::arg(arena, Kind::F32, 1);
  m.combine = {update};
  m.finish = {scalar::arg(arena, Kind::F32, 0)};
  return std::make_shared<const monoid::Monoid>(std::move(m));
}

TEST(Oracle, ScansMatrixStates) {
  constexpr int64_t n = 2, steps = 700;  // several batches
  Builder b;
  const Form size = b.size("K");
  b.graph.sizes[0].value = n;
  const Value x = b.input("x", {2, steps, size, size});
  Draft y = b.draft("y");
  const Form r = y.point("r", 2), i = y.axis("i", size), k = y.axis("k", size), t = y.scan("t", steps);
  const Value out = y.fold(matrices(size), {y.read(x, {r, t, i, k})});
  b.output("y", out);
  Doubles values;
  for (int64_t p = 0; p < 2 * steps * n * n; ++p) values.push_back(std::sin(double(p)) * 0.7);
  const Array got = run(b, {{"x", floats({2, steps, n, n}, values)}});
  ASSERT_EQ(got.extents, (std::vector<int64_t>{2, steps, n, n}));
  for (int64_t row = 0; row < 2; ++row) {
    Doubles state = {1, 0, 0, 1};
    for (int64_t step = 0; step < steps; ++step) {
      const double* m = values.data() + (row * steps + step) * 4;
      state = {m[0] * state[0] + m[1] * state[2], m[0] * state[1] + m[1] * state[3],
               m[2] * state[0] + m[3] * state[2], m[2] * state[1] + m[3] * state[3]};
      for (int64_t p = 0; p < 4; ++p) {
        ASSERT_NEAR(got.data[size_t((row * steps + step) * 4 + p)].f, state[size_t(p)], 1e-12);
      }
    }
  }
}

TEST(Oracle, WelfordOverManyBatches) {
  constexpr int64_t n = 5000;
  Builder b;
  const Value x = b.input("x", {n}, DType::F64);
  Draft y = b.draft("y");
  const Form j = y.reduce("j", n);
  const Value out = y.fold(monoid::welford(Kind::F64), {y.read(x, {j})});
  for (int o = 0; o < 3; ++o) b.output("o" + std::to_string(o), sibling(out, o));
  Doubles values;
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(1000 + std::sin(double(k)));
    sum += values.back();
  }
  for (double v : values) squares += (v - sum / n) * (v - sum / n);
  const Oracle o = oracle(b.graph, {{"x", floats({n}, values, DType::F64)}});
  const auto got = o.outputs();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)[0].data[0].f, n);
  EXPECT_NEAR((*got)[1].data[0].f, sum, 1e-6);
  EXPECT_NEAR((*got)[2].data[0].f, squares, 1e-7);
}

Scatter scatter_of(const Value& x, const Value& key, scalar::ArenaRef arena, int64_t n, int64_t target) {
  Scatter s;
  s.name = "s";
  s.indices = {{"t", n, Role::Point}};
  s.reads = {{key, {Form::index(0)}, {}}, {x, {Form::index(0)}, {}}};
  s.body = scalar::arg(*arena, Kind::F32, 1);
  s.extents = {target};
  s.coords = {Form::data(0)};
  return s;
}

TEST(Oracle, ScattersCombineDuplicatesAndDropStrays) {
  Builder b;
  const Value x = b.input("x", {5}), key = b.input("key", {5}, DType::I32), base = b.input("base", {3});
  Scatter s = scatter_of(x, key, b.graph.arena, 5, 3);
  s.monoid = monoid::sum(Kind::F32);
  b.output("sum", b.scatter(s));
  s.base = base;
  b.output("onto", b.scatter(s));
  const Oracle o = oracle(b.graph, {{"x", floats({5}, {1, 2, 4, 8, 16})},
                                    {"key", integers({5}, {2, 0, 2, -1, 3})},
                                    {"base", floats({3}, {100, 200, 300})}});
  const auto got = o.outputs();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(as_doubles((*got)[0]), (Doubles{2, 0, 5}));
  EXPECT_EQ(as_doubles((*got)[1]), (Doubles{102, 200, 305}));
}

TEST(Oracle, ScattersWithoutAMonoidMustBeInjective) {
  Builder b;
  const Value x = b.input("x", {3}), key = b.input("key", {3}, DType::I32);
  b.output("s", b.scatter(scatter_of(x, key, b.graph.arena, 3, 4)));
  const Array out = run(b, {{"x", floats({3}, {1, 2, 3})}, {"key", integers({3}, {3, 0, 2})}});
  EXPECT_EQ(out.present, (std::vector<uint8_t>{1, 0, 1, 1}));
  EXPECT_EQ(out.data[3].f, 1);
  EXPECT_EQ(failure(b, {{"x", floats({3}, {1, 2, 3})}, {"key", integers({3}, {1, 0, 1})}}),
            "s writes the element 1 of its target (in row-major order) a second time, at t = 2");
}

TEST(Oracle, IntegersWrapAtKindAndStorage) {
  Builder b;
  const Value x = b.input("x", {2}, DType::I8);
  Draft y = b.draft("y");
  const Form i = y.point("i", 2);
  const Expr v = y.read(x, {i});
  y.node.outputs = {{"wide", DType::I32, 0, {0}, false}, {"narrow", DType::I8, 0, {0}, false}};
  const Value out = y.map({v * v});
  b.output("wide", out);
  b.output("narrow", sibling(out, 1));
  const Oracle o = oracle(b.graph, {{"x", integers({2}, {100, -3}, DType::I8)}});
  const auto got = o.outputs();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(as_doubles((*got)[0]), (Doubles{10000, 9}));
  EXPECT_EQ(as_doubles((*got)[1]), (Doubles{16, 9}));
}

TEST(Oracle, EmulationRoundsToSingleAndStorage) {
  Builder b;
  const Value x = b.input("x", {2});
  Draft y = b.draft("y");
  const Form j = y.reduce("j", 2);
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(x, {j})}));
  const Array in = floats({2}, {16777216, 1});
  EXPECT_EQ(run(b, {{"x", in}}).data[0].f, 16777217);
  EXPECT_EQ(run(b, {{"x", in}}, {true}).data[0].f, 16777216);
}

TEST(Oracle, ReadsBuffersWhereTheyLie) {
  Builder b;
  const Value x = b.input("x", {2, 3}, DType::F16);
  Draft y = b.draft("y");
  const Form i = y.point("i", 2), j = y.point("j", 3);
  b.output("y", y.map({y.read(x, {i, j})}));
  const uint16_t data[] = {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};  // 1 .. 6
  auto o = Oracle::make(b.graph);
  ASSERT_TRUE(o.ok());
  ASSERT_TRUE(o->set_input(InputBuffer{"x", DType::F16, data, {1, -2}, 4}).ok());
  const auto got = o->output("y");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(as_doubles(*got), (Doubles{5, 3, 1, 6, 4, 2}));
  EXPECT_EQ(o->set_input(InputBuffer{"x", DType::F32, data, {}, 0}).error().message,
            "input x is f32 but the program says f16");
  EXPECT_EQ(o->set_input(InputBuffer{"w", DType::F32, data, {}, 0}).error().message, "no input is called w");
}

TEST(Oracle, ChecksStatedRanges) {
  Builder b;
  const Value x = b.input("x", {2}, DType::I32);
  std::get<Input>(b.graph.nodes[0]).low = Form(0);
  std::get<Input>(b.graph.nodes[0]).high = Form(4);
  b.output("x", x);
  auto o = Oracle::make(b.graph);
  ASSERT_TRUE(o.ok());
  EXPECT_TRUE(o->set_input("x", integers({2}, {0, 3})).ok());
  EXPECT_EQ(o->set_input("x", integers({2}, {0, 4})).error().message, "element 1 of input x is 4, outside its stated range");
}

// Weighted sums of value rows by exponentials of causal scores, as maps and reductions.
Graph scores_graph(int64_t heads, int64_t n, int64_t d) {
  Builder b;
  const Value q = b.input("q", {heads, n, d}), k = b.input("k", {heads, n, d}), v = b.input("v", {heads, n, d});
  Draft s = b.draft("s");
  Form h = s.point("h", heads), i = s.point("i", n), j = s.point("j", n), c = s.reduce("c", d);
  const Value scores = s.fold(monoid::sum(Kind::F32), {s.read(q, {h, i, c}) * s.read(k, {h, j, c})});
  Draft m = b.draft("m");
  h = m.point("h", heads), i = m.point("i", n), j = m.reduce("j", n);
  m.where(Formula::less_equal(j, i));
  const Value top = m.fold(monoid::maximum(Kind::F32), {m.read(scores, {h, i, j})});
  Draft e = b.draft("e");
  h = e.point("h", heads), i = e.point("i", n), j = e.point("j", n);
  e.where(Formula::less_equal(j, i));
  const Value weights = e.map({scalar::exp(e.read(scores, {h, i, j}) - e.read(top, {h, i}))});
  Draft z = b.draft("z");
  h = z.point("h", heads), i = z.point("i", n), j = z.reduce("j", n);
  z.where(Formula::less_equal(j, i));
  const Value total = z.fold(monoid::sum(Kind::F32), {z.read(weights, {h, i, j})});
  Draft o = b.draft("o");
  h = o.point("h", heads), i = o.point("i", n), c = o.point("c", d), j = o.reduce("j", n);
  o.where(Formula::less_equal(j, i));
  const Value sum = o.fold(monoid::sum(Kind::F32), {o.read(weights, {h, i, j}) / o.read(total, {h, i}) * o.read(v, {h, j, c})});
  b.output("o", sum);
  return b.finish();
}

Array waves(std::vector<int64_t> extents, double phase) {
  int64_t count = 1;
  for (int64_t e : extents) count *= e;
  Doubles values;
  for (int64_t p = 0; p < count; ++p) values.push_back(std::sin(double(p) * 0.37 + phase));
  return floats(std::move(extents), values);
}

TEST(Oracle, SamplesAgreeWithTheWhole) {
  const int64_t heads = 2, n = 19, d = 5;
  const Graph g = scores_graph(heads, n, d);
  const Oracle o = oracle(g, {{"q", waves({heads, n, d}, 0)}, {"k", waves({heads, n, d}, 1)}, {"v", waves({heads, n, d}, 2)}});
  const auto whole = o.output("o");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  // Row 0 of each head sees only its own value.
  for (int64_t c = 0; c < d; ++c) EXPECT_NEAR(whole->data[size_t(c)].f, std::sin(double(c) * 0.37 + 2), 1e-14);
  std::vector<std::vector<int64_t>> points;
  for (int64_t p = 0; p < heads * n * d; p += 7) points.push_back({p / (n * d), p / d % n, p % d});
  const auto some = o.at(*o.find_output("o"), points);
  ASSERT_TRUE(some.ok()) << some.error().message;
  for (size_t k = 0; k < points.size(); ++k) {
    EXPECT_NEAR((*some)[k].f, whole->data[k * 7].f, 1e-14);
  }
  EXPECT_FALSE(o.at(*o.find_output("o"), {{0, n, 0}}).ok());
}

TEST(Oracle, SamplesManyRowsInSeconds) {
  const int64_t heads = 8, n = 1024, d = 64;
  const Graph g = scores_graph(heads, n, d);
  const Oracle o = oracle(g, {{"q", waves({heads, n, d}, 0)}, {"k", waves({heads, n, d}, 1)}, {"v", waves({heads, n, d}, 2)}});
  std::vector<std::vector<int64_t>> points;
  for (int64_t p = 0; p < 512; ++p) points.push_back({p % heads, p * 7919 % n, p * 31 % d});
  const auto start = std::clock();  // of the processor: other work does not count
  const auto some = o.at(*o.find_output("o"), points);
  ASSERT_TRUE(some.ok()) << some.error().message;
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 5);
  for (Scalar s : *some) EXPECT_LE(std::fabs(s.f), 1);
  RecordProperty("seconds", std::to_string(seconds));
}

TEST(Oracle, SamplesFollowWindowsAndGathers) {
  Builder b;
  const Value x = b.input("x", {40}), key = b.input("key", {30}, DType::I32);
  Draft t = b.draft("t");
  Form i = t.point("i", 40);
  const Value squares = t.map({t.read(x, {i}) * t.read(x, {i})});
  Draft w = b.draft("w");
  i = w.point("i", 38);
  const Form r = w.reduce("r", 3);
  const Value windows = w.fold(monoid::sum(Kind::F32), {w.read(squares, {i + r})});
  Draft g = b.draft("g");
  i = g.point("i", 30);
  const Expr at = g.read(key, {i});
  b.output("g", g.map({g.read(windows, {Draft::data(at)}) + g.read(windows, {i + Form(2)})}));
  Doubles values;
  std::vector<int64_t> keys;
  for (int k = 0; k < 40; ++k) values.push_back(k * 0.5 - 3);
  for (int k = 0; k < 30; ++k) keys.push_back(k * 11 % 38);
  const Oracle o = oracle(b.graph, {{"x", floats({40}, values)}, {"key", integers({30}, keys)}});
  const auto window = [&](int64_t p) {
    double sum = 0;
    for (int64_t k = p; k < p + 3; ++k) sum += values[size_t(k)] * values[size_t(k)];
    return sum;
  };
  const auto some = o.at(*o.find_output("g"), {{3}, {29}});
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_NEAR((*some)[0].f, window(33) + window(5), 1e-12);
  EXPECT_NEAR((*some)[1].f, window(keys[29]) + window(31), 1e-12);
}

void* run_chain(void* seconds) {
  Builder b;
  const Value x = b.input("x", {8});
  Value last = x;
  for (int k = 0; k < 5000; ++k) {
    Draft y = b.draft("y");
    const Form i = y.point("i", 8);
    last = y.map({y.read(last, {i}) + b.f32(1)});
  }
  b.output("y", last);
  const auto start = std::clock();  // of the processor: other work does not count
  const Oracle o = oracle(b.graph, {{"x", floats({8}, {0, 1, 2, 3, 4, 5, 6, 7})}});
  const auto whole = o.output("y");
  const auto some = o.at(last, {{3}});
  const double elapsed = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_TRUE(whole.ok() && some.ok());
  EXPECT_EQ(whole->data[7].f, 5007);
  EXPECT_EQ((*some)[0].f, 5003);
  *static_cast<double*>(seconds) = elapsed;
  return nullptr;
}

TEST(Oracle, LongChainsTakeLinearTimeAndLittleStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  double seconds = 0;
  ASSERT_EQ(pthread_create(&thread, &attributes, run_chain, &seconds), 0);
  pthread_join(thread, nullptr);
  EXPECT_LT(seconds, 1);
}

TEST(Oracle, CountsOperations) {
  EXPECT_NEAR(operation_count(scores_graph(1, 100, 10)), 100 * 100 * 10 * (2 + 2 + 4) , 100 * 100 * 30);
}

TEST(Oracle, AsksForSizesAndInputs) {
  Builder b;
  const Form n = b.size("N");
  b.output("x", b.input("x", {n}));
  EXPECT_EQ(Oracle::make(b.graph).error().message, "size N has no value");
  b.graph.sizes[0].value = 2;
  EXPECT_EQ(oracle(b.graph, {}).output("x").error().message, "input x was not given");
  EXPECT_EQ(oracle(b.graph, {}).output("y").error().message, "no output is called y");
}

}  // namespace
}  // namespace lemma::tensor
