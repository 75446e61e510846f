// Growing a group: which producers may join a kernel.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "lemma/schedule/contraction.h"
#include "lemma/schedule/schedule.h"

namespace lemma::schedule {

// What holds of every group of a schedule.
struct Limits {
  bool strict = false;  // absent terms of a product may not be multiplied by 0 (that is claim finite, see contraction.h)
  tile::Target target;
};

// Starts with a root and takes in producers one by one. A refusal leaves the group as it was and says why.
class GroupBuilder {
 public:
  GroupBuilder(const tensor::Graph& graph, tensor::Tensor root, Limits limits = {});

  // Takes in a node all of whose readers are members already.
  std::optional<std::string> absorb(tensor::Tensor node);  // why not

  // Whether the last refusal was the device's: the group itself would stand.
  bool refused_by_device() const { return refused_by_device_; }

  bool contains(tensor::Tensor node) const { return nodes_.count(node.index) > 0; }
  Group finish() const;

 private:
  int add_loop(const std::string& name, const view::Form& extent);
  std::optional<std::string> map_reads(tensor::Tensor node, std::vector<int>& loops,
                                       std::vector<std::pair<int, int>>& merge) const;

  const tensor::Graph& graph_;
  Limits limits_;
  bool refused_by_device_ = false;
  Group group_;
  std::set<int> nodes_;
};

// Is the node a contraction with rows and columns, which a product by tiles carries out best?
std::optional<Contraction> product_of(const tensor::Graph& graph, tensor::Tensor node, const Limits& limits = {});

}  // namespace lemma::schedule
