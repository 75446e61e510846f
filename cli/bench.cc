// lemma bench: medians of interleaved, warm repetitions, for one or more thread counts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/progress.h"
#include "cli/report.h"
#include "cli/session.h"
#include "lemma/driver/on_device.h"
#include "lemma/driver/work.h"

namespace lemma::cli {
namespace {

using base::Result;
using nlohmann::json;

struct Options {
  ProgramOptions program;
  DataOptions data;
  std::vector<int> threads;
  int repetitions = 20;
  std::string device;            // else the processor
};

struct Row {
  int threads = 1;
  int inner = 1;                 // calls per measurement, so that one takes at least two milliseconds
  std::vector<double> seconds;   // of one call
  double at(double quantile) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1, size_t(quantile * double(sorted.size())))];
  }
};

Result<std::vector<Row>> measure(const Context& context, const Options& options, const Kernels& kernels,
                                 driver::Call& call) {
  std::vector<Row> rows;
  for (const int threads : options.threads) {
    Row row;
    row.threads = threads;
    rows.push_back(row);
  }
  runtime::Workspace workspace;
  const auto once = [&](const Row& row) -> Result<double> {
    const double start = now();
    for (int i = 0; i < row.inner; ++i) LEMMA_TRY_VOID(driver::launch(kernels.module, call, workspace, row.threads));
    return (now() - start) / row.inner;
  };
  for (Row& row : rows) {
    for (int warm = 0; warm < 2; ++warm) {
      LEMMA_TRY(const double seconds, once(row));
      row.inner = std::clamp(int(2e-3 / std::max(seconds, 1e-9)), 1, 100000);
    }
  }
  Progress progress(context, "measuring");
  for (int r = 0; r < options.repetitions; ++r) {
    for (Row& row : rows) {
      LEMMA_TRY(const double seconds, once(row));
      row.seconds.push_back(seconds);
    }
    progress.step(r + 1, options.repetitions);
  }
  return rows;
}

// On a device, by its own clock; a repetition is one run of all kernels after another until it takes a millisecond.
Result<std::vector<Row>> measure_on_device(const Context& context, const Options& options, const Source& source,
                                           const driver::Arguments& given, std::vector<tensor::Binding>& sizes) {
  LEMMA_TRY(const runtime::DeviceInfo info, find_device(context, options.device));
  LEMMA_TRY(const driver::Arguments arguments, driver::contiguous_inputs(given));
  LEMMA_TRY(DeviceKernels kernels, load_on_device(context, source, options.program, info));
  auto& [program, device, module] = kernels;
  LEMMA_TRY(const driver::Call call, driver::prepare(program.compiled, arguments));
  sizes = call.sizes;
  LEMMA_TRY(const driver::OnBuffers placed, driver::place(device, module, program, call));
  Row row;
  row.threads = 0;
  std::vector<runtime::Step> steps = placed.steps;
  LEMMA_TRY(double once, device.time(steps));
  LEMMA_TRY(once, device.time(steps));
  row.inner = std::clamp(int(1e-3 / std::max(once, 1e-9)), 1, 200);
  for (int i = 1; i < row.inner; ++i) steps.insert(steps.end(), placed.steps.begin(), placed.steps.end());
  Progress progress(context, "measuring on " + info.name);
  for (int r = 0; r < options.repetitions; ++r) {
    LEMMA_TRY(const double seconds, device.time(steps));
    row.seconds.push_back(seconds / row.inner);
    progress.step(r + 1, options.repetitions);
  }
  return std::vector<Row>{row};
}

void report(const Context& context, const std::vector<Row>& rows, const driver::Work& work) {
  json list = json::array();
  if (!context.json) {
    std::printf("%8s %12s %12s %12s %10s %8s\n", "threads", "median", "low", "high", "GFLOP/s", "GB/s");
  }
  for (const Row& row : rows) {
    const double median = row.at(0.5), low = row.at(0.05), high = row.at(0.95);
    if (context.json) {
      list.push_back({{"threads", row.threads},
                      {"median_seconds", median},
                      {"low_seconds", low},
                      {"high_seconds", high},
                      {"repetitions", row.seconds.size()},
                      {"calls_per_repetition", row.inner},
                      {"gflops", work.operations / median * 1e-9},
                      {"gbytes_per_second", work.bytes / median * 1e-9}});
    } else {
      std::printf("%8d %12s %12s %12s %10.1f %8.1f\n", row.threads, seconds(median).c_str(), seconds(low).c_str(),
                  seconds(high).c_str(), work.operations / median * 1e-9, work.bytes / median * 1e-9);
    }
  }
  if (context.json) print_json({{"operations", work.operations}, {"bytes", work.bytes}, {"rows", list}});
  else std::printf("counted: %s operations, %s\n", number(work.operations).c_str(), bytes(work.bytes).c_str());
}

int bench(const Context& context, const Options& given) {
  Options options = given;
  if (!options.data.seed) options.data.seed = 1;
  if (options.threads.empty()) options.threads = {thread_count(options.data)};
  const auto source = load_program(context, options.program);
  if (!source) return fail(context, source.error());
  const auto arguments = gather_arguments(source->graph, options.data);
  if (!arguments) return fail(context, arguments.error());
  if (!options.device.empty()) {
    std::vector<tensor::Binding> sizes;
    const auto rows = measure_on_device(context, options, *source, *arguments, sizes);
    if (!rows) return fail(context, rows.error());
    report(context, *rows, driver::count_work(source->graph, sizes));
    return kOk;
  }
  const auto compiled = compile_program(context, *source, options.program);
  if (!compiled) return fail(context, compiled.error());
  const auto kernels = load_kernels(context, *compiled, options.program);
  if (!kernels) return fail(context, kernels.error());
  auto call = driver::prepare(*compiled, *arguments);
  if (!call) return fail(context, call.error());
  const auto rows = measure(context, options, *kernels, *call);
  if (!rows) return fail(context, rows.error());
  report(context, *rows, driver::count_work(source->graph, call->sizes));
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "measure a program (random inputs unless given; --random 1)");
  add_program_options(*command, options->program);
  add_data_options(*command, options->data);
  command->remove_option(command->get_option("--threads"));
  command->add_option("--threads", options->threads, "one or more thread counts: --threads 1,2")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command->add_option("--on", options->device, "a device instead of the processor: cuda, opencl, vulkan or webgpu, or cuda:1");
  command->add_option("--repetitions", options->repetitions, "of each row")->check(CLI::Range(1, 1000000));
  command->callback([options, &context] { context.exit = bench(context, *options); });
}

}  // namespace lemma::cli
