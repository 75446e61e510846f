// IDX files (the format of the MNIST family): big-endian, plain or gzipped, found out by content.
#pragma once

#include "lemma/runtime/array.h"
#include "lemma/runtime/bytes.h"

namespace lemma::runtime {

base::Result<Array> read_idx(Bytes source);
base::Result<void> write_idx(const std::string& path, const Array& array);

}  // namespace lemma::runtime
