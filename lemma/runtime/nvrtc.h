// CUDA's run-time compiler, loaded when it is needed. It needs neither a GPU nor a toolkit.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::runtime {

// Options of every compilation, besides the architecture.
inline constexpr const char* kCudaOptions[] = {"--std=c++20", "-default-device"};

struct CudaObject {
  std::vector<std::byte> cubin;
  std::string log;  // warnings, and what --ptxas-options=-v says
};

// `place` is libnvrtc or the folder where it is; empty: the loader's path and the toolkit's usual folder.
// `arch` is sm_80, sm_90a, ...; CUDA C++ 20 without headers. If NVRTC refuses, the Diagnostic's note holds its words.
base::Result<CudaObject> compile_cuda(const std::string& source, const std::string& arch,
                                      std::span<const std::string> flags = {}, const std::string& place = {});

// "NVRTC 13.0", or why there is none.
base::Result<std::string> nvrtc_version(const std::string& place = {});

}  // namespace lemma::runtime
