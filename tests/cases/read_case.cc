#include <algorithm>
#include <filesystem>

#include "tests/cases/case_file.h"

namespace lemma::cases {

using testing_support::NamedValues;

std::vector<std::string> case_paths(const std::string& folder) {
  std::vector<std::string> paths;
  const std::filesystem::path root = folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".lemma") paths.push_back(std::filesystem::relative(entry.path(), root));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

base::Result<NamedValues> inputs_of(const tensor::Graph& graph, const CaseRun& run) {
  NamedValues inputs = testing_support::declared_inputs(graph, run.sizes);
  for (auto& [name, values] : inputs) {
    const auto found = run.inputs.find(name);
    if (found == run.inputs.end()) return base::invalid("the case gives no values to input `" + name + "`");
    LEMMA_TRY(values.data, generate(found->second, values.extents));
  }
  return inputs;
}

}  // namespace lemma::cases
