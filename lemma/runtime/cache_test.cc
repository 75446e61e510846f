#include "lemma/runtime/cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "lemma/runtime/bytes.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

namespace fs = std::filesystem;

KernelKey key_of(int i) { return {"source " + std::to_string(i), "-O3", "cc 1", "avx2"}; }

std::string text_of(const std::string& path) {
  const auto bytes = read_file(path);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "unreadable";
}

// Stands for a compiler: the object is a function of the source, written in two halves with a pause between.
base::Result<void> build_slowly(const KernelKey& key, const std::string& directory, int milliseconds) {
  const std::string object = "object of " + key.source + std::string(5000, 'x');
  std::ofstream(directory + "/kernel.c") << key.source;
  std::ofstream out(directory + "/kernel.so");
  out << object.substr(0, 2000) << std::flush;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  out << object.substr(2000) << std::flush;
  if (!out) return base::system_failure("cannot write the object");
  return {};
}
std::string object_of(const KernelKey& key) { return "object of " + key.source + std::string(5000, 'x'); }

Cache::Build builder(const KernelKey& key, int milliseconds = 0) {
  return [key, milliseconds](const std::string& directory) { return build_slowly(key, directory, milliseconds); };
}

CacheOptions options_in(const TemporaryDirectory& folder) { return {folder.file("cache"), folder.path(), 1 << 30}; }

TEST(Cache, DigestCoversEveryPart) {
  const KernelKey base = key_of(1);
  EXPECT_EQ(base.digest().size(), 32u);
  EXPECT_EQ(base.digest(), key_of(1).digest());
  KernelKey other = base;
  other.flags = "-O2";
  EXPECT_NE(other.digest(), base.digest());
  other = base;
  other.compiler = "cc 2";
  EXPECT_NE(other.digest(), base.digest());
  other = base;
  other.target = "sse2";
  EXPECT_NE(other.digest(), base.digest());
  // What stands where matters.
  EXPECT_NE((KernelKey{"ab", "c", "", ""}.digest()), (KernelKey{"a", "bc", "", ""}.digest()));
}

TEST(Cache, SecondTimeIsAHit) {
  const TemporaryDirectory folder;
  Cache first(options_in(folder)), second(options_in(folder));
  for (Cache* cache : {&first, &second}) {
    const auto file = cache->obtain(key_of(1), builder(key_of(1)), {});
    ASSERT_TRUE(file.ok()) << base::render(file.error());
    EXPECT_EQ(text_of(file->path), object_of(key_of(1)));
  }
  EXPECT_EQ(first.counters().compiles, 1);
  EXPECT_EQ(second.counters().compiles, 0);
  EXPECT_EQ(second.counters().hits, 1);
  EXPECT_EQ(second.statistics(true).entries, 1);
  EXPECT_EQ(*second.clear(), 1);
  EXPECT_EQ(second.statistics(true).entries, 0);
}

TEST(Cache, DamagedEntriesAreDiscardedAndRebuilt) {
  const KernelKey key = key_of(1);
  const auto truncate = [](const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); };
  const auto flip = [](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(10);
    file.put('#');
  };
  const auto remove = [](const std::string& path) { fs::remove(path); };
  const auto empty = [](const std::string& path) { std::ofstream{path}; };
  const std::vector<std::function<void(const std::string&)>> harms = {truncate, flip, remove, empty};
  for (const char* name : {"kernel.so", "kernel.c", "entry.json"}) {
    for (const auto& harm : harms) {
      const TemporaryDirectory folder;
      Cache cache(options_in(folder));
      ASSERT_TRUE(cache.obtain(key, builder(key), {}).ok());
      harm(folder.file("cache/v1/entries/" + key.digest() + "/" + name));
      std::string notice;
      const auto again = cache.obtain(key, builder(key), [&](const std::string& text) { notice = text; });
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(text_of(again->path), object_of(key));
      EXPECT_EQ(notice, "the cached kernel " + key.digest() + " is damaged; it is compiled anew") << name;
      EXPECT_EQ(cache.counters().discarded, 1);
      EXPECT_EQ(cache.statistics(true).damaged, 0);
    }
  }
}

TEST(Cache, AnEntryOfAnotherKeyIsNotBelieved) {
  const TemporaryDirectory folder;
  Cache cache(options_in(folder));
  ASSERT_TRUE(cache.obtain(key_of(1), builder(key_of(1)), {}).ok());
  const std::string entries = folder.file("cache/v1/entries/");
  fs::copy(entries + key_of(1).digest(), entries + key_of(2).digest());
  const auto file = cache.obtain(key_of(2), builder(key_of(2)), {});
  EXPECT_EQ(text_of(file->path), object_of(key_of(2)));
  EXPECT_EQ(cache.counters().discarded, 1);
}

TEST(Cache, FailedBuildsLeaveNothing) {
  const TemporaryDirectory folder;
  Cache cache(options_in(folder));
  const auto fail = [](const std::string&) -> base::Result<void> { return base::system_failure("no"); };
  EXPECT_EQ(cache.obtain(key_of(1), fail, {}).error().message, "no");
  EXPECT_EQ(cache.statistics(false).entries, 0);
  EXPECT_TRUE(fs::is_empty(folder.file("cache/v1/building")));
}

TEST(Cache, UnusableDirectoriesFallBackWithANotice) {
  const TemporaryDirectory folder;
  std::ofstream(folder.file("file")) << "in the way";
  CacheOptions options = options_in(folder);
  options.directory = folder.file("file") + "/cache";
  Cache cache(options);
  std::string notice;
  {
    const auto file = cache.obtain(key_of(1), builder(key_of(1)), [&](const std::string& text) { notice = text; });
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(text_of(file->path), object_of(key_of(1)));
  }
  EXPECT_EQ(notice, "the cache '" + options.directory + "' cannot be used (Not a directory); this kernel is not kept");
  EXPECT_EQ(cache.counters().uncached, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);  // the file alone
}

// As a user who may not write there (root may write anywhere).
TEST(Cache, ReadOnlyDirectoriesStillHit) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(9);
    const TemporaryDirectory folder;
    Cache cache(options_in(folder));
    const bool built = cache.obtain(key_of(1), builder(key_of(1)), {}).ok();
    const char* names[] = {"cache/v1/entries", "cache/v1/building", "cache/v1/locks"};
    for (const char* name : names) {
      fs::permissions(folder.file(name), fs::perms::owner_read | fs::perms::owner_exec);
    }
    const bool hit = cache.obtain(key_of(1), builder(key_of(1)), {}).ok() && cache.counters().hits == 1;
    std::string notice;
    const bool other = cache.obtain(key_of(2), builder(key_of(2)), [&](const std::string& text) { notice = text; }).ok();
    for (const char* name : names) fs::permissions(folder.file(name), fs::perms::owner_all);
    const std::string expected =
        "the cache '" + cache.options().directory + "' cannot be used (Permission denied); this kernel is not kept";
    _exit(!built ? 1 : !hit ? 2 : !other || cache.counters().uncached != 1 ? 3 : notice != expected ? 4 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Cache, FullDisksFallBackWithANotice) {
  const TemporaryDirectory folder;
  fs::create_directory(folder.file("cache"));
  if (mount("tmpfs", folder.file("cache").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "no tmpfs can be mounted here";
  }
  Cache cache(options_in(folder));
  std::string notice;
  for (int i = 0; i < 20; ++i) {
    const auto file = cache.obtain(key_of(i), builder(key_of(i)), [&](const std::string& text) { notice = text; });
    ASSERT_TRUE(file.ok()) << base::render(file.error());
    EXPECT_EQ(text_of(file->path), object_of(key_of(i)));
  }
  EXPECT_NE(notice.find("this kernel is not kept"), std::string::npos) << notice;
  EXPECT_GT(cache.counters().uncached, 0);
  EXPECT_EQ(cache.statistics(true).damaged, 0);
  umount(folder.file("cache").c_str());
}

// No file may grow beyond a kilobyte: neither the cache nor the temporary build can be written, and that is said.
TEST(Cache, NoRoomAnywhereIsASystemFailure) {
  const TemporaryDirectory folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    Cache cache(options_in(folder));
    const auto file = cache.obtain(key_of(1), builder(key_of(1)), {});
    _exit(!file.ok() && file.error().failure == base::Failure::System ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Cache, TheLeastRecentlyUsedGoFirst) {
  const TemporaryDirectory folder;
  CacheOptions options = options_in(folder);
  options.limit_bytes = 30000;  // about five entries
  Cache cache(options);
  const auto touch = [&](int i) {
    ASSERT_TRUE(cache.obtain(key_of(i), builder(key_of(i)), {}).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  };
  for (int i = 0; i < 5; ++i) touch(i);
  touch(0);
  const int64_t before = cache.counters().compiles;
  touch(5);
  EXPECT_GE(cache.counters().evicted, 1);
  EXPECT_LE(cache.statistics(true).bytes, 30000);
  touch(0);  // used lately, kept
  touch(5);
  EXPECT_EQ(cache.counters().compiles, before + 1);
  touch(1);  // the oldest, gone
  EXPECT_EQ(cache.counters().compiles, before + 2);
}

// Eight processes ask for the same twenty kernels at once: each is compiled exactly once.
TEST(Cache, EightProcessesCompileOnce) {
  const TemporaryDirectory folder;
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      Cache cache(options_in(folder));
      for (int i = 0; i < 20; ++i) {
        const KernelKey key = key_of((i + p * 3) % 20);
        const auto counted = [&](const std::string& directory) {
          std::ofstream(folder.file("log"), std::ios::app) << key.source << "\n" << std::flush;
          return build_slowly(key, directory, 2);
        };
        const auto file = cache.obtain(key, counted, {});
        if (!file.ok() || text_of(file->path) != object_of(key)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::ifstream log(folder.file("log"));
  int lines = 0;
  for (std::string line; std::getline(log, line);) ++lines;
  EXPECT_EQ(lines, 20);
}

// Eight processes build, evict and read while one after another is killed without warning. Whatever a survivor is
// given is right, and nothing is stuck afterwards.
TEST(Cache, SurvivesKilling) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 draw(seed);
  const TemporaryDirectory folder;
  CacheOptions options = options_in(folder);
  options.limit_bytes = 60000;
  const auto start_child = [&](uint64_t child_seed) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::mt19937_64 mine(child_seed);
    Cache cache(options);
    for (;;) {
      const KernelKey key = key_of(int(mine() % 15));
      const auto file = cache.obtain(key, builder(key, int(mine() % 3)), {});
      // Another process may evict the entry between the answer and the reading of it.
      const std::string text = file.ok() ? text_of(file->path) : "failed";
      if (text != object_of(key) && text != "unreadable") _exit(1);
    }
  };
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p) children.push_back(start_child(draw()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  int killed = 0;
  const auto finish = [&](pid_t child) {
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "a process was given a wrong kernel";
    ++killed;
  };
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(draw() % 20));
    pid_t& victim = children[draw() % children.size()];
    finish(victim);
    victim = start_child(draw());
  }
  for (const pid_t child : children) finish(child);
  EXPECT_GT(killed, 20);
  Cache cache(options);
  for (int i = 0; i < 15; ++i) {
    const auto file = cache.obtain(key_of(i), builder(key_of(i)), {});
    ASSERT_TRUE(file.ok()) << base::render(file.error());
    EXPECT_EQ(text_of(file->path), object_of(key_of(i)));
  }
  ASSERT_TRUE(cache.clear().ok());
  EXPECT_TRUE(fs::is_empty(folder.file("cache/v1/building")));
  EXPECT_EQ(cache.statistics(true).entries, 0);
}

}  // namespace
}  // namespace lemma::runtime
