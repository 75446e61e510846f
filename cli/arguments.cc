#include "cli/arguments.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>

#include "lemma/runtime/file.h"
#include "lemma/runtime/host.h"
#include "lemma/runtime/random.h"

namespace lemma::cli {
namespace {

using base::Result;
using runtime::Array;
using runtime::Named;
using tensor::Graph;
using tensor::Input;

std::vector<const Input*> inputs_of(const Graph& graph) {
  std::vector<const Input*> out;
  for (const tensor::Node& node : graph.nodes) {
    if (const auto* input = std::get_if<Input>(&node)) out.push_back(input);
  }
  return out;
}

const Input* find_input(const Graph& graph, const std::string& name) {
  for (const Input* input : inputs_of(graph)) {
    if (input->name == name) return input;
  }
  return nullptr;
}

struct Assignment {
  std::string name, value;
};
std::optional<Assignment> split(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  return Assignment{text.substr(0, equals), text.substr(equals + 1)};
}

Result<std::vector<tensor::Binding>> parse_sizes(const std::vector<std::string>& texts) {
  std::vector<tensor::Binding> out;
  for (const std::string& text : texts) {
    const auto parts = split(text);
    int64_t value = 0;
    bool whole = false;
    if (parts) {
      const char* end = parts->value.data() + parts->value.size();
      const auto [last, error] = std::from_chars(parts->value.data(), end, value);
      whole = error == std::errc() && last == end;
    }
    if (!whole || value < 0) return base::invalid("'--size " + text + "' is not a size", {}, "write it as --size N=128");
    out.push_back(tensor::Binding{parts->name, value});
  }
  return out;
}

Result<Array> read_input(const Input& input, const std::string& text, bool convert) {
  LEMMA_TRY(const runtime::FilePlace place, runtime::parse_place(text));
  LEMMA_TRY(Array array, runtime::read_array(place, input.type));
  if (array.type == input.type) return array;
  if (convert) return runtime::convert(array, input.type);
  return base::invalid("input '" + input.name + "' is " + std::string(scalar::name(input.type)) + ", and '" + text +
                           "' holds " + runtime::describe(array),
                       input.span, "add --convert to convert it");
}

Result<void> add_input(const Graph& graph, const std::string& name, const std::string& place, bool convert,
                       std::vector<Named>& out) {
  const Input* input = find_input(graph, name);
  if (!input) {
    std::string all;
    for (const Input* i : inputs_of(graph)) all += (all.empty() ? "" : ", ") + i->name;
    return base::invalid("the program has no input '" + name + "'", {},
                         all.empty() ? "it has none" : "its inputs are " + all);
  }
  for (const Named& given : out) {
    if (given.name == name) return base::invalid("input '" + name + "' is given twice");
  }
  LEMMA_TRY(Array array, read_input(*input, place, convert));
  out.push_back({name, std::move(array)});
  return {};
}

Result<std::vector<Named>> read_inputs(const Graph& graph, const DataOptions& options) {
  std::vector<Named> out;
  for (const std::string& text : options.inputs) {
    if (const auto parts = split(text)) {
      LEMMA_TRY_VOID(add_input(graph, parts->name, parts->value, options.convert, out));
      continue;
    }
    LEMMA_TRY(const std::vector<std::string> members, runtime::list_npz(text));
    for (const std::string& member : members) {
      LEMMA_TRY_VOID(add_input(graph, member, text + "@" + member, options.convert, out));
    }
  }
  return out;
}

Result<Array> random_input(const Input& input, const std::vector<tensor::Binding>& sizes, uint64_t seed) {
  LEMMA_TRY(Array array, runtime::allocate(input.type, driver::evaluate_extents(input.extents, sizes),
                                           "input '" + input.name + "'"));
  const auto at = [&](const view::Form& form) {
    return form.evaluate([&](const view::Atom& atom) { return sizes[size_t(atom.id)].value; });
  };
  std::optional<runtime::IntegerRange> range;
  if (input.low && input.high) {
    range = {at(*input.low), at(*input.high)};
  } else if (input.low) {
    range = {at(*input.low), at(*input.low) + 16};
  } else if (input.high) {
    range = {scalar::is_signed(scalar::kind_of(input.type)) ? at(*input.high) - 16 : 0, at(*input.high)};
  }
  const auto filled = runtime::fill_random(array, runtime::seed_of(seed, input.name), range, input.sorted);
  if (!filled) {
    base::Diagnostic diagnostic = filled.error();
    diagnostic.message = "input '" + input.name + "': " + diagnostic.message;
    diagnostic.span = input.span;
    return diagnostic;
  }
  return array;
}

}  // namespace

void add_program_options(CLI::App& app, ProgramOptions& options) {
  app.add_option("program", options.program, "the program's file; - is standard input")->required();
  app.add_option("--target", options.target, "host, generic, sse2, avx2, avx512, neon");
  app.add_option("--schedule", options.schedule, "a file with a schedule, instead of the defaults");
  auto* strict = app.add_flag("--strict", options.strict, "only rewrites that hold over the reals with inf and nan");
  app.add_flag("--loose", options.loose, "also rewrites that may change values")->excludes(strict);
  app.add_flag("--naive", options.naive, "no rewrites beyond what lowering needs");
  app.add_option("--cc", options.compiler, "the C compiler: a name or a path (else the first of gcc, cc, clang)");
  app.add_flag("--no-cache", options.no_cache, "neither look for kernels in the cache nor keep them there");
  app.add_flag("--no-openmp", options.no_openmp, "one thread, no OpenMP");
}

void add_data_options(CLI::App& app, DataOptions& options) {
  app.add_option("--in", options.inputs,
                 "name=file, or an .npz with a member per input; formats: .npy, .npz (file@member), IDX (also .gz), "
                 "raw (file:f32[2,3])")
      ->allow_extra_args(false);
  app.add_option("--size", options.sizes, "NAME=value")->allow_extra_args(false);
  app.add_option("--random", options.seed, "a seed: inputs that are not given are random");
  app.add_flag("--convert", options.convert, "convert arrays of another element type");
  app.add_option("--threads", options.threads, "how many threads; 0 is one per core")->check(CLI::Range(0, 1024));
}

std::string program_name(const ProgramOptions& options) {
  const std::string stem = std::filesystem::path(options.program).stem().string();
  return options.program == "-" || stem.empty() ? "kernel" : stem;
}

Result<driver::CompileOptions> compile_options(const ProgramOptions& options) {
  driver::CompileOptions out;
  LEMMA_TRY(out.target, runtime::named_target(options.target));
  out.allow = options.strict ? rewrite::Claim::Real : options.loose ? rewrite::Claim::Loose : rewrite::Claim::Finite;
  out.derive = !options.naive;
  out.name = program_name(options);
  if (!options.schedule.empty()) {
    LEMMA_TRY(out.schedule, read_text(options.schedule));
    out.schedule_file = options.schedule;
  }
  return out;
}

int thread_count(const DataOptions& options) { return options.threads > 0 ? options.threads : runtime::core_count(); }

Result<std::string> read_text(const std::string& path) {
  LEMMA_TRY(const std::vector<std::byte> bytes, runtime::read_file(path == "-" ? "/dev/stdin" : path, int64_t(64) << 20));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<driver::Arguments> gather_arguments(const Graph& graph, const DataOptions& options) {
  driver::Arguments out;
  LEMMA_TRY(out.sizes, parse_sizes(options.sizes));
  LEMMA_TRY(out.inputs, read_inputs(graph, options));
  for (const Input* input : inputs_of(graph)) {
    if (options.seed || std::any_of(out.inputs.begin(), out.inputs.end(), [&](const Named& n) { return n.name == input->name; })) continue;
    return base::invalid("input '" + input->name + "' is not given", input->span,
                         "give it with --in " + input->name + "=file.npy, or --random 1 for random values, whose sizes are what "
                         "--size N=128 or a `dim N like 128` says");
  }
  LEMMA_TRY(const std::vector<tensor::Binding> sizes, driver::infer_sizes(graph, out, options.seed.has_value()));
  for (const Input* input : inputs_of(graph)) {
    const bool given = std::any_of(out.inputs.begin(), out.inputs.end(),
                                   [&](const Named& named) { return named.name == input->name; });
    if (given) continue;
    LEMMA_TRY(Array array, random_input(*input, sizes, *options.seed));
    out.inputs.push_back({input->name, std::move(array)});
  }
  out.sizes = sizes;
  return out;
}

Result<std::vector<Destination>> parse_destinations(const Graph& graph, const std::vector<std::string>& texts) {
  std::vector<Destination> out;
  for (const std::string& text : texts) {
    const auto parts = split(text);
    std::string all;
    bool known = false;
    for (const tensor::GraphOutput& output : graph.outputs) {
      known = known || (parts && output.name == parts->name);
      all += (all.empty() ? "" : ", ") + output.name;
    }
    if (!parts) return base::invalid("'--out " + text + "' names no output", {}, "write it as --out y=file.npy");
    if (!known) return base::invalid("the program has no output '" + parts->name + "'", {}, "its outputs are " + all);
    for (const Destination& given : out) {
      if (given.output == parts->name) return base::invalid("output '" + parts->name + "' is given two places, '" + given.place + "' and '" + parts->value + "'", {}, "leave one out");
    }
    LEMMA_TRY(const runtime::FilePlace place, runtime::parse_place(parts->value));
    // Said before anything long has run.
    std::filesystem::path folder = std::filesystem::path(place.path).parent_path();
    if (folder.empty()) folder = ".";
    std::error_code none;
    if (!std::filesystem::is_directory(folder, none)) {
      return base::system_failure("cannot write '" + place.path + "': there is no folder '" + folder.string() + "'", "make it first");
    }
    if (::access(folder.c_str(), W_OK) != 0) return base::system_failure("cannot write into the folder '" + folder.string() + "'");
    out.push_back({parts->name, parts->value});
  }
  return out;
}

}  // namespace lemma::cli
