// The meaning of scalar expressions: what the f64 oracle computes.
//
// ops.def states each operation; this is the one place that carries them out, for one point (`evaluate`), for constants
// (`apply`) and for a batch of points at once (`BatchProgram`: straight-line code over columns, about a nanosecond an
// operation and point). Floats are computed in double whatever their kind. In Arithmetic::Single the result of every
// operation of kind F32 is rounded to float, which is exactly f32 arithmetic for + - * / and sqrt.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lemma/scalar/convert.h"
#include "lemma/scalar/expr.h"

namespace lemma::scalar {

enum class Arithmetic : uint8_t { Double, Single };

// The value of one operation over operands of the given kind (which differs from the result's for comparisons, selects
// and conversions: for Select it is the kind of the arms). Not for leaves.
Scalar apply(Op op, Kind kind, Kind operand, int64_t payload, std::span<const Scalar> operands,
             Arithmetic arithmetic = Arithmetic::Double);

// The value of a constant.
Scalar value_of(Expr constant);
// The constant of a value.
Expr constant_of(Arena& arena, Kind kind, Scalar value);

// Values of the leaves at one point; a missing function must not be asked.
struct Leaves {
  std::function<Scalar(int which)> arg;
  std::function<bool(int which)> present;
  std::function<int64_t(int which)> index;
  std::function<int64_t(int which)> size;
};
Scalar evaluate(Expr root, const Leaves& leaves, Arithmetic arithmetic = Arithmetic::Double);

// Leaf values of a batch: one per point, or one for all.
struct Column {
  const Scalar* data = nullptr;
  bool broadcast = false;
};

class BatchProgram {
 public:
  struct Leaf {
    Op op;       // Arg, Present, Index or Size
    int which;
    Kind kind;
    bool operator==(const Leaf&) const = default;
  };

  // Registers of one run; a thread owns one and reuses it for any program.
  class Workspace {
   public:
    Workspace() = default;

   private:
    friend class BatchProgram;
    std::vector<Scalar> values_;
    std::vector<const Scalar*> current_;  // per slot: where its values lie
    std::vector<int> filled_;             // per slot: how many of them are there; 1 stands for "the same everywhere"
  };

  BatchProgram() = default;
  static BatchProgram compile(std::span<const Expr> roots, Arithmetic arithmetic = Arithmetic::Double);

  const std::vector<Leaf>& leaves() const { return leaves_; }  // each once, in order of first use
  size_t root_count() const { return roots_.size(); }
  size_t operation_count() const { return steps_.size(); }

  // Runs over `count` points. `columns` follow leaves(). results[r] receives where root r's values lie: in the
  // workspace, or the caller's own column. A result may be one value for all points (Column::broadcast).
  void run(std::span<const Column> columns, int count, Workspace& workspace, std::span<Column> results) const;

  // out = a op b ... for n points.
  using Kernel = void (*)(Scalar* out, const Scalar* a, const Scalar* b, const Scalar* c, int n, int64_t payload);

 private:
  struct Step {
    Kernel kernel;
    int64_t payload;
    int out;
    int args[3];
    int count;
  };
  struct Constant {
    int slot;
    Scalar value;
  };

  std::vector<Leaf> leaves_;        // leaf i is slot i
  std::vector<Constant> constants_;
  std::vector<Step> steps_;
  std::vector<int> roots_;          // slots
  int slots_ = 0;
};

}  // namespace lemma::scalar
