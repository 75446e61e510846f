#include "lemma/tile/monoid_text.h"

#include <charconv>
#include <cmath>

namespace lemma::tile {
namespace {

using monoid::MonoidRef;
using scalar::Kind;

constexpr double kMostSlots = 1 << 16;  // more top-k slots or sums than this are a mistake, not a program

bool whole(double x) { return x >= 0 && x <= kMostSlots && std::floor(x) == x; }

bool is_kind(Kind kind, bool floats_only) { return floats_only ? scalar::is_float(kind) : kind != Kind::Bool; }

}  // namespace

std::string number_text(double value, bool single) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end = single ? std::to_chars(buffer, buffer + sizeof buffer, float(value))
                          : std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string out(buffer, end.ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

MonoidRef library_monoid(const std::string& name, std::optional<Kind> kind, const std::vector<double>& numbers) {
  if (!kind) {
    if (!numbers.empty()) return nullptr;
    if (name == "any") return monoid::any();
    if (name == "all") return monoid::all();
    return nullptr;
  }
  const Kind k = *kind;
  if (numbers.empty() && is_kind(k, false)) {
    if (name == "sum") return monoid::sum(k);
    if (name == "prod") return monoid::product(k);
    if (name == "max") return monoid::maximum(k);
    if (name == "min") return monoid::minimum(k);
    if (name == "argmax") return monoid::arg_maximum(k);
    if (name == "argmin") return monoid::arg_minimum(k);
    if (name == "welford" && is_kind(k, true)) return monoid::welford(k);
    if (name == "affine") return monoid::affine(k);
  }
  if (numbers.size() == 1 && numbers[0] >= 1 && whole(numbers[0]) && is_kind(k, false)) {
    if (name == "topk") return monoid::top_k(k, int(numbers[0]), false);
    if (name == "bottomk") return monoid::top_k(k, int(numbers[0]), true);
  }
  if (name == "rescaled_sum" && numbers.size() == 2 && whole(numbers[0]) && numbers[1] > 0 && is_kind(k, true)) {
    return monoid::rescaled_sum(k, int(numbers[0]), numbers[1]);
  }
  return nullptr;
}

std::optional<std::string> library_text(const monoid::Monoid& m) {
  auto is = [&](const std::string& name, std::optional<Kind> kind, const std::vector<double>& numbers) {
    const MonoidRef candidate = library_monoid(name, kind, numbers);
    return candidate && monoid::same(*candidate, m);
  };
  if (m.operands.empty()) return std::nullopt;
  const Kind k = m.operands[0];
  const std::string kind(scalar::name(k));
  if (m.structure == monoid::Structure::TopK) {
    const std::string name = m.smallest ? "bottomk" : "topk";
    if (is(name, k, {double(m.count)})) return name + "[" + kind + ", " + std::to_string(m.count) + "]";
    return std::nullopt;
  }
  if (m.structure == monoid::Structure::RescaledSum) {
    const double sums = double(m.components.size()) - 1;
    if (!is("rescaled_sum", k, {sums, m.scale})) return std::nullopt;
    return "rescaled_sum[" + kind + ", " + std::to_string(int(sums)) + ", " + number_text(m.scale, false) + "]";
  }
  for (const char* name : {"any", "all"}) {
    if (k == Kind::Bool && is(name, std::nullopt, {})) return name;
  }
  for (const char* name : {"sum", "prod", "max", "min", "argmax", "argmin", "welford", "affine"}) {
    if (is(name, k, {})) return std::string(name) + "[" + kind + "]";
  }
  return std::nullopt;
}

}  // namespace lemma::tile
