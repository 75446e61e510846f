// One case of the property tests: a graph, the sizes to call it with, its inputs, and what the oracle says of it.
//
// A case is made from a family and a seed, the same on every machine, so those two replay it. The graph keeps its sizes
// as symbols; `graph()` binds the ones that are constants of the program, and a reducer may change their values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/rewrite/decision.h"
#include "lemma/tensor/eval.h"
#include "lemma/tensor/graph.h"

namespace lemma::property {

enum class Family : uint8_t { Wide, Plain, Small };
std::string_view name(Family family);

struct Case {
  Family family = Family::Wide;
  uint64_t seed = 1;
  tensor::Graph symbolic;
  std::vector<tensor::Binding> sizes;
  std::vector<std::string> constant;   // names of sizes that are constants of the program
  bool special = false;                // inputs hold inf, nan and -0, so rewrites may only be those over the reals
  bool narrow = false;                 // rounded to narrow types on the way

  tensor::Graph graph() const;                 // as compiled
  rewrite::Claim allow() const { return special ? rewrite::Claim::Real : rewrite::Claim::Finite; }
};

// Family::Small is small_case() of small.h.
Case make_case(Family family, uint64_t seed);

using Inputs = std::map<std::string, tensor::Array>;

// Elements hang on the seed, the input's name and the place only. Floats are multiples of 1/4 within 2 (ties are common);
// some integers lie out of any range they may be keys of, unless a range is stated.
Inputs make_inputs(const Case& c);

// All outputs by the oracle.
base::Result<std::vector<tensor::Array>> evaluate(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes,
                                                  const Inputs& inputs, tensor::OracleOptions options = {});

// How far results may be off, times max(1, largest expected finite magnitude): of f64 evaluation, or of carrying it out.
double oracle_tolerance();
double tolerance(const Case& c, scalar::DType type);

// "" or the first difference. Classes (nan, inf, finite) come before values; under the claim finite, what the program
// itself computes infinite may come out nan and the other way round. Elements the oracle lacks are skipped.
std::string difference(const std::string& output, const tensor::Array& expected, const tensor::Array& found,
                       double tolerance, rewrite::Claim claim = rewrite::Claim::Real);

// The program as text of the language, its sizes, and how to replay it.
std::string describe(const Case& c, const std::string& stage);

}  // namespace lemma::property
