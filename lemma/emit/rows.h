// Statements whose first points agree, written row by row; and what such statements have in common.
#pragma once

#include <functional>
#include <vector>

#include "lemma/emit/statements.h"

namespace lemma::emit {

// Of a map or a reduction.
std::vector<tile::Range>& points_of(tile::Stmt& stmt);
std::vector<const tile::Access*> reads_of(const tile::Stmt& stmt);
std::vector<const tile::Access*> writes_of(const tile::Stmt& stmt);

// Replaces every part of a map or a reduction; expressions move into the unit's arena.
void edit_statement(Unit& unit, tile::Stmt& stmt, const std::function<tile::Access(const tile::Access&)>& access,
                    const std::function<view::Formula(const view::Formula&)>& formula,
                    const std::function<view::Form(const view::Form&)>& extent, const scalar::Replace& replace);
void rename_variable(Unit& unit, tile::Stmt& stmt, tile::Var from, tile::Var to);

// Finds costly values that a reduction over one variable and a later statement over the same range both compute: the
// reduction is to store them and the later statement (which is changed) to read them. Per statement, what it stores.
std::vector<RowPart> keep_values(Unit& unit, std::vector<tile::Stmt>& row);

}  // namespace lemma::emit
