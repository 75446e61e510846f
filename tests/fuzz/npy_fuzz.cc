// Any bytes as a .npy file: refused with a message, or an array that the bytes can really hold and that is written back
// and read again as the same.
#include <cstdint>
#include <cstring>
#include <span>

#include "lemma/base/check.h"
#include "lemma/runtime/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lemma;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const std::optional<scalar::DType> expected : {std::optional<scalar::DType>(), std::optional(scalar::DType::BF16),
                                                      std::optional(scalar::DType::I4)}) {
    const auto array = runtime::read_npy(runtime::memory_source(bytes, "fuzz.npy"), expected);
    if (!array.ok()) {
      LEMMA_CHECK(!array.error().message.empty(), "a refusal without a message");
      continue;
    }
    LEMMA_CHECK(array->bytes() <= int64_t(size), "an array that the bytes cannot hold");
    const auto plain = runtime::contiguous(*array);
    LEMMA_CHECK(plain.ok() && plain->count() == array->count(), "an array that cannot be copied");
    if (scalar::bits(plain->type) < 8) continue;
    const std::string header = runtime::npy_header(plain->type, plain->extents);
    std::vector<std::byte> again(header.size() + size_t(plain->bytes()));
    std::memcpy(again.data(), header.data(), header.size());
    if (plain->bytes() > 0) std::memcpy(again.data() + header.size(), plain->data(), size_t(plain->bytes()));
    const auto back = runtime::read_npy(runtime::memory_source(again, "again.npy"), plain->type);
    LEMMA_CHECK(back.ok() && back->extents == plain->extents && back->type == plain->type, "a round trip that fails");
    LEMMA_CHECK(plain->bytes() == 0 || std::memcmp(back->data(), plain->data(), size_t(plain->bytes())) == 0,
                "a round trip that changes values");
  }
  return 0;
}
