#include "lemma/runtime/file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "lemma/runtime/idx.h"
#include "lemma/runtime/npy.h"
#include "lemma/runtime/random.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma::runtime {
namespace {

using scalar::DType;

Array some(DType type, std::vector<int64_t> extents) {
  Array array = *allocate(type, std::move(extents));
  EXPECT_TRUE(fill_random(array, 11).ok());
  return array;
}

bool same(const Array& a, const Array& b) {
  return a.type == b.type && a.extents == b.extents && std::memcmp(a.data(), b.data(), size_t(a.bytes())) == 0;
}

TEST(File, PlacesSayPathMemberTypeAndExtents) {
  const FilePlace raw = *parse_place("dir/x.raw:bf16[2, 3]");
  EXPECT_EQ(raw.path, "dir/x.raw");
  EXPECT_EQ(raw.type, DType::BF16);
  EXPECT_EQ(raw.extents, (std::vector<int64_t>{2, 3}));
  const FilePlace member = *parse_place("w.npz@layer:f8e4m3");
  EXPECT_EQ(member.path, "w.npz");
  EXPECT_EQ(member.member, "layer");
  EXPECT_EQ(member.type, DType::F8E4M3);
  EXPECT_EQ(parse_place("c:/odd:name")->path, "c:/odd:name");
  EXPECT_EQ(parse_place("x.raw:f32[]")->extents, std::vector<int64_t>{});
  EXPECT_EQ(base::render(parse_place("x.raw:f32[2,").error()),
            "error: '[2,' in 'x.raw:f32[2,' is not a list of extents\n  help: write it as [2,3]\n");
  EXPECT_FALSE(parse_place("x.raw:f32[-1]").ok());
}

TEST(File, FormatsAreFoundOutByContent) {
  const TemporaryDirectory folder;
  const Array a = some(DType::I32, {3, 4});
  for (const char* name : {"a.npy", "a.npz", "a.idx"}) {
    ASSERT_TRUE(write_array({folder.file(name), "", {}, {}}, a).ok());
    std::ifstream in(folder.file(name), std::ios::binary);
    std::ofstream(folder.file("anonymous"), std::ios::binary) << in.rdbuf();
    const auto back = read_array(*parse_place(folder.file("anonymous")));
    ASSERT_TRUE(back.ok()) << name << base::render(back.error());
    EXPECT_TRUE(same(a, *back)) << name;
  }
  for (const DType type : {DType::I4, DType::BF16, DType::F64}) {
    const Array b = some(type, {3, 5});
    ASSERT_TRUE(write_array({folder.file("b.raw"), "", {}, {}}, b).ok());
    const auto back = read_array(*parse_place(folder.file("b.raw") + ":" + std::string(scalar::name(type)) + "[3,5]"));
    ASSERT_TRUE(back.ok()) << base::render(back.error());
    EXPECT_TRUE(same(b, *back));
  }
}

TEST(File, WhatCannotBeReadIsNamed) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("x");
  std::ofstream(path) << "hello there";
  EXPECT_EQ(base::render(read_array(*parse_place(path)).error()),
            "error: '" + path + "' is neither .npy, .npz nor IDX\n  help: raw elements need their type and extents: " +
                path + ":f32[2,3]\n");
  EXPECT_EQ(read_array(*parse_place(path + ":f32[3]")).error().message,
            "'" + path + "' is too small: f32[3] takes 12 bytes, and it has 11");
  EXPECT_EQ(read_array(*parse_place(path + ":u8[10]")).error().message, "'" + path + "' has bytes after u8[10]");
  EXPECT_EQ(read_array(*parse_place(path + ":f64[4294967296,4294967296]")).error().message,
            "f64[4294967296, 4294967296] has more bytes than 63 bits can count");
  EXPECT_EQ(read_array(*parse_place(path + ":bool[11]")).error().message,
            "'" + path + "' holds a bool that is neither 0 nor 1");
  EXPECT_EQ(write_array({folder.file("y.txt"), "", {}, {}}, some(DType::F32, {1})).error().message,
            "'" + folder.file("y.txt") + "' does not say which format to write");
}

}  // namespace
}  // namespace lemma::runtime
