// The library form: its header and source are plain C99 for this machine, aarch64 and riscv64, and give right values.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lemma/emit/testing.h"

namespace lemma::emit {
namespace {

using namespace testing;
using scalar::DType;
using scalar::Kind;
using tile::Space;
using view::Form;

Builder row_scale() {
  Builder b;
  b.program.name = "row scale";
  const int N = b.size("N"), M = b.size("int"), i = b.var("i"), j = b.var("for"), k = b.var("k");
  const int x = b.buffer("a__b", Space::Input, DType::F32, {s(M), s(N)});
  const int w = b.buffer("a_b", Space::Input, DType::F32, {s(M)});
  const int y = b.buffer("restrict", Space::Output, DType::F32, {s(M), s(N)});
  const int t = b.buffer("total", Space::Scratch, DType::F32, {s(M)});
  tile::Reduce r;
  r.points = {{i, s(M)}};
  r.reduces = {{k, s(N)}};
  r.reads = {{x, {f(i), f(k)}, {}}};
  r.body = {scalar::arg(b.arena(), Kind::F32, 0)};
  r.monoid = sum(Kind::F32);
  r.states = {{t, {f(i)}, {}}};
  b.kernel("totals").body.push_back({r});
  tile::Map map;
  map.points = {{i, s(M)}, {j, s(N)}};
  map.reads = {{x, {f(i), f(j)}, {}}, {w, {f(i)}, {}}, {t, {f(i)}, {}}};
  const auto arg = [&](int a) { return scalar::arg(b.arena(), Kind::F32, a); };
  map.stores = {{{y, {f(i), f(j)}, {}}, scalar::exp(arg(0)) * arg(1) + arg(2), {}, std::nullopt}};
  b.kernel("scale").body.push_back({map});
  tile::Assert positive;
  positive.condition = view::Formula::non_negative(s(N) - Form(1));
  positive.message = "N must be at least 1, \"found\" 0";
  b.program.requirements = {positive};
  return b;
}

const char* kMain = R"c(
#include "row_scale.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  enum { M = 3, N = 21 };
  static float x[M * N], w[M], y[M * N];
  static double space[1 << 12];
  if (row_scale_workspace(N, M, 1) > (int64_t)sizeof space) return 3;
  for (int i = 0; i < M * N; ++i) x[i] = (float)(i % 7) * 0.25f - 1;
  for (int i = 0; i < M; ++i) w[i] = (float)i + 1;
  if (row_scale(N, M, x, w, y, (void*)(((uintptr_t)space + 63) / 64 * 64), 1) != 0) return 1;
  for (int i = 0; i < M; ++i) {
    double t = 0;
    for (int j = 0; j < N; ++j) t += x[i * N + j];
    for (int j = 0; j < N; ++j) if (!(fabs(y[i * N + j] - (exp(x[i * N + j]) * w[i] + t)) < 1e-5)) return 2;
  }
  if (row_scale(0, M, x, w, y, space, 1) != 1) return 4;
  return row_scale_message(1) ? 0 : 5;
}
)c";

TEST(Library, CompilesAsPlainC99AndRuns) {
  const Builder b = row_scale();
  COptions options;
  options.target.vector_bytes = 16;
  auto library = emit_library(b.program, options, {});
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ(library->name, "row_scale");
  char folder[] = "/tmp/lemma_library_XXXXXX";
  ASSERT_TRUE(mkdtemp(folder));
  const std::string at = std::string(folder) + "/";
  std::ofstream(at + "row_scale.h") << library->header;
  std::ofstream(at + "row_scale.c") << library->source;
  std::ofstream(at + "main.c") << kMain;
  std::ofstream(at + "twice.cc") << "#include \"row_scale.h\"\n#include \"row_scale.h\"\nint main() { return row_scale_message(0) != nullptr; }\n";
  struct Machine { const char* compiler; const char* run; };
  const Machine machines[] = {{"gcc", ""}, {"clang", ""}, {"gcc -DLEMMA_SCALAR", ""}, {"gcc -fopenmp", ""},
                              {"aarch64-linux-gnu-gcc -static", "qemu-aarch64-static "}, {"riscv64-linux-gnu-gcc -static", "qemu-riscv64-static "}};
  for (const Machine& m : machines) {
    // A machine without this compiler, its C library or its emulator has nothing to say.
    const std::string probe = "echo '#include <stdint.h>\nint main(void) { return 0; }' > " + at + "probe.c && " + m.compiler + " " + at +
                              "probe.c -o " + at + "probe 2> /dev/null && " + m.run + at + "probe";
    if (std::system(("(" + probe + ") > /dev/null 2>&1").c_str()) != 0) continue;
    std::printf("checked with %s\n", m.compiler);
    const std::string command = std::string(m.compiler) + " -std=c99 -O2 -Wall -Wextra -pedantic -Werror -Wno-psabi " + at + "main.c " + at +
                                "row_scale.c -o " + at + "main -lm && " + m.run + at + "main";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  EXPECT_EQ(std::system(("g++ -std=c++11 -Wall -Wextra -pedantic -Werror -c " + at + "twice.cc -o " + at + "twice.o").c_str()), 0);
  std::system(("rm -r " + at).c_str());
}

}  // namespace
}  // namespace lemma::emit
