#include "lemma/rewrite/align.h"

#include <algorithm>

#include "lemma/rewrite/body.h"

namespace lemma::rewrite {

using scalar::Expr;
using scalar::Op;
using tensor::Comprehension;
using tensor::Read;
using view::Form;
using view::Formula;

std::optional<Aligned> align(const Comprehension& node, const Comprehension& into, const std::vector<int>& index) {
  std::vector<int> position;
  const auto form = [&](const Form& f) {
    return f.substitute([&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind == view::AtomKind::Index) return Form::index(index[size_t(a.id)]);
      if (a.kind == view::AtomKind::Data) return Form::data(position[size_t(a.id)]);
      return std::nullopt;
    });
  };
  const auto formula = [&](const Formula& f) {
    return f.map_indices([&](int i) { return Form::index(index[size_t(i)]); }).map_data([&](int r) {
      return position[size_t(r)];
    });
  };
  for (const Read& r : node.reads) {
    Read moved{r.source, {}, formula(r.guard)};
    for (const Form& c : r.coords) moved.coords.push_back(form(c));
    const auto it = std::find(into.reads.begin(), into.reads.end(), moved);
    if (it == into.reads.end()) return std::nullopt;
    position.push_back(int(it - into.reads.begin()));
  }
  Aligned out;
  out.domain = formula(node.domain);
  out.body = replace_leaves(node.body, node.body[0].arena(), [&](Expr e) -> Expr {
    const size_t which = size_t(e.payload());
    if (e.is(Op::Index)) return scalar::index(e.arena(), index[which]);
    if (e.is(Op::Arg)) return scalar::arg(e.arena(), e.kind(), position[which]);
    if (e.is(Op::Present)) return scalar::present(e.arena(), position[which]);
    return {};
  });
  return out;
}

std::optional<int> read_at_points(const Comprehension& node, tensor::Value value) {
  std::optional<int> found;
  for (size_t r = 0; r < node.reads.size(); ++r) {
    if (node.reads[r].source != value) continue;
    if (found || !node.reads[r].guard.is_always()) return std::nullopt;
    IndexSet seen = 0;
    for (const Form& c : node.reads[r].coords) {
      const auto i = c.as_index();
      if (!i || node.indices[size_t(*i)].role != tensor::Role::Point || has(seen, *i)) return std::nullopt;
      seen |= one(*i);
    }
    found = int(r);
  }
  return found;
}

std::vector<int> points_seen(const Comprehension& producer, int output, const Comprehension& reader, int read) {
  std::vector<int> index(producer.indices.size(), -1);
  const std::vector<int>& dims = producer.outputs[size_t(output)].dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    index[size_t(dims[d])] = *reader.reads[size_t(read)].coords[d].as_index();
  }
  return index;
}

}  // namespace lemma::rewrite
