// For tests: where the libraries are that ./run test puts into out/tools.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lemma/runtime/device.h"

namespace lemma::runtime::device_testing {

inline DeviceOptions found_tools() {
  const auto place = [](const char* variable, const char* folder) -> std::string {
    if (const char* given = std::getenv(variable)) return given;
    const std::string made = std::string(LEMMA_SOURCE_DIR) + "/out/tools/" + folder;
    return std::filesystem::exists(made) ? made : "";
  };
  DeviceOptions out;
  out.nvrtc = place("LEMMA_NVRTC", "nvrtc");
  out.webgpu = place("LEMMA_WEBGPU", "webgpu");
  return out;
}

}  // namespace lemma::runtime::device_testing
