// lemma devices: the machine at hand and the compilers found on it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "cli/session.h"
#include "lemma/runtime/host.h"

namespace lemma::cli {
namespace {

using nlohmann::json;

int devices(const Context& context) {
  const tile::Target host = runtime::host_target();
  const runtime::Cache cache(cache_options(context));
  const std::vector<runtime::Compiler> compilers = runtime::list_compilers(compiler_options(context, {}), cache);
  if (context.json) {
    json list = json::array();
    for (const runtime::Compiler& c : compilers) {
      list.push_back({{"path", c.path}, {"version", c.version}, {"openmp", c.openmp}});
    }
    print_json({{"host",
                 {{"target", host.name},
                  {"cores", runtime::core_count()},
                  {"vector_bytes", host.vector_bytes},
                  {"vector_registers", host.vector_registers},
                  {"fma", host.fma},
                  {"bf16_dot", host.bf16_dot},
                  {"l1_bytes", host.l1_bytes},
                  {"l2_bytes", host.l2_bytes},
                  {"compiler_flags", host.compiler_flags}}},
                {"compilers", list},
                {"targets", runtime::target_names()}});
    return kOk;
  }
  std::printf("host      %s, %d cores, %d-byte vectors, %d registers%s%s\n", host.name.c_str(), runtime::core_count(),
              host.vector_bytes, host.vector_registers, host.fma ? ", fma" : "", host.bf16_dot ? ", bf16 products" : "");
  std::printf("caches    L1 %s, L2 %s\n", bytes(double(host.l1_bytes)).c_str(), bytes(double(host.l2_bytes)).c_str());
  for (const runtime::Compiler& c : compilers) {
    std::printf("compiler  %s: %s%s\n", c.path.c_str(), c.version.c_str(), c.openmp ? ", OpenMP" : "");
  }
  if (compilers.empty()) std::printf("compiler  none of gcc, cc, clang: programs are interpreted\n");
  return kOk;
}

}  // namespace

void add_devices(CLI::App& app, Context& context) {
  app.add_subcommand("devices", "the machine at hand and the compilers on it")->callback([&context] {
    context.exit = devices(context);
  });
}

}  // namespace lemma::cli
