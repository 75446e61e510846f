// What the interfaces' files share. Each of them defines a class with the members below, and device.cc keeps one of
// them in a variant; arguments have been checked and calls come one at a time when they get there.
//
//   static Result<std::shared_ptr<X>> open(const DeviceInfo&, const DeviceOptions&);
//   Result<std::shared_ptr<void>> compile(const DeviceSource&, Cache&, const Notices&);
//   Result<std::shared_ptr<void>> allocate(int64_t bytes);                  the object keeps X
//   Result<void> write(void* memory, int64_t offset, std::span<const std::byte>);    in order; takes a copy
//   Result<void> read(void* memory, int64_t offset, std::span<std::byte>);           nothing is in flight
//   Result<void> fill(void* memory, int64_t bytes, uint8_t value);                   nothing is in flight
//   Result<void> launch(const Command&, Keep&);                             what must outlive the kernel goes to Keep
//   Result<bool> finished();                                                nothing is in flight any more
//   Result<double> time(std::span<const Command>, double limit, Keep&);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/runtime/cache.h"
#include "lemma/runtime/device.h"

namespace lemma::runtime {

struct Argument {
  void* memory = nullptr;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// A launch after its checks.
struct Command {
  void* module = nullptr;
  const KernelEntry* entry = nullptr;
  size_t kernel = 0;  // of the module
  const Launch* launch = nullptr;
  std::vector<Argument> buffers;
};

using Keep = std::vector<std::shared_ptr<void>>;

// After so many launches without a wait one is made, so that what is kept for them stays bounded.
inline constexpr int kMostInFlight = 512;

// Libraries of the system, by any of several names. They are never unloaded: drivers leave threads behind.
class DynamicLibrary {
 public:
  static std::optional<DynamicLibrary> open(std::span<const std::string> names);

  // Whether all were there; the first that was not is named.
  template <class F>
  void bind(F& function, const char* name) {
    function = reinterpret_cast<F>(symbol(name));
    if (!function && lacking_.empty()) lacking_ = name;
  }
  const std::string& lacking() const { return lacking_; }
  const std::string& path() const { return path_; }
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  std::string lacking_;
};

// The files in a place that may itself be the file; empty names nothing.
std::vector<std::string> library_names(const std::string& place, const std::string& prefix);

// Asks `done` again and again, less and less often, until it is so, it fails, or the time is over (false).
base::Result<bool> poll(double limit_seconds, const std::function<base::Result<bool>()>& done);

// A compiled object out of the cache, or made and put there.
using CompileObject = std::function<base::Result<std::vector<std::byte>>()>;
base::Result<std::vector<std::byte>> cached_object(Cache& cache, const KernelKey& key, const CompileObject& compile,
                                                   const Notices& notices);

// "the OpenCL compiler refused kernel text 0", its words in a note.
base::Diagnostic compiler_refusal(const std::string& compiler, std::string words);

// Scalars as 32-bit integers; one that does not fit is an error.
base::Result<std::vector<int32_t>> narrow_scalars(const Launch& launch);

// What an interface has here: the devices, or why there are none.
void list_cuda(const DeviceOptions& options, DeviceList& list);
void list_opencl(DeviceList& list);
void list_vulkan(DeviceList& list);
void list_webgpu(const DeviceOptions& options, DeviceList& list);

}  // namespace lemma::runtime
