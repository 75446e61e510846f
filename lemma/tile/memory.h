// The buffers of one interpreted run: an array of values for each, whether each element was ever written, and who
// touched it last, so that blocks in each other's way are found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lemma/scalar/convert.h"
#include "lemma/tile/program.h"

namespace lemma::tile {

// Which stored types lose digits when written. Integers always wrap at their type's width.
enum class Rounding : uint8_t {
  None,    // none: every buffer holds doubles
  Narrow,  // types narrower than f32
  All,     // f32 as well
};

// Who an access stands for: a block of the kernel under way and a point of the statement under way.
struct Toucher {
  int64_t kernel = 0;     // counts kernel launches from 1
  int64_t block = 0;
  int64_t statement = 0;  // counts executions of statements from 1
  int64_t point = 0;
};

enum class Conflict : uint8_t { None, Unwritten, BlockRead, BlockWrite, PointRead, PointWrite };

class Storage {
 public:
  Storage() = default;
  // Elements are unwritten. `global`: blocks are kept apart; else only points of a statement are.
  Storage(scalar::DType type, std::vector<int64_t> extents, bool global);

  scalar::DType type() const { return type_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  int64_t elements() const { return int64_t(values_.size()); }
  void forget();  // unspecified values again

  // Checks and marks; `watch_points`: points of one statement must not meet at an element either.
  Conflict read(int64_t element, const Toucher& who, bool watch_points, scalar::Scalar& value);
  Conflict write(int64_t element, const Toucher& who, bool watch_points, scalar::Scalar value, Rounding rounding);

  // As write, for one of a fold's terms: blocks may meet at such an element, but with nothing else.
  Conflict combine(int64_t element, const Toucher& who, scalar::Scalar value, Rounding rounding);

  // Without checks: to fill from and copy to the caller's arrays.
  void put(int64_t element, scalar::Scalar value);
  bool written(int64_t element) const { return written_[size_t(element)] != 0; }
  scalar::Scalar at(int64_t element) const { return values_[size_t(element)]; }

 private:
  // The last accesses of an element: packed (kernel, block) or (statement, point); 0 for none. A reader of -1 stands
  // for several.
  struct Marks {
    int64_t writer_group = 0, writer = 0;
    int64_t reader_group = 0, reader = 0;
  };
  static bool read_meets(Marks& m, int64_t group, int64_t who);
  static constexpr int64_t kCombined = -2;  // a writer that stands for all blocks that combine
  void keep(int64_t element, scalar::Scalar value, Rounding rounding);
  static int write_meets(Marks& m, int64_t group, int64_t who);  // 0: nobody, 1: a reader, 2: a writer

  scalar::DType type_ = scalar::DType::F32;
  std::vector<int64_t> extents_;
  bool global_ = false;
  std::vector<scalar::Scalar> values_;
  std::vector<char> written_;
  std::vector<Marks> blocks_, points_;  // the second made when first watched
};

}  // namespace lemma::tile
