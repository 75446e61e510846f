#include "lemma/runtime/compiler.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "lemma/runtime/bytes.h"
#include "lemma/runtime/process.h"

namespace lemma::runtime {
namespace {

using base::Result;
using nlohmann::json;

constexpr std::array kNames = {"gcc", "cc", "clang"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::string> executable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || access(path.c_str(), X_OK) != 0) return {};
  return path;
}

std::optional<std::string> locate(const std::string& name, const std::string& search_path) {
  if (name.find('/') != std::string::npos) return executable(name);
  for (const std::string& folder : split(search_path, ':')) {
    if (auto found = executable(folder + "/" + name)) return found;
  }
  return std::nullopt;
}

ProcessOptions process_options(const CompilerOptions& options, const std::string& directory) {
  ProcessOptions out;
  out.environment = {"PATH=" + options.search_path, "LC_ALL=C", "TMPDIR=" + directory};
  out.timeout_seconds = options.timeout_seconds;
  out.cancelled = options.cancelled;
  return out;
}

// Changes whenever the file at `path` does.
std::string identity(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return path;
  return path + "|" + std::to_string(status.st_size) + "|" + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec) + "|" + std::to_string(status.st_ino);
}

// Whether a shared object with OpenMP compiles and links.
bool probe_openmp(const std::string& path, const CompilerOptions& options) {
  std::string directory = options.temporary + "/lemma-probe-XXXXXX";
  if (!mkdtemp(directory.data())) return false;
  const std::string source = directory + "/probe.c", object = directory + "/probe.so";
  const std::string text = "void probe(float* x) {\n#pragma omp parallel for\n  for (int i = 0; i < 9; ++i) x[i] = 0;\n}\n";
  bool works = false;
  if (write_atomically(source, std::as_bytes(std::span(text)))) {
    const auto result = run_process({path, "-fopenmp", "-fPIC", "-shared", source, "-o", object},
                                    process_options(options, directory));
    works = result && result->exit_code == 0;
  }
  unlink(source.c_str());
  unlink(object.c_str());
  rmdir(directory.c_str());
  return works;
}

std::optional<Compiler> remembered(const std::string& path, const std::string& text, const std::string& who) {
  const json entry = json::parse(text, nullptr, false);
  if (!entry.is_object()) return std::nullopt;
  const auto of = entry.find("identity"), version = entry.find("version"), openmp = entry.find("openmp");
  const bool whole = of != entry.end() && of->is_string() && version != entry.end() && version->is_string() &&
                     openmp != entry.end() && openmp->is_boolean();
  if (!whole || of->get<std::string>() != who) return std::nullopt;
  return Compiler{path, version->get<std::string>(), openmp->get<bool>()};
}

Result<Compiler> ask(const std::string& path, const CompilerOptions& options, const Cache& cache) {
  const std::string who = identity(path);
  const std::string name = std::to_string(XXH3_64bits(who.data(), who.size())) + ".json";
  std::optional<Compiler> known = remembered(path, cache.recall(name), who);
  if (!known) {
    LEMMA_TRY(const ProcessResult answer, run_process({path, "--version"}, process_options(options, options.temporary)));
    if (answer.exit_code != 0) {
      return base::system_failure("'" + path + " --version' ended with code " + std::to_string(answer.exit_code));
    }
    known = Compiler{path, answer.output.substr(0, answer.output.find('\n')), probe_openmp(path, options)};
    const json entry = {{"identity", who}, {"version", known->version}, {"openmp", known->openmp}};
    // A replacement character for bytes that are not UTF-8: a version is only shown and compared.
    cache.remember(name, entry.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  known->openmp = known->openmp && options.openmp;
  return *known;
}

// Leaves the source where the user can look at it.
std::string keep_source(const std::string& source, const CompilerOptions& options) {
  const std::string path = options.temporary + "/lemma-failed-" +
                           std::to_string(XXH3_64bits(source.data(), source.size())) + ".c";
  const auto written = write_atomically(path, std::as_bytes(std::span(source)));
  return written ? path : std::string();
}

}  // namespace

Result<Compiler> find_compiler(const CompilerOptions& options, const Cache& cache) {
  if (!options.compiler.empty()) {
    const auto path = locate(options.compiler, options.search_path);
    if (!path) return base::system_failure("there is no compiler '" + options.compiler + "'");
    return ask(*path, options, cache);
  }
  for (const char* name : kNames) {
    if (const auto path = locate(name, options.search_path)) return ask(*path, options, cache);
  }
  return base::system_failure("there is no C compiler: none of gcc, cc, clang is on the search path",
                              "install one, or name one with --cc");
}

std::vector<Compiler> list_compilers(const CompilerOptions& options, const Cache& cache) {
  std::vector<Compiler> out;
  for (const char* name : kNames) {
    const auto path = locate(name, options.search_path);
    if (!path) continue;
    if (auto compiler = ask(*path, options, cache)) out.push_back(*std::move(compiler));
  }
  return out;
}

std::string kernel_flags(const Compiler& compiler, const tile::Target& target) {
  std::string flags = "-std=gnu11 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -fPIC -shared -w";
  if (!target.compiler_flags.empty()) flags += " " + target.compiler_flags;
  if (compiler.openmp) flags += " -fopenmp";
  return flags;
}

Result<void> compile_kernel(const Compiler& compiler, const std::string& flags, const std::string& source,
                            const std::string& directory, const CompilerOptions& options) {
  const std::string path = directory + "/kernel.c";
  LEMMA_TRY_VOID(write_atomically(path, std::as_bytes(std::span(source))));
  std::vector<std::string> arguments = {compiler.path};
  for (std::string& flag : split(flags, ' ')) arguments.push_back(std::move(flag));
  for (const char* last : {"-o", "kernel.so", "kernel.c", "-lm"}) {
    const bool is_file = std::string_view(last).starts_with("kernel.");
    arguments.push_back(is_file ? directory + "/" + last : std::string(last));
  }
  LEMMA_TRY(const ProcessResult result, run_process(arguments, process_options(options, directory)));
  if (result.exit_code == 0) return {};
  const std::string kept = keep_source(source, options);
  base::Diagnostic diagnostic = base::system_failure("'" + compiler.path + "' ended with code " +
                                                     std::to_string(result.exit_code));
  if (!kept.empty()) diagnostic.suggestion = "the source is kept in " + kept;
  std::string said = result.output.substr(0, 4000);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (!said.empty()) diagnostic.notes.push_back(base::Note{base::Span{}, said});
  return diagnostic;
}

}  // namespace lemma::runtime
