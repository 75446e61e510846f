#include "lemma/runtime/random.h"

#include <algorithm>
#include <vector>

namespace lemma::runtime {
namespace {

IntegerRange default_range(scalar::DType type) {
  if (type == scalar::DType::Bool) return {0, 2};
  return scalar::is_signed(scalar::kind_of(type)) ? IntegerRange{-8, 8} : IntegerRange{0, 16};
}

template <class Read, class Write>
void sort_rows(const Array& array, Read read, Write write) {
  const int64_t width = array.extents.empty() ? 1 : array.extents.back();
  std::vector<decltype(read(array, 0))> row(static_cast<size_t>(width));
  for (int64_t begin = 0; begin < array.count(); begin += width) {
    for (int64_t i = 0; i < width; ++i) row[size_t(i)] = read(array, begin + i);
    std::sort(row.begin(), row.end());
    for (int64_t i = 0; i < width; ++i) write(array, begin + i, row[size_t(i)]);
  }
}

}  // namespace

uint64_t seed_of(uint64_t seed, std::string_view name) {
  uint64_t fnv = 0xcbf29ce484222325ull;
  for (const char c : name) fnv = (fnv ^ uint64_t(static_cast<unsigned char>(c))) * 0x100000001b3ull;
  return hash(seed, fnv);
}

base::Result<void> fill_random(const Array& array, uint64_t seed, std::optional<IntegerRange> range, bool sorted) {
  const int64_t count = array.count();
  if (scalar::is_float(array.type)) {
    for (int64_t i = 0; i < count; ++i) set_float(array, i, uniform(seed, uint64_t(i)));
    if (sorted) sort_rows(array, float_at, set_float);
    return {};
  }
  const IntegerRange stated = range.value_or(default_range(array.type));
  if (count > 0 && stated.high <= stated.low) {
    return base::invalid("the range " + std::to_string(stated.low) + ".." + std::to_string(stated.high) +
                         " holds no integer to draw");
  }
  const uint64_t width = uint64_t(stated.high) - uint64_t(stated.low);
  for (int64_t i = 0; i < count; ++i) set_int(array, i, stated.low + integer(seed, width, uint64_t(i)));
  if (sorted) sort_rows(array, int_at, set_int);
  return {};
}

}  // namespace lemma::runtime
