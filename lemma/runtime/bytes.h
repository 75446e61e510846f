// Sources of bytes that files are parsed from: a file, memory, a gzip stream, a member of an archive. A source knows a
// bound of what it can still deliver, so that a header that lies about a size is found out before memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"

namespace lemma::runtime {

struct Bytes {
  std::string name;    // the file, for messages
  int64_t limit = std::numeric_limits<int64_t>::max();  // an upper bound of what is left
  // Fills a prefix of the span and says how many bytes that is; fewer than asked only at the end.
  std::function<base::Result<int64_t>(std::span<std::byte>)> read;
};

// The whole of `memory`, which must outlive the source.
Bytes memory_source(std::span<const std::byte> memory, std::string name);

// What a gzip stream holds (several members in a row are one text); a source of its plain bytes. Anything after the
// last member is refused. Compressed bytes are taken a piece at a time.
Bytes gzip_source(Bytes compressed);
Bytes gzip_source(std::shared_ptr<const std::vector<std::byte>> compressed, std::string name);

// An opened regular file, read as it is; a pipe is read to its end first.
base::Result<Bytes> file_source(const std::string& path);

// The whole of a file, refused beyond `limit` bytes.
base::Result<std::vector<std::byte>> read_file(const std::string& path,
                                               int64_t limit = std::numeric_limits<int64_t>::max());

// Exactly span.size() bytes, or "is truncated".
base::Result<void> read_exactly(Bytes& source, std::span<std::byte> into, const std::string& what);

// Nothing left, or "has bytes after".
base::Result<void> expect_end(Bytes& source, const std::string& what);

// Writes a file whole or not at all: to a temporary beside it, flushed to disk, then renamed over it.
base::Result<void> write_atomically(const std::string& path, std::span<const std::byte> head,
                                    std::span<const std::byte> body = {});

}  // namespace lemma::runtime
