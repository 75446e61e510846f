#include "emulator/program.h"

#include <algorithm>
#include <map>

namespace lemma::emulator {

using base::Result;

namespace {

constexpr int64_t kGroups = 3;

// A call's buffers as the emulator takes them.
class Memory {
 public:
  Memory(const tile::Program& program, const driver::DeviceCall& plan, const driver::Call& call, bool metal) : program_(program), metal_(metal) {
    size_t parameter = 0;
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      if (plan.bytes[b] == 0) continue;
      const tile::Space space = program.buffers[b].space;
      Buffer& own = buffers_[int(b)];
      own.bytes.assign(size_t(plan.bytes[b]), std::byte{0xff});
      if (space == tile::Space::Scratch) continue;
      own.parameter = int(parameter);
      const runtime::Array& array = call.arrays[parameter];
      if (space != tile::Space::Output) {
        std::copy_n(static_cast<const std::byte*>(call.buffers[parameter]), scalar::bytes(array.type, array.count()), own.bytes.begin());
        own.written = true;
      }
      ++parameter;
    }
  }

  Result<void> run(const Module& module, const emit::device::DeviceKernel& kernel, const driver::DeviceLaunch& l, const RunOptions& options) {
    Launch launch;
    launch.kernel = kernel.name;
    launch.blocks[0] = l.blocks;
    launch.threads = kernel.threads;
    launch.dynamic_shared = kernel.shared_bytes;
    launch.options = options;
    launch.options.seed += uint64_t(l.kernel);
    for (int b : l.buffers) {
      Buffer& own = buffers_[b];
      launch.buffers.push_back({program_.buffers[size_t(b)].name, own.bytes.data(), int64_t(own.bytes.size()), own.written});
    }
    std::vector<std::byte> slices(size_t(4 * l.slice_words), std::byte{0xff});
    if (l.slice_words > 0) launch.buffers.push_back({"slices", slices.data(), int64_t(slices.size()), false});
    // Metal takes its sizes from memory.
    std::vector<int64_t> sizes = l.scalars;
    if (metal_ && !sizes.empty()) launch.buffers.push_back({"sizes", sizes.data(), int64_t(8 * sizes.size()), true});
    else for (int64_t s : sizes) launch.scalars.push_back(integer(s));
    LEMMA_TRY(const Report report, module.run(launch));
    if (!report.findings.empty()) return base::invalid(report.findings[0].message);
    for (size_t i = 0; i < l.buffers.size(); ++i) buffers_[l.buffers[i]].written |= kernel.written[i];
    return {};
  }

  void copy_back(driver::Call& call) const {
    for (const auto& [b, own] : buffers_) {
      if (own.parameter < 0 || program_.buffers[size_t(b)].space == tile::Space::Input) continue;
      const runtime::Array& array = call.arrays[size_t(own.parameter)];
      std::copy_n(own.bytes.begin(), scalar::bytes(array.type, array.count()), static_cast<std::byte*>(call.buffers[size_t(own.parameter)]));
    }
  }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    bool written = false;
    int parameter = -1;
  };
  const tile::Program& program_;
  const bool metal_;
  std::map<int, Buffer> buffers_;
};

}  // namespace

Result<Program> Program::load(driver::OnDevice program, emit::device::DialectId dialect, runtime::Cache& cache, const ModuleOptions& options) {
  const bool metal = dialect == emit::device::DialectId::Metal;
  LEMMA_TRY(const runtime::Compiler compiler, runtime::find_compiler({}, cache));
  LEMMA_TRY(Module module, Module::load(std::string(metal ? metal_header() : "") + program.text.source, compiler, cache, options));
  return Program(std::make_shared<driver::OnDevice>(std::move(program)), std::move(module), metal);
}

Result<void> Program::run(driver::Call& call, const RunOptions& options) const {
  LEMMA_TRY(const driver::DeviceCall plan, driver::plan_launches(*program_, call, kGroups));
  Memory memory(program_->compiled.program, plan, call, metal_);
  for (const driver::DeviceLaunch& l : plan.launches) {
    if (l.blocks > 0) LEMMA_TRY_VOID(memory.run(module_, program_->text.kernels[size_t(l.kernel)], l, options));
  }
  memory.copy_back(call);
  return {};
}

}  // namespace lemma::emulator
