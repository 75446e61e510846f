// What every contestant of a benchmark speaks, over its standard input and output, so that a driver (run.py) can
// interleave one timed repetition of each. A request is one line, and so is its answer:
//
//     time matmul variant=openblas m=1024 n=1024 k=1024 threads=1 span=0.05    ->  seconds 0.0112 calls 5
//     digest matmul variant=openblas m=1024 n=1024 k=1024 threads=1            ->  digest 1048576 sum l1 e0 e1 e2 e3
//     (anything that fails)                                                    ->  error what went wrong
//
// `time` prepares the job once (allocation, packing, code generation: not timed), calls it once unmeasured, then calls it
// until `span` seconds have passed and answers the mean seconds of a call. Inputs are a hash of (seed, flat index), so
// that all contestants compute the same thing and digests can be compared.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace lemma::bench {

struct Request {
  std::string work;
  std::map<std::string, std::string> options;

  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  }
  int64_t size(const std::string& name, int64_t otherwise = 0) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : std::atoll(found->second.c_str());
  }
  int threads() const { return int(size("threads", 1)); }
  bool bf16() const { return text("type", "f32") == "bf16"; }
};

// One piece of work, ready to be called again and again; `result` gives the last call's output as f32.
struct Job {
  std::function<void()> call;
  std::function<std::vector<float>()> result;
  std::string error;  // set instead: this contestant cannot do it, and why
};

// 64 bits from a seed and an index (splitmix64's finaliser).
inline uint64_t hash(uint64_t seed, uint64_t index) {
  uint64_t z = index + seed * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// A multiple of 2^-23 in [-1, 1).
inline float uniform(uint64_t seed, uint64_t index) {
  return float(int64_t(hash(seed, index) >> 40)) * 0x1p-23f - 1.0f;
}

inline uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline float from_bf16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

// Memory aligned to a page, kept for the life of a job.
struct Buffer {
  std::shared_ptr<void> memory;
  size_t bytes = 0;

  explicit Buffer(size_t size = 0) : bytes(size) {
    const size_t padded = (size + 4095) / 4096 * 4096 + 4096;
    memory = std::shared_ptr<void>(std::aligned_alloc(4096, padded), std::free);
    std::memset(memory.get(), 0, padded);
  }
  float* f32() const { return static_cast<float*>(memory.get()); }
  uint16_t* bf16() const { return static_cast<uint16_t*>(memory.get()); }
};

// `count` values scale * uniform(seed, i), stored as f32 or bf16.
inline Buffer random_values(uint64_t seed, int64_t count, bool bf16, float scale = 1.0f) {
  Buffer buffer(size_t(count) * (bf16 ? 2 : 4));
  for (int64_t i = 0; i < count; ++i) {
    const float value = scale * uniform(seed, uint64_t(i));
    if (bf16) {
      buffer.bf16()[i] = to_bf16(value);
    } else {
      buffer.f32()[i] = value;
    }
  }
  return buffer;
}

inline std::vector<float> as_f32(const Buffer& buffer, int64_t count, bool bf16) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[size_t(i)] = bf16 ? from_bf16(buffer.bf16()[i]) : buffer.f32()[i];
  return values;
}

inline std::string digest(const std::vector<float>& values) {
  double sum = 0, l1 = 0;
  for (float value : values) {
    sum += value;
    l1 += std::fabs(value);
  }
  const size_t count = values.size();
  std::string text = "digest " + std::to_string(count);
  char number[40];
  const auto add = [&](double value) {
    std::snprintf(number, sizeof number, " %.9g", value);
    text += number;
  };
  add(sum);
  add(l1);
  for (size_t i = 0; count && i < 4; ++i) add(values[i == 3 ? count - 1 : i * count / 3]);
  return text;
}

inline std::string time_calls(const Job& job, double span) {
  using Clock = std::chrono::steady_clock;
  job.call();
  int calls = 0;
  double seconds = 0;
  const auto start = Clock::now();
  do {
    job.call();
    ++calls;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  } while (seconds < span);
  char text[80];
  std::snprintf(text, sizeof text, "seconds %.9g calls %d", seconds / calls, calls);
  return text;
}

// Answers requests until the input ends. `make` prepares a job; the last one is kept.
inline int serve(const std::function<Job(const Request&)>& make) {
  std::string line, current;
  Job job;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb, word;
    Request request;
    words >> verb >> request.work;
    while (words >> word) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) request.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const double span = std::atof(request.text("span", "0.05").c_str());
    request.options.erase("span");
    std::string key = request.work;
    for (const auto& [name, value] : request.options) key += " " + name + "=" + value;
    if (key != current) {
      job = Job{};
      job = make(request);
      current = key;
    }
    std::string answer;
    if (!job.call) {
      answer = "error " + (job.error.empty() ? "no such work or variant: " + key : job.error);
    } else if (verb == "time") {
      answer = time_calls(job, span);
    } else if (verb == "digest") {
      job.call();
      answer = digest(job.result());
    } else {
      answer = "error no verb " + verb;
    }
    std::cout << answer << std::endl;
  }
  return 0;
}

}  // namespace lemma::bench
