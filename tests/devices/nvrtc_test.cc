// The devices' own compiler takes the CUDA text of every example, written as maths and as tiles, for sm_80 and for sm_90a.
// No GPU is needed; without NVRTC the tests are skipped by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "lemma/driver/tile_program.h"
#include "lemma/runtime/nvrtc.h"
#include "lemma/tile/parse.h"
#include "tests/support/devices.h"
#include "tests/support/examples.h"

namespace lemma {
namespace {

const std::string examples = std::string(LEMMA_SOURCE_DIR) + "/examples", tiles = examples + "/tile";

std::vector<std::string> tile_names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(tiles)) {
    if (entry.path().extension() == ".tile") out.push_back(entry.path().stem());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Nvrtc : public ::testing::TestWithParam<std::string> {
 protected:
  void takes(const base::Result<driver::OnDevice>& program) {
    if (!program.ok() && program.error().failure == base::Failure::Unsupported) GTEST_SKIP() << "NOT TESTED: " << program.error().message;
    ASSERT_TRUE(program.ok()) << base::render(program.error());
    const std::string place = testing_support::device_options().nvrtc;
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const auto object = runtime::compile_cuda(program->text.preamble + program->text.source, arch, {}, place);
      EXPECT_TRUE(object.ok()) << arch << ": " << base::render(object.error());
    }
  }
  void SetUp() override {
    const auto version = runtime::nvrtc_version(testing_support::device_options().nvrtc);
    if (!version.ok()) GTEST_SKIP() << "NOT TESTED: NVRTC is not here: " << version.error().message;
  }
  const emit::device::DeviceOptions how_ = driver::text_options(emit::device::DialectId::Cuda);
};

class OfMaths : public Nvrtc {};
TEST_P(OfMaths, IsTaken) {
  const auto example = testing_support::read_example(examples, GetParam());
  ASSERT_TRUE(example.ok()) << base::render(example.error());
  takes(driver::compile_for_device(testing_support::with_columns_bound(example->graph, example->sizes), {}, how_));
}
INSTANTIATE_TEST_SUITE_P(All, OfMaths, ::testing::ValuesIn(testing_support::example_names(examples)), [](const auto& i) { return i.param; });

class OfTiles : public Nvrtc {};
TEST_P(OfTiles, IsTaken) {
  const auto text = testing_support::read_text(tiles + "/" + GetParam() + ".tile");
  ASSERT_TRUE(text.ok());
  auto program = tile::parse(*text, GetParam() + ".tile");
  ASSERT_TRUE(program.ok()) << base::render(program.error());
  driver::CompileOptions options;
  options.target = driver::device_target(how_);
  auto compiled = driver::compile_tiles(*std::move(program), options);
  ASSERT_TRUE(compiled.ok()) << base::render(compiled.error());
  takes(driver::for_device(*std::move(compiled), how_));
}
INSTANTIATE_TEST_SUITE_P(All, OfTiles, ::testing::ValuesIn(tile_names()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace lemma
