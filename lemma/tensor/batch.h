// The forward half of the oracle's machinery: walking an iteration space in runs along its innermost index, and reading
// sources for a batch of runs at once. eval.cc folds what comes out.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/scalar/eval.h"
#include "lemma/tensor/graph.h"

namespace lemma::tensor {

// The elements of one value that were computed: slabs over the dimensions that are not fixed (see demand.h).
struct Stored {
  scalar::DType type = scalar::DType::F32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;      // within a slab; 0 along a fixed dimension
  std::vector<int64_t> key_strides;  // 0 along the others
  int64_t slab_size = 1;
  int64_t key_count = 1;             // of possible keys
  std::vector<int32_t> slab_of_key;  // where there are few possible keys; -1: not computed
  std::unordered_map<int64_t, int64_t> slab_of_far_key;
  bool fixed = false;                // whether any dimension is
  std::vector<scalar::Scalar> values;
  std::vector<uint8_t> present;      // empty: all are
  const void* raw = nullptr;         // an input read where it lies: element offsets, strides in `strides`
  int64_t raw_offset = 0;

  int64_t slab(int64_t key) const;   // -1: not computed
  scalar::Scalar load(int64_t offset) const {
    return raw ? scalar::load(type, raw, raw_offset + offset) : values[size_t(offset)];
  }
  bool is_present(int64_t offset) const { return present.empty() || present[size_t(offset)] != 0; }
};

class Batch;

// A form compiled for evaluation at a position: index values and, for Data, the batch's read values.
class Coordinate {
 public:
  Coordinate() = default;
  explicit Coordinate(const view::Form& form);
  // Affine in the indices alone.
  bool is_affine() const { return affine_; }
  int64_t coefficient(int id) const;
  int64_t at(const int64_t* indices) const {  // affine only
    uint64_t sum = uint64_t(constant_);  // wraps rather than overflows
    for (const auto& [id, c] : linear_) sum += uint64_t(c) * uint64_t(indices[id]);
    return int64_t(sum);
  }
  int64_t at(const int64_t* indices, const Batch& batch, int64_t position) const;
  const std::vector<int>& data() const { return data_; }

 private:
  struct Factor {
    view::AtomKind kind;
    int id;  // of a Floor: which
  };
  struct Product {
    int64_t coefficient;
    std::vector<Factor> factors;
  };
  bool affine_ = true;
  int64_t constant_ = 0;
  std::vector<std::pair<int, int64_t>> linear_;
  std::vector<Product> products_;
  std::vector<Coordinate> floors_;  // numerator, denominator, numerator, ...
  std::vector<int> data_;
};

// A formula compiled likewise.
class Condition {
 public:
  Condition() : Condition(view::Formula()) {}
  explicit Condition(const view::Formula& formula);
  bool always() const { return always_; }
  // One case of affine constraints: it trims runs instead of being asked point by point.
  bool trims() const { return trims_; }
  // The part of [low, high) along index `inner` where it holds; `indices` gives the others.
  void trim(int64_t* indices, int inner, int64_t& low, int64_t& high) const;
  enum class Truth : uint8_t { No, Yes, Unknown };  // Unknown: it hangs on a read that was not possible
  Truth at(const int64_t* indices, const Batch& batch, int64_t position) const;
  const std::vector<int>& data() const { return data_; }

 private:
  struct Part {
    Coordinate form;
    bool zero;
  };
  bool always_ = false, trims_ = false;
  std::vector<std::vector<Part>> cases_;
  std::vector<int> data_;
};

// Points of a nest of loops in runs along the innermost.
struct Run {
  int64_t begin = 0;   // in the batch
  int64_t count = 0;
  int64_t first = 0;   // value of the innermost index
  int64_t point = 0;   // which point: slab-major, then row-major over the point loops
  int64_t slab = 0;    // which key
};

struct Space {
  std::vector<int64_t> extents;     // per index
  std::vector<int> fixed;           // indices taken from keys
  std::vector<int64_t> fixed_extents;
  const std::vector<int64_t>* keys = nullptr;
  std::vector<int> loops;           // outermost first
  size_t point_loops = 0;           // how many of them number points
  int reversed = -1;                // an index walked from its end
  Condition trim;                   // where it trims; else ignored
};

class Walker {
 public:
  explicit Walker(const Space& space);
  // The next run, of at most `most` positions; `indices` holds its outer index values. False at the end.
  bool next(int64_t most, Run& run, std::vector<int64_t>& indices);
  int inner() const { return inner_; }
  int64_t inner_step() const { return inner_step_; }
  int64_t point_step() const { return inner_is_point_ ? 1 : 0; }
  int64_t points() const { return points_; }           // of all keys

 private:
  bool advance();      // to the next setting of the outer loops
  void set_outer();
  const Space& space_;
  std::vector<int> outer_;
  std::vector<int64_t> at_, indices_;
  int inner_ = -1;
  int64_t inner_extent_ = 1, inner_step_ = 1, low_ = 0, high_ = 0;
  bool inner_is_point_ = false, done_ = false;
  size_t key_ = 0;
  int64_t points_ = 0, points_per_key_ = 1;
};

// How a node's reads are carried out.
struct ReadPlan {
  std::string name;                 // the source's, for messages
  const Stored* source = nullptr;
  std::vector<Coordinate> coords;
  std::vector<char> proved;         // per dimension: cannot leave the source
  Condition guard;
  bool affine = false;              // all coordinates are
  scalar::Kind kind = scalar::Kind::F32;
};

struct Frame {                      // what messages need
  std::string name;
  std::vector<IndexInfo> indices;
  base::Span span;
};

class Batch {
 public:
  static constexpr int64_t kCapacity = 1024;

  Batch(const Frame& frame, std::vector<ReadPlan> reads, std::vector<int64_t> sizes);

  void start(const Walker& walker);
  void add(const Run& run, const std::vector<int64_t>& indices);
  int64_t size() const { return size_; }
  const std::vector<Run>& runs() const { return runs_; }

  // Marks the positions where `condition` does not hold, carrying out the reads it hangs on.
  base::Result<void> filter(const Condition& condition);
  bool active(int64_t position) const { return mask_.empty() || mask_[size_t(position)] != 0; }
  bool all_active() const { return mask_.empty(); }

  // The leaves' columns for `program`, carrying out its reads at active positions.
  base::Result<void> columns(const scalar::BatchProgram& program, std::vector<scalar::Column>& out);
  base::Result<void> need(int read) { return fill(read, false); }

  scalar::Scalar value(int read, int64_t position) const { return values_[size_t(read)][size_t(position)]; }
  bool is_usable(int read, int64_t position) const { return states_[size_t(read)][size_t(position)] == kRead; }
  bool was_impossible(int read, int64_t position) const {
    return states_[size_t(read)][size_t(position)] == kImpossible;
  }

  // Sets `indices` to the values at a position of a run.
  int64_t* indices_at(const Run& run, int64_t k);
  int64_t inner_step() const { return step_; }
  int inner() const { return inner_; }
  std::string point_text(const Run& run, int64_t k);
  const Frame& frame() const { return frame_; }

 private:
  static constexpr uint8_t kAbsent = 0, kRead = 1, kImpossible = 2;

  base::Result<void> fill(int read, bool tolerant);
  base::Result<void> fill_run(size_t r, const Run& run, bool tolerant);
  bool fill_fast(size_t r, const Run& run);
  base::Diagnostic outside(size_t r, const Run& run, int64_t k, const std::vector<int64_t>& coords);
  base::Diagnostic off_domain(size_t r, const Run& run, int64_t k, const std::vector<int64_t>& coords);

  const Frame& frame_;
  std::vector<ReadPlan> reads_;
  std::vector<scalar::Scalar> sizes_;
  std::vector<Run> runs_;
  std::vector<int64_t> outer_values_;            // per run, per index
  std::vector<int64_t> current_;
  int64_t size_ = 0;
  int inner_ = -1;
  int64_t step_ = 1;
  std::vector<uint8_t> mask_;
  std::vector<std::vector<scalar::Scalar>> values_;
  std::vector<std::vector<uint8_t>> states_;     // per read and position
  std::vector<char> filled_;                     // 1: strictly, 2: tolerantly
  std::vector<std::vector<scalar::Scalar>> index_columns_, present_columns_;
};

}  // namespace lemma::tensor
