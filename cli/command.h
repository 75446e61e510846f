// What the commands of `lemma` share. One command a file: each adds itself to the application, and its callback leaves
// an exit code in the context.
//
// Exit codes: 0 all is well, 1 a check found a difference, 2 the program or an input is invalid, 3 unsupported,
// 4 the system failed (a file, the compiler, memory), 64 wrong usage, 130 interrupted.
#pragma once

#include <atomic>
#include <string>

#include "lemma/base/diagnostic.h"

namespace CLI {
class App;
}

namespace lemma::cli {

enum Exit : int {
  kOk = 0,
  kDifferent = 1,
  kInvalid = 2,
  kUnsupported = 3,
  kSystem = 4,
  kUsage = 64,
  kInterrupted = 130,
};

// What is read of the process's environment, here and nowhere else.
struct Environment {
  std::string cache_directory;  // $XDG_CACHE_HOME/lemma, else $HOME/.cache/lemma; empty if neither is set
  std::string search_path;      // $PATH
  std::string temporary;        // $TMPDIR, else /tmp
  std::string nvrtc;            // $LEMMA_NVRTC: libnvrtc or its folder; else out/tools/nvrtc of the build's tree, if there
  std::string webgpu;           // $LEMMA_WEBGPU: libwebgpu_wrapper.so or its folder; else out/tools/webgpu of it
  bool terminal = false;        // standard error is one
};
Environment read_environment();

struct Context {
  Environment environment;
  bool json = false;
  bool quiet = false;
  int exit = kOk;
};

// Ctrl-C ends the process at once, except while something would be left behind (a compilation, a file half written):
// then the first one is remembered, the work is given up cleanly, and a second one ends the process.
class CleanSection {
 public:
  CleanSection();
  ~CleanSection();
  CleanSection(const CleanSection&) = delete;
  CleanSection& operator=(const CleanSection&) = delete;
};
const std::atomic<bool>& interrupted();
void install_signal_handlers();

// Prints the diagnostic (as JSON to standard output with --json, else to standard error); its exit code.
int fail(const Context& context, const base::Diagnostic& diagnostic);
// A sentence on standard error, unless quiet.
void notice(const Context& context, const std::string& sentence);

void add_bench(CLI::App& app, Context& context);
void add_build(CLI::App& app, Context& context);
void add_cache(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_devices(CLI::App& app, Context& context);
void add_emit(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);

}  // namespace lemma::cli
