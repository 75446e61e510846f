#include "lemma/runtime/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace lemma::runtime {
namespace {

struct Row {
  const char* name;
  int vector_bytes;
  int vector_registers;
  bool fma;
  const char* flags;
};

// From the plainest; a machine's target is the last row of its family that it runs.
constexpr std::array kRows = {
    Row{"generic", 16, 16, false, ""},
    Row{"sse2", 16, 16, false, "-msse2"},
    Row{"avx2", 32, 16, true, "-mavx2 -mfma -mf16c -mbmi2 -mprefer-vector-width=256"},
    Row{"avx512", 64, 32, true,
        "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mbmi2 -mprefer-vector-width=512"},
    Row{"neon", 16, 32, true, ""},
};

struct Features {
  bool sse2 = false;
  bool avx2 = false;
  bool avx512 = false;
  bool avx512_bf16 = false;
  bool neon = false;
};

#if defined(__x86_64__) || defined(__i386__)
Features detect() {
  Features found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  found.sse2 = (d >> 26 & 1) != 0;
  const bool fma = (c >> 12 & 1) != 0, f16c = (c >> 29 & 1) != 0, osxsave = (c >> 27 & 1) != 0;
  unsigned state = 0;
  if (osxsave) {
    unsigned high = 0;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
  }
  const bool saves_256 = (state & 0x6) == 0x6, saves_512 = (state & 0xe6) == 0xe6;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const unsigned subleaves = a;
  const auto has = [&](int bit) { return (b >> bit & 1) != 0; };
  found.avx2 = saves_256 && has(5) && has(8) && fma && f16c;
  found.avx512 = found.avx2 && saves_512 && has(16) && has(17) && has(30) && has(31);
  if (found.avx512 && subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) found.avx512_bf16 = (a >> 5 & 1) != 0;
  return found;
}
#else
Features detect() {
  Features found;
#if defined(__aarch64__)
  found.neon = true;
#endif
  return found;
}
#endif

bool runs(const std::string_view name, const Features& features) {
  if (name == "sse2") return features.sse2;
  if (name == "avx2") return features.avx2;
  if (name == "avx512") return features.avx512;
  if (name == "neon") return features.neon;
  return name == "generic";
}

tile::Target of_row(const Row& row) {
  tile::Target target;
  target.name = row.name;
  target.vector_bytes = row.vector_bytes;
  target.vector_registers = row.vector_registers;
  target.fma = row.fma;
  target.compiler_flags = row.flags;
  return target;
}

int64_t cache_size(int what, int64_t otherwise) {
  const long size = sysconf(what);
  return size > 0 ? int64_t(size) : otherwise;
}

}  // namespace

tile::Target host_target() {
  const Features features = detect();
  const Row* best = &kRows[0];
  for (const Row& row : kRows) {
    if (runs(row.name, features)) best = &row;
  }
  tile::Target target = of_row(*best);
  if (features.avx512_bf16) {
    target.bf16_dot = true;
    target.compiler_flags += " -mavx512bf16";
  }
  target.l1_bytes = std::clamp<int64_t>(cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), 8 << 10, 1 << 20);
  target.l2_bytes = std::clamp<int64_t>(cache_size(_SC_LEVEL2_CACHE_SIZE, 512 << 10), 64 << 10, 64 << 20);
  return target;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

base::Result<tile::Target> named_target(std::string_view name) {
  if (name == "host") return host_target();
  for (const Row& row : kRows) {
    if (name == row.name) return of_row(row);
  }
  std::string known = "host";
  for (const Row& row : kRows) known += std::string(" ") + row.name;
  return base::invalid("there is no target '" + std::string(name) + "'", {}, "one of " + known);
}

base::Result<void> runs_here(const tile::Target& target) {
  const Features features = detect();
  const bool known = std::any_of(kRows.begin(), kRows.end(), [&](const Row& row) { return target.name == row.name; });
  if (known && runs(target.name, features) && (!target.bf16_dot || features.avx512_bf16)) return {};
  return base::unsupported("this machine cannot run code for the target '" + target.name + "'", {},
                           "its own target is '" + host_target().name + "'");
}

int core_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, int(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace lemma::runtime
