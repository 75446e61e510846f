// What the passes of thread form leave out, the emulator finds: each barrier, wait and version of a product and of
// attention in turn.
#include <gtest/gtest.h>

#include <cmath>

#include "emulator/module.h"
#include "emulator/testing.h"
#include "lemma/emit/device/device.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/parse.h"
#include "lemma/tile/passes/thread_form.h"

namespace lemma::emulator {
namespace {

const char* const kProduct = R"(
program product {
  input a bf16[64, 80]
  input b bf16[80, 64]
  output c f32[64, 64]
  kernel main grid (x < 2, y < 2) threads 64 {
    shared as bf16[32, 16], bs bf16[16, 32]
    fragment acc f32[32, 32] = 0
    for k in 0 .. 5 pipelined 3 {
      copy a[y*32 +: 32, k*16 +: 16] -> as fill 0
      copy b[k*16 +: 16, x*32 +: 32] -> bs fill 0
      gemm acc += as * bs
    }
    copy acc -> c[y*32 +: 32, x*32 +: 32]
  }
}
)";

tile::Program formed() {
  auto parsed = tile::parse(kProduct, "test");
  EXPECT_TRUE(parsed.ok()) << base::render(parsed.error());
  std::vector<std::string> notes;
  return tile::thread_form(*std::move(parsed), {{64, true}, 48 << 10}, notes);
}

// The first finding's kind, or what is wrong with the values, or nothing.
std::string trouble(const tile::Program& program) {
  emit::device::DeviceOptions options;
  options.dialect = emit::device::DialectId::Cuda;
  options.matrix_units = true;
  options.shared_bytes = 48 << 10;
  const auto text = emit::device::emit_device(program, options);
  EXPECT_TRUE(text.ok()) << base::render(text.error());
  runtime::Cache cache{runtime::CacheOptions{}};
  const auto compiler = runtime::find_compiler({}, cache);
  EXPECT_TRUE(compiler.ok());
  const auto module = Module::load(text->source, *compiler, cache);
  EXPECT_TRUE(module.ok()) << base::render(module.error());
  std::vector<uint16_t> a(64 * 80), b(80 * 64);
  std::vector<float> c(64 * 64, NAN), af(a.size()), bf(b.size());
  const auto fill = [](std::vector<uint16_t>& bits, std::vector<float>& values, int modulus) {
    for (size_t i = 0; i < bits.size(); ++i) {
      values[i] = float(int(i * 7 % size_t(modulus)) - modulus / 2);
      bits[i] = uint16_t(std::bit_cast<uint32_t>(values[i]) >> 16);
    }
  };
  fill(a, af, 13);
  fill(b, bf, 11);
  Launch launch;
  launch.kernel = text->kernels[0].name;
  launch.blocks[0] = 2;  // each takes two blocks of the grid
  launch.threads = text->kernels[0].threads;
  launch.dynamic_shared = text->kernels[0].shared_bytes;
  launch.options.order = Order::Random;
  launch.buffers = {{"a", a.data(), int64_t(a.size() * 2), true}, {"b", b.data(), int64_t(b.size() * 2), true}, {"c", c.data(), int64_t(c.size() * 4), false}};
  const auto report = module->run(launch);
  EXPECT_TRUE(report.ok()) << base::render(report.error());
  if (!report.ok()) return "";
  if (!report->findings.empty()) return name(report->findings[0].fault);
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 64; ++j) {
      float sum = 0;
      for (int k = 0; k < 80; ++k) sum += af[size_t(i * 80 + k)] * bf[size_t(k * 64 + j)];
      if (!(c[size_t(i * 64 + j)] == sum)) return "wrong values";
    }
  }
  return "";
}

// The program without its n-th statement of a kind; nothing if there are fewer.
template <class S>
std::optional<tile::Program> without(tile::Program program, int n) {
  bool found = false;
  program.kernels[0].body = tile::edit(std::move(program.kernels[0].body), [&](tile::Stmt s) {
    if (!std::holds_alternative<S>(s) || n-- != 0) return tile::Block{std::move(s)};
    found = true;
    return tile::Block{};
  });
  if (!found) return std::nullopt;
  return program;
}

TEST(ThreadFormFaults, TheProgramIsRight) { EXPECT_EQ(trouble(formed()), ""); }

TEST(ThreadFormFaults, EveryBarrierIsNeeded) {
  int n = 0;
  while (const auto planted = without<tile::Barrier>(formed(), n)) {
    const std::string found = trouble(*planted);
    EXPECT_TRUE(found == "race" || found == "copy in flight" || found == "uninitialised") << "barrier " << n << ": " << found;
    ++n;
  }
  EXPECT_GE(n, 2);
}

TEST(ThreadFormFaults, TheWaitIsNeeded) {
  const auto planted = without<tile::Wait>(formed(), 0);
  ASSERT_TRUE(planted);
  EXPECT_NE(trouble(*planted), "");
  tile::Program late = formed();
  late.kernels[0].body = tile::edit(std::move(late.kernels[0].body), [](tile::Stmt s) {
    if (auto* wait = std::get_if<tile::Wait>(&s)) ++wait->pending;
    return tile::Block{std::move(s)};
  });
  EXPECT_NE(trouble(late), "") << "a wait for one group fewer";
}

TEST(ThreadFormFaults, AnotherStagesBufferIsFound) {
  tile::Program planted = formed();
  planted.kernels[0].body = tile::edit(std::move(planted.kernels[0].body), [](tile::Stmt s) {
    if (auto* gemm = std::get_if<tile::Gemm>(&s)) gemm->a.coords[0] = view::Form::mod(gemm->a.coords[0] + view::Form(1), view::Form(3));
    return tile::Block{std::move(s)};
  });
  EXPECT_NE(trouble(planted), "");
}

// Nobody but the layout says where elements are: with another one the product is carried out element by element.
TEST(ThreadFormFaults, ALayoutThatIsNoUnitsIsFollowed) {
  tile::Program planted = formed();
  for (tile::Buffer& b : planted.buffers) {
    if (!b.hints.placed || b.space != tile::Space::Fragment) continue;
    auto& lanes = (*b.hints.placed)[layout::Axis::Lane];
    std::swap(lanes[2], lanes[3]);  // rows of the fragment
  }
  EXPECT_EQ(trouble(planted), "");
}

}  // namespace
}  // namespace lemma::emulator
