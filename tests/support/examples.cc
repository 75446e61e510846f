#include "tests/support/examples.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "lemma/driver/execute.h"
#include "lemma/runtime/random.h"
#include "lemma/tensor/bind.h"

namespace lemma::testing_support {

std::vector<std::string> example_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".lemma") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// `# KEY: rest` of the header.
std::string header(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  std::string line;
  const std::string start = "# " + key + ": ";
  while (std::getline(lines, line)) {
    if (line.rfind(start, 0) == 0) return line.substr(start.size());
  }
  return "";
}

std::vector<tensor::Binding> read_sizes(const std::string& text) {
  std::vector<tensor::Binding> sizes;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const size_t equals = word.find('=');
    sizes.push_back({word.substr(0, equals), std::stoll(word.substr(equals + 1))});
  }
  return sizes;
}

static int64_t evaluate_bound(const view::Form& form, const std::vector<tensor::Binding>& sizes) {
  return driver::evaluate_extents({form}, sizes)[0];
}

NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes) {
  NamedValues inputs = declared_inputs(graph, sizes);
  for (const tensor::Node& node : graph.nodes) {
    const auto* input = std::get_if<tensor::Input>(&node);
    if (!input) continue;
    Values& values = inputs[input->name];
    const uint64_t seed = runtime::seed_of(1, input->name);
    int64_t count = 1;
    for (int64_t extent : values.extents) count *= extent;
    const int64_t low = input->low ? evaluate_bound(*input->low, sizes) : 0;
    const int64_t high = input->high ? evaluate_bound(*input->high, sizes) : 8;
    for (int64_t i = 0; i < count; ++i) {
      const double value = scalar::is_float(input->type) ? runtime::uniform(seed, uint64_t(i))
                                                         : double(low + runtime::integer(seed, uint64_t(high - low), uint64_t(i)));
      values.data.push_back(value);
    }
  }
  return inputs;
}

base::Result<Example> read_example(const std::string& folder, const std::string& name) {
  Example out;
  LEMMA_TRY(const std::string text, read_text(folder + "/" + name + ".lemma"));
  const std::string sizes = header(text, "sizes"), tolerance = header(text, "tolerance");
  if (sizes.empty()) return base::invalid("the example " + name + " names no sizes");
  out.sizes = read_sizes(sizes);
  if (!tolerance.empty()) out.bound = std::stod(tolerance);
  LEMMA_TRY(out.graph, read_program(text, name + ".lemma"));
  out.inputs = random_inputs(out.graph, in_order(out.graph, out.sizes));
  LEMMA_TRY(out.expected, evaluate(out.graph, out.sizes, out.inputs));
  return out;
}

tensor::Graph with_columns_bound(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes) {
  std::vector<tensor::Binding> some;
  for (const tensor::Binding& b : in_order(graph, sizes)) {
    if (b.name == "D") some.push_back(b);
  }
  auto bound = tensor::bind(graph, some);
  return bound.ok() ? *std::move(bound) : graph;
}

}  // namespace lemma::testing_support
