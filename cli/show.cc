// lemma show: a program at any level, after any pass, with the decisions that led there.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/layouts.h"
#include "cli/report.h"
#include "cli/session.h"
#include "lemma/driver/on_device.h"
#include "lemma/tile/print.h"

namespace lemma::cli {
namespace {

using nlohmann::json;

struct Options {
  ProgramOptions program;
  std::string level = "derived";
  std::string pass, dialect = "c";
  bool explain = false;
  bool all = false;
  std::optional<std::string> layout;  // of which placed buffer; empty: of all
  bool svg = false;
};

struct Stage {
  std::string name, text;
  double seconds = 0;
};

// The last graph text before scheduling, or the text of the stage of this name.
const Stage* find_stage(const std::vector<Stage>& stages, const std::string& name) {
  for (const Stage& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

const Stage* derived_stage(const std::vector<Stage>& stages) {
  const Stage* last = nullptr;
  for (const Stage& stage : stages) {
    if (stage.name == "schedule") break;
    last = &stage;
  }
  return last;
}

std::string text_of_level(const std::string& level, const Source& source, const driver::Compiled& compiled,
                          const std::vector<Stage>& stages) {
  if (level == "maths") return source.text;
  if (level == "schedule") return compiled.schedule;
  if (level == "c") return compiled.c_source;
  const Stage* stage = level == "tile" ? find_stage(stages, "tile") : derived_stage(stages);
  return stage ? stage->text : source.text;
}

json explain(const std::vector<rewrite::Decision>& decisions) {
  json list = json::array();
  for (const rewrite::Decision& d : decisions) {
    list.push_back({{"pass", d.pass}, {"subject", d.subject}, {"applied", d.applied}, {"sentence", d.sentence}});
  }
  return list;
}

// For the C target, or as scheduled for the devices of a dialect.
base::Result<driver::Compiled> compile(const Context& context, const Source& source, const Options& options, const driver::Trace& trace) {
  if (options.dialect == "c") return compile_program(context, source, options.program, trace);
  const emit::device::Dialect* dialect = emit::device::find_dialect(options.dialect);
  if (!dialect) return base::invalid("there is no dialect '" + options.dialect + "'", {}, "c, cuda, opencl, metal, glsl or wgsl");
  if (source.tiles) return base::invalid("a tile program is the same for every dialect", {}, "leave --dialect out");
  if (options.level == "c") return base::invalid("the text in " + options.dialect + " is no level", {}, "`lemma emit --dialect " + options.dialect + "` prints it");
  LEMMA_TRY(driver::CompileOptions how, compile_options(options.program));
  how.target = driver::device_target(driver::text_options(dialect->id));
  return driver::compile(source.graph, how, trace);
}

// The program as CUDA's threads carry it out: printed, or the layouts that its passes chose.
base::Result<std::string> thread_form(const Context& context, const Source& source, const Options& options) {
  LEMMA_TRY(const driver::OnDevice program,
            program_for_device(context, source, options.program, driver::text_options(emit::device::DialectId::Cuda)));
  for (const std::string& note : program.text.notes) notice(context, note);
  const tile::Program& tiles = program.compiled.program;
  if (!options.layout) return tile::print(tiles);
  return options.layout->empty() ? list_layouts(tiles) : draw_layout(tiles, *options.layout, options.svg);
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
}

int show(const Context& context, Options options) {
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  if (options.level == "threads" || options.layout) {
    const auto text = thread_form(context, *source, options);
    if (!text) return fail(context, text.error());
    if (context.json) print_json({{"level", "threads"}, {"text", *text}});
    else print_text(*text);
    return kOk;
  }
  if (source->tiles) {
    if (options.explain || !options.pass.empty() || options.level == "maths" || options.level == "schedule") {
      return fail(context, base::invalid("this is a tile program, which has no maths, no passes and no schedule", {}, "show it with --level tile or --level c"));
    }
    if (options.level == "derived") options.level = "tile";
  }
  if (options.level == "maths" && !options.explain && !options.all && options.pass.empty() && !context.json) {
    print_text(source->text);
    return kOk;
  }
  std::vector<Stage> stages;
  const auto trace = [&](const std::string& name, const std::string& text, double seconds) {
    stages.push_back({name, text, seconds});
  };
  const auto compiled = compile(context, *source, options, trace);
  // What was reached before a failure is worth seeing.
  if (!compiled && !options.all) return fail(context, compiled.error());
  if (!options.pass.empty() && !find_stage(stages, options.pass)) {
    std::string all;
    for (const Stage& stage : stages) all += (all.empty() ? "" : " ") + stage.name;
    return fail(context, base::invalid("there is no pass '" + options.pass + "'", {}, "the passes are " + all));
  }
  if (context.json) {
    json document = {{"level", options.level}};
    if (compiled) document["text"] = text_of_level(options.level, *source, *compiled, stages);
    if (!options.pass.empty()) document["text"] = find_stage(stages, options.pass)->text;
    if (compiled) document["decisions"] = explain(compiled->decisions);
    document["stages"] = json::array();
    for (const Stage& stage : stages) {
      json row = {{"name", stage.name}, {"seconds", stage.seconds}};
      if (options.all) row["text"] = stage.text;
      document["stages"].push_back(row);
    }
    if (!compiled) return fail(context, compiled.error());
    print_json(document);
    return kOk;
  }
  if (options.all) {
    for (const Stage& stage : stages) {
      std::printf("==== %s (%s)\n", stage.name.c_str(), seconds(stage.seconds).c_str());
      print_text(stage.text);
    }
    if (!compiled) return fail(context, compiled.error());
  } else if (!options.pass.empty()) {
    print_text(find_stage(stages, options.pass)->text);
  } else if (!options.explain || options.level != "derived") {
    print_text(text_of_level(options.level, *source, *compiled, stages));
  }
  if (options.explain) {
    if (compiled->decisions.empty()) std::printf("no rewrite had anything to say\n");
    for (const rewrite::Decision& d : compiled->decisions) {
      std::printf("%s %s%s%s: %s\n", d.applied ? "did     " : "declined", d.pass.c_str(), d.subject.empty() ? "" : " at ", d.subject.c_str(),
                  d.sentence.c_str());
    }
  }
  return kOk;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("show", "print a program at a level, after a pass, or with every decision");
  add_program_options(*command, options->program);
  command->add_option("--level", options->level, "maths, derived, schedule, tile, threads (tiles as CUDA's threads carry them out) or c")
      ->check(CLI::IsMember({"maths", "derived", "schedule", "tile", "threads", "c"}));
  command->add_option("--layout", options->layout, "where the elements of a buffer lie, in registers of lanes or in shared memory, and its bank conflicts; without a name: of every placed buffer")
      ->expected(0, 1)->default_str("");
  command->add_flag("--svg", options->svg, "that picture as SVG");
  command->add_option("--dialect", options->dialect, "schedule and tile for devices: cuda, opencl, metal, glsl or wgsl");
  command->add_option("--pass", options->pass, "the text after this pass");
  command->add_flag("--explain", options->explain, "what each rewrite did or declined, and why");
  command->add_flag("--all", options->all, "the text after every pass, with times");
  command->callback([options, &context] { context.exit = show(context, *options); });
}

}  // namespace lemma::cli
