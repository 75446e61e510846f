#include "lemma/driver/work.h"

#include "lemma/driver/execute.h"
#include "lemma/runtime/random.h"

namespace lemma::driver {
namespace {

using scalar::Op;
using view::Atom;
using view::AtomKind;
using Sizes = std::vector<tensor::Binding>;

bool counts(const scalar::Expr& e) {
  switch (e.op()) {
    case Op::Const:
    case Op::Arg:
    case Op::Present:
    case Op::Index:
    case Op::Size:
    case Op::Select:
    case Op::Cast:
    case Op::RoundTo:
    case Op::Bits:
    case Op::Not:
    case Op::And:
    case Op::Or:
      return false;
    default: return scalar::shape(e.op()) != scalar::OpShape::Compare;
  }
}

// An operation over indices, sizes and constants alone is address arithmetic or hoisted.
double count_body(const std::vector<scalar::Expr>& body) {
  double operations = 0;
  std::vector<scalar::Expr> valid;
  for (const scalar::Expr& e : body) {
    if (e.valid()) valid.push_back(e);
  }
  std::vector<bool> reads;
  const std::vector<scalar::Expr> nodes = scalar::reachable(valid);
  uint32_t most = 0;
  for (const scalar::Expr& e : nodes) most = std::max(most, e.index() + 1);
  reads.resize(most, false);
  for (const scalar::Expr& e : nodes) {
    bool any = e.is(Op::Arg);
    for (const scalar::Expr& operand : e.args()) any = any || reads[operand.index()];
    reads[e.index()] = any;
    if (any && counts(e)) operations += 1;
  }
  return operations;
}

// The share of the iteration space where the domain holds.
double share(const view::Formula& domain, const std::vector<int64_t>& extents, const Sizes& sizes) {
  if (domain.is_always()) return 1;
  if (domain.uses(AtomKind::Data)) return 1;
  constexpr int kSamples = 4096;
  int held = 0;
  std::vector<int64_t> index(extents.size());
  for (int s = 0; s < kSamples; ++s) {
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] <= 0) return 1;
      index[d] = int64_t(runtime::hash(d + 1, uint64_t(s)) % uint64_t(extents[d]));
    }
    held += domain.evaluate([&](const Atom& atom) {
      return atom.kind == AtomKind::Size ? sizes[size_t(atom.id)].value : index[size_t(atom.id)];
    });
  }
  return double(held) / kSamples;
}

double points(const std::vector<tensor::IndexInfo>& indices, const view::Formula& domain, const Sizes& sizes) {
  std::vector<view::Form> forms;
  for (const tensor::IndexInfo& index : indices) forms.push_back(index.extent);
  const std::vector<int64_t> extents = evaluate_extents(forms, sizes);
  double product = 1;
  for (const int64_t extent : extents) product *= double(extent);
  return product * share(domain, extents, sizes);
}

}  // namespace

Work count_work(const tensor::Graph& graph, const Sizes& sizes) {
  Work work;
  const auto add_bytes = [&](scalar::DType type, const std::vector<view::Form>& forms) {
    double count = 1;
    for (const int64_t extent : evaluate_extents(forms, sizes)) count *= double(extent);
    work.bytes += count * scalar::bits(type) / 8;
  };
  for (const tensor::Node& node : graph.nodes) {
    if (const auto* input = std::get_if<tensor::Input>(&node)) {
      add_bytes(input->type, input->extents);
    } else if (const auto* scatter = std::get_if<tensor::Scatter>(&node)) {
      work.operations += points(scatter->indices, scatter->domain, sizes) *
                         (count_body({scatter->body}) + (scatter->monoid ? 1 : 0));
    } else {
      const auto& map = std::get<tensor::Comprehension>(node);
      const double combines = map.monoid ? double(map.components.size()) : 0;
      work.operations += points(map.indices, map.domain, sizes) * (count_body(map.body) + combines);
    }
  }
  for (const tensor::GraphOutput& output : graph.outputs) {
    add_bytes(output.type, tensor::extents(graph, output.value));
  }
  return work;
}

}  // namespace lemma::driver
