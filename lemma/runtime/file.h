// Arrays from and to files of any known format, found out by the file's first bytes (reading) or its name (writing).
// A place is written
//
//   path                 .npy, .npz with one member, IDX, gzipped IDX or .npy
//   path@member          a member of an .npz
//   path:type            where the file does not say what its narrow floats are
//   path:type[2,3]       raw elements in row-major order, little-endian, i4 and u4 two to a byte
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/runtime/array.h"
#include "lemma/runtime/bytes.h"

namespace lemma::runtime {

struct FilePlace {
  std::string path;
  std::string member;
  std::optional<scalar::DType> type;
  std::optional<std::vector<int64_t>> extents;
};

base::Result<FilePlace> parse_place(const std::string& text);

// `expected` is the type the reader hopes for; it decides only what the file leaves open.
base::Result<Array> read_array(const FilePlace& place, std::optional<scalar::DType> expected = {});

// By the name's end: .npy, .npz (one member, "array"), .idx or -ubyte, .raw or .bin.
base::Result<void> write_array(const FilePlace& place, const Array& array);

base::Result<Array> read_raw(Bytes source, scalar::DType type, const std::vector<int64_t>& extents);
base::Result<void> write_raw(const std::string& path, const Array& array);

}  // namespace lemma::runtime
