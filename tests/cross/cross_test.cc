// The emitted C on other architectures: compiled by a cross compiler, run under QEMU's user mode, compared with the
// oracle. Skipped, loudly, where the cross compiler or QEMU is not installed.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "lemma/driver/execute.h"
#include "lemma/runtime/host.h"
#include "lemma/runtime/random.h"
#include "tests/support/programs.h"

namespace lemma {
namespace {

using testing_support::NamedValues;

struct Architecture {
  std::string name, compiler, emulator, target;
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = {
      {"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64-static", "neon"},
      {"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64-static", "generic"},
  };
  return table;
}

struct Sample {
  std::string name, text;
  std::vector<tensor::Binding> sizes;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> table = {
      {"product",
       "dim M, N, K\ninput a[M, K], b[K, N], c[N]\nz[m, n] = sum(k) a[m, k] * b[k, n]\n"
       "y[m, n] = gelu(z[m, n] + c[n])\noutput y\n",
       {{"M", 33}, {"N", 70}, {"K", 41}}},
      {"weighted_mean",
       "dim N, D\ninput q[N, D], k[N, D], v[N, D]\ns[i, j] = sum(d) q[i, d] * k[j, d] / sqrt(D)\n"
       "p[i, j] = softmax(j : j <= i) s[i, j]\no[i, c] = sum(j) p[i, j] * v[j, c]\noutput o\n",
       {{"N", 70}, {"D", 24}}},
      {"rows",
       "dim N, M\ninput x[N, M], w[M]\nm[i] = mean(j) x[i, j]\nt[i] = mean(j) (x[i, j] * x[i, j])\n"
       "y[i, j] = (x[i, j] - m[i]) * rsqrt(t[i] + 1e-5) * w[j]\noutput y\n",
       {{"N", 5}, {"M", 301}}},
      {"windows",
       "dim H, C, O\ninput x[H, H, C], w[3, 3, C, O]\n"
       "y[i < H, j < H, o] = sum(r, s, c) x[i + r - 1, j + s - 1, c]? * w[r, s, c, o]\noutput y\n",
       {{"H", 9}, {"C", 5}, {"O", 7}}},
      {"functions",
       "dim N\ninput x[N]\na[i] = exp(x[i]) + log(abs(x[i]) + 0.5)\nb[i] = sin(x[i]) * cos(x[i]) + tanh(x[i])\n"
       "c[i] = erf(x[i]) + sigmoid(x[i])\noutput a, b, c\n",
       {{"N", 77}}},
      {"narrow",
       "dim N\ninput x[N], y[N] : bf16\nz[i] = x[i] * y[i] + 1\noutput z : f16\n",
       {{"N", 77}}},
      {"integers",
       "dim N, M\ninput a[N, M], b[M] : i8\nc[i] = sum(j) i32(a[i, j]) * i32(b[j])\nd[i] = argmax(j) a[i, j]\noutput c, d\n",
       {{"N", 7}, {"M", 101}}},
      {"running",
       "dim N, T\ninput x[N, T]\na[i, t] = scan sum(t) x[i, t]\nb[i, t] = scan sum(t, exclusive, reverse) x[i, t]\noutput a, b\n",
       {{"N", 3}, {"T", 100}}},
  };
  return table;
}

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// Reads every buffer from <folder>/<number>, calls, writes every buffer back.
const char* harness = R"(
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int32_t lemma_run(const int64_t*, void* const*, void*, int32_t);
int64_t lemma_workspace(const int64_t*, int32_t);
static void* aligned(int64_t bytes) { void* p = 0; if (posix_memalign(&p, 64, (size_t)bytes + 64)) exit(9); return p; }
int main(int argc, char** argv) {
  (void)argc;
  char path[4096];
  for (int i = 0; i < buffer_count; ++i) {
    buffers[i] = aligned(buffer_bytes[i]);
    snprintf(path, sizeof path, "%s/%d", argv[1], i);
    FILE* f = fopen(path, "rb");
    if (!f || (int64_t)fread(buffers[i], 1, (size_t)buffer_bytes[i], f) != buffer_bytes[i]) return 8;
    fclose(f);
  }
  int32_t failure = lemma_run(sizes, buffers, aligned(lemma_workspace(sizes, 1)), 1);
  if (failure) return 7;
  for (int i = 0; i < buffer_count; ++i) {
    snprintf(path, sizeof path, "%s/%d", argv[1], i);
    FILE* f = fopen(path, "wb");
    if (!f || (int64_t)fwrite(buffers[i], 1, (size_t)buffer_bytes[i], f) != buffer_bytes[i]) return 6;
    fclose(f);
  }
  return 0;
}
)";

std::string harness_text(const driver::Call& call) {
  std::string text = "#include <stdint.h>\nstatic const int64_t sizes[] = {";
  for (int64_t size : call.program_sizes) text += std::to_string(size) + ", ";
  text += "0};\nstatic const int64_t buffer_bytes[] = {";
  for (const runtime::Array& array : call.arrays) text += std::to_string(array.bytes()) + ", ";
  text += "0};\nenum { buffer_count = " + std::to_string(call.arrays.size()) + " };\n";
  text += "static void* buffers[" + std::to_string(call.arrays.size() + 1) + "];\n";
  return text + harness;
}

class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "lemma-cross-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes) {
  NamedValues inputs = testing_support::declared_inputs(graph, sizes);
  for (auto& [name, values] : inputs) {
    const uint64_t seed = runtime::seed_of(1, name);
    int64_t count = 1;
    for (int64_t extent : values.extents) count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      values.data.push_back(scalar::is_float(values.type) ? runtime::uniform(seed, uint64_t(i))
                                                          : double(runtime::integer(seed, 256, uint64_t(i))) - 128);
    }
  }
  return inputs;
}

void run_sample(const Architecture& architecture, const Sample& sample) {
  SCOPED_TRACE(sample.name);
  auto graph = testing_support::read_program(sample.text, sample.name);
  ASSERT_TRUE(graph.ok()) << base::render(graph.error());
  const NamedValues inputs = random_inputs(*graph, sample.sizes);
  auto expected = testing_support::evaluate(*graph, sample.sizes, inputs);
  ASSERT_TRUE(expected.ok()) << base::render(expected.error());

  driver::CompileOptions options;
  auto target = runtime::named_target(architecture.target);
  ASSERT_TRUE(target.ok());
  options.target = *target;
  auto compiled = driver::compile(*graph, options);
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  driver::Arguments arguments;
  arguments.sizes = sample.sizes;
  for (const auto& [name, values] : inputs) {
    auto array = testing_support::guarded_array(values);
    ASSERT_TRUE(array.ok());
    arguments.inputs.push_back({name, *array});
  }
  auto call = driver::prepare(*compiled, arguments);
  ASSERT_TRUE(call.ok()) << base::render(call.error());

  const Folder folder;
  std::ofstream(folder.path + "/kernel.c") << compiled->c_source;
  std::ofstream(folder.path + "/main.c") << harness_text(*call);
  for (size_t i = 0; i < call->arrays.size(); ++i) {
    const runtime::Array& array = call->arrays[i];
    std::ofstream(folder.path + "/" + std::to_string(i), std::ios::binary)
        .write(reinterpret_cast<const char*>(array.data()), array.bytes());
  }
  const std::string build = architecture.compiler + " -std=gnu99 -O2 -fno-math-errno -fno-trapping-math " +
                            options.target.compiler_flags + " -static " + folder.path + "/kernel.c " + folder.path +
                            "/main.c -o " + folder.path + "/program -lm 2> " + folder.path + "/log";
  ASSERT_EQ(std::system(build.c_str()), 0) << *testing_support::read_text(folder.path + "/log");
  ASSERT_EQ(std::system((architecture.emulator + " " + folder.path + "/program " + folder.path).c_str()), 0);
  for (size_t i = 0; i < call->arrays.size(); ++i) {
    const runtime::Array& array = call->arrays[i];
    std::ifstream(folder.path + "/" + std::to_string(i), std::ios::binary)
        .read(reinterpret_cast<char*>(array.data()), array.bytes());
  }
  for (const runtime::Named& named : call->outputs) {
    EXPECT_EQ(testing_support::difference(expected->at(named.name), testing_support::values_of(named.array), -1), "")
        << named.name;
  }
}

class Cross : public ::testing::TestWithParam<Architecture> {};

TEST_P(Cross, GivesWhatTheOracleGives) {
  const Architecture& architecture = GetParam();
  if (!installed(architecture.compiler) || !installed(architecture.emulator)) {
    GTEST_SKIP() << architecture.compiler << " or " << architecture.emulator << " is not installed";
  }
  for (const Sample& sample : samples()) run_sample(architecture, sample);
}

INSTANTIATE_TEST_SUITE_P(All, Cross, ::testing::ValuesIn(architectures()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lemma
