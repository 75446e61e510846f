// Emitted text made runnable on the CPU:
//
//   auto module = Module::load(text, compiler, {}, cache);      headers + text, compiled as C++ and loaded
//   auto report = module->run({.kernel = "add", .blocks = {8}, .threads = 128, .buffers = {...}});
//
// The text declares its kernels with LM_KERNEL and uses the names of the header of its dialect, kernel/cuda.h. A Module
// is a handle: copies share the library. Runs may go on at once in several threads; each run uses one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/launch.h"
#include "emulator/report.h"
#include "lemma/base/result.h"
#include "lemma/runtime/cache.h"
#include "lemma/runtime/compiler.h"

namespace lemma::emulator {

struct ModuleOptions {
  runtime::CompilerOptions compiler;
  std::string optimisation = "-O1";  // of the text; the checks are compiled already
};

class Module {
 public:
  static base::Result<Module> load(const std::string& text, const runtime::Compiler& compiler, runtime::Cache& cache,
                                   const ModuleOptions& options = {}, const runtime::Notices& notices = {});

  const std::vector<std::string>& kernels() const;

  // Runs every block of the grid and says what was found. The buffers hold the kernel's results afterwards.
  base::Result<Report> run(const Launch& launch) const;

 private:
  struct Library;
  explicit Module(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  std::shared_ptr<const Library> library_;
};

// The headers that CUDA text is compiled after, as one text without includes.
std::string_view cuda_headers();

// What stands before Metal text, behind those.
std::string_view metal_header();

}  // namespace lemma::emulator
