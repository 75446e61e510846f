// lemma emit: the C text of a program, to standard output or a file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/report.h"
#include "cli/session.h"
#include "lemma/driver/on_device.h"
#include "lemma/runtime/bytes.h"

namespace lemma::cli {
namespace {

struct Options {
  ProgramOptions program;
  std::string output;
  std::string dialect = "c";
};

// C, or the language of a device; where it has a text for each kernel, one after another.
base::Result<std::string> text_of(const Context& context, const Options& options, const Source& source) {
  if (options.dialect == "c") {
    LEMMA_TRY(const driver::Compiled compiled, compile_program(context, source, options.program));
    return compiled.c_source;
  }
  const emit::device::Dialect* dialect = emit::device::find_dialect(options.dialect);
  if (!dialect) return base::invalid("there is no dialect '" + options.dialect + "'", {}, "c, cuda, opencl, metal, glsl or wgsl");
  const emit::device::DeviceOptions device = driver::text_options(dialect->id);
  LEMMA_TRY(const driver::OnDevice program, program_for_device(context, source, options.program, device));
  std::string out = program.text.preamble + program.text.source;
  for (const emit::device::DeviceKernel& k : program.text.kernels) out += k.source;
  for (const std::string& note : program.text.notes) notice(context, note);
  return out;
}

int emit(const Context& context, const Options& options) {
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  const auto made = text_of(context, options, *source);
  if (!made) return fail(context, made.error());
  const std::string& text = *made;
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
  CLI::App* command = app.add_subcommand("emit", "print a program's text in C or the language of a device");
  add_program_options(*command, options->program);
  command->add_option("--dialect", options->dialect, "c, cuda, opencl, metal, glsl or wgsl");
  command->add_option("-o,--output", options->output, "a file, instead of standard output");
  command->callback([options, &context] { context.exit = emit(context, *options); });
}

}  // namespace lemma::cli
