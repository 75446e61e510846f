// The process's surroundings: environment variables and signals.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

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
  out.terminal = isatty(2) == 1;
  return out;
}

}  // namespace lemma::cli
