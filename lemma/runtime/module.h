// A loaded kernel library. What the emitted C promises:
//
//   int32_t lemma_run(const int64_t* sizes, void* const* buffers, void* workspace, int32_t threads);  0, or a failure
//   int64_t lemma_workspace(const int64_t* sizes, int32_t threads);                                   bytes
//   const char* lemma_message(int32_t failure);
//
// A Module is a handle: copies share the library, which is unloaded with the last of them. Calls may run at once from
// several threads if each has its own Workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lemma/base/result.h"
#include "lemma/runtime/array.h"
#include "lemma/runtime/cache.h"
#include "lemma/runtime/compiler.h"

namespace lemma::runtime {

// Memory for the scratch of calls: grows to what the largest one needs and is kept between calls.
class Workspace {
 public:
  base::Result<void*> reserve(int64_t bytes);
  int64_t bytes() const { return storage_ ? storage_->bytes() : 0; }

 private:
  std::shared_ptr<Storage> storage_;
};

class Module {
 public:
  // Loads a shared object that has the three functions.
  static base::Result<Module> load(const KernelFile& file);

  base::Result<void> run(std::span<const int64_t> sizes, std::span<void* const> buffers, Workspace& workspace,
                         int threads) const;
  base::Result<int64_t> workspace_bytes(std::span<const int64_t> sizes, int threads) const;

 private:
  struct Library;
  explicit Module(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  std::shared_ptr<const Library> library_;
};

// Compiles (or finds in the cache) and loads.
base::Result<Module> build_module(const std::string& source, const Compiler& compiler, const tile::Target& target,
                                  const CompilerOptions& options, Cache& cache, const Notices& notices = {});

}  // namespace lemma::runtime
