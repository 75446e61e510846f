// Any bytes as an IDX file, plain and as a gzip stream: refused with a message, or an array that they can really hold.
#include <cstdint>
#include <memory>
#include <span>

#include "lemma/base/check.h"
#include "lemma/runtime/idx.h"

namespace {

void check(const lemma::base::Result<lemma::runtime::Array>& array, int64_t most) {
  if (array.ok()) {
    LEMMA_CHECK(array->bytes() <= most, "an array that the bytes cannot hold");
    LEMMA_CHECK(array->storage->bytes() == array->bytes(), "storage of another size");
  } else {
    LEMMA_CHECK(!array.error().message.empty(), "a refusal without a message");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lemma;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check(runtime::read_idx(runtime::memory_source(bytes, "fuzz.idx")), int64_t(size));
  const auto compressed = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  check(runtime::read_idx(runtime::gzip_source(compressed, "fuzz.gz")), int64_t(size) * 1032 + 1024);
  return 0;
}
