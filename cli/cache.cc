// lemma cache: what compiled kernels are kept, whether they are whole, and getting rid of them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/session.h"

namespace lemma::cli {
namespace {

int statistics(const Context& context, bool verify) {
  const runtime::Cache cache(cache_options(context));
  const runtime::CacheStatistics found = cache.statistics(verify);
  const std::string& directory = context.environment.cache_directory;
  if (context.json) {
    nlohmann::json document = {{"directory", directory}, {"entries", found.entries}, {"bytes", found.bytes},
                               {"limit_bytes", cache.options().limit_bytes}};
    if (verify) document["damaged"] = found.damaged;
    print_json(document);
  } else {
    std::printf("%s: %lld kernels, %s of %s\n", directory.empty() ? "(no directory)" : directory.c_str(),
                static_cast<long long>(found.entries), bytes(double(found.bytes)).c_str(),
                bytes(double(cache.options().limit_bytes)).c_str());
    if (verify) std::printf("%lld damaged\n", static_cast<long long>(found.damaged));
  }
  return verify && found.damaged > 0 ? kDifferent : kOk;
}

int clear(const Context& context) {
  runtime::Cache cache(cache_options(context));
  const auto removed = cache.clear();
  if (!removed) return fail(context, removed.error());
  if (context.json) {
    print_json({{"removed", *removed}});
  } else {
    std::printf("%lld kernels removed\n", static_cast<long long>(*removed));
  }
  return kOk;
}

}  // namespace

void add_cache(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("cache", "the cache of compiled kernels: stats, verify, clear");
  command->require_subcommand(1);
  command->add_subcommand("stats", "where it is and how much it holds")->callback([&context] {
    context.exit = statistics(context, false);
  });
  command->add_subcommand("verify", "check every entry's checksums; 1 if any is damaged")->callback([&context] {
    context.exit = statistics(context, true);
  });
  command->add_subcommand("clear", "remove every entry")->callback([&context] { context.exit = clear(context); });
}

}  // namespace lemma::cli
