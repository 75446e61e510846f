// Stands for glsl.cc where glslang is not installed.
#include "lemma/runtime/glsl.h"

namespace lemma::runtime {

std::string glsl_compiler() { return {}; }

base::Result<std::vector<std::byte>> compile_glsl(const std::string&) {
  return base::system_failure("this Lemma was built without glslang, which compiles GLSL",
                              "install glslang-dev and spirv-tools, and build again");
}

}  // namespace lemma::runtime
