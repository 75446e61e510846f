// What devices are given: the tile programs of golden/NAME.lemma stand in golden/NAME.tile (LEMMA_BLESS=1 writes them),
// and these, all examples and all cases are carried out by the block interpreter, which finds races, reads of what nobody
// wrote and accesses outside buffers, and must give what the oracle gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>

#include "lemma/driver/on_device.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "tests/cases/case_file.h"
#include "tests/support/examples.h"

namespace lemma {
namespace {

using driver::Compiled;
using testing_support::NamedValues;

const std::string source = LEMMA_SOURCE_DIR, goldens = source + "/tests/device_schedules/golden";

// Small tiles, so that small programs have edges and several turns; CUDA's operands stay narrow.
tile::Target small_tiles(bool matrix_units) {
  tile::Target out;
  out.name = "device";
  out.device = true;
  out.matrix_units = matrix_units;
  out.tile_rows = out.tile_columns = 16 * (matrix_units ? 2 : 1);
  out.tile_depth = 16;
  out.stream_rows = 32;
  out.stream_columns = 16;
  return out;
}

base::Result<Compiled> compile(const tensor::Graph& graph, const tile::Target& target) {
  driver::CompileOptions options;
  options.target = target;
  return driver::compile(graph, options);
}

base::Result<std::vector<runtime::Named>> interpret(const Compiled& compiled, const std::vector<tensor::Binding>& sizes, const NamedValues& inputs) {
  driver::Arguments arguments;
  for (const auto& [name, values] : inputs) {
    LEMMA_TRY(runtime::Array array, testing_support::guarded_array(values));
    arguments.inputs.push_back({name, std::move(array)});
  }
  arguments.sizes = testing_support::in_order(compiled.source, sizes);
  LEMMA_TRY(arguments, driver::contiguous_inputs(arguments));
  LEMMA_TRY(driver::Call call, driver::prepare(compiled, arguments));
  std::vector<tile::SizeValue> values;
  size_t next = 0;
  for (const tile::SizeDecl& s : compiled.program.sizes) {
    if (!s.definition.valid() && s.name != "threads") values.push_back({s.name, call.program_sizes[next++]});
  }
  std::vector<tile::Argument> parameters;
  for (size_t i = 0; i < call.arrays.size(); ++i) parameters.push_back({call.buffers[i], call.arrays[i].count()});
  LEMMA_TRY_VOID(tile::run(compiled.program, values, parameters, {.seed = 5}));
  return call.outputs;
}

void compare(const Compiled& compiled, const std::vector<tensor::Binding>& sizes, const NamedValues& inputs, const NamedValues& expected,
             const std::function<double(const std::string&)>& bound) {
  const auto found = interpret(compiled, sizes, inputs);
  if (!found.ok() && found.error().failure == base::Failure::Unsupported) GTEST_SKIP() << "NOT TESTED: " << found.error().message;
  ASSERT_TRUE(found.ok()) << base::render(found.error()) << tile::print(compiled.program);
  for (const runtime::Named& n : *found) {
    EXPECT_EQ(testing_support::difference(expected.at(n.name), testing_support::values_of(n.array), bound(n.name)), "") << n.name;
  }
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, ReadsAsWrittenAndIsRight) {
  const auto example = testing_support::read_example(goldens, GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto text = testing_support::read_text(goldens + "/" + GetParam() + ".lemma");
  tile::Target target = small_tiles(false);
  if (text->find("# target: cuda\n") != std::string::npos) {
    emit::device::DeviceOptions cuda;
    cuda.dialect = emit::device::DialectId::Cuda;
    target = driver::device_target(cuda);
  }
  const auto compiled = compile(example->graph, target);
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  std::string actual = tile::print(compiled->program);
  for (const rewrite::Decision& d : compiled->decisions) {
    if (d.pass == "schedule" || d.pass == "device") actual += "# " + d.subject + ": " + d.sentence + "\n";
  }
  const std::string path = goldens + "/" + GetParam() + ".tile";
  if (std::getenv("LEMMA_BLESS")) std::ofstream(path) << actual;
  const auto expected = testing_support::read_text(path);
  ASSERT_TRUE(expected.ok()) << "no " << path << "; LEMMA_BLESS=1 writes it";
  EXPECT_EQ(actual, *expected);
  compare(*compiled, example->sizes, example->inputs, example->expected, [&](const std::string&) { return example->bound; });
}

INSTANTIATE_TEST_SUITE_P(All, Golden, ::testing::ValuesIn(testing_support::example_names(goldens)),
                         [](const auto& info) { return info.param; });

// The same programs where sizes are nothing, one, and about a tile: kernels know none of them.
TEST_P(Golden, IsRightAtTheEdges) {
  const auto example = testing_support::read_example(goldens, GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto compiled = compile(example->graph, small_tiles(true));
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  const int64_t choices[] = {0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 50};
  std::mt19937 random(11);
  for (int round = 0; round < 8; ++round) {
    std::vector<tensor::Binding> sizes;
    std::string text;
    for (const tensor::Size& s : example->graph.sizes) {
      if (s.value) continue;
      // Batches stay small; what has a divisor or a bound keeps to it.
      const bool few = s.divisor > 1 || s.name == "B" || s.name == "G" || s.name == "H";
      const int64_t size = few ? int64_t(random() % 3) * s.divisor : choices[random() % std::size(choices)];
      sizes.push_back({s.name, std::clamp(size, s.low, s.high.value_or(size))});
      text += " " + s.name + "=" + std::to_string(sizes.back().value);
    }
    SCOPED_TRACE(text);
    const NamedValues inputs = testing_support::random_inputs(example->graph, testing_support::in_order(example->graph, sizes));
    const auto expected = testing_support::evaluate(example->graph, sizes, inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    compare(*compiled, sizes, inputs, *expected, [&](const std::string&) { return example->bound; });
  }
}

class OnTiles : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

std::string test_name(const ::testing::TestParamInfo<std::tuple<std::string, bool>>& info) {
  std::string out = std::get<0>(info.param).substr(0, std::get<0>(info.param).rfind('.')) + (std::get<1>(info.param) ? "_MatrixUnits" : "");
  std::replace_if(out.begin(), out.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return out;
}

TEST_P(OnTiles, ExampleGivesWhatTheOracleGives) {
  const auto& [name, matrix_units] = GetParam();
  const auto example = testing_support::read_example(source + "/examples", name);
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto compiled = compile(testing_support::with_columns_bound(example->graph, example->sizes), small_tiles(matrix_units));
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  compare(*compiled, example->sizes, example->inputs, example->expected, [&](const std::string&) { return example->bound; });
}

INSTANTIATE_TEST_SUITE_P(Examples, OnTiles,
                         ::testing::Combine(::testing::ValuesIn(testing_support::example_names(source + "/examples")), ::testing::Bool()), test_name);

class CaseOnTiles : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseOnTiles, GivesWhatTheOracleGives) {
  const auto text = testing_support::read_text(source + "/tests/cases/" + GetParam());
  ASSERT_TRUE(text.ok()) << base::render(text.error());
  const auto file = cases::parse_case(GetParam(), *text);
  ASSERT_TRUE(file.ok()) << base::render(file.error());
  if (!file->heavy.empty()) GTEST_SKIP() << "takes " << file->heavy;
  const auto graph = testing_support::read_program(*text, GetParam());
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  for (const cases::CaseRun& run : file->runs) {
    SCOPED_TRACE(run.name);
    const auto compiled = compile(testing_support::with_columns_bound(*graph, run.sizes), small_tiles(false));
    ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
    const auto inputs = cases::inputs_of(*graph, run);
    ASSERT_TRUE(inputs.ok()) << base::render(inputs.error());
    const auto expected = testing_support::evaluate(*graph, run.sizes, *inputs);
    ASSERT_TRUE(expected.ok()) << base::render(expected.error());
    compare(*compiled, run.sizes, *inputs, *expected, [&](const std::string& output) {
      const auto bound = file->absolute.find(output);
      return bound == file->absolute.end() ? -1 : bound->second;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CaseOnTiles, ::testing::ValuesIn(cases::case_paths(source + "/tests/cases")), [](const auto& info) {
  return test_name(::testing::TestParamInfo<std::tuple<std::string, bool>>({info.param, false}, 0));
});

// Attention never writes its scores: one kernel, and no scratch between kernels.
TEST(DeviceSchedules, ScoresStayInTheKernel) {
  const std::set<std::string> one_kernel = {"attention", "attention_alibi", "attention_causal", "attention_document", "attention_prefix",
                                            "attention_soft_cap", "attention_window"};
  for (const std::string& name : one_kernel) {
    SCOPED_TRACE(name);
    const auto example = testing_support::read_example(source + "/examples", name);
    ASSERT_TRUE(example.ok()) << base::render(example.error());
    const auto compiled = compile(testing_support::with_columns_bound(example->graph, example->sizes), small_tiles(true));
    ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
    EXPECT_EQ(compiled->program.kernels.size(), 1u) << compiled->schedule;
    for (const tile::Buffer& b : compiled->program.buffers) EXPECT_NE(b.space, tile::Space::Scratch) << b.name;
  }
}

// Tiles that a schedule states are taken as they are.
TEST(DeviceSchedules, StatedTiles) {
  for (const auto& [name, tiles, extents] : {std::tuple<std::string, std::string, std::vector<view::Form>>{"matmul", "rows=64 columns=8 depth=4", {64, 8}},
                                             {"attention_grouped", "rows=8 stream=64", {8, 64}}}) {
    SCOPED_TRACE(name);
    const auto example = testing_support::read_example(goldens, name);
    ASSERT_TRUE(example.ok()) << base::render(example.error());
    const auto usual = compile(example->graph, small_tiles(false));
    ASSERT_TRUE(usual.ok()) << base::render(usual.error());
    driver::CompileOptions options;
    options.target = small_tiles(false);
    options.schedule = usual->schedule;
    const size_t comment = options.schedule->find("  #");
    ASSERT_NE(comment, std::string::npos);
    options.schedule->insert(comment, " tile " + tiles);
    const auto compiled = driver::compile(example->graph, options);
    ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
    EXPECT_TRUE(std::any_of(compiled->program.buffers.begin(), compiled->program.buffers.end(), [&](const tile::Buffer& b) {
      return b.space == tile::Space::Fragment && b.extents == extents;
    })) << tile::print(compiled->program);
    compare(*compiled, example->sizes, example->inputs, example->expected, [&](const std::string&) { return example->bound; });
  }
}

// Without a bound on its columns it takes two kernels, and the log says why.
TEST(DeviceSchedules, UnknownColumnsAreDeclinedAloud) {
  const auto example = testing_support::read_example(source + "/examples", "attention");
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  const auto compiled = compile(example->graph, small_tiles(false));
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  EXPECT_GT(compiled->program.kernels.size(), 1u);
  const bool said = std::any_of(compiled->decisions.begin(), compiled->decisions.end(), [](const rewrite::Decision& d) {
    return !d.applied && d.pass == "device" && d.sentence.find("have no known bound") != std::string::npos;
  });
  EXPECT_TRUE(said);
}

// Kernels stay within what a device binds.
TEST(DeviceSchedules, FewBuffersAKernel) {
  const auto example = testing_support::read_example(source + "/examples", "transformer_block");
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  tile::Target target = small_tiles(false);
  const auto most = [&](const Compiled& c) {
    size_t out = 0;
    emit::device::DeviceOptions options;
    options.max_buffers = 64;
    const auto text = emit::device::emit_device(c.program, options);
    EXPECT_TRUE(text.ok()) << base::render(text.error());
    if (text.ok()) for (const auto& k : text->kernels) out = std::max(out, k.buffers.size());
    return out;
  };
  for (int limit : {8, 5}) {
    target.max_buffers = limit;
    const auto compiled = compile(example->graph, target);
    ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
    EXPECT_LE(most(*compiled), size_t(limit)) << compiled->schedule;
  }
}

}  // namespace
}  // namespace lemma
