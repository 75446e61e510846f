#include "lemma/tile/validate.h"

#include <gtest/gtest.h>

#include "lemma/tile/parse.h"

namespace lemma::tile {
namespace {

Program valid_program() {
  auto p = parse(
      "program c {\n size N\n input x f32[N]\n output y f32[N]\n kernel k grid (b < 2) {\n shared s f32[4, 4] panels 2\n"
      " copy (i < 4, j < 4) x[i] -> s[i, j] fill 0\n for t in 0 .. 2 {\n map (i < 4) { y[i] = s[i, t] }\n }\n }\n}\n");
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : base::render(p.error()));
  return *std::move(p);
}

void expect_invalid(const Program& p, const std::string& message) {
  auto v = validate(p);
  ASSERT_FALSE(v.ok()) << message;
  EXPECT_NE(v.error().message.find(message), std::string::npos) << v.error().message;
}

Map& inner_map(Program& p) { return std::get<Map>(std::get<For>(p.kernels[0].body[2]).body[0]); }

TEST(Validate, NamesPlaceAndMistake) {
  EXPECT_TRUE(validate(valid_program()).ok());
  auto broken = [](auto change) {
    Program p = valid_program();
    change(p);
    return p;
  };
  expect_invalid(broken([](Program& p) { inner_map(p).stores[0].to.buffer = 0; }), "kernel k, statement 3.1 (map): it writes \"x\", which is an input");
  expect_invalid(broken([](Program& p) { inner_map(p).stores[0].to.buffer = 9; }), "buffer 9, which the program does not have");
  expect_invalid(broken([](Program& p) { inner_map(p).reads[0].coords.pop_back(); }), "has 1 coordinates, \"s\" has 2 dimensions");
  expect_invalid(broken([](Program& p) { inner_map(p).points[0].var = p.kernels[0].grid[0].var; }), "bound again inside its own scope");
  expect_invalid(broken([](Program& p) { std::swap(p.kernels[0].body[0], p.kernels[0].body[1]); }), "kernel k, statement 1 (copy): its target uses \"s\" where it is not allocated");
  expect_invalid(broken([](Program& p) { inner_map(p).stores[0].value = scalar::i64(*p.arena, 1); }), "is of kind i64, f32 is needed");
  expect_invalid(broken([](Program& p) { inner_map(p).stores[0].value = scalar::arg(*p.arena, scalar::Kind::F32, 3); }), "uses read 3 of 1");
  expect_invalid(broken([](Program& p) { inner_map(p).where = view::Formula::non_negative(view::Form::data(0)); }), "uses a read of floats as an integer");
  expect_invalid(broken([](Program& p) { inner_map(p).stores[0].combine = scalar::Op::Sub; }), "which is not associative");
  expect_invalid(broken([](Program& p) { p.buffers[1].layout.kind = LayoutKind::Panels; }), "only scratch and block-local buffers can be");
  expect_invalid(broken([](Program& p) { p.buffers[2].extents.pop_back(); }), "at least 2 are needed");
  expect_invalid(broken([](Program& p) { std::swap(p.buffers[1], p.buffers[2]); }), "a parameter stands after a buffer that is none");
  expect_invalid(broken([](Program& p) { std::get<For>(p.kernels[0].body[2]).end = scalar::f32(*p.arena, 2); }), "(for): its end is of kind f32");
  expect_invalid(broken([](Program& p) { p.kernels[0].grid[0].extent = view::Form::index(1); }), "only sizes may stand there");
  expect_invalid(broken([](Program& p) { p.sizes[0].definition = scalar::size(*p.arena, 0); }), "before its definition");
  expect_invalid(broken([](Program& p) {
    For loop = std::get<For>(p.kernels[0].body[2]);
    loop.body[0] = Map(inner_map(p));
    std::get<Map>(loop.body[0]).points[0].extent = view::Form::index(inner_map(p).points[0].var);
    p.kernels[0].body[2] = loop;
  }), "outside the construct that binds it");
}

TEST(Validate, AComponentThatLeavesOutAVariableMayNotDependOnIt) {
  auto p = parse(
      "program c {\n input x f32[4, 4]\n output m f32[4]\n output a f32[4, 4]\n kernel k {\n"
      " reduce (i < 4, c < 4) over (j < 4) by rescaled_sum[f32, 1, 1.0] {\n element x[j, c], x[j, c]\n state m[i], a[i, c]\n }\n }\n}\n");
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().message.find("its operand 0 depends on variable \"c\", which state 0 leaves out"), std::string::npos) << p.error().message;
}

}  // namespace
}  // namespace lemma::tile
