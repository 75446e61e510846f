#include "lemma/driver/execute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "lemma/runtime/host.h"
#include "lemma/tensor/builder.h"

namespace lemma::driver {
namespace {

using runtime::Array;
using view::Form;

// z[i] = x[i] + 1 over N elements, as a graph with a program and C text written by hand.
struct Fixture {
  Compiled compiled;
  explicit Fixture(bool strided, bool update = false) {
    tensor::Builder b;
    const Form n = b.size("N");
    const tensor::Value x = b.input("x", {n});
    tensor::Draft d = b.draft("z");
    const Form i = d.point("i", n);
    b.output("z", d.map({d.read(x, {i}) + b.f32(1)}));
    tensor::Graph graph = b.finish();
    std::get<tensor::Input>(graph.nodes[0]).strided = strided;
    if (update) graph.outputs[0].updates = tensor::Tensor{0};
    tile::Program& program = compiled.program;
    program.sizes = {{"N", {}}, {"threads", {}}};
    tile::Buffer in{"x", scalar::DType::F32, update ? tile::Space::Update : tile::Space::Input, {Form::size(0)}, {}, {}};
    if (strided) {
      program.sizes.push_back({"x.stride.0", {}});
      in.strides = {Form::size(2)};
    }
    program.buffers.push_back(in);
    if (!update) program.buffers.push_back({"z", scalar::DType::F32, tile::Space::Output, {Form::size(0)}, {}, {}});
    compiled.source = graph;
    compiled.derived = std::move(graph);
    const std::string step = strided ? "sizes[1]" : "1", target = update ? "0" : "1";
    compiled.c_source =
        "#include <stdint.h>\nint32_t lemma_run(const int64_t* sizes, void* const* b, void* w, int32_t t) {\n"
        "  (void)w; (void)t; const float* x = b[0]; float* z = b[" + target + "];\n"
        "  for (int64_t i = 0; i < sizes[0]; ++i) if (i != 5) z[i] = x[i * " + step + "] + 1;\n  return 0;\n}\n"
        "int64_t lemma_workspace(const int64_t* s, int32_t t) { (void)s; (void)t; return 0; }\n"
        "const char* lemma_message(int32_t c) { (void)c; return 0; }\n";
  }
  runtime::Module module() const {
    runtime::Cache none{runtime::CacheOptions{"", std::filesystem::temp_directory_path().string()}};
    const runtime::CompilerOptions options;
    auto module = runtime::build_module(compiled.c_source, *runtime::find_compiler(options, none),
                                        runtime::host_target(), options, none);
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : base::render(module.error()));
    return *std::move(module);
  }
};

Array counting(int64_t n) {
  Array array = *runtime::allocate(scalar::DType::F32, {n});
  for (int64_t i = 0; i < n; ++i) runtime::set_float(array, i, double(i));
  return array;
}

TEST(Execute, RunsAndShowsWhatIsNotWritten) {
  const Fixture f(false);
  const auto outputs = execute(f.compiled, f.module(), {{{"x", counting(8)}}, {}}, 1);
  ASSERT_TRUE(outputs.ok()) << base::render(outputs.error());
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].name, "z");
  EXPECT_EQ(runtime::float_at((*outputs)[0].array, 7), 8);
  EXPECT_TRUE(std::isnan(runtime::float_at((*outputs)[0].array, 5)));  // element 5 is not written
}

TEST(Execute, ViewsBecomeContiguousUnlessStridesArePassed) {
  const Array a = counting(10);
  const Array odd = *runtime::view(a, 9, {5}, {-2});  // 9 7 5 3 1
  for (const bool strided : {false, true}) {
    const Fixture f(strided);
    Call call = *prepare(f.compiled, {{{"x", odd}}, {}});
    EXPECT_EQ(call.program_sizes, strided ? (std::vector<int64_t>{5, -2}) : std::vector<int64_t>{5});
    EXPECT_EQ(call.buffers[0] == odd.data(), strided);
    runtime::Workspace workspace;
    ASSERT_TRUE(launch(f.module(), call, workspace, 1).ok());
    EXPECT_EQ(runtime::float_at(call.outputs[0].array, 1), 8);
  }
}

TEST(Execute, UpdatesWorkOnACopy) {
  const Fixture f(false, true);
  const Array x = counting(4);
  const auto outputs = execute(f.compiled, f.module(), {{{"x", x}}, {}}, 1);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(runtime::float_at((*outputs)[0].array, 3), 4);
  EXPECT_EQ(runtime::float_at(x, 3), 3);
}

TEST(Execute, HugeSizesAreRefusedWithTheirBytes) {
  tensor::Builder b;
  const Form n = b.size("N");
  tensor::Draft d = b.draft("z");
  d.point("i", n);
  b.output("z", d.map({b.f32(1)}));
  Compiled compiled;
  compiled.source = compiled.derived = b.finish();
  compiled.program.sizes = {{"N", {}}};
  compiled.program.buffers = {{"z", scalar::DType::F32, tile::Space::Output, {Form::size(0)}, {}, {}}};
  const auto refused = prepare(compiled, {{}, {{"N", int64_t(1) << 50}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.starts_with(
      "output 'z' of type f32[1125899906842624] needs 4503599627370496 bytes, and the machine has "))
      << refused.error().message;
  EXPECT_FALSE(prepare(compiled, {{}, {{"N", int64_t(1) << 62}}}).ok());
}

TEST(Execute, MissingInputsAreNamed) {
  const Fixture f(false);
  EXPECT_EQ(prepare(f.compiled, {{}, {{"N", 3}}}).error().message, "input 'x' is not given");
}

}  // namespace
}  // namespace lemma::driver
