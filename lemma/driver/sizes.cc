// infer_sizes: the values of a graph's size symbols, from what the caller states and what the inputs' shapes say.
#include <optional>

#include "lemma/driver/execute.h"

namespace lemma::driver {
namespace {

using base::Result;
using tensor::Graph;
using view::Atom;
using view::AtomKind;
using view::Form;

struct Known {
  std::optional<int64_t> value;
  std::string place;  // who said so
};

struct Inference {
  const Graph& graph;
  std::vector<Known> known;
  bool changed = false;

  std::optional<int64_t> evaluate(const Form& form) const {
    for (const int id : form.ids(AtomKind::Size)) {
      if (!known[size_t(id)].value) return std::nullopt;
    }
    return form.evaluate([&](const Atom& atom) { return *known[size_t(atom.id)].value; });
  }

  Result<void> learn(int size, int64_t value, const std::string& place) {
    Known& entry = known[size_t(size)];
    if (!entry.value) {
      entry = {value, place};
      changed = true;
      return {};
    }
    if (*entry.value == value) return {};
    return base::invalid("size '" + graph.sizes[size_t(size)].name + "' is " + std::to_string(*entry.value) + " by " +
                             entry.place + ", and " + std::to_string(value) + " by " + place,
                         graph.sizes[size_t(size)].span);
  }

  // extent = stated, where the extent has one unknown size, alone or with a coefficient and a constant.
  Result<void> solve(const Form& extent, int64_t stated, const std::string& place) {
    if (const auto size = extent.as_size()) return learn(*size, stated, place);
    std::optional<int> unknown;
    for (const int id : extent.ids(AtomKind::Size)) {
      if (known[size_t(id)].value) continue;
      if (unknown) return {};
      unknown = id;
    }
    if (!unknown) return {};
    // A form in one unknown: affine if its values at 0, 1 and 2 say so and no floor holds the unknown.
    for (const view::Term& term : extent.terms()) {
      for (const Atom& factor : term.factors) {
        if (factor.kind == AtomKind::Floor) return {};
      }
    }
    const auto at = [&](int64_t value) {
      return extent.evaluate([&](const Atom& atom) { return atom.id == *unknown ? value : *known[size_t(atom.id)].value; });
    };
    const __int128 base = at(0), slope = at(1) - base;
    if (slope == 0 || at(2) - base != 2 * slope || (stated - base) % slope != 0) return {};
    return learn(*unknown, int64_t((stated - base) / slope), place);
  }
};

std::string print(const Graph& graph, const Form& form) {
  view::Names names;
  names.size = [&](int id) { return graph.sizes[size_t(id)].name; };
  names.index = names.data = [](int id) { return "t" + std::to_string(id); };
  return view::print(form, names);
}

std::string place_of(const std::string& input, size_t dimension) {
  return "dimension " + std::to_string(dimension) + " of input '" + input + "'";
}

const tensor::Input* find_input(const Graph& graph, const std::string& name) {
  for (const tensor::Node& node : graph.nodes) {
    const auto* input = std::get_if<tensor::Input>(&node);
    if (input && input->name == name) return input;
  }
  return nullptr;
}

std::string list_inputs(const Graph& graph) {
  std::string out;
  for (const tensor::Node& node : graph.nodes) {
    if (const auto* input = std::get_if<tensor::Input>(&node)) out += (out.empty() ? "" : ", ") + input->name;
  }
  return out.empty() ? "none" : out;
}

Result<void> state_sizes(Inference& state, const std::vector<tensor::Binding>& sizes) {
  for (const tensor::Binding& binding : sizes) {
    bool found = false;
    for (size_t i = 0; i < state.graph.sizes.size(); ++i) {
      if (state.graph.sizes[i].name != binding.name) continue;
      found = true;
      LEMMA_TRY_VOID(state.learn(int(i), binding.value, "the caller"));
    }
    if (found) continue;
    std::string all;
    for (const tensor::Size& size : state.graph.sizes) all += (all.empty() ? "" : ", ") + size.name;
    return base::invalid("the program has no size '" + binding.name + "'", {},
                         all.empty() ? "it has none" : "its sizes are " + all);
  }
  return {};
}

// One round over all inputs.
Result<void> learn_from_shapes(Inference& state, const std::vector<runtime::Named>& inputs) {
  for (const runtime::Named& named : inputs) {
    const tensor::Input* input = find_input(state.graph, named.name);
    if (!input) {
      return base::invalid("the program has no input '" + named.name + "'", {},
                           "its inputs are " + list_inputs(state.graph));
    }
    if (named.array.extents.size() != input->extents.size()) {
      return base::invalid("input '" + named.name + "' has " + std::to_string(input->extents.size()) +
                               " dimensions, and the array given is " + runtime::describe(named.array),
                           input->span);
    }
    for (size_t d = 0; d < input->extents.size(); ++d) {
      LEMMA_TRY_VOID(state.solve(input->extents[d], named.array.extents[d], place_of(named.name, d)));
    }
  }
  return {};
}

Result<void> check_shapes(const Inference& state, const std::vector<runtime::Named>& inputs) {
  for (const runtime::Named& named : inputs) {
    const tensor::Input* input = find_input(state.graph, named.name);
    for (size_t d = 0; d < input->extents.size(); ++d) {
      const std::optional<int64_t> extent = state.evaluate(input->extents[d]);
      if (!extent || *extent == named.array.extents[d]) continue;
      const std::string form = print(state.graph, input->extents[d]);
      const std::string value = input->extents[d].is_constant() ? form : form + " = " + std::to_string(*extent);
      std::string because;
      for (const int id : input->extents[d].ids(AtomKind::Size)) {
        const Known& size = state.known[size_t(id)];
        because += (because.empty() ? " (" : ", ") + state.graph.sizes[size_t(id)].name + " is " +
                   std::to_string(*size.value) + " by " + size.place;
      }
      if (!because.empty()) because += ")";
      return base::invalid(place_of(named.name, d) + " is " + value + because + ", and the array given is " +
                               runtime::describe(named.array),
                           input->span);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<tensor::Binding>> infer_sizes(const Graph& graph, const Arguments& arguments, bool typical) {
  Inference state{graph, std::vector<Known>(graph.sizes.size()), true};
  for (size_t i = 0; i < graph.sizes.size(); ++i) {
    if (graph.sizes[i].value) state.known[i] = {graph.sizes[i].value, "the program"};
  }
  LEMMA_TRY_VOID(state_sizes(state, arguments.sizes));
  while (state.changed) {
    state.changed = false;
    LEMMA_TRY_VOID(learn_from_shapes(state, arguments.inputs));
  }
  for (size_t i = 0; typical && i < graph.sizes.size(); ++i) {
    if (!state.known[i].value && graph.sizes[i].typical) {
      LEMMA_TRY_VOID(state.learn(int(i), *graph.sizes[i].typical, "its typical value"));
    }
  }
  LEMMA_TRY_VOID(check_shapes(state, arguments.inputs));
  std::vector<tensor::Binding> out;
  for (size_t i = 0; i < graph.sizes.size(); ++i) {
    const std::string& name = graph.sizes[i].name;
    if (!state.known[i].value) {
      return base::invalid("size '" + name + "' has no value: no input's shape tells it", graph.sizes[i].span,
                           "state it: --size " + name + "=128, or for random inputs in the program: dim " + name + " like 128");
    }
    out.push_back(tensor::Binding{name, *state.known[i].value});
  }
  return out;
}

std::vector<int64_t> evaluate_extents(const std::vector<Form>& extents, const std::vector<tensor::Binding>& sizes) {
  std::vector<int64_t> out;
  for (const Form& extent : extents) {
    out.push_back(extent.evaluate([&](const Atom& atom) { return sizes[size_t(atom.id)].value; }));
  }
  return out;
}

}  // namespace lemma::driver
