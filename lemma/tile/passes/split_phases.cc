#include "lemma/tile/passes/split_phases.h"

#include <algorithm>
#include <utility>

namespace lemma::tile {

Program split_phases(Program program) {
  std::vector<Kernel> kernels = std::move(program.kernels);
  program.kernels.clear();
  const auto taken = [&](const std::string& name) {
    const auto same = [&](const Kernel& k) { return k.name == name; };
    return std::any_of(kernels.begin(), kernels.end(), same) || std::any_of(program.kernels.begin(), program.kernels.end(), same);
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    Block body = std::move(kernels[i].body);
    kernels[i].body.clear();
    Kernel part = kernels[i];
    int number = 1;
    for (Stmt& stmt : body) {
      if (!std::holds_alternative<Phase>(stmt)) {
        part.body.push_back(std::move(stmt));
        continue;
      }
      program.kernels.push_back(part);
      part.body.clear();
      do {
        part.name = kernels[i].name + "." + std::to_string(++number);
      } while (taken(part.name));
    }
    program.kernels.push_back(std::move(part));
  }
  return program;
}

}  // namespace lemma::tile
