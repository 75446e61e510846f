#include "lemma/rewrite/nest_contractions.h"

#include <algorithm>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/merge_siblings.h"

namespace lemma::rewrite {

using tensor::Comprehension;
using tensor::Graph;
using tensor::Role;
using tensor::Tensor;
using view::Form;

std::vector<NestCandidate> nest_contractions(const Graph& graph) {
  const std::vector<int> uses = tensor::use_counts(graph);
  std::vector<NestCandidate> out;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* reader = std::get_if<Comprehension>(&graph.nodes[n]);
    if (!reader || !small(*reader) || reader->scan) continue;
    for (size_t r = 0; r < reader->reads.size(); ++r) {
      const tensor::Read& read = reader->reads[r];
      const auto* producer = std::get_if<Comprehension>(&graph.node(read.source.node));
      if (!producer || !is_contraction_like(*producer)) continue;
      NestCandidate c{read.source.node, Tensor{int32_t(n)}, int(r), {}, false, uses[size_t(read.source.node.index)] == 1, {}};
      IndexSet seen = 0;
      bool plain = true;
      for (const Form& coord : read.coords) {
        const auto i = coord.as_index();
        plain = plain && i && !has(seen, *i);
        if (!plain) break;
        seen |= one(*i);
        c.index.push_back(*i);
        c.streams = c.streams || reader->indices[size_t(*i)].role == Role::Reduce;
      }
      if (!plain) continue;
      for (int p : reader->with_role(Role::Point)) {
        if (!has(seen, p)) c.repeated.push_back(p);
      }
      out.push_back(std::move(c));
    }
  }
  return out;
}

}  // namespace lemma::rewrite
