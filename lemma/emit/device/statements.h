// The statements of a block, each carried out by all threads of a workgroup together.
#pragma once

#include "lemma/emit/device/scope.h"

namespace lemma::emit::device {

// Writes the block; what cannot be said is an Unsupported failure. Notes say what one thread does alone, and why.
base::Result<void> write_block(Text& text, const tile::Block& block, Scope& scope, std::vector<std::string>& notes);

base::Result<void> write_map(Text& text, const tile::Map& map, Scope& scope, std::vector<std::string>& notes);
base::Result<void> write_copy(Text& text, const tile::Copy& copy, Scope& scope, std::vector<std::string>& notes);
base::Result<void> write_combine(Text& text, const tile::Combine& combine, Scope& scope, std::vector<std::string>& notes);
base::Result<void> write_reduce(Text& text, const tile::Reduce& reduce, Scope& scope, std::vector<std::string>& notes);
// A reduction along which memory runs, by warps. False if it is none; then nothing was written.
bool write_team_reduce(Text& text, const tile::Reduce& reduce, const Scope& scope);
base::Result<void> write_scan(Text& text, const tile::Scan& scan, Scope& scope, std::vector<std::string>& notes);
base::Result<void> write_gemm(Text& text, const tile::Gemm& gemm, Scope& scope, std::vector<std::string>& notes);

// Opens loops in which the threads share the points among them, or one thread visits all; the number of scopes opened.
int open_points(Text& text, const std::vector<tile::Range>& points, Scope& scope, bool alone);
int open_loops(Text& text, const std::vector<tile::Range>& ranges, Scope& scope);

// A box in row-major order, its last index fastest: extents in variables named after `stem`, their product (1 for none),
// and point number `number` taken apart, an index a dimension.
struct Box {
  std::vector<std::string> extents;
  std::string count;
};
Box define_box(Text& text, const std::string& stem, const std::vector<view::Form>& extents, const Scope& scope);
std::vector<std::string> take_apart(Text& text, const Box& box, const std::string& number);

// Which reads the roots, the condition and the coordinates of stores need, those that other reads need included.
std::vector<bool> needed(const std::vector<tile::Access>& reads, std::span<const scalar::Expr> roots,
                         const view::Formula& where, const std::vector<const tile::Access*>& stores = {});

}  // namespace lemma::emit::device
