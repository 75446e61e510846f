#include "lemma/layout/banks.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/digits.h"
#include "lemma/layout/query.h"

namespace lemma::layout {
namespace {

// One register of every access: those whose pivot bits are zero.
std::vector<int64_t> first_registers(const Layout& distribution, const VectorAccess& vector) {
  uint64_t pivots = 0;
  std::vector<uint64_t> masks = vector.registers;
  for (size_t i = 0; i < masks.size(); ++i) {
    const uint64_t pivot = masks[i] & -masks[i];
    for (size_t j = 0; j < masks.size(); ++j) {
      if (j != i && (masks[j] & pivot) != 0) masks[j] ^= masks[i];
    }
    pivots |= pivot;
  }
  std::vector<int64_t> out;
  const std::vector<Digit>& digits = distribution[Axis::Register];
  for (int64_t r = 0; r < count(distribution, Axis::Register); ++r) {
    if ((bit_digits(digits, r) & pivots) == 0) out.push_back(r);
  }
  return out;
}

// Wavefronts of lanes that touch words [first, first + words).
int64_t phase(const std::vector<int64_t>& first, int64_t words) {
  std::array<std::vector<int64_t>, banks> wanted;
  for (int64_t start : first) {
    for (int64_t w = start; w < start + words; ++w) wanted[size_t(w % banks)].push_back(w);
  }
  size_t most = 1;
  for (std::vector<int64_t>& bank : wanted) {
    std::sort(bank.begin(), bank.end());
    most = std::max(most, size_t(std::unique(bank.begin(), bank.end()) - bank.begin()));
  }
  return int64_t(most);
}

}  // namespace

base::Result<Wavefronts> count_wavefronts(const Layout& memory, const Access& access, int element_bits) {
  LEMMA_TRY_VOID(check_element_bits(element_bits));
  const Layout& distribution = access.distribution;
  if (!is_power_of_two(access.width) || access.width * element_bits > max_access_bits) {
    return base::invalid("accesses of " + std::to_string(access.width) + " elements of " +
                         std::to_string(element_bits) + " bits, expected a power of two of at most 128 bits");
  }
  LEMMA_TRY(const VectorAccess vector, vector_access(distribution, memory, access.width));
  if (vector.width < access.width) {
    return base::invalid("accesses of " + std::to_string(access.width) + " elements where a lane holds " +
                         std::to_string(vector.width) + " neighbours");
  }
  LEMMA_TRY(const Layout offsets, relate(memory, distribution));
  const int64_t lanes = count(distribution, Axis::Lane), warps = count(distribution, Axis::Warp);
  if (lanes > 32) return base::unsupported("warps of " + std::to_string(lanes) + " lanes, expected at most 32");
  const int64_t lane_bits = std::max(access.width * element_bits, bank_bits);
  const int64_t words = lane_bits / bank_bits, together = line_bits / lane_bits;
  Wavefronts out;
  for (int64_t warp = 0; warp < warps; ++warp) {
    for (int64_t r : first_registers(distribution, vector)) {
      int64_t taken = 0, phases = 0;
      for (int64_t begin = 0; begin < lanes; begin += together, ++phases) {
        std::vector<int64_t> first;
        for (int64_t lane = begin; lane < std::min(lanes, begin + together); ++lane) {
          const int64_t offset = flatten(offsets.shape, at(offsets, Index{r, lane, warp, 0}));
          first.push_back(offset / access.width * access.width * element_bits / bank_bits);
        }
        taken += phase(first, words);
      }
      ++out.accesses;
      out.taken += taken;
      out.least += phases;
      out.worst = std::max(out.worst, taken);
    }
  }
  return out;
}

}  // namespace lemma::layout
