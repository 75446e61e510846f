#include "lemma/runtime/idx.h"

#include <algorithm>
#include <array>
#include <bit>

namespace lemma::runtime {
namespace {

using base::Result;
using scalar::DType;

struct Code {
  int code;
  DType type;
};
constexpr std::array kCodes = {Code{0x08, DType::U8},  Code{0x09, DType::I8},  Code{0x0B, DType::I16},
                               Code{0x0C, DType::I32}, Code{0x0D, DType::F32}, Code{0x0E, DType::F64}};

void to_big_endian(std::span<std::byte> bytes, size_t width) {
  if (std::endian::native == std::endian::big) return;
  for (size_t i = 0; i + width <= bytes.size(); i += width) std::reverse(&bytes[i], &bytes[i] + width);
}

}  // namespace

Result<Array> read_idx(Bytes source) {
  std::array<std::byte, 4> magic{};
  LEMMA_TRY_VOID(read_exactly(source, magic, "the magic number"));
  std::optional<DType> type;
  for (const Code& code : kCodes) {
    if (code.code == int(magic[2])) type = code.type;
  }
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !type) {
    return base::invalid("'" + source.name + "' is not an IDX file: its magic number is wrong");
  }
  std::vector<int64_t> extents(size_t(magic[3]), 0);
  for (int64_t& extent : extents) {
    std::array<std::byte, 4> word{};
    LEMMA_TRY_VOID(read_exactly(source, word, "the list of extents"));
    for (const std::byte byte : word) extent = extent << 8 | int64_t(byte);
  }
  const std::optional<int64_t> bytes = checked_bytes(*type, extents);
  const std::string stated = describe(*type, extents);
  if (!bytes || *bytes > source.limit) {
    return base::invalid("'" + source.name + "' states " + stated + ", " +
                         (bytes ? std::to_string(*bytes) + " bytes" : "more bytes than 63 bits can count") +
                         ", and holds at most " + std::to_string(source.limit));
  }
  LEMMA_TRY(Array array, allocate(*type, extents, "'" + source.name + "'"));
  const std::span<std::byte> data(array.storage->data(), size_t(*bytes));
  LEMMA_TRY_VOID(read_exactly(source, data, stated));
  LEMMA_TRY_VOID(expect_end(source, stated));
  to_big_endian(data, size_t(scalar::bits(*type) / 8));
  return array;
}

Result<void> write_idx(const std::string& path, const Array& array) {
  int code = 0;
  for (const Code& row : kCodes) {
    if (row.type == array.type) code = row.code;
  }
  if (code == 0) {
    return base::unsupported("an IDX file cannot hold " + std::string(scalar::name(array.type)), {},
                             "write .npy instead, or one of u8 i8 i16 i32 f32 f64");
  }
  std::vector<std::byte> head = {std::byte{0}, std::byte{0}, std::byte(code), std::byte(array.extents.size())};
  for (const int64_t extent : array.extents) {
    if (extent > int64_t(UINT32_MAX)) return base::unsupported("an IDX file cannot hold an extent of 2^32 or more");
    for (int shift = 24; shift >= 0; shift -= 8) head.push_back(std::byte(extent >> shift & 0xff));
  }
  LEMMA_TRY(const Array plain, contiguous(array));
  std::vector<std::byte> body(plain.data(), plain.data() + plain.bytes());
  to_big_endian(body, size_t(scalar::bits(array.type) / 8));
  return write_atomically(path, head, body);
}

}  // namespace lemma::runtime
