// lemma run: compile, execute on given or random inputs, write or describe the outputs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/interpret.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/session.h"
#include "lemma/runtime/file.h"

namespace lemma::cli {
namespace {

using base::Result;
using nlohmann::json;
using runtime::Named;

struct Options {
  ProgramOptions program;
  DataOptions data;
  std::vector<std::string> outputs;
  bool interpret = false;
};

struct Outcome {
  std::vector<Named> outputs;
  std::vector<tensor::Binding> sizes;
  double prepare_seconds = 0, run_seconds = 0;
  runtime::CacheCounters cache;
  bool interpreted = false;
};

Result<Outcome> run_kernels(const Context& context, const Options& options, const Source& source,
                            const driver::Arguments& arguments) {
  Outcome out;
  const double start = now();
  LEMMA_TRY(const driver::Compiled compiled, compile_program(context, source, options.program));
  LEMMA_TRY(const Kernels kernels, load_kernels(context, compiled, options.program));
  LEMMA_TRY(driver::Call call, driver::prepare(compiled, arguments));
  Progress progress(context, "running");
  runtime::Workspace workspace;
  const double ready = now();
  LEMMA_TRY_VOID(driver::launch(kernels.module, call, workspace, thread_count(options.data)));
  out.run_seconds = now() - ready;
  out.prepare_seconds = ready - start;
  out.cache = kernels.counters;
  out.outputs = std::move(call.outputs);
  out.sizes = std::move(call.sizes);
  return out;
}

Result<Outcome> run_interpreter(const Context& context, const Options& options, const Source& source,
                                const driver::Arguments& arguments) {
  Outcome out;
  Progress progress(context, "interpreting");
  LEMMA_TRY_VOID(driver::check_inputs(source.graph, arguments.inputs, arguments.sizes));
  const double start = now();
  LEMMA_TRY(out.outputs, interpret(context, source, options.program, arguments));
  out.run_seconds = now() - start;
  out.sizes = arguments.sizes;
  out.interpreted = true;
  return out;
}

Result<Outcome> run_program(const Context& context, const Options& options, const Source& source) {
  LEMMA_TRY(const driver::Arguments arguments, gather_arguments(source.graph, options.data));
  if (options.interpret) return run_interpreter(context, options, source, arguments);
  if (options.program.compiler.empty() && !has_compiler(context, options.program)) {
    notice(context, "there is no C compiler (none of gcc, cc, clang); the program is interpreted, which is slow");
    return run_interpreter(context, options, source, arguments);
  }
  return run_kernels(context, options, source, arguments);
}

Result<void> write_outputs(const std::vector<Destination>& destinations, const std::vector<Named>& outputs) {
  const CleanSection section;
  // Outputs for one archive are written together.
  std::vector<std::pair<std::string, std::vector<Named>>> archives;
  for (const Destination& destination : destinations) {
    for (const Named& output : outputs) {
      if (output.name != destination.output) continue;
      LEMMA_TRY(const runtime::FilePlace place, runtime::parse_place(destination.place));
      if (!place.path.ends_with(".npz")) {
        LEMMA_TRY_VOID(runtime::write_array(place, output.array));
        continue;
      }
      auto archive = std::find_if(archives.begin(), archives.end(), [&](const auto& a) { return a.first == place.path; });
      if (archive == archives.end()) archive = archives.insert(archives.end(), {place.path, {}});
      archive->second.push_back({place.member.empty() ? output.name : place.member, output.array});
    }
  }
  for (const auto& [path, arrays] : archives) LEMMA_TRY_VOID(runtime::write_npz(path, arrays));
  return {};
}

void report(const Context& context, const Outcome& outcome) {
  if (context.json) {
    json outputs = json::object(), sizes = json::object();
    for (const Named& output : outcome.outputs) outputs[output.name] = to_json(output.array);
    for (const tensor::Binding& size : outcome.sizes) sizes[size.name] = size.value;
    print_json({{"outputs", outputs},
                {"sizes", sizes},
                {"interpreted", outcome.interpreted},
                {"seconds", outcome.run_seconds},
                {"prepare_seconds", outcome.prepare_seconds},
                {"cache", {{"hits", outcome.cache.hits}, {"compiles", outcome.cache.compiles}}}});
    return;
  }
  for (const Named& output : outcome.outputs) {
    std::printf("%s %s: %s\n", output.name.c_str(), runtime::describe(output.array).c_str(),
                describe(digest(output.array)).c_str());
  }
}

int run(const Context& context, const Options& options) {
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  const auto destinations = parse_destinations(source->graph, options.outputs);
  if (!destinations) return fail(context, destinations.error());
  if (source->graph.outputs.empty()) notice(context, "the program has no output, so nothing is computed; name one: output y");
  const auto outcome = run_program(context, options, *source);
  if (!outcome) return fail(context, outcome.error());
  if (const auto written = write_outputs(*destinations, outcome->outputs); !written) return fail(context, written.error());
  report(context, *outcome);
  if (!context.json) {
    notice(context, "ran in " + seconds(outcome->run_seconds) +
                        (outcome->interpreted ? " (interpreted)" : ", prepared in " + seconds(outcome->prepare_seconds)));
  }
  return kOk;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "compile a program and run it");
  add_program_options(*command, options->program);
  add_data_options(*command, options->data);
  command->add_option("--out", options->outputs, "name=file: where an output goes (.npy .npz .idx .raw)")
      ->allow_extra_args(false);
  command->add_flag("--interpret", options->interpret, "use the f64 interpreter instead of kernels");
  command->callback([options, &context] { context.exit = run(context, *options); });
}

}  // namespace lemma::cli
