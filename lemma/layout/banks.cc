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

// Row-major ranks of a layout's points, with what each axis adds worked out once: bits by exclusive or, odd digits by
// sum.
class Ranks {
 public:
  explicit Ranks(const Layout& layout) {
    for (int b = 0; b < piece_bits(layout.shape); ++b) {
      weights_.push_back(flatten(layout.shape, unpack(layout.shape, uint64_t(1) << b)));
    }
    for (Axis axis : {Axis::Register, Axis::Lane, Axis::Warp}) {
      for (int64_t i = 0; i < count(layout, axis); ++i) {
        Index index{};
        index[size_t(axis)] = i;
        Point point = layout::at(layout, index);
        const uint64_t bits = pack(layout.shape, point);
        for (size_t d = 0; d < point.size(); ++d) point[d] -= point[d] & (piece(layout.shape[d]) - 1);
        parts_[size_t(axis)].push_back({bits, flatten(layout.shape, point)});
      }
    }
  }
  int64_t at(int64_t r, int64_t lane, int64_t warp) const {
    const Part &a = parts_[0][size_t(r)], &b = parts_[1][size_t(lane)], &c = parts_[2][size_t(warp)];
    int64_t rank = a.odd + b.odd + c.odd;
    for (uint64_t bits = a.bits ^ b.bits ^ c.bits; bits != 0; bits &= bits - 1) {
      rank += weights_[size_t(__builtin_ctzll(bits))];
    }
    return rank;
  }

 private:
  struct Part {
    uint64_t bits;
    int64_t odd;
  };
  std::vector<int64_t> weights_;            // of the bits of a packed point
  std::array<std::vector<Part>, 3> parts_;  // by register, lane and warp
};

// Wavefronts of lanes whose accesses begin at these words. They are aligned, so what collides in the first word
// collides alike in the others.
int64_t phase(std::vector<int64_t>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int64_t, banks> load{};
  for (int64_t word : words) ++load[size_t(word % banks)];
  return *std::max_element(load.begin(), load.end());
}

}  // namespace

base::Result<Wavefronts> count_wavefronts(const Layout& memory, const Access& access, int element_bits) {
  LEMMA_TRY_VOID(check_element_bits(element_bits));
  const Layout& distribution = access.distribution;
  if (!is_power_of_two(access.width) || int64_t(access.width) * element_bits > max_access_bits) {
    return base::invalid("accesses of " + std::to_string(access.width) + " elements of " +
                         std::to_string(element_bits) + " bits, expected a power of two of at most 128 bits");
  }
  LEMMA_TRY(const VectorAccess vector, vector_access(distribution, memory, access.width));
  if (vector.width < access.width) {
    return base::invalid("accesses of " + std::to_string(access.width) + " elements where a lane holds " +
                         std::to_string(vector.width) + " neighbours");
  }
  LEMMA_TRY(const Layout related, relate(memory, distribution));
  const int64_t lanes = count(distribution, Axis::Lane), warps = count(distribution, Axis::Warp);
  if (lanes > 32) return base::unsupported("warps of " + std::to_string(lanes) + " lanes, expected at most 32");
  const int64_t lane_bits = std::max(access.width * element_bits, bank_bits);
  const int64_t together = line_bits / lane_bits;
  const Ranks offsets(related);
  const std::vector<int64_t> registers = first_registers(distribution, vector);
  std::vector<int64_t> touched;
  Wavefronts out;
  for (int64_t warp = 0; warp < warps; ++warp) {
    for (int64_t r : registers) {
      int64_t taken = 0, phases = 0;
      for (int64_t begin = 0; begin < lanes; begin += together, ++phases) {
        touched.clear();
        for (int64_t lane = begin; lane < std::min(lanes, begin + together); ++lane) {
          touched.push_back(offsets.at(r, lane, warp) / access.width * access.width * element_bits / bank_bits);
        }
        taken += phase(touched);
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
