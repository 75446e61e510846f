#include "lemma/runtime/bytes.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lemma::runtime {
namespace {

using base::Result;

std::string reason() { return std::strerror(errno); }

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

// As many bytes as there are, up to the span's size.
Result<int64_t> read_some(int fd, std::span<std::byte> into, const std::string& name) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::read(fd, into.data() + done, std::min<size_t>(into.size() - done, size_t(1) << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_failure("cannot read '" + name + "': " + reason());
    if (n == 0) break;
    done += size_t(n);
  }
  return int64_t(done);
}

Result<std::shared_ptr<Descriptor>> open_file(const std::string& path, struct stat& status) {
  auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file->fd < 0) return base::system_failure("cannot open '" + path + "': " + reason());
  if (fstat(file->fd, &status) != 0) return base::system_failure("cannot read '" + path + "': " + reason());
  if (S_ISDIR(status.st_mode)) return base::system_failure("cannot read '" + path + "': it is a directory");
  return file;
}

// A pipe or a device: to its end, growing.
Result<std::vector<std::byte>> drain(int fd, const std::string& path, int64_t limit) {
  std::vector<std::byte> all;
  for (;;) {
    const size_t before = all.size();
    all.resize(std::max<size_t>(before * 2, size_t(1) << 16));
    LEMMA_TRY(const int64_t n, read_some(fd, std::span(all).subspan(before), path));
    all.resize(before + size_t(n));
    if (int64_t(all.size()) > limit) {
      return base::invalid("'" + path + "' has more than " + std::to_string(limit) + " bytes");
    }
    if (n == 0) return all;
  }
}

struct Inflater {
  z_stream stream{};
  bool ready = false;
  bool ended = false;
  bool between = false;                                              // a member has ended
  std::vector<std::byte> chunk = std::vector<std::byte>(256 << 10);  // of the compressed bytes
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
};

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, std::min<size_t>(bytes.size() - done, size_t(1) << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::system_failure("cannot write '" + path + "': " + reason());
    done += size_t(n);
  }
  return {};
}

}  // namespace

Bytes memory_source(std::span<const std::byte> memory, std::string name) {
  Bytes source;
  source.name = std::move(name);
  source.limit = int64_t(memory.size());
  source.read = [memory, at = size_t(0)](std::span<std::byte> into) mutable -> Result<int64_t> {
    const size_t n = std::min(into.size(), memory.size() - at);
    if (n > 0) std::memcpy(into.data(), memory.data() + at, n);
    at += n;
    return int64_t(n);
  };
  return source;
}

Bytes gzip_source(Bytes compressed) {
  Bytes source;
  source.name = compressed.name;
  // Deflate expands by less than 1032.
  source.limit = compressed.limit > (std::numeric_limits<int64_t>::max() - 1024) / 1032
                     ? std::numeric_limits<int64_t>::max()
                     : compressed.limit * 1032 + 1024;
  auto state = std::make_shared<Inflater>();
  source.read = [state, from = std::move(compressed)](std::span<std::byte> into) mutable -> Result<int64_t> {
    z_stream& z = state->stream;
    if (!state->ready && inflateInit2(&z, 15 + 16) != Z_OK) return base::system_failure("zlib could not start");
    state->ready = true;
    size_t done = 0;
    while (done < into.size() && !state->ended) {
      if (z.avail_in == 0) {
        LEMMA_TRY(const int64_t n, from.read(state->chunk));
        z.next_in = reinterpret_cast<Bytef*>(state->chunk.data());
        z.avail_in = uInt(n);
        if (n == 0) {
          if (!state->between) return base::invalid("'" + from.name + "' is truncated: its gzip stream does not end");
          state->ended = true;
          break;
        }
      }
      if (state->between) {
        // Another member may follow; anything else does not belong there.
        if (z.next_in[0] != 0x1f) {
          int64_t rest = z.avail_in;
          for (;;) {
            LEMMA_TRY(const int64_t n, from.read(state->chunk));
            if (n == 0) break;
            rest += n;
          }
          return base::invalid("'" + from.name + "' has " + std::to_string(rest) + " bytes after its gzip stream");
        }
        inflateReset(&z);
        state->between = false;
      }
      const uInt room = uInt(std::min<size_t>(into.size() - done, size_t(1) << 30));
      z.next_out = reinterpret_cast<Bytef*>(into.data() + done);
      z.avail_out = room;
      const int code = inflate(&z, Z_NO_FLUSH);
      done += room - z.avail_out;
      if (code == Z_STREAM_END) {
        state->between = true;
      } else if (code != Z_OK && !(code == Z_BUF_ERROR && z.avail_in == 0)) {
        return base::invalid("'" + from.name + "' is not a valid gzip stream: " + (z.msg ? z.msg : "damaged"));
      }
    }
    return int64_t(done);
  };
  return source;
}

Bytes gzip_source(std::shared_ptr<const std::vector<std::byte>> compressed, std::string name) {
  Bytes memory = memory_source(*compressed, std::move(name));
  memory.read = [compressed, read = memory.read](std::span<std::byte> into) { return read(into); };
  return gzip_source(std::move(memory));
}

Result<Bytes> file_source(const std::string& path) {
  struct stat status {};
  LEMMA_TRY(std::shared_ptr<Descriptor> file, open_file(path, status));
  if (!S_ISREG(status.st_mode)) {
    LEMMA_TRY(std::vector<std::byte> all, drain(file->fd, path, std::numeric_limits<int64_t>::max()));
    auto kept = std::make_shared<std::vector<std::byte>>(std::move(all));
    Bytes source = memory_source(*kept, path);
    source.read = [kept, inner = source.read](std::span<std::byte> into) { return inner(into); };
    return source;
  }
  Bytes source;
  source.name = path;
  source.limit = int64_t(status.st_size);
  source.read = [file, path](std::span<std::byte> into) { return read_some(file->fd, into, path); };
  return source;
}

Result<std::vector<std::byte>> read_file(const std::string& path, int64_t limit) {
  struct stat status {};
  LEMMA_TRY(std::shared_ptr<Descriptor> file, open_file(path, status));
  if (!S_ISREG(status.st_mode)) return drain(file->fd, path, limit);
  if (int64_t(status.st_size) > limit) {
    return base::invalid("'" + path + "' has " + std::to_string(status.st_size) + " bytes, more than " +
                         std::to_string(limit));
  }
  std::vector<std::byte> all(size_t(status.st_size) + 1);  // one more, to notice a file that grows
  LEMMA_TRY(const int64_t n, read_some(file->fd, all, path));
  all.resize(size_t(std::min<int64_t>(n, int64_t(status.st_size))));
  return all;
}

Result<void> read_exactly(Bytes& source, std::span<std::byte> into, const std::string& what) {
  LEMMA_TRY(const int64_t n, source.read(into));
  if (n < int64_t(into.size())) {
    return base::invalid("'" + source.name + "' is truncated: " + what + " takes " + std::to_string(into.size()) +
                         " bytes, and " + std::to_string(n) + " are left");
  }
  source.limit -= n;
  return {};
}

Result<void> expect_end(Bytes& source, const std::string& what) {
  std::byte extra[1];
  LEMMA_TRY(const int64_t n, source.read(extra));
  if (n != 0) return base::invalid("'" + source.name + "' has bytes after " + what);
  return {};
}

Result<void> write_atomically(const std::string& path, std::span<const std::byte> head,
                              std::span<const std::byte> body) {
  // A pipe or a device is written to as it is: there is nothing to keep whole.
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.fd < 0) return base::system_failure("cannot write '" + path + "': " + reason());
    LEMMA_TRY_VOID(write_all(file.fd, head, path));
    return write_all(file.fd, body, path);
  }
  uint64_t suffix = 0;
  if (getrandom(&suffix, sizeof suffix, 0) != ssize_t(sizeof suffix)) suffix = uint64_t(getpid());
  const std::string temporary = path + "." + std::to_string(suffix) + ".partial";
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.fd < 0) return base::system_failure("cannot write '" + path + "': " + reason());
  const auto give_up = [&](base::Diagnostic diagnostic) {
    unlink(temporary.c_str());
    return diagnostic;
  };
  if (auto written = write_all(file.fd, head, path); !written) return give_up(written.error());
  if (auto written = write_all(file.fd, body, path); !written) return give_up(written.error());
  if (fsync(file.fd) != 0) return give_up(base::system_failure("cannot write '" + path + "': " + reason()));
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return give_up(base::system_failure("cannot write '" + path + "': " + reason()));
  }
  return {};
}

}  // namespace lemma::runtime
