// GLSL to SPIR-V, in process, by glslang where it was there when Lemma was built.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::runtime {

// "glslang 12.0.0", or empty where Lemma was built without it.
std::string glsl_compiler();

// A compute shader's text to SPIR-V for Vulkan 1.2.
base::Result<std::vector<std::byte>> compile_glsl(const std::string& text);

}  // namespace lemma::runtime
