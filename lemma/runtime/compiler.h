// The system's C compiler: found on a search path, asked once what it is, used to make shared objects.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/runtime/cache.h"
#include "lemma/tile/target.h"

namespace lemma::runtime {

struct CompilerOptions {
  std::string compiler;                          // a name or a path; empty: the first of gcc, cc, clang
  std::string search_path = "/usr/bin:/bin";     // as in PATH
  std::string temporary = "/tmp";                // where the source of a failed compilation is left
  double timeout_seconds = 300;
  bool openmp = true;                            // where the compiler has it
  const std::atomic<bool>* cancelled = nullptr;
};

struct Compiler {
  std::string path;
  std::string version;                           // the first line of --version
  bool openmp = false;
};

// What is known of a compiler is remembered in the cache, by its file's path, size and time of change.
base::Result<Compiler> find_compiler(const CompilerOptions& options, const Cache& cache);

// Every compiler of the usual names on the search path.
std::vector<Compiler> list_compilers(const CompilerOptions& options, const Cache& cache);

// The flags of a kernel: optimisation without unsafe arithmetic, the target's features, OpenMP.
std::string kernel_flags(const Compiler& compiler, const tile::Target& target);

// Writes `directory`/kernel.c and compiles it to `directory`/kernel.so. If the compiler refuses, the Diagnostic holds
// what it said and where the source was left.
base::Result<void> compile_kernel(const Compiler& compiler, const std::string& flags, const std::string& source,
                                  const std::string& directory, const CompilerOptions& options);

}  // namespace lemma::runtime
