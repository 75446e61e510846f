#include "lemma/layout/fragment.h"

#include <algorithm>
#include <string>

#include "lemma/layout/digits.h"
#include "lemma/layout/distribute.h"

namespace lemma::layout {
namespace {

Digit bit(int32_t row, int32_t column) { return Digit{2, {row, column}}; }

Layout accumulator() {
  Layout out;
  out.shape = {16, 8};
  out[Axis::Register] = {bit(0, 1), bit(8, 0)};
  out[Axis::Lane] = {bit(0, 2), bit(0, 4), bit(1, 0), bit(2, 0), bit(4, 0)};
  return out;
}

Layout operand_a(int element_bits) {
  const int32_t depth = 256 / element_bits, packed = 32 / element_bits;
  Layout out;
  out.shape = {16, depth};
  append_extent(out[Axis::Register], out.shape, 1, 1, packed);
  out[Axis::Register].push_back(bit(8, 0));
  out[Axis::Register].push_back(bit(0, depth / 2));
  out[Axis::Lane] = {bit(0, packed), bit(0, 2 * packed), bit(1, 0), bit(2, 0), bit(4, 0)};
  return out;
}

Layout operand_b(int element_bits) {
  const int32_t depth = 256 / element_bits, packed = 32 / element_bits;
  Layout out;
  out.shape = {depth, 8};
  append_extent(out[Axis::Register], out.shape, 0, 1, packed);
  out[Axis::Register].push_back(bit(depth / 2, 0));
  out[Axis::Lane] = {bit(packed, 0), bit(2 * packed, 0), bit(0, 1), bit(0, 2), bit(0, 4)};
  return out;
}

// Steps 1, 2, 4, ... along one dimension.
bool is_run(const std::vector<Digit>& digits) {
  for (size_t d = 0; !digits.empty() && d < digits[0].step.size(); ++d) {
    bool run = true;
    for (size_t i = 0; run && i < digits.size(); ++i) {
      Point expected(digits[i].step.size(), 0);
      expected[d] = int32_t(1) << i;
      run = digits[i].radix == 2 && digits[i].step == expected;
    }
    if (run) return true;
  }
  return false;
}

}  // namespace

base::Result<Layout> mma(Operand operand, int element_bits) {
  if (element_bits != 8 && element_bits != 16 && element_bits != 32) {
    return base::unsupported("a matrix fragment of elements of " + std::to_string(element_bits) +
                             " bits, expected 8, 16 or 32");
  }
  switch (operand) {
    case Operand::A:
      return operand_a(element_bits);
    case Operand::B:
      return operand_b(element_bits);
    case Operand::Accumulator:
      return accumulator();
  }
  return accumulator();
}

base::Result<Layout> wgmma_accumulator(int32_t n) {
  if (n < 8 || n > 256 || n % 8 != 0) {
    return base::invalid("an accumulator of " + std::to_string(n) + " columns, expected a multiple of 8 up to 256");
  }
  return repeat(accumulator(), {64, n}, {4, 1}, {0, 1});
}

base::Result<Layout> wgmma_a(int element_bits) {
  LEMMA_TRY(const Layout fragment, mma(Operand::A, element_bits));
  return repeat(fragment, {64, fragment.shape[1]}, {4, 1}, {0, 1});
}

Layout simdgroup_matrix() {
  Layout out;
  out.shape = {8, 8};
  out[Axis::Register] = {bit(0, 1)};
  out[Axis::Lane] = {bit(0, 2), bit(1, 0), bit(2, 0), bit(0, 4), bit(4, 0)};
  return out;
}

base::Result<Layout> matrix_rows(const Layout& fragment, int element_bits, Rows rows) {
  LEMMA_TRY_VOID(check_element_bits(element_bits));
  const std::vector<Digit>& registers = fragment[Axis::Register];
  const std::vector<Digit>& lanes = fragment[Axis::Lane];
  if (element_bits > 32 || (rows == Rows::Transposed && element_bits != 16)) {
    return base::unsupported("matrix loads of elements of " + std::to_string(element_bits) + " bits, expected " +
                             (rows == Rows::Transposed ? "16" : "at most 32"));
  }
  const size_t packed = size_t(bits_of(32 / element_bits));
  const auto is_bit = [](const Digit& digit) { return digit.radix == 2; };
  if (lanes.size() != 5 || !std::all_of(lanes.begin(), lanes.end(), is_bit) || registers.size() < packed) {
    return base::unsupported("matrix loads need 32 lanes that hold 32 bits each", {},
                             "use a matrix instruction's fragment");
  }
  const std::vector<Digit> within(registers.begin(), registers.begin() + int(packed));
  Layout out;
  out.shape = fragment.shape;
  out[Axis::Warp] = fragment[Axis::Warp];
  std::vector<Digit>& run = out[Axis::Register];
  std::vector<Digit>& addresses = out[Axis::Lane];
  if (rows == Rows::Plain) {
    run = within;
    run.insert(run.end(), lanes.begin(), lanes.begin() + 2);
    addresses.assign(lanes.begin() + 2, lanes.end());
  } else {
    run.assign(lanes.begin() + 2, lanes.end());
    addresses = within;
    addresses.insert(addresses.end(), lanes.begin(), lanes.begin() + 2);
  }
  if (!is_run(run)) {
    return base::unsupported("matrix loads of a fragment whose rows of 16 bytes are not neighbours in the tile", {},
                             "use a matrix instruction's fragment, or the other orientation");
  }
  for (size_t i = packed; i < registers.size(); ++i) {
    const bool matrix = addresses.size() < 5 && registers[i].radix == 2;  // x4 loads four matrices of 8 rows
    (matrix ? addresses : run).push_back(registers[i]);
  }
  return out;
}

}  // namespace lemma::layout
