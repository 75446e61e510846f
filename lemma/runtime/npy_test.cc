#include "lemma/runtime/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "lemma/runtime/random.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

using scalar::DType;

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

// A version 1 file with this dictionary and data.
std::vector<std::byte> file_with(const std::string& dictionary, const std::string& data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += char(dictionary.size() & 0xff);
  text += char(dictionary.size() >> 8);
  return bytes_of(text + dictionary + data);
}

base::Result<Array> parse(const std::vector<std::byte>& bytes, std::optional<DType> expected = {}) {
  return read_npy(memory_source(bytes, "x.npy"), expected);
}

bool same(const Array& a, const Array& b) {
  if (a.type != b.type || a.extents != b.extents) return false;
  const Array x = *contiguous(a), y = *contiguous(b);
  return std::memcmp(x.data(), y.data(), size_t(x.bytes())) == 0;
}

const DType kAll[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2,
                      DType::I64, DType::I32, DType::I16, DType::I8,   DType::I4,     DType::U64,
                      DType::U32, DType::U16, DType::U8,  DType::U4,   DType::Bool};

TEST(Npy, EveryTypeSurvivesARoundTrip) {
  const TemporaryDirectory folder;
  for (const DType type : kAll) {
    for (const std::vector<int64_t>& extents : {std::vector<int64_t>{}, {5}, {2, 3, 7}, {4, 0}}) {
      const Array array = *allocate(type, extents);
      ASSERT_TRUE(fill_random(array, 7).ok());
      ASSERT_TRUE(write_npy(folder.file("a.npy"), array).ok());
      const auto back = read_npy(*file_source(folder.file("a.npy")), type);
      ASSERT_TRUE(back.ok()) << base::render(back.error());
      EXPECT_TRUE(same(array, *back)) << describe(array);
      ASSERT_TRUE(write_npz(folder.file("a.npz"), {{"one", array}, {"two", array}}).ok());
      const auto member = read_npz(folder.file("a.npz"), "two", type);
      ASSERT_TRUE(member.ok()) << base::render(member.error());
      EXPECT_TRUE(same(array, *member)) << describe(array);
    }
  }
}

TEST(Npy, HeaderIsWhatNumpyWrites) {
  EXPECT_EQ(npy_header(DType::F32, {3, 4}).substr(0, 69),
            std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  EXPECT_EQ(npy_header(DType::F32, {3, 4}).size(), 128u);
  EXPECT_EQ(npy_header(DType::I8, {3}).substr(10, 57), "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(npy_header(DType::Bool, {}).substr(10, 55), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
}

TEST(Npy, FortranOrderBecomesStridesAndBigEndianIsSwapped) {
  const auto fortran = parse(file_with("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }",
                                       std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12)));
  ASSERT_TRUE(fortran.ok());
  EXPECT_EQ(fortran->extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(fortran->strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(int_at(*fortran, 1), 3);  // [0, 1]
  const auto big = parse(file_with("{\"shape\":(2L,),'fortran_order':False,'descr':'>u4'}", std::string("\0\0\1\2\0\0\0\3", 8)));
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(int_at(*big, 0), 258);
  EXPECT_EQ(int_at(*big, 1), 3);
}

TEST(Npy, ViewsAreWrittenAsTheyRead) {
  const TemporaryDirectory folder;
  const Array a = *allocate(DType::I32, {2, 3});
  for (int64_t i = 0; i < 6; ++i) set_int(a, i, i);
  ASSERT_TRUE(write_npy(folder.file("t.npy"), *view(a, 0, {3, 2}, {1, 3})).ok());
  const auto back = read_npy(*file_source(folder.file("t.npy")));
  EXPECT_EQ(int_at(*back, 1), 3);
}

TEST(Npy, HostileHeadersAreNamed) {
  const std::string order = "'fortran_order': False, ";
  struct Case {
    std::vector<std::byte> bytes;
    std::string message;
  };
  const Case cases[] = {
      {{}, "'x.npy' is truncated: the header takes 8 bytes, and 0 are left"},
      {bytes_of("PK\3\4abcdefgh"), "'x.npy' is not a .npy file: it does not begin with \\x93NUMPY"},
      {bytes_of(std::string("\x93NUMPY\x09\x00\x02\x00{}", 12)), "'x.npy' has .npy version 9; versions 1 to 3 are read"},
      {bytes_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f{}", 14)),
       "'x.npy' states a header of 2147483647 bytes"},
      {file_with("{'descr': '<f4', " + order + "'shape': (4, 5), }", "abc"),
       "'x.npy' states f32[4, 5], 80 bytes, and holds at most 3"},
      {file_with("{'descr': '<f4', " + order + "'shape': (1,), }", "abcde"), "'x.npy' has bytes after f32[1]"},
      {file_with("{'descr': '<f8', " + order + "'shape': (4294967296, 4294967296), }", "abc"),
       "'x.npy' states f64[4294967296, 4294967296], more bytes than 63 bits can count, and holds at most 3"},
      {file_with("{'descr': '<f8', " + order + "'shape': (9223372036854775808,), }", ""),
       "the header of 'x.npy' is malformed at byte 69: expected an extent below 2^63"},
      {file_with("{'descr': '<f8', " + order + "'shape': (-1,), }", ""),
       "the header of 'x.npy' is malformed at byte 51: expected an extent that is not negative"},
      {file_with("{'descr': '<f8', " + order + "}", ""),
       "the header of 'x.npy' is malformed at byte 42: expected the keys 'descr', 'fortran_order' and 'shape'"},
      {file_with("{'descr': '<f8', 'descr': '<f4', " + order + "'shape': (1,)}", ""),
       "the header of 'x.npy' is malformed at byte 25: expected the keys 'descr', 'fortran_order' and 'shape', each once"},
      {file_with("{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}", ""),
       "the header of 'x.npy' is malformed at byte 34: expected True or False"},
      {file_with("{'descr': '|O', " + order + "'shape': (1,)}", "12345678"),
       "'x.npy' holds elements of NumPy's type '|O'"},
      {file_with("{'descr': [('a', '<f4')], " + order + "'shape': (1,)}", "1234"),
       "'x.npy' holds records, not plain numbers"},
      {file_with("{'descr': '<c8', " + order + "'shape': (1,)}", "12345678"),
       "'x.npy' holds elements of NumPy's type '<c8'"},
      {file_with("{'descr': '|V2', " + order + "'shape': (1,)}", "12"),
       "'x.npy' holds untyped elements of 2 bytes, which could be any narrow float"},
      {file_with("{'descr': '|b1', " + order + "'shape': (2,)}", std::string("\1\2", 2)),
       "'x.npy' holds a bool that is neither 0 nor 1, at flat position 1"},
  };
  for (const Case& c : cases) {
    const auto result = parse(c.bytes);
    ASSERT_FALSE(result.ok()) << c.message;
    EXPECT_EQ(result.error().message, c.message);
  }
}

TEST(Npy, ValuesOutsideNibblesAreRefused) {
  const auto wide = file_with("{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", "\1\x08");
  EXPECT_EQ(parse(wide, DType::I4).error().message, "'x.npy' holds 8 at flat position 1, outside i4");
  EXPECT_EQ(int_at(*parse(wide, DType::U4), 1), 8);
}

TEST(Npy, EveryTruncationIsRefused) {
  const Array array = *allocate(DType::F32, {3, 2});
  const std::string header = npy_header(array.type, array.extents);
  std::vector<std::byte> whole = bytes_of(header);
  whole.insert(whole.end(), array.data(), array.data() + array.bytes());
  ASSERT_TRUE(parse(whole).ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto result = parse({whole.begin(), whole.begin() + int64_t(length)});
    ASSERT_FALSE(result.ok()) << length;
    EXPECT_EQ(result.error().failure, base::Failure::Invalid);
  }
}

// A file with some bytes changed is either refused, or an array that the file can really hold.
TEST(Npy, DamagedFilesNeverLie) {
  const uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 draw(seed);
  const Array array = *allocate(DType::F32, {3, 2});
  std::vector<std::byte> whole = bytes_of(npy_header(array.type, array.extents));
  whole.insert(whole.end(), array.data(), array.data() + array.bytes());
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> damaged = whole;
    for (uint64_t flips = draw() % 3 + 1; flips > 0; --flips) damaged[draw() % damaged.size()] = std::byte(draw() & 0xff);
    const auto result = parse(damaged);
    if (!result.ok()) {
      EXPECT_FALSE(result.error().message.empty());
      continue;
    }
    ++accepted;
    EXPECT_LE(result->bytes(), int64_t(damaged.size()));
    EXPECT_EQ(result->storage->bytes(), result->bytes());
  }
  EXPECT_GT(accepted, 0);
}

TEST(Npz, DamagedArchivesNeverLie) {
  const TemporaryDirectory folder;
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 draw(seed);
  const Array array = *allocate(DType::I32, {40});
  ASSERT_TRUE(fill_random(array, 3).ok());
  ASSERT_TRUE(write_npz(folder.file("a.npz"), {{"x", array}}).ok());
  const std::vector<std::byte> whole = *read_file(folder.file("a.npz"));
  for (size_t length = 0; length < whole.size(); ++length) {
    ASSERT_TRUE(write_atomically(folder.file("t.npz"), std::span(whole).first(length)).ok());
    const auto result = read_npz(folder.file("t.npz"), "x");
    // The last few bytes are zeros that do not matter; what is accepted has passed its checksum.
    EXPECT_TRUE(!result.ok() || (length + 6 >= whole.size() && same(*result, array))) << length << " of " << whole.size();
    if (length > 100) length += 3;
  }
  for (int round = 0; round < 150; ++round) {
    std::vector<std::byte> damaged = whole;
    for (uint64_t flips = draw() % 3 + 1; flips > 0; --flips) damaged[draw() % damaged.size()] = std::byte(draw() & 0xff);
    ASSERT_TRUE(write_atomically(folder.file("t.npz"), damaged).ok());
    const auto result = read_npz(folder.file("t.npz"), "x");
    // What passes the checksum is the array that was written.
    if (result.ok()) {
      EXPECT_TRUE(same(*result, array));
    }
  }
}

TEST(Npz, NamesWhatItHolds) {
  const TemporaryDirectory folder;
  const Array array = *allocate(DType::I32, {2});
  ASSERT_TRUE(write_npz(folder.file("a.npz"), {{"x", array}, {"y", array}}).ok());
  EXPECT_EQ(*list_npz(folder.file("a.npz")), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(read_npz(folder.file("a.npz"), "z").error().message,
            "'" + folder.file("a.npz") + "' has no array 'z'; it holds x, y");
  EXPECT_EQ(read_npz(folder.file("a.npz"), "").error().message, "'" + folder.file("a.npz") + "' holds 2 arrays: x, y");
  ASSERT_TRUE(write_npz(folder.file("b.npz"), {{"only", array}}).ok());
  EXPECT_TRUE(same(*read_npz(folder.file("b.npz"), ""), array));
}

TEST(Files, WritingIsAllOrNothing) {
  const TemporaryDirectory folder;
  const Array array = *allocate(DType::I32, {2});
  ASSERT_TRUE(write_npy(folder.file("a.npy"), array).ok());
  ASSERT_TRUE(write_npy(folder.file("a.npy"), array).ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files += entry.is_regular_file();
  EXPECT_EQ(files, 1);  // no temporary is left
  EXPECT_EQ(write_npy(folder.file("no/such/a.npy"), array).error().message,
            "cannot write '" + folder.file("no/such/a.npy") + "': No such file or directory");
}

TEST(Files, UnreadableOnesSayWhy) {
  const TemporaryDirectory folder;
  EXPECT_EQ(file_source(folder.file("none")).error().message,
            "cannot open '" + folder.file("none") + "': No such file or directory");
  EXPECT_EQ(file_source(folder.path()).error().message, "cannot read '" + folder.path() + "': it is a directory");
  EXPECT_EQ(list_npz(folder.file("none")).error().failure, base::Failure::System);
}

TEST(Files, PipesAreReadToTheirEnd) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Array array = *allocate(DType::F64, {1000});
  ASSERT_TRUE(fill_random(array, 1).ok());
  const pid_t child = fork();
  if (child == 0) _exit(write_npy(path, array).ok() ? 0 : 1);
  const auto source = file_source(path);
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(same(*read_npy(*source), array));
}

}  // namespace
}  // namespace lemma::runtime
