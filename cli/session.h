// A program on its way to running: its text, its graph, what the pipeline made of it, the loaded kernels. A text that
// begins with `program` is a tile program; its graph says what it takes and gives (see driver/tile_program.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "lemma/driver/compile.h"
#include "lemma/driver/on_device.h"
#include "lemma/runtime/cache.h"
#include "lemma/runtime/device.h"
#include "lemma/runtime/module.h"

namespace lemma::cli {

struct Source {
  std::string text;
  tensor::Graph graph;
  std::optional<tile::Program> tiles;
};

base::Result<Source> load_program(const Context& context, const ProgramOptions& options);

base::Result<driver::Compiled> compile_program(const Context& context, const Source& source,
                                               const ProgramOptions& options, const driver::Trace& trace = {});

// The program's text for a device, its tiles derived or written by hand.
base::Result<driver::OnDevice> program_for_device(const Context& context, const Source& source, const ProgramOptions& options,
                                                  const emit::device::DeviceOptions& device);

runtime::CacheOptions cache_options(const Context& context, bool no_cache = false);
runtime::CompilerOptions compiler_options(const Context& context, const ProgramOptions& options);
runtime::DeviceOptions device_options(const Context& context);

// The device whose interface is named "cuda", "opencl", "vulkan" or "webgpu", optionally with ":index".
base::Result<runtime::DeviceInfo> find_device(const Context& context, const std::string& name);

// The program's kernels, ready on the device; tells what the making of its text had to note.
struct DeviceKernels {
  driver::OnDevice program;
  runtime::Device device;
  runtime::DeviceModule module;
};
base::Result<DeviceKernels> load_on_device(const Context& context, const Source& source, const ProgramOptions& options,
                                           const runtime::DeviceInfo& info);

// Compiles the C text for this machine. A System failure without a compiler is the caller's cue to interpret.
struct Kernels {
  runtime::Module module;
  runtime::Compiler compiler;
  runtime::CacheCounters counters;
  double seconds = 0;
};
base::Result<Kernels> load_kernels(const Context& context, const driver::Compiled& compiled,
                                   const ProgramOptions& options);
bool has_compiler(const Context& context, const ProgramOptions& options);

double now();  // seconds, monotonic

}  // namespace lemma::cli
