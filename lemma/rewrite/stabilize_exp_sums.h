// A max over s and sums of exp(c*(s - max))*g over the same points become one pass: a rescaled sum.
//
//     m = [i<n | max j<k : j <= i] s[i, j]
//     z = [i<n | sum j<k : j <= i] exp(s[i, j] - m[i])                        =>
//     o = [i<n, c<d | sum j<k : j <= i] exp(s[i, j] - m[i]) / z[i] * v[j, c]
//
//     (m, z, a) = [i<n, c<d | rescaled_sum j<k : j <= i] (s[i, j], 1, v[j, c])    m, z over i; a over i, c
//     o = [i<n, c<d] a[i, c] / z[i]
//
// The sums are seen through the maps between them and the max, so that no intermediate need be spliced first. What a
// sum multiplies by free of its reduced indices (1 / z) leaves it; what is left besides the exponential is g, which must
// not depend on the max. A text that guards the exponential, `select(s == -inf, 0, exp(s - m))`, is recognised as such.
//
// Conditions: one score over both, up to a positive constant factor c; equal domains; the sum's reduced indices are the
// max's; no other way from the max to a factor. It declines where one pass does not pay: the score is read from memory
// and no sum has points of its own.
//
// Text without the guard gives nan where every score is -inf; the map after the sum says so again.
//
// Claim: real for g = 1. Finite for other g (a score of -inf takes its term out instead of multiplying it by 0).
#pragma once

#include <optional>
#include <vector>

#include "lemma/rewrite/body.h"
#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

tensor::Graph stabilize_exp_sums(const tensor::Graph& graph, const Context& context);

// A sum found to be one of exp(scale*(score - max))*g.
struct ExpSum {
  tensor::Tensor sum;
  tensor::Comprehension node;        // the sum, seen through the maps that lead from the max to it
  std::vector<int> index;            // per index of the max's node, the index of `node`
  int max_read = 0;                  // the read of the max
  double scale = 1;
  bool guarded = false;              // the text gives 0 where the score is -inf
  std::vector<Factor> outer;         // leaves the sum
  std::vector<Factor> inner;         // g
};

// The sum at `sum` over the max at `max`, both as they stand or `expanded` through the maps they read; a sentence why not.
struct Match {
  std::optional<ExpSum> found;
  std::string reason;
};
Match match_exp_sum(const tensor::Graph& graph, const tensor::Comprehension& max, tensor::Value max_value,
                    tensor::Tensor sum, const tensor::Comprehension& expanded);

}  // namespace lemma::rewrite
