#include "lemma/lower/operand.h"

namespace lemma::lower {

using scalar::DType;
using scalar::Op;
using tensor::Comprehension;

Flat flatten(const Comprehension& node, const std::vector<int>& indices) {
  Flat out{indices, Form(1)};
  for (int i : indices) out.extent = out.extent * node.indices[size_t(i)].extent;
  return out;
}

void place_flat(const Comprehension& node, const Flat& flat, const Form& position, std::vector<Form>& forms) {
  Form stride(1);
  for (size_t k = flat.indices.size(); k-- > 0;) {
    const size_t i = size_t(flat.indices[k]);
    const Form& extent = node.indices[i].extent;
    if (extent == Form(1)) {
      forms[i] = Form(0);
      continue;
    }
    Form f = Form::floor_div(position, stride);
    // The outermost index needs no modulus.
    bool outer = true;
    for (size_t o = 0; o < k; ++o) outer = outer && node.indices[size_t(flat.indices[o])].extent == Form(1);
    forms[i] = outer ? f : Form::mod(f, extent);
    stride = stride * extent;
  }
}

std::optional<Form> address(const Context& context, const tile::Access& access) {
  const tile::Buffer& buffer = context.program.buffers[size_t(access.buffer)];
  if (!buffer.strides.empty() || buffer.layout.kind != tile::LayoutKind::RowMajor || buffer.layout.pad) {
    return std::nullopt;
  }
  Form out(0), stride(1);
  for (size_t d = access.coords.size(); d-- > 0;) {
    out = out + access.coords[d] * stride;
    stride = stride * buffer.extents[d];
  }
  return out;
}

std::optional<int> plain_read(const Comprehension& node, Expr factor, const view::Formula& domain) {
  if (!factor.is(Op::Arg) || !domain.is_always()) return std::nullopt;
  const tensor::Read& r = node.reads[size_t(factor.payload())];
  if (!r.guard.is_always()) return std::nullopt;
  return int(factor.payload());
}

DType operand_type(const Context& context, const Comprehension& node, const schedule::Contraction& c) {
  auto is_bf16 = [&](Expr factor) {
    if (!factor.is(Op::Arg)) return false;
    return tensor::type(context.graph, node.reads[size_t(factor.payload())].source) == DType::BF16;
  };
  if (context.target.bf16_dot && is_bf16(c.lhs) && is_bf16(c.rhs)) return DType::BF16;
  return scalar::dtype_of(c.lhs.kind());
}

int tile_rows(const tile::Target&) { return 6; }

int panel_width(const tile::Target& target) { return target.lanes() * (target.vector_registers >= 32 ? 4 : 2); }

}  // namespace lemma::lower
