#include "lemma/language/point_counts.h"

#include "lemma/base/match.h"
#include "lemma/view/checked.h"

namespace lemma::language {
namespace {

using view::Form;

constexpr double kLargest = 0x1p50;

bool fits(const std::vector<Form>& extents) {
  Form product(1);
  for (const Form& e : extents) {
    const std::optional<Form> next = view::checked_multiply(product, e);
    if (!next || view::extent_of(*next).magnitude > kLargest) return false;
    product = *next;
  }
  return true;
}

base::Result<void> check(const std::string& name, const std::vector<Form>& extents, const base::Span& span, const char* what) {
  if (fits(extents)) return {};
  return base::invalid("the " + std::string(what) + " of `" + name + "` are more than can be counted: their number has a factor beyond 2^50",
                       span, "declare smaller constants, or sizes in their place");
}

std::vector<Form> extents_of(const std::vector<tensor::IndexInfo>& indices) {
  std::vector<Form> out;
  for (const tensor::IndexInfo& i : indices) out.push_back(i.extent);
  return out;
}

}  // namespace

base::Result<void> check_point_counts(const tensor::Graph& graph) {
  for (const tensor::Node& node : graph.nodes) {
    LEMMA_TRY_VOID(base::match(
        node, [](const tensor::Input& n) { return check(n.name, n.extents, n.span, "elements"); },
        [](const tensor::Comprehension& n) {
          return check(n.name.empty() ? n.outputs[0].name : n.name, extents_of(n.indices), n.span, "points");
        },
        [](const tensor::Scatter& n) -> base::Result<void> {
          LEMMA_TRY_VOID(check(n.name, extents_of(n.indices), n.span, "points"));
          return check(n.name, n.extents, n.span, "elements");
        }));
  }
  return {};
}

}  // namespace lemma::language
