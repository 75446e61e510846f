#include "cli/session.h"

#include <chrono>

#include "cli/progress.h"
#include "lemma/driver/tile_program.h"
#include "lemma/language/language.h"
#include "lemma/runtime/host.h"
#include "lemma/tile/parse.h"

namespace lemma::cli {

using base::Result;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Source> load_program(const Context& context, const ProgramOptions& options) {
  Progress progress(context, "reading " + options.program);
  Source source;
  LEMMA_TRY(source.text, read_text(options.program));
  if (driver::is_tile_text(source.text)) {
    LEMMA_TRY(source.tiles, tile::parse(source.text, options.program == "-" ? "<stdin>" : options.program));
    LEMMA_TRY(source.graph, driver::interface_of(*source.tiles));
    return source;
  }
  LEMMA_TRY(source.graph, language::parse(source.text, options.program == "-" ? "<stdin>" : options.program));
  return source;
}

Result<driver::Compiled> compile_program(const Context& context, const Source& source,
                                         const ProgramOptions& options, const driver::Trace& trace) {
  Progress progress(context, "deriving kernels");
  LEMMA_TRY(const driver::CompileOptions compile, compile_options(options));
  if (source.tiles) return driver::compile_tiles(*source.tiles, compile, trace);
  return driver::compile(source.graph, compile, trace);
}

Result<driver::OnDevice> program_for_device(const Context& context, const Source& source, const ProgramOptions& options,
                                            const emit::device::DeviceOptions& device) {
  if (source.tiles) {
    LEMMA_TRY(driver::Compiled compiled, compile_program(context, source, options));
    return driver::for_device(std::move(compiled), device);
  }
  LEMMA_TRY(const driver::CompileOptions how, compile_options(options));
  return driver::compile_for_device(source.graph, how, device);
}

runtime::CacheOptions cache_options(const Context& context, bool no_cache) {
  runtime::CacheOptions out;
  if (!no_cache) out.directory = context.environment.cache_directory;
  out.temporary = context.environment.temporary;
  return out;
}

runtime::DeviceOptions device_options(const Context& context) {
  runtime::DeviceOptions out;
  out.nvrtc = context.environment.nvrtc;
  out.webgpu = context.environment.webgpu;
  return out;
}

runtime::CompilerOptions compiler_options(const Context& context, const ProgramOptions& options) {
  runtime::CompilerOptions out;
  out.compiler = options.compiler;
  out.search_path = context.environment.search_path;
  out.temporary = context.environment.temporary;
  out.openmp = !options.no_openmp;
  out.cancelled = &interrupted();
  return out;
}

bool has_compiler(const Context& context, const ProgramOptions& options) {
  const runtime::Cache cache(cache_options(context, options.no_cache));
  return runtime::find_compiler(compiler_options(context, options), cache).ok();
}

Result<Kernels> load_kernels(const Context& context, const driver::Compiled& compiled, const ProgramOptions& options) {
  const CleanSection section;
  Progress progress(context, "compiling C");
  const double start = now();
  LEMMA_TRY(const tile::Target target, runtime::named_target(options.target));
  LEMMA_TRY_VOID(runtime::runs_here(target));
  runtime::Cache cache(cache_options(context, options.no_cache));
  const runtime::CompilerOptions settings = compiler_options(context, options);
  LEMMA_TRY(const runtime::Compiler compiler, runtime::find_compiler(settings, cache));
  const auto tell = [&](const std::string& sentence) { notice(context, sentence); };
  LEMMA_TRY(runtime::Module module,
            runtime::build_module(compiled.c_source, compiler, target, settings, cache, tell));
  return Kernels{std::move(module), compiler, cache.counters(), now() - start};
}

Result<runtime::DeviceInfo> find_device(const Context& context, const std::string& name) {
  const size_t colon = name.find(':');
  const std::string interface = name.substr(0, colon);
  const int index = colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
  const runtime::DeviceList list = runtime::list_devices(device_options(context));
  std::string there;
  for (const runtime::DeviceInfo& d : list.devices) {
    std::string own = runtime::api_name(d.api);
    std::transform(own.begin(), own.end(), own.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    if (own == interface && d.index == index) return d;
    there += (there.empty() ? "" : ", ") + own + ":" + std::to_string(d.index);
  }
  return base::invalid("there is no device '" + name + "'", {}, there.empty() ? "see lemma devices" : "there are " + there);
}

Result<DeviceKernels> load_on_device(const Context& context, const Source& source, const ProgramOptions& options,
                                     const runtime::DeviceInfo& info) {
  LEMMA_TRY(driver::OnDevice program, program_for_device(context, source, options, driver::device_options(info)));
  for (const std::string& note : program.text.notes) notice(context, note);
  LEMMA_TRY(runtime::Device device, runtime::Device::open(info, device_options(context)));
  runtime::Cache cache(cache_options(context, options.no_cache));
  LEMMA_TRY(runtime::DeviceModule module, driver::load(device, program, cache));
  return DeviceKernels{std::move(program), std::move(device), std::move(module)};
}

}  // namespace lemma::cli
