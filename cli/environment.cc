// The process's surroundings: environment variables and signals.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/command.h"

namespace lemma::cli {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> sections{0};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int) {
  if (stop.exchange(true) || sections.load() == 0) _exit(kInterrupted);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// What $`name` says, else the folder that ./run test fills, if this program stands in the tree where it was built.
std::string tool(const char* name, const char* folder) {
  const std::string given = variable(name);
  if (!given.empty()) return given;
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const fs::path made = program.parent_path().parent_path().parent_path() / "out" / "tools" / folder;
  return fs::is_directory(made, error) ? made.string() : "";
}

}  // namespace

const std::atomic<bool>& interrupted() { return stop; }

CleanSection::CleanSection() { ++sections; }
CleanSection::~CleanSection() {
  if (--sections == 0 && stop.load()) _exit(kInterrupted);
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Writes that cannot be made are errors to report, not reasons to die.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

Environment read_environment() {
  Environment out;
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (cache.starts_with('/')) {
    out.cache_directory = cache + "/lemma";
  } else if (!home.empty()) {
    out.cache_directory = home + "/.cache/lemma";
  }
  out.search_path = variable("PATH");
  out.temporary = variable("TMPDIR");
  if (out.temporary.empty()) out.temporary = "/tmp";
  out.nvrtc = tool("LEMMA_NVRTC", "nvrtc");
  out.webgpu = tool("LEMMA_WEBGPU", "webgpu");
  out.terminal = isatty(2) == 1;
  return out;
}

}  // namespace lemma::cli
