// Where a node's reads happen, and what is known there: the ground on which bounds are proved.
#pragma once

#include "lemma/tensor/graph.h"
#include "lemma/view/solve.h"

namespace lemma::tensor {

// Of a comprehension or a scatter, which must outlive it.
class ReadSpace {
 public:
  // A read, what holds wherever it happens, and the indices that must have values for it to happen at all.
  struct Access {
    Read read;
    view::Formula given;
    std::vector<int> over;
  };

  ReadSpace(const Graph& graph, const Node& node);

  // Every read in the steps; those of an initial state once more, at the first step and whatever the domain.
  std::vector<Access> accesses() const;

  view::Range range(const view::Form& form) const;
  // Wherever `given` holds, so does `claim`; with the sizes of `positive` at least 1.
  view::Answer implied(const view::Formula& given, const view::Formula& claim, const std::vector<int>& positive = {}) const;
  // An index over exactly the source's extent.
  bool spans(const view::Form& form, const view::Form& extent) const;

  const std::string& name() const { return *name_; }
  const base::Span& span() const { return *span_; }
  const std::vector<IndexInfo>& indices() const { return *indices_; }
  const std::vector<Read>& reads() const { return *reads_; }

 private:
  std::vector<int> closed(std::vector<int> reads) const;
  view::Range atom(const view::Atom& a, const std::vector<int>& positive) const;
  view::Range data(Value source) const;

  const Graph& graph_;
  const std::string* name_;
  const base::Span* span_;
  const std::vector<IndexInfo>* indices_;
  const view::Formula* domain_;
  const std::vector<Read>* reads_;
  std::vector<int> for_domain_, for_initial_;
};

}  // namespace lemma::tensor
