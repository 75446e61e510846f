// Arrays in .npy files and in .npz archives. All of NumPy's plain element types that Lemma has are read (either byte
// order, C and Fortran order; Fortran order becomes strides). Types that NumPy lacks are written as void of their width
// ("<V2" for bf16, "|V1" for the 8-bit floats) and read back where the caller expects them; i4 and u4 are written
// widened to a byte each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/runtime/array.h"
#include "lemma/runtime/bytes.h"

namespace lemma::runtime {

// `expected` decides what a void type means, and lets i1 and u1 files stand for i4 and u4.
base::Result<Array> read_npy(Bytes source, std::optional<scalar::DType> expected = {});
base::Result<void> write_npy(const std::string& path, const Array& array);

// The .npy file's first bytes for an array in row-major order.
std::string npy_header(scalar::DType type, const std::vector<int64_t>& extents);

struct Named {
  std::string name;
  Array array;
};

// One member (without its ".npy"), or, with no name, the only one.
base::Result<Array> read_npz(const std::string& path, const std::string& member,
                             std::optional<scalar::DType> expected = {});
base::Result<std::vector<std::string>> list_npz(const std::string& path);
base::Result<void> write_npz(const std::string& path, const std::vector<Named>& arrays);

}  // namespace lemma::runtime
