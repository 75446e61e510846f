// lemma emit: the C text of a program, to standard output or a file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/report.h"
#include "cli/session.h"
#include "lemma/runtime/bytes.h"

namespace lemma::cli {
namespace {

struct Options {
  ProgramOptions program;
  std::string output;
};

int emit(const Context& context, const Options& options) {
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  const auto compiled = compile_program(context, *source, options.program);
  if (!compiled) return fail(context, compiled.error());
  const std::string& text = compiled->c_source;
  if (!options.output.empty()) {
    const CleanSection section;
    const auto written = runtime::write_atomically(options.output, std::as_bytes(std::span(text)));
    if (!written) return fail(context, written.error());
  }
  if (context.json) {
    nlohmann::json document = {{"bytes", text.size()}};
    if (options.output.empty()) document["source"] = text;
    else document["file"] = options.output;
    print_json(document);
  } else if (options.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return kOk;
}

}  // namespace

void add_emit(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("emit", "print a program's C text");
  add_program_options(*command, options->program);
  command->add_option("-o,--output", options->output, "a file, instead of standard output");
  command->callback([options, &context] { context.exit = emit(context, *options); });
}

}  // namespace lemma::cli
