// Operands of register-blocked products: a side's points, flattened, and how its factor gets where the product reads it.
#pragma once

#include <optional>

#include "lemma/lower/groups.h"
#include "lemma/lower/member.h"
#include "lemma/schedule/contraction.h"

namespace lemma::lower {

// Some indices of a node run as one: position = ((i0 * e1) + i1) * e2 + i2 ...
struct Flat {
  std::vector<int> indices;
  Form extent;
};
Flat flatten(const tensor::Comprehension& node, const std::vector<int>& indices);

// Writes each index as a form of the flat position.
void place_flat(const tensor::Comprehension& node, const Flat& flat, const Form& position, std::vector<Form>& forms);

// The element offset of an access to a contiguous row-major global buffer; nothing for strided or packed ones.
std::optional<Form> address(const Context& context, const tile::Access& access);

// The factor as a plain unguarded read of a global buffer of this type, if it is one.
std::optional<int> plain_read(const tensor::Comprehension& node, Expr factor, const view::Formula& domain);

// What a product's operands are stored as: bf16 pairs where both factors are plain bf16 reads and the target
// multiplies them, else the kind's own type.
scalar::DType operand_type(const Context& context, const tensor::Comprehension& node, const schedule::Contraction& c);

int panel_width(const tile::Target& target);  // columns of a register tile
int tile_rows(const tile::Target& target);    // rows of a register tile

}  // namespace lemma::lower
