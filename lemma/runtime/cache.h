// The kernel cache: compiled kernels on disk, found by the hash of everything that made them.
//
//   <directory>/v1/entries/<key>/{kernel.c, kernel.so, entry.json}    complete entries; a directory is renamed into place
//   <directory>/v1/building/<key>.<unique>/                           compilations under way
//   <directory>/v1/locks/<key>                                        held (flock) while a key is compiled or removed
//   <directory>/v1/compilers/<hash>.json                              what is known of a compiler
//
// The names are those of kernels in C; a device's kernels are kept under the same two, their text and their object.
//
// An entry is believed only if its source, flags, compiler and target are the asked ones and the object's checksum
// matches; else it is discarded and built anew. Locks are the kernel's, so they vanish with their process, and a killed
// process leaves only a directory under building/ that the next builder of the key, or an eviction, removes. Where the
// directory cannot be used, kernels are built in a temporary directory and a notice says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::runtime {

struct CacheOptions {
  std::string directory;                    // empty: nothing is kept
  std::string temporary = "/tmp";           // for builds that are not kept
  int64_t limit_bytes = int64_t(1) << 30;   // beyond it the least recently used entries go
};

// Everything that decides what a compiled kernel is.
struct KernelKey {
  std::string source;
  std::string flags;
  std::string compiler;                     // path and version
  std::string target;
  std::string digest() const;               // 32 hexadecimal digits
};

// The shared object of an entry. A temporary one is removed when the last copy goes; a loaded object outlives its file.
struct KernelFile {
  std::string path;
  std::shared_ptr<void> keep;
};

struct CacheCounters {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t compiles = 0;
  int64_t discarded = 0;                    // entries that were damaged
  int64_t evicted = 0;
  int64_t uncached = 0;                     // builds outside the directory
};

struct CacheStatistics {
  int64_t entries = 0;
  int64_t bytes = 0;
  int64_t damaged = 0;                      // found by verify
};

// Where sentences for the user go: lower case, no full stop.
using Notices = std::function<void(const std::string&)>;

class Cache {
 public:
  explicit Cache(CacheOptions options);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Writes kernel.c and kernel.so into the directory it is given.
  using Build = std::function<base::Result<void>(const std::string& directory)>;

  // The kernel of this key, built if need be. Safe among threads and processes; one of them builds, the rest wait.
  base::Result<KernelFile> obtain(const KernelKey& key, const Build& build, const Notices& notices);
  // Forgets one entry, a file that would not load.
  void discard(const KernelKey& key);

  // A small text under compilers/, or empty; failures to write are silent.
  std::string recall(const std::string& name) const;
  void remember(const std::string& name, const std::string& text) const;

  CacheCounters counters() const;
  CacheStatistics statistics(bool verify) const;
  base::Result<int64_t> clear();            // how many entries went
  const CacheOptions& options() const { return options_; }

 private:
  base::Result<KernelFile> build_temporary(const Build& build);
  base::Result<KernelFile> build_entry(const KernelKey& key, const Build& build, const Notices& notices);
  void evict();
  std::string folder(const char* name) const { return options_.directory + "/v1/" + name; }

  CacheOptions options_;
  struct Counts {
    std::atomic<int64_t> hits{0}, misses{0}, compiles{0}, discarded{0}, evicted{0}, uncached{0};
  };
  Counts counts_;
};

}  // namespace lemma::runtime
