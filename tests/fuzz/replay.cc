// Runs a fuzz target without libFuzzer: on every file of a folder, on every truncation of the small ones, and on
// copies with a few bytes changed. The number that seeds the changes is printed first.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

void run(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

Bytes read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

int replay(const Bytes& seed, std::mt19937_64& draw) {
  int runs = 1;
  run(seed);
  const size_t step = seed.size() / 300 + 1;
  for (size_t length = 0; length < seed.size(); length += step, ++runs) run(Bytes(seed.begin(), seed.begin() + int64_t(length)));
  for (int round = 0; round < 300 && !seed.empty(); ++round, ++runs) {
    Bytes damaged = seed;
    for (uint64_t changes = draw() % 4 + 1; changes > 0; --changes) damaged[draw() % damaged.size()] = uint8_t(draw());
    run(damaged);
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t number = std::random_device{}();
  std::printf("changes are drawn from %llu\n", static_cast<unsigned long long>(number));
  std::fflush(stdout);
  std::mt19937_64 draw(number);
  int files = 0, runs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      ++files;
      runs += replay(read(entry.path()), draw);
    }
  }
  std::printf("%d files, %d runs\n", files, runs);
  return files > 0 ? 0 : 1;
}
