// Graphs that are wrong, each refused with its own sentence, and reads that are or are not provably possible.
#include "lemma/tensor/validate.h"
#include "lemma/tensor/requirements.h"

#include <gtest/gtest.h>

#include "lemma/tensor/bind.h"
#include "lemma/tensor/builder.h"
#include "lemma/tensor/eval.h"

namespace lemma::tensor {
namespace {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using view::Form;
using view::Formula;

// y[i] = sum(j) x[i, j] with i < N, j < M.
Builder row_sums() {
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value x = b.input("x", {n, m});
  Draft y = b.draft("y");
  const Form i = y.point("i", n), j = y.reduce("j", m);
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(x, {i, j})}));
  return b;
}

Comprehension& node(Builder& b) { return std::get<Comprehension>(b.graph.nodes[1]); }

std::string refusal(const Builder& b) {
  const auto r = validate(b.graph);
  return r.ok() ? "" : r.error().message;
}

TEST(Validate, AcceptsWhatIsRight) {
  EXPECT_EQ(refusal(row_sums()), "");
}

TEST(Validate, RefusesWhatIsNot) {
  {
    Builder b = row_sums();
    node(b).reads[0].coords.pop_back();
    EXPECT_EQ(refusal(b), "y: its read of x has 1 coordinates but the source has 2 dimensions");
  }
  {
    Builder b = row_sums();
    node(b).reads[0].source.node.index = 1;
    EXPECT_EQ(refusal(b), "y: it reads node 1, which does not precede it");
  }
  {
    Builder b = row_sums();
    node(b).reads[0].coords[1] = Form::index(7);
    EXPECT_EQ(refusal(b), "y: a coordinate of read 0 uses index 7 of 2");
  }
  {
    Builder b = row_sums();
    node(b).reads[0].coords[1] = Form::data(0);
    EXPECT_EQ(refusal(b), "y: a coordinate of read 0 uses read 0 but may use the first 0");
  }
  {
    Builder b = row_sums();
    node(b).domain = Formula::equal(Form::data(0), 1);
    EXPECT_EQ(refusal(b), "y: the domain uses read 0 of kind f32 as an integer");
  }
  {
    Builder b = row_sums();
    node(b).outputs[0].dims = {};
    EXPECT_EQ(refusal(b), "y: output y lacks the index i of a component it is finished from");
  }
  {
    Builder b = row_sums();
    node(b).components[0] = {};
    EXPECT_EQ(refusal(b), "y: component value hangs on the index i but lacks it");
  }
  {
    Builder b = row_sums();
    node(b).outputs[0].type = DType::I32;
    EXPECT_EQ(refusal(b), "y: output y is stored as i32 but its value is f32");
  }
  {
    Builder b = row_sums();
    node(b).monoid = nullptr;
    node(b).components.clear();
    EXPECT_EQ(refusal(b), "y: a map has the index j, which is no point");
  }
  {
    Builder b = row_sums();
    node(b).body[0] = scalar::arg(b.arena(), Kind::I32, 0);
    EXPECT_EQ(refusal(b), "y: body 0 uses read 0 as i32 but it is f32");
  }
  {
    Builder b = row_sums();
    std::swap(node(b).indices[0], node(b).indices[1]);
    EXPECT_EQ(refusal(b), "y: index i stands after one of a later role");
  }
  {
    Builder b = row_sums();
    node(b).scan = Scan();
    EXPECT_EQ(refusal(b), "y: a scan has one scan index and nothing else has, but there are 0");
  }
}

std::string bounds(const Builder& b) {
  const auto r = check_bounds(b.graph);
  return r.ok() ? "" : r.error().message;
}

TEST(CheckBounds, ProvesSymbolicReads) {
  EXPECT_EQ(bounds(row_sums()), "");
  Builder b;
  const Form n = b.size("N");
  const Value x = b.input("x", {n});
  Draft y = b.draft("y");
  const Form i = y.point("i", n);
  y.where(Formula::less(i + Form(1), n));
  b.output("y", y.map({y.read(x, {i + Form(1)}) - y.read(x, {n - Form(1) - i})}));
  EXPECT_EQ(bounds(b), "");
}

std::string required(const Builder& b) {
  const Requirements found = requirements(b.graph);
  std::string out = found.complete ? "" : "and more";
  for (const Requirement& r : found.list) out += r.message + "\n";
  return out;
}

// Whether every requirement holds at these sizes.
bool allowed(const Builder& b, std::vector<int64_t> sizes) {
  for (const Requirement& r : requirements(b.graph).list) {
    if (!r.condition.evaluate([&](const view::Atom& a) { return sizes[size_t(a.id)]; })) return false;
  }
  return true;
}

TEST(Requirements, SayWhatSizesMustBeWhereReadsNeedIt) {
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value x = b.input("x", {n});
  Draft y = b.draft("y");
  const Form i = y.point("i", m);
  b.output("y", y.map({y.read(x, {Form::mod(i, n)})}));
  EXPECT_EQ(required(b), "y reads x[i % N], which needs N > 0\n");
  EXPECT_TRUE(allowed(b, {3, 300}));
  EXPECT_TRUE(allowed(b, {0, 0}));  // no points, no reads
  EXPECT_FALSE(allowed(b, {0, 1}));
}

TEST(Requirements, ComparesTheEndsOfIndicesWithExtents) {
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value x = b.input("x", {n});
  Draft y = b.draft("y");
  const Form i = y.point("i", m);
  b.output("y", y.map({y.read(x, {Form(2) * i + Form(1)})}));
  EXPECT_EQ(required(b), "y reads x[2*i + 1], which leaves it at these sizes\n");
  EXPECT_TRUE(allowed(b, {6, 3}));
  EXPECT_TRUE(allowed(b, {0, 0}));
  EXPECT_FALSE(allowed(b, {5, 3}));
}

TEST(Requirements, LeaveOutWhatHoldsAnywayAndSayWhatIsOpen) {
  EXPECT_EQ(required(row_sums()), "");
  Builder b;
  const Form n = b.size("N"), m = b.size("M");
  const Value x = b.input("x", {n, m});
  Draft y = b.draft("y");
  const Form i = y.point("i", n * m);
  b.output("y", y.map({y.read(x, {Form::floor_div(i, m), Form::mod(i, m)})}));
  EXPECT_EQ(required(b), "and more");  // by numbers, once sizes are bound
}

TEST(CheckBounds, FindsReadsThatLeave) {
  Builder b;
  const Value x = b.input("x", {8});
  Draft y = b.draft("y");
  const Form i = y.point("i", 4), r = y.reduce("r", 3);
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(x, {Form(2) * i + r})}));
  EXPECT_EQ(bounds(b), "y: a read may leave x in dimension 0, at i = 3, r = 2");
  std::get<Comprehension>(b.graph.nodes[1]).reads[0].guard = Formula::within(Form(2) * i + r, 8);
  EXPECT_EQ(bounds(b), "");
}

TEST(CheckBounds, FindsReadsOffTheDomain) {
  Builder b;
  const Value x = b.input("x", {8, 8});
  Draft m = b.draft("m");
  Form i = m.point("i", 8), j = m.point("j", 8);
  m.where(Formula::less_equal(j, i));
  const Value masked = m.map({m.read(x, {i, j})});
  Draft y = b.draft("y");
  i = y.point("i", 8), j = y.reduce("j", 8);
  y.where(Formula::less(j, i));
  b.output("y", y.fold(monoid::sum(Kind::F32), {y.read(masked, {i, j})}));
  EXPECT_EQ(bounds(b), "");
  std::get<Comprehension>(b.graph.nodes[2]).domain = Formula();
  EXPECT_EQ(bounds(b), "y: a read may fall off the domain of m, at i = 0, j = 1");
}

TEST(CheckBounds, KnowsStatedRangesAndEqualData) {
  Builder b;
  const Value w = b.input("w", {4}), e = b.input("e", {3}, DType::I32);
  Draft y = b.draft("y");
  const Form t = y.point("t", 3);
  const Expr key = y.read(e, {t});
  b.output("y", y.map({y.read(w, {Draft::data(key)})}));
  EXPECT_NE(bounds(b), "");
  Input& keys = std::get<Input>(b.graph.nodes[1]);
  keys.low = Form(0);
  keys.high = Form(4);
  EXPECT_EQ(bounds(b), "");

  Builder c;
  const Value x = c.input("x", {2, 8}), length = c.input("length", {2}, DType::I32);
  Value last = x;
  for (int k = 0; k < 2; ++k) {
    Draft m = c.draft("m");
    const Form i = m.point("i", 2), j = m.point("j", 8);
    const Expr limit = m.read(length, {i});
    m.where(Formula::less(j, Draft::data(limit)));
    last = m.map({m.read(last, {i, j})});
  }
  EXPECT_EQ(bounds(c), "");
}

TEST(Bind, ReplacesSizesEverywhere) {
  const Builder b = row_sums();
  const Binding sizes[] = {{"N", 2}, {"M", 3}};
  const auto bound = tensor::bind(b.graph, sizes);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(extents(*bound, {Tensor{0}, 0}), (std::vector<Form>{2, 3}));
  EXPECT_TRUE(unbound_sizes(*bound).empty());
  EXPECT_EQ(unbound_sizes(b.graph), (std::vector<std::string>{"N", "M"}));
  EXPECT_TRUE(validate(*bound).ok());
}

TEST(Bind, RefusesWhatSizesForbid) {
  const auto refused = [](const Graph& g, std::vector<Binding> sizes) {
    const auto r = tensor::bind(g, sizes);
    return r.ok() ? "" : r.error().message;
  };
  Builder b = row_sums();
  b.graph.sizes[0].high = 10;
  b.graph.sizes[0].low = 1;
  b.graph.sizes[1].divisor = 16;
  EXPECT_EQ(refused(b.graph, {{"K", 1}}), "no size is called K");
  EXPECT_EQ(refused(b.graph, {{"N", 11}}), "size N is 11 but must be at most 10");
  EXPECT_EQ(refused(b.graph, {{"N", 0}}), "size N is 0 but must be at least 1");
  EXPECT_EQ(refused(b.graph, {{"M", 24}}), "size M is 24 but must be a multiple of 16");
  EXPECT_EQ(refused(b.graph, {{"N", 2}, {"N", 3}}), "size N is given both 2 and 3");
  EXPECT_EQ(refused(row_sums().graph, {{"N", int64_t(1) << 40}, {"M", int64_t(1) << 40}}),
            "x has more than 2^62 elements at these sizes");
  Builder c;
  const Form n = c.size("N");
  Draft y = c.draft("y");
  const Form i = y.point("i", n - Form(3));
  c.output("y", y.map({y.index(i)}));
  EXPECT_EQ(refused(c.graph, {{"N", 2}}), "index i of y has the extent -1");
  EXPECT_EQ(refused(c.graph, {{"N", 3}}), "");
}

}  // namespace
}  // namespace lemma::tensor
