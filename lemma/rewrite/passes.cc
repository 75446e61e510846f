#include "lemma/rewrite/passes.h"

#include <chrono>

#include "lemma/rewrite/distribute_sum.h"
#include "lemma/rewrite/exchange_sums.h"
#include "lemma/rewrite/expand_square.h"
#include "lemma/rewrite/fold_normaliser.h"
#include "lemma/rewrite/fuse_maps.h"
#include "lemma/rewrite/hoist_invariants.h"
#include "lemma/rewrite/merge_siblings.h"
#include "lemma/rewrite/one_pass_moments.h"
#include "lemma/rewrite/recognise_domain.h"
#include "lemma/rewrite/round_stores.h"
#include "lemma/rewrite/simplify_bodies.h"
#include "lemma/rewrite/solve_equalities.h"
#include "lemma/rewrite/split_index.h"
#include "lemma/rewrite/split_reduction.h"
#include "lemma/rewrite/stabilize_exp_sums.h"
#include "lemma/tensor/rebuild.h"

namespace lemma::rewrite {
namespace {

using tensor::Graph;

constexpr Pass kPasses[] = {
    {"remove_dead", "drops nodes that no output reaches and merges equal ones",
     [](const Graph& g, const Context&) { return tensor::rebuild(g, {}); }, Claim::Exact, true},
    {"round_stores", "states the rounding of narrow types where their values are read", round_stores, Claim::Exact, true},
    {"simplify_bodies", "applies the scalar rules to every body", simplify_bodies, Claim::Real, true},
    {"solve_equalities", "removes reduced indices that an equality fixes", solve_equalities, Claim::Exact, true},
    {"recognise_domain", "turns conditions that put an identity in place of a term into domains", recognise_domain,
     Claim::Finite, true},
    {"exchange_sums", "sums over an inner index first where the weighted values are summed already", exchange_sums,
     Claim::Finite, true},
    {"stabilize_exp_sums", "turns a max and sums of shifted exponentials into one rescaled sum", stabilize_exp_sums,
     Claim::Finite, true},
    {"expand_square", "turns sums of squared differences into a product of matrices and norms", expand_square,
     Claim::Finite, true},
    {"hoist_invariants", "moves factors and terms free of the reduced indices out of reductions", hoist_invariants,
     Claim::Finite, true},
    {"distribute_sum", "splits sums whose terms are free of the summed indices or summed already", distribute_sum,
     Claim::Finite, true},
    {"fuse_maps", "splices maps into their readers",
     [](const Graph& g, const Context& c) { return fuse_maps(g, {}, c); }, Claim::Exact, true},
    {"merge_siblings", "computes reductions over one space in one pass",
     [](const Graph& g, const Context& c) { return merge_siblings(g, {}, c); }, Claim::Exact, true},
    {"fold_normaliser", "reads a max and a sum of weights as one logarithm", fold_normaliser, Claim::Finite, false},
    {"one_pass_moments", "computes a sum and a centred second moment in one pass", one_pass_moments, Claim::Finite, false},
    {"split_index", "makes coupled halves or pairs of a dimension two outputs", split_index, Claim::Exact, false},
    {"split_reduction", "computes reductions from partial results of blocks",
     [](const Graph& g, const Context& c) { return split_reduction(g, {{}, {}, 4, {}, false}, c); }, Claim::Real, false},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& p : kPasses) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

Graph derive(Graph graph, const Context& context, const Trace& trace) {
  const auto run = [&](std::string_view name) {
    const auto start = std::chrono::steady_clock::now();
    graph = find_pass(name)->run(graph, context);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (trace) trace(name, graph, took.count());
  };
  run("remove_dead");
  run("round_stores");        // first: wherever a value moves, it is what its type holds
  run("simplify_bodies");
  run("solve_equalities");
  run("recognise_domain");    // before sums are compared: a mask in the text is a domain
  run("exchange_sums");       // before the sums it looks for become parts of others
  run("stabilize_exp_sums");  // before maps move: the max and its sums still read one score
  run("expand_square");       // makes contractions, whose operands then keep their maps out
  run("hoist_invariants");    // leaves contractions bare of scales
  run("distribute_sum");
  run("fuse_maps");
  run("simplify_bodies");
  run("recognise_domain");    // masks that were maps now stand in the reductions' bodies
  run("expand_square");       // and so do differences
  run("hoist_invariants");    // and factors
  run("fuse_maps");
  run("merge_siblings");      // last: what it joins, others no longer see through
  run("simplify_bodies");
  return graph;
}

}  // namespace lemma::rewrite
