#include "lemma/tile/passes/arrange_shared.h"

#include <algorithm>

#include "lemma/layout/algebra.h"
#include "lemma/layout/distribute.h"
#include "lemma/layout/fragment.h"
#include "lemma/layout/memory.h"
#include "lemma/layout/swizzle.h"
#include "lemma/tile/edit.h"
#include "lemma/tile/fragments.h"
#include "lemma/tile/matrix_unit.h"

namespace lemma::tile {
namespace {

using layout::Point;

// The last two extents.
std::optional<Point> matrix_shape(const Buffer& buffer) {
  if (buffer.extents.size() < 2) return std::nullopt;
  return regular_shape(std::vector<view::Form>(buffer.extents.end() - 2, buffer.extents.end()));
}

// Which 16 bytes each lane asks for when fragments of the operand are loaded.
base::Result<layout::Access> fragment_access(const Point& shape, layout::Operand operand, bool transposed, int bits) {
  LEMMA_TRY(layout::Layout fragment, layout::mma(operand, bits));
  if (transposed) {
    LEMMA_TRY(fragment, layout::transpose(std::move(fragment), {1, 0}));
  }
  LEMMA_TRY(const layout::Layout whole, layout::repeat(fragment, shape, {1, 1}, {1, 0}));
  // Rows of memory are rows of `a`, and columns of `b` (whose fragment runs along k).
  const bool plain = (operand == layout::Operand::A) != transposed;
  LEMMA_TRY(layout::Layout rows, layout::matrix_rows(whole, bits, plain ? layout::Rows::Plain : layout::Rows::Transposed));
  return layout::Access{std::move(rows), 128 / bits};
}

// Neighbouring lanes store neighbouring 16 bytes of a row.
base::Result<layout::Access> copy_access(const Point& shape, int bits) {
  layout::Blocks blocks;
  const int vector = std::min(shape[1], 128 / bits), along = std::min(32, shape[1] / vector);
  blocks.vector = {1, vector};
  blocks.lanes = {std::min(32 / along, shape[0]), along};
  blocks.warps = {1, 1};
  blocks.order = {1, 0};
  LEMMA_TRY(layout::Layout rows, layout::blocked(shape, blocks));
  return layout::Access{std::move(rows), vector};
}

base::Result<layout::Layout> derived(const Point& shape, layout::Operand operand, bool transposed, int bits) {
  LEMMA_TRY(const layout::Access load, fragment_access(shape, operand, transposed, bits));
  LEMMA_TRY(const layout::Access store, copy_access(shape, bits));
  LEMMA_TRY(const layout::Layout memory, layout::row_major(shape));
  LEMMA_TRY(layout::DerivedSwizzle found, layout::derive_swizzle(memory, {load, store}, bits));
  return std::move(found.memory);
}

// Visits the operands of units: f(access, operand, transposed, bits).
template <class F>
void operands(const Program& program, F f) {
  for (const Kernel& kernel : program.kernels) {
    visit(kernel.body, [&](const Stmt& stmt) {
      const auto* gemm = std::get_if<Gemm>(&stmt);
      const auto unit = gemm ? unit_of(program, *gemm) : std::nullopt;
      if (!unit || !in_registers(program.buffers[size_t(gemm->acc.buffer)])) return;
      const int bits = scalar::bits(unit->operand);
      f(gemm->a, layout::Operand::A, operand_place(gemm->a, gemm->m.var, gemm->k.var)->transposed, bits);
      f(gemm->b, layout::Operand::B, operand_place(gemm->b, gemm->k.var, gemm->n.var)->transposed, bits);
    });
  }
}

}  // namespace

std::vector<SharedAccess> shared_accesses(const Program& program, int b) {
  std::vector<SharedAccess> out;
  const Buffer& buffer = program.buffers[size_t(b)];
  const auto shape = matrix_shape(buffer);
  if (buffer.space != Space::Shared || !shape) return out;
  operands(program, [&](const Access& access, layout::Operand operand, bool transposed, int bits) {
    if (access.buffer != b) return;
    auto load = fragment_access(*shape, operand, transposed, bits);
    if (load) out.push_back({operand == layout::Operand::A ? "loads of left fragments" : "loads of right fragments", std::move(*load)});
  });
  auto store = copy_access(*shape, scalar::bits(buffer.type));
  if (store && !out.empty()) out.push_back({"stores of copies", std::move(*store)});
  return out;
}

Program arrange_shared(Program program) {
  const auto arrange = [&](const Access& access, layout::Operand operand, bool transposed, int bits) {
    Buffer& buffer = program.buffers[size_t(access.buffer)];
    if (buffer.space != Space::Shared || buffer.hints.placed) return;
    const auto shape = matrix_shape(buffer);
    if (!shape) return;
    auto memory = buffer.hints.swizzle ? layout::span_swizzled(*shape, bits, buffer.hints.swizzle)
                                       : derived(*shape, operand, transposed, bits);
    if (memory) buffer.hints.placed = std::move(*memory);
  };
  const Program& read = program;
  operands(read, arrange);
  return program;
}

}  // namespace lemma::tile
