#include "lemma/runtime/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "lemma/runtime/random.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

using scalar::DType;

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> out(text.size());
  std::transform(text.begin(), text.end(), out.begin(), [](char c) { return std::byte(c); });
  return out;
}

std::string gzip(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 200, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = uInt(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

base::Result<Array> parse_gzip(const std::string& text) {
  return read_idx(gzip_source(std::make_shared<std::vector<std::byte>>(bytes_of(text)), "x.gz"));
}

const std::string kPictures("\0\0\x08\x02\0\0\0\2\0\0\0\3abcdef", 18);

TEST(Idx, ReadsPlainAndGzipped) {
  const std::vector<std::byte> plain = bytes_of(kPictures);
  for (const auto& result : {read_idx(memory_source(plain, "x")), parse_gzip(gzip(kPictures)),
                             parse_gzip(gzip(kPictures.substr(0, 7)) + gzip(kPictures.substr(7)))}) {
    ASSERT_TRUE(result.ok()) << base::render(result.error());
    EXPECT_EQ(describe(*result), "u8[2, 3]");
    EXPECT_EQ(int_at(*result, 5), 'f');
  }
}

TEST(Idx, EveryTypeSurvivesARoundTrip) {
  const TemporaryDirectory folder;
  for (const DType type : {DType::U8, DType::I8, DType::I16, DType::I32, DType::F32, DType::F64}) {
    const Array array = *allocate(type, {3, 5});
    ASSERT_TRUE(fill_random(array, 9).ok());
    ASSERT_TRUE(write_idx(folder.file("a.idx"), array).ok());
    const auto back = read_idx(*file_source(folder.file("a.idx")));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->type, type);
    EXPECT_EQ(std::memcmp(array.data(), back->data(), size_t(array.bytes())), 0);
  }
  EXPECT_EQ(write_idx(folder.file("b.idx"), *allocate(DType::F16, {1})).error().message, "an IDX file cannot hold f16");
}

TEST(Idx, HostileFilesAreNamed) {
  const auto message = [](const std::string& text) {
    const std::vector<std::byte> bytes = bytes_of(text);
    const auto result = read_idx(memory_source(bytes, "x"));
    return result.ok() ? std::string("read") : result.error().message;
  };
  EXPECT_EQ(message("PK\3\4"), "'x' is not an IDX file: its magic number is wrong");
  EXPECT_EQ(message(std::string("\0\0\x07\x01\0\0\0\1a", 9)), "'x' is not an IDX file: its magic number is wrong");
  EXPECT_EQ(message(kPictures + "g"), "'x' has bytes after u8[2, 3]");
  EXPECT_EQ(message(kPictures.substr(0, 17)), "'x' states u8[2, 3], 6 bytes, and holds at most 5");
  EXPECT_EQ(message(std::string("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16)),
            "'x' states f64[4294967295, 4294967295, 4294967295], more bytes than 63 bits can count, and holds at most 0");
  for (size_t length = 0; length < kPictures.size(); ++length) {
    EXPECT_NE(message(kPictures.substr(0, length)), "read") << length;
  }
}

TEST(Idx, HostileGzipIsNamed) {
  const std::string good = gzip(kPictures);
  EXPECT_EQ(parse_gzip(good + "xyz").error().message, "'x.gz' has 3 bytes after its gzip stream");
  for (size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(parse_gzip(good.substr(0, length)).ok()) << length;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ 0x55);
    const auto result = parse_gzip(bad);
    // The header's time, flags and system do not matter; everything else is under the checksum.
    if (result.ok()) {
      EXPECT_EQ(int_at(*result, 5), 'f') << at;
      EXPECT_LT(at, 10u);
    }
  }
  // A stream of zeros that states more than it can hold: refused before memory is taken.
  std::string lie("\0\0\x08\x02\xff\xff\xff\xff\0\0\xff\xff", 12);
  EXPECT_TRUE(parse_gzip(gzip(lie)).error().message.starts_with("'x.gz' states u8[4294967295, 65535], "));
}

}  // namespace
}  // namespace lemma::runtime
