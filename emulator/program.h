// A whole program under the emulator: the launches of a call, on buffers that remember what was written.
#pragma once

#include <memory>

#include "emulator/module.h"
#include "lemma/driver/on_device.h"

namespace lemma::emulator {

class Program {
 public:
  // Text of the CUDA or Metal dialect.
  static base::Result<Program> load(driver::OnDevice program, emit::device::DialectId dialect, runtime::Cache& cache,
                                    const ModuleOptions& options = {});

  const driver::OnDevice& program() const { return *program_; }

  // Every kernel in order, on a few workgroups, which walk over all blocks; then the outputs are the call's. Findings
  // are an error that names the first.
  base::Result<void> run(driver::Call& call, const RunOptions& options = {}) const;

 private:
  Program(std::shared_ptr<const driver::OnDevice> program, Module module, bool metal)
      : program_(std::move(program)), module_(std::move(module)), metal_(metal) {}
  std::shared_ptr<const driver::OnDevice> program_;
  Module module_;
  bool metal_;
};

}  // namespace lemma::emulator
