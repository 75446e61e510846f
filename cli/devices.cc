// lemma devices: the machine at hand, the compilers found on it, the devices beside it, and what is missing for more.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/report.h"
#include "cli/session.h"
#include "lemma/runtime/device.h"
#include "lemma/runtime/host.h"

namespace lemma::cli {
namespace {

using nlohmann::json;

json to_json(const tile::Target& host) {
  return {{"target", host.name},
          {"cores", runtime::core_count()},
          {"vector_bytes", host.vector_bytes},
          {"vector_registers", host.vector_registers},
          {"fma", host.fma},
          {"bf16_dot", host.bf16_dot},
          {"l1_bytes", host.l1_bytes},
          {"l2_bytes", host.l2_bytes},
          {"compiler_flags", host.compiler_flags}};
}

json to_json(const runtime::DeviceInfo& device) {
  return {{"interface", runtime::api_name(device.api)},
          {"index", device.index},
          {"name", device.name},
          {"driver", device.driver},
          {"memory_bytes", device.memory_bytes},
          {"shared_bytes", device.shared_bytes},
          {"max_threads", device.max_threads},
          {"max_blocks", device.max_blocks},
          {"max_storage_binding_bytes", device.max_storage_binding_bytes},
          {"offset_alignment", device.offset_alignment},
          {"max_bindings", device.max_bindings},
          {"max_scalars", device.max_scalars},
          {"subgroup", device.subgroup},
          {"f16", device.f16},
          {"f64", device.f64},
          {"i64", device.i64},
          {"i16_storage", device.i16_storage},
          {"i8_storage", device.i8_storage},
          {"compute_capability", device.compute_capability}};
}

json to_json(const runtime::Missing& missing) {
  return {{"interface", runtime::api_name(missing.api)}, {"reason", missing.reason}, {"mend", missing.mend}};
}

json to_json(const runtime::Compiler& compiler) {
  return {{"path", compiler.path}, {"version", compiler.version}, {"openmp", compiler.openmp}};
}

template <class T>
json to_json_list(const std::vector<T>& values) {
  json out = json::array();
  for (const T& value : values) out.push_back(to_json(value));
  return out;
}

void print(const runtime::DeviceInfo& device) {
  std::printf("device    %s %d: %s (%s)\n", runtime::api_name(device.api), device.index, device.name.c_str(),
              device.driver.c_str());
  std::string abilities;
  const auto add = [&](bool has, const char* name) { abilities += has ? std::string(", ") + name : ""; };
  add(device.f16, "f16");
  add(device.f64, "f64");
  add(device.i64, "i64");
  if (device.compute_capability > 0) abilities += ", sm_" + std::to_string(device.compute_capability);
  if (device.subgroup > 0) abilities += ", subgroups of " + std::to_string(device.subgroup);
  if (device.memory_bytes > 0) abilities += ", memory " + bytes(double(device.memory_bytes));
  std::printf("          blocks of %lld threads with %s, arguments of %s%s\n",
              static_cast<long long>(device.max_threads), bytes(double(device.shared_bytes)).c_str(),
              bytes(double(device.max_storage_binding_bytes)).c_str(), abilities.c_str());
}

int devices(const Context& context) {
  const tile::Target host = runtime::host_target();
  const runtime::Cache cache(cache_options(context));
  const std::vector<runtime::Compiler> compilers = runtime::list_compilers(compiler_options(context, {}), cache);
  const runtime::DeviceList found = runtime::list_devices(device_options(context));
  if (context.json) {
    print_json({{"host", to_json(host)},
                {"compilers", to_json_list(compilers)},
                {"targets", runtime::target_names()},
                {"devices", to_json_list(found.devices)},
                {"missing", to_json_list(found.missing)}});
    return kOk;
  }
  std::printf("host      %s, %d cores, %d-byte vectors, %d registers%s%s\n", host.name.c_str(), runtime::core_count(),
              host.vector_bytes, host.vector_registers, host.fma ? ", fma" : "",
              host.bf16_dot ? ", bf16 products" : "");
  std::printf("caches    L1 %s, L2 %s\n", bytes(double(host.l1_bytes)).c_str(), bytes(double(host.l2_bytes)).c_str());
  for (const runtime::Compiler& c : compilers) {
    std::printf("compiler  %s: %s%s\n", c.path.c_str(), c.version.c_str(), c.openmp ? ", OpenMP" : "");
  }
  if (compilers.empty()) std::printf("compiler  none of gcc, cc, clang: programs are interpreted\n");
  for (const runtime::DeviceInfo& device : found.devices) print(device);
  for (const runtime::Missing& missing : found.missing) {
    std::printf("missing   %s: %s\n          %s\n", runtime::api_name(missing.api), missing.reason.c_str(),
                missing.mend.c_str());
  }
  return kOk;
}

}  // namespace

void add_devices(CLI::App& app, Context& context) {
  app.add_subcommand("devices", "the machine at hand, its compilers, the devices beside it, what is missing for more")
      ->callback([&context] { context.exit = devices(context); });
}

}  // namespace lemma::cli
