#include "lemma/runtime/module.h"

#include <dlfcn.h>

namespace lemma::runtime {
namespace {

using base::Result;
using Run = int32_t (*)(const int64_t*, void* const*, void*, int32_t);
using Needs = int64_t (*)(const int64_t*, int32_t);
using Message = const char* (*)(int32_t);

// The OpenMP runtime keeps threads that live in its code: it must stay when the last kernel goes.
void pin_openmp() {
  for (const char* name : {"libgomp.so.1", "libomp.so.5", "libomp.so"}) {
    dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

std::string loader_message() {
  const char* text = dlerror();
  return text ? text : "unknown reason";
}

}  // namespace

struct Module::Library {
  void* handle = nullptr;
  Run run = nullptr;
  Needs needs = nullptr;
  Message message = nullptr;
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle) dlclose(handle);
  }
};

Result<void*> Workspace::reserve(int64_t bytes) {
  if (bytes <= this->bytes()) return static_cast<void*>(storage_ ? storage_->data() : nullptr);
  storage_.reset();  // first: the two together may not fit
  auto storage = Storage::allocate(bytes);
  if (!storage) {
    base::Diagnostic diagnostic = storage.error();
    diagnostic.message = "the workspace " + diagnostic.message;
    return diagnostic;
  }
  storage_ = *std::move(storage);
  return static_cast<void*>(storage_->data());
}

Result<Module> Module::load(const KernelFile& file) {
  auto library = std::make_shared<Library>();
  library->handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return base::system_failure("cannot load '" + file.path + "': " + loader_message());
  pin_openmp();
  library->run = reinterpret_cast<Run>(dlsym(library->handle, "lemma_run"));
  library->needs = reinterpret_cast<Needs>(dlsym(library->handle, "lemma_workspace"));
  library->message = reinterpret_cast<Message>(dlsym(library->handle, "lemma_message"));
  if (!library->run || !library->needs || !library->message) {
    return base::system_failure("'" + file.path + "' lacks one of lemma_run, lemma_workspace, lemma_message");
  }
  return Module(std::move(library));
}

Result<int64_t> Module::workspace_bytes(std::span<const int64_t> sizes, int threads) const {
  const int64_t bytes = library_->needs(sizes.data(), threads);
  if (bytes < 0) return base::invalid("the workspace for these sizes has more bytes than 63 bits can count");
  return bytes;
}

Result<void> Module::run(std::span<const int64_t> sizes, std::span<void* const> buffers, Workspace& workspace,
                         int threads) const {
  LEMMA_TRY(const int64_t bytes, workspace_bytes(sizes, threads));
  LEMMA_TRY(void* scratch, workspace.reserve(bytes));
  const int32_t failure = library_->run(sizes.data(), buffers.data(), scratch, threads);
  if (failure == 0) return {};
  const char* message = library_->message(failure);
  return base::invalid(message ? message : "the kernel stopped with code " + std::to_string(failure));
}

Result<Module> build_module(const std::string& source, const Compiler& compiler, const tile::Target& target,
                            const CompilerOptions& options, Cache& cache, const Notices& notices) {
  const std::string flags = kernel_flags(compiler, target);
  const KernelKey key{source, flags, compiler.path + " " + compiler.version, target.name};
  const auto build = [&](const std::string& directory) {
    return compile_kernel(compiler, flags, source, directory, options);
  };
  LEMMA_TRY(const KernelFile file, cache.obtain(key, build, notices));
  auto module = Module::load(file);
  if (module || file.keep) return module;
  // The entry went (evicted, or the directory was cleared) between being found and being loaded.
  cache.discard(key);
  LEMMA_TRY(const KernelFile again, cache.obtain(key, build, notices));
  return Module::load(again);
}

}  // namespace lemma::runtime
