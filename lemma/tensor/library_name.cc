#include "lemma/tensor/print.h"
#include "lemma/tensor/print_body.h"

namespace lemma::tensor {

using scalar::Kind;

std::string library_name(const monoid::Monoid& m) {
  const auto is = [&](const monoid::MonoidRef& other) { return monoid::same(m, *other); };
  const Kind k = m.operands.empty() ? Kind::F32 : m.operands[0];
  if (m.structure == monoid::Structure::TopK) {
    if (is(monoid::top_k(k, m.count, m.smallest))) return (m.smallest ? "bottomk[" : "topk[") + std::to_string(m.count) + "]";
    return "";
  }
  if (m.structure == monoid::Structure::RescaledSum) {
    if (!is(monoid::rescaled_sum(k, int(m.operands.size()) - 1, m.scale))) return "";
    if (m.scale == 1) return "rescaled_sum";
    scalar::Arena arena;
    BodyNames none;
    std::string scale = print_body({scalar::constant(arena, Kind::F64, m.scale)}, none).roots[0];  // f64(...)
    return "rescaled_sum[" + scale.substr(4, scale.size() - 5) + "]";
  }
  if (m.operands.size() == 1 && k == Kind::Bool) return is(monoid::any()) ? "any" : is(monoid::all()) ? "all" : "";
  if (m.operands.size() == 1) {
    if (is(monoid::sum(k))) return "sum";
    if (is(monoid::product(k))) return "prod";
    if (is(monoid::maximum(k))) return "max";
    if (is(monoid::minimum(k))) return "min";
    if (scalar::is_float(k) && is(monoid::welford(k))) return "welford";
  }
  if (m.operands.size() == 2 && k != Kind::Bool) {
    if (is(monoid::arg_maximum(k))) return "argmax";
    if (is(monoid::arg_minimum(k))) return "argmin";
    if (scalar::is_float(k) && is(monoid::affine(k))) return "affine";
  }
  return "";
}

}  // namespace lemma::tensor
