// The pipeline: graph -> derived graph -> schedule -> tile program -> C.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/rewrite/decision.h"
#include "lemma/tensor/graph.h"
#include "lemma/tile/program.h"
#include "lemma/tile/target.h"

namespace lemma::driver {

struct CompileOptions {
  rewrite::Claim allow = rewrite::Claim::Finite;
  tile::Target target;
  std::string name;                     // of the program, for the C text
  std::optional<std::string> schedule;  // the text of a schedule; else defaults
  std::string schedule_file = "schedule"; // where it stands
  bool derive = true;                   // false: no rewrites beyond what lowering needs (the naive program)
  bool simple = false;                  // the simple schedule: a kernel a node, plain loops
};

// Called after every stage with its name ("fuse_maps", "schedule", "tile", "c"), its text and the seconds it took.
using Trace = std::function<void(const std::string& stage, const std::string& text, double seconds)>;

struct Compiled {
  tensor::Graph source;                 // as written
  tensor::Graph derived;                // after the rewrites
  std::string schedule;                 // as text
  tile::Program program;
  std::string c_source;                 // see emit/c.h for its entry points
  std::vector<rewrite::Decision> decisions;
  bool reads_decided = true;            // false: whether reads stay inside hangs on more than requirements of sizes
};

base::Result<Compiled> compile(tensor::Graph graph, const CompileOptions& options, const Trace& trace = {});

}  // namespace lemma::driver
