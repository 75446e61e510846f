// Tile programs as C99.
//
// emit_c gives a whole translation unit for the runtime:
//
//   int32_t lemma_run(const int64_t* sizes, void* const* buffers, void* workspace, int32_t threads);
//       sizes: Program::sizes without a definition, in order, "threads" left out; buffers: the parameters in order.
//       0, or k + 1 where requirement or assert k failed.
//   int64_t lemma_workspace(const int64_t* sizes, int32_t threads);   bytes; 64-byte aligned; never less than 0
//   const char* lemma_message(int32_t code);                          of a code lemma_run gave, or null
//
// emit_library gives a header and a source with one typed function, for people who compile the result themselves.
// Nothing is allocated in a call. Index arithmetic is 64 bits wide. Equal input gives equal bytes.
#pragma once

#include <string>

#include "lemma/base/result.h"
#include "lemma/tile/program.h"
#include "lemma/tile/target.h"

namespace lemma::emit {

struct COptions {
  tile::Target target;
  bool openmp = true;   // blocks in parallel where the compiler knows OpenMP
  bool operator==(const COptions&) const = default;
};

base::Result<std::string> emit_c(const tile::Program& program, const COptions& options);

struct LibraryOptions {
  std::string name;     // of the function; empty: the program's
};
struct Library {
  std::string name;     // as legalised
  std::string header;
  std::string source;   // includes "<name>.h"
};
base::Result<Library> emit_library(const tile::Program& program, const COptions& options,
                                   const LibraryOptions& library);

}  // namespace lemma::emit
