// One function a statement kind; each writes its loops at the unit's place.
#pragma once

#include <optional>
#include <vector>

#include "lemma/emit/unit.h"

namespace lemma::emit {

void emit_map(Unit& unit, const tile::Map& map);
void emit_copy(Unit& unit, const tile::Copy& copy);
// One block at a time folds a tile into memory; the blocks of an ordered one come in grid order (see ordered()).
void emit_combine(Unit& unit, const tile::Combine& combine);
// Whether a kernel folds in grid order, so that its blocks must run one after another.
bool ordered(const tile::Kernel& kernel);

void emit_print(Unit& unit, const tile::Print& print);
void emit_extern(Unit& unit, const tile::Extern& text);

// A value that a reduction computes on the way, over its reads and in the unit's arena, and where it stores it.
struct Kept {
  tile::Access to;
  scalar::Expr value;
};
// A read that the same place of the next row will make, `step` elements on.
struct Ahead {
  tile::Access from;
  view::Form step;
};
// What a reduction does beside its own work for the row it stands in.
struct RowPart {
  std::vector<Kept> kept;
  std::vector<Ahead> ahead;
};
void emit_reduce(Unit& unit, const tile::Reduce& reduce, const RowPart& part = {});

// Statements of the block from `start` on that share loops; how many were written (0: none, they stand alone).
size_t emit_rows(Unit& unit, const tile::Block& block, size_t start);

// The variable that will run across lanes, -1 for none; nothing for reductions that are not written in one piece.
std::optional<tile::Var> lane_variable(Unit& unit, const tile::Map& map);
std::optional<tile::Var> lane_variable(Unit& unit, const tile::Reduce& reduce);

void emit_scan(Unit& unit, const tile::Scan& scan);
void emit_gemm(Unit& unit, const tile::Gemm& gemm);

// Opens `for (int64_t v = 0; v < extent; ++v)` and notes how far v reaches.
void open_loop(Unit& unit, const tile::Range& range, const Frame& frame = {});
void note_range(Unit& unit, const tile::Range& range);

// How well an access suits lanes of `v`: unit stride, the same for all, or one by one. Larger is better.
int lane_score(const Unit& unit, const tile::Access& access, tile::Var v, bool store);

}  // namespace lemma::emit
