// The three things a pass does to a node, interning, dead code, and definitions that outlive what they stand on.
#include "lemma/tensor/rebuild.h"

#include <gtest/gtest.h>

#include <ctime>

#include "lemma/tensor/builder.h"
#include "lemma/tensor/eval.h"
#include "lemma/tensor/validate.h"

namespace lemma::tensor {
namespace {

using scalar::Expr;
using scalar::Kind;
using view::Form;

Value shifted(Builder& b, Value x, double by, const std::string& name = "y") {
  Draft y = b.draft(name);
  const Form i = y.point("i", 4);
  return y.map({y.read(x, {i}) + b.f32(by)});
}

std::vector<double> values(const Graph& g) {
  EXPECT_TRUE(validate(g).ok()) << validate(g).error().message;
  auto o = Oracle::make(g);
  EXPECT_TRUE(o.ok());
  Array x;
  x.extents = {4};
  for (int k = 0; k < 4; ++k) x.data.push_back(scalar::from_float(k));
  EXPECT_TRUE(o->set_input("x", x).ok());
  const auto outputs = o->outputs();
  EXPECT_TRUE(outputs.ok());
  std::vector<double> out;
  for (const Array& a : *outputs) {
    for (scalar::Scalar s : a.data) out.push_back(s.f);
  }
  return out;
}

TEST(Rebuild, InternsEqualNodesAndDropsDeadOnes) {
  Builder b;
  const Value x = b.input("x", {4});
  const Value unused = b.input("unused", {4});
  shifted(b, unused, 9);
  const Value p = shifted(b, x, 1, "p"), q = shifted(b, x, 1, "q"), r = shifted(b, x, 2, "r");
  b.output("a", shifted(b, p, 1, "a"));
  b.output("b", shifted(b, q, 1, "b"));
  b.output("c", r);
  const Graph g = rebuild(b.graph, {});
  EXPECT_EQ(g.nodes.size(), 2u + 3u);  // both inputs stay
  EXPECT_EQ(g.outputs[0].value, g.outputs[1].value);
  EXPECT_EQ(values(g), values(b.graph));
  EXPECT_EQ(remove_dead(b.graph).nodes.size(), 2u + 5u);
}

TEST(Rebuild, EditsAddsAndReplaces) {
  Builder b;
  const Value x = b.input("x", {4});
  const Value p = shifted(b, x, 1, "p"), q = shifted(b, p, 2, "q");
  b.output("q", q);
  // (a) every map doubles what it reads; (b) through a further node; (c) q becomes p.
  const Graph doubled = rebuild(b.graph, [](Rebuild& build, Tensor, Node& node) -> Replaced {
    auto* c = std::get_if<Comprehension>(&node);
    if (!c) return {};
    scalar::Arena& arena = *build.graph().arena;
    c->body[0] = c->body[0] + scalar::f32(arena, 0);
    Comprehension twice = *c;
    twice.body = {scalar::arg(arena, Kind::F32, 0) * scalar::f32(arena, 2)};
    c->reads[0].source = {build.add(std::move(twice)), 0};
    return {};
  });
  EXPECT_EQ(doubled.nodes.size(), 5u);
  EXPECT_EQ(values(doubled), (std::vector<double>{4, 8, 12, 16}));
  const Graph shorter = rebuild(b.graph, [&](Rebuild& build, Tensor old, Node&) -> Replaced {
    if (old != q.node) return {};
    return std::vector<Value>{build.value(p)};
  });
  EXPECT_EQ(shorter.nodes.size(), 2u);
  EXPECT_EQ(values(shorter), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Rebuild, DefinitionsTakeInWhatDies) {
  Builder b;
  const Value x = b.input("x", {4});
  const Value p = shifted(b, x, 1, "p");
  Builder naive;
  const Value in = naive.input("in", {4});
  naive.output("out", shifted(naive, in, 2));
  Draft y = b.draft("y");
  const Form i = y.point("i", 4);
  const Expr read = y.read(x, {i});
  y.node.definition = std::make_shared<const Definition>(Definition{naive.finish()});
  y.node.definition_inputs = {p};
  b.output("y", y.map({read + b.f32(3)}));
  const Graph g = rebuild(b.graph, {});
  ASSERT_EQ(g.nodes.size(), 2u);
  const auto& c = std::get<Comprehension>(g.nodes[1]);
  EXPECT_EQ(c.definition_inputs, (std::vector<Value>{{Tensor{0}, 0}}));
  EXPECT_EQ(c.definition->graph.nodes.size(), 3u);
  EXPECT_EQ(values(c.definition->graph), values(g));
}

TEST(Rebuild, TakesLinearTime) {
  Builder b;
  Value last = b.input("x", {4});
  for (int k = 0; k < 20000; ++k) last = shifted(b, last, k % 7);
  b.output("y", last);
  const auto start = std::clock();  // of the processor: other work does not count
  const Graph g = rebuild(b.graph, {});
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(g.nodes.size(), b.graph.nodes.size());
  EXPECT_LT(seconds, 2);
}

TEST(Rebuild, HashAgreesWithSame) {
  Builder b;
  const Value x = b.input("x", {4});
  const Value p = shifted(b, x, 1, "p"), q = shifted(b, x, 1, "q"), r = shifted(b, x, 2, "r");
  EXPECT_TRUE(same(b.graph.node(p.node), b.graph.node(q.node)));
  EXPECT_EQ(hash(b.graph.node(p.node)), hash(b.graph.node(q.node)));
  EXPECT_FALSE(same(b.graph.node(p.node), b.graph.node(r.node)));
  EXPECT_FALSE(same(b.graph.node(x.node), b.graph.node(x.node)));  // inputs are never one
}

}  // namespace
}  // namespace lemma::tensor
