// Scalar expressions as C: one variable a node, scalars where all lanes agree, vectors where they differ.
#pragma once

#include <span>
#include <vector>

#include "lemma/emit/unit.h"

namespace lemma::emit {

// Writes what `roots` need and gives a value for each. A value that varies has the vector type of its kind.
std::vector<Value> emit_values(Unit& unit, Frame& frame, std::span<const scalar::Expr> roots);
Value emit_value(Unit& unit, Frame& frame, scalar::Expr root);

// The value in every lane.
std::string as_vector(const Value& value, scalar::Kind kind);

// Whether the expressions can be written for lanes of `lane_var` given which reads vary: every node that varies is of
// a 32-bit kind, or is 64 bits wide and only steps toward one that is not (those go lane by lane).
bool can_vectorize(std::span<const scalar::Expr> roots, tile::Var lane_var, const std::vector<bool>& varying_reads);

// How many operations a lane needs, roughly; for choices between unrolled forms.
int cost(std::span<const scalar::Expr> roots);

}  // namespace lemma::emit
