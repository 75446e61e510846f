#include "lemma/runtime/nvrtc.h"

#include <filesystem>
#include <iterator>

#include "lemma/runtime/device_backend.h"

namespace lemma::runtime {

using base::Result;

namespace {

struct Program_;
using Program = Program_*;

struct Functions {
  int (*Version)(int*, int*);
  const char* (*GetErrorString)(int);
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*CompileProgram)(Program, int, const char* const*);
  int (*GetCUBINSize)(Program, size_t*);
  int (*GetCUBIN)(Program, char*);
  int (*GetProgramLogSize)(Program, size_t*);
  int (*GetProgramLog)(Program, char*);
  int (*DestroyProgram)(Program*);
};

Result<Functions> load(const std::string& place) {
  std::vector<std::string> names = library_names(place, "libnvrtc.so");
  if (place.empty()) {
    names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"};
  }
  auto library = DynamicLibrary::open(names);
  if (library && !place.empty()) {
    // NVRTC loads this one by its bare name, and some packages leave it to be found by luck; once loaded, it is found.
    const std::string folder = std::filesystem::path(library->path()).parent_path().string();
    (void)DynamicLibrary::open(library_names(folder.empty() ? "." : folder, "libnvrtc-builtins.so"));
  }
  if (!library) {
    return base::system_failure(
        place.empty() ? "libnvrtc is not found" : "there is no libnvrtc in '" + place + "'",
        "install nvidia-cuda-nvrtc from PyPI and set LEMMA_NVRTC to the folder of libnvrtc.so.*");
  }
  Functions out{};
  library->bind(out.Version, "nvrtcVersion");
  library->bind(out.GetErrorString, "nvrtcGetErrorString");
  library->bind(out.CreateProgram, "nvrtcCreateProgram");
  library->bind(out.CompileProgram, "nvrtcCompileProgram");
  library->bind(out.GetCUBINSize, "nvrtcGetCUBINSize");
  library->bind(out.GetCUBIN, "nvrtcGetCUBIN");
  library->bind(out.GetProgramLogSize, "nvrtcGetProgramLogSize");
  library->bind(out.GetProgramLog, "nvrtcGetProgramLog");
  library->bind(out.DestroyProgram, "nvrtcDestroyProgram");
  if (!library->lacking().empty()) return base::system_failure("'" + library->path() + "' lacks " + library->lacking());
  return out;
}

Result<void> check(const Functions& nvrtc, int code, const char* what) {
  if (code == 0) return {};
  return base::system_failure("NVRTC's " + std::string(what) + " gave " + nvrtc.GetErrorString(code));
}

std::string log_of(const Functions& nvrtc, Program program) {
  size_t size = 0;
  if (nvrtc.GetProgramLogSize(program, &size) != 0) return {};
  std::string out(size, '\0');
  if (nvrtc.GetProgramLog(program, out.data()) != 0) return {};
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}

}  // namespace

Result<std::string> nvrtc_version(const std::string& place) {
  LEMMA_TRY(const Functions nvrtc, load(place));
  int major = 0, minor = 0;
  LEMMA_TRY_VOID(check(nvrtc, nvrtc.Version(&major, &minor), "nvrtcVersion"));
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

Result<CudaObject> compile_cuda(const std::string& source, const std::string& arch, std::span<const std::string> flags,
                                const std::string& place) {
  constexpr int kCompilation = 6;
  LEMMA_TRY(const Functions nvrtc, load(place));
  Program program = nullptr;
  LEMMA_TRY_VOID(check(nvrtc, nvrtc.CreateProgram(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr),
                       "nvrtcCreateProgram"));
  struct Destroy {
    const Functions& nvrtc;
    Program& program;
    ~Destroy() { nvrtc.DestroyProgram(&program); }
  } const destroy{nvrtc, program};
  const std::string architecture = "--gpu-architecture=" + arch;
  std::vector<const char*> options = {architecture.c_str()};
  options.insert(options.end(), std::begin(kCudaOptions), std::end(kCudaOptions));
  for (const std::string& flag : flags) options.push_back(flag.c_str());
  const int code = nvrtc.CompileProgram(program, int(options.size()), options.data());
  CudaObject out;
  out.log = log_of(nvrtc, program);
  if (code == kCompilation) return compiler_refusal("NVRTC", out.log);
  if (code != 0) {
    base::Diagnostic diagnostic = check(nvrtc, code, "nvrtcCompileProgram").error();
    if (!out.log.empty()) diagnostic.notes.push_back(base::Note{base::Span{}, out.log});
    return diagnostic;
  }
  size_t size = 0;
  LEMMA_TRY_VOID(check(nvrtc, nvrtc.GetCUBINSize(program, &size), "nvrtcGetCUBINSize"));
  out.cubin.resize(size);
  LEMMA_TRY_VOID(check(nvrtc, nvrtc.GetCUBIN(program, reinterpret_cast<char*>(out.cubin.data())), "nvrtcGetCUBIN"));
  return out;
}

}  // namespace lemma::runtime
