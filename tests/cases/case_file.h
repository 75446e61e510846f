// A program with the inputs to give it and what must come out, all in one text: comment lines of the program say it.
//
//     # sizes: N=5 M=7                     values of its sizes
//     # input: keep = (3*i0 + i1) % 4 != 0   an input, element by element (see generate)
//     # run: decode N=1                    what follows belongs to this run: sizes, inputs, expectations; may repeat
//     # expect: out (2, 5) sum=1.5 l1=3 [0]=0.25 [9]=-inf nan=0 +inf=0 -inf=3     a digest: flat sums, some elements
//     # expect: lse [1, 2.5, -inf]         all elements
//     # bits: c 3dcccccd                   the stored bits of a scalar
//     # absolute: y 0.2                    largest error of a compiled result; else 2e-5 · max(1, largest element)
//     # oracle: 1e-6                       largest relative error of the oracle; else 1e-9
//     # heavy: 2.2 GB                      runs only where heavy tests are asked for
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/tensor/graph.h"
#include "tests/support/programs.h"

namespace lemma::cases {

struct Expectation {
  std::string output;
  std::optional<std::vector<int64_t>> shape;
  bool listed = false;                                // `entries` are all elements
  double sum = 0, l1 = 0;                             // over finite elements
  std::vector<std::pair<int64_t, double>> entries;    // flat index, value
  int64_t nans = 0, infinities = 0, minus_infinities = 0;
};

struct CaseRun {
  std::string name;
  std::vector<tensor::Binding> sizes;
  std::map<std::string, std::string> inputs;          // name -> expression
  std::vector<Expectation> expectations;
};

struct CaseFile {
  std::string path, text;
  std::vector<CaseRun> runs;
  std::map<std::string, double> absolute;
  std::map<std::string, std::string> bits;
  double oracle = 1e-9;
  std::string heavy;
};

base::Result<CaseFile> parse_case(const std::string& path, const std::string& text);

// The elements of an array by an expression over the indices i0, i1 ... and `flat` (the row-major index):
// arithmetic, comparisons, and, or, not, select(c, a, b), pick(a, b, ...) (by flat), pow, inf, nan, f32(x), and the hashes
// U(seed) in [-1, 1), a multiple of 2^-23, and I(seed, high) in 0 .. high-1, at flat or at a second (third) argument.
base::Result<std::vector<double>> generate(const std::string& expression, const std::vector<int64_t>& extents);

// The case files of a folder, relative to it, sorted.
std::vector<std::string> case_paths(const std::string& folder);
base::Result<testing_support::NamedValues> inputs_of(const tensor::Graph& graph, const CaseRun& run);

// What a result does not fulfil, or "". `relative` bounds errors against the size of what was summed.
std::string unmet(const Expectation& expectation, const std::vector<int64_t>& shape, const std::vector<double>& values,
                  double relative);

}  // namespace lemma::cases
