#include "lemma/layout/swizzle.h"

#include <algorithm>
#include <limits>
#include <string>

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/digits.h"

namespace lemma::layout {
namespace {

constexpr int above_shift = 32;  // a vector of a span: coefficients of the part above the line, then bits of the line

// One access as the search sees it.
struct Span {
  std::vector<uint64_t> vectors;  // echelon form, lowest leading bit first
  int drop = 0;                   // bits of the line below a vector or a word
  int64_t weight = 0;             // wavefronts without conflicts
};

struct Problem {
  int line = 0;                 // offset bits within 128 bytes
  int chunk = 0;                // offset bits of a chunk
  std::vector<uint64_t> basis;  // reduced, of the parts above the line
  std::vector<int> pivots;      // each in one basis vector only
  std::vector<Span> spans;
};

// What a span costs when the first `fixed` values are given: the determined part is the vectors below that coefficient.
int64_t cost(const Span& span, const std::vector<uint64_t>& values, int fixed, int chunk) {
  Echelon image;
  int determined = 0;
  for (uint64_t vector : span.vectors) {
    const uint64_t coefficients = vector >> above_shift;
    if (coefficients >> fixed != 0) break;
    const uint64_t line = (vector & 0xffffffffu) ^ (combine(values, coefficients) << chunk);
    image.insert(line >> span.drop);
    ++determined;
  }
  return span.weight << (determined - image.rank());
}

class Search {
 public:
  Search(const Problem& problem, const SwizzleOptions& options) : problem_(problem), tries_(options.most_tries) {
    for (uint64_t v = 0; v < uint64_t(1) << (problem.line - problem.chunk); ++v) order_.push_back(v);
    std::stable_sort(order_.begin(), order_.end(),
                     [](uint64_t a, uint64_t b) { return __builtin_popcountll(a) < __builtin_popcountll(b); });
    for (const Span& span : problem.spans) least_ += span.weight;
    values_.assign(problem.basis.size(), 0);
    best_values_ = values_;
    best_ = total(int(values_.size()));
    descend(0);
  }
  const std::vector<uint64_t>& values() const { return best_values_; }
  int64_t taken() const { return best_; }
  bool proven() const { return tries_ > 0 || best_ == least_; }

 private:
  int64_t total(int fixed) const {
    int64_t sum = 0;
    for (const Span& span : problem_.spans) sum += cost(span, values_, fixed, problem_.chunk);
    return sum;
  }
  // As deep as there are bits above the line, 31 at most.
  void descend(int fixed) {
    if (fixed == int(values_.size())) {
      best_ = total(fixed);
      best_values_ = values_;
      return;
    }
    for (uint64_t value : order_) {
      if (best_ == least_ || tries_ <= 0) return;
      --tries_;
      values_[size_t(fixed)] = value;
      if (total(fixed + 1) < best_) descend(fixed + 1);
    }
    values_[size_t(fixed)] = 0;
  }

  const Problem& problem_;
  int64_t tries_;
  int64_t least_ = 0;
  int64_t best_ = 0;
  std::vector<uint64_t> order_, values_, best_values_;
};

// The steps of the lanes of one phase, as offsets.
std::vector<uint64_t> phase_steps(const Layout& offsets, int64_t lane_bits) {
  std::vector<uint64_t> lanes = columns(offsets, Axis::Lane);
  const size_t together = size_t(bits_of(line_bits / lane_bits));
  if (lanes.size() > together) lanes.resize(together);
  return lanes;
}

base::Result<void> check_line(const Layout& memory, int line) {
  for (size_t i = 0; i < memory[Axis::Offset].size() && int(i) < line; ++i) {
    const int32_t radix = memory[Axis::Offset][i].radix;
    if (radix != 2) {
      return base::unsupported(
          "a swizzle of a memory layout with a digit of radix " + std::to_string(radix) + " within 128 bytes", {},
          "store the tile in slabs or pieces of a power of two columns");
    }
  }
  return {};
}

base::Result<void> check_lanes(const Layout& distribution) {
  for (const Digit& digit : distribution[Axis::Lane]) {
    if (digit.radix != 2) return base::unsupported("lanes in a digit of radix " + std::to_string(digit.radix));
  }
  return {};
}

// Line and basis of a problem are known; its spans follow.
void add_spans(Problem& problem, const std::vector<std::vector<uint64_t>>& steps, const std::vector<Access>& accesses,
               const std::vector<Wavefronts>& counted, int element_bits) {
  const int word = element_bits < bank_bits ? bits_of(bank_bits / element_bits) : 0;
  const uint64_t in_line = (uint64_t(1) << problem.line) - 1;
  for (size_t a = 0; a < accesses.size(); ++a) {
    Span span;
    span.drop = std::max(word, bits_of(accesses[a].width));
    span.weight = counted[a].least;
    std::vector<uint64_t> vectors;
    for (uint64_t step : steps[a]) {
      uint64_t coefficients = 0;
      for (size_t b = 0; b < problem.basis.size(); ++b) coefficients |= ((step >> problem.pivots[b]) & 1) << b;
      vectors.push_back(coefficients << above_shift | ((step & in_line) >> span.drop << span.drop));
    }
    // Echelon form by the highest bit, so that a prefix spans what the first coefficients determine.
    for (int bit = 63; bit >= 0; --bit) {
      const auto pivot = std::find_if(vectors.begin(), vectors.end(), [&](uint64_t v) { return v >> bit == 1; });
      if (pivot == vectors.end()) continue;
      const uint64_t vector = *pivot;
      vectors.erase(pivot);
      for (uint64_t& v : vectors) v = (v >> bit & 1) != 0 ? v ^ vector : v;
      span.vectors.push_back(vector);
    }
    std::reverse(span.vectors.begin(), span.vectors.end());
    problem.spans.push_back(std::move(span));
  }
}

// Reduced basis of the parts above the line, the lowest bit of each vector its pivot.
void find_basis(Problem& problem, const std::vector<std::vector<uint64_t>>& steps) {
  for (const std::vector<uint64_t>& lanes : steps) {
    for (uint64_t step : lanes) {
      uint64_t above = step >> problem.line << problem.line;
      for (size_t b = 0; b < problem.basis.size(); ++b) {
        if ((above >> problem.pivots[b]) & 1) above ^= problem.basis[b];
      }
      if (above == 0) continue;
      const int pivot = __builtin_ctzll(above);
      for (uint64_t& v : problem.basis) v = (v >> pivot) & 1 ? v ^ above : v;
      problem.basis.push_back(above);
      problem.pivots.push_back(pivot);
    }
  }
}

// Values on basis vectors as a mask for each offset digit. `bit_positions` are the digits that are bits.
Swizzle masks(const Layout& memory, const Problem& problem, const std::vector<uint64_t>& values) {
  const std::vector<Digit>& digits = memory[Axis::Offset];
  std::vector<size_t> positions;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i].radix == 2) positions.push_back(i);
  }
  Swizzle out(digits.size(), 0);
  for (size_t b = 0; b < values.size(); ++b) out[positions[size_t(problem.pivots[b])]] = values[b] << problem.chunk;
  return out;
}

}  // namespace

base::Result<DerivedSwizzle> derive_swizzle(const Layout& memory, const std::vector<Access>& accesses, int element_bits,
                                            const SwizzleOptions& options) {
  LEMMA_TRY_VOID(check_element_bits(element_bits));
  Problem problem;
  problem.line = bits_of(line_bits / element_bits);
  LEMMA_TRY_VOID(check_line(memory, problem.line));
  int chunk_bits = options.chunk_bytes > 0 ? options.chunk_bytes * 8 : std::max(bank_bits, element_bits);
  std::vector<std::vector<uint64_t>> steps;
  std::vector<Wavefronts> counted;
  for (const Access& access : accesses) {
    LEMMA_TRY_VOID(check_lanes(access.distribution));
    LEMMA_TRY(const Wavefronts plain, count_wavefronts(memory, access, element_bits));
    LEMMA_TRY(const Layout offsets, relate(memory, access.distribution));
    const int lane_bits = std::max(access.width * element_bits, bank_bits);
    counted.push_back(plain);
    steps.push_back(phase_steps(offsets, lane_bits));
    if (options.chunk_bytes == 0) chunk_bits = std::max(chunk_bits, lane_bits);
    if (chunk_bits < lane_bits) {
      return base::invalid("swizzled chunks of " + std::to_string(options.chunk_bytes) + " bytes for accesses of " +
                           std::to_string(lane_bits / 8) + " bytes, expected at least as many");
    }
  }
  if (!is_power_of_two(chunk_bits) || chunk_bits > line_bits || chunk_bits < element_bits) {
    return base::invalid("swizzled chunks of " + std::to_string(options.chunk_bytes) +
                         " bytes, expected a power of two from one element to 128");
  }
  problem.chunk = bits_of(chunk_bits / element_bits);
  find_basis(problem, steps);
  add_spans(problem, steps, accesses, counted, element_bits);
  const Search search(problem, options);

  DerivedSwizzle out;
  out.swizzle = masks(memory, problem, search.values());
  out.memory = swizzled(memory, out.swizzle);
  out.proven = search.proven();
  for (const Access& access : accesses) {
    LEMMA_TRY(const Wavefronts now, count_wavefronts(out.memory, access, element_bits));
    out.wavefronts.push_back(now);
    out.taken += now.taken;
    out.least += now.least;
  }
  LEMMA_CHECK(out.taken == search.taken(), "a swizzle takes other wavefronts than its search found");
  return out;
}

}  // namespace lemma::layout
