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

// The contraction of a product group, taken apart.
struct ProductParts {
  ProductParts(const tensor::Graph& graph, const schedule::Group& group);
  const schedule::Member* member = nullptr;
  const tensor::Comprehension* node = nullptr;
  schedule::Contraction contraction;
  Flat m, n, k;
};

// Writes each index as a form of the flat position.
void place_flat(const tensor::Comprehension& node, const Flat& flat, const Form& position, std::vector<Form>& forms);

// The element offset of an access to a contiguous row-major global buffer; nothing for strided or packed ones.
std::optional<Form> address(const Context& context, const tile::Access& access);

// The factor as a plain unguarded read of a global buffer of this type, if it is one.
std::optional<int> plain_read(const tensor::Comprehension& node, Expr factor, const view::Formula& domain);

// A factor that can be read where it lies: one read of a contiguous buffer at affine coordinates. Where the read is
// guarded by nothing but its source's bounds and gives 0 outside, a copy with that border of zeros serves instead.
struct Window {
  int buffer = -1;
  std::vector<Form> coords;     // over the node's indices, of the buffer (of the padded copy, once there is one)
  std::vector<Form> extents;    // of the buffer
  bool padding = false;         // needs the copy
  std::vector<Form> low;        // the least coordinate per dimension
  scalar::DType type = scalar::DType::F32;

  Form address(const std::vector<Form>& index_forms) const;
  tile::Access access(const std::vector<Form>& index_forms) const;
  // Adds the kernel that writes the padded copy, if one is needed.
  void materialise(Context& context, const std::string& name);
};
std::optional<Window> match_window(const Context& context, const tensor::Comprehension& node, Expr factor,
                                   const view::Formula& domain, scalar::DType type);

// What a product's operands are stored as: bf16 pairs where both factors are plain bf16 reads and the target
// multiplies them, i16 pairs where both are integers that fit (their products are summed exactly in 32 bits), else the
// kind's own type.
scalar::DType operand_type(const Context& context, const tensor::Comprehension& node, const schedule::Contraction& c);

int interleave_of(scalar::DType operand);     // reduce points side by side in a panel
int row_pad(scalar::DType operand);           // keeps rows a power of two apart out of one cache set

int panel_width(const tile::Target& target);  // columns of a register tile
int tile_rows(const tile::Target& target);    // rows of a register tile

}  // namespace lemma::lower
