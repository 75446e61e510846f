// lemma build: a header and a source for people who compile the result themselves, and an .npz of inputs with the
// outputs that the oracle expects, to test it with.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "cli/interpret.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/session.h"
#include "lemma/emit/c.h"
#include "lemma/runtime/bytes.h"

namespace lemma::cli {
namespace {

using base::Result;

struct Options {
  ProgramOptions program;
  DataOptions data;
  std::string directory = ".";
  std::string name;
  bool no_vectors = false;
};

Result<void> write_text(const std::string& path, const std::string& text, std::vector<std::string>& files) {
  LEMMA_TRY_VOID(runtime::write_atomically(path, std::as_bytes(std::span(text))));
  files.push_back(path);
  return {};
}

// Inputs, and the outputs that the oracle expects.
Result<std::vector<runtime::Named>> make_vectors(const Context& context, const Source& source,
                                                 const ProgramOptions& program, const DataOptions& data) {
  LEMMA_TRY(const driver::Arguments arguments, gather_arguments(source.graph, data));
  Progress progress(context, "asking the oracle");
  LEMMA_TRY(const std::vector<runtime::Named> outputs, interpret(context, source, program, arguments));
  std::vector<runtime::Named> all;
  for (const runtime::Named& input : arguments.inputs) all.push_back({"in_" + input.name, input.array});
  for (const runtime::Named& output : outputs) all.push_back({"out_" + output.name, output.array});
  return all;
}

Result<std::vector<std::string>> write_all(const Context& context, const Options& options, const Source& source) {
  LEMMA_TRY(const driver::Compiled compiled, compile_program(context, source, options.program));
  LEMMA_TRY(const driver::CompileOptions compile, compile_options(options.program));
  emit::COptions how;
  how.target = compile.target;
  how.openmp = !options.program.no_openmp;
  emit::LibraryOptions naming;
  naming.name = options.name.empty() ? program_name(options.program) : options.name;
  LEMMA_TRY(const emit::Library library, emit::emit_library(compiled.program, how, naming));
  std::vector<runtime::Named> vectors;
  if (!options.no_vectors) {
    LEMMA_TRY(vectors, make_vectors(context, source, options.program, options.data));
  }
  const CleanSection section;
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) return base::system_failure("cannot make '" + options.directory + "': " + error.message());
  const std::string base = options.directory + "/" + library.name;
  std::vector<std::string> files;
  LEMMA_TRY_VOID(write_text(base + ".h", library.header, files));
  LEMMA_TRY_VOID(write_text(base + ".c", library.source, files));
  if (!options.no_vectors) {
    LEMMA_TRY_VOID(runtime::write_npz(base + ".npz", vectors));
    files.push_back(base + ".npz");
  }
  return files;
}

int build(const Context& context, const Options& given) {
  Options options = given;
  if (!options.data.seed) options.data.seed = 1;
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  const auto files = write_all(context, options, *source);
  if (!files) return fail(context, files.error());
  if (context.json) {
    print_json({{"files", *files}});
  } else {
    for (const std::string& file : *files) std::printf("%s\n", file.c_str());
  }
  return kOk;
}

}  // namespace

void add_build(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("build", "write a C header and source, and test vectors, to a directory");
  add_program_options(*command, options->program);
  add_data_options(*command, options->data);
  command->add_option("-o,--output", options->directory, "the directory; else the current one");
  command->add_option("--name", options->name, "of the function; else the program file's");
  command->add_flag("--no-vectors", options->no_vectors, "no test vectors (they need a value for every size)");
  command->callback([options, &context] { context.exit = build(context, *options); });
}

}  // namespace lemma::cli
