// The two meanings of the neutral names, of the emulator and of the device, know the same names; and what the device's
// own compiler says to the device's. NVRTC is loaded from the path in LEMMA_NVRTC (libnvrtc.so.12 or later); it needs
// no GPU. Without it those tests are skipped, and say so.

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "emulator/testing.h"
#include "emulator/texts_testing.h"
#include "lemma/emit/prelude_cuda.h"

namespace lemma::emulator {
namespace {

// The words of a text that start with lm_ or LM_ and do not end with an underscore, which marks what is not for use.
std::set<std::string> words(std::string_view text) {
  std::set<std::string> out;
  const auto in_word = [](char c) { return std::isalnum((unsigned char)c) || c == '_'; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    if ((word.starts_with("lm_") || word.starts_with("LM_")) && !word.ends_with("_")) out.emplace(word);
    i = std::max(end, i + 1);
  }
  return out;
}

TEST(Device, BothMeaningsKnowTheSameNames) {
  std::set<std::string> here = words(cuda_headers()), there = words(emit::cuda_prelude());
  for (const char* own : {"LM_EMULATOR", "LM_ENTRY", "lm_emulator_current"}) EXPECT_EQ(here.erase(own), 1u) << own;
  EXPECT_EQ(there.erase("lm_plain"), 1u);
  EXPECT_EQ(here, there);
  EXPECT_GT(here.size(), 60u);
}

// Every piece's first line names what it defines.
TEST(Device, PiecesNameWhatTheyDefine) {
  std::set<std::string> named;
  const std::string_view text = emit::cuda_prelude();
  EXPECT_TRUE(text.starts_with("//: "));
  for (size_t at = text.find("//: "); at != std::string_view::npos; at = text.find("\n//: ", at + 1)) {
    const size_t begin = text[at] == '\n' ? at + 1 : at;
    for (const std::string& word : words(text.substr(begin, text.find('\n', begin) - begin))) {
      EXPECT_TRUE(named.insert(word).second) << word << " is named twice";
    }
  }
  EXPECT_EQ(named, words(text));
}

// Every function once, in a kernel that is compiled and not run.
const char* const kEverything = R"(
LM_DEVICE float twice(float x) { return 2 * x; }
LM_KERNEL(everything, 128) (LM_GLOBAL(const float) b_x, LM_GLOBAL(float) b_y, LM_GLOBAL(int) b_i, LM_GLOBAL(unsigned) b_u,
                            LM_GLOBAL(double) b_d, LM_GLOBAL(lm_bf16) b_b, LM_GLOBAL(lm_f16) b_h, LM_GLOBAL(long long) b_l,
                            LM_GLOBAL(signed char) b_c, LM_GLOBAL(unsigned long long) b_w, long long s_N, float s_scale) {
  LM_SHARED(float, t, 512);
  LM_SHARED(lm_bf16, m, 512);
  LM_SHARED(lm_mbarrier, bars, 2);
  LM_SHARED_POOL(pool);
  const LM_POINTER(float) p = lm_shared_at<float>(pool, 64);
  LM_AT(1); const long long i = ((LM_BLOCK_Z * (long long)LM_GRID_Y + LM_BLOCK_Y) * LM_GRID_X + LM_BLOCK_X) * LM_GRID_Z + LM_TID;
  if (i >= s_N) return;
  float x = twice(b_x[i]) * s_scale, y = -LM_INFINITY;
  p[LM_TID] = x; t[LM_TID] = x; m[LM_TID] = lm_to_bf16(x);
  b_b[i] = lm_to_bf16(x); b_h[i] = lm_to_f16(x); x += lm_to_float((lm_bf16)b_b[i + 1]) + lm_to_float((lm_f16)b_h[i + 1]);
  b_u[i] = lm_to_tf32(x) + lm_pack(lm_to_bf16(x), lm_to_bf16(y)) + lm_pack(lm_to_f16(x), lm_to_f16(y));
  x = lm_bits_float(lm_float_bits(x) ^ 1u); x = lm_fma(lm_max_nan(x, y), lm_min_nan(x, 2), lm_exp2_approx(x));
  lm_vec<float, 4> v = lm_load<4>(b_x, i * 4); v[1] += v[2]; lm_store<4>(b_y, i * 4, v);
  lm_store<8>(b_y, i * 8, lm_load<8>(b_x, i * 8));
  lm_store<8>(b_b, i * 8, lm_load<8>(b_b, i * 8 + 64)); lm_store<4>(b_b, i * 4, lm_load<4>(b_b, i * 4 + 64));
  lm_store<2>(b_b, i * 2, lm_load<2>(b_b, i * 2 + 64)); lm_store<1>(b_b, i, lm_load<1>(b_b, i + 64));
  lm_store<16>(b_c, i * 16, lm_load<16>(b_c, i * 16 + 64)); lm_store<1>(b_c, i, lm_load<1>(b_c, i + 64));
  lm_store<2>(b_d, i * 2, lm_load<2>(b_d, i * 2 + 64));
  x += lm_atomic_add(b_y, 0, x) + lm_atomic_max(b_y, 1, x) + lm_atomic_min(b_y, 2, x) + lm_atomic_exchange(b_y, 3, x);
  x += lm_atomic_add(t, 0, x) + lm_atomic_max(t, 1, x);
  b_d[i] = lm_atomic_add(b_d, 0, 1.0);
  b_l[i] = lm_atomic_add(b_l, 0, 1) + lm_atomic_max(b_l, 1, 5) + lm_atomic_min(b_l, 2, 5);
  b_w[i] = lm_atomic_add(b_w, 0, 1) + lm_atomic_compare(b_w, 1, 2, 3);
  b_i[i] = lm_atomic_add(b_i, 0, 1) + lm_atomic_max(b_i, 1, 2) + lm_atomic_min(b_i, 2, 3) + lm_atomic_or(b_i, 3, 4) +
           lm_atomic_and(b_i, 4, 5) + lm_atomic_xor(b_i, 5, 6) + lm_atomic_exchange(b_i, 6, 7) + lm_atomic_compare(b_i, 7, 8, 9);
  b_u[i] += lm_atomic_add(b_u, 0, 1) + lm_atomic_max(b_u, 1, 2) + lm_atomic_min(b_u, 2, 3) + lm_atomic_or(b_u, 3, 4);
  lm_barrier(); lm_barrier_named(1, 128); lm_barrier_arrive(2, 128); lm_warp_sync(); lm_fence_async();
  x += lm_shuffle(x, 1) + lm_shuffle_xor(x, 2) + lm_shuffle_down(x, 3);
  b_i[i] += lm_shuffle(LM_LANE, 1) + lm_shuffle_xor(LM_LANE, 2) + lm_shuffle_down(LM_LANE, 3) + LM_WARP;
  b_u[i] += lm_shuffle(1u, 1) + lm_shuffle_xor(2u, 2) + lm_shuffle_down(3u, 3);
  b_d[i] += lm_shuffle(1.0, 1) + lm_shuffle_xor(2.0, 2) + lm_shuffle_down(3.0, 3);
  unsigned a[4], b[4];
  float c[4] = {0, 0, 0, 0};
  int n[4] = {0, 0, 0, 0};
  lm_ldmatrix_x1(a, m, LM_LANE * 8); lm_ldmatrix_x2(a + 1, m, LM_LANE * 8); lm_ldmatrix_x4(b, m, LM_LANE * 8);
  a[3] = b[0]; lm_mma_m16n8k16_bf16(c, a, b);
  lm_ldmatrix_x1_trans(a, m, LM_LANE * 8); lm_ldmatrix_x2_trans(a + 1, m, LM_LANE * 8); lm_ldmatrix_x4_trans(b, m, LM_LANE * 8);
  lm_mma_m16n8k16_f16(c, a, b); lm_mma_m16n8k8_tf32(c, a, b); lm_mma_m16n8k32_s8(n, a, b);
  LM_UNROLL for (int k = 0; k < 4; ++k) x += c[k] + n[k];
  LM_UNROLL_4 for (int k = 0; k < s_N; ++k) x += k;
  lm_copy_async<16>(t, LM_TID * 4, b_x, i * 4); lm_copy_async<8>(t, LM_TID * 2, b_x, i * 2, 4); lm_copy_async<4>(t, LM_TID, b_x, i, 0);
  lm_copy_commit(); lm_copy_wait<0>(); lm_copy_wait<1>(); lm_copy_wait_all();
  if (LM_TID == 0) { lm_mbarrier_init(bars, 0, 1); lm_mbarrier_init(bars, 1, 1); }
  lm_barrier();
  if (LM_TID == 0) { lm_mbarrier_arrive_expect(bars, 0, 64); lm_bulk_load(t, 0, b_x, 0, 64, bars, 0); lm_mbarrier_arrive(bars, 1); }
  lm_mbarrier_wait_parity(bars, 0, 0);
  while (!lm_mbarrier_try_wait_parity(bars, 1, 0)) {}
  lm_bulk_store(b_y, 0, t, 0, 64); lm_bulk_commit(); lm_bulk_wait_read<0>(); lm_bulk_wait<0>();
  b_y[i] = x + t[LM_TID];
  b_y[i] -= 1; b_y[i] *= 2; b_y[i] /= 3; b_i[i] %= 7; b_i[i] ^= 3; b_i[i] |= 8; b_i[i] &= 15;
}
)";

TEST(Device, TheEmulatorTakesEveryName) {
  const std::set<std::string> used = words(kEverything);
  for (const std::string& name : words(cuda_headers())) {
    if (name == "LM_EMULATOR" || name == "LM_ENTRY" || name == "lm_emulator_current") continue;
    EXPECT_TRUE(used.contains(name)) << name << " is not in the text that uses everything";
  }
  EXPECT_EQ(build(kEverything).kernels(), std::vector<std::string>{"everything"});
}

// NVRTC by its C interface.
struct Nvrtc {
  void* library = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*cubin_size)(void*, size_t*) = nullptr;
  int (*destroy)(void**) = nullptr;

  static Nvrtc load(const char* path) {
    Nvrtc out;
    out.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!out.library) {
      ADD_FAILURE() << "LEMMA_NVRTC: " << dlerror();
      return out;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(out.library, name));
      EXPECT_NE(function, nullptr) << name;
    };
    find(out.create, "nvrtcCreateProgram");
    find(out.compile, "nvrtcCompileProgram");
    find(out.log_size, "nvrtcGetProgramLogSize");
    find(out.log, "nvrtcGetProgramLog");
    find(out.cubin_size, "nvrtcGetCUBINSize");
    find(out.destroy, "nvrtcDestroyProgram");
    return out;
  }

  // The compiler's words, empty if it took the text in silence.
  std::string objections(const std::string& text, const char* architecture) const {
    const std::string source = std::string(emit::cuda_prelude()) + text;
    void* program = nullptr;
    if (create(&program, source.c_str(), "text", 0, nullptr, nullptr) != 0) return "no program";
    const char* options[] = {architecture};
    const int code = compile(program, 1, options);
    size_t size = 0;
    log_size(program, &size);
    std::string said(size, ' ');
    log(program, said.data());
    said.resize(std::strlen(said.c_str()));
    size_t bytes = 0;
    if (code == 0 && (cubin_size(program, &bytes) != 0 || bytes == 0)) said += "no code came out";
    if (code != 0) said += "code " + std::to_string(code);
    destroy(&program);
    return said;
  }
};

TEST(Device, TheDevicesCompilerTakesEveryName) {
  const char* path = std::getenv("LEMMA_NVRTC");
  if (!path) GTEST_SKIP() << "NOT CHECKED: 9 texts with the device's compiler; set LEMMA_NVRTC to a libnvrtc.so";
  const Nvrtc nvrtc = Nvrtc::load(path);
  ASSERT_NE(nvrtc.library, nullptr);
  EXPECT_EQ(nvrtc.objections(kEverything, "--gpu-architecture=sm_90a"), "");
  for (const char* text : {kAdd, kTranspose, kSum, kHistogram, kMatmul, kDouble, kRing, kStore}) {
    EXPECT_EQ(nvrtc.objections(text, "--gpu-architecture=sm_90a"), "") << text;
  }
  for (const char* text : {kAdd, kTranspose, kSum, kHistogram, kMatmul, kDouble}) {
    EXPECT_EQ(nvrtc.objections(text, "--gpu-architecture=sm_80"), "") << text;
  }
  EXPECT_NE(
      nvrtc.objections("LM_KERNEL(bad, 32) (LM_GLOBAL(float) b_y) { lm_nothing(); }", "--gpu-architecture=sm_90a"), "");
}

}  // namespace
}  // namespace lemma::emulator
