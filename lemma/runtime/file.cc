#include "lemma/runtime/file.h"

#include <sys/stat.h>

#include <array>
#include <bit>
#include <algorithm>
#include <charconv>
#include <cstring>

#include "lemma/runtime/idx.h"
#include "lemma/runtime/npy.h"

namespace lemma::runtime {
namespace {

using base::Result;
using scalar::DType;

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

// "[2,3]" -> {2, 3}.
std::optional<std::vector<int64_t>> parse_extents(std::string_view text) {
  std::vector<int64_t> extents;
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    extents.push_back(value);
    text.remove_prefix(size_t(end - text.data()));
    if (text.empty()) break;
    if (!text.starts_with(',') || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return extents;
}

// What has been read ahead, then the rest.
Bytes put_back(std::vector<std::byte> head, Bytes rest) {
  Bytes source;
  source.name = rest.name;
  if (__builtin_add_overflow(rest.limit, int64_t(head.size()), &source.limit)) source.limit = rest.limit;
  source.read = [head = std::move(head), at = size_t(0), rest = std::move(rest)](
                    std::span<std::byte> into) mutable -> Result<int64_t> {
    const size_t n = std::min(into.size(), head.size() - at);
    if (n > 0) std::memcpy(into.data(), head.data() + at, n);
    at += n;
    if (n == into.size()) return int64_t(n);
    LEMMA_TRY(const int64_t more, rest.read(into.subspan(n)));
    return int64_t(n) + more;
  };
  return source;
}

struct Probe {
  std::vector<std::byte> head;
  Bytes source;
  bool starts_with(std::string_view bytes) const {
    return head.size() >= bytes.size() && std::memcmp(head.data(), bytes.data(), bytes.size()) == 0;
  }
};

Result<Probe> probe(Bytes source) {
  Probe out;
  out.head.resize(8);
  LEMMA_TRY(const int64_t n, source.read(out.head));
  out.head.resize(size_t(n));
  source.limit -= n;
  out.source = put_back(out.head, std::move(source));
  return out;
}

bool ends_with(const std::string& path, std::string_view end) { return path.ends_with(end); }

void to_little_endian(std::span<std::byte> bytes, size_t width) {
  if (std::endian::native == std::endian::little) return;
  for (size_t i = 0; width > 1 && i + width <= bytes.size(); i += width) std::reverse(&bytes[i], &bytes[i] + width);
}

}  // namespace

Result<FilePlace> parse_place(const std::string& text) {
  FilePlace place;
  place.path = text;
  if (exists(text)) return place;
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && colon > 0) {
    const std::string_view rest = std::string_view(text).substr(colon + 1);
    const size_t bracket = std::min(rest.find('['), rest.size());
    const auto type = scalar::parse_dtype(rest.substr(0, bracket));
    if (type) {
      place.type = type;
      place.path = text.substr(0, colon);
      if (bracket < rest.size()) {
        place.extents = parse_extents(rest.substr(bracket));
        if (!place.extents) {
          return base::invalid("'" + std::string(rest.substr(bracket)) + "' in '" + text + "' is not a list of extents",
                               {}, "write it as [2,3]");
        }
      }
    }
  }
  const size_t at = place.path.rfind('@');
  if (at != std::string::npos && at > 0 && !exists(place.path)) {
    place.member = place.path.substr(at + 1);
    place.path.resize(at);
  }
  return place;
}

namespace {

Result<Array> read_any(const FilePlace& place, std::optional<DType> expected) {
  LEMMA_TRY(Bytes source, file_source(place.path));
  if (place.extents) return read_raw(std::move(source), *place.type, *place.extents);
  LEMMA_TRY(Probe start, probe(std::move(source)));
  if (start.starts_with("PK")) return read_npz(place.path, place.member, expected);
  if (!place.member.empty()) {
    return base::invalid("'" + place.path + "' is not a .npz archive, and a member '" + place.member + "' was asked for");
  }
  if (start.starts_with("\x1f\x8b")) {
    Bytes plain = gzip_source(std::move(start.source));
    LEMMA_TRY(start, probe(std::move(plain)));
  }
  if (start.starts_with("\x93NUMPY")) return read_npy(std::move(start.source), expected);
  if (start.starts_with(std::string_view("\0\0", 2))) return read_idx(std::move(start.source));
  return base::invalid("'" + place.path + "' is neither .npy, .npz nor IDX", {},
                       "raw elements need their type and extents: " + place.path + ":f32[2,3]");
}

}  // namespace

Result<Array> read_array(const FilePlace& place, std::optional<DType> expected) {
  LEMMA_TRY(Array array, read_any(place, place.type ? place.type : expected));
  if (!place.type || array.type == *place.type) return array;
  return base::invalid("'" + place.path + "' holds " + describe(array) + ", and ':" + std::string(scalar::name(*place.type)) + "' says otherwise",
                       {}, "leave the type out; a program's input is converted with --convert");
}

Result<void> write_array(const FilePlace& place, const Array& array) {
  const std::string& path = place.path;
  if (ends_with(path, ".npy")) return write_npy(path, array);
  if (ends_with(path, ".npz")) return write_npz(path, {{place.member.empty() ? "array" : place.member, array}});
  if (ends_with(path, ".idx") || ends_with(path, "-ubyte")) return write_idx(path, array);
  if (ends_with(path, ".raw") || ends_with(path, ".bin")) return write_raw(path, array);
  return base::invalid("'" + path + "' does not say which format to write", {},
                       "end it in .npy, .npz, .idx, .raw or .bin");
}

Result<Array> read_raw(Bytes source, DType type, const std::vector<int64_t>& extents) {
  const std::optional<int64_t> bytes = checked_bytes(type, extents);
  const std::string stated = describe(type, extents);
  if (!bytes) return base::invalid(stated + " has more bytes than 63 bits can count");
  if (*bytes > source.limit) {
    return base::invalid("'" + source.name + "' is too small: " + stated + " takes " + std::to_string(*bytes) +
                         " bytes, and it has " + std::to_string(source.limit));
  }
  LEMMA_TRY(Array array, allocate(type, extents, "'" + source.name + "'"));
  const std::span<std::byte> data(array.storage->data(), size_t(*bytes));
  LEMMA_TRY_VOID(read_exactly(source, data, stated));
  LEMMA_TRY_VOID(expect_end(source, stated));
  to_little_endian(data, size_t(scalar::bits(type) / 8));
  if (type == DType::Bool) {
    for (const std::byte byte : data) {
      if (byte > std::byte{1}) return base::invalid("'" + source.name + "' holds a bool that is neither 0 nor 1");
    }
  }
  return array;
}

Result<void> write_raw(const std::string& path, const Array& array) {
  LEMMA_TRY(const Array plain, contiguous(array));
  std::vector<std::byte> body(plain.data(), plain.data() + plain.bytes());
  to_little_endian(body, size_t(scalar::bits(array.type) / 8));
  return write_atomically(path, body);
}

}  // namespace lemma::runtime
