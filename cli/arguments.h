// The flags that commands share, and what they say as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "lemma/base/result.h"
#include "lemma/driver/compile.h"
#include "lemma/driver/execute.h"

namespace lemma::cli {

struct ProgramOptions {
  std::string program;                  // a file, or "-" for standard input
  std::string target = "host";
  std::string schedule;                 // a file
  bool strict = false, loose = false, naive = false;
  std::string compiler;
  bool no_cache = false;
  bool no_openmp = false;
};

struct DataOptions {
  std::vector<std::string> inputs;      // name=place, or an .npz with a member per input
  std::vector<std::string> sizes;       // NAME=value
  std::optional<uint64_t> seed;         // inputs that are not given are random
  bool convert = false;                 // arrays of another type are converted
  int threads = 0;                      // 0: every core
};

void add_program_options(CLI::App& app, ProgramOptions& options);
void add_data_options(CLI::App& app, DataOptions& options);

// The file's name without its ending; what emitted text calls the program.
std::string program_name(const ProgramOptions& options);
base::Result<driver::CompileOptions> compile_options(const ProgramOptions& options);
int thread_count(const DataOptions& options);

// The program's text; `-` is standard input.
base::Result<std::string> read_text(const std::string& path);

// Every input of the graph: read from where the options say, else random if there is a seed (sizes that no shape tells
// then have their typical values). A missing input without a seed is invalid.
base::Result<driver::Arguments> gather_arguments(const tensor::Graph& graph, const DataOptions& options);

// "name=place" for outputs: which output goes where.
struct Destination {
  std::string output;
  std::string place;
};
base::Result<std::vector<Destination>> parse_destinations(const tensor::Graph& graph,
                                                          const std::vector<std::string>& texts);

}  // namespace lemma::cli
