// Tile programs written in C++. It reads like the text and gives the same program:
//
//     Builder b("matmul");
//     const Form M = b.size("M"), N = b.size("N"), K = b.size("K");
//     const Region a = b.input("a", DType::F32, {M, K}), w = b.input("w", DType::F32, {K, N});
//     const Region c = b.output("c", DType::F32, {M, N});
//     b.kernel("main", {{"x", Form::ceil_div(N, 64)}, {"y", Form::ceil_div(M, 64)}}, [&](const Forms& g) {
//       const Region as = b.shared("as", DType::F32, {64, 32}), ws = b.shared("ws", DType::F32, {32, 64});
//       const Region acc = b.fragment("acc", DType::F32, {64, 64}, {}, 0);
//       b.loop("k", b.i64(0), b.ceil_div(b.value(K), 32), [&](const Form& k) {
//         b.copy(part(a, {{g[1]*64, 64}, {k*32, 32}}), as);
//         b.copy(part(w, {{k*32, 32}, {g[0]*64, 64}}), ws);
//         b.gemm(acc, as, ws);
//       }).pipelined(3);
//       b.copy(acc, part(c, {{g[1]*64, 64}, {g[0]*64, 64}}));
//     });
//     base::Result<Program> program = b.finish();
//
// The first mistake is kept and finish() returns it. Regions are made by input, shared ... and part, transposed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/tile/program.h"
#include "lemma/tile/regions.h"

namespace lemma::tile {

using Forms = std::vector<view::Form>;

struct Index {
  std::string name;
  view::Form extent;
};

// One dimension of a part: all of it, a position, or `start +: extent`.
struct Slice {
  Slice() = default;
  Slice(view::Form start) : start(std::move(start)) {}  // NOLINT: a position alone
  Slice(view::Form start, view::Form extent) : start(std::move(start)), extent(std::move(extent)) {}
  std::optional<view::Form> start, extent;
};
inline const Slice all = {};
Region part(const Region& of, const std::vector<Slice>& slices);

// What the last statement may still be told; each returns itself.
class Said {
 public:
  explicit Said(Stmt& stmt) : stmt_(&stmt) {}
  Said& stage(int n) { stmt_->placement.stage = n; return *this; }
  Said& order(int n) { stmt_->placement.order = n; return *this; }
  Said& by(std::string role) { stmt_->placement.role = std::move(role); return *this; }
  Said& async();
  Said& bulk();
  Said& ordered(view::Form by);
  Said& team(Team team);
  Said& step(int64_t n);
  Said& unrolled();
  Said& pipelined(int depth);
  // Over new points: where({{"j", 128}}, [&](const Forms& p) { return Formula::less_equal(...); })
  Said& where(Program& program, const std::vector<Index>& points, const std::function<view::Formula(const Forms&)>& domain);

 private:
  Stmt* stmt_;
};

// Inside a map or a reduce: reads and stores of one point. Reads are numbered in the order in which the values show them.
class Point {
 public:
  Point(Program& program, std::vector<Access>& reads) : program_(program), reads_(reads) {}
  scalar::Expr read(const Region& tile, const Forms& at);
  scalar::Expr value(const view::Form& form) const;   // of an index or a size, as i64
  scalar::Expr f32(double number) const { return scalar::f32(*program_.arena, number); }
  void where(view::Formula domain) { domain_ = std::move(domain); }
  void otherwise(scalar::Expr value) { otherwise_ = value; }      // of every store that has none, cast to its kind
  void store(const Region& tile, const Forms& at, scalar::Expr value);
  void add(const Region& tile, const Forms& at, scalar::Expr value);

 private:
  friend class Builder;
  Program& program_;
  std::vector<Access>& reads_;
  std::vector<Store> stores_;
  view::Formula domain_;
  scalar::Expr otherwise_;
};

class Builder {
 public:
  explicit Builder(std::string name) { program.name = std::move(name); }

  // ---- the program's own lines ----
  view::Form size(std::string name, std::optional<int64_t> typical = {});
  Region input(std::string name, scalar::DType type, Forms extents) { return buffer(Space::Input, std::move(name), type, std::move(extents)); }
  Region output(std::string name, scalar::DType type, Forms extents) { return buffer(Space::Output, std::move(name), type, std::move(extents)); }
  Region update(std::string name, scalar::DType type, Forms extents) { return buffer(Space::Update, std::move(name), type, std::move(extents)); }
  Region scratch(std::string name, scalar::DType type, Forms extents) { return buffer(Space::Scratch, std::move(name), type, std::move(extents)); }
  void kernel(std::string name, const std::vector<Index>& grid, const std::function<void(const Forms&)>& body, KernelHints hints = {});

  // ---- statements of the block under way ----
  Region shared(std::string name, scalar::DType type, Forms extents, BufferHints hints = {}) { return local(Space::Shared, std::move(name), type, std::move(extents), hints, {}); }
  Region fragment(std::string name, scalar::DType type, Forms extents, BufferHints hints = {}, std::optional<double> value = {}) {
    return local(Space::Fragment, std::move(name), type, std::move(extents), hints, value);
  }
  Said copy(const Region& from, const Region& to, double fill = 0);
  Said gemm(const Region& acc, const Region& a, const Region& b);         // acc += a * b
  Said gemm_to(const Region& acc, const Region& a, const Region& b);      // acc = a * b
  Said combine(scalar::Op op, const Region& from, const Region& to);
  Said map(const std::vector<Index>& points, const std::function<void(Point&, const Forms&)>& body);
  // The operand and the state of a fold with one component.
  struct Fold {
    scalar::Expr operand;
    Access state;
  };
  Said reduce(monoid::MonoidRef monoid, const std::vector<Index>& points, const std::vector<Index>& over, bool accumulate,
              const std::function<Fold(Point&, const Forms& points, const Forms& over)>& body);
  Said loop(std::string name, scalar::Expr begin, scalar::Expr end, const std::function<void(const view::Form&)>& body);
  void phase() { add(Phase{}); }

  // ---- values of loops' bounds ----
  scalar::Expr i64(int64_t n) { return scalar::i64(*program.arena, n); }
  scalar::Expr value(const view::Form& form);
  scalar::Expr ceil_div(scalar::Expr a, int64_t b);

  base::Result<Program> finish();

  Program program;

 private:
  Region buffer(Space space, std::string name, scalar::DType type, Forms extents, BufferHints hints = {});
  Region local(Space space, std::string name, scalar::DType type, Forms extents, const BufferHints& hints, std::optional<double> value);
  Forms bind(const std::vector<Index>& indices, std::vector<Range>& out);
  Said add(Stmt stmt);
  scalar::Expr number(double value, scalar::Kind kind);
  template <class T>
  Said keep(base::Result<T> stmt);

  Block* block_ = nullptr;                 // the block under way
  std::optional<base::Diagnostic> error_;  // the first
  Stmt lost_ = Phase{};                    // stands for a statement that was not made
};

}  // namespace lemma::tile
