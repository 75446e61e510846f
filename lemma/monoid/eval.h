// What a monoid computes, on values: the oracle's states, and those of whatever checks a monoid.
//
// A state is one flat row of scalars: the components one after another, each row-major over its axes. Floats are
// doubles (Arithmetic::Single rounds the results of F32 operations). Elements are combined in order; a fold of an
// elementwise monoid may regroup them, which associativity allows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lemma/monoid/monoid.h"
#include "lemma/scalar/eval.h"

namespace lemma::monoid {

// Merges two sorted lists of `count` slots, (value, index) each, into the best `count` of both: nan above all, ties by
// the smaller index, missing slots (index -1) last. The results may not alias the operands. precedes() is that order.
struct Slots {
  const scalar::Scalar* values;
  const scalar::Scalar* indices;
};
bool precedes(scalar::Kind kind, bool smallest, scalar::Scalar a, int64_t i, scalar::Scalar b, int64_t j);
void merge_top_k(scalar::Kind kind, int count, bool smallest, Slots left, Slots right, scalar::Scalar* values,
                 scalar::Scalar* indices);

// The value of a size symbol that an axis or an expression uses.
using SizeValues = std::function<int64_t(int size)>;
// The value of an operand at a position (row-major over the axes) of a component.
using OperandAt = std::function<scalar::Scalar(int operand, int component, int64_t position)>;

// Values of consecutive elements that belong to one state.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t state = 0;  // which state they are folded into
};

class Evaluator {
 public:
  explicit Evaluator(MonoidRef monoid, const SizeValues& sizes = {},
                     scalar::Arithmetic arithmetic = scalar::Arithmetic::Double);

  const Monoid& monoid() const { return *monoid_; }
  int64_t state_size() const { return state_size_; }
  int64_t offset(int component) const { return offsets_[size_t(component)]; }
  int64_t count(int component) const { return counts_[size_t(component)]; }  // positions: 1 for a scalar
  const std::vector<int64_t>& axes(int component) const { return axes_[size_t(component)]; }

  void identity(scalar::Scalar* state) const;
  void lift(const OperandAt& operands, scalar::Scalar* state);
  // left = left combined with right.
  void combine(scalar::Scalar* left, const scalar::Scalar* right);
  // One vector a result, row-major over the axes of its components (the longest of them).
  std::vector<std::vector<scalar::Scalar>> finish(const scalar::Scalar* state) const;

  // Monoids whose components are all scalars without inner sums work on columns too: one column a component.
  bool columnar() const { return columnar_; }
  void combine_columns(std::span<const scalar::Column> left, std::span<const scalar::Column> right, int count,
                       std::span<scalar::Scalar* const> out);
  // Folds each segment of `elements` into states[component][segment.state]; no state twice. Destroys `elements`.
  void fold_columns(std::span<scalar::Scalar* const> elements, std::span<const Segment> segments,
                    std::span<scalar::Scalar* const> states);

 private:
  // One Update over every position of its component and inner sums.
  struct Step {
    scalar::BatchProgram program;
    int64_t positions = 0;
    int64_t inner = 1;                             // product of the inner sums
    std::vector<std::vector<int64_t>> read_from;   // per read and position: where in the state
    std::vector<char> read_right;
    std::vector<std::vector<scalar::Scalar>> indices;  // per index: its value at each position
  };

  void compile_step(size_t component, const SizeValues& sizes);
  void fold_plain(size_t component, std::span<const Segment> segments, const scalar::Scalar* elements, scalar::Scalar* states) const;
  void fold_tree(std::span<scalar::Scalar* const> elements, std::vector<Segment> segments,
                 std::span<scalar::Scalar* const> states);

  MonoidRef monoid_;
  SizeValues sizes_;
  scalar::Arithmetic arithmetic_;
  std::vector<std::vector<int64_t>> axes_;
  std::vector<int64_t> offsets_, counts_;
  int64_t state_size_ = 0;
  std::vector<scalar::Scalar> identity_;
  bool columnar_ = false;
  std::vector<scalar::Op> plain_;                  // per component its one operation; empty if one is not that plain
  scalar::BatchProgram columns_;                   // Arg(c) = left, Arg(n + c) = right
  std::vector<Step> steps_;
  scalar::BatchProgram::Workspace workspace_;
  std::vector<scalar::Scalar> scratch_;
  std::vector<std::vector<scalar::Scalar>> gathered_, tree_;
};

}  // namespace lemma::monoid
