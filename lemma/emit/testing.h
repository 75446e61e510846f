// For tests: building tile programs by hand, compiling what is emitted for them, running it between guard bands.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lemma/emit/c.h"
#include "lemma/tile/program.h"

namespace lemma::emit::testing {

// A target and the flags that go with it.
struct Build {
  std::string name;
  tile::Target target;
  std::string compiler = "gcc";
  std::string flags;
};
Build scalar_build();
Build sse2_build();
Build avx2_build();
Build avx512_build();
// The builds that this machine can run, gcc and clang, scalar fallback included.
std::vector<Build> native_builds();

// Grows a program; f(v) and s(n) are the forms of variables and sizes.
struct Builder {
  tile::Program program;
  Builder() { program.name = "test"; }
  int size(const std::string& name);
  tile::Var var(const std::string& name);
  int buffer(const std::string& name, tile::Space space, scalar::DType type, std::vector<view::Form> extents);
  tile::Kernel& kernel(const std::string& name = "main");
  scalar::Arena& arena() { return *program.arena; }
};
inline view::Form f(tile::Var v) { return view::Form::index(v); }
inline view::Form s(int size) { return view::Form::size(size); }

class Unit {
 public:
  // Compiles and loads; a failure holds the compiler's words.
  static std::unique_ptr<Unit> load(const tile::Program& program, const Build& build, std::string& failure,
                                    bool openmp = false);
  ~Unit();
  // The code lemma_run gives. Buffers are used as they are.
  int run(const std::vector<int64_t>& sizes, const std::vector<void*>& buffers, int threads = 1) const;
  std::string message(int code) const;
  const std::string& source() const { return source_; }

 private:
  Unit() = default;
  void* handle_ = nullptr;
  std::string source_;
};

// Bytes that end at a page nobody may touch (and begin after one, up to alignment), filled with 0xff.
class Guarded {
 public:
  explicit Guarded(int64_t bytes);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  void* data() const { return data_; }
  template <class T> T* as() const { return static_cast<T*>(data_); }

 private:
  char* base_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;
};

monoid::MonoidRef sum(scalar::Kind kind);
monoid::MonoidRef maximum();               // of f32
monoid::MonoidRef arg_maximum();           // of (f32, i64)
monoid::MonoidRef rescaled_sum(int sums, double scale);
monoid::MonoidRef top_k(int count, bool smallest);
monoid::MonoidRef affine();                // scan of h -> a h + b
monoid::MonoidRef matrix_product(int n);   // states A[n][n]: combine[i,k] = sum l y[i,l] x[l,k]; operand scales the unit

// For parameters of suites.
inline std::string build_name(const ::testing::TestParamInfo<Build>& info) {
  std::string out;
  for (char c : info.param.name) out += c == ' ' ? '_' : c;
  return out;
}

// The compiled program; nothing, and a failure of the test, if it does not compile.
inline std::unique_ptr<Unit> load(const Builder& b, const Build& build, bool openmp = false) {
  std::string failure;
  auto unit = Unit::load(b.program, build, failure, openmp);
  EXPECT_TRUE(unit != nullptr) << build.name << ": " << failure;
  return unit;
}

}  // namespace lemma::emit::testing
