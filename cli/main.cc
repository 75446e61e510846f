// lemma: tensor programs as mathematics in, checked kernels out.
#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/report.h"

namespace lemma::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 all is well, 1 a check found a difference, 2 invalid program or input, 3 unsupported,\n"
    "4 the system failed, 64 wrong usage, 130 interrupted.\n"
    "Kernels are kept in $XDG_CACHE_HOME/lemma (else ~/.cache/lemma).";

// What the flag parser says, in the form of our messages.
std::string house_form(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) &&
      !std::isupper(static_cast<unsigned char>(text[1]))) {
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string chosen(const CLI::App& app) {
  std::string name = "lemma";
  for (const CLI::App* command : app.get_subcommands()) name += " " + command->get_name();
  return name;
}

void add_help(CLI::App& app, Context& context) {
  auto command = std::make_shared<std::string>();
  CLI::App* help = app.add_subcommand("help", "this text, or a command's");
  help->add_option("command", *command, "whose help");
  help->callback([&app, &context, command] {
    CLI::App* target = command->empty() ? &app : nullptr;
    for (CLI::App* candidate : app.get_subcommands({})) {
      if (candidate->get_name() == *command) target = candidate;
    }
    if (!target) {
      fail(context, base::invalid("there is no command '" + *command + "'", {}, "see lemma help"));
      context.exit = kUsage;
      return;
    }
    std::fputs(target->help("lemma").c_str(), stdout);
  });
}

int run_command_line(int argc, char** argv) {
  Context context;
  context.environment = read_environment();
  CLI::App app("lemma: tensor programs as mathematics in, checked kernels out", "lemma");
  app.set_version_flag("--version", "lemma " LEMMA_VERSION);
  app.add_flag("--json", context.json, "results and errors as JSON on standard output");
  app.add_flag("--quiet", context.quiet, "no notices and no progress");
  app.fallthrough();
  app.require_subcommand(1);
  app.footer(kFooter);
  add_run(app, context);
  add_check(app, context);
  add_bench(app, context);
  add_show(app, context);
  add_emit(app, context);
  add_build(app, context);
  add_cache(app, context);
  add_devices(app, context);
  add_help(app, context);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stdout);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    // A command that does not exist is reported by the parser as one that is missing.
    const std::vector<std::string> rest = app.remaining(true);
    const bool unknown = error.get_name() == "RequiredError" && !rest.empty() &&
                         std::string_view(error.what()).find("subcommand") != std::string_view::npos;
    const std::string message =
        unknown ? "there is no command '" + rest.front() + "'" : house_form(error.what());
    fail(context, base::invalid(message, {}, "see " + chosen(app) + " --help"));
    return kUsage;
  }
  // A full disk or a closed pipe behind standard output is a failure like any other.
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fputs(base::render(base::system_failure("cannot write to standard output")).c_str(), stderr);
    return kSystem;
  }
  return context.exit;
}

}  // namespace
}  // namespace lemma::cli

int main(int argc, char** argv) {
  lemma::cli::install_signal_handlers();
  return lemma::cli::run_command_line(argc, argv);
}
