// What is found and what is missing, without running anything.
#include <gtest/gtest.h>

#include "lemma/runtime/device.h"
#include "lemma/runtime/device_testing_options.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

TEST(DeviceList, SpeaksOfEveryInterface) {
  const DeviceList list = list_devices(device_testing::found_tools());
  for (const Api api : kApis) {
    int found = 0, missing = 0;
    for (const DeviceInfo& info : list.devices) {
      if (info.api != api) continue;
      EXPECT_EQ(info.index, found++);
      EXPECT_FALSE(info.name.empty());
      EXPECT_GE(info.max_threads, 64);
      EXPECT_GE(info.shared_bytes, 16 << 10);
      EXPECT_GE(info.max_bindings, 3);
      EXPECT_GE(info.max_scalars, 8);
      EXPECT_EQ(info.compute_capability > 0, api == Api::Cuda);
    }
    for (const Missing& reason : list.missing) {
      if (reason.api != api) continue;
      ++missing;
      EXPECT_FALSE(reason.reason.empty());
      EXPECT_FALSE(reason.mend.empty());
    }
    EXPECT_EQ(missing, found == 0 ? 1 : 0) << api_name(api);
  }
}

TEST(DeviceList, PlacesThatHoldNothingAreNamed) {
  const TemporaryDirectory folder;
  DeviceOptions options;
  options.webgpu = folder.path();
  for (const Missing& missing : list_devices(options).missing) {
    if (missing.api != Api::WebGpu) continue;
    EXPECT_EQ(missing.reason, "there is no libwebgpu_wrapper.so in '" + folder.path() + "'");
  }
  DeviceInfo info;
  info.api = Api::WebGpu;
  EXPECT_FALSE(Device::open(info, options).ok());
  info.index = 99;
  for (const Api api : kApis) {
    info.api = api;
    EXPECT_FALSE(Device::open(info, device_testing::found_tools()).ok());
  }
}

}  // namespace
}  // namespace lemma::runtime
