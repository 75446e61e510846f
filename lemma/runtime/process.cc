#include "lemma/runtime/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

namespace lemma::runtime {
namespace {

using base::Result;
using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& string : strings) out.push_back(const_cast<char*>(string.c_str()));
  out.push_back(nullptr);
  return out;
}

// Starts the child in a process group of its own, so that all of it can be killed; its output goes to `output`.
Result<pid_t> spawn(const std::vector<std::string>& arguments, const ProcessOptions& options, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const std::vector<char*> argv = pointers(arguments), environment = pointers(options.environment);
  pid_t child = -1;
  const int code = posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) return base::system_failure("cannot start '" + arguments[0] + "': " + std::strerror(code));
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Collects output until the child closes it; a reason to kill the child, if one arises.
std::optional<std::string> collect(int fd, const ProcessOptions& options, std::string& output) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.timeout_seconds);
  for (;;) {
    if (options.cancelled && options.cancelled->load()) return "was stopped";
    if (Clock::now() >= deadline) return "took longer than " + std::to_string(int(options.timeout_seconds)) + " seconds";
    pollfd waiting{fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, 50);
    if (ready <= 0) continue;
    std::array<char, 4096> piece;
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    output.append(piece.data(), std::min(size_t(n), options.most_output - std::min(options.most_output, output.size())));
  }
}

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_failure(std::string("no pipe: ") + std::strerror(errno));
  auto child = spawn(arguments, options, ends[1]);
  close(ends[1]);
  if (!child) {
    close(ends[0]);
    return child.error();
  }
  ProcessResult result;
  const std::optional<std::string> trouble = collect(ends[0], options, result.output);
  close(ends[0]);
  if (trouble) kill(-*child, SIGKILL);
  result.exit_code = wait_for(*child);
  if (trouble) return base::system_failure("'" + arguments[0] + "' " + *trouble);
  return result;
}

}  // namespace lemma::runtime
