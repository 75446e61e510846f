#include "lemma/runtime/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>

#include "lemma/runtime/bytes.h"

namespace lemma::runtime {
namespace {

namespace fs = std::filesystem;
using base::Result;
using nlohmann::json;

std::string hexadecimal(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::string checksum(std::span<const std::byte> bytes) { return hexadecimal(XXH3_128bits(bytes.data(), bytes.size())); }

std::string unique_suffix() {
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != ssize_t(sizeof value)) value = uint64_t(getpid());
  return std::to_string(getpid()) + "." + std::to_string(value);
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

struct ScratchDirectory {
  std::string path;
  explicit ScratchDirectory(std::string made) : path(std::move(made)) {}
  ~ScratchDirectory() { remove_tree(path); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
};

// An exclusive lock on a file, held until destruction. The file may be unlinked by whoever holds it, so after locking
// the name must still lead to the locked file.
class Lock {
 public:
  static std::optional<Lock> acquire(const std::string& path, bool wait) {
    for (;;) {
      Lock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      if (lock.fd_ < 0) return std::nullopt;
      while (flock(lock.fd_, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
        if (errno != EINTR) return std::nullopt;
      }
      struct stat held {}, named {};
      if (fstat(lock.fd_, &held) != 0) return std::nullopt;
      if (stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev) return lock;
    }
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Lock() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

bool flush(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = fsync(fd) == 0;
  close(fd);
  return done;
}

json metadata(const KernelKey& key) {
  return {{"format", 1}, {"flags", key.flags}, {"compiler", key.compiler}, {"target", key.target}};
}

enum class State { Good, Absent, Damaged };

// Whether the entry in `directory` is whole and is what the key asks for; without a key, whether it is whole.
State examine(const std::string& directory, const KernelKey* key) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return State::Absent;
  const auto text = read_file(directory + "/entry.json", int64_t(1) << 20);
  const auto source = read_file(directory + "/kernel.c");
  const auto object = read_file(directory + "/kernel.so");
  if (!text || !source || !object) return State::Damaged;
  const char* begin = reinterpret_cast<const char*>(text->data());
  json entry = json::parse(begin, begin + text->size(), nullptr, false);
  if (!entry.is_object()) return State::Damaged;
  const auto is = [&](const char* name, const std::string& value) {
    const auto found = entry.find(name);
    return found != entry.end() && found->is_string() && found->get_ref<const std::string&>() == value;
  };
  if (!is("object", checksum(*object)) || !is("source", checksum(*source))) return State::Damaged;
  if (!key) return State::Good;
  const bool same = source->size() == key->source.size() &&
                    std::equal(source->begin(), source->end(), std::as_bytes(std::span(key->source)).begin());
  const bool asked = is("flags", key->flags) && is("compiler", key->compiler) && is("target", key->target);
  return same && asked ? State::Good : State::Damaged;
}

struct Entry {
  std::string name;
  int64_t bytes = 0;
  timespec used{};
};

std::vector<Entry> entries(const std::string& folder) {
  std::vector<Entry> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    Entry entry;
    entry.name = it->path().filename().string();
    for (const char* file : {"/kernel.c", "/kernel.so", "/entry.json"}) {
      struct stat status {};
      if (stat((it->path().string() + file).c_str(), &status) == 0) {
        entry.bytes += int64_t(status.st_size);
        entry.used = status.st_mtim;  // of entry.json, the last
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

// A reason why files cannot be written there, found by writing one.
std::optional<std::string> cannot_write(const std::string& folder) {
  const std::string path = folder + "/probe." + unique_suffix();
  const std::vector<std::byte> probe(size_t(1) << 20);
  const auto written = write_atomically(path, probe);
  unlink(path.c_str());
  if (written) return std::nullopt;
  return written.error().message;
}

// Removes what killed builds left: of one key whose lock is held, or of any key that nobody holds.
void sweep(const std::string& building, const std::string& locks, const std::string& held) {
  std::error_code error;
  for (fs::directory_iterator it(building, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::string key = name.substr(0, name.find('.'));
    if (key == held) {
      remove_tree(it->path().string());
    } else if (held.empty()) {
      if (const auto lock = Lock::acquire(locks + "/" + key, false)) remove_tree(it->path().string());
    }
  }
}

}  // namespace

std::string KernelKey::digest() const {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const std::string* part : {&source, &flags, &compiler, &target}) {
    const uint64_t size = part->size();
    XXH3_128bits_update(state, &size, sizeof size);
    XXH3_128bits_update(state, part->data(), part->size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return hexadecimal(hash);
}

Cache::Cache(CacheOptions options) : options_(std::move(options)) {}

Result<KernelFile> Cache::obtain(const KernelKey& key, const Build& build, const Notices& notices) {
  if (options_.directory.empty()) return build_temporary(build);
  const std::string digest = key.digest();
  const std::string directory = folder("entries") + "/" + digest;
  const auto hit = [&] {
    ++counts_.hits;
    utimensat(AT_FDCWD, (directory + "/entry.json").c_str(), nullptr, 0);
    return KernelFile{directory + "/kernel.so", nullptr};
  };
  if (examine(directory, &key) == State::Good) return hit();

  std::error_code error;
  for (const char* name : {"entries", "building", "locks"}) {
    if (!error) fs::create_directories(folder(name), error);
  }
  std::optional<Lock> lock;
  if (!error) lock = Lock::acquire(folder("locks") + "/" + digest, true);
  if (!lock) {
    const std::string reason = error ? error.message() : std::strerror(errno);
    if (notices) notices("the cache '" + options_.directory + "' cannot be used (" + reason + "); this kernel is not kept");
    ++counts_.misses;
    return build_temporary(build);
  }
  const State state = examine(directory, &key);  // somebody may have built it while this process waited
  if (state == State::Good) return hit();
  if (state == State::Damaged) {
    ++counts_.discarded;
    if (notices) notices("the cached kernel " + digest + " is damaged; it is compiled anew");
    remove_tree(directory);
  }
  ++counts_.misses;
  return build_entry(key, build, notices);
}

Result<KernelFile> Cache::build_entry(const KernelKey& key, const Build& build, const Notices& notices) {
  const std::string digest = key.digest();
  sweep(folder("building"), folder("locks"), digest);
  const std::string working = folder("building") + "/" + digest + "." + unique_suffix();
  const std::string directory = folder("entries") + "/" + digest;
  const auto otherwise = [&](const std::string& reason) {
    remove_tree(working);
    if (notices) notices("the cache '" + options_.directory + "' cannot be written (" + reason + "); this kernel is not kept");
    return build_temporary(build);
  };
  if (mkdir(working.c_str(), 0777) != 0) return otherwise(std::strerror(errno));
  ++counts_.compiles;
  if (const auto built = build(working); !built) {
    if (const auto reason = cannot_write(folder("building"))) return otherwise(*reason);
    remove_tree(working);
    return built.error();
  }
  const auto object = read_file(working + "/kernel.so");
  if (!object) return otherwise(object.error().message);
  json entry = metadata(key);
  entry["source"] = checksum(std::as_bytes(std::span(key.source)));
  entry["object"] = checksum(*object);
  const std::string text = entry.dump(2) + "\n";
  const auto written = write_atomically(working + "/entry.json", std::as_bytes(std::span(text)));
  if (!written) return otherwise(written.error().message);
  if (!flush(working + "/kernel.so") || !flush(working + "/kernel.c") || !flush(working)) {
    return otherwise(std::strerror(errno));
  }
  if (rename(working.c_str(), directory.c_str()) != 0) return otherwise(std::strerror(errno));
  flush(folder("entries"));
  evict();
  return KernelFile{directory + "/kernel.so", nullptr};
}

Result<KernelFile> Cache::build_temporary(const Build& build) {
  ++counts_.compiles;
  ++counts_.uncached;
  std::string directory = options_.temporary + "/lemma-XXXXXX";
  if (!mkdtemp(directory.data())) {
    return base::system_failure("cannot make a directory in '" + options_.temporary + "': " + std::strerror(errno));
  }
  auto keep = std::make_shared<ScratchDirectory>(directory);
  LEMMA_TRY_VOID(build(directory));
  return KernelFile{directory + "/kernel.so", keep};
}

void Cache::discard(const KernelKey& key) {
  if (options_.directory.empty()) return;
  const std::string digest = key.digest();
  const auto lock = Lock::acquire(folder("locks") + "/" + digest, true);
  if (!lock) return;
  ++counts_.discarded;
  remove_tree(folder("entries") + "/" + digest);
}

void Cache::evict() {
  std::vector<Entry> all = entries(folder("entries"));
  int64_t total = 0;
  for (const Entry& entry : all) total += entry.bytes;
  if (total <= options_.limit_bytes) return;
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  sweep(folder("building"), folder("locks"), "");
  // Down to nine tenths, so that not every insertion evicts. The newest entry, just built, always stays.
  for (size_t i = 0; i + 1 < all.size() && total > options_.limit_bytes / 10 * 9; ++i) {
    const std::string path = folder("locks") + "/" + all[i].name;
    const auto lock = Lock::acquire(path, false);
    if (!lock) continue;
    remove_tree(folder("entries") + "/" + all[i].name);
    unlink(path.c_str());
    total -= all[i].bytes;
    ++counts_.evicted;
  }
}

std::string Cache::recall(const std::string& name) const {
  if (options_.directory.empty()) return {};
  const auto bytes = read_file(folder("compilers") + "/" + name, int64_t(1) << 20);
  if (!bytes) return {};
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

void Cache::remember(const std::string& name, const std::string& text) const {
  if (options_.directory.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder("compilers"), ignored);
  (void)write_atomically(folder("compilers") + "/" + name, std::as_bytes(std::span(text)));
}

CacheCounters Cache::counters() const {
  return {counts_.hits, counts_.misses, counts_.compiles, counts_.discarded, counts_.evicted, counts_.uncached};
}

CacheStatistics Cache::statistics(bool verify) const {
  CacheStatistics out;
  if (options_.directory.empty()) return out;
  for (const Entry& entry : entries(folder("entries"))) {
    ++out.entries;
    out.bytes += entry.bytes;
    if (verify && examine(folder("entries") + "/" + entry.name, nullptr) != State::Good) ++out.damaged;
  }
  return out;
}

Result<int64_t> Cache::clear() {
  int64_t removed = 0;
  if (options_.directory.empty()) return removed;
  for (const Entry& entry : entries(folder("entries"))) {
    const std::string path = folder("locks") + "/" + entry.name;
    const auto lock = Lock::acquire(path, true);
    std::error_code error;
    fs::remove_all(folder("entries") + "/" + entry.name, error);
    if (error) return base::system_failure("cannot remove '" + entry.name + "' from the cache: " + error.message());
    unlink(path.c_str());
    ++removed;
  }
  sweep(folder("building"), folder("locks"), "");
  remove_tree(folder("compilers"));
  return removed;
}

}  // namespace lemma::runtime
