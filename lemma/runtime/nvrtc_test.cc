#include "lemma/runtime/nvrtc.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lemma/runtime/device_testing.h"
#include "lemma/runtime/device_testing_options.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

using device_testing::found_tools;

// sm_90a alone has this instruction.
const char* kHopper = R"(
extern "C" __global__ void k(float* x) {
  asm volatile("wgmma.fence.sync.aligned;");
  x[threadIdx.x] = 1;
}
)";

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const auto version = nvrtc_version(place);
    if (!version) GTEST_SKIP() << "NOT TESTED: " << version.error().message << "; " << version.error().suggestion;
  }
  std::string place = found_tools().nvrtc;
};

TEST_F(Nvrtc, CompilesForArchitecturesWithoutAGpu) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto object = compile_cuda(device_testing::kCuda, arch, {}, place);
    ASSERT_TRUE(object.ok()) << base::render(object.error());
    ASSERT_GT(object->cubin.size(), 1000u);
    EXPECT_EQ(std::memcmp(object->cubin.data(), "\177ELF", 4), 0);
    const std::string text(reinterpret_cast<const char*>(object->cubin.data()), object->cubin.size());
    for (const char* name : {"add", "transpose", "affine", "spin"}) {
      EXPECT_NE(text.find(std::string(".text.") + name), std::string::npos) << arch << " " << name;
    }
  }
}

TEST_F(Nvrtc, TheArchitectureDecides) {
  EXPECT_TRUE(compile_cuda(kHopper, "sm_90a", {}, place).ok());
  const auto refused = compile_cuda(kHopper, "sm_80", {}, place);
  ASSERT_FALSE(refused.ok());
  ASSERT_EQ(refused.error().notes.size(), 1u) << base::render(refused.error());
  EXPECT_NE(refused.error().notes[0].message.find("wgmma"), std::string::npos) << refused.error().notes[0].message;
}

TEST_F(Nvrtc, RefusalsCarryItsWordsAndTheLine) {
  const auto refused = compile_cuda(device_testing::broken(Api::Cuda).texts[0], "sm_80", {}, place);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().failure, base::Failure::Invalid);
  EXPECT_EQ(refused.error().message, "NVRTC refused the kernels' text");
  ASSERT_EQ(refused.error().notes.size(), 1u);
  EXPECT_NE(refused.error().notes[0].message.find("kernels.cu(3)"), std::string::npos)
      << refused.error().notes[0].message;
  EXPECT_NE(refused.error().notes[0].message.find("missing_name"), std::string::npos);
}

TEST_F(Nvrtc, FlagsReachIt) {
  const char* source = "#ifndef WANTED\n#error not wanted\n#endif\nextern \"C\" __global__ void k() {}\n";
  EXPECT_FALSE(compile_cuda(source, "sm_80", {}, place).ok());
  const std::vector<std::string> flags = {"-DWANTED"};
  EXPECT_TRUE(compile_cuda(source, "sm_80", flags, place).ok());
  const std::vector<std::string> unknown = {"--no-such-flag"};
  EXPECT_FALSE(compile_cuda(source, "sm_80", unknown, place).ok());
  EXPECT_FALSE(compile_cuda(source, "sm_1", {}, place).ok());
}

TEST(NvrtcPlace, AbsenceSaysWhereItLooked) {
  const TemporaryDirectory folder;
  const auto none = nvrtc_version(folder.path());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "there is no libnvrtc in '" + folder.path() + "'");
  EXPECT_NE(none.error().suggestion.find("LEMMA_NVRTC"), std::string::npos);
}

}  // namespace
}  // namespace lemma::runtime
