#include "lemma/runtime/array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <cstdlib>
#include <limits>

#include "lemma/scalar/convert.h"

namespace lemma::runtime {
namespace {

constexpr int64_t kHugePage = int64_t(2) << 20;

int64_t physical_memory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages * size : std::numeric_limits<int64_t>::max();
}

bool packed(scalar::DType type) { return scalar::bits(type) < 8; }

// Copies one element between arrays of one type.
void copy_element(const Array& from, int64_t a, const Array& to, int64_t b) {
  const std::byte* source = from.storage->data();
  std::byte* target = to.storage->data();
  if (!packed(from.type)) {
    const int64_t size = scalar::bits(from.type) / 8;
    std::memcpy(target + b * size, source + a * size, size_t(size));
    return;
  }
  const std::byte nibble = (source[a / 2] >> (a % 2 * 4)) & std::byte{15};
  std::byte& out = target[b / 2];
  out = (out & ~(std::byte{15} << (b % 2 * 4))) | (nibble << (b % 2 * 4));
}

// A float as an integer type's value: toward zero, saturating at the type's own ends, nan gives 0.
int64_t narrow_integer(scalar::DType type, double value) {
  const scalar::Kind kind = scalar::kind_of(type);
  if (kind == scalar::Kind::Bool || scalar::bits(type) >= 32) return scalar::truncated(kind, value);
  const int64_t span = int64_t(1) << scalar::bits(type);
  const int64_t low = scalar::is_signed(kind) ? -span / 2 : 0;
  return std::clamp<int64_t>(scalar::truncated(scalar::Kind::I64, value), low, low + span - 1);
}

// Calls f(flat, position) for every element in row-major order.
template <class F>
void for_each_position(const Array& array, F f) {
  const int64_t count = array.count();
  std::vector<int64_t> index(array.extents.size(), 0);
  int64_t position = array.offset;
  for (int64_t flat = 0; flat < count; ++flat) {
    f(flat, position);
    for (size_t d = index.size(); d-- > 0;) {
      position += array.strides[d];
      if (++index[d] < array.extents[d]) break;
      position -= array.strides[d] * array.extents[d];
      index[d] = 0;
    }
  }
}

}  // namespace

base::Result<std::shared_ptr<Storage>> Storage::allocate(int64_t bytes) {
  const int64_t limit = physical_memory();
  if (bytes > limit) {
    return base::system_failure("needs " + std::to_string(bytes) + " bytes, and the machine has " +
                                std::to_string(limit));
  }
  const bool large = bytes >= kHugePage;
  const int64_t unit = large ? kHugePage : 64;
  const int64_t mapped = (std::max<int64_t>(bytes, 1) + unit - 1) / unit * unit;
  void* data = nullptr;
  if (large) {
    // Over-mapped by one huge page so that the block can begin on one.
    void* raw = mmap(nullptr, size_t(mapped + kHugePage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return base::system_failure("memory for " + std::to_string(bytes) + " bytes was refused");
    const uintptr_t begin = reinterpret_cast<uintptr_t>(raw);
    const uintptr_t aligned = (begin + uintptr_t(kHugePage) - 1) / uintptr_t(kHugePage) * uintptr_t(kHugePage);
    if (aligned > begin) munmap(raw, aligned - begin);
    const uintptr_t end = begin + uintptr_t(mapped + kHugePage);
    const uintptr_t wanted = aligned + uintptr_t(mapped);
    if (end > wanted) munmap(reinterpret_cast<void*>(wanted), end - wanted);
    data = reinterpret_cast<void*>(aligned);
    madvise(data, size_t(mapped), MADV_HUGEPAGE);
  } else {
    data = std::aligned_alloc(64, size_t(mapped));
    if (!data) return base::system_failure("memory for " + std::to_string(bytes) + " bytes was refused");
    std::memset(data, 0, size_t(mapped));
  }
  return std::shared_ptr<Storage>(new Storage(static_cast<std::byte*>(data), bytes, large ? mapped : 0));
}

Storage::~Storage() {
  if (mapped_ > 0) {
    munmap(data_, size_t(mapped_));
  } else {
    std::free(data_);
  }
}

int64_t Array::count() const {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

bool Array::contiguous() const {
  if (count() == 0) return true;
  int64_t expected = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    if (extents[d] != 1 && strides[d] != expected) return false;
    expected *= extents[d];
  }
  return true;
}

std::byte* Array::data() const {
  return packed(type) ? storage->data() + offset / 2 : storage->data() + offset * (scalar::bits(type) / 8);
}

int64_t Array::position(int64_t flat) const {
  int64_t at = offset;
  for (size_t d = extents.size(); d-- > 0;) {
    at += flat % extents[d] * strides[d];
    flat /= extents[d];
  }
  return at;
}

std::string describe(scalar::DType type, std::span<const int64_t> extents) {
  std::string out(scalar::name(type));
  out += "[";
  for (size_t d = 0; d < extents.size(); ++d) out += (d ? ", " : "") + std::to_string(extents[d]);
  return out + "]";
}
std::string describe(const Array& array) { return describe(array.type, array.extents); }

std::optional<int64_t> checked_count(std::span<const int64_t> extents) {
  // An extent of 0 makes the array empty, but the others must still be sane.
  int64_t product = 1;
  bool empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<int64_t> checked_bytes(scalar::DType type, std::span<const int64_t> extents) {
  const std::optional<int64_t> count = checked_count(extents);
  if (!count || *count > (std::numeric_limits<int64_t>::max() - 7) / scalar::bits(type)) return std::nullopt;
  return scalar::bytes(type, *count);
}

std::vector<int64_t> row_major(std::span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size());
  int64_t step = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(extents[d], 1);
  }
  return strides;
}

base::Result<Array> allocate(scalar::DType type, std::vector<int64_t> extents, const std::string& what) {
  const std::optional<int64_t> bytes = checked_bytes(type, extents);
  if (!bytes) {
    return base::invalid(what + " of type " + describe(type, extents) + " has more bytes than 63 bits can count");
  }
  auto storage = Storage::allocate(*bytes);
  if (!storage) {
    base::Diagnostic diagnostic = storage.error();
    diagnostic.message = what + " of type " + describe(type, extents) + " " + diagnostic.message;
    return diagnostic;
  }
  std::vector<int64_t> strides = row_major(extents);
  return Array{type, std::move(extents), std::move(strides), 0, *std::move(storage)};
}

base::Result<Array> view(const Array& array, int64_t offset, std::vector<int64_t> extents,
                         std::vector<int64_t> strides) {
  const std::optional<int64_t> count = checked_count(extents);
  if (!count || extents.size() != strides.size()) {
    return base::invalid("a view needs one stride for each extent and extents that are not negative");
  }
  int64_t low = offset, high = offset;
  bool wild = false;
  for (size_t d = 0; *count > 0 && d < extents.size(); ++d) {
    int64_t reach = 0;
    wild |= __builtin_mul_overflow(extents[d] - 1, strides[d], &reach);
    wild |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
  }
  const int64_t held = array.storage->bytes() * 8 / scalar::bits(array.type);
  if (*count > 0 && (wild || low < 0 || high >= held)) {
    return base::invalid("a view reaches elements " + std::to_string(low) + " to " + std::to_string(high) +
                         " of storage that holds " + std::to_string(held));
  }
  return Array{array.type, std::move(extents), std::move(strides), offset, array.storage};
}

base::Result<Array> contiguous(const Array& array) {
  const bool starts_in_a_byte = !packed(array.type) || array.offset % 2 == 0;
  if (array.contiguous() && starts_in_a_byte) return array;
  LEMMA_TRY(Array out, allocate(array.type, array.extents));
  for_each_position(array, [&](int64_t flat, int64_t position) { copy_element(array, position, out, flat); });
  return out;
}

base::Result<Array> convert(const Array& array, scalar::DType type) {
  if (array.type == type) return array;
  LEMMA_TRY(Array out, allocate(type, array.extents));
  const scalar::Kind from = scalar::kind_of(array.type), to = scalar::kind_of(type);
  const void* source = array.storage->data();
  for_each_position(array, [&](int64_t flat, int64_t position) {
    scalar::Scalar value = scalar::load(array.type, source, position);
    if (scalar::is_float(from) && !scalar::is_float(to)) {
      // Through 64 bits would wrap where the narrow type must saturate; the range is cut here.
      value.i = narrow_integer(type, value.f);
    } else if (!scalar::is_float(from) && scalar::is_float(to)) {
      value.f = from == scalar::Kind::U64 ? double(uint64_t(value.i)) : double(value.i);
    } else if (!scalar::is_float(to)) {
      value.i = scalar::wrapped(to, value.i);
    }
    scalar::store(type, out.storage->data(), flat, value);
  });
  return out;
}

double float_at(const Array& array, int64_t flat) {
  const scalar::Scalar value = scalar::load(array.type, array.storage->data(), array.position(flat));
  const scalar::Kind kind = scalar::kind_of(array.type);
  if (scalar::is_float(kind)) return value.f;
  return kind == scalar::Kind::U64 ? double(uint64_t(value.i)) : double(value.i);
}

int64_t int_at(const Array& array, int64_t flat) {
  const scalar::Scalar value = scalar::load(array.type, array.storage->data(), array.position(flat));
  return scalar::is_float(array.type) ? scalar::truncated(scalar::Kind::I64, value.f) : value.i;
}

void set_float(const Array& array, int64_t flat, double value) {
  const scalar::Kind kind = scalar::kind_of(array.type);
  const scalar::Scalar stored =
      scalar::is_float(kind) ? scalar::from_float(value) : scalar::from_int(scalar::truncated(kind, value));
  scalar::store(array.type, array.storage->data(), array.position(flat), stored);
}

void set_int(const Array& array, int64_t flat, int64_t value) {
  const bool real = scalar::is_float(array.type);
  scalar::store(array.type, array.storage->data(), array.position(flat),
                real ? scalar::from_float(double(value))
                     : scalar::from_int(scalar::wrapped(scalar::kind_of(array.type), value)));
}

void fill_poison(const Array& array, uint8_t bits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool real = scalar::is_float(array.type);
  int64_t pattern = 0;
  for (int i = 0; i < 8; ++i) pattern = int64_t(uint64_t(pattern) << 8 | bits);
  if (array.type == scalar::DType::Bool) pattern &= 1;
  const scalar::Scalar value = real ? scalar::from_float(nan)
                                    : scalar::from_int(scalar::wrapped(scalar::kind_of(array.type), pattern));
  void* data = array.storage->data();
  for_each_position(array, [&](int64_t, int64_t position) { scalar::store(array.type, data, position, value); });
}

}  // namespace lemma::runtime
