#include "lemma/layout/convert.h"

#include <algorithm>
#include <string>

#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/digits.h"
#include "lemma/layout/query.h"
#include "lemma/layout/shuffle.h"

namespace lemma::layout {
namespace {

bool is_identity(const std::vector<uint64_t>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != uint64_t(1) << i) return false;
  }
  return true;
}

bool is_constant(const Chosen& chosen) {
  const auto zero = [](uint64_t v) { return v == 0; };
  return std::all_of(chosen.by_lane.begin(), chosen.by_lane.end(), zero) &&
         std::all_of(chosen.by_warp.begin(), chosen.by_warp.end(), zero);
}

std::vector<Digit> odd_digits(const std::vector<Digit>& digits) {
  std::vector<Digit> out;
  std::copy_if(digits.begin(), digits.end(), std::back_inserter(out), [](const Digit& d) { return d.radix != 2; });
  return out;
}

bool same_radices(const std::vector<Digit>& a, const std::vector<Digit>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Digit& x, const Digit& y) { return x.radix == y.radix; });
}

// The source's odd register digit that does what each of the target's does; nothing if one is missing, or if lanes or
// warps count otherwise or walk other pieces.
std::optional<std::vector<int>> match_odd(const Layout& source, const Layout& target) {
  for (Axis axis : {Axis::Lane, Axis::Warp}) {
    if (!same_radices(source[axis], target[axis]) || odd_digits(source[axis]) != odd_digits(target[axis])) {
      return std::nullopt;
    }
  }
  const std::vector<Digit> from = odd_digits(source[Axis::Register]);
  std::vector<int> out;
  for (const Digit& digit : odd_digits(target[Axis::Register])) {
    const auto it = std::find(from.begin(), from.end(), digit);
    if (it == from.end()) return std::nullopt;
    out.push_back(int(it - from.begin()));
  }
  return out;
}

// Registers keep their numbers: odd digits stand at the same places among the bits, and the source's further digits are
// its highest.
bool same_numbers(const Layout& source, const Layout& target, const std::vector<int>& odd) {
  std::vector<Digit> first = source[Axis::Register];
  first.resize(target[Axis::Register].size());
  for (size_t i = 0; i < odd.size(); ++i) {
    if (odd[i] != int(i)) return false;
  }
  return same_radices(first, target[Axis::Register]);
}

ThreadColumns thread_columns(const Layout& layout, size_t skipped) {
  ThreadColumns out{columns(layout, Axis::Register), columns(layout, Axis::Lane), columns(layout, Axis::Warp)};
  out.registers.erase(out.registers.begin(), out.registers.begin() + long(skipped));
  return out;
}

// How many low register bits both share, up to those of one machine register.
size_t shared_low_bits(const Layout& source, const Layout& target, int element_bits) {
  const size_t most = element_bits < 32 ? size_t(bits_of(32 / element_bits)) : 0;
  const std::vector<Digit>& a = source[Axis::Register];
  const std::vector<Digit>& b = target[Axis::Register];
  size_t n = 0;
  while (n < most && n < a.size() && n < b.size() && a[n].radix == 2 && a[n] == b[n]) ++n;
  return n;
}

void shift(std::vector<Exchange>& exchanges, size_t bits) {
  for (Exchange& e : exchanges) {
    for (Chosen* chosen : {&e.send, &e.receive}) {
      chosen->base <<= bits;
      for (uint64_t& v : chosen->by_lane) v <<= bits;
      for (uint64_t& v : chosen->by_warp) v <<= bits;
    }
  }
}

bool keeps_registers(const std::vector<Exchange>& moves) {
  return std::all_of(moves.begin(), moves.end(),
                     [](const Exchange& e) { return e.send == e.receive && is_constant(e.send); });
}

// Within warps, if that can be.
std::optional<Conversion> within_warps(const Layout& source, const Layout& target, int element_bits) {
  const std::optional<std::vector<int>> odd = match_odd(source, target);
  if (!odd) return std::nullopt;
  for (size_t packed = shared_low_bits(source, target, element_bits) + 1; packed-- > 0;) {
    std::optional<ShufflePlan> plan = plan_shuffles(thread_columns(source, packed), thread_columns(target, packed));
    if (!plan) continue;
    shift(plan->moves, packed);
    shift(plan->shuffles, packed);
    Conversion out;
    const bool same = keeps_registers(plan->moves) && same_numbers(source, target, *odd);
    out.kind = !plan->shuffles.empty() ? ConversionKind::Shuffles
               : same                  ? ConversionKind::Same
                                       : ConversionKind::Registers;
    out.packed = 1 << packed;
    out.moves = std::move(plan->moves);
    out.shuffles = std::move(plan->shuffles);
    out.odd = *odd;
    return out;
  }
  return std::nullopt;
}

// Wavefronts of all accesses without conflicts.
int64_t least_wavefronts(const Layout& distribution, int width, int element_bits) {
  const int64_t lane_bits = std::max(width * element_bits, bank_bits), lanes = count(distribution, Axis::Lane);
  const int64_t phases = std::max<int64_t>(1, lanes * lane_bits / line_bits);
  return count(distribution) / lanes / width * phases;
}

// A plain layout swizzled for a write and a read, or as it is where its first 128 bytes are no bits.
base::Result<DerivedSwizzle> swizzle_for(const Layout& plain, const std::vector<Access>& accesses, int element_bits) {
  base::Result<DerivedSwizzle> found = derive_swizzle(plain, accesses, element_bits);
  if (found.ok() || found.error().failure != base::Failure::Unsupported) return found;
  DerivedSwizzle out;
  out.memory = plain;
  out.proven = false;
  for (const Access& access : accesses) {
    LEMMA_TRY(const Wavefronts counted, count_wavefronts(plain, access, element_bits));
    out.taken += counted.taken;
    out.least += counted.least;
  }
  return out;
}

// The best over all widths of accesses, the widest first: narrow ones swizzle in finer chunks.
base::Result<void> improve(std::optional<Conversion>& best, const Layout& plain, const Layout& source,
                           const Layout& target, int element_bits) {
  LEMMA_TRY(const VectorAccess write, vector_access(source, plain, max_access_bits / element_bits));
  LEMMA_TRY(const VectorAccess read, vector_access(target, plain, max_access_bits / element_bits));
  for (int w = write.width; w > 0; w /= 2) {
    for (int r = read.width; r > 0; r /= 2) {
      const int64_t least = least_wavefronts(source, w, element_bits) + least_wavefronts(target, r, element_bits);
      if (best && best->wavefronts <= least) continue;
      LEMMA_TRY(DerivedSwizzle found, swizzle_for(plain, {{source, w}, {target, r}}, element_bits));
      if (best && best->wavefronts <= found.taken) continue;
      best.emplace();
      best->kind = ConversionKind::Shared;
      best->memory = std::move(found.memory);
      best->write_width = w;
      best->read_width = r;
      best->wavefronts = found.taken;
      best->least = found.least;
    }
  }
  return {};
}

// Pieces one after the other, each dense with one of the dimensions fastest.
base::Result<Conversion> through_memory(const Layout& source, const Layout& target, int element_bits) {
  std::optional<Conversion> best;
  for (size_t fastest = source.shape.size(); fastest-- > 0;) {
    std::vector<int> order = descending(source.shape.size());
    std::stable_partition(order.begin(), order.end(), [&](int d) { return d == int(fastest); });
    LEMMA_TRY(const Layout plain, piecewise(source.shape, order));
    LEMMA_TRY_VOID(improve(best, plain, source, target, element_bits));
  }
  return *std::move(best);
}

base::Result<void> check_pair(const Layout& source, const Layout& target) {
  LEMMA_TRY_VOID(validate(source));
  LEMMA_TRY_VOID(validate(target));
  if (source.shape != target.shape) return base::invalid("a conversion between tiles of different shapes");
  for (Axis axis : {Axis::Lane, Axis::Warp}) {
    if (count(source, axis) != count(target, axis)) {
      return base::invalid("a conversion from " + std::to_string(count(source, axis)) + " to " +
                           std::to_string(count(target, axis)) + " " + std::string(name(axis)) + "s, expected as many");
    }
  }
  if (!source[Axis::Offset].empty() || !target[Axis::Offset].empty()) {
    return base::invalid("a conversion of a memory layout, expected distributions over registers, lanes and warps");
  }
  if (!is_surjective(source) || !is_surjective(target)) {
    return base::invalid("a conversion of a distribution that leaves elements of its tile out");
  }
  if (!redundant_digits(target)[size_t(Axis::Register)].empty()) {
    return base::unsupported("a conversion to registers that hold an element twice", {},
                             "drop the broadcasts, convert, and copy the registers");
  }
  return {};
}

}  // namespace

uint64_t Chosen::at(uint64_t lane, uint64_t warp) const {
  return base ^ combine(by_lane, lane) ^ combine(by_warp, warp);
}

std::optional<uint64_t> xor_mask(const Exchange& exchange) {
  const auto zero = [](uint64_t v) { return v == 0; };
  const std::vector<uint64_t>& warps = exchange.lane.by_warp;
  if (!is_identity(exchange.lane.by_lane) || !std::all_of(warps.begin(), warps.end(), zero)) return std::nullopt;
  return exchange.lane.base;
}

int64_t register_index(const Layout& layout, uint64_t bits, const std::vector<int32_t>& odds) {
  int64_t out = 0, weight = 1;
  size_t odd = 0;
  for (const Digit& digit : layout[Axis::Register]) {
    const int64_t value = digit.radix == 2 ? int64_t(bits & 1) : odd < odds.size() ? odds[odd] : 0;
    if (digit.radix == 2)
      bits >>= 1;
    else
      ++odd;
    out += value * weight;
    weight *= digit.radix;
  }
  return out;
}

base::Result<Conversion> convert(const Layout& source, const Layout& target, const ConvertOptions& options) {
  LEMMA_TRY_VOID(check_element_bits(options.element_bits));
  LEMMA_TRY_VOID(check_pair(source, target));
  if (std::optional<Conversion> found = within_warps(source, target, options.element_bits)) return *std::move(found);
  return through_memory(source, target, options.element_bits);
}

}  // namespace lemma::layout
