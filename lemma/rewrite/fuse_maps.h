// Splices the body of a map into its readers and composes the views.
//
//     e = [i<n] exp(x[i])              =>     s = [ | sum i<n] exp(x[i]) * w[i]
//     s = [ | sum i<n] e[i] * w[i]
//
// Guards, domains and gathers move along: a map read through a gather is evaluated at the gathered point. A read that
// forms use as a key stays, so computed keys are materialised.
//
// When: a map is spliced where no element of it is computed twice (one reader, which visits each element once), or where
// it costs at most `max_repeat` additions and reads no more full-size values than the one it replaces. A spliced body
// grows to at most `max_operations`; beyond, the chain is cut by a materialised value.
//
// What a store in fewer bits than the computation made of a value moves along: narrow integers wrap, narrow floats are
// rounded.
//
// Claim: exact.
#pragma once

#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

struct FuseOptions {
  int64_t max_repeat = 8;        // additions worth less than writing and reading an element
  int64_t max_operations = 512;  // of one spliced body
  int max_reads = 48;            // of one spliced node
};

tensor::Graph fuse_maps(const tensor::Graph& graph, const FuseOptions& options, const Context& context);

}  // namespace lemma::rewrite
