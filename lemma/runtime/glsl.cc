#include "lemma/runtime/glsl.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <cstring>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {
namespace {

// glslang counts its users.
struct Process {
  Process() { glslang::InitializeProcess(); }
  ~Process() { glslang::FinalizeProcess(); }
};

}  // namespace

std::string glsl_compiler() {
  const glslang::Version version = glslang::GetVersion();
  return "glslang " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

base::Result<std::vector<std::byte>> compile_glsl(const std::string& text) {
  const Process process;
  glslang::TShader shader(EShLangCompute);
  const char* begin = text.data();
  const int size = int(text.size());
  const char* name = "kernel.comp";
  shader.setStringsWithLengthsAndNames(&begin, &size, &name, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 120);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  const auto rules = EShMessages(EShMsgSpvRules | EShMsgVulkanRules);
  if (!shader.parse(GetDefaultResources(), 450, false, rules)) return compiler_refusal("glslang", shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(rules)) return compiler_refusal("glslang", program.getInfoLog());
  std::vector<uint32_t> words;
  glslang::SpvOptions options;
  options.disableOptimizer = false;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  if (words.empty()) return compiler_refusal("glslang", "no code came out");
  std::vector<std::byte> out(words.size() * sizeof(uint32_t));
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

}  // namespace lemma::runtime
