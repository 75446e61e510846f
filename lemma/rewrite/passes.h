// The passes in one table, and the default order on a page.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct Pass {
  std::string_view name;      // of its file, its flag and its folder of goldens
  std::string_view sentence;  // what it does
  tensor::Graph (*run)(const tensor::Graph&, const Context&);
  Claim claim;                // the weakest it may need; what Context allows decides case by case
  bool by_default;            // whether derive runs it
};

std::span<const Pass> passes();
const Pass* find_pass(std::string_view name);

// Called after each step of derive: its name, the graph after it, the seconds it took.
using Trace = std::function<void(std::string_view pass, const tensor::Graph& graph, double seconds)>;

// The default order.
tensor::Graph derive(tensor::Graph graph, const Context& context, const Trace& trace = {});

}  // namespace lemma::rewrite
