#include "lemma/emit/testing.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "lemma/base/check.h"

namespace lemma::emit::testing {

using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using view::Form;

Build scalar_build() {
  Build b{"scalar", {}, "gcc", "-DLEMMA_SCALAR"};
  b.target.name = "avx2";
  b.target.vector_bytes = 32;
  return b;
}
Build sse2_build() {
  Build b{"sse2", {}, "gcc", ""};
  b.target.name = "sse2";
  b.target.vector_bytes = 16;
  return b;
}
Build avx2_build() {
  Build b{"avx2", {}, "gcc", "-mavx2 -mfma -mf16c"};
  b.target.name = "avx2";
  b.target.vector_bytes = 32;
  b.target.fma = true;
  return b;
}
Build avx512_build() {
  Build b{"avx512", {}, "gcc", "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma -mf16c"};
  b.target.name = "avx512";
  b.target.vector_bytes = 64;
  b.target.vector_registers = 32;
  b.target.fma = true;
  b.target.bf16_dot = true;
  return b;
}

std::vector<Build> native_builds() {
  std::vector<Build> out;
  Build plain{"one lane", {}, "gcc", ""};
  plain.target.vector_bytes = 4;
  out.push_back(plain);
  out.push_back(scalar_build());
#if defined(__x86_64__)
  out.push_back(sse2_build());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(avx2_build());
  Build sixteen = avx512_build();  // its sixteen lanes in narrower registers, for machines without
  sixteen.name = "sixteen";
  sixteen.flags = "-DLEMMA_WIDE";
  out.push_back(sixteen);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bf16")) {
    out.push_back(avx512_build());
  }
#endif
  if (std::system("clang --version > /dev/null 2>&1") == 0) {
    for (size_t i = 1, n = out.size(); i < n; ++i) {
      Build b = out[i];
      b.name += " clang";
      b.compiler = "clang";
      out.push_back(b);
    }
  }
  return out;
}

int Builder::size(const std::string& name) {
  program.sizes.push_back({name, {}});
  return int(program.sizes.size()) - 1;
}
tile::Var Builder::var(const std::string& name) {
  program.variables.push_back(name);
  return int(program.variables.size()) - 1;
}
int Builder::buffer(const std::string& name, tile::Space space, scalar::DType type, std::vector<Form> extents) {
  tile::Buffer b;
  b.name = name;
  b.space = space;
  b.type = type;
  b.extents = std::move(extents);
  program.buffers.push_back(b);
  return int(program.buffers.size()) - 1;
}
tile::Kernel& Builder::kernel(const std::string& name) {
  program.kernels.push_back({name, {}, {}, {}});
  return program.kernels.back();
}

namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::unique_ptr<Unit> Unit::load(const tile::Program& program, const Build& build, std::string& failure, bool openmp) {
  COptions options;
  options.target = build.target;
  options.openmp = openmp;
  auto text = emit_c(program, options);
  if (!text.ok()) {
    failure = text.error().message;
    return nullptr;
  }
  char folder[] = "/tmp/lemma_emit_XXXXXX";
  LEMMA_CHECK(mkdtemp(folder) != nullptr, "no temporary folder");
  const std::string stem = std::string(folder) + "/unit";
  std::ofstream(stem + ".c") << *text;
  const std::string flags = "-std=gnu99 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -fPIC -shared -Wall -Wextra "
                            "-Werror -Wno-psabi " + std::string(openmp ? "-fopenmp " : "") + build.flags;
  const std::string command = build.compiler + " " + flags + " " + stem + ".c -o " + stem + ".so -lm 2> " + stem + ".log";
  const int status = std::system(command.c_str());
  if (status != 0) failure = read_file(stem + ".log") + "\n" + *text;
  std::unique_ptr<Unit> unit;
  if (status == 0) {
    unit.reset(new Unit);
    unit->source_ = *text;
    unit->handle_ = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!unit->handle_) {
      failure = dlerror();
      unit.reset();
    }
  }
  if (!std::getenv("LEMMA_KEEP")) {
    for (const char* end : {".c", ".so", ".log"}) std::remove((stem + end).c_str());
    rmdir(folder);
  }
  return unit;
}

Unit::~Unit() {
  if (handle_) dlclose(handle_);
}

int Unit::run(const std::vector<int64_t>& sizes, const std::vector<void*>& buffers, int threads) const {
  using Run = int32_t (*)(const int64_t*, void* const*, void*, int32_t);
  using Workspace = int64_t (*)(const int64_t*, int32_t);
  const auto run = reinterpret_cast<Run>(dlsym(handle_, "lemma_run"));
  const auto workspace = reinterpret_cast<Workspace>(dlsym(handle_, "lemma_workspace"));
  const int64_t bytes = workspace(sizes.data(), threads);
  void* space = std::aligned_alloc(64, size_t(bytes + 128) / 64 * 64);
  std::memset(space, 0xff, size_t(bytes + 128) / 64 * 64);
  const int code = run(sizes.data(), buffers.data(), space, threads);
  std::free(space);
  return code;
}

std::string Unit::message(int code) const {
  const auto message = reinterpret_cast<const char* (*)(int32_t)>(dlsym(handle_, "lemma_message"));
  const char* text = message(code);
  return text ? text : "";
}

Guarded::Guarded(int64_t bytes) {
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  const size_t body = (size_t(bytes) + page - 1) / page * page;
  mapped_ = body + 2 * page;
  base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(base_, 0xff, mapped_);
  data_ = base_ + page + body - size_t(bytes);
  mprotect(base_, page, PROT_NONE);
  mprotect(base_ + page + body, page, PROT_NONE);
}

Guarded::~Guarded() { munmap(base_, mapped_); }

// ---- Monoids ----

namespace {

std::shared_ptr<monoid::Monoid> start(const std::string& name, monoid::Structure structure) {
  auto m = std::make_shared<monoid::Monoid>();
  m->name = name;
  m->arena = std::make_shared<scalar::Arena>();
  m->structure = structure;
  return m;
}

const double kInfinity = std::numeric_limits<double>::infinity();

monoid::Update update(std::vector<monoid::StateRead> reads, Expr body) {
  monoid::Update u;
  u.reads = std::move(reads);
  u.body = body;
  return u;
}

monoid::MonoidRef simple(const std::string& name, Kind kind, Op op, Expr identity, std::shared_ptr<monoid::Monoid> m) {
  m->name = name;
  m->operands = {kind};
  m->components = {{name, kind, {}}};
  m->identity = {identity};
  m->lift = {scalar::arg(*m->arena, kind, 0)};
  m->combine = {update({{false, 0, {}}, {true, 0, {}}},
                       scalar::binary(op, scalar::arg(*m->arena, kind, 0), scalar::arg(*m->arena, kind, 1)))};
  m->commutative = true;
  return m;
}

}  // namespace

monoid::MonoidRef sum(Kind kind) {
  auto m = start("sum", monoid::Structure::Elementwise);
  return simple("sum", kind, Op::Add, scalar::constant(*m->arena, kind, 0), m);
}
monoid::MonoidRef maximum() {
  auto m = start("max", monoid::Structure::Elementwise);
  return simple("max", Kind::F32, Op::Max, scalar::f32(*m->arena, -kInfinity), m);
}

monoid::MonoidRef arg_maximum() {
  auto m = start("argmax", monoid::Structure::Elementwise);
  scalar::Arena& a = *m->arena;
  m->operands = {Kind::F32, Kind::I64};
  m->components = {{"value", Kind::F32, {}}, {"index", Kind::I64, {}}};
  m->identity = {scalar::f32(a, -kInfinity), scalar::i64(a, -1)};
  m->lift = {scalar::arg(a, Kind::F32, 0), scalar::arg(a, Kind::I64, 1)};
  const std::vector<monoid::StateRead> reads = {{false, 0, {}}, {false, 1, {}}, {true, 0, {}}, {true, 1, {}}};
  const Expr xv = scalar::arg(a, Kind::F32, 0), xi = scalar::arg(a, Kind::I64, 1);
  const Expr yv = scalar::arg(a, Kind::F32, 2), yi = scalar::arg(a, Kind::I64, 3);
  // y wins if x is missing, or y is better, or it is equal and earlier; the first nan is best.
  const Expr x_nan = scalar::binary(Op::Ne, xv, xv), y_nan = scalar::binary(Op::Ne, yv, yv);
  const Expr none = scalar::binary(Op::Lt, xi, scalar::i64(a, 0)), some = scalar::binary(Op::Le, scalar::i64(a, 0), yi);
  const Expr earlier = scalar::binary(Op::Lt, yi, xi);
  const Expr both = scalar::binary(Op::And, x_nan, y_nan);
  Expr better = scalar::binary(Op::Lt, xv, yv);
  better = scalar::binary(Op::Or, better, scalar::binary(Op::And, scalar::binary(Op::Eq, xv, yv), earlier));
  better = scalar::binary(Op::Or, better, scalar::binary(Op::And, y_nan, scalar::unary(Op::Not, x_nan)));
  better = scalar::binary(Op::Or, better, scalar::binary(Op::And, both, earlier));
  const Expr wins = scalar::binary(Op::And, some, scalar::binary(Op::Or, none, better));
  m->combine = {update(reads, scalar::select(wins, yv, xv)), update(reads, scalar::select(wins, yi, xi))};
  m->commutative = true;
  return m;
}

monoid::MonoidRef rescaled_sum(int sums, double scale) {
  auto m = start("rescaled_sum", monoid::Structure::RescaledSum);
  scalar::Arena& a = *m->arena;
  m->scale = scale;
  const Expr s = scalar::arg(a, Kind::F32, 0), low = scalar::f32(a, -kInfinity), c = scalar::f32(a, scale);
  const Expr absent = scalar::binary(Op::Eq, s, low);
  m->operands = {Kind::F32};
  m->components = {{"m", Kind::F32, {}}};
  m->identity = {low};
  m->lift = {s};
  const Expr x = scalar::arg(a, Kind::F32, 0), y = scalar::arg(a, Kind::F32, 1);
  m->combine = {update({{false, 0, {}}, {true, 0, {}}}, scalar::max(x, y))};
  const Expr top = scalar::max(x, y), one = scalar::f32(a, 1);
  const auto factor = [&](Expr side) {
    return scalar::select(scalar::binary(Op::Eq, side, top), one, scalar::exp(c * (side - top)));
  };
  for (int i = 0; i < sums; ++i) {
    m->operands.push_back(Kind::F32);
    m->components.push_back({"a" + std::to_string(i), Kind::F32, {}});
    m->identity.push_back(scalar::f32(a, 0));
    m->lift.push_back(scalar::select(absent, scalar::f32(a, 0), scalar::exp(c * (s - s)) * scalar::arg(a, Kind::F32, i + 1)));
    m->combine.push_back(update({{false, 0, {}}, {true, 0, {}}, {false, i + 1, {}}, {true, i + 1, {}}},
                                scalar::arg(a, Kind::F32, 2) * factor(x) + scalar::arg(a, Kind::F32, 3) * factor(y)));
  }
  m->commutative = true;
  return m;
}

monoid::MonoidRef top_k(int count, bool smallest) {
  auto m = start("topk", monoid::Structure::TopK);
  scalar::Arena& a = *m->arena;
  m->operands = {Kind::F32, Kind::I64};
  m->components = {{"value", Kind::F32, {count}}, {"index", Kind::I64, {count}}};
  m->identity = {scalar::f32(a, smallest ? kInfinity : -kInfinity), scalar::i64(a, -1)};
  m->count = count;
  m->smallest = smallest;
  m->commutative = true;
  return m;
}

monoid::MonoidRef affine() {
  auto m = start("affine", monoid::Structure::Elementwise);
  scalar::Arena& a = *m->arena;
  m->operands = {Kind::F32, Kind::F32};
  m->components = {{"a", Kind::F32, {}}, {"b", Kind::F32, {}}};
  m->identity = {scalar::f32(a, 1), scalar::f32(a, 0)};
  m->lift = {scalar::arg(a, Kind::F32, 0), scalar::arg(a, Kind::F32, 1)};
  const Expr p = scalar::arg(a, Kind::F32, 0), q = scalar::arg(a, Kind::F32, 1), r = scalar::arg(a, Kind::F32, 2);
  m->combine = {update({{false, 0, {}}, {true, 0, {}}}, p * q),
                update({{false, 1, {}}, {true, 0, {}}, {true, 1, {}}}, q * p + r)};
  return m;
}

monoid::MonoidRef matrix_product(int n) {
  auto m = start("matrix_product", monoid::Structure::General);
  scalar::Arena& a = *m->arena;
  m->operands = {Kind::F32};
  m->components = {{"a", Kind::F32, {n, n}}};
  const Expr diagonal = scalar::binary(Op::Eq, scalar::index(a, 0), scalar::index(a, 1));
  m->identity = {scalar::select(diagonal, scalar::f32(a, 1), scalar::f32(a, 0))};
  // element: unit matrix plus the operand in the corner above the diagonal: [i, j] = x where j == i + 1
  const Expr above = scalar::binary(Op::Eq, scalar::index(a, 0) + scalar::i64(a, 1), scalar::index(a, 1));
  m->lift = {scalar::select(diagonal, scalar::arg(a, Kind::F32, 0), scalar::select(above, scalar::f32(a, 1), scalar::f32(a, 0)))};
  monoid::Update u;
  u.sums = {n};
  u.reads = {{true, 0, {Form::index(0), Form::index(2)}}, {false, 0, {Form::index(2), Form::index(1)}}};
  u.body = scalar::arg(a, Kind::F32, 0) * scalar::arg(a, Kind::F32, 1);
  m->combine = {u};
  return m;
}

}  // namespace lemma::emit::testing
