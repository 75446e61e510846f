// Fragments in registers: a thread's elements are an array, and a statement over points goes round the registers of
// their distribution (tile/fragments.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/emit/device/statements.h"
#include "lemma/layout/layout.h"

namespace lemma::emit::device {

// The points' distribution as one of the statement's fragments has it; nothing if none is in registers.
std::shared_ptr<const Round> round_of(const Text& text, const std::vector<tile::Range>& points,
                                      const std::vector<const tile::Access*>& accesses);

// Opens the loop over the registers, in which the points' variables have their values. `once`: only in the threads that
// do not hold a copy, since memory is written. The number of scopes opened.
int open_round(Text& text, std::shared_ptr<const Round> round, Scope& scope, bool once, int step = 1);
// The scope of the register after the round's, where a step passes over it.
void next_register(Text& text, Scope& scope);

// The declaration of a fragment's registers.
std::string register_declaration(const Text& text, int buffer);
int register_count(const tile::Buffer& buffer);
bool is_packed(const tile::Buffer& buffer);   // 16-bit elements in pairs, the first lower

base::Result<void> write_register_reduce(Text& text, const tile::Reduce& reduce, Scope& scope);
// A product whose accumulator is in registers: by matrix units where unit_of finds one, else element by element.
base::Result<void> write_register_gemm(Text& text, const tile::Gemm& gemm, Scope& scope);

// A copy of a whole tile from global to shared memory, 16 bytes a thread, asynchronously if it says so. False if it is none
// of these; then nothing was written.
bool write_tile_copy(Text& text, const tile::Copy& copy, Scope& scope);

// ---- linear maps over bits, as text ----

// The exclusive or of columns[i] for the set bits i of the variable: shifts and masks, one for each distance.
std::string linear_text(const std::string& variable, const std::vector<uint64_t>& columns);
// What each bit of a row-major offset in a placed tile becomes in memory.
std::vector<uint64_t> memory_columns(const layout::Layout& placed);

}  // namespace lemma::emit::device
