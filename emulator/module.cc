#include "emulator/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <unordered_map>

#include "emulator/engine.h"

namespace lemma::emulator {
namespace {

using base::Result;

constexpr int kMostThreads = 1024;

// The names that stand in LM_KERNEL(name, ...).
std::vector<std::string> kernel_names(std::string_view text) {
  constexpr std::string_view head = "LM_KERNEL(";
  std::vector<std::string> out;
  for (size_t at = text.find(head); at != std::string_view::npos; at = text.find(head, at + 1)) {
    const size_t begin = at + head.size(), end = text.find(',', begin);
    if (end != std::string_view::npos) out.emplace_back(text.substr(begin, end - begin));
  }
  return out;
}

bool overlap(const LaunchBuffer& a, const LaunchBuffer& b) {
  const char *first = static_cast<const char*>(a.data), *second = static_cast<const char*>(b.data);
  return first < second + b.bytes && second < first + a.bytes;
}

// Whether the launch fits the kernel. What is known of memory is kept by buffer, so memory has to have one name.
Result<void> check_launch(const Launch& launch, const Signature& signature) {
  if (launch.threads < 1 || launch.threads > kMostThreads || launch.threads > signature.threads) {
    return base::invalid(fmt::format("kernel {} is launched with {} threads a block, expected 1 to {}", launch.kernel,
                                     launch.threads, std::min(kMostThreads, signature.threads)));
  }
  if (int(launch.buffers.size()) != signature.buffers || int(launch.scalars.size()) != signature.scalars) {
    return base::invalid(fmt::format("kernel {} is launched with {} buffers and {} scalars, expected {} and {}",
                                     launch.kernel, launch.buffers.size(), launch.scalars.size(), signature.buffers,
                                     signature.scalars));
  }
  if (signature.buffers > Signature::most_buffers) {
    return base::unsupported(fmt::format("kernel {} has {} buffers, and the emulator takes {}", launch.kernel,
                                         signature.buffers, int(Signature::most_buffers)));
  }
  for (const int64_t extent : launch.blocks) {
    if (extent < 0) return base::invalid(fmt::format("kernel {} is launched with {} blocks", launch.kernel, extent));
  }
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (overlap(launch.buffers[i], launch.buffers[j]) && (signature.written[i] || signature.written[j])) {
        return base::unsupported(fmt::format("buffers {} and {} of kernel {} overlap, and one of them is written",
                                             launch.buffers[j].name, launch.buffers[i].name, launch.kernel),
                                 {}, "pass memory that is written as one buffer");
      }
    }
  }
  return {};
}

std::vector<Buffer> make_buffers(const Launch& launch, const Signature& signature) {
  std::vector<Buffer> out;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const LaunchBuffer& given = launch.buffers[i];
    Buffer buffer;
    buffer.name = given.name;
    buffer.data = static_cast<unsigned char*>(given.data);
    buffer.bytes = given.bytes;
    buffer.element_bytes = signature.element_bytes[i];
    buffer.initialised = given.initialised;
    buffer.logs_reads = signature.written[i];
    out.push_back(std::move(buffer));
  }
  return out;
}

}  // namespace

struct Module::Library {
  struct Kernel {
    Engine::Entry entry = nullptr;
    Signature signature{};
  };
  void* handle = nullptr;
  Thread** (*current)() = nullptr;
  std::vector<std::string> names;
  std::unordered_map<std::string, Kernel> kernels;
  std::unique_ptr<Stacks> stacks = std::make_unique<Stacks>();

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle) dlclose(handle);
  }
};

Result<Module> Module::load(const std::string& text, const runtime::Compiler& compiler, runtime::Cache& cache,
                            const ModuleOptions& options, const runtime::Notices& notices) {
  auto library = std::make_shared<Library>();
  library->names = kernel_names(text);
  if (library->names.empty()) return base::invalid("the text has no LM_KERNEL(name, threads), and nothing can be run");
  std::string source = std::string(cuda_headers()) + "\n#line 1 \"text\"\n" + text + "\n";
  for (const std::string& name : library->names) source += "LM_ENTRY(" + name + ")\n";
  // No contraction: a product and a sum are what the text says, as in the oracle.
  const std::string flags = "-x c++ -std=c++20 " + options.optimisation + " -ffp-contract=off -fPIC -shared -w";
  const runtime::KernelKey key{source, flags, compiler.path + " " + compiler.version, "emulator"};
  const auto build = [&](const std::string& directory) {
    return runtime::compile_kernel(compiler, flags, source, directory, options.compiler);
  };
  LEMMA_TRY(const runtime::KernelFile file, cache.obtain(key, build, notices));
  library->handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) {
    const char* reason = dlerror();
    return base::system_failure(fmt::format("cannot load '{}': {}", file.path, reason ? reason : "unknown reason"));
  }
  library->current = reinterpret_cast<Thread** (*)()>(dlsym(library->handle, "lm_emulator_current"));
  for (const std::string& name : library->names) {
    const auto symbol = [&](const std::string& prefix) { return dlsym(library->handle, (prefix + name).c_str()); };
    Library::Kernel kernel;
    kernel.entry = reinterpret_cast<Engine::Entry>(symbol("lm_entry_"));
    const auto describe = reinterpret_cast<void (*)(Signature*)>(symbol("lm_signature_"));
    if (!library->current || !kernel.entry || !describe) {
      return base::system_failure(fmt::format("'{}' lacks the entry of kernel {}", file.path, name));
    }
    describe(&kernel.signature);
    library->kernels.emplace(name, kernel);
  }
  return Module(std::move(library));
}

const std::vector<std::string>& Module::kernels() const { return library_->names; }

Result<Report> Module::run(const Launch& launch) const {
  const auto found = library_->kernels.find(launch.kernel);
  if (found == library_->kernels.end()) {
    return base::invalid(
        fmt::format("the text has no kernel '{}', its first is {}", launch.kernel, library_->names.front()));
  }
  const Signature& signature = found->second.signature;
  LEMMA_TRY_VOID(check_launch(launch, signature));
  Engine engine(found->second.entry, library_->current(), *library_->stacks, launch, make_buffers(launch, signature));
  return engine.run();
}

}  // namespace lemma::emulator
