#include "lemma/tile/matrix_unit.h"

namespace lemma::tile {

using scalar::DType;
using view::AtomKind;

std::optional<MatrixUnit> matrix_unit(DType a, DType b, DType accumulator) {
  if (a != b) return std::nullopt;
  if ((a == DType::BF16 || a == DType::F16) && accumulator == DType::F32) return MatrixUnit{16, 8, 16, a, accumulator};
  if (a == DType::I8 && accumulator == DType::I32) return MatrixUnit{16, 8, 32, a, accumulator};
  return std::nullopt;
}

std::optional<OperandPlace> operand_place(const Access& access, Var first, Var second) {
  const size_t rank = access.coords.size();
  if (rank < 2 || !access.guard.is_always()) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    const view::Form& c = access.coords[d];
    if (c.uses(AtomKind::Data)) return std::nullopt;
    if (d + 2 < rank && (c.uses(AtomKind::Index, first) || c.uses(AtomKind::Index, second))) return std::nullopt;
  }
  const auto row = access.coords[rank - 2].as_index(), column = access.coords[rank - 1].as_index();
  if (row == first && column == second) return OperandPlace{false};
  if (row == second && column == first) return OperandPlace{true};
  return std::nullopt;
}

std::optional<MatrixUnit> unit_of(const Program& program, const Gemm& gemm) {
  if (!gemm.taps.empty()) return std::nullopt;
  const auto buffer = [&](const Access& a) -> const Buffer& { return program.buffers[size_t(a.buffer)]; };
  const Buffer &a = buffer(gemm.a), &b = buffer(gemm.b), &acc = buffer(gemm.acc);
  const auto unit = matrix_unit(a.type, b.type, acc.type);
  if (!unit) return std::nullopt;
  const auto multiple = [](const Range& r, int of) {
    const auto n = r.extent.constant();
    return n && *n >= of && (*n & (*n - 1)) == 0;
  };
  // Pairs of accumulator columns are loaded together.
  if (!multiple(gemm.m, unit->m) || !multiple(gemm.n, 2 * unit->n) || !multiple(gemm.k, unit->k)) return std::nullopt;
  const auto pa = operand_place(gemm.a, gemm.m.var, gemm.k.var), pb = operand_place(gemm.b, gemm.k.var, gemm.n.var);
  const auto pc = operand_place(gemm.acc, gemm.m.var, gemm.n.var);
  if (!pa || !pb || !pc || pc->transposed) return std::nullopt;
  if (acc.space != Space::Fragment || acc.extents.size() != 2) return std::nullopt;
  if (b.space != Space::Shared) return std::nullopt;
  if (a.space == Space::Fragment ? pa->transposed || a.extents.size() != 2 : a.space != Space::Shared) return std::nullopt;
  // Bytes have no transposing loads.
  if (scalar::bits(unit->operand) == 8 && (pa->transposed || !pb->transposed)) return std::nullopt;
  // Whole tiles: the operand is its buffer.
  const auto whole = [&](const Access& access, const Range& first, const Range& second, bool transposed) {
    const Buffer& t = buffer(access);
    const size_t rank = t.extents.size();
    const view::Form& f = transposed ? second.extent : first.extent;
    const view::Form& s = transposed ? first.extent : second.extent;
    return t.extents[rank - 2] == f && t.extents[rank - 1] == s;
  };
  if (!whole(gemm.a, gemm.m, gemm.k, pa->transposed) || !whole(gemm.b, gemm.k, gemm.n, pb->transposed)) return std::nullopt;
  if (!whole(gemm.acc, gemm.m, gemm.n, false)) return std::nullopt;
  return unit;
}

}  // namespace lemma::tile
