// check_inputs: what a program states of its inputs (types, ranges, order, distinct places) holds of the arrays given.
#include <algorithm>

#include "lemma/driver/execute.h"

namespace lemma::driver {
namespace {

using base::Result;
using runtime::Array;
using runtime::Named;
using tensor::Graph;
using tensor::Input;
using view::Atom;
using view::AtomKind;
using Sizes = std::vector<tensor::Binding>;

const Array* find(const std::vector<Named>& arrays, const std::string& name) {
  for (const Named& named : arrays) {
    if (named.name == name) return &named.array;
  }
  return nullptr;
}

// "[1, 2]": the index of a flat position.
std::string position(const Array& array, int64_t flat) {
  std::string out = "]";
  for (size_t d = array.extents.size(); d-- > 0;) {
    out = (d ? ", " : "") + std::to_string(flat % array.extents[d]) + out;
    flat /= array.extents[d];
  }
  return "[" + out;
}

Result<void> check_range(const Input& input, const Array& array, const Sizes& sizes) {
  const auto size = [&](const Atom& atom) { return sizes[size_t(atom.id)].value; };
  const int64_t low = input.low ? input.low->evaluate(size) : INT64_MIN;
  const int64_t high = input.high ? input.high->evaluate(size) : INT64_MAX;
  for (int64_t i = 0; i < array.count(); ++i) {
    const int64_t value = runtime::int_at(array, i);
    if (value >= low && (!input.high || value < high)) continue;
    const std::string from = input.low ? std::to_string(low) : "", to = input.high ? std::to_string(high) : "";
    return base::invalid("input '" + input.name + "' states the range " + from + ".." + to + ", and holds " +
                             std::to_string(value) + " at " + position(array, i),
                         input.span);
  }
  return {};
}

Result<void> check_sorted(const Input& input, const Array& array) {
  const int64_t width = array.extents.empty() ? 1 : array.extents.back();
  const bool real = scalar::is_float(array.type);
  const bool wide = array.type == scalar::DType::U64;
  const auto below = [&](int64_t a, int64_t b) {
    if (real) return !(runtime::float_at(array, b) <= runtime::float_at(array, a));
    const int64_t x = runtime::int_at(array, a), y = runtime::int_at(array, b);
    return wide ? uint64_t(x) < uint64_t(y) : x < y;
  };
  for (int64_t i = 1; i < array.count(); ++i) {
    if (i % width == 0 || !below(i, i - 1)) continue;
    return base::invalid("input '" + input.name + "' is stated as sorted, and its element at " + position(array, i) +
                             " is below the one before it",
                         input.span, "sort it, or leave out 'sorted'");
  }
  return {};
}

// The arrays behind a scatter's reads, if all its coordinates and its domain need are inputs.
struct Places {
  const tensor::Scatter& scatter;
  std::vector<const Array*> sources;  // per read; null: not an input
  std::vector<int64_t> index;
  const Sizes& sizes;

  int64_t value(const Atom& atom) const {
    switch (atom.kind) {
      case AtomKind::Size: return sizes[size_t(atom.id)].value;
      case AtomKind::Index: return index[size_t(atom.id)];
      case AtomKind::Data: return read(atom.id);
      case AtomKind::Floor: break;
    }
    return 0;
  }
  // The element a read gives; 0 outside its source, where the kernel would not look either.
  int64_t read(int which) const {
    const Array& array = *sources[size_t(which)];
    const tensor::Read& from = scatter.reads[size_t(which)];
    int64_t flat = 0;
    for (size_t d = 0; d < from.coords.size(); ++d) {
      const int64_t at = from.coords[d].evaluate([&](const Atom& atom) { return value(atom); });
      if (at < 0 || at >= array.extents[d]) return 0;
      flat = flat * array.extents[d] + at;
    }
    return runtime::int_at(array, flat);
  }
};

bool needs(const tensor::Scatter& scatter, int read) {
  const auto uses = [&](const view::Form& form) { return form.uses(AtomKind::Data, read); };
  if (std::any_of(scatter.coords.begin(), scatter.coords.end(), uses)) return true;
  if (scatter.domain.uses(AtomKind::Data, read)) return true;
  for (const tensor::Read& other : scatter.reads) {
    if (std::any_of(other.coords.begin(), other.coords.end(), uses) || other.guard.uses(AtomKind::Data, read)) return true;
  }
  return false;
}

// No two points of a scatter without a monoid may meet.
Result<void> check_injective(const Graph& graph, const tensor::Scatter& scatter, const std::vector<Named>& inputs,
                             const Sizes& sizes) {
  Places places{scatter, {}, std::vector<int64_t>(scatter.indices.size(), 0), sizes};
  for (size_t r = 0; r < scatter.reads.size(); ++r) {
    const auto* input = std::get_if<Input>(&graph.node(scatter.reads[r].source.node));
    places.sources.push_back(input ? find(inputs, input->name) : nullptr);
    // Computed keys are the kernel's to check.
    if (!places.sources.back() && needs(scatter, int(r))) return {};
  }
  std::vector<view::Form> extent_forms;
  for (const tensor::IndexInfo& index : scatter.indices) extent_forms.push_back(index.extent);
  const std::vector<int64_t> extents = evaluate_extents(extent_forms, sizes);
  const std::vector<int64_t> target = evaluate_extents(scatter.extents, sizes);
  const auto points = runtime::checked_count(extents), cells = runtime::checked_count(target);
  if (!points || !cells) return base::invalid("scatter '" + scatter.name + "' has too many points", scatter.span);
  LEMMA_TRY(const Array seen, runtime::allocate(scalar::DType::Bool, {*cells}, "the check of '" + scatter.name + "'"));
  const auto lookup = [&](const Atom& atom) { return places.value(atom); };
  for (int64_t point = 0; point < *points; ++point) {
    int64_t rest = point;
    for (size_t d = extents.size(); d-- > 0;) {
      places.index[d] = rest % extents[d];
      rest /= extents[d];
    }
    if (!scatter.domain.evaluate(lookup)) continue;
    int64_t flat = 0;
    bool inside = true;
    std::string where;
    for (size_t d = 0; d < target.size() && inside; ++d) {
      const int64_t at = scatter.coords[d].evaluate(lookup);
      inside = at >= 0 && at < target[d];
      flat = flat * target[d] + at;
      where += (d ? ", " : "") + std::to_string(at);
    }
    if (!inside) continue;
    if (seen.data()[flat] != std::byte{0}) {
      return base::invalid("'" + scatter.name + "' is stated as injective, and two of its points meet at [" + where + "]",
                           scatter.span, "name a monoid to combine them: sum, max, min");
    }
    seen.data()[flat] = std::byte{1};
  }
  return {};
}

}  // namespace

Result<void> check_inputs(const Graph& graph, const std::vector<Named>& inputs, const Sizes& sizes) {
  for (const tensor::Node& node : graph.nodes) {
    if (const auto* input = std::get_if<Input>(&node)) {
      const Array* array = find(inputs, input->name);
      if (!array) return base::invalid("input '" + input->name + "' is not given", input->span);
      if (array->type != input->type) {
        return base::invalid("input '" + input->name + "' is " + std::string(scalar::name(input->type)) +
                                 ", and the array given is " + runtime::describe(*array),
                             input->span, "convert it, or declare the input as " + std::string(scalar::name(array->type)));
      }
      if (input->low || input->high) LEMMA_TRY_VOID(check_range(*input, *array, sizes));
      if (input->sorted) LEMMA_TRY_VOID(check_sorted(*input, *array));
    } else if (const auto* scatter = std::get_if<tensor::Scatter>(&node)) {
      if (!scatter->monoid) LEMMA_TRY_VOID(check_injective(graph, *scatter, inputs, sizes));
    }
  }
  return {};
}

}  // namespace lemma::driver
