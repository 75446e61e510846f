// What the lanes of a warp do together: they meet, and the last to come does it for all. Shuffles, matrix loads and
// products order no memory; only the warp barrier does.

#include "emulator/engine.h"
#include "emulator/kernel/numbers.h"

namespace lemma::emulator {
namespace {

const char* name(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::Sync:
      return "a warp barrier";
    case WarpOperation::Shuffle:
    case WarpOperation::ShuffleXor:
    case WarpOperation::ShuffleDown:
      return "a shuffle";
    case WarpOperation::LoadMatrix:
    case WarpOperation::LoadTransposed:
      return "a matrix load";
    default:
      return "a matrix product";
  }
}

void shuffle(std::span<Fibre* const> lanes, WarpOperation operation) {
  unsigned long long values[32] = {};
  for (size_t l = 0; l < lanes.size(); ++l) values[l] = static_cast<Exchange*>(lanes[l]->operands)->value;
  for (size_t l = 0; l < lanes.size(); ++l) {
    Exchange& mine = *static_cast<Exchange*>(lanes[l]->operands);
    int source = mine.operand & 31;
    if (operation == WarpOperation::ShuffleXor) source = int(l) ^ mine.operand;
    if (operation == WarpOperation::ShuffleDown) source = int(l) + mine.operand;
    if (source >= 0 && source < int(lanes.size())) mine.value = values[source];  // else its own
  }
}

// The element formats of products: how many to a register, and their values.
struct Bf16 {
  static constexpr int per_register = 2;
  using Accumulator = float;
  static double value(unsigned bits, int i) { return float_of_bf16((unsigned short)(bits >> (16 * i))); }
};
struct F16 {
  static constexpr int per_register = 2;
  using Accumulator = float;
  static double value(unsigned bits, int i) { return float_of_f16((unsigned short)(bits >> (16 * i))); }
};
struct Tf32 {
  static constexpr int per_register = 1;
  using Accumulator = float;
  static double value(unsigned bits, int) { return float_of(bits & 0xffffe000); }  // the rest is not looked at
};
struct S8 {
  static constexpr int per_register = 4;
  using Accumulator = int;
  static double value(unsigned bits, int i) { return (signed char)(bits >> (8 * i)); }
};

// c += a * b for 16 x K times K x 8, where K is 8 elements of 32 bits. With g = lane / 4, q = lane % 4 and e elements a
// register: register i of A holds row g + 8 (i % 2), columns e q + 4 e (i / 2) and on; register i of B holds column g,
// rows e q + 4 e i and on; register r of C is row g + 8 (r / 2), column 2 q + r % 2. Sums are exact to f64 before they
// are rounded once; the machine's own order is not documented.
template <class Format>
void multiply(std::span<Fibre* const> lanes) {
  constexpr int e = Format::per_register, depth = 8 * e;
  using Accumulator = typename Format::Accumulator;
  double a[16][depth], b[depth][8];
  for (int lane = 0; lane < 32; ++lane) {
    const Product& product = *static_cast<const Product*>(lanes[size_t(lane)]->operands);
    const int g = lane / 4, q = lane % 4;
    for (int j = 0; j < e; ++j) {
      for (int i = 0; i < 4; ++i) a[g + 8 * (i % 2)][e * q + 4 * e * (i / 2) + j] = Format::value(product.a[i], j);
      for (int i = 0; i < 2; ++i) b[e * q + 4 * e * i + j][g] = Format::value(product.b[i], j);
    }
  }
  double sums[16][8] = {};
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < depth; ++k) {
      for (int column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const Product& product = *static_cast<const Product*>(lanes[size_t(lane)]->operands);
    Accumulator* c = static_cast<Accumulator*>(product.accumulators);
    for (int r = 0; r < 4; ++r) c[r] = Accumulator(double(c[r]) + sums[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2]);
  }
}

}  // namespace

void Engine::warp(Fibre& fibre, WarpOperation operation, void* operands) {
  Warp& warp = warps_[size_t(fibre.index / 32)];
  fibre.operation = operation;
  fibre.operands = operands;
  if (warp.arrived > 0) {
    for (const Fibre* lane : warp.lanes) {
      if (lane == &fibre || lane->state != State::InWarp) continue;
      if (lane->operation == operation && lane->statement == fibre.statement) break;
      const Party other = here(*lane);
      find(Fault::Divergence, here(fibre), nullptr, 0, other,
           std::string("comes to ") + name(operation) + " of its warp, and " + describe(other) + " is in " +
               name(lane->operation));
      halt(fibre);
    }
  }
  if (++warp.arrived < int(warp.lanes.size())) {
    suspend(fibre, State::InWarp);
    return;
  }
  warp.arrived = 0;
  idle_rounds_ = 0;
  perform(warp, operation);
  make_ready(warp.lanes, &fibre);
}

void Engine::perform(Warp& warp, WarpOperation operation) {
  const bool is_product = operation >= WarpOperation::ProductBf16,
             is_load = operation == WarpOperation::LoadMatrix || operation == WarpOperation::LoadTransposed;
  if ((is_product || is_load) && warp.lanes.size() != 32) {
    find(Fault::Divergence, here(*warp.lanes.front()), nullptr, 0, {},
         std::string("takes part in ") + name(operation) + " of a warp that has " + std::to_string(warp.lanes.size()) +
             " threads, and it takes 32");
    halted_ = true;
    return;
  }
  switch (operation) {
    case WarpOperation::Sync:
      return sync_warp(warp);
    case WarpOperation::Shuffle:
    case WarpOperation::ShuffleXor:
    case WarpOperation::ShuffleDown:
      return shuffle(warp.lanes, operation);
    case WarpOperation::LoadMatrix:
      return load_matrices(warp, false);
    case WarpOperation::LoadTransposed:
      return load_matrices(warp, true);
    case WarpOperation::ProductBf16:
      return multiply<Bf16>(warp.lanes);
    case WarpOperation::ProductF16:
      return multiply<F16>(warp.lanes);
    case WarpOperation::ProductTf32:
      return multiply<Tf32>(warp.lanes);
    case WarpOperation::ProductS8:
      return multiply<S8>(warp.lanes);
  }
}

void Engine::sync_warp(Warp& warp) {
  // Lanes that did nothing but meet since the last time share one clock, which nobody else has.
  std::shared_ptr<Clock> joined = warp.lanes.front()->clock;
  bool is_shared = joined.use_count() == long(warp.lanes.size()) + 1;
  for (const Fibre* lane : warp.lanes) is_shared = is_shared && lane->clock == joined;
  if (!is_shared) {
    joined = std::make_shared<Clock>(*joined);
    for (const Fibre* lane : warp.lanes) joined->join(*lane->clock);
  }
  for (const Fibre* lane : warp.lanes) joined->seen[size_t(lane->index)] = lane->now;
  ++stamp_;
  for (Fibre* lane : warp.lanes) {
    lane->clock = joined;
    lane->now = stamp_;
  }
}

// A row is read by the lane that names it, whoever gets its elements.
void Engine::load_matrices(Warp& warp, bool transposed) {
  const int count = static_cast<const MatrixLoad*>(warp.lanes.front()->operands)->count;
  unsigned short rows[32][8];
  for (int l = 0; l < 8 * count; ++l) {
    Fibre& lane = *warp.lanes[size_t(l)];
    __builtin_memcpy(rows[l], access(lane, static_cast<const MatrixLoad*>(lane.operands)->row, 16, 16, Kind::Read), 16);
  }
  for (int l = 0; l < 32; ++l) {
    const MatrixLoad& load = *static_cast<const MatrixLoad*>(warp.lanes[size_t(l)]->operands);
    const int g = l / 4, q = l % 4;
    for (int j = 0; j < count; ++j) {
      const unsigned low = transposed ? rows[8 * j + 2 * q][g] : rows[8 * j + g][2 * q];
      const unsigned high = transposed ? rows[8 * j + 2 * q + 1][g] : rows[8 * j + g][2 * q + 1];
      load.registers[j] = low | high << 16;
    }
  }
}

}  // namespace lemma::emulator
