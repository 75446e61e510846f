#include "lemma/runtime/npy.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lemma::runtime {
namespace {

using base::Result;
using scalar::DType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kLongestHeader = 1 << 16;
constexpr size_t kMostDimensions = 64;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// Reads the Python dictionary that a .npy header is.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Result<Header> parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    if (!take('{')) return wrong("a dictionary");
    while (!take('}')) {
      LEMMA_TRY(const std::string key, quoted());
      if (!take(':')) return wrong("':' after '" + key + "'");
      if (key == "descr" && !descr) {
        descr = true;
        if (next() == '[') return base::unsupported("'" + file_ + "' holds records, not plain numbers");
        LEMMA_TRY(header.descr, quoted());
      } else if (key == "fortran_order" && !order) {
        order = true;
        LEMMA_TRY(header.fortran, boolean());
      } else if (key == "shape" && !shape) {
        shape = true;
        LEMMA_TRY(header.shape, tuple());
      } else {
        return wrong("the keys 'descr', 'fortran_order' and 'shape', each once");
      }
      if (!take(',') && next() != '}') return wrong("',' or '}'");
    }
    if (next() != '\0') return wrong("nothing after the dictionary");
    if (!descr || !order || !shape) return wrong("the keys 'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  base::Diagnostic wrong(const std::string& expected) const {
    return base::invalid("the header of '" + file_ + "' is malformed at byte " + std::to_string(at_) + ": expected " +
                         expected);
  }
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  Result<std::string> quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"') return wrong("a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return wrong("the string's end");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  Result<bool> boolean() {
    next();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    return wrong("True or False");
  }
  Result<std::vector<int64_t>> tuple() {
    std::vector<int64_t> values;
    if (!take('(')) return wrong("a tuple");
    while (!take(')')) {
      int64_t value = 0;
      const char first = next();
      if (first < '0' || first > '9') return wrong("an extent that is not negative");
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(text_[at_] - '0'), &value)) {
          return wrong("an extent below 2^63");
        }
        ++at_;
      }
      take('L');  // Python 2 wrote its long integers so
      values.push_back(value);
      if (values.size() > kMostDimensions) return wrong("at most 64 dimensions");
      if (!take(',') && next() != ')') return wrong("',' or ')'");
    }
    return values;
  }

  std::string_view text_;
  std::string file_;
  size_t at_ = 0;
};

struct Plain {
  std::string_view code;
  DType type;
};
constexpr std::array kPlain = {
    Plain{"f8", DType::F64}, Plain{"f4", DType::F32}, Plain{"f2", DType::F16}, Plain{"i8", DType::I64},
    Plain{"i4", DType::I32}, Plain{"i2", DType::I16}, Plain{"i1", DType::I8},  Plain{"u8", DType::U64},
    Plain{"u4", DType::U32}, Plain{"u2", DType::U16}, Plain{"u1", DType::U8},  Plain{"b1", DType::Bool},
};

bool machine_is_little() {
  const uint16_t one = 1;
  unsigned char first = 0;
  std::memcpy(&first, &one, 1);
  return first == 1;
}

// What "<f4" and the like name.
Result<DType> element_type(const std::string& descr, std::optional<DType> expected, const std::string& file) {
  const std::string_view code = descr.size() > 1 ? std::string_view(descr).substr(1) : std::string_view();
  for (const Plain& plain : kPlain) {
    if (plain.code == code && descr.find_first_of("<>|=") == 0) return plain.type;
  }
  const bool is_void = code == "V1" || code == "V2";
  if (is_void && expected && scalar::bits(*expected) == (code == "V1" ? 8 : 16) && scalar::is_float(*expected)) {
    return *expected;
  }
  if (is_void) {
    return base::invalid("'" + file + "' holds untyped elements of " + std::string(code.substr(1)) +
                             " bytes, which could be any narrow float",
                         {}, "say which: file.npy:bf16, :f8e4m3 or :f8e5m2");
  }
  return base::unsupported("'" + file + "' holds elements of NumPy's type '" + descr + "'", {},
                           "save it as one of f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1");
}

void swap_bytes(std::span<std::byte> bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width) std::reverse(&bytes[i], &bytes[i] + width);
}

Result<void> check_bools(const Array& array, const std::string& file) {
  const std::byte* data = array.storage->data();
  for (int64_t i = 0; i < array.count(); ++i) {
    if (data[i] > std::byte{1}) {
      return base::invalid("'" + file + "' holds a bool that is neither 0 nor 1, at flat position " +
                           std::to_string(i));
    }
  }
  return {};
}

// i1 -> i4 and u1 -> u4, where every value fits.
Result<Array> narrow(const Array& array, DType type, const std::string& file) {
  const int64_t low = type == DType::I4 ? -8 : 0, high = type == DType::I4 ? 7 : 15;
  for (int64_t i = 0; i < array.count(); ++i) {
    const int64_t value = int_at(array, i);
    if (value < low || value > high) {
      return base::invalid("'" + file + "' holds " + std::to_string(value) + " at flat position " +
                           std::to_string(i) + ", outside " + std::string(scalar::name(type)));
    }
  }
  return convert(array, type);
}

Result<std::string> read_header_text(Bytes& source) {
  std::array<std::byte, 8> start{};
  LEMMA_TRY_VOID(read_exactly(source, start, "the header"));
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    return base::invalid("'" + source.name + "' is not a .npy file: it does not begin with \\x93NUMPY");
  }
  const int version = int(start[6]);
  if (version < 1 || version > 3) {
    return base::unsupported("'" + source.name + "' has .npy version " + std::to_string(version) +
                             "; versions 1 to 3 are read");
  }
  std::array<std::byte, 4> length_bytes{};
  LEMMA_TRY_VOID(read_exactly(source, std::span(length_bytes).first(version == 1 ? 2 : 4), "the header"));
  int64_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= int64_t(length_bytes[i]) << (8 * i);
  if (length > kLongestHeader || length > source.limit) {
    return base::invalid("'" + source.name + "' states a header of " + std::to_string(length) + " bytes");
  }
  std::string text(size_t(length), '\0');
  LEMMA_TRY_VOID(read_exactly(source, std::as_writable_bytes(std::span(text)), "the header"));
  if (text.find('\0') != std::string::npos) {
    return base::invalid("the header of '" + source.name + "' holds a zero byte");
  }
  return text;
}

}  // namespace

Result<Array> read_npy(Bytes source, std::optional<DType> expected) {
  LEMMA_TRY(const std::string text, read_header_text(source));
  LEMMA_TRY(Header header, HeaderParser(text, source.name).parse());
  LEMMA_TRY(const DType type, element_type(header.descr, expected, source.name));
  const std::optional<int64_t> bytes = checked_bytes(type, header.shape);
  const std::string stated = describe(type, header.shape);
  if (!bytes || *bytes > source.limit) {
    return base::invalid("'" + source.name + "' states " + stated + ", " +
                         (bytes ? std::to_string(*bytes) + " bytes" : "more bytes than 63 bits can count") +
                         ", and holds at most " + std::to_string(source.limit));
  }
  std::vector<int64_t> stored = header.shape;
  if (header.fortran) std::reverse(stored.begin(), stored.end());
  LEMMA_TRY(Array array, allocate(type, stored, "'" + source.name + "'"));
  const std::span<std::byte> data(array.storage->data(), size_t(*bytes));
  LEMMA_TRY_VOID(read_exactly(source, data, stated));
  LEMMA_TRY_VOID(expect_end(source, stated));
  const bool little = header.descr[0] == '|' || header.descr[0] == '=' ? machine_is_little() : header.descr[0] == '<';
  if (little != machine_is_little()) swap_bytes(data, size_t(scalar::bits(type) / 8));
  if (header.fortran) {
    std::reverse(array.extents.begin(), array.extents.end());
    std::reverse(array.strides.begin(), array.strides.end());
  }
  if (type == DType::Bool) LEMMA_TRY_VOID(check_bools(array, source.name));
  const bool nibble = (expected == DType::I4 && type == DType::I8) || (expected == DType::U4 && type == DType::U8);
  if (nibble) return narrow(array, *expected, source.name);
  return array;
}

std::string npy_header(DType type, const std::vector<int64_t>& extents) {
  std::string descr = scalar::bits(type) == 16 ? "<V2" : "|V1";
  for (const Plain& plain : kPlain) {
    if (plain.type == type) descr = (scalar::bits(type) == 8 ? "|" : machine_is_little() ? "<" : ">") +
                                    std::string(plain.code);
  }
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : extents) text += std::to_string(extent) + (extents.size() == 1 ? "," : ", ");
  if (extents.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  // The data begins at a multiple of 64.
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', char(text.size() & 0xff), char(text.size() >> 8)};
  return out + text;
}

Result<void> write_npy(const std::string& path, const Array& array) {
  LEMMA_TRY(Array plain, contiguous(array));
  if (scalar::bits(plain.type) < 8) {
    LEMMA_TRY(plain, convert(plain, plain.type == DType::I4 ? DType::I8 : DType::U8));
  }
  const std::string header = npy_header(plain.type, plain.extents);
  return write_atomically(path, std::as_bytes(std::span(header)), {plain.data(), size_t(plain.bytes())});
}

}  // namespace lemma::runtime
