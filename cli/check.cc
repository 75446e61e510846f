// lemma check: runs the kernels and compares every output with the f64 oracle. Outputs hold nan before the run, so an
// element nobody wrote shows; integer and bool outputs are run twice over different bytes. Inputs are random from a
// fresh, printed seed unless given.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "cli/interpret.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/session.h"
#include "emulator/program.h"
#include "lemma/driver/on_device.h"
#include "lemma/driver/roundings.h"
#include "lemma/driver/work.h"
#include "lemma/monoid/laws.h"
#include "lemma/runtime/host.h"
#include "lemma/tensor/print.h"

namespace lemma::cli {
namespace {

using base::Result;
using nlohmann::json;
using runtime::Array;

struct Options {
  ProgramOptions program;
  DataOptions data;
  std::optional<double> tolerance;
  std::string device;  // else the processor
  std::string emulate;  // "cuda" or "metal": its text under the emulator
  double most_operations = 1e9;
  int64_t points = 4096;
};

// Above this many operations (about a minute of plain loops) only the sampled points are compared.
constexpr double kMostSimpleOperations = 2e11;

struct Verdict {
  std::string output;
  runtime::Array array;
  driver::Comparison comparison;
  driver::Tolerance tolerance;
  std::optional<int64_t> unwritten;  // differs between two fills
  bool whole = true;
  std::optional<driver::Comparison> simple;  // every element against plain loops, where the oracle saw samples
  bool ok() const { return comparison.ok() && !unwritten && (!simple || simple->ok()); }
};

// The first element whose value is what was there before.
std::optional<int64_t> first_difference(const Array& a, const Array& b) {
  for (int64_t i = 0; i < a.count(); ++i) {
    if (runtime::int_at(a, i) != runtime::int_at(b, i)) return i;
  }
  return std::nullopt;
}

// Constants that the program's loops step by: where tiles end.
std::vector<int64_t> tile_sizes(const tile::Program& program) {
  std::set<int64_t> found = {8, 16, 64};
  for (const tile::Kernel& kernel : program.kernels) {
    std::vector<const tile::Block*> blocks = {&kernel.body};
    while (!blocks.empty()) {
      const tile::Block& block = *blocks.back();
      blocks.pop_back();
      for (const tile::Stmt& statement : block) {
        if (const auto* loop = std::get_if<tile::For>(&statement)) {
          if (loop->step > 1) found.insert(loop->step);
          blocks.push_back(&loop->body);
        } else if (const auto* branch = std::get_if<tile::If>(&statement)) {
          blocks.push_back(&branch->then);
          blocks.push_back(&branch->otherwise);
        }
      }
    }
  }
  return {found.begin(), found.end()};
}

// What the outputs must be, asked before any kernel runs: a read that leaves its buffer is found here and named.
Result<std::vector<Expected>> ask(const Context& context, const Options& options, const Source& source,
                                  const driver::Arguments& arguments, const tile::Program& program) {
  Progress progress(context, source.tiles ? "interpreting the blocks" : "asking the oracle");
  SampleOptions sample;
  sample.most_operations = options.most_operations;
  sample.points = options.points;
  sample.tiles = tile_sizes(program);
  sample.seed = *options.data.seed;
  return expect(context, source, options.program, arguments, sample);
}

std::vector<Verdict> compare_all(const Options& options, const Source& source, const tile::Program& program,
                                 const std::vector<Expected>& expected, const std::vector<runtime::Named>& outputs) {
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Verdict verdict;
    verdict.output = outputs[i].name;
    verdict.array = outputs[i].array;
    verdict.tolerance = driver::tolerance_of(outputs[i].array.type, options.tolerance);
    if (source.tiles) {  // both sides have rounded, also what they keep between statements
      verdict.tolerance.relative *= 2;
      verdict.tolerance.least *= 2;
    }
    // Roundings on the way: those of many terms even out, those that the program states fall on either side of a tie.
    if (scalar::is_float(outputs[i].array.type) && !options.tolerance) {
      const double kept = driver::kept_rounding(program) / 2, stated = source.tiles ? 0 : driver::stated_step(source.graph);
      verdict.tolerance.absolute = std::max({verdict.tolerance.absolute, kept, stated});
    }
    verdict.comparison = driver::compare(outputs[i].array, expected[i].references, verdict.tolerance);
    verdict.whole = expected[i].whole;
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::vector<driver::Reference> references_of(const Array& array) {
  std::vector<driver::Reference> out(size_t(array.count()));
  for (int64_t i = 0; i < array.count(); ++i) {
    driver::Reference& r = out[size_t(i)];
    r.flat = i;
    if (scalar::is_float(array.type)) r.real = runtime::float_at(array, i);
    else r.integer = runtime::int_at(array, i);
  }
  return out;
}

// Every element against an independent kernel: the program as it is written, node by node, in plain scalar loops. Both
// sides round, so twice the tolerance is allowed.
Result<void> compare_with_simple_kernels(const Context& context, const Options& options, const tensor::Graph& graph,
                                         const driver::Arguments& arguments, const std::vector<tensor::Binding>& sizes,
                                         std::vector<Verdict>& verdicts) {
  if (std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.whole; })) return {};
  if (const double work = driver::count_work(graph, sizes).operations; work > kMostSimpleOperations) {
    notice(context, "the other elements are not compared: plain loops would take long over " + number(work, 2) + " operations");
    return {};
  }
  driver::CompileOptions how;
  how.derive = false;
  how.simple = true;
  LEMMA_TRY(how.target, runtime::named_target("generic"));
  LEMMA_TRY(const driver::Compiled compiled, driver::compile(graph, how));
  LEMMA_TRY(const Kernels kernels, load_kernels(context, compiled, options.program));
  LEMMA_TRY(driver::Call call, driver::prepare(compiled, arguments));
  runtime::Workspace workspace;
  {
    Progress progress(context, "comparing with plain loops");
    LEMMA_TRY_VOID(driver::launch(kernels.module, call, workspace, thread_count(options.data)));
  }
  for (size_t i = 0; i < verdicts.size(); ++i) {
    driver::Tolerance allowed = verdicts[i].tolerance;
    allowed.absolute *= 2;
    allowed.relative *= 2;
    verdicts[i].simple = driver::compare(verdicts[i].array, references_of(call.outputs[i].array), allowed);
  }
  return {};
}

// The same on a device (`seeded`: inputs were made, so what failed may depend on the seed): run from poisoned outputs, twice.
Result<std::vector<Verdict>> run_on_device(const Context& context, const Options& options, const Source& source, bool& seeded) {
  const tensor::Graph& graph = source.graph;
  LEMMA_TRY(const runtime::DeviceInfo info, find_device(context, options.device));
  LEMMA_TRY(const driver::Arguments given, gather_arguments(graph, options.data));
  seeded = true;
  LEMMA_TRY(const driver::Arguments arguments, driver::contiguous_inputs(given));
  LEMMA_TRY(DeviceKernels kernels, load_on_device(context, source, options.program, info));
  auto& [program, device, module] = kernels;
  LEMMA_TRY(driver::Call call, driver::prepare(program.compiled, arguments));
  LEMMA_TRY(driver::Call second, driver::prepare(program.compiled, arguments));
  driver::poison(second, 0x5a);
  LEMMA_TRY(const std::vector<Expected> expected, ask(context, options, source, arguments, program.compiled.program));
  {
    Progress progress(context, "running on " + info.name);
    LEMMA_TRY_VOID(driver::launch(device, module, program, call));
    LEMMA_TRY_VOID(driver::launch(device, module, program, second));
  }
  std::vector<Verdict> verdicts = compare_all(options, source, program.compiled.program, expected, call.outputs);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (!scalar::is_float(verdicts[i].array.type)) verdicts[i].unwritten = first_difference(call.outputs[i].array, second.outputs[i].array);
  }
  return verdicts;
}

// The text of CUDA or Metal run on the processor, thread by thread, where races, deadlocks and reads of what nobody wrote
// are found.
Result<std::vector<Verdict>> run_emulated(const Context& context, const Options& options, const Source& source, bool& seeded) {
  LEMMA_TRY(const driver::Arguments given, gather_arguments(source.graph, options.data));
  seeded = true;
  LEMMA_TRY(const driver::Arguments arguments, driver::contiguous_inputs(given));
  const emit::device::Dialect* dialect = emit::device::find_dialect(options.emulate);
  if (!dialect || (dialect->id != emit::device::DialectId::Cuda && dialect->id != emit::device::DialectId::Metal)) {
    return base::invalid("the text of '" + options.emulate + "' cannot be emulated", {}, "cuda or metal");
  }
  LEMMA_TRY(driver::OnDevice text, program_for_device(context, source, options.program, driver::text_options(dialect->id)));
  for (const std::string& note : text.text.notes) notice(context, note);
  runtime::Cache cache(cache_options(context, options.program.no_cache));
  LEMMA_TRY(const emulator::Program program, emulator::Program::load(std::move(text), dialect->id, cache));
  const tile::Program& tiles = program.program().compiled.program;
  LEMMA_TRY(driver::Call call, driver::prepare(program.program().compiled, arguments));
  LEMMA_TRY(const std::vector<Expected> expected, ask(context, options, source, arguments, tiles));
  {
    Progress progress(context, "emulating threads");
    emulator::RunOptions run;
    run.order = emulator::Order::Random;
    run.seed = *options.data.seed;
    LEMMA_TRY_VOID(program.run(call, run));
  }
  return compare_all(options, source, tiles, expected, call.outputs);
}

Result<std::vector<Verdict>> run_and_compare(const Context& context, const Options& options, const Source& source, bool& seeded) {
  const tensor::Graph& graph = source.graph;
  if (!options.emulate.empty()) return run_emulated(context, options, source, seeded);
  if (!options.device.empty()) return run_on_device(context, options, source, seeded);
  LEMMA_TRY(const driver::Arguments arguments, gather_arguments(graph, options.data));
  seeded = true;
  LEMMA_TRY(const driver::Compiled compiled, compile_program(context, source, options.program));
  LEMMA_TRY(const Kernels kernels, load_kernels(context, compiled, options.program));
  LEMMA_TRY(driver::Call call, driver::prepare(compiled, arguments));
  LEMMA_TRY(const std::vector<Expected> expected, ask(context, options, source, arguments, compiled.program));
  runtime::Workspace workspace;
  const int threads = thread_count(options.data);
  {
    Progress progress(context, "running");
    LEMMA_TRY_VOID(driver::launch(kernels.module, call, workspace, threads));
  }
  // A second call over other bytes and the workspace the first one left: what is not written by the program, or
  // depends on what was there before, differs.
  LEMMA_TRY(driver::Call second, driver::prepare(compiled, arguments));
  driver::poison(second, 0x5a);
  LEMMA_TRY_VOID(driver::launch(kernels.module, second, workspace, threads));
  std::vector<Verdict> verdicts = compare_all(options, source, compiled.program, expected, call.outputs);
  // A tile program has no maths to carry out in another way.
  if (!source.tiles) LEMMA_TRY_VOID(compare_with_simple_kernels(context, options, graph, arguments, call.sizes, verdicts));
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (!scalar::is_float(verdicts[i].array.type)) {
      verdicts[i].unwritten = first_difference(call.outputs[i].array, second.outputs[i].array);
    }
  }
  return verdicts;
}

// What the program's own monoids were tested on: the user is told that it was a test.
struct LawTest {
  std::string monoid;
  monoid::Report report;
};

std::vector<LawTest> test_laws(const tensor::Graph& graph) {
  std::vector<LawTest> out;
  for (const tensor::Node& n : graph.nodes) {
    const auto* node = std::get_if<tensor::Comprehension>(&n);
    if (!node || !node->monoid || !tensor::library_name(*node->monoid).empty()) continue;
    const std::string& name = node->monoid->name;
    if (std::any_of(out.begin(), out.end(), [&](const LawTest& t) { return t.monoid == name; })) continue;
    monoid::LawOptions options;
    options.random_triples = 2000;
    options.sizes = [](int) { return int64_t(3); };
    out.push_back({name, monoid::check_laws(node->monoid, options)});
  }
  return out;
}

void print(const LawTest& t) {
  std::printf("laws  %s: held on %d triples of random and special values; a test, no proof\n", t.monoid.c_str(), t.report.cases);
  for (const monoid::Violation& v : t.report.at_special) {
    std::printf("      with inf or nan it breaks %s: %s\n", v.law.c_str(), v.counterexample.c_str());
  }
}

// What the worst element may differ by; the rule behind it is in driver/compare.h.
double allowed(const Verdict& v) {
  const driver::Tolerance& t = v.tolerance;
  const driver::Comparison& c = v.comparison;
  return t.absolute * std::max(1.0, c.largest) + t.relative * (c.where ? std::fabs(c.expected) : 0) + t.least;
}

std::string describe_allowed(const Verdict& v) {
  const std::string rule = driver::describe(v.tolerance);
  return v.tolerance.absolute > 0 ? number(allowed(v), 2) + " (" + rule + ")" : rule;
}

void print(const Verdict& v) {
  const driver::Comparison& c = v.comparison;
  const std::string what = v.output + " " + runtime::describe(v.array);
  const std::string how = v.whole ? "every element" : std::to_string(c.compared) + " sampled elements";
  if (v.ok()) {
    std::printf("ok    %s: %s, worst error %s", what.c_str(), how.c_str(), number(c.worst, 3).c_str());
    if (c.where && c.worst > 0) std::printf(" at %s", driver::print_index(v.array.extents, *c.where).c_str());
    std::printf(", allowed %s\n", describe_allowed(v).c_str());
    if (v.simple) std::printf("      every element against plain loops: worst difference %s\n", number(v.simple->worst, 3).c_str());
    return;
  }
  if (v.simple && !v.simple->ok()) {
    std::printf("WRONG %s: %lld elements differ from plain loops", what.c_str(), static_cast<long long>(v.simple->different));
    if (v.simple->where) {
      std::printf("; worst at %s: found %s, plain loops give %s", driver::print_index(v.array.extents, *v.simple->where).c_str(),
                  number(v.simple->found, 9).c_str(), number(v.simple->expected, 9).c_str());
    }
    std::printf("\n");
    if (v.comparison.ok() && !v.unwritten) return;
  }
  std::printf("WRONG %s: %lld of %lld compared elements differ", what.c_str(), static_cast<long long>(c.different),
              static_cast<long long>(c.compared));
  if (c.where && c.different > 0) {
    std::printf("; worst at %s: found %s, expected %s", driver::print_index(v.array.extents, *c.where).c_str(),
                number(c.found, 9).c_str(), number(c.expected, 9).c_str());
  }
  if (v.unwritten) {
    std::printf("; %s depends on what the memory held before", driver::print_index(v.array.extents, *v.unwritten).c_str());
  }
  std::printf("; allowed %s\n", describe_allowed(v).c_str());
}

json to_json(const Verdict& v) {
  const driver::Comparison& c = v.comparison;
  json out = {{"output", v.output},   {"ok", v.ok()},           {"whole", v.whole},
              {"compared", c.compared}, {"different", c.different}, {"worst_error", c.worst},
              {"allowed", allowed(v)},  {"tolerance", driver::describe(v.tolerance)}};
  out["extents"] = v.array.extents;
  out["type"] = std::string(scalar::name(v.array.type));
  if (c.where) {
    out["where"] = driver::print_index(v.array.extents, *c.where);
    out["found"] = number(c.found, 17);
    out["expected"] = number(c.expected, 17);
  }
  if (v.simple) out["plain_loops"] = {{"different", v.simple->different}, {"worst_difference", v.simple->worst}};
  if (v.unwritten) out["unwritten"] = driver::print_index(v.array.extents, *v.unwritten);
  return out;
}

int check(const Context& context, const Options& given) {
  Options options = given;
  if (!options.data.seed) options.data.seed = std::random_device{}();
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  if (source->graph.outputs.empty()) {
    return fail(context, base::invalid("the program has no output, so there is nothing to check", {}, "name one: output y"));
  }
  bool seeded = false;
  const auto verdicts = run_and_compare(context, options, *source, seeded);
  if (!verdicts) {
    if (seeded && !context.json) notice(context, "the seed was " + std::to_string(*options.data.seed));
    return fail(context, verdicts.error());
  }
  const bool ok = std::all_of(verdicts->begin(), verdicts->end(), [](const Verdict& v) { return v.ok(); });
  if (context.json) {
    json list = json::array();
    for (const Verdict& v : *verdicts) list.push_back(to_json(v));
    print_json({{"ok", ok}, {"seed", *options.data.seed}, {"outputs", list}});
  } else {
    std::printf("seed  %llu\n", static_cast<unsigned long long>(*options.data.seed));
    for (const LawTest& t : test_laws(source->graph)) print(t);
    for (const Verdict& v : *verdicts) print(v);
  }
  return ok ? kOk : kDifferent;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "run a program's kernels and compare them with the f64 oracle (a tile program's: with the block interpreter)");
  add_program_options(*command, options->program);
  add_data_options(*command, options->data);
  command->add_option("--on", options->device, "a device instead of the processor: cuda, opencl, vulkan or webgpu, or cuda:1");
  command->add_option("--emulate", options->emulate, "the text of cuda or metal, thread by thread on the processor: also finds races, deadlocks and unwritten reads")->excludes("--on");
  command->add_option("--tolerance", options->tolerance, "of floats, times max(1, the largest value); else by type")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--whole-below", options->most_operations,
                      "operations up to which every element is compared; else a sample");
  command->add_option("--points", options->points, "of a sample")->check(CLI::Range(int64_t(4096), int64_t(1) << 40));
  command->callback([options, &context] { context.exit = check(context, *options); });
}

}  // namespace lemma::cli
