// Every interface against the same kernels; one that this machine lacks is skipped, and says so.
#include "lemma/runtime/device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "lemma/runtime/device_testing.h"
#include "lemma/runtime/device_testing_options.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

using device_testing::kThreads;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::string text_of(const base::Diagnostic& diagnostic) { return base::render(diagnostic); }

#define ASSERT_OK(expression) \
  if (const auto ok_ = (expression); !ok_.ok()) FAIL() << base::render(ok_.error())

class Devices : public testing::TestWithParam<Api> {
 protected:
  void SetUp() override {
    options = device_testing::found_tools();
    const DeviceList list = list_devices(options);
    for (const Missing& missing : list.missing) {
      if (missing.api == GetParam()) GTEST_SKIP() << "NOT TESTED: " << missing.reason << "; " << missing.mend;
    }
    for (const DeviceInfo& found : list.devices) {
      if (found.api == GetParam() && found.index == 0) info = found;
    }
    options.validate = GetParam() == Api::Vulkan;
    auto opened = Device::open(info, options);
    if (!opened.ok() && options.validate) {
      std::printf("NOT VALIDATED: %s", text_of(opened.error()).c_str());
      options.validate = false;
      opened = Device::open(info, options);
    }
    ASSERT_OK(opened);
    device = std::make_unique<Device>(*opened);
    auto compiled = device->compile(device_testing::kernels(GetParam()), cache);
    ASSERT_OK(compiled);
    module = *compiled;
  }

  template <class T>
  DeviceBuffer make(const std::vector<T>& values) {
    auto buffer = device->allocate(int64_t(values.size() * sizeof(T)));
    EXPECT_TRUE(buffer.ok()) << text_of(buffer.error());
    const auto written = device->write(*buffer, 0, bytes_of(values));
    EXPECT_TRUE(written.ok()) << text_of(written.error());
    return *buffer;
  }
  // Filled with nan.
  DeviceBuffer make_output(int64_t floats) {
    auto buffer = device->allocate(floats * 4);
    EXPECT_TRUE(buffer.ok()) << text_of(buffer.error());
    const auto filled = device->fill(*buffer, 0xFF);
    EXPECT_TRUE(filled.ok()) << text_of(filled.error());
    return *buffer;
  }
  template <class T>
  std::vector<T> read(const DeviceBuffer& buffer) {
    std::vector<T> out(size_t(buffer.bytes()) / sizeof(T));
    const auto done = device->read(buffer, 0, std::as_writable_bytes(std::span(out)));
    EXPECT_TRUE(done.ok()) << text_of(done.error());
    return out;
  }
  void run(const Launch& launch) {
    const auto done = device->launch(module, launch);
    EXPECT_TRUE(done.ok()) << text_of(done.error());
  }
  std::string refusal(const Launch& launch) {
    const auto done = device->launch(module, launch);
    return done.ok() ? "launched" : done.error().message;
  }
  Launch spin(const DeviceBuffer& x, int64_t rounds) { return {"spin", {1, 1, 1}, kThreads, 0, {{x}}, {rounds}}; }
  bool is(Api api) const { return GetParam() == api; }

  DeviceOptions options;
  DeviceInfo info;
  TemporaryDirectory folder;
  Cache cache{CacheOptions{folder.file("cache"), folder.path()}};
  std::unique_ptr<Device> device;
  DeviceModule module;
};

std::vector<float> ramp(size_t n, float step) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = float(i) * step;
  return out;
}

uint32_t spun(uint32_t value, int64_t rounds) {
  for (int64_t i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u + (value >> 31);
  return value;
}

TEST_P(Devices, AddVectors) {
  const int n = 1000;
  const DeviceBuffer x = make(ramp(n + 24, 1)), y = make(ramp(n + 24, 0.5f)), z = make_output(n + 24);
  run({"add", {16, 1, 1}, kThreads, 0, {{x}, {y}, {z}}, {n}});
  const std::vector<float> out = read<float>(z);
  for (int i = 0; i < n + 24; ++i) {
    if (i < n) {
      ASSERT_EQ(out[size_t(i)], float(i) * 1.5f) << i;
    } else {
      ASSERT_TRUE(std::isnan(out[size_t(i)])) << i;
    }
  }
}

TEST_P(Devices, ShareMemoryInABlock) {
  const int rows = 100, columns = 37;
  const DeviceBuffer x = make(ramp(rows * columns, 1)), y = make_output(rows * columns);
  run({"transpose", {5, 13, 1}, kThreads, 0, {{x}, {y}}, {rows, columns}});
  const std::vector<float> out = read<float>(y);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) ASSERT_EQ(out[size_t(c * rows + r)], float(r * columns + c)) << r << " " << c;
  }
}

TEST_P(Devices, PassScalarsInOrder) {
  std::vector<int32_t> values(kThreads);
  for (size_t i = 0; i < kThreads; ++i) values[i] = int32_t(i) - 7;
  const DeviceBuffer x = make(values);
  run({"affine", {1, 1, 1}, kThreads, 0, {{x}}, {-3, 1000005}});
  const std::vector<int32_t> out = read<int32_t>(x);
  for (size_t i = 0; i < kThreads; ++i) ASSERT_EQ(out[i], values[i] * -3 + 2);
}

TEST_P(Devices, PassWideScalarsOrRefuseThem) {
  const DeviceBuffer x = make(std::vector<int32_t>(kThreads, 0));
  const int64_t wide = int64_t(1) << 40;
  const Launch launch{"affine", {1, 1, 1}, kThreads, 0, {{x}}, {1, wide}};
  if (is(Api::Vulkan) || is(Api::WebGpu)) {
    EXPECT_EQ(refusal(launch), "scalar 1 of affine is 1099511627776, and this interface passes 32 bits");
    EXPECT_EQ(read<int32_t>(x)[0], 0);
  } else {
    run(launch);
    EXPECT_EQ(read<int32_t>(x)[kThreads - 1], int32_t(wide % 1000003));
  }
}

TEST_P(Devices, BeginArgumentsAtOffsets) {
  const int64_t step = std::max<int64_t>(info.offset_alignment, 4), n = 10;
  std::vector<float> values(size_t(3 * step / 4) + n);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  const DeviceBuffer x = make(values), z = make_output(int64_t(values.size()));
  run({"add", {1, 1, 1}, kThreads, 0, {{x, step, n * 4}, {x, 2 * step, n * 4}, {z, step, n * 4}}, {n}});
  const std::vector<float> out = read<float>(z);
  for (int64_t i = 0; i < int64_t(out.size()); ++i) {
    if (i >= step / 4 && i < step / 4 + n) {
      ASSERT_EQ(out[size_t(i)], float(i) + float(i + step / 4)) << i;
    } else {
      ASSERT_TRUE(std::isnan(out[size_t(i)])) << i;
    }
  }
  const std::string too_far = refusal({"add", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z, step, z.bytes()}}, {n}});
  EXPECT_EQ(too_far, "buffer 2 of add covers " + std::to_string(z.bytes()) + " bytes from byte " +
                         std::to_string(step) + ", and the buffer has " + std::to_string(z.bytes()));
  EXPECT_NE(refusal({"add", {1, 1, 1}, kThreads, 0, {{x, -step, 4}, {x}, {z}}, {n}}), "launched");
  if (info.offset_alignment > 1) {
    EXPECT_EQ(refusal({"add", {1, 1, 1}, kThreads, 0, {{x}, {x, 1, 4}, {z}}, {n}}),
              "buffer 1 of add begins at byte 1, and this device wants multiples of " +
                  std::to_string(info.offset_alignment));
  }
}

TEST_P(Devices, LaunchNothingForNoBlocks) {
  const DeviceBuffer x = make(std::vector<float>{1, 2}), z = make_output(2);
  for (const std::array<uint32_t, 3> blocks : {std::array<uint32_t, 3>{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}) {
    run({"add", blocks, kThreads, 0, {{x}, {x}, {z}}, {2}});
  }
  EXPECT_TRUE(std::isnan(read<float>(z)[0]));
  // Buffers of no bytes are there and can be passed.
  const DeviceBuffer none = make(std::vector<float>{});
  EXPECT_EQ(none.bytes(), 0);
  run({"add", {1, 1, 1}, kThreads, 0, {{none}, {none}, {make_output(0)}}, {0}});
  run({"add", {1, 1, 1}, kThreads, 0, {{x, 0, 0}, {x, 0, 0}, {z, 0, 0}}, {0}});
  ASSERT_OK(device->wait());
  EXPECT_TRUE(std::isnan(read<float>(z)[0]));
}

TEST_P(Devices, RepeatTheCompilersWords) {
  const auto refused = device->compile(device_testing::broken(GetParam()), cache);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().failure, base::Failure::Invalid);
  ASSERT_EQ(refused.error().notes.size(), 1u) << text_of(refused.error());
  const std::string& words = refused.error().notes[0].message;
  EXPECT_NE(words.find("missing_name"), std::string::npos) << words;
  EXPECT_NE(words.find(is(Api::Cuda) ? "(3)" : ":3"), std::string::npos) << words;
  // The device works on, and says nothing of it later.
  const DeviceBuffer x = make(std::vector<float>{1}), z = make_output(1);
  run({"add", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1}});
  EXPECT_EQ(read<float>(z)[0], 2);
}

TEST_P(Devices, SayThatMemoryIsOut) {
  const auto none = device->allocate(int64_t(1) << 50);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().failure, base::Failure::System);
  EXPECT_NE(none.error().message.find("1125899906842624"), std::string::npos) << none.error().message;
  EXPECT_EQ(device->allocate(-1).error().message, "a buffer of -1 bytes was asked for");
  EXPECT_TRUE(device->allocate(1 << 20).ok());
  if (is(Api::Cuda)) {  // some of it is always taken
    const auto all = device->allocate(info.memory_bytes);
    ASSERT_FALSE(all.ok());
    EXPECT_NE(all.error().message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << all.error().message;
  }
}

TEST_P(Devices, SayWhatALaunchLacks) {
  const DeviceBuffer x = make(std::vector<float>(kThreads)), z = make_output(kThreads);
  EXPECT_EQ(refusal({"subtract", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1}}),
            "the module has no kernel subtract; it has add, transpose, affine, spin");
  EXPECT_EQ(refusal({"add", {1, 1, 1}, kThreads, 0, {{x}, {z}}, {1}}),
            "kernel add takes 3 buffers and 1 scalar, and is given 2 buffers and 1 scalar");
  EXPECT_EQ(refusal({"add", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {}}),
            "kernel add takes 3 buffers and 1 scalar, and is given 3 buffers and 0 scalars");
  EXPECT_EQ(refusal({"add", {1, 1, 1}, 32, 0, {{x}, {x}, {z}}, {1}}),
            "kernel add is written for blocks of 64 threads and launched with 32");
  if (info.max_blocks[1] != 0 && info.max_blocks[1] < 0xFFFFFFFF) {
    EXPECT_EQ(refusal({"add", {1, uint32_t(info.max_blocks[1]) + 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1}}),
              "kernel add is launched with " + std::to_string(info.max_blocks[1] + 1) +
                  " blocks along axis 1, and the device takes " + std::to_string(info.max_blocks[1]));
  }
  if (!is(Api::Cuda)) {
    EXPECT_EQ(refusal({"add", {1, 1, 1}, kThreads, 16, {{x}, {x}, {z}}, {1}}),
              "kernel add asks for dynamic shared memory, which CUDA alone has");
  }
  EXPECT_EQ(refusal({"add", {1, 1, 1}, kThreads, 0, {{x}, {DeviceBuffer{}}, {z}}, {1}}),
            "buffer 1 of add belongs to another device than " + info.name);
  EXPECT_EQ(device->write(x, 255, bytes_of(std::vector<float>{1})).error().message,
            "a write covers 4 bytes from byte 255, and the buffer has 256");
  EXPECT_TRUE(std::isnan(read<float>(z)[0]));
}

TEST_P(Devices, RefuseEntriesThatTheTextLacks) {
  DeviceSource source = device_testing::kernels(GetParam());
  source.kernels[0].text = 4;
  EXPECT_NE(device->compile(source, cache).error().message.find("kernel add stands in text 4"), std::string::npos);
  if (is(Api::Vulkan) || is(Api::WebGpu)) {
    source = device_testing::kernels(GetParam());
    source.kernels[1].threads = 0;
    EXPECT_EQ(device->compile(source, cache).error().message,
              "kernel transpose does not say how many threads its blocks have, which its text fixes");
  }
  source = device_testing::kernels(GetParam());
  source.kernels[1].name = "add";
  EXPECT_EQ(device->compile(source, cache).error().message, "two kernels are named add");
  source = device_testing::kernels(GetParam());
  if (is(Api::Vulkan)) {  // names are not in GLSL, but the size of blocks is
    source.kernels[0].threads = 128;
    EXPECT_EQ(device->compile(source, cache).error().message,
              "the text of kernel add has blocks of 64 threads, expected 128");
  } else {
    source.kernels[0].name = "subtract";
    const auto refused = device->compile(source, cache);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(text_of(refused.error()).find("subtract"), std::string::npos) << text_of(refused.error());
  }
}

TEST_P(Devices, CompileOnce) {
  if (is(Api::WebGpu)) GTEST_SKIP() << "NOT TESTED: WebGPU gives no compiled objects to keep";
  const CacheCounters before = cache.counters();
  const auto again = device->compile(device_testing::kernels(GetParam()), cache);
  ASSERT_OK(again);
  EXPECT_EQ(cache.counters().compiles, before.compiles);
  EXPECT_GT(cache.counters().hits, before.hits);
  module = *again;
  const DeviceBuffer x = make(std::vector<float>{1}), z = make_output(1);
  run({"add", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1}});
  EXPECT_EQ(read<float>(z)[0], 2);
}

TEST_P(Devices, CompileDamagedEntriesAnew) {
  if (is(Api::WebGpu)) GTEST_SKIP() << "NOT TESTED: WebGPU gives no compiled objects to keep";
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("cache/v1/entries"))) {
    const std::string path = entry.path().string() + "/kernel.so";
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  int notices = 0;
  const auto again =
      device->compile(device_testing::kernels(GetParam()), cache, [&](const std::string&) { ++notices; });
  ASSERT_OK(again);
  EXPECT_EQ(notices, damaged);
  EXPECT_EQ(cache.counters().discarded, damaged);
  module = *again;
  const DeviceBuffer x = make(std::vector<float>{1}), z = make_output(1);
  run({"add", {1, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1}});
  EXPECT_EQ(read<float>(z)[0], 2);
}

TEST_P(Devices, TakeLaunchesOfTwoThreads) {
  std::atomic<int> right{0};
  const auto work = [&](uint32_t seed) {
    for (int round = 0; round < 20; ++round) {
      const DeviceBuffer x = make(std::vector<uint32_t>(kThreads, seed));
      for (int i = 0; i < 5; ++i) run(spin(x, 3));
      right += read<uint32_t>(x)[0] == spun(seed, 15);
    }
  };
  std::thread one(work, 1), two(work, 2);
  one.join();
  two.join();
  EXPECT_EQ(right.load(), 40);
}

TEST_P(Devices, KeepTheOrderOfManyLaunches) {
  const DeviceBuffer x = make(std::vector<uint32_t>(kThreads, 5));
  for (int i = 0; i < 1100; ++i) run(spin(x, 1));  // more than are kept without a wait
  EXPECT_EQ(read<uint32_t>(x)[0], spun(5, 1100));
}

TEST_P(Devices, FreeBuffersOnlyWhenKernelsAreDone) {
  const DeviceBuffer z = make_output(1 << 16);
  {
    const DeviceBuffer slow = make(std::vector<uint32_t>(kThreads, 5));
    run(spin(slow, 20'000'000));
    const DeviceBuffer x = make(ramp(1 << 16, 1));
    run({"add", {1 << 10, 1, 1}, kThreads, 0, {{x}, {x}, {z}}, {1 << 16}});
  }
  const DeviceBuffer other = make(ramp(1 << 16, -1));
  const std::vector<float> out = read<float>(z);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], float(i) * 2);
  EXPECT_EQ(read<float>(other)[7], -7);
}

TEST_P(Devices, GiveUpWaitingAndRecover) {
  options.timeout_seconds = 0.05;
  Device hasty = *Device::open(info, options);
  const DeviceModule compiled = *hasty.compile(device_testing::kernels(GetParam()), cache);
  const DeviceBuffer x = *hasty.allocate(256);
  ASSERT_OK(hasty.fill(x, 1));
  const int64_t rounds = 300'000'000;
  ASSERT_OK(hasty.launch(compiled, spin(x, rounds)));
  const auto start = std::chrono::steady_clock::now();
  const auto waited = hasty.wait();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_FALSE(waited.ok()) << "after " << seconds << " s: lengthen the kernel";
  EXPECT_LT(seconds, 20);  // of a slow machine; that it did not wait for the end is said above
  EXPECT_EQ(waited.error().message, "the device " + info.name + " did not finish within 50 ms");
  // More work behind it; the end of the first is not taken for the end of all.
  ASSERT_OK(hasty.launch(compiled, spin(x, rounds / 2)));
  int tries = 0;
  while (!hasty.wait().ok() && tries < 1000) ++tries;
  std::vector<uint32_t> out(64);
  ASSERT_OK(hasty.read(x, 0, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out[0], spun(0x01010101, rounds + rounds / 2));
}

#ifndef __SANITIZE_ADDRESS__  // what is left behind is a leak
TEST_P(Devices, LeaveHangingKernelsBehind) {
  // How long the kernel takes here, by a tenth of it.
  const auto seconds_since = [](auto start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const DeviceBuffer before = make(std::vector<uint32_t>(kThreads, 5));
  run(spin(before, 1));
  ASSERT_OK(device->wait());
  const auto tenth = std::chrono::steady_clock::now();
  run(spin(before, 100'000'000));
  ASSERT_OK(device->wait());
  const double whole = 10 * seconds_since(tenth);
  options.timeout_seconds = 0.05;
  auto hasty = std::make_unique<Device>(*Device::open(info, options));
  DeviceModule compiled = *hasty->compile(device_testing::kernels(GetParam()), cache);
  DeviceBuffer x = *hasty->allocate(256);
  ASSERT_OK(hasty->launch(compiled, spin(x, 1'000'000'000)));
  const auto start = std::chrono::steady_clock::now();
  hasty.reset();
  x = {};
  compiled = {};
  EXPECT_LT(seconds_since(start), 0.8 * whole);
  const DeviceBuffer y = make(std::vector<uint32_t>(kThreads, 5));
  run(spin(y, 1));
  EXPECT_EQ(read<uint32_t>(y)[0], spun(5, 1));
  std::this_thread::sleep_for(std::chrono::seconds(2));  // so that no driver's thread is at work when the process ends
}
#endif

TEST_P(Devices, MeasureTime) {
  const DeviceBuffer x = make(std::vector<uint32_t>(kThreads, 5));
  const std::vector<Step> one = {{module, spin(x, 1'000'000)}};
  const std::vector<Step> ten(10, one[0]);
  double short_time = 1, long_time = 1;
  for (int round = 0; round < 3; ++round) {
    const auto a = device->time(one), b = device->time(ten);
    ASSERT_OK(a);
    ASSERT_OK(b);
    short_time = std::min(short_time, *a);
    long_time = std::min(long_time, *b);
  }
  EXPECT_EQ(read<uint32_t>(x)[0], spun(5, 33'000'000));
  EXPECT_GT(short_time, 1e-5);
  EXPECT_GT(long_time, short_time);  // how much longer hangs on what else the machine does
  EXPECT_EQ(*device->time({}), 0);
}

TEST_P(Devices, RepeatRecordedLaunches) {
  const DeviceBuffer x = make(std::vector<uint32_t>(kThreads, 5));
  const std::vector<Step> steps = {{module, spin(x, 2)}, {module, spin(x, 3)}};
  const auto graph = device->record(steps);
  ASSERT_OK(graph);
  EXPECT_EQ(read<uint32_t>(x)[0], 5u);  // nothing has run yet
  for (int i = 0; i < 4; ++i) ASSERT_OK(device->launch(*graph));
  EXPECT_EQ(read<uint32_t>(x)[0], spun(5, 20));
  const std::vector<Step> wrong = {{module, {"add", {1, 1, 1}, kThreads, 0, {{x}}, {}}}};
  EXPECT_FALSE(device->record(wrong).ok());
}

TEST_P(Devices, MoveBytesAnywhere) {
  const DeviceBuffer small = make(std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const std::vector<uint8_t> piece = {201, 202, 203};
  ASSERT_OK(device->write(small, 6, bytes_of(piece)));
  EXPECT_EQ(read<uint8_t>(small), (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 201, 202, 203, 9, 10}));
  std::vector<uint8_t> middle(5);
  ASSERT_OK(device->read(small, 3, std::as_writable_bytes(std::span(middle))));
  EXPECT_EQ(middle, (std::vector<uint8_t>{3, 4, 5, 201, 202}));
  ASSERT_OK(device->fill(small, 7));
  EXPECT_EQ(read<uint8_t>(small), std::vector<uint8_t>(11, 7));
  // More than what goes at once.
  std::mt19937 random(1);
  std::vector<uint32_t> large((size_t(20) << 20) / 4 + 3);
  for (uint32_t& value : large) value = random();
  const DeviceBuffer buffer = make(large);
  EXPECT_TRUE(read<uint32_t>(buffer) == large);
}

TEST_P(Devices, UseManyBuffers) {
  std::vector<DeviceBuffer> all;
  for (uint32_t i = 0; i < 300; ++i) all.push_back(make(std::vector<uint32_t>(kThreads + i, i)));
  for (uint32_t i = 0; i < 300; i += 2) all[i] = make(std::vector<uint32_t>(2 * kThreads, i));  // some go, some come
  for (uint32_t i = 0; i < 300; ++i) run(spin(all[i], i));
  for (uint32_t i = 0; i < 300; ++i) {
    const std::vector<uint32_t> out = read<uint32_t>(all[i]);
    ASSERT_EQ(out[0], spun(i, i));
    ASSERT_EQ(out.back(), i);
  }
}

TEST_P(Devices, LeaveInAnyOrder) {
  const DeviceBuffer x = make(std::vector<uint32_t>(kThreads, 5));
  run(spin(x, 1'000'000));
  device.reset();  // before its module and buffers, with a kernel in flight
  Device other = *Device::open(info, options);
  EXPECT_EQ(other.launch(module, spin(x, 1)).error().message, "the module belongs to another device than " + info.name);
  EXPECT_EQ(other.fill(x, 0).error().message, "the buffer belongs to another device than " + info.name);
}

TEST_P(Devices, UseLargeDynamicSharedMemory) {
  if (!is(Api::Cuda)) GTEST_SKIP() << "CUDA alone has it";
  DeviceSource source;
  source.texts = {
      "extern __shared__ float s[];\nextern \"C\" __global__ void k(float* x, long long n) {\n"
      "  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;\n  __syncthreads();\n"
      "  float sum = 0;\n  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += s[n - 1 - i];\n"
      "  atomicAdd(x, sum);\n}\n"};
  source.kernels = {{"k", {Access::ReadWrite}, 1, 0, 0}};
  const auto compiled = device->compile(source, cache);
  ASSERT_OK(compiled);
  const DeviceBuffer x = make(std::vector<float>{0});
  const int64_t n = 1000;
  for (const uint32_t shared : {4096u, 100u << 10, 60u << 10}) {
    ASSERT_OK(device->launch(*compiled, {"k", {1, 1, 1}, 128, shared, {{x}}, {n}}));
  }
  EXPECT_EQ(read<float>(x)[0], 3 * float(n * (n - 1) / 2));
  const auto refused = device->launch(*compiled, {"k", {1, 1, 1}, 128, 10u << 20, {{x}}, {n}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("asks for 10485760 bytes of shared memory"), std::string::npos);
}

TEST_P(Devices, HearTheValidationLayer) {
  if (!is(Api::Vulkan)) GTEST_SKIP() << "Vulkan alone has one";
  if (!options.validate) GTEST_SKIP() << "NOT TESTED: Vulkan's validation layer is not installed";
  DeviceSource source = device_testing::kernels(Api::Vulkan);
  source.kernels.resize(1);
  source.kernels[0].buffers.pop_back();  // the text has one more
  const auto refused = device->compile(source, cache);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the Vulkan validation layer objects");
  EXPECT_NE(refused.error().notes.at(0).message.find("VUID"), std::string::npos);
}

std::string name_of(const testing::TestParamInfo<Api>& param) { return api_name(param.param); }
INSTANTIATE_TEST_SUITE_P(Each, Devices, testing::ValuesIn(kApis), name_of);

}  // namespace
}  // namespace lemma::runtime
