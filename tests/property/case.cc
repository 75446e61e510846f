#include "tests/property/case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "lemma/runtime/random.h"
#include "lemma/tensor/bind.h"
#include "lemma/tensor/print.h"
#include "tests/property/small.h"
#include "tests/random/generate.h"
#include "tests/random/wide.h"

namespace lemma::property {

using scalar::DType;
using scalar::Scalar;
using tensor::Array;
using tensor::Graph;

std::string_view name(Family family) {
  return family == Family::Wide ? "wide" : family == Family::Plain ? "plain" : "small";
}

Graph Case::graph() const {
  std::vector<tensor::Binding> bound;
  for (const tensor::Binding& b : sizes) {
    if (std::find(constant.begin(), constant.end(), b.name) != constant.end()) bound.push_back(b);
  }
  if (bound.empty()) return symbolic;
  auto graph = tensor::bind(symbolic, bound);
  LEMMA_CHECK(graph.ok(), "a case's constants do not fit its graph");
  return *std::move(graph);
}

Case make_case(Family family, uint64_t seed) {
  if (family == Family::Small) return small_case(seed);
  Case out;
  out.family = family;
  out.seed = seed;
  out.special = runtime::hash(seed, 1) % 5 == 0;
  if (family == Family::Wide) {
    random_graphs::Sample sample = random_graphs::generate_wide({seed, 1 + int(seed % 4)});
    out.symbolic = std::move(sample.graph);
    out.sizes = std::move(sample.sizes);
    for (const tensor::Binding& b : sample.constant) out.constant.push_back(b.name);
    out.narrow = sample.narrow;
    return out;
  }
  random_graphs::GenerateOptions options;
  options.seed = seed;
  options.steps = 1 + int(seed % 4);
  options.symbolic = true;
  out.symbolic = random_graphs::generate(options);
  for (size_t s = 0; s < out.symbolic.sizes.size(); ++s) {
    const uint64_t how = runtime::hash(seed, 10 + s);
    const int64_t n = how % 20 == 0 ? 0 : how % 5 == 0 ? int64_t(8 + how / 64 % 8) : int64_t(1 + how / 64 % 6);
    out.sizes.push_back({out.symbolic.sizes[s].name, n});
    if (how / 32 % 2) out.constant.push_back(out.symbolic.sizes[s].name);
  }
  return out;
}

namespace {

int64_t evaluate_form(const view::Form& form, const std::vector<tensor::Binding>& sizes) {
  return form.evaluate([&](const view::Atom& atom) { return sizes[size_t(atom.id)].value; });
}

Scalar element(const tensor::Input& input, const Case& c, uint64_t own, uint64_t i) {
  const uint64_t h = runtime::hash(own, i);
  if (scalar::is_float(input.type)) {
    double v = double(int64_t(h % 17) - 8) * 0.25;
    const double inf = std::numeric_limits<double>::infinity();
    if (c.special && (h >> 20) % 12 == 0) {
      const uint64_t which = (h >> 40) % 8;
      v = which < 3 ? -inf : which < 5 ? inf : which < 6 ? std::numeric_limits<double>::quiet_NaN() : -0.0;
    }
    return scalar::from_float(v);
  }
  if (input.type == DType::Bool) return scalar::from_int(int64_t(h % 5 < 3));
  if (input.low && input.high) {
    const int64_t low = evaluate_form(*input.low, c.sizes), high = evaluate_form(*input.high, c.sizes);
    return scalar::from_int(low + int64_t(h % uint64_t(std::max<int64_t>(1, high - low))));
  }
  const bool is_unsigned = scalar::kind_of(input.type) == scalar::Kind::U32 || input.type == DType::U64;
  return scalar::from_int(int64_t(h % 9) - (is_unsigned ? 0 : 2));
}

}  // namespace

Inputs make_inputs(const Case& c) {
  Inputs out;
  for (const tensor::Node& n : c.symbolic.nodes) {
    const auto* input = std::get_if<tensor::Input>(&n);
    if (!input) continue;
    Array array;
    array.type = input->type;
    int64_t count = 1;
    for (const view::Form& e : input->extents) {
      array.extents.push_back(evaluate_form(e, c.sizes));
      count *= array.extents.back();
    }
    const uint64_t own = runtime::seed_of(c.seed, input->name);
    for (int64_t i = 0; i < count; ++i) array.data.push_back(element(*input, c, own, uint64_t(i)));
    out[input->name] = std::move(array);
  }
  return out;
}

base::Result<std::vector<Array>> evaluate(const Graph& graph, const std::vector<tensor::Binding>& sizes,
                                          const Inputs& inputs, tensor::OracleOptions options) {
  std::vector<tensor::Binding> unbound;
  for (size_t s = 0; s < graph.sizes.size(); ++s) {
    if (graph.sizes[s].value) continue;
    for (const tensor::Binding& b : sizes) {
      if (b.name == graph.sizes[s].name) unbound.push_back(b);
    }
  }
  LEMMA_TRY(Graph bound, tensor::bind(graph, unbound));
  LEMMA_TRY(tensor::Oracle oracle, tensor::Oracle::make(std::move(bound), options));
  for (const auto& [name, array] : inputs) LEMMA_TRY_VOID(oracle.set_input(name, array));
  return oracle.outputs();
}

double oracle_tolerance() { return 1e-7; }

double tolerance(const Case& c, DType type) {
  if (!scalar::is_float(type)) return 0;
  if (c.narrow) return 0.06;
  if (type == DType::F16) return 0x1p-10;
  if (type == DType::BF16) return 0x1p-7;
  for (const tensor::Node& n : c.symbolic.nodes) {
    const auto* node = std::get_if<tensor::Comprehension>(&n);
    if (!node) continue;
    for (const scalar::Expr e : scalar::reachable(node->body)) {
      if (e.kind() == scalar::Kind::F32 && !e.args().empty()) return 5e-5;
    }
  }
  return type == DType::F64 ? 1e-10 : 5e-5;
}

namespace {

bool alike(DType type, Scalar expected, Scalar found, double allowed, rewrite::Claim claim) {
  if (!scalar::is_float(type)) return expected.i == found.i;
  const double e = scalar::rounded(type, expected.f);
  if (claim == rewrite::Claim::Finite && !std::isfinite(e)) return !std::isfinite(found.f);
  if (std::isnan(e) || std::isnan(found.f)) return std::isnan(e) && std::isnan(found.f);
  if (std::isinf(e) || std::isinf(found.f)) return e == found.f;
  return std::fabs(expected.f - found.f) <= allowed;
}

}  // namespace

std::string difference(const std::string& output, const Array& expected, const Array& found, double tolerance,
                       rewrite::Claim claim) {
  if (expected.extents != found.extents) return "output " + output + " has another shape";
  double largest = 1;
  if (scalar::is_float(expected.type)) {
    for (size_t i = 0; i < expected.data.size(); ++i) {
      const bool there = expected.present.empty() || expected.present[i];
      if (there && std::isfinite(expected.data[i].f)) largest = std::max(largest, std::fabs(expected.data[i].f));
    }
  }
  for (size_t i = 0; i < expected.data.size(); ++i) {
    if (!expected.present.empty() && !expected.present[i]) continue;
    if (alike(expected.type, expected.data[i], found.data[i], tolerance * largest, claim)) continue;
    std::ostringstream out;
    out.precision(9);
    out << "output " << output << " element " << i << ": expected ";
    if (scalar::is_float(expected.type)) out << expected.data[i].f << ", found " << found.data[i].f;
    else out << expected.data[i].i << ", found " << found.data[i].i;
    return out.str();
  }
  return {};
}

std::string describe(const Case& c, const std::string& stage) {
  std::string out = tensor::print(c.graph()) + "# sizes:";
  for (const tensor::Binding& b : c.sizes) out += " " + b.name + "=" + std::to_string(b.value);
  out += c.special ? "; special inputs\n" : "\n";
  return out + "# replay: lemma_fuzz --family " + std::string(name(c.family)) + " --seed " + std::to_string(c.seed) +
         " --count 1 --stage " + stage + "\n";
}

}  // namespace lemma::property
