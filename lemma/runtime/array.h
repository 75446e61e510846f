// Typed arrays: what programs take and give, in memory. An Array is a value: an element type, extents, strides in
// elements and shared storage, so that views (transposes, slices, reversals, broadcasts) are arrays too. Elements of
// i4 and u4 are packed two to a byte, low nibble first; offsets and strides count elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/scalar/type.h"

namespace lemma::runtime {

// A block of memory, 64-byte aligned; large blocks ask for huge pages. Fresh bytes are zero.
class Storage {
 public:
  static base::Result<std::shared_ptr<Storage>> allocate(int64_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  Storage(std::byte* data, int64_t bytes, int64_t mapped) : data_(data), bytes_(bytes), mapped_(mapped) {}
  std::byte* data_;
  int64_t bytes_;
  int64_t mapped_;  // what to unmap
};

struct Array {
  scalar::DType type = scalar::DType::F32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;      // elements; negative and zero strides are ordinary
  int64_t offset = 0;                // of element [0, ..., 0], in elements
  std::shared_ptr<Storage> storage;

  int64_t count() const;             // elements, by the extents
  int64_t bytes() const { return scalar::bytes(type, count()); }
  bool contiguous() const;           // row-major without gaps; strides of extents 0 and 1 do not matter
  std::byte* data() const;           // of element [0, ..., 0]; of a packed type, its byte
  // Where the element of this flat row-major index lies, in elements from the storage's begin.
  int64_t position(int64_t flat) const;
};

// "f32[2, 3]".
std::string describe(scalar::DType type, std::span<const int64_t> extents);
std::string describe(const Array& array);

// The product of extents and of an element's size, if neither overflows 63 bits and no extent is negative.
std::optional<int64_t> checked_count(std::span<const int64_t> extents);
std::optional<int64_t> checked_bytes(scalar::DType type, std::span<const int64_t> extents);

std::vector<int64_t> row_major(std::span<const int64_t> extents);

// A contiguous array of zeros. `what` names it in the refusal of a size that memory cannot hold.
base::Result<Array> allocate(scalar::DType type, std::vector<int64_t> extents, const std::string& what = "an array");

// A view of the same storage; refused if any element would lie outside it.
base::Result<Array> view(const Array& array, int64_t offset, std::vector<int64_t> extents,
                         std::vector<int64_t> strides);

// The same values, contiguous; the array itself where it already is.
base::Result<Array> contiguous(const Array& array);

// The same values under another element type: integers wrap, floats round to nearest even, floats to integers
// truncate toward zero and saturate.
base::Result<Array> convert(const Array& array, scalar::DType type);

// One element as a double, or as an integer (bool: 0 or 1; u64 by its bits).
double float_at(const Array& array, int64_t flat);
int64_t int_at(const Array& array, int64_t flat);
void set_float(const Array& array, int64_t flat, double value);
void set_int(const Array& array, int64_t flat, int64_t value);

// Every element nan (floats), or `bits` repeated over all bytes (integers); bools become bits & 1.
void fill_poison(const Array& array, uint8_t bits);

}  // namespace lemma::runtime
