#include "lemma/lower/epilogue.h"

namespace lemma::lower {
namespace {

using tensor::Comprehension;
using tensor::Value;

class Epilogue {
 public:
  Epilogue(Context& context, const ProductTile& product, const Form& row0, const Form& rows, const Form& columns, tile::Block& outer,
           tile::Block& block)
      : c_(context), p_(product), row0_(row0), rows_(rows), columns_(columns), outer_(outer), block_(block),
        row_loop_(int(product.group.loops.size())) {}

  void lower(const schedule::Member& member, const Comprehension& node) {
    const bool is_product = &node == &p_.node;
    const tile::Var mv = c_.variable("m"), nv = c_.variable("n");
    const Form row = row0_ + Form::index(mv), column = Form::index(nv);
    const std::vector<Form> at = p_.forms(row, column);
    std::vector<Form> forms(node.indices.size());
    for (size_t i = 0; i < node.indices.size(); ++i) {
      for (size_t q = 0; q < p_.node.indices.size(); ++q) {
        if (p_.member.loops[q] == member.loops[i]) forms[i] = at[q];
      }
    }
    Translator t(c_, node, forms, {{row_loop_, row}, {row_loop_ + 1, column}});
    tile::Map map;
    map.comment = node.name;
    map.points = {{mv, rows_}, {nv, columns_}};
    view::Formula domain;
    if (!is_product) domain = t.translate(node.domain);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const tensor::Output& output = node.outputs[o];
      const Value value{member.node, int(o)};
      Expr body;
      if (is_product) {
        t.reads.push_back(p_.access(row, column));
        body = scalar::arg(*c_.program.arena, p_.contraction.lhs.kind(), int(t.reads.size()) - 1);
        if (p_.contraction.scale.valid()) body = body * t.translate(p_.contraction.scale);
      } else {
        body = t.translate(node.body[size_t(output.result)]);
      }
      store(map, value, output, body, forms, row, column, is_product);
    }
    const std::vector<Edge> edges = p_.edges ? p_.edges(mv, nv) : std::vector<Edge>();
    keep_inside(c_, t.reads, domain, edges);
    map.where = all_of(edges) && domain;
    map.reads = t.reads;
    if (!map.stores.empty()) block_.push_back(std::move(map));
  }

 private:
  void store(tile::Map& map, Value value, const tensor::Output& output, Expr body, const std::vector<Form>& forms, const Form& row,
             const Form& column, bool is_product) {
    if (const std::optional<Home> global = c_.global_home(value)) {
      tile::Access to;
      to.buffer = global->buffer;
      for (int d : output.dims) to.coords.push_back(forms[size_t(d)]);
      map.stores.push_back({to, stored_as(body, c_.program.buffers[size_t(to.buffer)].type), {}, {}});
    }
    if (!read_inside(c_.graph, p_.group, value)) return;
    if (is_product) {
      // In place: the tile now holds the value.
      if (p_.contraction.scale.valid()) map.stores.push_back({p_.access(row, column), body, {}, {}});
      c_.homes[value].push_back({p_.buffer, true, {row_loop_, row_loop_ + 1}});
      return;
    }
    tile::Buffer buffer;
    buffer.name = output.name;
    buffer.type = scalar::dtype_of(body.kind());
    buffer.space = p_.space;
    buffer.extents = {p_.capacity_rows, p_.capacity_columns};
    const int id = c_.add_buffer(std::move(buffer));
    outer_.push_back(tile::Alloc{id});
    c_.homes[value].push_back({id, true, {row_loop_, row_loop_ + 1}});
    map.stores.push_back({{id, {row, column}, {}}, body, {}, {}});
  }

  Context& c_;
  const ProductTile& p_;
  const Form row0_, rows_, columns_;
  tile::Block& outer_;
  tile::Block& block_;
  int row_loop_;  // stand-ins for the tile's two axes in local homes
};

}  // namespace

void lower_epilogue(Context& context, const ProductTile& product, const Form& row0, const Form& rows, const Form& columns,
                    tile::Block& outer, tile::Block& block) {
  Epilogue epilogue(context, product, row0, rows, columns, outer, block);
  if (!product.stored || product.contraction.scale.valid()) epilogue.lower(product.member, product.node);
  for (const schedule::Member& m : product.group.members) {
    if (m.node == product.member.node) continue;
    epilogue.lower(m, std::get<Comprehension>(context.graph.node(m.node)));
  }
}

}  // namespace lemma::lower
