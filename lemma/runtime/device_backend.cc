#include "lemma/runtime/device_backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>

#include "lemma/runtime/bytes.h"

namespace lemma::runtime {

namespace fs = std::filesystem;
using base::Result;

std::optional<DynamicLibrary> DynamicLibrary::open(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      DynamicLibrary out;
      out.handle_ = handle;
      out.path_ = name;
      return out;
    }
  }
  return std::nullopt;
}

void* DynamicLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

std::vector<std::string> library_names(const std::string& place, const std::string& prefix) {
  std::error_code error;
  if (place.empty()) return {};
  if (!fs::is_directory(place, error)) return {place};
  std::vector<std::string> out;
  for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) out.push_back(it->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<bool> poll(double limit_seconds, const std::function<Result<bool>()>& done) {
  const auto start = std::chrono::steady_clock::now();
  auto pause = std::chrono::microseconds(5);
  for (;;) {
    LEMMA_TRY(const bool is_done, done());
    if (is_done) return true;
    const auto elapsed = std::chrono::steady_clock::now() - start;
    if (std::chrono::duration<double>(elapsed).count() > limit_seconds) return false;
    if (elapsed < std::chrono::microseconds(50)) {  // a sleep is no shorter
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(500));
    }
  }
}

Result<std::vector<std::byte>> cached_object(Cache& cache, const KernelKey& key, const CompileObject& compile,
                                             const Notices& notices) {
  const auto build = [&](const std::string& directory) -> Result<void> {
    LEMMA_TRY(const std::vector<std::byte> object, compile());
    LEMMA_TRY_VOID(write_atomically(directory + "/kernel.c", std::as_bytes(std::span(key.source))));
    return write_atomically(directory + "/kernel.so", object);
  };
  LEMMA_TRY(const KernelFile file, cache.obtain(key, build, notices));
  auto object = read_file(file.path);
  if (object || file.keep) return object;
  // The entry went between being found and being read.
  cache.discard(key);
  LEMMA_TRY(const KernelFile again, cache.obtain(key, build, notices));
  return read_file(again.path);
}

base::Diagnostic compiler_refusal(const std::string& compiler, std::string words) {
  base::Diagnostic out = base::invalid(compiler + " refused the kernels' text");
  words = words.substr(0, 4000);
  while (!words.empty() && (words.back() == '\n' || words.back() == '\0')) words.pop_back();
  if (!words.empty()) out.notes.push_back(base::Note{base::Span{}, std::move(words)});
  return out;
}

Result<std::vector<int32_t>> narrow_scalars(const Launch& launch) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < launch.scalars.size(); ++i) {
    const int64_t value = launch.scalars[i];
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
      return base::unsupported("scalar " + std::to_string(i) + " of " + launch.kernel + " is " + std::to_string(value) +
                                   ", and this interface passes 32 bits",
                               {}, "use smaller sizes, CUDA or OpenCL");
    }
    out.push_back(int32_t(value));
  }
  return out;
}

}  // namespace lemma::runtime
